"""The connection of schedules to the machine: plans as bytecode, runs of functions within a budget.

The rest of `rvm.pebble` is independent of programs and engines.
"""
