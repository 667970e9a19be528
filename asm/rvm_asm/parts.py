"""Parts of long expressions: a chain of operators is computed by several instructions.

The result of its first links is held in an ancilla while the statement uses it, and is freed by the
same expression.  So the statement must not change anything that a part reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import Expr, Place, places
from rvm.isa import check_operands, typed
from rvm.isa.shapes import Lengths, dims_of
from rvm.program import Instr
from rvm.types import Stack, rank_of
from rvm.verify.alias import overlap
from rvm.verify.conflicts import CALLS, written_operands
from rvm_asm.emitter import CodeEmitter
from rvm_asm.nodes import Node
from rvm_asm.scope import Slot
from rvm_asm.stats import Stat


@dataclass(frozen=True, slots=True)
class HeldPart:
    """A part of an expression in an ancilla, and where the code begins that may use it."""

    value: Expr
    node: Node
    ancilla: Slot
    begins: int

    def put_back(self, e: CodeEmitter, stat: Stat) -> None:
        """Free the ancilla; Rejected if the statement changes, or may change, what it holds."""
        for instr in e.code[self.begins :]:
            changed = [instr.args[k] for k in written_operands(instr, range(len(instr.args)))]
            for read in places(self.value):
                verdicts = [overlap(p, read) for p in changed if isinstance(p, Place)]
                if "always" in verdicts and instr.op not in CALLS:
                    at = e.origin(read) or self.node
                    what = e.report.sources.text(at.start, at.end)
                    e.reject("A013", f"the destination `{what}` is also read by the expression", at)
                if {*verdicts} - {"never"}:
                    e.too_deep(self.node)
        place = Place(self.ancilla.reg, (), self.ancilla.value_type)
        e.put(Instr("free", check_operands("free", (place, self.value), e.registers.list)), stat)


def hold_part(e: CodeEmitter, name: str, value: Expr, node: Node, stat: Stat) -> HeldPart:
    """Put a part of an expression into an ancilla of that name; TypeFault if it has no type."""
    if next(places(value), None) is None:
        e.too_deep(node)  # what types literals have depends on what follows
    made = typed(value)
    t = made.type
    assert t is not None and not isinstance(t, Stack)
    dims = dims_of(made, Lengths(e.registers.list).of_place)
    if dims is None or len(dims) != rank_of(t):
        e.too_deep(node)
    ancilla = e.registers.local(name, t, e.scope.owner, dims)
    place = Place(ancilla.reg, (), t)
    e.put(
        Instr("alloc", check_operands("alloc", (place, made), e.registers.list)),
        stat,
        (place, value),
    )
    return HeldPart(made, node, ancilla, len(e.code))
