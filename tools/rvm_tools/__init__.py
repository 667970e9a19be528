"""The command line `rvm` and its implementation."""
