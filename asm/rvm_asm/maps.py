"""Lowering `map` and `unmap`: a function for each element of arrays of one length.

The statement is a call of a function, generated once for each function that is mapped, whose body
is a `for` over the elements.  Its parameters share their lengths, and arguments may overlap only as
in any call: so no iteration depends on what another one changes.  The code for an element is
expanded in the loop, like a macro, so that engines see what an iteration reaches.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rvm.codes.words import count
from rvm.program import Function, Layout, slots_of
from rvm.transform.derived import GRADIENT
from rvm.transform.duals import unique
from rvm.types import Stack, elem_of, rank_of
from rvm_asm.calls import Calls
from rvm_asm.derivatives import Derivative, Said, binding, is_left_out
from rvm_asm.generics import FUNCTION, NUMBERS, STACK, TypeValue
from rvm_asm.inference import Shape, shape_of
from rvm_asm.names import plain, quoted
from rvm_asm.nodes import Declared, Lit, Node, Operator, Ref, Sub, TypeRef, Word
from rvm_asm.scope import Binding, NameGroup, Slot
from rvm_asm.stats import MAPS, For, Func, Invoke, Macro, OpStat, RecordDef, Stat


@dataclass(frozen=True, slots=True)
class Shared:
    """An argument that all elements are given, and the registers of the parameter it is for.

    A bar gains from each element if the function `of` only reads the parameter that it is of.
    """

    callee: str
    slots: range
    at: Node
    of: str = ""
    read: frozenset[int] = frozenset()
    """The registers of the parameter that it is a bar of."""

    def is_changed(self, changed: Mapping[str, frozenset[int]]) -> bool:
        """Whether an element sees a value that another one has left in it."""
        if changed.get(self.callee, frozenset()).isdisjoint(self.slots):
            return False
        return not self.of or not changed.get(self.of, frozenset()).isdisjoint(self.read)


@dataclass(frozen=True, slots=True)
class Mapped:
    """The call that implements a `map`, and for a derivative its parameters."""

    call: Invoke
    said: tuple[Said, ...]
    shared: tuple[Shared, ...]
    is_shown: bool
    """Whether texts show the function that is made, and a call of it."""


def mapping(e: Calls, stat: Invoke) -> Mapped:
    """The call that a `map` is."""
    found = _walked(e, stat)
    name, args = e.callee(stat.over(found))
    signature = e.program.signatures[name]
    made = e.derivative(name, args, stat) if stat.marks else None
    own = len(signature)
    if made is not None:
        signature = tuple((p.name, binding(p.layout, made.head)) for p in made.head.params)
    bars = [bar for bar in stat.bars if not is_left_out(bar)]
    args = [*args, *bars]
    shown = plain(name) + "".join(stat.marks)
    if len(args) != len(signature):
        e.wrong_count(shown, [n for n, _ in signature], len(args), stat)
    walked = set[int]()
    for k, ((word, parameter), arg) in enumerate(zip(signature, args, strict=True)):
        have, want = _rank(e.shape(arg)), _rank(shape_of(_register(parameter)))
        over = have is not None and want is not None and have == want + 1
        if stat.args.index(arg) in found if k < own else over:
            walked.add(k)
        elif have and want is not None and have != want:
            dual = made is not None and made.said[k].dual
            what = made.said[k].text() if made is not None and dual else f"`{word}` of `{shown}`"
            e.reject(
                "A042",
                f"this has {count(have, 'dimension')}: {what} takes {want}, "
                f"or {want + 1} to be mapped over",
                arg,
            )
    if not walked:
        e.complain(
            "A076",
            f"`{shown}` is mapped over nothing: no argument has one dimension more than its "
            "parameter",
            stat,
            f"`call {shown}(…)` calls it once",
        )
    shared = tuple(s for k, s in _shared(name, made, signature, args) if k not in walked)
    callee = Word(_made(e, name, stat, made, walked), stat.callee.start, stat.callee.end)
    call = Invoke(MAPS[stat.name], callee, args, stat.start, stat.end, bars=bars)
    is_shown = e.program.made[name][0].linked is not None
    return Mapped(call, made.said if made is not None else (), shared, is_shown)


def _shared(
    name: str,
    made: Derivative | None,
    signature: Sequence[tuple[str, Binding]],
    args: Sequence[Node],
) -> Iterator[tuple[int, Shared]]:
    """The arguments as all elements are given them, by their numbers."""
    own = len(args) if made is None else len(made.base.params)
    bars = [] if made is None else made.params
    first = 0
    for k, ((_, parameter), arg) in enumerate(zip(signature, args, strict=True)):
        slots = range(first, first + len(shape_of(_register(parameter)).leaves))
        first = slots.stop
        if made is None:
            yield k, Shared(plain(name), slots, arg)
        elif k >= own:
            read = frozenset(slots_of(bars[k - own].layout))
            yield k, Shared(made.head.name, slots, arg, made.of, read)
        elif made.mark != GRADIENT:  # a gradient brings them back, to the bit
            yield k, Shared(made.of, slots, arg)


# ---------------------------------------------------------------- which arguments are walked


def _walked(e: Calls, stat: Invoke) -> frozenset[int]:
    """The arguments that have a dimension more than the function takes."""
    name = stat.callee.text
    bound = e.scope.types.get(name)
    if bound is not None and bound.kind == FUNCTION:
        name = bound.name
    func = e.program.generics.get(name)
    args = stat.args
    if func is not None and len(stat.marks) > 1:
        args = args[: len(func.params)]  # the others are bars of the first mark
    if func is not None and len(func.params) == len(args):
        params = zip(func.params, args, strict=True)
        have = [None if p.is_function else _rank(e.shape(a)) for p, a in params]
        want = _written_ranks(e, func, stat, have)
    else:
        have = [_rank(e.shape(a)) for a in args]
        signature = e.program.signatures.get(name, ())
        want = [_rank(shape_of(_register(b))) or 0 for _, b in signature]
    pairs = enumerate(zip(have, want, strict=False))
    return frozenset(k for k, (h, w) in pairs if h is not None and h == w + 1)


def _written_ranks(e: Calls, func: Func, stat: Invoke, have: Sequence[int | None]) -> Sequence[int]:
    """The number of dimensions of each parameter of a generic function.

    Of a type that may be an array, and that no brackets name, it is an element of the argument
    that has most dimensions.
    """
    ranks: dict[str, int] = {}
    for p in func.types:
        over = [
            h - _dims(e, q)
            for q, h in zip(func.params, have, strict=True)
            if h is not None and q.type is not None and q.type.name == p.name
        ]
        ranks[p.name] = max(0, *over, 1) - 1 if p.shaped or not p.classes else 0
    for p, written in zip(func.types, stat.types or (), strict=False):
        ranks[p.name] = e.written_type(written).rank
    return [
        _dims(e, q) + (ranks.get(q.type.name, 0) if q.type is not None else 0) for q in func.params
    ]


def _dims(e: Calls, p: Declared) -> int:
    """The number of dimensions in a parameter's written type."""
    if p.type is None or p.type.dims is None:
        return 0
    record = e.program.records.get(p.type.name)
    is_args = record is not None and record.types and p.type.args is None
    return 0 if is_args else len(p.type.dims)


