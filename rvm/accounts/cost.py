"""The cost of an instruction: operations by class and type, checks, and bits overwritten.

A cost depends on an instruction's text and on the lengths of its arrays, never on values: both
sides of an `and` count, and so does the body of a `when`.  Each function of an expression counts
once in the class given by its row of the table, an update in the class of its operator; equal
subexpressions of a statement count once.  Operations on arrays count for every element, and a
product of matrices counts a multiplication and an addition for every product of two numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, cast

from rvm.expr import LENGTHS, Apply, Const, Expr, Place, children
from rvm.isa.implementation import deciding
from rvm.isa.rows import COSTS, FUNCTIONS, FunctionRow
from rvm.isa.rules import OF_ARRAYS
from rvm.program import Register
from rvm.stmt import (
    FORWARD,
    Alloc,
    Branch,
    Call,
    Drop,
    Effect,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
    values,
    writes,
)
from rvm.types import BOOL, I64, Array, Scalar, Stack, elem_of, rank_of

MOVES, ADDS, MULTS, NLOPS = COSTS


class Kind(NamedTuple):
    """An operation: its class, and the type of the numbers that it works on."""

    cls: str
    type: str


Size = tuple[int, ...] | int
"""A size on which costs depend: an array's shape, or a length given by an expression."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of executing an instruction once.

    `moved`: the numbers that functions and updates read and write, that an exchange moves, and that
    are created or removed: MOVES in the account of Huot and Shaikhha, figure 11.
    `checks`: conditions, freed or popped values, factors, expressions passed by reference and
    places that may overlap, which the run checks so that no information is lost unnoticed. `sent`:
    the bits that an effect takes out of the machine. `overwritten`: the bits that an ordinary
    machine would erase doing the same: every place that is changed or removed, an expression passed
    to a call, output of effects, and at a come-from the bit that says how it was reached.
    """

    work: Mapping[Kind, int]
    moved: int = 0
    checks: int = 0
    sent: int = 0
    overwritten: int = 0


def measured(stmts: Sequence[Stmt], registers: Sequence[Register]) -> tuple[Expr, ...]:
    """The values, besides its text, on which the cost of an instruction depends, each once.

    These are the array places whose elements it works on, and the lengths given to `scatter`.
    """
    found: dict[Expr, None] = {}
    for stmt in stmts:
        for node in _operands(stmt, registers):
            for sub in _worked_on(node):
                if isinstance(sub, Place):
                    if sub.type is not None and rank_of(sub.type):
                        found[sub] = None
                elif isinstance(sub, Apply) and sub.fn == "scatter":
                    found[sub.args[2]] = None
    return tuple(found)


def cost(
    stmts: Sequence[Stmt],
    registers: Sequence[Register],
    sizes: Mapping[Expr, Size],
    clashes: int = 0,
    inout: Iterable[int] = (),
) -> Cost:
    """The cost of an instruction, given the sizes of the values in `measured`.

    `clashes` is the number of pairs of places whose overlap the run must check, `inout` the
    registers that the callee of a call may change.
    """
    count = _Count(registers, sizes)
    for stmt in stmts:
        count.statement(stmt, frozenset(inout))
    checks = count.checks + clashes
    return Cost(count.work, count.moved, checks, count.sent, count.overwritten)


def operation(
    row: FunctionRow, result: tuple[int, ...], args: Sequence[tuple[int, ...]]
) -> tuple[int, Mapping[str, int]]:
    """The numbers that a function reads and writes, and its operations by class, for shapes."""
    if row.contracts:
        n = prod(result) * args[0][-1]
        return 3 * n, {MULTS: n, ADDS: n}
    n = prod(args[1]) if row.indexed else max(map(prod, (result, *args)))
    reduces = row.rule in OF_ARRAYS and row.cost != MOVES
    return n * (2 if reduces else 1 + row.arity), {row.cost: n}


def _operands(stmt: Stmt, registers: Sequence[Register]) -> Iterator[Expr]:
    """The expressions that a statement evaluates, and the places that it changes."""
    match stmt:
        case When(cond, body):
            yield cond
            for inner in body:
                yield from _operands(inner, registers)
            return
        case Alloc(reg) | Free(reg) | Fresh(reg) | Drop(reg):
            if isinstance(registers[reg.reg].type, Stack):
                return
            yield from (d for d in registers[reg.reg].dims if d is not None)
        case Push(place) | Pop(place):
            yield place
            return
        case Effect(_, _, _, when) if not when & FORWARD:
            return
    yield from values(stmt)
    for place in writes(stmt):
        # A place is passed as it is; finding it takes the expressions in its indices.
        yield from children(place) if isinstance(stmt, Call) else (place,)


def _worked_on(node: Expr) -> Iterator[Expr]:
    """A node and its subexpressions, except arrays of which only lengths are used."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if isinstance(top, Apply) and top.fn in LENGTHS:
            stack.extend(c for a in top.args for c in children(a) if isinstance(a, Place))
        else:
            stack.extend(children(top))


