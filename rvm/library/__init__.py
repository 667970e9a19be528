"""The objects that callers use: functions as callables, maps over lanes, programs from files."""
