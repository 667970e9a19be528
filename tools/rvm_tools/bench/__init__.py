"""Benchmarks: small programs on each engine beside plain Python that does the same work."""
