"""Decisions that a run back may make otherwise than the run forwards: those on rounded numbers.

Numbers that an addition has rounded come back with other bits.  Where a comparison, a jump of a
function such as `floor`, or an index depends on them, the run back may add adjoints for another
branch or element; its values tell nothing of that, if they are equal in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from rvm.expr import LENGTHS, Apply, Expr, Place, places, walk
from rvm.expr import reads as expr_reads
from rvm.host.once import once
from rvm.image import image_of
from rvm.isa import FUNCTIONS, lower
from rvm.isa.functions.formulas import elem
from rvm.program import Function, Program
from rvm.stmt import Call, reads, writes
from rvm.transform.duals import reachable
from rvm.transform.retraced import Retraced, Step
from rvm.types import elem_of


def decides(program: Program, name: str) -> bool:
    """Whether a function, or one that it calls, decides by numbers that come back rounded."""
    found: tuple[bool] = once(
        program.cache, (decides, name), tuple, lambda: (_find(program, name),)
    )
    return found[0]


def _find(program: Program, name: str) -> bool:
    functions = {n: program.function(n) for n in reachable(program, name)}
    if not any(_decisions(f) for f in functions.values()):
        return False
    rounded = {n: _rounded(program, f) for n, f in functions.items()}
    while any(_spread(f, rounded[n], rounded) for n, f in functions.items()):
        pass
    return any(
        not rounded[n].isdisjoint(regs) for n, f in functions.items() for regs in _decisions(f)
    )


def _rounded(program: Program, f: Function) -> set[int]:
    """The registers that rounding changes, where that is not undone bit by bit."""
    code, steps = image_of(program).code(f.name, False), [Step(f, instr) for instr in f.code]
    ends = [pc for pc, step in enumerate(steps) if step.instr.op == "free" and not step.is_exact]
    same = set(chain.from_iterable(Retraced(steps).within(ends)))
    changed = (step.changed for pc, step in enumerate(steps) if pc not in same and code.rounds(pc))
    regs = frozenset().union(*changed)
    return {reg for reg in regs if not elem_of(f.registers[reg].type).is_exact}


def _spread(f: Function, found: set[int], rounded: dict[str, set[int]]) -> bool:
    """Add the registers whose values depend on those found; whether there are more than before."""
    before = sum(map(len, rounded.values()))
    for stmt in (s for instr in f.code for s in lower(instr)):
        if isinstance(stmt, Call):
            for k, arg in enumerate(stmt.args):
                read = {p.reg for p in places(arg)}
                if not found.isdisjoint(read):
                    rounded[stmt.callee].add(k)
                elif k in rounded[stmt.callee] and isinstance(arg, Place):
                    found.add(arg.reg)
        elif not found.isdisjoint(p.reg for p in reads(stmt)):
            found.update(p.reg for p in writes(stmt))
    return sum(map(len, rounded.values())) > before


def _decisions(f: Function) -> list[set[int]]:
    """The registers of numbers that round, on which each decision depends."""
    found = []
    for node in (n for instr in f.code for e in _expressions(instr.args) for n in walk(e)):
        if isinstance(node, Apply) and node.fn not in LENGTHS and _jumps(node):
            regs = {p.reg for a in node.args if _rounds(a) for p in expr_reads(a)}
            if regs:
                found.append(regs)
    return found


def _expressions(args: tuple[object, ...]) -> Iterator[Expr]:
    return (a for a in args if isinstance(a, Expr))


def _rounds(e: Expr) -> bool:
    t = elem(e)
    return t is not None and not t.is_exact


def _jumps(node: Apply) -> bool:
    """Whether the function is not continuous, or its derivative is a step of another kind."""
    row = FUNCTIONS[node.fn]
    if row.steps or not _rounds(node):
        return any(map(_rounds, node.args))
    if row.partials is None or not any(map(_rounds, node.args)):
        return False
    steps = (n for p in row.partials(*node.args) if p is not None for n in walk(p))
    return any(isinstance(n, Apply) and FUNCTIONS[n.fn].steps for n in steps)
