"""The operating system: files, signals, shared memory, and work done once for several threads."""