class _Count:
    """Adds up the cost of one instruction."""

    def __init__(self, registers: Sequence[Register], sizes: Mapping[Expr, Size]) -> None:
        self.registers = registers
        self.sizes = sizes
        self.work: dict[Kind, int] = {}
        self.moved = self.checks = self.sent = self.overwritten = 0
        self._counted: set[Expr] = set()

    def statement(self, stmt: Stmt, inout: frozenset[int]) -> None:
        for node in _operands(stmt, self.registers):
            self._expression(node)
        match stmt:
            case Update(dst, op, _):
                self._add(FUNCTIONS[op].cost, _elem(dst), self._elements(dst))
                self.moved += 3 * self._elements(dst)
                self._overwrite(dst)
                self.checks += op in ("*", "/")
            case Exchange(a, b):
                self._add(MOVES, _elem(a), self._elements(a))
                self.moved += 4 * self._elements(a)
                self._overwrite(a, b)
            case Map(dsts, _, _):
                self.moved += sum(map(self._elements, dsts))
                self._overwrite(*dsts)
            case When(_, body):
                for inner in body:
                    self.statement(inner, inout)
            case Alloc(reg) | Free(reg) | Fresh(reg) | Drop(reg):
                self._life(stmt, reg)
            case Push(place, _) | Pop(place, _):
                self._add(MOVES, _elem(place), 1)
                self.moved += 2
                self._overwrite(place)
                self.checks += isinstance(stmt, Pop)
            case Branch():
                self._add(MOVES, BOOL, 1)
            case Land(cond, _):
                self._add(MOVES, BOOL, 1)
                # Where the condition is `true` nothing falls in: there is but one way here.
                merges = not (isinstance(cond, Const) and cond.value is True)
                self.checks += merges
                self.overwritten += merges
            case Call(_, args, _):
                self._add(MOVES, I64, 1)
                passed = [k for k, a in enumerate(args) if not isinstance(a, Place)]
                self.checks += sum(k in inout for k in passed)
                self._overwrite(*(args[k] for k in passed))
            case Effect(kind, _, args, when):
                self._add(MOVES, I64, 1)
                if when & FORWARD:
                    self.checks += kind == "assert"
                    if kind != "assert":
                        # That an assertion holds tells nothing to who sees the run go on.
                        self.sent += sum(_elem(a).bits * self._elements(a) for a in args)
                        self.overwritten += self.sent

    def _life(self, stmt: Alloc | Free | Fresh | Drop, reg: Place) -> None:
        """A register that is created or removed: its elements are moved, and checked if known."""
        t = self.registers[reg.reg].type
        n = self._elements(reg) if isinstance(t, Array) else 1
        self._add(MOVES, elem_of(t), n)
        self.moved += n
        if isinstance(stmt, (Free, Drop)):
            self.checks += isinstance(stmt, Free) or isinstance(t, Stack)
            if not isinstance(t, Stack):
                self.overwritten += elem_of(t).bits * n

    def _add(self, cls: str, t: Scalar, n: int) -> None:
        if n:
            kind = Kind(cls, t.name)
            self.work[kind] = self.work.get(kind, 0) + n

    def _overwrite(self, *nodes: Expr) -> None:
        self.overwritten += sum(_elem(n).bits * self._elements(n) for n in nodes)

    # ------------------------------------------------------------ expressions

    def _expression(self, node: Expr) -> None:
        """Count every function in an expression, unless an equal expression was counted."""
        if node in self._counted:
            return
        self._counted.add(node)
        inside: Iterable[Expr] = children(node)
        if isinstance(node, Apply):
            self._apply(node)
            if node.fn in LENGTHS:
                inside = [c for a in node.args for c in children(a) if isinstance(a, Place)]
        for child in inside:
            self._expression(child)

    def _apply(self, node: Apply) -> None:
        row, t = FUNCTIONS[node.fn], deciding(tuple(_elem(a) for a in node.args))
        if node.fn in LENGTHS:
            self._add(row.cost, I64, 1)
            return
        moved, work = operation(row, self._shape(node), [self._shape(a) for a in node.args])
        self.moved += moved
        for cls, n in work.items():
            self._add(cls, t, n)

    def _elements(self, node: Expr) -> int:
        return prod(self._shape(node))

    def _shape(self, node: Expr) -> tuple[int, ...]:
        return shape_of(node, self.sizes)


def shape_of(node: Expr, sizes: Mapping[Expr, Size]) -> tuple[int, ...]:
    """The shape of an expression's value, () for a number, given the sizes that it depends on."""
    if node.type is None or not rank_of(node.type):
        return ()
    if not isinstance(node, Apply):
        return cast("tuple[int, ...]", sizes[node])
    if node.fn == "scatter":
        n = node.args[2]
        return (n.value if isinstance(n, Const) else cast(int, sizes[n]),)
    shapes = [shape_of(a, sizes) for a in node.args]
    match node.fn:
        case "@" | "matvec" | "matmul":
            return (*shapes[0][:-1], *shapes[1][:-2], *shapes[1][1:][-1:])
        case "outer":
            return (*shapes[0], *shapes[1])
        case "transpose":
            return shapes[0][::-1]
        case "gather" | "sum_like" | "spread_like":
            return shapes[1]
        case _:
            return broadcast(shapes)


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes have together by NumPy's rule; they are known to go together."""
    given = list(shapes)
    rank = max(map(len, given))
    axes = zip(*((1,) * (rank - len(s)) + s for s in given), strict=True)
    return tuple(next((n for n in axis if n != 1), 1) for axis in axes)


def _elem(node: Expr) -> Scalar:
    return I64 if node.type is None else elem_of(node.type)
