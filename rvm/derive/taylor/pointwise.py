"""Local derivatives of formulas that are computed element by element, as generated source.

An expression is taken apart into single functions of the table, common parts once.  Going back over
these, the first and second derivatives by the operands are written down in terms of the
functions' own: what an instruction is to a program, a function is to the expression.  So the work
grows with the length of an expression, not with the square or the cube of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rvm.expr import Apply, Const, Expr, Place
from rvm.isa import FUNCTIONS, apply, implementation, typed
from rvm.isa.derivatives import adjoint_type, gains
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.simplify import simplify
from rvm.numbers import NAMES, fill
from rvm.transform.adjoint import carries, contributions
from rvm.types import Scalar, elem_of, rank_of

WHOLE = ("sum", "prod", "amin", "amax", "last_min", "first_max")
"""Functions with rules like those of single numbers, that look at a whole array."""


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression over operands, ready to be differentiated where it is computed.

    `derive` takes the operands' values and gives the first derivatives by those in `by`, and the
    second by the pairs of operands in `pairs`, half of them where the two are one operand.
    """

    operands: tuple[Expr, ...]
    by: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    derive: Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]


def formula(node: Expr) -> Formula | None:
    """A typed expression's formula; None if it is not computed element by element on reals."""
    operands: dict[Expr, int] = {}
    lines = _taken_apart(node, operands)
    if lines is None:
        return None
    many = {k for e, k in operands.items() if e.type is not None and rank_of(e.type)}
    return _Writer(tuple(operands), many).formula(lines)


def _taken_apart(node: Expr, operands: dict[Expr, int]) -> Expr | None:
    """The expression over scalars: operand k is the place k; None where that does not do."""
    assert node.type is not None
    t = elem_of(node.type)
    if isinstance(node, Const):
        return node
    if isinstance(node, Place) or not carries(node):
        if t.is_complex:
            return None
        return Place(operands.setdefault(node, len(operands)), (), t)
    if not isinstance(node, Apply) or t.is_complex or not is_pointwise(node):
        return None
    args = [_taken_apart(a, operands) for a in node.args]
    done = [a for a in args if a is not None]
    return Apply(node.fn, tuple(done), t) if len(done) == len(args) else None


def is_pointwise(node: Apply) -> bool:
    """Whether a function is computed element by element on real numbers."""
    if node.fn in WHOLE or any(a.type is None or elem_of(a.type).is_complex for a in node.args):
        return False
    row = FUNCTIONS[node.fn]
    return row.partials is not None or conversion_target(node.fn) is not None or row.steps


# ---------------------------------------------------------------- single functions

First = tuple[Expr | None, ...]
Second = tuple[tuple[int, int, Expr], ...]


@cache
def _derivatives(fn: str, elems: tuple[Scalar, ...]) -> tuple[First, Second]:
    """Derivatives of a function by its arguments, over the places 0, 1, …; by j <= k for second."""
    args = tuple(Place(k, (), t) for k, t in enumerate(elems))
    found = apply(fn, *args)
    if not carries(found):
        return (None,) * len(args), ()
    first: list[Expr | None] = []
    second: list[tuple[int, int, Expr]] = []
    for j, gain in enumerate(gains(fn, args, _one(found))):
        kept = None if gain is None else _unless_zero(simplify(gain))
        first.append(kept)
        if kept is None:
            continue
        parts: dict[int, Expr] = {}
        for read, part in contributions(kept, _one(kept)):
            k = read.reg
            parts[k] = apply("+", parts[k], part) if k in parts else part
        for k, part in sorted(parts.items()):
            bend = _unless_zero(simplify(part))
            if k >= j and bend is not None:
                second.append((j, k, bend))
    return tuple(first), tuple(second)


def _one(node: Expr) -> Expr:
    assert node.type is not None
    t = adjoint_type(elem_of(node.type))
    assert t is not None
    return typed(Const(1), t)


def _unless_zero(node: Expr) -> Expr | None:
    return None if isinstance(node, Const) and node.value == 0 else node


# ---------------------------------------------------------------- writing

Name = str
ONE = "1.0"


