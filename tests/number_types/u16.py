"""u16, which is shipped, as it is entered: a row, and nothing else."""

from rvm.types import integer

ROW, MAKE = integer("u16"), None
