"""`python -m rvm_tools` is the command `rvm`."""

from rvm_tools.cli import main

if __name__ == "__main__":
    main()
