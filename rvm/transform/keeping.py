"""Programs that keep copies of restored values that are used later, so that these are exact."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from rvm.isa import invert_instr
from rvm.program import Function, Program
from rvm.transform.changes import Changes
from rvm.transform.copies import with_copies
from rvm.transform.parts import ChangedParts
from rvm.transform.programs import doing, in_values
from rvm.types import Stack, elem_of
from rvm.verify import inout_slots
from rvm.verify.matching import matched, restorations


def keeping(program: Program) -> Program:
    """A program that keeps copies of restored values in use; the same program if there are none.

    Adjoints and tangents are not changed: those of functions that keep copies do so too.
    """
    derived = in_values(program)
    candidates = [f for f in program.functions if _may_restore(f, derived)]
    if not candidates:
        return program
    # What a callee brings back it keeps copies of: to its callers it is as it was.
    changes, parts, made = Changes(program), ChangedParts(program, inout_slots(program)), {}
    facts: dict[object, object] = {}
    for f in candidates:
        if f.name in derived:
            continue
        found, facts[matched, f.name] = restorations(f, changes.of_calls(f), doing(program))
        if found:
            made[f.name] = with_copies(f, found, partial(parts.of, f))
    if not made:
        program.cache.update(facts)
        return program
    return replace(program, functions=tuple(made.get(f.name, f) for f in program.functions))


def _may_restore(f: Function, derived: Collection[str]) -> bool:
    """Whether a function of inexact numbers has an instruction and the one that undoes it."""
    if all(isinstance(r.type, Stack) or elem_of(r.type).is_exact for r in f.registers):
        return False
    seen = set[object]()
    for instr in f.code:
        if instr.op in ("br", "cf", "alloc", "free", "fresh", "drop"):
            continue
        # The variables of two loops, by which elements are passed, need not be the same.
        what = (instr.op, instr.symbol) if instr.symbol else instr
        if what in seen or instr.symbol in derived:
            return True
        undo = invert_instr(instr)
        seen.add((undo.op, undo.symbol) if undo.symbol else undo)
    return False
