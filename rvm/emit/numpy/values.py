"""From pure expressions and places to NumPy calls over lanes.

A scalar that varies is a vector of W lanes, an array that varies has the lanes as its last axis;
what is the same in all lanes is a Python number or a plain array.  Lines are made of one NumPy
call each, with buffers to write to.  What was computed is remembered by *value number* until a
register that it depends on changes, so that an expression which stands in several instructions
is computed once.

Nothing may fail silently: a line that finds lanes at fault raises, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import numpy as np

from rvm.emit.numpy import places
from rvm.emit.numpy.known import Known, Value
from rvm.emit.numpy.ufuncs import KEYWORD, UFUNC, UFUNCS
from rvm.emit.python.lines import bare
from rvm.emit.python.printer import Printer
from rvm.expr import LENGTHS, Apply, Const, Expr, Place
from rvm.ir.typed import type_of
from rvm.isa import FUNCTIONS, implementation
from rvm.isa import value as total_value
from rvm.numbers import NAMES, Code, compiled, fill, has_own_system, system
from rvm.types import Scalar, elem_of, rank_of


class Scalars(Printer):
    """Prints what is the same in all lanes as in single runs, but by functions that never raise."""

    total = True


class LaneValues:
    """Prints the values of one segment of straight code.

    `scalars` prints what is the same in all lanes, `special` gives for a function of arrays the
    name of its form over lanes; "" where it has none.
    """

    def __init__(
        self, scalars: Printer, known: Known, special: Callable[[str], str | None]
    ) -> None:
        self.scalars = scalars
        self.known = known
        self.special = special
        self.function = scalars.function
        self.regs = scalars.regs
        self.builder = scalars.builder
        self.bind = scalars.bind
        self.value = scalars.value
        """An expression that is the same in all lanes."""
        self.guard = ""
        self._keys: dict[tuple[str, str], str] = {}
        self._later: list[Value] = []
        """Values that are used until the end of the statement."""

    @property
    def varying(self) -> Collection[int]:
        """The registers that differ by lane."""
        return self.known.varying

    @property
    def lines(self) -> list[str]:
        """What has been printed."""
        return self.scalars.text.lines

    # ------------------------------------------------------------ statements

    def begin(self) -> list[str]:
        """Start a statement: its lines, to be filled."""
        self.guard = ""
        return self.scalars.begin()

    def end(self) -> None:
        """Finish a statement."""
        self.known.spend(*self._later)
        self._later = []

    def check(self, cond: Expr, want: bool) -> None:
        """A line that raises, naming lanes, unless a condition that varies is what it must be."""
        held = self.lanes(cond)
        self.lines.append(f"{'must' if want else 'must_not'}({held.text}, _W)")
        self.known.spend(held)

    def factor(self, op: str, t: Scalar, value: Value) -> None:
        """A line that raises where a factor could not be divided out again."""
        if op in "*/" and (factors := system(t).factors) != "any":
            self.lines.append(f"factors({value.text}, {factors!r}, _W)")

    def named(self, text: str, home: int = -1) -> Value:
        """A value put into a variable of its own."""
        value = self.known.made(f"_v{self.known.serials}", home=home)
        self.lines.append(f"{value.text} = {bare(text)}")
        return value

    def inline(self, node: Expr) -> str:
        """An expression that is the same in all lanes, and that no line goes before."""
        return self.scalars.inline(node)

    # ------------------------------------------------------------ values

    def lanes(self, node: Expr) -> Value:
        """A node as an operand of NumPy's: to be given back with `spend`."""
        number = self.known.number(node)
        if number in self.known.have:
            return self.known.have[number]
        if self.known.differs(node):
            made = self._varying(node)
        elif isinstance(node, Const):
            return Value(self.constant(node))
        else:
            made = self._uniform(node)
        self.known.remember(number, made)
        return made

    def is_new(self, node: Expr) -> bool:
        """Whether a value that varies is that of a function which is yet to be computed."""
        return (
            isinstance(node, Apply)
            and self.known.differs(node)
            and self.known.number(node) not in self.known.have
            and not (node.fn in LENGTHS or FUNCTIONS[node.fn].lazy)
        )

    def constant(self, node: Const) -> str:
        """The name of a constant as NumPy has it."""
        assert isinstance(node.type, Scalar)
        key = str(node.type), repr(node.value)
        if key not in self._keys:
            self._keys[key] = self.bind(np.asarray(node.value, system(node.type).dtype))
        return self._keys[key]

    def _uniform(self, node: Expr) -> Value:
        text = self.value(node)
        if rank_of(type_of(node)):
            return self.named(f"{text}[..., None]")
        dtype = self.bind(system(elem_of(type_of(node))).dtype)
        return self.named(f"asarray({bare(text)}, {dtype})")

    def _varying(self, node: Expr) -> Value:
        if isinstance(node, Place):
            return self._held(node)
        assert isinstance(node, Apply)
        if node.fn in LENGTHS:
            return self._length(node)
        if FUNCTIONS[node.fn].lazy:
            return self._lazy(node)
        return self.apply(node)

    def apply(self, node: Apply, fresh: str = "") -> Value:
        """A function; into a new vector called `fresh` if that is given, else into a buffer."""
        elems = tuple(elem_of(type_of(a)) for a in node.args)
        name = self.special(node.fn)
        if name is not None:
            return self._special(node, name, elems)
        code = implementation(node.fn, elems)
        if code.numpy == "{0}":
            same = self.lanes(node.args[0])
            if not fresh:
                return same
            dtype = self.bind(system(elem_of(type_of(node))).dtype)
            self.lines.append(f"{fresh} = vector({same.text}, {dtype}, _W)")
            self.known.spend(same)
            return self.known.made(fresh)
        args = [self.lanes(a) for a in node.args]
        ranked = rank_of(type_of(node)) > 0
        t = elem_of(type_of(node))
        texts = [a.text for a in args]
        if self.guard and FUNCTIONS[node.fn].divides and elems[-1].is_exact:
            texts[1] = f"guarded({texts[1]}, {self.guard}, 1)"
        if not self._by_numpy(node.fn, code, elems):
            text = self._each(node, elems, code, texts)
        else:
            ufunc = UFUNCS.get(code.numpy)
            if ufunc is not None:
                self.known.spend(*args)
                if fresh and all(a.home < 0 and a.temp is None for a in args):
                    # What lies in a register may have the value of one that is the same in all.
                    self.lines.append(f"{fresh} = own({ufunc}({', '.join(texts)}), _W)")
                    return self.known.made(fresh)
                return self._into(ufunc, texts, t, ranked, fresh)
            text = fill(code.numpy, *texts) + ".copy()" * (
                FUNCTIONS[node.fn].moves and t != elems[-1]
            )
        self.known.spend(*args)
        if fresh:
            self.lines.append(f"{fresh} = own({bare(text)}, _W)")
            return self.known.made(fresh)
        return self.named(text)

    def _into(self, ufunc: str, texts: list[str], t: Scalar, ranked: bool, fresh: str) -> Value:
        inside = ", ".join(texts)
        if fresh:
            self.lines.append(f"{fresh} = {ufunc}({inside})")
            return self.known.made(fresh)
        if ranked:
            return self.named(f"{ufunc}({inside})")
        temp = self.known.buffer(system(t).dtype.char)
        value = self.known.made(f"_b{temp[1]}", temp)
        out = "out=" if ufunc in KEYWORD else ""
        self.lines.append(f"{ufunc}({inside}, {out}{value.text})")
        return value

    def _by_numpy(self, fn: str, code: Code, elems: tuple[Scalar, ...]) -> bool:
        """Whether NumPy computes a function."""
        return bool(code.numpy)

    def _each(self, node: Apply, elems: tuple[Scalar, ...], code: Code, texts: list[str]) -> str:
        dtype = self.bind(system(elem_of(type_of(node))).dtype)
        name = code.python.removesuffix("({0})").removesuffix("({0}, {1})")
        quick = NAMES[name] if name in NAMES else compiled(code.python, len(texts), NAMES)
        whole = self.bind(total_value(node.fn, elems))
        return f"each({self.bind(quick)}, {whole}, {dtype}, {', '.join(texts)})"

    def _special(self, node: Apply, name: str, elems: tuple[Scalar, ...]) -> Value:
        """A function of arrays, by its form over lanes or lane after lane."""
        args = [self.lanes(a) for a in node.args]
        t = self.bind(elem_of(type_of(node)))
        ranks = tuple(rank_of(type_of(a)) for a in node.args)
        inside = ", ".join(a.text for a in args)
        if name and not any(map(has_own_system, elems)):
            text = f"{name}({t}, {ranks}, _W, {inside})"
        else:
            code = self.bind(implementation(node.fn, elems))
            text = f"lane_by_lane({code}, {t}, {ranks}, _W, {inside})"
        self.known.spend(*args)
        return self.named(text)

    def _length(self, node: Apply) -> Value:
        """A length of a view whose place varies: the same in all lanes."""
        place = node.args[0]
        view = self.lanes(place)
        axis = bare(self.value(node.args[1])) if len(node.args) > 1 else "0"
        self.known.spend(view)
        return self.named(f"length({view.text}, {rank_of(type_of(place))}, {axis}, _W)")

    def _lazy(self, node: Apply) -> Value:
        """`and`, `or`, `choose` of scalars: what follows only for lanes that ask for it."""
        if rank_of(type_of(node)):
            return self.apply(node)
        if node.fn == "choose":
            return self._chosen(node)
        one, two = node.args
        asked = self.lanes(one)
        if not self.known.differs(two):
            test = "any_true" if node.fn == "and" else "any_false"
            text = f"{self.inline(two)} if {test}({asked.text}) else {node.fn == 'or'}"
            self.known.spend(asked)
            return self.named(f"{UFUNC}logical_{node.fn}({asked.text}, {text})")
        first = self.named(f"spread({asked.text}, _W)")
        mask = first.text
        if node.fn == "or":
            mask = self.named(f"{UFUNC}logical_not({first.text})").text
        if self.guard:
            mask = self.named(f"{UFUNC}logical_and({mask}, {self.guard})").text
        with self._guarding(mask):
            second = self.lanes(two)
        self.known.spend(asked, second)
        return self.named(f"{UFUNC}logical_{node.fn}({first.text}, {second.text})")

    def _chosen(self, node: Apply) -> Value:
        """`choose`: each value for the lanes that take it."""
        t = elem_of(type_of(node))
        condition, *arms = node.args
        asked = self.lanes(condition)
        first = self.named(f"spread({asked.text}, _W)")
        found = []
        for arm, text in zip(arms, (first.text, f"{UFUNC}logical_not({first.text})"), strict=True):
            mask = self.named(text).text
            if self.guard:
                mask = self.named(f"{UFUNC}logical_and({mask}, {self.guard})").text
            if self.known.differs(arm):
                with self._guarding(mask):
                    found.append(self.lanes(arm))
                continue
            zero = self.constant(Const(system(t).zero, t))
            found.append(self.named(f"{self.inline(arm)} if any_true({mask}) else {zero}"))
        one, two = (v.text for v in found)
        self.known.spend(asked, *found)
        return self.named(f"where({first.text}, {one}, {two}, dtype_{t.name})")

    @contextmanager
    def _guarding(self, mask: str) -> Iterator[None]:
        """Within it, only the lanes of a mask matter; what is computed is not used outside."""
        outside, known = self.guard, dict(self.known.have)
        self.guard = mask
        yield
        self.guard, self.known.have = outside, known

    def _held(self, place: Place) -> Value:
        """What a place holds."""
        return places.held(self, place)

    def until_end(self, node: Expr) -> str:
        """A value over lanes that is used until the end of the statement."""
        held = self.lanes(node)
        self._later.append(held)
        return held.text
