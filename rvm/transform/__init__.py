"""Transformations of programs into programs."""

from rvm.transform.gradient import gradient
from rvm.transform.invert import invert, invert_function
from rvm.transform.tangent import tangent

__all__ = ["gradient", "invert", "invert_function", "tangent"]
