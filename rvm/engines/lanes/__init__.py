"""Lanes: one program on many inputs at once, every register a vector of all lanes' values.

`rvm.engines.lanes.engine.run_block` is the door; `rvm.run.lanes` and `rvm.library.lane_map` are
what is made of it.
"""
