"""Families of schedules, one for each strategy: what they cost, and what is known about that."""
