"""Lowering `with` and `replace`: registers that come and go by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import LENGTHS, Place
from rvm.isa import TypeFault, typed
from rvm.types import U8, Array, Scalar, Stack, elem_of, rank_of
from rvm_asm.generics import FUNCTION, NUMBERS, TypeValue
from rvm_asm.inference import record_of
from rvm_asm.iterations import Iterations
from rvm_asm.nodes import (
    Application,
    Declared,
    LikeRef,
    Lit,
    Node,
    Operator,
    Ref,
    TypeRef,
    Word,
)
from rvm_asm.scope import NameGroup
from rvm_asm.stats import AllocStat, Invoke, OpStat, Replace, Stat


@dataclass(frozen=True, slots=True)
class Held:
    """A register that is freed by what it was made by."""

    declared: Declared
    value: Node | None


class Holding(Iterations):
    """Makes registers and frees them by the same value."""

    def hold(self, declared: Declared, value: Node | None, stat: Stat) -> Held:
        """Make a register that holds a value; of the value's type, if none is written."""
        text = self.text_of(value)
        t = None if value is None or text is not None else self._type_of(value)
        as_written = declared
        if isinstance(declared.type, LikeRef):
            like = self._like(declared.type.place)
            declared = Declared(declared.name, like, declared.start, declared.end)
        elif declared.type is None and declared.name not in self.scope.names:
            written = None
            if text is not None:
                at = (declared.start, declared.end)
                written = TypeRef(str(U8), None, None, [Lit(len(text), *at)], *at)
            elif isinstance(t, Array) and not isinstance(value, Ref):
                assert value is not None
                self.reject(
                    "A075",
                    f"`{declared.name}` is an array, whose lengths are to be written",
                    value,
                    f"for example `with {declared.name}: {t.elem}[n] = …`",
                )
            elif isinstance(t, Array):
                assert isinstance(value, Ref)
                written = self._like(value)
            elif t is not None:
                nothing = TypeRef("", None, None, None, declared.start, declared.end)
                written = TypeValue(NUMBERS, t).written("", nothing)
            declared = Declared(declared.name, written, declared.start, declared.end)
        self.became[id(as_written)] = declared.type
        held = Held(declared, value)
        self._memory("alloc", held, stat)
        return held

    def release(self, held: Held, stat: Stat) -> None:
        """Free a register by what it was made by."""
        self._memory("free", held, stat)

    def _memory(self, op: str, held: Held, stat: Stat) -> None:
        d = held.declared
        if op == "free":
            d = Declared(d.name, None, d.start, d.end)
        self.alloc(AllocStat(op, d, held.value, stat.start, stat.end))

    def _type_of(self, value: Node) -> Scalar | Array | None:
        template = self.operand(value)
        try:
            t = typed(template).type
        except TypeFault as fault:
            self.fault(fault, value)
        return None if isinstance(t, Stack) else t

    # In place.

    def replace(self, stat: Replace) -> None:
        """A new value beside the old one, which is taken away by it, and the two exchanged."""
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
        declared = Declared(name.text, self._like(place), name.start, name.end)
        new = Ref(name.text, (), name.start, name.end)
        held = Held(declared, None)
        self._memory("alloc", held, stat)
        self._apply_to(new, "call", "add", stat.there, stat)
        self._apply_to(place, "uncall", "sub", stat.back, stat)
        self.op(OpStat("swap", [place, new], stat.start, stat.end, stat.end))
        self._memory("free", held, stat)

    def _apply_to(self, target: Ref, call: str, op: str, node: Node, stat: Stat) -> None:
        """A function that is called, or an expression that is added or taken away."""
        with self.holding(stat):
            if not self._is_called(node):
                t = self.operand(target).type
                word = "xor" if t is not None and elem_of(t).is_bool else op
                self.op(OpStat(word, [target, node], stat.start, stat.end, stat.end))
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

    def _like(self, place: Ref) -> TypeRef:
        """The type of a place, as an ancilla of it is declared."""
        start, end = place.start, place.end
        nothing = TypeRef("", None, None, None, start, end)
        if self.leaves(place) is not None:
            group, path = self.resolve(place)
            assert isinstance(group, NameGroup)
            if group.rank and not path:
                self.reject("A075", "`replace` takes a record, not an array of records", place)
            return record_of(group, 0).written("", nothing)
        template = self.operand(place)
        t = template.type
        if not isinstance(template, Place) or t is None:
            self.reject("A052", "`replace` takes a place that holds numbers", place)
        dims: list[Node | None] = [
            Application("dim", [place, Lit(k, start, end)], start, end) for k in range(rank_of(t))
        ]
        written = TypeRef("", None, None, dims or None, start, end)
        return TypeValue(NUMBERS, elem_of(t)).written("", written)


def _is_read(node: Node, name: str) -> bool:
    """Whether an expression reads a place as a whole; its length is no value of it."""
    if isinstance(node, Application):
        return node.name not in LENGTHS and any(_is_read(a, name) for a in node.args)
    return isinstance(node, Ref) and node.name == name and not node.steps
