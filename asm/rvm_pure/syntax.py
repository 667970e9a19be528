"""The assembler's nodes for the parts of lowered terms: types, places, ancillas, loops."""

from __future__ import annotations

from collections.abc import Collection

from rvm_asm.names import quoted
from rvm_asm.nodes import Application, Declared, Lit, Node, Operator, Ref, TypeRef, Word
from rvm_asm.stats import AllocStat, For, OpStat, Routine, Stat

from rvm.types import I64
from rvm_pure.definition import Definition
from rvm_pure.elements import first_row, length
from rvm_pure.expressions import Env, Value, expression, field, indexed
from rvm_pure.terms import Names, Num, Op, Term, Var
from rvm_pure.types import Arr, Product, Size, Type, dims, elem_type
from rvm_pure.typing import lengths_of


class Syntax:
    """Makes nodes for one definition, at the places of its terms in the text."""

    def __init__(self, d: Definition) -> None:
        self.d = d
        self.start, self.end = d.name.start, d.name.end
        self.fixed = {*(p.name for p in d.params), *lengths_of(d.params)}
        """Names that have the same meaning in types."""
        self.names = Names(self.fixed)

    def ref(self, name: str, at: Term | None = None) -> Ref:
        start, end = (self.start, self.end) if at is None else (at.start, at.end)
        return Ref(quoted(name), (), start, end)

    def places(self, of: Ref, t: Type) -> Value:
        """The places of a value: of a tuple one for each part, which are a record's fields."""
        inner = elem_type(t)
        if not isinstance(inner, Product):
            return of
        return tuple(
            self.places(field(of, f"p{k + 1}"), item) for k, item in enumerate(inner.items)
        )

    def type_of(self, t: Type, known: Collection[str] | None) -> TypeRef:
        """A written type; lengths that are not `known` are left open."""
        sizes: list[Node | None] = []
        while isinstance(t, Arr):
            n = t.length
            plain = n is not None and not (n.name and n.more)
            if known is not None and n is not None and n.name and n.name not in known:
                plain = False
            both = n is not None and known is None
            sizes.append(self._size(n) if n is not None and (plain or both) else None)
            t = t.elem
        start, end = self.start, self.end
        if isinstance(t, Product):
            fields = [
                Declared(f"p{k + 1}", self.type_of(item, known), start, end)
                for k, item in enumerate(t.items)
            ]
            return TypeRef("Tuple", None, fields, sizes or None, start, end)
        frac = t.frac if t.is_fixed else None
        return TypeRef(t.name, frac, None, sizes or None, start, end)

    def _size(self, n: Size) -> Node:
        start, end = self.start, self.end
        if not n.name:
            return Lit(n.more, start, end)
        name: Node = Ref(n.name, (), start, end)
        if not n.more:
            return name
        sign = "+" if n.more > 0 else "-"
        return Operator(sign, [name, Lit(abs(n.more), start, end)], start, end)

    def length(self, e: Term) -> Term:
        """The length of an array, by the name of a length if one is known."""
        n = e.type.length if isinstance(e.type, Arr) else None
        if n is None or (n.name and n.name not in self.fixed):
            return length(e)
        if not n.name:
            return Num(n.more, type=I64)
        name = Var(n.name, type=I64)
        if not n.more:
            return name
        more = Op("+" if n.more > 0 else "-", (name, Num(abs(n.more), type=I64)), type=I64)
        return more if n.more > 0 else Op("max", (more, Num(0, type=I64)), type=I64)

    def like(self, place: Node, t: Type, env: Env, at: Term) -> TypeRef:
        """The type of an ancilla with the lengths of a place."""
        ref = self.type_of(t, None)
        sizes: list[Node | None] = []
        for axis, n in enumerate(dims(t)):
            if n is not None and (not n.name or n.name in self.fixed):
                sizes.append(self.node(self.length(Var("", type=Arr(t, n))), env))
            else:
                number = Lit(axis, at.start, at.end)
                sizes.append(Application("dim", [place, number], at.start, at.end))
        ref.dims = sizes or None
        return ref

    def node(self, e: Term, env: Env) -> Node:
        v = expression(e, env)
        assert not isinstance(v, tuple)
        return v

    def alloc(self, word: str, name: str, t: Type | None, v: Node | None, at: Term) -> AllocStat:
        ref = None if t is None else self.type_of(t, None)
        declared = Declared(quoted(name), ref, at.start, at.end)
        return AllocStat(word, declared, v, at.start, at.end)

    def room(self, name: str, e: Term, env: Env, more: Term | None = None) -> Declared:
        """An ancilla with room for a value, or for so many of them."""
        t = e.type
        assert t is not None
        sizes: list[Node | None] = []
        if more is not None:
            sizes.append(self.node(more, env))
        at: Term = e
        while isinstance(t, Arr):
            sizes.append(self.node(self.length(at), env))
            at, t = first_row(at, t, self.names), t.elem
        ref = self.type_of(t, None)
        ref.dims = sizes or None
        return Declared(quoted(name), ref, e.start, e.end)

    def make(self, name: str, e: Term, env: Env, out: list[Stat], more: Term | None = None) -> None:
        """Make an ancilla of zeros for a value, or for so many of them."""
        declared = self.room(name, e, env, more)
        out.append(AllocStat("alloc", declared, None, e.start, e.end))

    def routine(self, made: list[Stat], result: list[Stat], at: Term) -> Stat:
        word = Word(f" {self.names.new('routine')}", at.start, at.end)
        return Routine(word, made, result, at.start, at.end)

    def repeat(self, var: str, first: Node, end: Node, body: list[Stat], at: Term) -> Stat:
        last: Node = Operator("-", [end, Lit(1, at.start, at.end)], at.start, at.end)
        if isinstance(end, Lit):
            last = Lit(end.value - 1, at.start, at.end)
        word = Word(quoted(var), at.start, at.end)
        return For(word, first, last, None, False, body, at.start, at.end)


def at(place: Value, i: Node) -> Value:
    if isinstance(place, tuple):
        return tuple(at(q, i) for q in place)
    assert isinstance(place, Ref)
    return indexed(place, [i])


def nought(at: Term) -> Lit:
    return Lit(0, at.start, at.end)


def instruction(word: str, at: Term, *operands: Value) -> OpStat:
    """An instruction on places that are not tuples, and on expressions."""
    nodes = [v for v in operands if not isinstance(v, tuple)]
    assert len(nodes) == len(operands)
    return OpStat(word, nodes, at.start, at.start, at.end)
