"""The reversible game on graphs: where graphs come from, plans, and programs made of plans."""
