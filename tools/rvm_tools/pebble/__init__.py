"""The command `rvm pebble`: plans of chains and graphs, compared, drawn, listed, saved, emitted."""
