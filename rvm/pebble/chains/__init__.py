"""Schedules on chains: the families of schedules for plans, from Bennett to Revolve."""
