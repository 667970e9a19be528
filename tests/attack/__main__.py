"""`python tests/attack`: the folder above this one is where the package is found."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    import_module("attack.command").main()
