"""The operating system: files, signals, things that threads make once, shared memory."""
