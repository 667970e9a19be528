"""Benchmarks: small programs on each engine, compared with plain Python that does the same work."""
