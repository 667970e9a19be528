"""The user programs of rvm: the command line `rvm` and what it runs."""