def _rank(shape: Shape | None) -> int | None:
    """The number of an argument's dimensions, for a record the leading ones; None without any."""
    if shape is None:
        return None
    if shape.record is not None:
        return shape.record.rank
    (leaf,) = shape.leaves
    return None if isinstance(leaf, Stack) else rank_of(leaf)


def _register(binding: Binding) -> Slot | NameGroup:
    assert isinstance(binding, (Slot, NameGroup))
    return binding


# ---------------------------------------------------------------- what is made


def _made(e: Calls, name: str, stat: Invoke, d: Derivative | None, walked: Container[int]) -> str:
    """The function that does one, or a derivative of it, for each element of some arguments."""
    program = e.program
    head, types = program.made[name]
    start, end = head.start, head.end
    values = [p for p in head.params if not p.is_function]
    called = head.name.text
    if d is not None:
        called = d.head.name.replace(plain(name), plain(called), 1)
        more = d.head.params[len(values) :]
        values += [declared(p.name, p.layout, d.head, start, end) for p in more]
    words = [p.name for p in values]
    over = [word for k, word in enumerate(words) if k in walked]
    ending = "" if len(over) == len(words) else f"({', '.join(over)})"
    lengths = [quoted(d.name) for d in program.heads[name].dims]
    taken = {*words, *lengths, *program.constants.definitions, *types}
    length, at = unique("n", taken), unique("i", taken)

    def node(word: str, *items: Node) -> Ref:
        return Ref(word, (Sub([*items], start, end),) if items else (), start, end)

    params, args = list[Declared](), list[Node]()
    for k, p in enumerate(values):
        lead = node(length) if k in walked else None
        params.append(Declared(p.name, _longer(p, lead, program.records), p.start, p.end))
        args.append(node(p.name, node(at)) if k in walked else node(p.name))
    word = Word(quoted(f"{plain(called)}.map{ending}"), start, end)
    body: Stat
    if d is not None:
        body = _derived(Word(name, start, end), stat, args, len(d.base.params))
    elif head.linked is not None or _renames(values):
        body = Invoke("call", Word(name, start, end), args, start, end)
    else:
        formals = [Word(w, start, end) for w in (*words, *lengths)]
        macro = quoted(f"{plain(name)}{ending}")
        program.macros[macro] = Macro(word, formals, head.body, types)
        body = OpStat(macro, [*args, *map(node, lengths)], start, start, end)
    last = Operator("-", [node(length), Lit(1, start, end)], start, end)
    loop = For(Word(at, start, end), Lit(0, start, end), last, None, False, [body], start, end)
    program.mapped[word.text] = head
    program.excused[word.text] = program.excused[head.name.text]
    return e.made_for(Func(word, [], params, [loop], start, end), types, word)


