"""The operating system: files in and out, signals, what threads make once, shared memory."""
