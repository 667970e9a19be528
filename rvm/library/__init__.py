"""What callers hold: functions as callables, maps over lanes, programs from files."""
