"""What `rvm pebble` does: plans of chains and graphs, compared, drawn, listed, kept and emitted."""
