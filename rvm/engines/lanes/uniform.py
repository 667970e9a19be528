"""Which registers differ between lanes: found before a run, for each way a function is called.

A register *varies* if it is given by lane, is assigned a value that varies, or is written where
only some lanes may be active.  All others are *uniform*: they hold one value for all lanes.

Lanes diverge at a branch whose condition varies, and at every branch where they have already
diverged.  They are together again after the farther end of such a jump: in the range between a
branch and its come-from, only some lanes may be active.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import cast

from rvm.expr import Expr, Place, index_reads, reads
from rvm.image import Code
from rvm.stmt import Branch, Call, Drop, Free, Map, Stmt, Update, When, values, writes

Key = tuple[Code, frozenset[int]]
"""A function in one direction, and the parameters that vary when it is called."""


def varies(node: Expr, varying: Collection[int]) -> bool:
    """Whether an expression may have different values in different lanes."""
    return any(p.reg in varying for p in reads(node))


def place_varies(place: Place, varying: Collection[int]) -> bool:
    """Whether the cells that a place names differ by lane."""
    return any(p.reg in varying for p in index_reads(place))


def nodes_of(code: Code, stmts: Sequence[Stmt]) -> Iterator[Expr]:
    """The expressions that statements evaluate and change, and lengths of arrays made or freed."""
    for stmt in stmts:
        yield from values(stmt)
        if isinstance(stmt, (Free, Drop)):
            yield from stmt.held or ()
        for place in writes(stmt):
            yield place
            yield from (d for d in code.function.registers[place.reg].dims if d is not None)


class Uniformity:
    """The varying registers of every function that is reached, as a least fixed point."""

    parting = True
    """Whether lanes may part; if not, all of them execute every instruction."""

    def __init__(self) -> None:
        self._known: dict[Key, frozenset[int]] = {}

    def varying(self, code: Code, params: frozenset[int]) -> frozenset[int]:
        """The registers of `code` that vary where the parameters `params` do."""
        key = code, params
        if key not in self._known:
            self._known[key] = params
            self._settle()
        return self._known[key]

    def _settle(self) -> None:
        changed = True
        while changed:
            changed, size = False, len(self._known)
            for key in tuple(self._known):
                found = self._once(key[0], set(self._known[key]))
                if found != self._known[key]:
                    self._known[key] = found
                    changed = True
            changed = changed or len(self._known) > size

    def _once(self, code: Code, varying: set[int]) -> frozenset[int]:
        """The registers that vary, given the facts about called functions."""
        while True:
            before = len(varying)
            parted = parted_ranges(code, varying) if self.parting else frozenset()
            for pc in range(len(code)):
                for stmt in (*code.stmts(pc), *code.notes(pc)):
                    self._spread(code, stmt, varying, pc in parted)
            for held in code.sizes.values():
                # The lanes are kept together.
                if held.size.reg in varying or held.updates.reg in varying:
                    varying |= {held.size.reg, held.updates.reg}
            if len(varying) == before:
                return frozenset(varying)

    def _spread(self, code: Code, stmt: Stmt, varying: set[int], some: bool) -> None:
        """Add the registers that a statement makes vary; `some`: not all lanes may execute it."""
        match stmt:
            case When(cond, body):
                for inner in body:
                    self._spread(code, inner, varying, some or varies(cond, varying))
                return
            case Call():
                self._call(code, stmt, varying, some)
                return
            case Map(dsts, computed):
                sources: list[Sequence[Expr]] = [(v,) for v in computed]
            case Update(dst):
                dsts, sources = (dst,), [tuple(values(stmt))]
            case _:
                dsts = tuple(writes(stmt))
                sources = [tuple(nodes_of(code, (stmt,)))] * len(dsts)
        for dst, nodes in zip(dsts, sources, strict=True):
            if some or place_varies(dst, varying) or any(varies(n, varying) for n in nodes):
                varying.add(dst.reg)

    def _call(self, code: Code, call: Call, varying: set[int], some: bool) -> None:
        changed = code.image.inout[call.callee]
        if some:
            for k in changed:
                arg = call.args[k]
                if isinstance(arg, Place):
                    varying.add(arg.reg)
        key = called(code, call, varying)
        for k in self._known.setdefault(key, key[1]):
            if k in changed and isinstance(call.args[k], Place):
                varying.add(cast(Place, call.args[k]).reg)


def called(code: Code, call: Call, varying: Collection[int]) -> Key:
    """The function that a call runs, with the parameters that vary there."""
    callee = code.image.code(call.callee, call.undo)
    return callee, frozenset(k for k, a in enumerate(call.args) if _argument(a, varying))


def _argument(arg: Expr, varying: Collection[int]) -> bool:
    if isinstance(arg, Place):
        return arg.reg in varying or place_varies(arg, varying)
    return varies(arg, varying)


def parted_ranges(code: Code, varying: Collection[int]) -> frozenset[int]:
    """The instructions that some lanes may execute without the others."""
    parted: set[int] = set()
    branches = [
        (pc, stmt) for pc in range(len(code)) if isinstance(stmt := code.stmts(pc)[0], Branch)
    ]
    changed = True
    while changed:
        changed = False
        for pc, stmt in branches:
            lo, hi = sorted((pc, stmt.partner))
            inside = range(lo, hi + 1)
            if (pc in parted or varies(stmt.cond, varying)) and not parted.issuperset(inside):
                parted.update(inside)
                changed = True
    return frozenset(parted)
