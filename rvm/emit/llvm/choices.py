"""Choices: an `if` whose arms are a few sums of scalars, printed as values to choose from.

A merge steps one index or the other, by chance, and a jump that goes one way or the other by chance
is what such a loop waits for.  So both arms are computed, LLVM chooses between their values, and
the come-from behind them, which must hold for those who came one way and not for the others, is
evaluated once and compared with the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from rvm.emit.llvm.edges import FALLS, JUMPS, Edge
from rvm.emit.llvm.reading import written
from rvm.emit.llvm.values import variable_types
from rvm.expr import Apply, Const, Expr, Place, walk
from rvm.image import Code
from rvm.stmt import Branch, Land, Stmt, Update
from rvm.types import Scalar

if TYPE_CHECKING:
    from rvm.emit.llvm.function import FunctionPrinter

CHANCE = "!unpredictable !2"
"""Selections that LLVM is to leave as they are, rather than make jumps of them."""
Onward = Callable[[int, bool], None]
"""Goes on at a leader, which may have been fallen into."""
SHORT = 3
"""An arm of more instructions is jumped over rather than chosen from."""


@dataclass(frozen=True, slots=True)
class Way:
    """One of the two ways: its instructions, and where the come-from is asked at its end.

    `ticks` are those from the branch on until it is asked.
    """

    arm: range
    asks: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A branch with two ways that come together at the come-from `end`.

    It must hold for those who `jump` there, which are those who take the branch if it leads there
    itself, and those who do not if another jump leads there behind their arm.
    """

    taken: Way
    falls: Way
    end: int
    jump: bool
    """Whether those who take the branch are those for whom the come-from must hold."""


def choices(code: Code, apart: Collection[int]) -> dict[int, Choice]:
    """The choices of a code by the positions of their branches; `apart` is not compiled."""
    found = {}
    for pc in range(len(code)):
        choice = _choice(code, pc)
        if choice is not None:
            inside = range(pc, choice.end + 1)
            if all(k not in code.traps and k not in apart for k in inside):
                found[pc] = choice
    return found


def _choice(code: Code, pc: int) -> Choice | None:
    first = code.instrs[pc]
    if first.op != "br" or first.aux < pc:
        return None
    last = first.aux - 1
    other = code.instrs[last]
    if last > pc and other.op == "br":
        # Two arms, between which stands the jump that ends the first.
        end = other.aux
        one, two = range(pc + 1, last), range(first.aux + 1, end)
        branch, landing = code.stmts(last)[0], code.stmts(first.aux)[0]
        assert isinstance(branch, Branch) and isinstance(landing, Land)
        if end < last or not is_true(branch.cond) or not is_true(landing.cond):
            return None
        falls, taken = Way(one, last, 1 + len(one)), Way(two, end, 1 + len(two))
    else:
        end, one, two = first.aux, range(pc + 1, first.aux), range(0)
        falls, taken = Way(one, end, 1 + len(one)), Way(two, pc, 0)
    landing = code.stmts(end)[0]
    branch = code.stmts(pc)[0]
    assert isinstance(branch, Branch) and isinstance(landing, Land)
    if isinstance(landing.cond, Const) or landing.cond == branch.cond:
        return None
    arms = (*one, *two)
    if not arms or len(one) > SHORT or len(two) > SHORT:
        return None
    if not all(_is_light(stmt) for k in arms for stmt in code.stmts(k)):
        return None
    return Choice(taken, falls, end, jump=not two and taken.asks == pc)


def is_true(cond: Expr) -> bool:
    """Whether a condition is the constant."""
    return isinstance(cond, Const) and cond.value is True


def _is_light(stmt: Stmt) -> bool:
    """Whether a statement is a sum or two of scalar registers, which cannot fail."""
    return (
        isinstance(stmt, Update)
        and stmt.op in ("+", "-", "^")
        and all(map(_is_plain, (stmt.dst, *walk(stmt.value))))
    )


def _is_plain(node: Expr) -> bool:
    match node:
        case Place(_, (), t):
            return isinstance(t, Scalar)
        case Apply(fn):
            return fn in ("+", "-", "neg")
    return isinstance(node, Const)


