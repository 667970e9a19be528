"""Transformations of programs into programs."""

from rvm.transform.invert import invert, invert_function

__all__ = ["invert", "invert_function"]
