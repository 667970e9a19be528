"""Runs: values bound to registers, machines, direct calls, lanes."""
