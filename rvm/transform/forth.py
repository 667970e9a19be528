"""A function's code as it is where a register that tells directions apart never holds.

The adjoint of a function passes over gains from adjoints that are zero, but only forwards (see
`rvm.transform.walker`).  They are nothing there, and their derivatives are not: what is derived
from an adjoint has them in both directions, or it would not be undone by its inverse.
"""

from __future__ import annotations

from dataclasses import replace

from rvm.expr import Apply, Expr, Place, places
from rvm.program import Function, Instr
from rvm.types import BOOL


def without_directions(f: Function) -> Function:
    """A function that does in both directions what it does where it is undone.

    Functions without a register that tells directions apart are left as they are.
    """
    forth = _register(f)
    if forth is None:
        return f
    kept, at = [], 1
    while at < len(f.code) - 1:
        instr = f.code[at]
        if at > 1 and not _reads(instr, forth):
            kept.append(at)
        elif instr.op == "br" and isinstance(instr.args[0], Apply):
            at = instr.aux
        at += 1
    new = {pc: k for k, pc in enumerate(kept)}
    code = tuple(
        replace(i, aux=new[i.aux]) if i.op in ("br", "cf") else i
        for i in (f.code[pc] for pc in kept)
    )
    undoing = None if f.undoing is None else frozenset(new[pc] for pc in f.undoing if pc in new)
    spans = tuple(f.spans[pc] for pc in kept) if f.spans else ()
    return replace(f, code=code, spans=spans, undoing=undoing)


def _register(f: Function) -> int | None:
    """The register that holds forwards and nowhere else, and that branches alone read."""
    if [i.op for i in (*f.code[:2], *f.code[-1:])] != ["fresh", "not", "drop"]:
        return None
    made, turned, dropped = (i.args[0] for i in (*f.code[:2], f.code[-1]))
    if not made == turned == dropped or not isinstance(made, Place) or made.type != BOOL:
        return None
    inside = [i for i in f.code[2:-1] if _reads(i, made.reg)]
    branches = all(i.op in ("br", "cf") and _tells(i.args[0], made) for i in inside)
    return made.reg if branches else None


def _tells(cond: Expr, forth: Place) -> bool:
    return cond == forth or (isinstance(cond, Apply) and cond.fn == "not" and cond.args == (forth,))


def _reads(instr: Instr, reg: int) -> bool:
    return any(p.reg == reg for arg in instr.args for p in places(arg))
