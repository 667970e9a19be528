"""The rows of the ISA table, and the table itself: the definition of opcodes and functions.

A row is data.  Everything else (inverse, adjoint, code for each engine, the reference page, the
tests) is derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rvm.expr import LENGTHS, Expr
from rvm.host.once import enter, taken
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
"""Code, or a function that makes it for a type."""


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A pure function: its typing rule, derivatives and cost.

    `partials(*args)` gives the derivative with respect to each argument as expressions (None: no
    derivative); for an elementwise function of real or complex arguments these suffice. `vjp(g,
    *args)` gives, for array functions and non-holomorphic functions of complex arguments, the term
    for each argument's adjoint when the result's adjoint is `g`.
    """

    name: str
    operands: tuple[str, ...]
    """The names of its arguments."""
    rule: Rule
    doc: str
    cost: str = "NLOPS"
    symbol: str = ""
    """The infix or prefix sign in the assembly language, if the function has one."""
    partials: Callable[..., tuple[Expr | None, ...]] | None = None
    vjp: Callable[..., tuple[Expr | None, ...]] | None = None
    code: Mapping[str, Row] = field(default_factory=dict)
    """Code by the name of a type, or the kind of its numbers, or "*" for all, for functions outside
    number systems. Code for all types only moves numbers, and computes nothing."""
    body: Callable[..., Node] | None = None
    """Its computation on f64 numbers, over leaf operations; other real types go through f64."""
    formula: Expr | None = None
    """The definition of the function as a formula over formals; typing substitutes it."""
    module: str = ""
    """The module that defines a user's function, which other processes import."""
    moves: bool = False
    """Whether it only moves numbers, or parts of them, without rounding."""
    exact: bool = False
    """Whether it never rounds, except when it makes a real number of a complex one."""
    lazy: bool = False
    """Whether, on scalars, later arguments are evaluated only where the first selects them.

    Where its value has derivatives, it is the value of that argument.
    """
    divides: bool = False
    """Whether its second argument is a divisor."""
    linear: bool = False
    """Whether it is linear in its first argument; other arguments are indices and shapes."""
    contracts: bool = False
    """Whether it sums products of elements of its two arguments."""
    at_once: bool = False
    """Whether its elements are computed together: derivatives hold them in an array."""
    steps: bool = False
    """Whether it is piecewise constant on real numbers: its derivative is 0."""
    cuts: str = ""
    """The class of types for which it jumps on a line or at a point; `abs` has a cusp there."""
    partial: str = ""
    """The class of types on which it has no value for some arguments: a run-time error."""
    repeats: str = ""
    """The binary function with which it combines all elements of an array."""
    pole: Callable[..., Expr | None] | None = None
    """A number that is nonzero where its derivatives are finite but may overflow, and 0 where they
    are truly infinite; None for arguments where they do not overflow."""
    cancels: bool = False
    """Whether, for a negative argument, its result may be a small difference of large terms.

    Its error is then that of a rounded argument.
    """
    underflows: bool = False
    """Whether its result may underflow to 0 for nonzero arguments."""
    indexed: bool = False
    """Whether its second argument holds indices, with one number moved or added for each."""
    exactly: Callable[..., Any] | None = None
    """Its computation on Python's numbers, with integers of any size, for constants."""
    binds: int = 0
    """The precedence of its operator, as in Python: higher binds tighter."""
    in_place: tuple[str, ...] = ()
    """The functions that, applied in place one after another, compute f(c, x) from x; the last
    takes c."""
    stated: str = ""
    """For a function of this machine's libraries: the function with the specified bits, which has
    its derivatives."""

    @property
    def arity(self) -> int:
        """The number of its arguments."""
        return len(self.operands)

    @property
    def is_elementwise(self) -> bool:
        """Whether it applies element by element to arrays of any shapes that broadcast."""
        apart = self.rule in OF_ARRAYS or self.rule in OF_SCALARS
        return not (apart or self.lazy or self.name in LENGTHS)

    @property
    def takes_shape(self) -> bool:
        """Whether only the shape of its last argument matters."""
        return self.rule in OF_A_SHAPE

    def jumps(self, *types: Scalar | None) -> bool:
        """Whether it is not continuous, for arguments of some types."""
        cuts = CLASSES[self.cuts] if self.cuts else None
        unknown = bool(self.module) and self.formula is None  # A user's Python function.
        return self.steps or unknown or any(cuts(t) for t in types if cuts and t is not None)

    def is_partial(self, t: Scalar) -> bool:
        """Whether it has no value for some arguments of a type."""
        return bool(self.partial) and CLASSES[self.partial](t)


