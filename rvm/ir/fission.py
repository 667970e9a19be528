"""Loop fission: which innermost loops can be split into loops that LLVM vectorises.

If an iteration may be trouble, or frees ancillas that may hold residues, its loop has exits and
rare branches.  If no iteration depends on another, the conditions of many iterations are computed
first, by a loop that changes nothing; where none holds, a second loop makes the changes.

In adjoints of stencils an iteration adds to an element and its neighbours, which others add to.

    for i: b[i - 1] += x; b[i] += y; b[i + 1] += z

These sums are the only dependence.  So each element can gather what it receives from several
iterations, in their order: no bit differs, and elements do not depend on each other.

Source: J. Hückelheim and others, "Automatic differentiation for adjoint stencil loops" (2019).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from rvm.expr import Expr, Place, index_reads
from rvm.image import Code
from rvm.ir.jam import Axis, Rounds, axes_of, factor_in
from rvm.ir.loop_facts import touched
from rvm.stmt import Alloc, Drop, Exchange, Free, Fresh, Map, Stmt, Update, writes
from rvm.types import Array

MOST = 32
"""Instructions of an iteration."""
FURTHEST = 8
"""The largest distance of the neighbours that an iteration adds to."""
_ABLE = Alloc | Fresh | Exchange | Update | Map | Free | Drop
READ, SUM, WRITE = range(3)
Axes = tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Fission:
    """A loop that can be split, and the instructions of an iteration.

    For each array, or part of one, whose elements gather sums, `gathers` has the instructions that
    add to it, each with the distance of its element from that at the loop's variable.
    """

    rounds: Rounds
    body: tuple[int, ...]
    gathers: tuple[Mapping[int, int], ...]


def fission(
    code: Code,
    rounds: Rounds,
    resolved: Callable[[Expr], Expr | None],
    live: Collection[int],
) -> Fission | None:
    """The fission of an innermost loop, if it is possible.

    `resolved` gives an index over loop variables and invariants; `live` are the registers that live
    when an iteration begins.
    """
    head, back, variable = rounds.cycle.head, rounds.cycle.back, rounds.variable
    step = head + 1 if rounds.early else back - 1
    body = tuple(pc for pc in range(head + 1, back) if pc != step)
    if abs(rounds.step) != 1 or len(body) > MOST or any(head <= pc <= back for pc in code.traps):
        return None
    scalars: set[int] = set()
    indices: set[int] = set()
    reached: dict[int, dict[Axes, dict[int, int]]] = {}
    written: dict[tuple[int, Axes], Place] = {}
    for pc in body:
        for s in (*code.stmts(pc), *code.notes(pc)):
            if not isinstance(s, _ABLE):
                return None
            for place, how in _accesses(s):
                if not isinstance(code.function.registers[place.reg].type, Array):
                    scalars |= {place.reg} if how else set()
                    continue
                indices |= {p.reg for p in index_reads(place)}
                axes = axes_of(place, resolved)
                # One element must be found by one expression, by which its value is known.
                if axes is None or written.setdefault((place.reg, axes), place) != place:
                    return None
                at = reached.setdefault(place.reg, {}).setdefault(axes, {})
                at[pc] = max(how, at.get(pc, how))
    if not scalars.isdisjoint({variable, *live, *indices}):
        return None
    gathers: list[dict[int, int]] = []
    for found in reached.values():
        sums = _gathers(found, variable)
        if sums is None:
            return None
        gathers += sums
    return Fission(rounds, body, tuple(gathers))


def _accesses(s: Stmt) -> Iterator[tuple[Place, int]]:
    """The places that a statement reaches, and how."""
    changed = list(writes(s))
    sums = isinstance(s, Update) and s.op in ("+", "-")
    for k, place in enumerate(touched((s,))):
        yield place, READ if k >= len(changed) else SUM if sums else WRITE


def _gathers(reached: Mapping[Axes, Mapping[int, int]], p: int) -> list[dict[int, int]] | None:
    """The sums that an array's elements gather; None if iterations depend on each other."""
    rows: dict[Axes, list[Axes]] = {}
    for axes in reached:
        rows.setdefault(_row(axes, p), []).append(axes)
    out = []
    for axes, by in reached.items():
        if any(by.values()):
            if not any(factor_in(a, p) for a in axes):
                return None
            if not all(row == _row(axes, p) or _is_apart(row, axes, p) for row in rows):
                return None
    for row in rows.values():
        if len(row) > 1 and any(how for axes in row for how in reached[axes].values()):
            every = [(axes, pc, how) for axes in row for pc, how in reached[axes].items()]
            at = {pc: _distance(axes, p) for axes, pc, _ in every}
            distances = [d for d in at.values() if d is not None]
            if any(how != SUM for *_, how in every) or len(distances) < len(every):
                return None
            if max(distances) - min(distances) > FURTHEST:
                return None
            out.append({pc: d for pc, d in at.items() if d is not None})
    return out


def _row(axes: Axes, p: int) -> Axes:
    """The elements that iterations reach from some element on."""
    return tuple((0, atoms) if factor_in((0, atoms), p) else (k, atoms) for k, atoms in axes)


def _is_apart(one: Axes, two: Axes, p: int) -> bool:
    """Whether no iterations reach a common element: an index differs, by the same in all."""
    pairs = zip(one, two, strict=True)
    return any(a[1] == b[1] and a[0] != b[0] and not factor_in(a, p) for a, b in pairs)


def _distance(axes: Axes, p: int) -> int | None:
    """The distance of an element from that at the variable, if only one index depends on it."""
    (at, *others) = [axis for axis in axes if factor_in(axis, p)]
    return None if others or factor_in(at, p) != 1 else at[0]
