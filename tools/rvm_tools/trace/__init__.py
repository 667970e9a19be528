"""`rvm trace`: accounts of what runs execute, erase and cost, and their output formats."""
