"""Schedules on chains: the families that plans are made of, from Bennett to Revolve."""
