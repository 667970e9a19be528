"""Lanes: one program on many inputs at once, every register a vector of all lanes' values.

`rvm.engines.lanes.engine.run_block` is the door; `rvm.lanes` and `rvm.mapping` are what is made
of it.
"""
