"""Sums whose zeros may have either sign, since the sign has no effect: they begin at -0.

An adjoint begins at 0, and 0 + x is not x if x is -0.  But -0 + x is, so a sum that begins at -0
needs no first addition.  It differs from the other sum only if all terms are -0: then it is -0 too.
If the sum is only multiplied and divided, and the results are added to sums, nothing else differs.
A sum that began at 0 is never -0, and adding a zero of either sign to it gives the same; a sum that
began at -0 is itself one whose zero may have either sign.

When a run stops in the middle, the sums are stored with the right sign: 0 + -0 is 0.  The same
holds for ancillas that were computed from them, since these are computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from rvm.expr import Apply, Expr, Place, children
from rvm.image import Code
from rvm.ir.certain import certain
from rvm.ir.flow import Flow
from rvm.ir.typed import Unprintable, type_of
from rvm.ir.values import body_of
from rvm.isa import FUNCTIONS
from rvm.leaf import Function
from rvm.leaf.ops import OPS
from rvm.stmt import Alloc, Drop, Free, Fresh, Stmt, Update, reads, values, writes
from rvm.types import Scalar, elem_of, rank_of


class Zeros(NamedTuple):
    """The sums of a code that may begin at -0, and the ancillas that are made of them.

    `made` are these by the positions between their `alloc` and their `free`, in order, with the
    expressions of their values.
    """

    sums: frozenset[int]
    made: Mapping[int, Sequence[tuple[Place, Expr]]]


def zeros(code: Code, flow: Flow) -> Zeros:
    """The sums that may begin at -0 in a run from the beginning, which nobody watches."""
    found = _Uses(code, flow)
    if not found.sums:
        return Zeros(frozenset(), {})
    signed = found.signed()
    made: dict[int, list[tuple[Place, Expr]]] = {}
    for begin, end in sorted(found.spans.items()):
        match code.stmts(begin)[0]:
            case Alloc(place, value) if value is not None and found.reading[begin] - signed:
                for pc in range(begin + 1, end + 1):
                    made.setdefault(pc, []).append((place, value))
    return Zeros(frozenset(found.sums - signed), made)


class _Uses:
    """A code's uses of its local floats: of sums, and of ancillas.

    An ancilla is known by the position of its `alloc` less the length of the code, which is below
    0; of one register there may be several.
    """

    def __init__(self, code: Code, flow: Flow) -> None:
        self.code = code
        self.flow = flow
        self.stmts = [(*code.stmts(pc), *code.notes(pc)) for pc in range(len(code))]
        registers = enumerate(code.function.registers)
        floats = {k for k, r in registers if isinstance(r.type, Scalar) and r.type.is_float}
        floats -= set(range(code.function.n_args))
        written: dict[int, list[Stmt]] = {k: [] for k in floats}
        for stmts in self.stmts:
            for s in stmts:
                for reg in {p.reg for p in writes(s)} & floats:
                    written[reg].append(s)
        self.sums = {reg for reg, by in written.items() if by and all(map(_of_sum, by))}
        self.spans: dict[int, int] = {}
        """Where an ancilla is freed by where it is made, in the same straight piece."""
        self.live: list[dict[int, int]] = [{} for _ in self.stmts]
        """The ancillas that live at a position, by their registers."""
        known = certain(code)
        for reg, by in written.items():
            if all(isinstance(s, Alloc) or id(s) in known for s in by):
                self._enter(reg)
        self.reading: dict[int, set[int]] = {begin: set() for begin in self.spans}
        """The sums and ancillas that an ancilla is made of."""

    def _enter(self, reg: int) -> None:
        begun = -1
        for pc, stmts in enumerate(self.stmts):
            if pc in self.flow.leaders or pc in self.flow.calls:
                begun = -1
            match stmts:
                case (Alloc(Place(r)), *_) if r == reg:
                    begun = pc
                case (Free(Place(r)), *_) if r == reg and begun >= 0:
                    self.spans[begun] = pc
                    for at in range(begun + 1, pc + 1):
                        self.live[at][reg] = begun - len(self.code)

    def known(self, pc: int, node: Expr) -> set[int]:
        """The sums and ancillas that an expression reads."""
        return self.read(pc, node)[0]

    def read(self, pc: int, node: Expr) -> tuple[set[int], set[int]]:
        """Those that an expression reads, if more than the sign of a zero affects its value."""
        known: set[int] = set()
        told: set[int] = set()
        passing = _passing(node) if isinstance(node, Apply) else ()
        for k, sub in enumerate(children(node)):
            inner, beyond = self.read(pc, sub)
            known |= inner
            told |= beyond if k in passing else inner
        if isinstance(node, Place):
            at = node.reg if node.reg in self.sums else self.live[pc].get(node.reg)
            known |= set() if at is None else {at}
        return known, told

    def signed(self) -> set[int]:
        """The sums and ancillas of whose zeros a sign may be told."""
        found: set[int] = set()
        n = len(self.code)
        for pc, stmts in enumerate(self.stmts):
            for s in stmts:
                match s:
                    case Fresh() | Drop():
                        continue
                    case Free(Place(reg)) if self.live[pc].get(reg) is not None:
                        continue
                    case Update(Place(reg), _, value) if reg in self.sums:
                        found |= self.read(pc, value)[1]
                    case Alloc(_, value) if pc in self.spans and value is not None:
                        known, told = self.read(pc, value)
                        found |= told
                        self.reading[pc] = known - told
                    case _:
                        for place in (*reads(s), *writes(s), *values(s)):
                            found |= self.known(pc, place)
        todo = list(found)
        while todo:
            at = todo.pop()
            if at < 0:
                more = self.reading.get(at + n, set()) - found
                found |= more
                todo += more
        return found


def _of_sum(s: Stmt) -> bool:
    """Whether a statement makes a sum, adds to it, or drops it."""
    match s:
        case Update(Place(), op) if op in ("+", "-"):
            return True
    return isinstance(s, (Fresh, Drop))


def _passing(node: Apply) -> frozenset[int]:
    """The arguments that, if they are zeros, affect only the sign of a zero in a value."""
    row, types = FUNCTIONS.get(node.fn), [type_of(a) for a in node.args]
    if row is None or row.lazy or any(map(rank_of, types)):
        return frozenset()
    try:
        body = body_of(node.fn, tuple(elem_of(t) for t in types))
    except Unprintable:
        return frozenset()
    return frozenset() if body.guard else _through(body)


@cache
def _through(body: Function) -> frozenset[int]:
    """The arguments that reach a body's value through operations that preserve zeros."""
    passing = []
    for param in body.params:
        reached: set[int] = set()
        for node in body.ordered.nodes:
            at = {k for k, a in enumerate(node.args) if id(a) in reached}
            if node.op == "argument" and node.aux == param.aux:
                reached.add(id(node))
            elif at and (node.op not in OPS or max(at) >= OPS[node.op].zeros):
                break
            elif at:
                reached.add(id(node))
        else:
            passing.append(param.aux)
    return frozenset(passing)
