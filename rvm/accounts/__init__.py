"""What a run costs: the rows of the cost table, and counts of what was executed."""
