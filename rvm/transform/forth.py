"""A function's code without the parts that depend on the direction, to be differentiated.

The adjoint of a function skips contributions of adjoints that are zero, but only forwards (see
`rvm.transform.walker`).  These contributions are zero, but their derivatives are not: functions
derived from an adjoint compute them in both directions, since otherwise their inverses would not
undo them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rvm.expr import Apply, Expr, Place, places
from rvm.isa import MAKES, lower
from rvm.program import Function, Instr
from rvm.stmt import Exchange, writes
from rvm.types import BOOL


def without_directions(f: Function) -> Function:
    """A function in which no register that distinguishes directions is inverted.

    So its derivatives do in both directions what they do where it is undone. In strict mode the log
    holds the register's value, like other dropped values.
    """
    if telling(f) is None:
        return f
    code = tuple(
        replace(i, aux=i.aux - 1) if i.op in ("br", "cf") else i for i in (f.code[0], *f.code[2:])
    )
    marks = f.undoing
    undoing = None if marks is None else frozenset(pc - (pc > 1) for pc in marks - {1})
    return replace(f, code=code, spans=(*f.spans[:1], *f.spans[2:]), undoing=undoing)


def forwards(f: Function) -> Function:
    """A function without the code that is executed only when it is undone.

    Nor does it exchange adjoints to which nothing has been added yet: they are zeros.  The register
    that tells directions apart is still dropped: its erased bit counts.
    """
    forth = telling(f)
    if forth is None:
        return f
    gone: set[int] = set()
    for pc, instr in enumerate(f.code):
        if instr.op == "br" and _reads(instr, forth):
            taken = isinstance(instr.args[0], Place)
            gone |= set(range(pc, instr.aux + 1)) if taken else {pc, instr.aux}
    kept = [pc for pc in range(len(f.code)) if pc not in gone]
    f = _only(f, kept)
    known = _zeros(f.code)
    return _only(f, [pc for pc, i in enumerate(f.code) if not _exchanges(i, known[pc])])


def _only(f: Function, kept: Sequence[int]) -> Function:
    """A function with the instructions at some positions."""
    place = {pc: k for k, pc in enumerate(kept)}
    code = tuple(
        replace(i, aux=place[i.aux]) if i.op in ("br", "cf") else i
        for i in (f.code[pc] for pc in kept)
    )
    spans = tuple(f.spans[pc] for pc in kept) if f.spans else ()
    return replace(f, code=code, spans=spans, undoing=None, origins=())


def _zeros(code: Sequence[Instr]) -> list[frozenset[int]]:
    """The registers that hold zeros before each instruction, in a run from the beginning."""
    everything = frozenset(p.reg for i in code for s in lower(i) for p in writes(s))
    known = [everything] * (len(code) + 1)
    known[0] = frozenset()
    settled = False
    while not settled:
        settled = True
        for pc, instr in enumerate(code):
            after = known[pc]
            if instr.op in MAKES and len(instr.args) == 1:
                after |= {p.reg for s in lower(instr) for p in writes(s)}
            elif not _exchanges(instr, after):
                after -= {p.reg for s in lower(instr) for p in writes(s)}
            for following in (pc + 1, instr.aux + 1) if instr.op == "br" else (pc + 1,):
                if known[following] - after:
                    known[following] &= after
                    settled = False
    return known


def _exchanges(instr: Instr, zero: frozenset[int]) -> bool:
    """Whether an instruction exchanges places of registers that hold zeros."""
    match lower(instr):
        case (Exchange(Place(a), Place(b)),):
            return {a, b} <= zero
    return False


def telling(f: Function) -> int | None:
    """The register that holds forwards and nowhere else, and that branches alone read."""
    if [i.op for i in (*f.code[:2], *f.code[-1:])] != ["fresh", "not", "drop"]:
        return None
    made, turned, dropped = (i.args[0] for i in (*f.code[:2], f.code[-1]))
    if not made == turned == dropped or not isinstance(made, Place) or made.type != BOOL:
        return None
    inside = [i for i in f.code[2:-1] if _reads(i, made.reg)]
    alone = all(i.op in ("br", "cf") and _tells(i.args[0], made) for i in inside)
    return made.reg if alone else None


def _tells(cond: Expr, forth: Place) -> bool:
    return cond == forth or (isinstance(cond, Apply) and cond.fn == "not" and cond.args == (forth,))


def _reads(instr: Instr, reg: int) -> bool:
    return any(p.reg == reg for arg in instr.args for p in places(arg))
