"""Decisions that a run back may make otherwise than the run forwards: those on rounded numbers.

Numbers that an addition has rounded come back with other bits.  Where a comparison, a jump of a
function such as `floor`, or an index depends on them, the run back may add adjoints for another
branch or element; its values tell nothing of that, if they are equal in both.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from itertools import chain

from rvm.expr import LENGTHS, Apply, Expr, Place, places, walk
from rvm.expr import reads as expr_reads
from rvm.host.once import once
from rvm.image import image_of
from rvm.isa import ENDS, FUNCTIONS, MAKES
from rvm.isa.derivatives import gains, pole_of
from rvm.isa.functions.formulas import elem
from rvm.isa.typing import typed
from rvm.program import Function, Program
from rvm.stmt import Alloc, Call, Effect, Free, Update, reads, values, writes
from rvm.transform.duals import bar_type
from rvm.transform.programs import in_values
from rvm.transform.retraced import Retraced, Step
from rvm.types import Array, Scalar, elem_of
from rvm.verify.conflicts import CALLS


def decides(program: Program, name: str, undo: bool = False) -> bool:
    """Whether a function, or one that it calls, decides by numbers that come back rounded.

    With `undo` it is the inverse that runs first.
    """
    found: tuple[bool] = once(
        program.cache, (decides, name, undo), tuple, lambda: (_find(program, name, undo),)
    )
    return found[0]


def _find(program: Program, name: str, undo: bool) -> bool:
    image, derived = image_of(program), in_values(program)
    if any(image.drops(n) and n not in derived for n in image.reachable(name)):
        return True  # The run back has zeros for what was dropped.
    ways = _ways(program, name, undo)
    functions = [_Function(program, program.function(n), ways[n]) for n in ways]
    if not any(f.decisions for f in functions):
        return False
    rounded = {f.name: f.rounded() for f in functions}
    while any(f.spreads(rounded) for f in functions):
        pass
    return any(not rounded[f.name].isdisjoint(regs) for f in functions for regs in f.decisions)


def _ways(program: Program, name: str, undo: bool) -> dict[str, set[bool]]:
    """For a function and those that it may call whether they are run, or undone, at first."""
    found: dict[str, set[bool]] = {}
    todo = [(name, undo)]
    while todo:
        called, way = todo.pop()
        known = found.setdefault(called, set())
        if way not in known:
            known.add(way)
            code = program.function(called).code
            todo += ((i.symbol, way ^ (i.op == "uncall")) for i in code if i.op in CALLS)
    return found


class _Function:
    """A function, and what in it is repeated to the bit in the run back."""

    def __init__(self, program: Program, f: Function, ways: set[bool]) -> None:
        self.name = f.name
        self.ways = ways
        self.code = image_of(program).code(f.name, False)
        self.steps = [Step(f, instr, image_of(program).inout) for instr in f.code]
        self.retraced = Retraced(self.steps)
        self.decisions = [
            regs for pc, step in enumerate(self.steps) for regs in self._decided(pc, step)
        ]

    @cached_property
    def repeated(self) -> Sequence[tuple[Container[int], frozenset[int], frozenset[int]]]:
        """For code that is its own inverse: where values are repeated, which, and of which others.

        That is between its halves, and in the half that is undone first: from the same start the
        run back computes there what the run forwards did in the other half.
        """
        ends = [pc for pc, step in enumerate(self.steps) if step.instr.op == "free"]
        found: list[tuple[Container[int], frozenset[int], frozenset[int]]] = []
        for kept in self.retraced.repeated(ends):
            half = len(kept) // 2
            steps = [self.steps[pc] for pc in kept]
            changed = frozenset().union(*(step.changed for step in steps))
            read = frozenset().union(*(step.read for step in steps))
            live: set[int] = set()
            for step in steps[:half]:
                if step.instr.op in MAKES:
                    live |= step.changed
                elif step.instr.op in ENDS:
                    live -= step.changed
            found.append((range(kept[half - 1] + 1, kept[half]), frozenset(live), read - changed))
            if len(self.ways) == 1:
                first = kept[:half] if True in self.ways else kept[half:]
                found.append((frozenset(first), changed, read - changed))
        return found

    def sources(self, pc: int, regs: set[int]) -> set[int]:
        """The registers by which the bits of some are known, at a position of the run back."""
        for where, changed, read in self.repeated:
            if pc in where and not regs.isdisjoint(changed):
                regs = (regs - changed) | read
        return regs

    def _decided(self, pc: int, step: Step) -> Iterator[set[int]]:
        """The registers of numbers that round, on which each decision depends.

        An assertion is none: one that fails in one direction only ends that run.  The condition of
        a branch is an assertion in the run back, and that of a landing is one in the run forwards.
        """
        asserted = {"cf" if way else "br" for way in self.ways}
        if all(isinstance(s, Effect) for s in step.stmts) or asserted == {step.instr.op}:
            return
        registers = self.code.function.registers
        given = [e for e in step.instr.args if isinstance(e, Expr)]
        given += [e for s in step.stmts for e in values(s)]
        if step.instr.op in MAKES:
            given += [d for reg in step.changed for d in registers[reg].dims if d is not None]
        for node in (n for e in given for n in walk(e)):
            if isinstance(node, Apply) and node.fn not in LENGTHS and _jumps(node):
                regs = {p.reg for a in node.args if _rounds(a) for p in expr_reads(a)}
                if regs:
                    yield self.sources(pc, regs)

    def rounded(self) -> set[int]:
        """The registers that rounding changes, where that is not undone bit by bit."""
        ends = [
            pc
            for pc, step in enumerate(self.steps)
            if step.instr.op == "free" and not step.is_exact
        ]
        same = set(chain.from_iterable(self.retraced.within(ends)))
        # The run back creates with a value what the run forwards frees with it.
        freeing = {"alloc" if way else "free" for way in self.ways}
        given = {
            pc
            for pc, step in enumerate(self.steps)
            if step.instr.op in freeing and len(step.instr.args) > 1
        }
        changed = (
            step.changed
            for pc, step in enumerate(self.steps)
            if pc not in same and (pc in given or self.code.rounds(pc))
        )
        regs = frozenset().union(*changed)
        types = self.code.function.registers
        return {reg for reg in regs if not elem_of(types[reg].type).is_exact}

    def spreads(self, rounded: dict[str, set[int]]) -> bool:
        """Add the registers whose values depend on rounded ones; whether there are more of them.

        What is exchanged, pushed or popped goes the other way in the run back.
        """
        before, found = sum(map(len, rounded.values())), rounded[self.name]
        inout = self.code.image.inout
        for pc, stmt in ((pc, s) for pc, step in enumerate(self.steps) for s in step.stmts):
            if isinstance(stmt, Call):
                for k, arg in enumerate(stmt.args):
                    read = self.sources(pc, {p.reg for p in places(arg)})
                    made = k in inout[stmt.callee] and not isinstance(arg, Place)
                    if (made and _rounds(arg)) or not found.isdisjoint(read):
                        rounded[stmt.callee].add(k)
                    elif k in rounded[stmt.callee] and isinstance(arg, Place):
                        found.add(arg.reg)
                continue
            changed = {p.reg for p in writes(stmt)}
            moved = set() if isinstance(stmt, Update | Alloc | Free) else changed
            if not found.isdisjoint(self.sources(pc, {p.reg for p in reads(stmt)}) | moved):
                found |= changed
        return sum(map(len, rounded.values())) > before


def _rounds(e: Expr) -> bool:
    t = elem(e)
    return t is not None and not t.is_exact


def _jumps(node: Apply) -> bool:
    """Whether a function of numbers that round, or its derivative, is not continuous."""
    row = FUNCTIONS[node.fn]
    if row.lazy or not any(map(_rounds, node.args)):  # The condition decides, of a lazy one.
        return False
    t = bar_type(node.type) if node.type is not None and _rounds(node) else None
    if not isinstance(t, Scalar | Array) or row.jumps(*map(elem, node.args)):
        return True
    terms = (g for g in gains(node.fn, node.args, Place(0, (), t)) if g is not None)
    pole = pole_of(row, node.args)
    guard = set() if pole is None else set(walk(typed(pole, elem_of(t))))  # It tells of poles.
    nodes = (n for term in terms for n in walk(term) if isinstance(n, Apply) and n not in guard)
    return any(
        FUNCTIONS[n.fn].jumps(*map(elem, n.args)) for n in nodes if any(map(_rounds, n.args))
    )
