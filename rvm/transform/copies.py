"""Functions that keep copies of what is brought back and lives on, so that it is what it was.

Running back what changed a float brings it back but for rounding, and not even nearly where the
code between contracts: 60 halvings undone leave nothing of it.  So where such a value is used
afterwards a copy is kept of it meanwhile, and takes its place:

    alloc x.kept = x        before x is changed
    swap  x, x.kept
    …
    swap  x, x.kept         when it is back
    free  x.kept = x

These are instructions as any others, the same in both directions: gradients pass through the copy,
and the free says by how much the value was off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from rvm.expr import Const
from rvm.isa import apply
from rvm.isa import place as typed_place
from rvm.program import Function, Instr, Register
from rvm.transform.duals import unique
from rvm.types import I64, Stack, rank_of
from rvm.verify.matching import Restoration

KEPT = ".kept"
"""What is added to the name of a register for that of its copy."""


def with_copies(f: Function, found: Iterable[Restoration]) -> Function:
    """A function with copies of what it brings back, between these positions."""
    registers = list(f.registers)
    names = {r.name for r in registers}
    free: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    """For each register its copies so far, with the positions behind which they are free."""
    before: defaultdict[int, list[Instr]] = defaultdict(list)
    behind: defaultdict[int, list[Instr]] = defaultdict(list)
    for reg, start, end in sorted(found, key=lambda r: (r.start, -r.end)):
        register = f.registers[reg]
        assert not isinstance(register.type, Stack)
        x = typed_place(reg, register.type)
        usable = [entry for entry in free[reg] if entry[0] <= start]
        if usable:
            free[reg].remove(usable[0])
            slot = usable[0][1]
        else:
            name = unique(register.name + KEPT, names)
            names.add(name)
            dims = tuple(apply("dim", x, Const(k, I64)) for k in range(rank_of(register.type)))
            slot = len(registers)
            registers.append(Register(name, register.type, dims))
        free[reg].append((end, slot))
        kept = typed_place(slot, register.type)
        swap = Instr("swap", (x, kept))
        before[start] += [Instr("alloc", (kept, x)), swap]
        behind[end] = [swap, Instr("free", (kept, x)), *behind[end]]
    return _inserted(replace(f, registers=tuple(registers)), before, behind)


def _inserted(
    f: Function, before: dict[int, list[Instr]], behind: dict[int, list[Instr]]
) -> Function:
    """A function with instructions put in at positions: those behind a piece, then those before."""
    code: list[Instr] = []
    spans = []
    moved = []
    for pc in range(len(f.code) + 1):
        for more, near in ((behind.get(pc, ()), pc - 1), (before.get(pc, ()), pc)):
            code += more
            spans += [f.span(near)] * len(more)
        moved.append(len(code))
        if pc < len(f.code):
            code.append(f.code[pc])
            spans.append(f.span(pc))
    for at in moved[:-1]:
        if code[at].op in ("br", "cf"):
            code[at] = replace(code[at], aux=moved[code[at].aux])
    return replace(f, code=tuple(code), spans=tuple(spans) if f.spans else (), origins=())
