"""The rows of the ISA table and the table itself: what one opcode or function is.

A row is data.  Everything else (inverse, adjoint, code for each engine, the
reference page, the tests) is derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rvm.expr import LENGTHS, Expr
from rvm.isa.rules import CLASSES, OF_A_SHAPE, OF_ARRAYS, OF_SCALARS, Rule
from rvm.leaf import Node
from rvm.numbers.code import Code as Code
from rvm.stmt import Stmt
from rvm.types import F64, Scalar

if TYPE_CHECKING:
    from rvm.program import Instr

COSTS = ("MOVES", "ADDS", "MULTS", "NLOPS")
"""Cost classes: moves, additions, multiplications and divisions, nonlinear operations."""


Row = Code | Callable[[Scalar], Code]
"""Code, or what makes it for a type."""


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A pure function: its typing rule, derivatives and cost.

    `partials(*args)` gives the derivative by each argument as expressions (None: carries none);
    of an elementwise function of real or complex arguments these are all there is to know.
    `vjp(g, *args)` gives for array functions, and for functions of complex arguments that are not
    holomorphic, what each argument's adjoint gains when the result's adjoint is `g`.
    `domain` holds for each argument the interval in which tests draw; `mp` the name of the function
    in mpmath (or a callable) that tests compare with.
    """

    name: str
    arity: int
    rule: Rule
    doc: str
    cost: str = "NLOPS"
    symbol: str = ""
    """The infix or prefix sign in the assembly language, if the function has one."""
    partials: Callable[..., tuple[Expr | None, ...]] | None = None
    vjp: Callable[..., tuple[Expr | None, ...]] | None = None
    code: Mapping[str, Row] = field(default_factory=dict)
    """Code by the name of a type, or the kind of its numbers, or "*" for all: of functions that
    are not a number system's own.  What is for all moves numbers, and computes nothing."""
    body: Callable[..., Node] | None = None
    """What it computes on f64 numbers, over leaf operations; other real types go through f64."""
    domain: tuple[tuple[float, float], ...] = ()
    mp: str | Callable[..., Any] = ""
    formula: Expr | None = None
    """What the function stands for, over formals; typing puts it in the function's place."""
    module: str = ""
    """The module that defines it, of a user's own: other processes import it."""
    moves: bool = False
    """It moves numbers, or parts of them, and rounds nothing."""
    exact: bool = False
    """It rounds nothing, but that of a complex number a real one is made."""
    lazy: bool = False
    """Of scalars an argument after the first is evaluated only where the first asks for it.

    Where its value carries derivatives it is that argument's value."""
    divides: bool = False
    """Its second argument is a divisor."""
    linear: bool = False
    """It is linear in its first argument; others are indices and shapes."""
    contracts: bool = False
    """It sums products of elements of its two arguments."""
    steps: bool = False
    """Of real numbers it is constant in between its steps: its derivative is 0."""
    partial: str = ""
    """The class of types of which some arguments have no value: there it is a fault of the run."""
    repeats: str = ""
    """The function of two that it combines all elements of an array with."""
    pole: Callable[..., Expr | None] | None = None
    """Where its derivatives may be too large for a float: a number that is 0 where they are
    infinite in truth; None of arguments where they are not too large."""
    cancels: bool = False
    """Of a negative argument its result may be a small difference of large terms.

    It is then as wrong as if the argument were rounded."""
    underflows: bool = False
    """Of arguments none of which is 0 its result may be, where it is too small to be a number."""
    indexed: bool = False
    """Its second argument holds indices, and it moves or adds one number for each of them."""
    exactly: Callable[..., Any] | None = None
    """What it computes on Python's numbers, whose integers are of any size: in constants."""
    binds: int = 0
    """How tightly its sign binds between two operands, as in Python: more before less."""
    in_place: tuple[str, ...] = ()
    """The functions that, each in turn applied in place, make f(c, x) of x; c goes to the last."""
    operands: str = ""
    """The names of its arguments where `x`, `y` would be misleading."""

    @property
    def is_elementwise(self) -> bool:
        """Whether it takes arrays of any shapes that broadcast, element by element."""
        apart = self.rule in OF_ARRAYS or self.rule in OF_SCALARS
        return not (apart or self.lazy or self.name in LENGTHS)

    @property
    def takes_shape(self) -> bool:
        """Whether of its last argument only the shape counts."""
        return self.rule in OF_A_SHAPE

    def is_partial(self, t: Scalar) -> bool:
        """Whether some arguments of a type have no value."""
        return bool(self.partial) and CLASSES[self.partial](t)


