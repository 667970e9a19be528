"""Bijections of a place as destinations: `-x`, `x + c`, `conj(z)`.

An instruction that changes `-x` is `neg x`, the instruction on x, `neg x`: the place is
transformed, changed, and transformed back.  The table determines which functions can be used: those
that some opcode applies in place, so that its inverse undoes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from rvm.expr import Apply, Const, Expr, Place, is_count, reads
from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.rows import OpRow
from rvm.isa.rules import CLASSES
from rvm.program import Instr
from rvm.stmt import Map, Update
from rvm.types import Scalar, elem_of
from rvm.verify.alias import overlap


class Step(NamedTuple):
    """An opcode that is applied in place, and its other operands."""

    op: str
    values: tuple[Expr, ...]
    inverse: str
    """The opcode that undoes it."""

    @property
    def undone(self) -> Step:
        """The step that takes it back."""
        return Step(self.inverse, self.values, self.op)


class Bijection(NamedTuple):
    """A place, and the functions applied to it, the innermost first."""

    place: Place
    steps: tuple[Step, ...]

    def reads(self, place: Place) -> bool:
        """Whether a step's value is known to depend on a place."""
        found = (p for step in self.steps for v in step.values for p in reads(v))
        return any(overlap(p, place) == "always" for p in found)


@cache
def in_place() -> dict[str, str]:
    """The opcodes by the functions that they apply to their first operand."""
    out: dict[str, str] = {}
    for name, row in OPCODES.items():
        fn = _function(row)
        if fn:
            out.setdefault(fn, name)
    return out


def _function(row: OpRow) -> str:
    modes = tuple(o.mode for o in row.operands)
    if modes not in (("mut",), ("mut", "use")) or len(row.body) != 1:
        return ""
    match row.body[0]:
        case Update(_, op, value) if len(modes) == 2 and _is_formal(value, 1):
            return op
        case Map((_,), (Apply(fn, args),)) if len(args) == len(modes):
            return fn if all(_is_formal(a, k) for k, a in enumerate(args)) else ""
    return ""


def _is_formal(node: Expr, index: int) -> bool:
    return getattr(node, "index", None) == index


def bijection(node: Expr, may_change: Callable[[Place], bool]) -> Bijection | None:
    """The bijection that an expression is, of its first place that may change;

    None if there is none.
    """
    if isinstance(node, Place):
        return None if is_count(node) or not may_change(node) else Bijection(node, ())
    if not isinstance(node, Apply) or not 1 <= len(node.args) <= 2:
        return None
    first, *rest = node.args
    inner = bijection(first, may_change)
    fns: tuple[str, ...] = (node.fn,)
    if inner is None and rest:
        inner, rest = bijection(rest[0], may_change), [first]
        fns = FUNCTIONS[node.fn].in_place
    if inner is None or not fns or any(fn not in in_place() for fn in fns):
        return None
    ops = [in_place()[fn] for fn in fns]
    t = inner.place.type
    if t is None:
        return None
    inverses = [OPCODES[op].inverse_on(elem_of(t)) for op in ops]
    by = rest[0].value if rest and isinstance(rest[0], Const) else 0
    by_odd = isinstance(by, int) and by % 2 == 1
    if not by_odd and any(OPCODES[op].inverse != i for op, i in zip(ops, inverses, strict=True)):
        return None  # of whole numbers the products by odd ones are bijections
    values = [*((),) * (len(ops) - 1), tuple(rest)]
    return Bijection(inner.place, (*inner.steps, *map(Step, ops, values, inverses)))


def obstacle(node: Expr, may_change: Callable[[Place], bool]) -> tuple[Expr, str]:
    """The part of an expression that is not a bijection of a place, and the reason."""
    if not isinstance(node, Apply):
        return node, "it is a value, not a place that can be changed"
    first, *rest = node.args
    within = [a for a in node.args if bijection(a, may_change) is not None]
    if not within:
        inner = [a for a in node.args if any(may_change(p) for p in reads(a))]
        return obstacle(inner[0], may_change) if inner else (node, "there is no place in it")
    shown = FUNCTIONS[node.fn].symbol or node.fn
    if len(node.args) > 2 or node.fn not in in_place():
        return node, f"no instruction applies `{shown}` in place"
    if within[0] is not first and not FUNCTIONS[node.fn].in_place:
        return node, f"of `{shown}` only the left side may be the place that changes"
    by = rest[0] if within[0] is first else first
    if isinstance(by, Const):
        return node, f"{by.value} is even, so that different whole numbers have one product"
    return node, "of whole numbers only products by odd literals and constants are bijections"


def offers(t: Scalar) -> str:
    """The bijections of a number of the type, as they are written."""
    out, odd = [], ""
    for fn, op in in_place().items():
        row, symbol = OPCODES[op], FUNCTIONS[fn].symbol
        if not CLASSES[row.types](t):
            continue
        if len(row.operands) == 1:
            out.append(f"`{symbol}x`" if symbol else f"`{fn}(x)`")
        elif symbol:
            by_odd = row.inverse_on(t) != row.inverse
            form = f"`x {symbol} c`" + " for odd c" * by_odd
            odd, out = (form, out) if by_odd else (odd, [*out, form])
            if len(FUNCTIONS[fn].in_place) > 1:
                out.append(f"`c {symbol} x`")
    return ", ".join([*out, odd] if odd else out)


def passed(node: Expr, may_change: Callable[[Place], bool]) -> Bijection | None:
    """The bijection that an argument is, if the called function changes it;

    None for a value that the function must return unchanged, such as `x * x`.
    """
    view = bijection(node, may_change)
    return None if view is None or view.reads(view.place) else view


def passing(code: Sequence[Instr], offered: Mapping[int, Place]) -> Iterator[Instr]:
    """Code with places instead of bijections of them, which are given by their identity."""
    for instr in code:
        yield replace(instr, args=tuple([offered.get(id(arg), arg) for arg in instr.args]))
