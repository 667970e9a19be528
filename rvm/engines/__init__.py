"""Engines: ways of executing the one bytecode."""

from rvm.engines.protocol import NAMES, Engine, engine

__all__ = ["NAMES", "Engine", "engine"]
