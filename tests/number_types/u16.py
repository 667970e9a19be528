"""u16: a row, and nothing else."""

from rvm.types import integer

ROW, MAKE = integer("u16"), None
