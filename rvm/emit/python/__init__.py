"""Nodes of the intermediate representation as Python: numbers in variables, arrays of NumPy."""
