"""THE TABLE: every opcode and every function, each written once.

`OPCODES` and `FUNCTIONS` are filled on import; `rvm.opcode` and `rvm.function` add user-defined
rows.
"""

from rvm.isa import functions as _functions  # fills FUNCTIONS
from rvm.isa import machine_ops as _machine_ops  # fills OPCODES

from rvm.isa import data as _data  # proves its rows by FUNCTIONS, so it comes last  # isort: skip
from rvm.isa.implementation import array_value, implementation, value
from rvm.isa.lower import check_operands, invert_instr, lower, zero_literal
from rvm.isa.machine_ops import ENDS, MAKES, VARIADIC
from rvm.isa.number_types import number_type
from rvm.isa.rows import FUNCTIONS, OPCODES, Code, FunctionRow, OpRow
from rvm.isa.rules import TypeFault
from rvm.isa.typing import apply, place, place_type, typed, wholes_as_reals
from rvm.types import SCALARS

__all__ = [
    "ENDS",
    "FUNCTIONS",
    "MAKES",
    "OPCODES",
    "SHIPPED",
    "SHIPPED_ROWS",
    "VARIADIC",
    "Code",
    "FunctionRow",
    "OpRow",
    "TypeFault",
    "apply",
    "array_value",
    "check_operands",
    "implementation",
    "invert_instr",
    "lower",
    "number_type",
    "place",
    "place_type",
    "typed",
    "value",
    "wholes_as_reals",
    "zero_literal",
]

SHIPPED = frozenset([*FUNCTIONS, *OPCODES, *SCALARS])
"""The names in the tables before users add any."""
SHIPPED_ROWS = len(FUNCTIONS) + len(OPCODES) + len(SCALARS)

del _data, _functions, _machine_ops
