"""The user programs of rvm: the command line `rvm` and what stands behind it."""