@dataclass(frozen=True, slots=True)
class Operand:
    """A formal operand of an opcode.

    `mode`: "mut" is changed, "use" is read, "reg" is a whole register that is created or removed,
    "stack" a stack.  `kind`: "T" for the opcode's type, otherwise the name of a class in
    `rvm.isa.rules.CLASSES` ("bool", "int", …) or "angle" (the real type that belongs to T).
    """

    name: str
    mode: str
    kind: str = "T"


@dataclass(frozen=True, slots=True)
class OpRow:
    """An opcode: operands, meaning as statements over formals, and inverse opcode."""

    name: str
    operands: tuple[Operand, ...]
    types: str
    """The class of types that T ranges over."""
    body: tuple[Stmt, ...]
    inverse: str
    doc: str
    cost: str = "ADDS"
    """The class in which its execution is counted, in addition to its expressions."""
    build: Callable[[Instr], Stmt] | None = None
    """A function that makes the statement of an opcode that is not a sequence of data
    statements."""
    module: str = ""
    """The module that defines a user's opcode, which other processes import."""
    exact: tuple[Stmt, ...] = ()
    """Its meaning on the types of the class `exact_types`, if different."""
    exact_inverse: str = ""
    """The inverse opcode on these types, if different."""
    exact_types: str = "exact"

    def body_on(self, t: Scalar) -> tuple[Stmt, ...]:
        """The meaning on operands of a type."""
        return self.exact if self.exact and CLASSES[self.exact_types](t) else self.body

    def inverse_on(self, t: Scalar) -> str:
        """The inverse opcode on operands of a type."""
        apart = self.exact_inverse and CLASSES[self.exact_types](t)
        return self.exact_inverse if apart else self.inverse

    @property
    def is_data(self) -> bool:
        """Whether the opcode's meaning is its `body`, over operands of one type T."""
        return self.build is None


class FunctionTable(dict[str, FunctionRow]):
    """The function table by name.

    Rows of infinite families, such as the conversions `fixed(n)`, are made by `on_demand` when
    looked up; iteration does not include them.
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
    """Add a row to the function table; ValueError if the name is taken."""
    if taken(FUNCTIONS, row.name):
        raise ValueError(f"the function table has a `{row.name}` already")
    enter(FUNCTIONS, row.name, row)
    return row


def reduction_by(fn: str) -> str:
    """The function that combines all elements of an array with `fn`; "" if there is none."""
    return next((name for name, row in FUNCTIONS.items() if row.repeats == fn), "")


def add_opcode(row: OpRow) -> OpRow:
    """Add a row to the opcodes; ValueError if the mnemonic is taken."""
    if taken(OPCODES, row.name):
        raise ValueError(f"there is an opcode `{row.name}` already")
    enter(OPCODES, row.name, row)
    return row


def defining_module(body: Callable[..., Any]) -> str:
    """The user's module that contains a row's body; "" if it is in none."""
    module: str = getattr(body, "__module__", None) or ""
    return "" if is_of_the_table(body) else module


def is_of_the_table(body: Callable[..., Any]) -> bool:
    """Whether a row's body belongs to the table itself, and not to a user's module."""
    return str(getattr(body, "__module__", None)).startswith("rvm.isa.")


def angle_type(t: Scalar) -> Scalar:
    """The real type that belongs to `t`: the type of an angle, a modulus, a part."""
    return F64 if t.is_complex or t.is_integer else t
