"""Lanes: one program on many inputs at once, with a vector of all lanes' values per register.

`rvm.engines.lanes.engine.run_block` is the entry point; `rvm.run.lanes` and `rvm.library.lane_map`
are built on it.
"""
