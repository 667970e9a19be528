"""What ties schedules to the machine: plans as bytecode, and runs of functions within a budget.

All else in `rvm.pebble` knows nothing of programs and engines.
"""