def _derived(name: Word, stat: Invoke, args: list[Node], own: int) -> Invoke:
    """The call of a derivative for one element, with the duals that are left out."""
    bars = iter(args[own:])
    given = [bar if is_left_out(bar) else next(bars) for bar in stat.bars]
    start, end = name.start, name.end
    return Invoke("call", name, args[:own], start, end, marks=stat.marks, bars=given)


def declared(name: str, layout: Layout, f: Function, start: int, end: int) -> Declared:
    """A parameter of a function that no text declares, as it would be written."""
    if isinstance(layout, int):
        t = f.registers[layout].type
        value = TypeValue(STACK if isinstance(t, Stack) else NUMBERS, elem_of(t))
        lengths: list[Node | None] | None = [None] * rank_of(t) or None
        written = value.written("", TypeRef("", None, None, lengths, start, end))
    else:
        fields = [declared(quoted(n), inner, f, start, end) for n, inner in layout.fields]
        written = TypeRef(quoted(layout.name), None, fields, None, start, end)
    return Declared(quoted(name), written, start, end)


def _longer(p: Declared, length: Node | None, records: Mapping[str, RecordDef]) -> TypeRef:
    """A parameter's type, with a dimension in front if it is walked."""
    t = p.type
    assert t is not None
    if length is None:
        return t
    args, dims = t.args, t.dims
    if args is None and dims is not None and t.name in records and records[t.name].types:
        args, dims = dims, None
    return TypeRef(t.name, t.frac, t.fields, [length, *(dims or ())], t.start, t.end, args)


def _renames(params: Sequence[Declared]) -> bool:
    """Whether a register of some parameters has a different name."""
    inner = (p.type.fields or () for p in params if p.type is not None)
    return any(p.register for p in params) or any(map(_renames, inner))
