"""Derivatives as Python sees them: gradients, Hessians, directions, and their checks."""
