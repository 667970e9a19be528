"""Lowering `with` and `replace`: registers that are created and freed automatically."""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import LENGTHS
from rvm.isa import OPCODES
from rvm.numbers import system
from rvm.types import elem_of
from rvm_asm.generics import FUNCTION
from rvm_asm.iterations import Iterations
from rvm_asm.nodes import Application, Declared, LikeRef, Node, Operator, Ref, Word
from rvm_asm.stats import AllocStat, Invoke, OpStat, Replace, Stat


@dataclass(frozen=True, slots=True)
class Held:
    """A register that is freed by the expression it was made with."""

    declared: Declared
    value: Node | None


class Holding(Iterations):
    """Makes registers and frees them by the same value."""

    def hold(self, declared: Declared, value: Node | None, stat: Stat) -> Held:
        """Create a register that holds a value, with the value's type if none is given."""
        if isinstance(declared.type, LikeRef):
            like = self.became[id(declared)] = self.like(declared.type.place)
            declared = Declared(declared.name, like, declared.start, declared.end)
        held = Held(declared, value)
        self._memory("alloc", held, stat)
        return held

    def release(self, held: Held, stat: Stat) -> None:
        """Free a register by the expression it was made with."""
        self._memory("free", held, stat)

    def _memory(self, op: str, held: Held, stat: Stat) -> None:
        d = held.declared
        if op == "free":
            d = Declared(d.name, None, d.start, d.end)
        self.alloc(AllocStat(op, d, held.value, stat.start, stat.end))

    # In place.

    def replace(self, stat: Replace) -> None:
        """Compute a new value, uncompute the old one from it, and exchange the two."""
        place, name = stat.place, stat.name
        if not isinstance(place, Ref):
            self.reject("A052", "`replace` takes a place", place)
        if not place.steps and not self._is_called(stat.back) and _is_read(stat.back, place.name):
            self.reject(
                "A013",
                f"`{place.name}` is what the second expression gives, and it reads it",
                stat.back,
                f"it says what `{place.name}` was, from the new value, `{name.text}`",
            )
        declared = Declared(name.text, self.like(place), name.start, name.end)
        new = Ref(name.text, (), name.start, name.end)
        held = Held(declared, None)
        self._memory("alloc", held, stat)
        self._apply_to(new, "call", "add", stat.there, stat)
        self._apply_to(place, "uncall", "sub", stat.back, stat)
        self.op(OpStat("swap", [place, new], stat.start, stat.end, stat.end))
        self._memory("free", held, stat)

    def _apply_to(self, target: Ref, call: str, op: str, node: Node, stat: Stat) -> None:
        """A function that is called, or an expression that is added or subtracted."""
        with self.holding(stat):
            if not self._is_called(node):
                t = self.operand(target).type
                if t is not None:
                    gathers = system(elem_of(t)).gathers
                    op = gathers if op == "add" else OPCODES[gathers].inverse
                self.op(OpStat(op, [target, node], stat.start, stat.end, stat.end))
                return
            assert isinstance(node, Application)
            called = Word(node.name, node.start, node.start + len(node.name))
            self.call(Invoke(call, called, node.args, stat.start, stat.end))

    def _is_called(self, node: Node) -> bool:
        """Whether an expression is a call of a reversible function."""
        if not isinstance(node, Application) or isinstance(node, Operator):
            return False
        bound = self.scope.types.get(node.name)
        is_function = bound is not None and bound.kind == FUNCTION
        return is_function or node.name in self.program.functions


def _is_read(node: Node, name: str) -> bool:
    """Whether an expression reads a place as a whole; its length does not count."""
    if isinstance(node, Application):
        return node.name not in LENGTHS and any(_is_read(a, name) for a in node.args)
    return isinstance(node, Ref) and node.name == name and not node.steps
