"""Routines deep inside others, as functions.

A routine with a result contains what it computes twice, as it is undone.  Nested in what others
compute, routines would double the code at each level, but a function is called, and undone by
another call: the code of functions grows with the depth alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rvm_asm.names import quoted
from rvm_asm.nodes import Application, Declared, Lit, Node, Range, Ref, Sub, TypeRef, Word
from rvm_asm.stats import AllocStat, For, Func, IfStat, Invoke, Iterate, OpStat, Routine, Stat

from rvm_pure.terms import Names

LEVELS = 3
"""The number of routines inside each other of which a function consists."""


def outlined(func: Func, names: Names) -> list[Func]:
    """A function, whose deep routines are calls, and the functions that these call."""
    outliner = _Outliner(func, names)
    outliner.statements(func.body, {p.name: p for p in func.params})
    return [func, *outliner.made]


class _Outliner:
    def __init__(self, func: Func, names: Names) -> None:
        self.func = func
        self.names = names
        self.made: list[Func] = []

    def statements(
        self, body: list[Stat], known: Mapping[str, Declared], inside: bool = False
    ) -> int:
        """Make functions of deep routines in a list, in place; the number of levels that are left.

        `known` are the registers at its beginning, by name; `inside` says that an outer routine
        undoes it.
        """
        known, most = dict(known), 0
        for k, stat in enumerate(body):
            if isinstance(stat, AllocStat) and stat.name == "alloc":
                known[stat.declared.name] = stat.declared
            levels = 0
            for part in _bodies(stat):
                inner = known
                if isinstance(stat, For):
                    number = TypeRef("i64", None, None, None, stat.start, stat.end)
                    inner = {**known, stat.var.text: Declared(stat.var.text, number, 0, 0)}
                if isinstance(stat, Routine) and part is stat.result:
                    inner = {**known, **_made(stat.body)}
                    self.statements(part, inner, inside)
                else:
                    deeper = inside or isinstance(stat, Routine)
                    levels = max(levels, self.statements(part, inner, deeper))
            if isinstance(stat, Routine):
                levels += 1
                if levels >= LEVELS and inside:
                    body[k], levels = self._call(stat, known), 0
            most = max(most, levels)
        return most

    def _call(self, stat: Routine, known: Mapping[str, Declared]) -> Stat:
        """A call of a function made of a routine."""
        start, end = stat.start, stat.end
        params: list[Declared] = []
        args: list[Node] = []
        for name in dict.fromkeys(_free([stat], frozenset())):
            declared = known.get(name)
            number = TypeRef("i64", None, None, None, start, end)
            t = number if declared is None or declared.type is None else _open(declared.type)
            params.append(Declared(name, t, start, end))
            args.append(Ref(name, (), start, end))
        name = quoted(self.names.new(f"{self.func.name.text.strip('`')}.part"))
        word = Word(name, start, end)
        self.made.append(Func(word, [], params, [stat], start, end))
        return Invoke("call", word, args, start, end)


def _made(body: Iterable[Stat]) -> dict[str, Declared]:
    """The registers that statements leave."""
    out: dict[str, Declared] = {}
    for stat in body:
        if isinstance(stat, AllocStat):
            if stat.name == "alloc":
                out[stat.declared.name] = stat.declared
            else:
                out.pop(stat.declared.name, None)
    return out


def _open(t: TypeRef) -> TypeRef:
    """A type of arrays of any lengths."""
    fields = None
    if t.fields is not None:
        fields = [Declared(f.name, f.type and _open(f.type), f.start, f.end) for f in t.fields]
    dims: list[Node | None] | None = None if t.dims is None else [None] * len(t.dims)
    return TypeRef(t.name, t.frac, fields, dims, t.start, t.end, t.args)


def _bodies(stat: Stat) -> Iterator[list[Stat]]:
    """The lists of statements in a statement."""
    match stat:
        case Routine():
            yield stat.body
            if stat.result is not None:
                yield stat.result
        case For():
            yield stat.body
        case IfStat():
            for arm in stat.arms:
                yield arm.body
            if stat.orelse is not None:
                yield stat.orelse


def _values(stat: Stat) -> Iterator[Node]:
    """The expressions of a statement itself."""
    match stat:
        case OpStat() | Invoke():
            yield from stat.args
        case AllocStat():
            if stat.value is not None:
                yield stat.value
            if stat.declared.type is not None:
                yield from _lengths(stat.declared.type)
        case For():
            yield from (stat.first, stat.last)
        case IfStat():
            for arm in stat.arms:
                yield arm.cond
        case Iterate():
            yield from stat.args
            yield from (n for n in (stat.first, stat.last) if n is not None)


def _lengths(t: TypeRef) -> Iterator[Node]:
    yield from (n for n in t.dims or () if n is not None)
    for field in t.fields or ():
        if field.type is not None:
            yield from _lengths(field.type)


def _free(body: Sequence[Stat], own: frozenset[str]) -> Iterator[str]:
    """The names in statements of what is not made there, apart from those that are `own`."""
    for stat in body:
        for value in _values(stat):
            yield from (n for n in _names(value) if n not in own)
        if isinstance(stat, AllocStat):
            name = stat.declared.name
            if stat.name == "alloc":
                own |= {name}
            elif name not in own:
                yield name
        inner = own | {stat.var.text} if isinstance(stat, For) else own
        for part in _bodies(stat):
            if isinstance(stat, Routine) and part is stat.result:
                yield from _free(part, inner | _made(stat.body).keys())
            else:
                yield from _free(part, inner)


def _names(node: Node | Range) -> Iterator[str]:
    """The names in an expression."""
    match node:
        case Lit():
            return
        case Range():
            yield from (n for end in node.ends if end is not None for n in _names(end))
        case Ref():
            yield node.name
            for step in node.steps:
                if isinstance(step, Sub):
                    yield from (n for item in step.items for n in _names(item))
        case Application():
            yield from (n for arg in node.args for n in _names(arg))
