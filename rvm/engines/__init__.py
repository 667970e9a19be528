"""Engines: ways of executing the one bytecode."""

from rvm.engines.registry import ENGINES, LAW, counting, engine, executing, having

__all__ = ["ENGINES", "LAW", "counting", "engine", "executing", "having"]
