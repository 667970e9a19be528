"""From pure expressions and places to Python source.

Scalars are local variables, elements of arrays are read and written through
memoryviews, which give Python numbers.  What the source cannot do right away
raises; see `rvm.emit.python`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from rvm.expr import Apply, Const, Expr, Index, Part, Place, Span, Step, Transposed, children
from rvm.ir.typed import Unprintable, element, part_name, parted, type_of
from rvm.isa import FUNCTIONS, implementation
from rvm.isa.functions.indexing import HIGH
from rvm.numbers import fill
from rvm.program import Function
from rvm.types import C128, I64, U64, Array, Scalar, elem_of, rank_of

RESERVED = (
    "regs",
    "block",
    "n",
    "state",
    "how",
    "done",
    "error",
    "run",
    "LINES",
    "GUARDS",
    "exactly",
)
COUNTING = ("hits", "early", "sizes", "cells", "erased")
"""Names that source which counts uses besides those."""
MAX_HEIGHT = 16
"""Levels of functions that one line of source nests."""


def local_names(function: Function, taken: Iterable[str]) -> list[str]:
    """A Python variable for each register, as near to its name as can be."""
    used = {*RESERVED, *COUNTING, *taken, *keyword.kwlist}
    out = []
    for register in function.registers:
        base = re.sub(r"\W", "_", register.name)
        base = base if base.isidentifier() and not base.startswith("_") else f"r{base}"
        name, k = base, 1
        while name in used:
            k += 1
            name = f"{base}_{k}"
        used |= {name, f"{name}_m"}
        out.append(name)
    return out


class ValuePrinter:
    """Prints the expressions and places of one function as Python."""

    def __init__(self, function: Function, names: dict[str, object]) -> None:
        self.function = function
        self.constants: dict[str, object] = {}
        """Values that have no literal, by the names that the source gives them."""
        self.regs = local_names(function, names)
        self.elements: set[int] = set()
        """Array registers whose elements are accessed through a memoryview `x_m`."""
        self._views: dict[str, int] = {}
        self._temps = 0
        self._lines: list[str] = []
        self._bound: dict[Expr, str] = {}
        self._checked: set[str] = set()
        """Variables that a line before has found not to be negative."""
        self.asks_exactly = False
        """Whether a line asks `exactly`: whether zeros of two signs are told apart."""
        self._inline = False
        """Whether checks must stand inside the expression: no line goes before it."""

    # ------------------------------------------------------------ places

    def _place(self, place: Place) -> str:
        """A place as an expression that `_store` stores to, and that `_loaded` makes readable.

        Index computations are put into lines of their own first.
        """
        name = self.regs[place.reg]
        if not place.path:
            return name
        items = element(place)
        if items is not None and isinstance(self.function.registers[place.reg].type, Array):
            keys = ", ".join(self._key(i) for i in items)
            if elem_of(self.function.registers[place.reg].type).is_complex:
                base = f"{name}[{keys}]"
                return f"{base}.{part_name(place)}" if parted(place) else base
            return self._element_name(place.reg, name) + f"[{keys}]"
        if isinstance(self.function.registers[place.reg].type, Scalar):
            return f"{name}.{part_name(place)}"
        if isinstance(type_of(place), Array):
            raise Unprintable
        base, last = self._split(place)
        return f"{base}[{last}]"

    def _loaded(self, place: Place, found: str) -> str:
        """What `_place` found, as a Python number.

        NumPy's own numbers are kept out: complex ones multiply with other roundings.
        """
        if not place.path or not isinstance(self.function.registers[place.reg].type, Array):
            return found
        if element(place) is not None and not parted(place) and type_of(place) != C128:
            return found
        if not parted(place):
            return f"{found}.item()"
        return f"{found[: found.rindex('.')]}.item().{part_name(place)}"

    def _split(self, place: Place) -> tuple[str, str]:
        """A scalar deep in a chain of views: the view, and the element's key."""
        path = list(place.path)
        part = ""
        if isinstance(path[-1], Part):
            part = "." + part_name(place)
            path.pop()
        if not isinstance(path[-1], Index) or part:
            raise Unprintable
        last = cast(Index, path.pop())
        base = self._followed(self.regs[place.reg], path)
        return base, ", ".join(self._key(cast(Expr, i)) for i in last.items)

    def _key(self, index: Expr) -> str:
        """An index that is known not to be negative, as an atom."""
        if isinstance(index, Const):
            return repr(index.value) if index.value >= 0 else "trouble()"
        text = self.value(index)
        if not text.isidentifier():
            temp = self._temp()
            self._lines.append(f"{temp} = {bare(text)}")
            text = temp
        if not is_nonnegative(index):
            self._check(text)
        return text

    def _check(self, variable: str) -> None:
        """A line that gives up if a variable is negative, unless there is one already."""
        if variable not in self._checked:
            self._lines.append(f"if {variable} < 0: trouble()")
            self._checked.add(variable)

    def _store(self, place: Place, load: str, value: str) -> str:
        """The line that writes a place that `_place` found."""
        if not parted(place):
            return f"{load} = {value}"
        base = load[: load.rindex(".")]
        if part_name(place) == "real":
            return f"{base} = complex({value}, {base}.imag)"
        return f"{base} = complex({base}.real, {value})"

    def _view(self, place: Place) -> str:
        """An array place as a NumPy view."""
        return self._followed(self.regs[place.reg], place.path)

    def _followed(self, view: str, path: Sequence[Step]) -> str:
        """A view followed along steps of a path."""
        for step in path:
            if isinstance(step, Transposed):
                view += ".T"
            elif isinstance(step, Part):
                view += ".real" if step.name == "re" else ".imag"
            else:
                items = [self._item(i, view, axis) for axis, i in enumerate(step.items)]
                view += f"[{', '.join(items)}]"
        return view

    def _item(self, item: Expr | Span, view: str, axis: int) -> str:
        if not isinstance(item, Span):
            return self._nonnegative(item)
        if item.lo is None and item.hi is None:
            return ":"
        # NumPy clips slices; ours must lie inside, which only the length can tell.
        lo = "0" if item.lo is None else bare(self.value(item.lo))
        hi = "None" if item.hi is None else bare(self.value(item.hi))
        return f"span({lo}, {hi}, {view}.shape[{axis}])"

    def _nonnegative(self, index: Expr) -> str:
        if isinstance(index, Const):
            return repr(index.value) if index.value >= 0 else "trouble()"
        text = self.value(index)
        if text in self._checked or is_nonnegative(index):
            return bare(text)
        if not text.isidentifier():
            temp = self._temp()
            return f"{temp} if ({temp} := {bare(text)}) >= 0 else trouble()"
        if self._inline:
            return f"{text} if {text} >= 0 else trouble()"
        self._check(text)
        return text

    # ------------------------------------------------------------ values

    def value(self, node: Expr) -> str:
        """An expression as Python source: an atom, or in parentheses."""
        if node in self._bound:
            return self._bound[node]
        match node:
            case Const(v):
                return self.constant(v)
            case Place():
                return self._read(node)
            case Apply("dim" | "len", (Place(reg, ()), *axis)):
                k = cast(Const, axis[0]).value if axis else 0
                if not isinstance(k, int) or not 0 <= k < rank_of(type_of(node.args[0])):
                    raise Unprintable
                return f"{self.regs[reg]}.shape[{k}]"
            case Apply("for_end", (a, b, Const(1))):
                # The template serves every step; that of 1, which is nearly all, is simpler.
                stop, temp, start = self.value(b), self._temp(), self.value(a)
                inside = f"{start} <= ({temp} := {stop}) < {HIGH}"
                outside = f"{start} if {temp} < {start} else for_end({start}, {temp}, 1)"
                return f"({temp} + 1 if {inside} else {outside})"
            case Apply("<<", (a, Const(k))) if _unsigned(a) and 0 <= k < elem_of(type_of(a)).bits:
                return f"({self.value(a)} << {k} & {(1 << elem_of(type_of(a)).bits) - 1})"
            case Apply(fn, args):
                elems = tuple(elem_of(type_of(a)) for a in args)
                code = implementation(fn, elems)
                texts = self._arguments(fn, args)
                if any(rank_of(type_of(a)) for a in args):
                    text = self._fill(code.numpy, *texts)
                    return text if rank_of(type_of(node)) else f"plain({text})"
                return self._fill(code.python, *texts)
            case _:
                raise TypeError(f"a template cannot be printed: {node!r}")

    def _arguments(self, fn: str, args: tuple[Expr, ...]) -> list[str]:
        first = self.value(args[0])
        outside, self._inline = self._inline, self._inline or FUNCTIONS[fn].lazy
        try:
            return [first, *(self.value(a) for a in args[1:])]
        finally:
            self._inline = outside

    def _read(self, place: Place) -> str:
        name = self.regs[place.reg]
        if not place.path:
            return name
        if rank_of(type_of(place)):
            return self._view(place)
        base_type = self.function.registers[place.reg].type
        items = element(place)
        if isinstance(base_type, Scalar):
            return f"{name}.{part_name(place)}"
        if items is None:
            base, last = self._split(place)
            return f"{base}[{last}].item()"
        keys = ", ".join(self._nonnegative(i) for i in items)
        if elem_of(base_type).is_complex:
            part = f".{part_name(place)}" if parted(place) else ""
            return item_of(name, keys, len(items)) + part
        return self._read_element(place, name, keys, len(items))

    def _element_name(self, reg: int, name: str) -> str:
        """What elements of an array are stored to: a memoryview, which gives Python numbers."""
        self.elements.add(reg)
        return f"{name}_m"

    def _read_element(self, place: Place, name: str, keys: str, n: int) -> str:
        return f"{self._element_name(place.reg, name)}[{keys}]"

    def _share(self, values: Sequence[Expr]) -> None:
        """Compute what occurs several times in `values` once, in a line before.

        Nothing is taken out of what may not be evaluated at all.
        """
        nodes = [n for v in values for n in _surely_evaluated(v)]
        heights = _heights(nodes)
        counts = Counter(n for n in nodes if isinstance(n, Apply))
        for node in sorted(counts, key=heights.__getitem__):
            # Python's parser nests no deeper than 200 parentheses.
            deep = heights[node] % MAX_HEIGHT == 0
            if node in self._bound or rank_of(type_of(node)) or not (deep or counts[node] > 1):
                continue
            temp = self._temp()
            self._lines.append(f"{temp} = {bare(self.value(node))}")
            self._bound[node] = temp

    def constant(self, v: Any) -> str:
        """A constant as a literal, or as the name of a bound value."""
        if isinstance(v, float):
            if math.isnan(v):
                return self.bind(v)
            if math.isinf(v):
                return "inf" if v > 0 else "(-inf)"
        if isinstance(v, complex):
            return self.bind(v)
        text = repr(v)
        return f"({text})" if text.startswith("-") else text

    def bind(self, v: object) -> str:
        """A name for a value in the source's namespace."""
        for name, known in self.constants.items():
            if known is v:
                return name
        name = f"_k{len(self.constants)}"
        self.constants[name] = v
        return name

    def _fill(self, template: str, *args: str) -> str:
        """A template with its arguments and fresh temporaries put in."""
        return (
            fill(template, *args, fresh=self._temp() + "_")
            if "{t" in template
            else fill(template, *args)
        )

    def _temp(self) -> str:
        self._temps += 1
        return f"_{self._temps}"