def print_choice(p: FunctionPrinter, pc: int, choice: Choice, done: int, onward: Onward) -> None:
    """Print a choice, and go on behind it; `done` instructions before it are not counted yet.

    Where the condition is known before all of it is evaluated there is nothing to choose.
    """
    early: dict[bool, str] = {}
    taken = p.decided(cast(Branch, p.code.stmts(pc)[0]).cond, early, {})
    ways = (choice.taken, choice.falls)
    changed = sorted({v for way in ways for v in _variables(p, way.arm)})
    before = [p.load(t, v) for v, t in changed]
    ends = []
    for way in ways:
        for (v, t), value in zip(changed, before, strict=True):
            p.store(t, value, v)
        _print_arm(p, way)
        ends.append([p.load(t, v) for v, t in changed])
    for (v, t), yes, no in zip(changed, *ends, strict=True):
        p.store(t, p.op(f"select i1 {taken}, {t} {yes}, {t} {no}, {CHANCE}"), v)
    ticks = [str(done + way.ticks) for way in ways]
    p.count(ticks[0] if ticks[0] == ticks[1] else p.choose(taken, "i64", *ticks))
    edges = _edges(p.code, pc, choice, done)
    counts = ("", "")
    if p.kind.counts:
        times = p.op(f"zext i1 {taken} to i64")
        counts = (times, p.op(f"sub i64 1, {times}"))
    for (first, _), n in zip(edges, counts, strict=True):
        if first is not None:
            p.along(first, n)

    def joined() -> None:
        p.count(1)
        for (_, last), n in zip(edges, counts, strict=True):
            p.along(last, n)

    _come_together(p, choice, taken, joined, onward)
    for known, label in early.items():
        p.label(label)
        way = choice.taken if known else choice.falls
        first, last = edges[0 if known else 1]
        _print_arm(p, way)
        p.count(done + way.ticks)
        if first is not None:
            p.along(first)
        if p.checks:
            p.leaving(p.way_out(way.asks, 0))
            holds = cast(str, p.value(cast(Land, p.code.stmts(choice.end)[0]).cond))
            p.trouble(p.op(f"xor i1 {holds}, {'true' if known == choice.jump else 'false'}"))
        p.count(1)
        p.along(last)
        onward(choice.end + 1, False)


def _print_arm(p: FunctionPrinter, way: Way) -> None:
    # There is no way out of the middle of an arm, as the other one may have been printed before.
    p.leaving(None)
    for k in way.arm:
        p.instruction(p.code.stmts(k), p.code.clashes(k))


def _edges(
    code: Code, pc: int, choice: Choice, done: int
) -> tuple[tuple[Edge | None, Edge], tuple[Edge | None, Edge]]:
    """The edges of those who take the branch and of the others: into their arms, and out of them.

    Who jumps over the only arm has no edge into one.
    """
    start, end, landing = pc - done, choice.end + 1, code.instrs[pc].aux + 1
    into = Edge(start, pc, FALLS, pc + 1)
    if choice.taken.asks == pc:
        out = Edge(pc + 1, end, FALLS, end)
        return (None, Edge(start, pc, JUMPS, end)), (into, out)
    taken = Edge(start, pc, JUMPS, landing), Edge(landing, end, FALLS, end)
    return taken, (into, Edge(pc + 1, choice.falls.asks, JUMPS, end))


def _come_together(
    p: FunctionPrinter,
    choice: Choice,
    taken: str,
    joined: Callable[[], None],
    onward: Onward,
) -> None:
    """The come-from behind a choice; `joined` counts it."""
    if not p.checks:
        joined()
        onward(choice.end + 1, False)
        return
    p.remind(choice.end)
    jumped = taken if choice.jump else p.op(f"xor i1 {taken}, true")
    out = _out(p, taken, choice)
    p.leaving(out)
    early: dict[bool, str] = {}
    known: dict[Expr, bool] = {}
    holds = p.decided(cast(Land, p.code.stmts(choice.end)[0]).cond, early, known)
    p.trouble(p.op(f"xor i1 {holds}, {jumped}"))
    joined()
    p.beyond(choice.end + 1, onward, known)
    for holding, label in early.items():
        p.label(label)
        p.leaving(out)
        p.trouble(p.op(f"xor i1 {'true' if holding else 'false'}, {jumped}"))
        joined()
        onward(choice.end + 1, False)


def _variables(p: FunctionPrinter, arm: range) -> set[tuple[str, str]]:
    """The variables, with their types, that the instructions of an arm change."""
    found = set()
    for reg in {reg for k in arm for reg in written(p.code.stmts(k))}:
        t = cast(Scalar, p.function.registers[reg].type)
        found |= set(zip(p.scalars[reg], variable_types(t), strict=True))
    return found


def _out(p: FunctionPrinter, taken: str, choice: Choice) -> Callable[[], str]:
    """The way out where the come-from does not agree with the way that led to it."""
    ways = [p.way_out(way.asks, 0) for way in (choice.taken, choice.falls)]
    made: list[str] = []

    def label() -> str:
        if not made:
            made.append(p.fresh("out"))
            there, here = (way() for way in ways)
            p.aside(f"{made[0]}:", f"  br i1 {taken}, label %{there}, label %{here}")
        return made[0]

    return label