@dataclass(frozen=True, slots=True)
class Operand:
    """A formal operand of an opcode.

    `mode`: "mut" is changed, "use" is read, "reg" is a whole register that comes or goes,
    "stack" a stack.  `kind`: "T" has the opcode's type, else the name of a class in
    `rvm.isa.rules.CLASSES` ("bool", "int", …) or "angle" (the real type that belongs to T).
    """

    name: str
    mode: str
    kind: str = "T"


@dataclass(frozen=True, slots=True)
class OpRow:
    """An opcode: operands, meaning as statements over formals, and the opcode that undoes it."""

    name: str
    operands: tuple[Operand, ...]
    types: str
    """The class of types that T ranges over."""
    body: tuple[Stmt, ...]
    inverse: str
    doc: str
    cost: str = "ADDS"
    """The class that executing it counts in, besides what its expressions count."""
    build: Callable[[Instr], Stmt] | None = None
    """Makes the statement of an opcode that is not a sequence of data statements."""
    module: str = ""
    """The module that defines it, of a user's own: other processes import it."""
    exact: tuple[Stmt, ...] = ()
    """Its meaning on the types of the class `exact_types`, where that is another one there."""
    exact_inverse: str = ""
    """The opcode that undoes it on these, where that is another one."""
    exact_types: str = "exact"

    def body_on(self, t: Scalar) -> tuple[Stmt, ...]:
        """The meaning on operands of a type."""
        return self.exact if self.exact and CLASSES[self.exact_types](t) else self.body

    def inverse_on(self, t: Scalar) -> str:
        """The opcode that undoes it on operands of a type."""
        apart = self.exact_inverse and CLASSES[self.exact_types](t)
        return self.exact_inverse if apart else self.inverse

    @property
    def is_data(self) -> bool:
        """Whether the opcode's meaning is its `body`, over operands of one type T."""
        return self.build is None


class FunctionTable(dict[str, FunctionRow]):
    """The function table by name.

    Rows of a family without end, as the conversions `fixed(n)` are, are made by `on_demand` when
    they are looked up; they are not among the table's items.
    """

    on_demand: Callable[[str], FunctionRow | None] = staticmethod(lambda name: None)

    def __missing__(self, name: str) -> FunctionRow:
        row = self.on_demand(name)
        if row is None:
            raise KeyError(name)
        return row

    def get(self, name: str, default: Any = None) -> Any:
        row = super().get(name)
        if row is None:
            row = self.on_demand(name)
        return default if row is None else row

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str) and self.on_demand(name) is not None
        )


FUNCTIONS = FunctionTable()
"""The function table by name."""
OPCODES: dict[str, OpRow] = {}
"""The opcodes by mnemonic."""


def add_function(row: FunctionRow) -> FunctionRow:
    """Enter a row in the function table; ValueError if the name is taken."""
    if row.name in FUNCTIONS:
        raise ValueError(f"the function table has a `{row.name}` already")
    FUNCTIONS[row.name] = row
    return row


def reduction_by(fn: str) -> str:
    """The function that combines all elements of an array with `fn`; "" if there is none."""
    return next((name for name, row in FUNCTIONS.items() if row.repeats == fn), "")


def add_opcode(row: OpRow) -> OpRow:
    """Enter a row among the opcodes; ValueError if the mnemonic is taken."""
    if row.name in OPCODES:
        raise ValueError(f"there is an opcode `{row.name}` already")
    OPCODES[row.name] = row
    return row


def defining_module(body: Callable[..., Any]) -> str:
    """The module of a user's own that a row's body stands in; "" if it is in none."""
    module: str = getattr(body, "__module__", None) or ""
    return "" if is_of_the_table(body) else module


def is_of_the_table(body: Callable[..., Any]) -> bool:
    """Whether a row's body stands in the table itself, and not in a module of a user's own."""
    return str(getattr(body, "__module__", None)).startswith("rvm.isa.")


def angle_type(t: Scalar) -> Scalar:
    """The real type that belongs to `t`: the type of an angle, a modulus, a part."""
    return F64 if t.is_complex or t.is_integer else t