def _surely_evaluated(node: Expr) -> Iterator[Expr]:
    """The parts of an expression that evaluating it evaluates, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        lazy = isinstance(top, Apply) and FUNCTIONS[top.fn].lazy
        stack.extend(islice(children(top), 1) if lazy else children(top))


def _heights(nodes: Sequence[Expr]) -> dict[Expr, int]:
    """How many levels of functions lie below each node; `nodes` has parents first."""
    out: dict[Expr, int] = {}
    for node in reversed(nodes):
        below = max((out.get(c, 0) for c in children(node)), default=0)
        out[node] = below + isinstance(node, Apply)
    return out


def is_nonnegative(index: Expr) -> bool:
    """Whether an integer cannot be negative, as far as its own form tells."""
    match index:
        case Const(v):
            return bool(v >= 0)
        case Apply("&", (a, b)):
            return is_nonnegative(a) or is_nonnegative(b)
        case Apply("%", (_, Const(v))):
            return bool(v > 0)
        case Apply(">>", (a, _)):
            return is_nonnegative(a)
        case Apply("dim" | "len", _):
            return True
        case Apply("i64", (a,)) if elem_of(type_of(a)) not in (U64, I64):
            return is_nonnegative(a)
    return _unsigned(index)


def _unsigned(node: Expr) -> bool:
    return isinstance(node.type, Scalar) and node.type.is_integer and not node.type.is_signed


def is_small(node: Expr) -> bool:
    return isinstance(node, Const) and 0 <= node.value < 2**31


def item_of(name: str, keys: str, n: int) -> str:
    """An element of an array as a Python number."""
    return f"{name}.item({keys})" if n == 1 else f"{name}[{keys}].item()"


def bare(text: str) -> str:
    """Without one pair of outer parentheses, where they enclose it all."""
    if not (text.startswith("(") and text.endswith(")")) or ":=" in text:
        return text
    depth = 0
    for k, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]