class _Writer:
    """Writes the function that computes a formula's derivatives, a line for each step."""

    def __init__(self, operands: tuple[Expr, ...], many: set[int]) -> None:
        self.operands = operands
        self.lines: list[str] = []
        self.names: dict[str, Any] = dict(NAMES)
        self.many = {f"x{k}" for k in many}
        """Names of arrays."""
        self._known: dict[tuple[Any, ...], Name] = {}
        self._steps: list[tuple[Name, str, tuple[Scalar, ...], tuple[Name, ...]]] = []
        """Functions of what depends on an operand: what is gone back over."""

    def formula(self, node: Expr) -> Formula:
        inputs = [f"x{k}" for k in range(len(self.operands))]
        live = {f"x{k}" for k, e in enumerate(self.operands) if carries(e)}
        result = self._value(node, dict(enumerate(inputs)), live)
        first: dict[Name, Name] = {result: ONE} if result in live else {}
        second: dict[tuple[Name, Name], Name] = {}
        for name, fn, elems, args in reversed(self._steps):
            self._back(name, fn, elems, args, live, first, second)
        by = tuple(k for k, x in enumerate(inputs) if x in first and x in live)
        pairs = [(a, b) for a, b in second if a in live and b in live]
        halves = [f"0.5 * {second[p]}" if p[0] == p[1] else second[p] for p in pairs]
        source = "\n".join(
            [
                f"def derive({', '.join(inputs)}):",
                *(f"    {line}" for line in self.lines),
                f"    return {_tuple(first[inputs[k]] for k in by)}, {_tuple(halves)}",
            ]
        )
        # Functions enter the names when they are first asked for: some while this was written.
        self.names = {**NAMES, **self.names}
        exec(compile(source, "<derivatives>", "exec"), self.names)
        index = {x: k for k, x in enumerate(inputs)}
        return Formula(
            self.operands,
            by,
            tuple((index[a], index[b]) for a, b in pairs),
            self.names["derive"],
        )

    # -------------------------------------------------------------- values

    def _value(self, node: Expr, names: dict[int, Name], live: set[Name] | None = None) -> Name:
        """The name that holds the value of an expression over `names` of its places."""
        if isinstance(node, Place):
            return names[node.reg]
        if isinstance(node, Const):
            return self._constant(node.value)
        assert isinstance(node, Apply)
        args = tuple(self._value(a, names, live) for a in node.args)
        elems = tuple(elem_of(a.type) for a in node.args if a.type is not None)
        key = (node.fn, elems, args)
        if key not in self._known:
            name = self._known[key] = self._line(self._call(node.fn, elems, args), args)
            if live is not None and any(a in live for a in args) and carries(node):
                live.add(name)
                self._steps.append((name, node.fn, elems, args))
        return self._known[key]

    def _constant(self, value: Any) -> Name:
        key = ("constant", type(value), repr(value))
        if key not in self._known:
            name = self._known[key] = f"k{len(self.names)}"
            self.names[name] = value
        return self._known[key]

    def _call(self, fn: str, elems: tuple[Scalar, ...], args: Sequence[Name]) -> str:
        code = implementation(fn, elems)
        if any(a in self.many for a in args):
            return fill(code.numpy, *args)
        if code.value is None:
            return fill(code.python, *args, fresh=f"t{len(self.lines)}_")
        name = f"f{len(self.names)}"
        self.names[name] = code.value
        return f"{name}({', '.join(args)})"

    def _line(self, text: str, args: Sequence[Name]) -> Name:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if any(a in self.many for a in args):
            self.many.add(name)
        return name

    # -------------------------------------------------------------- derivatives

    def _back(
        self,
        name: Name,
        fn: str,
        elems: tuple[Scalar, ...],
        args: tuple[Name, ...],
        live: set[Name],
        first: dict[Name, Name],
        second: dict[tuple[Name, Name], Name],
    ) -> None:
        """One function undone: its arguments have its derivatives in its place."""
        places = dict(enumerate(args))
        partials, bends = _derivatives(fn, elems)
        local: dict[Name, Name] = {}
        for arg, p in zip(args, partials, strict=True):
            if p is not None and arg in live:
                self._add(local, arg, self._partial(p, places))
        seed = first.pop(name, None)
        around = {pair: second.pop(pair) for pair in list(second) if name in pair}
        for (a, b), held in around.items():
            if a == b:
                targets = list(local)
                for i, u in enumerate(targets):
                    for v in targets[i:]:
                        part = self._product(self._product(local[u], local[v]), held)
                        self._add(second, _pair(u, v), part)
                continue
            other = b if a == name else a
            for u, weight in local.items():
                part = self._product(weight, held)
                if u == other:
                    part = self._line(f"2.0 * {part}", (part,))
                self._add(second, _pair(u, other), part)
        if seed is None:
            return
        for j, k, bend in bends:
            u, v = args[j], args[k]
            if u in live and v in live:
                part = self._product(seed, self._partial(bend, places))
                if u == v and j != k:
                    part = self._line(f"2.0 * {part}", (part,))
                self._add(second, _pair(u, v), part)
        for u, weight in local.items():
            self._add(first, u, self._product(seed, weight))

    def _partial(self, node: Expr, places: dict[int, Name]) -> Name:
        if isinstance(node, Const) and node.value == 1:
            return ONE
        return self._value(node, places)

    def _product(self, a: Name, b: Name) -> Name:
        if a == ONE or b == ONE:
            return b if a == ONE else a
        return self._line(f"{a} * {b}", (a, b))

    def _add(self, table: dict[Any, Name], key: Any, part: Name) -> None:
        table[key] = (
            self._line(f"{table[key]} + {part}", (table[key], part)) if key in table else part
        )


def _pair(a: Name, b: Name) -> tuple[Name, Name]:
    return (a, b) if a <= b else (b, a)


def _tuple(parts: Any) -> str:
    items = list(parts)
    return f"({', '.join(items)}{',' * (len(items) == 1)})"
