"""Functions that do more in one direction than in the other.

A register that is made with `fresh`, turned over, and forgotten with `drop` at the end holds
forwards.  When the function is undone it begins as the zero that `drop` has for it, and holds
nowhere.  So a branch on it tells the directions apart, and is code like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rvm.expr import Expr, Place
from rvm.program import Function, Instr, Register
from rvm.transform.duals import Duals
from rvm.transform.graph import Graph
from rvm.types import BOOL

FORTH = "forth"
"""The name of the register that holds forwards."""


class Directed(Duals):
    """A growing function on dual registers, with instructions for when it is undone."""

    def __init__(self, f: Function, functions: dict[str, Function], names: dict[str, str]) -> None:
        super().__init__(f, functions, names)
        self.pc = 0
        """The instruction of `f` that the code comes from now."""
        self._nothing: list[tuple[int, Graph, list[Instr], Mapping[int, Place]]] = []
        """Gains that wait, with the position that they belong to."""
        self._forth: Place | None = None

    def spanned(self, pc: int) -> None:
        """What has no line yet comes from the instruction at `pc`."""
        self.spans += [self.f.span(pc)] * (len(self.code) - len(self.spans))

    def if_undone(
        self, graph: Graph, gains: list[Instr], held: Mapping[int, Place] | None = None
    ) -> None:
        """Gains from an adjoint that is zero: forwards they are nothing, and are not computed.

        Undone, that adjoint is off by what has been forgotten of it, and only so does what gains
        make up for that.  They wait for those of the next ancillas, to be passed over together.
        """
        if gains:
            self._nothing.append((self.pc, graph, gains, held or {}))

    def settle(self) -> None:
        """Add the gains that wait, for the other direction only."""
        if not self._nothing:
            return
        start = self.unless(self.forth())
        for pc, graph, gains, held in self._nothing:
            self.spanned(pc)
            self.shared(graph, (), gains, held=held)
        self.until(start)
        self.spanned(self._nothing[-1][0])
        self._nothing = []

    def unless(self, cond: Expr) -> int:
        """Begin what is done unless a condition holds; where it begins."""
        self.emit("br", cond)
        return len(self.code) - 1

    def until(self, start: int) -> None:
        """End what was begun at `start`."""
        begun = self.code[start]
        self.code[start] = replace(begun, aux=len(self.code))
        self.emit("cf", *begun.args, aux=start)

    def forth(self) -> Place:
        """The register that holds forwards."""
        if self._forth is None:
            self.registers.append(Register(self._name(FORTH), BOOL))
            self._forth = Place(len(self.registers) - 1, (), BOOL)
        return self._forth

    def enclose(self) -> None:
        """Put around the code what makes the register hold forwards, and only there."""
        forth = self._forth
        if forth is None:
            return
        before = (Instr("fresh", (forth,)), Instr("not", (forth,)))
        moved = [
            replace(i, aux=i.aux + len(before)) if i.op in ("br", "cf") else i for i in self.code
        ]
        self.code = [*before, *moved, Instr("drop", (forth,))]
        last = len(self.f.code) - 1
        self.spans = [self.f.span(last)] * len(before) + self.spans + [self.f.span(0)]


__all__ = ["FORTH", "Directed"]
