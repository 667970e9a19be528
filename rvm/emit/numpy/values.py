"""From pure expressions and places to NumPy calls over lanes.

A scalar that varies is a vector of W lanes, an array that varies has the lanes as its last axis; a
value that is the same in all lanes is a Python number or a plain array.  Each line is one NumPy
call.  Results are remembered by *value number* until a register that they depend on changes, so an
expression that occurs in several instructions is computed once.

Errors must not be silent: a line that finds failing lanes raises, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import numpy as np

from rvm.emit.numpy import places
from rvm.emit.numpy.known import Known, Value
from rvm.emit.numpy.ufuncs import UFUNC, UFUNCS
from rvm.emit.python.lines import bare
from rvm.emit.python.printer import Printer
from rvm.expr import LENGTHS, Apply, Const, Expr, Place
from rvm.ir.typed import type_of
from rvm.isa import FUNCTIONS, implementation
from rvm.isa import value as total_value
from rvm.numbers import NAMES, Code, compiled, fill, has_own_system, system
from rvm.types import Scalar, elem_of, rank_of


class LaneValues:
    """Prints the values of one segment of straight code.

    `scalars` prints what is the same in all lanes, `special` gives for a function of arrays the
    name of its form over lanes; "" where it has none.
    """

    wide = "_W"
    """The name of the number of lanes."""

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
        self._values = 0
        self.results: dict[str, str] = {}
        """The dtypes and lanes of what ufuncs made, by their variables; see `reuse`."""

    @property
    def varying(self) -> Collection[int]:
        """The registers that differ by lane."""
        return self.known.varying

    @property
    def lines(self) -> list[str]:
        """The printed lines."""
        return self.scalars.text.lines

    # ------------------------------------------------------------ statements

    def begin(self) -> list[str]:
        """Start a statement: its lines, to be filled."""
        self.guard = ""
        return self.scalars.begin()

    def check(self, cond: Expr, want: bool) -> None:
        """A line that raises, naming lanes, unless a varying condition has the required value."""
        text = self.lanes(cond).text
        self.lines.append(f"{'must' if want else 'must_not'}({text}, {self.wide})")

    def factor(self, op: str, t: Scalar, value: Value) -> None:
        """A line that raises where a factor could not be divided out again."""
        if op in "*/" and (factors := system(t).factors) != "any":
            self.lines.append(f"factors({value.text}, {factors!r}, {self.wide})")

    def named(self, text: str, home: int = -1) -> Value:
        """A value in a separate variable."""
        self._values += 1
        value = Value(f"_v{self._values}", home)
        self.lines.append(f"{value.text} = {bare(text)}")
        return value

    def inline(self, node: Expr) -> str:
        """An expression that is the same in all lanes, with no line of its own before it."""
        return self.scalars.inline(node)

    # ------------------------------------------------------------ values

    def lanes(self, node: Expr) -> Value:
        """A node as an operand of NumPy's."""
        number = self.known.number(node)
        if number in self.known.have:
            return self.known.have[number]
        if self.known.differs(node):
            made = self._varying(node)
        elif isinstance(node, Const):
            return Value(self.constant(node), is_full=False)
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
            and _code(node).numpy != "{0}"
        )

    def constant(self, node: Const) -> str:
        """The name of a constant as a NumPy scalar."""
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
        made = self.named(f"asarray({bare(text)}, {dtype})")
        made.is_full = False
        return made

    def _varying(self, node: Expr) -> Value:
        if isinstance(node, Place):
            return self._held(node)
        assert isinstance(node, Apply)
        if node.fn in LENGTHS:
            return self._length(node)
        if FUNCTIONS[node.fn].lazy:
            return self._lazy(node)
        return self.apply(node)

    def apply(self, node: Apply) -> Value:
        """A function."""
        elems = tuple(elem_of(type_of(a)) for a in node.args)
        name = self.special(node.fn)
        if name is not None:
            return self._special(node, name, elems)
        code = _code(node)
        args = [self.lanes(a) for a in node.args]
        if code.numpy == "{0}":
            return args[0]
        t = elem_of(type_of(node))
        texts = [a.text for a in args]
        if self.guard and FUNCTIONS[node.fn].divides and elems[-1].is_exact:
            texts[1] = f"guarded({texts[1]}, {self.guard}, 1)"
        ufunc = UFUNCS.get(code.numpy)
        if not self._by_numpy(node.fn, code, elems):
            made = self.named(self._each(node, elems, code, texts))
        elif ufunc is None:
            copied = ".copy()" * (FUNCTIONS[node.fn].moves and t != elems[-1])
            made = self.named(fill(code.numpy, *texts) + copied)
        else:
            made = self.named(f"{ufunc}({', '.join(texts)})")
            if any(a.is_full for a in args) and not rank_of(type_of(node)):
                self.results[made.text] = system(t).dtype.char + self.wide
        made.is_full = any(a.is_full for a in args)
        return made

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
        """A function of arrays: its form over lanes, or one lane after another."""
        args = [self.lanes(a) for a in node.args]
        t = self.bind(elem_of(type_of(node)))
        ranks = tuple(rank_of(type_of(a)) for a in node.args)
        inside = ", ".join(a.text for a in args)
        if name and not any(map(has_own_system, elems)):
            text = f"{name}({t}, {ranks}, {self.wide}, {inside})"
        else:
            code = self.bind(implementation(node.fn, elems))
            text = f"lane_by_lane({code}, {t}, {ranks}, {self.wide}, {inside})"
        return self.named(text)

    def _length(self, node: Apply) -> Value:
        """A length of a view whose place varies: the same in all lanes."""
        place = node.args[0]
        view = self.lanes(place)
        axis = bare(self.value(node.args[1])) if len(node.args) > 1 else "0"
        return self.named(f"length({view.text}, {rank_of(type_of(place))}, {axis}, {self.wide})")

    def _lazy(self, node: Apply) -> Value:
        """`and`, `or`, `choose` of scalars: later arguments only for the lanes that need them."""
        if rank_of(type_of(node)):
            return self.apply(node)
        condition, *arms = node.args
        first = self.named(f"spread({self.lanes(condition).text}, {self.wide})").text
        others = f"{UFUNC}logical_not({first})"
        masks = (others,) if node.fn == "or" else (first, others)
        found = [self._asked(arm, mask) for arm, mask in zip(arms, masks, strict=False)]
        if node.fn != "choose":
            return self.named(f"{UFUNC}logical_{node.fn}({first}, {found[0]})")
        return self.named(
            f"where({first}, {', '.join(found)}, dtype_{elem_of(type_of(node)).name})"
        )

    def _asked(self, node: Expr, mask: str) -> str:
        """A value that the lanes of a mask need."""
        mask = mask if mask.isidentifier() else self.named(mask).text
        if self.guard:
            mask = self.named(f"{UFUNC}logical_and({mask}, {self.guard})").text
        if self.known.differs(node):
            with self._guarding(mask):
                return self.lanes(node).text
        t = elem_of(type_of(node))
        zero = self.constant(Const(system(t).zero, t))
        return self.named(f"{self.inline(node)} if any_true({mask}) else {zero}").text

    @contextmanager
    def _guarding(self, mask: str) -> Iterator[None]:
        """Within it, only the lanes of a mask matter; what is computed is not used outside."""
        outside, known = self.guard, dict(self.known.have)
        self.guard = mask
        yield
        self.guard, self.known.have = outside, known

    def _held(self, place: Place) -> Value:
        """The value of a place."""
        return places.held(self, place)


def _code(node: Apply) -> Code:
    """The code of a function."""
    return implementation(node.fn, tuple(elem_of(type_of(a)) for a in node.args))
