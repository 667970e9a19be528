"""The cost of runs: the costs of instructions, and counts of executed instructions."""
