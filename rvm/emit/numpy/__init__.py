"""Statements over lanes as NumPy: vectors of lanes, and arrays whose last axis they are."""
