"""`rvm trace`: accounts of what runs execute, erase and cost, and the formats that show them."""
