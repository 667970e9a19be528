"""From statements to Python source: scalars as local variables, arrays as NumPy calls.

What the source cannot do right away (an edge case of a function, a failed check)
raises an exception before anything has changed; the engine then has the whole
instruction executed by the reference engine.  So there are no messages here.
"""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from rvm.expr import Apply, Const, Expr, Index, Part, Place, Span, Transposed, children
from rvm.image import Clash
from rvm.isa import implementation
from rvm.numbers import fill, system
from rvm.program import Function
from rvm.stmt import (
    Alloc,
    Drop,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import (
    I64,
    SIGNED,
    U64,
    UNSIGNED,
    Array,
    Scalar,
    Stack,
    ValueType,
    elem_of,
    rank_of,
)

AUGMENTED = re.compile(r"\(?\{0\} (\+|-|\*|/|\^) \{1\}\)?")
"""Templates that an augmented assignment does in place."""
RESERVED = frozenset(["regs", "block", "n", "state", "how", "done", "error", "run", "LINES"])
LAZY = ("and", "or")
MAX_HEIGHT = 16
"""Levels of functions that one line of source nests."""


class Unprintable(Exception):
    """A statement that this printer leaves to the reference engine."""


def local_names(function: Function, taken: Iterable[str]) -> list[str]:
    """A Python variable for each register, as near to its name as can be."""
    used = {*RESERVED, *taken, *keyword.kwlist}
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


class Printer:
    """Prints the statements of one function's code as lines of Python."""

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
        self._inline = False
        """Whether checks must stand inside the expression: no line goes before it."""

    # ------------------------------------------------------------ statements

    def instruction(self, stmts: Sequence[Stmt], clashes: Sequence[Clash] = ()) -> list[str]:
        """The lines that do an instruction; Unprintable if it is not for this printer."""
        if len(stmts) > 1:
            # Were the second to fail, the first would have been done already.
            raise Unprintable
        self._lines, self._temps, self._bound, self._checked = [], 0, {}, set()
        self._inline = False
        self._apart(clashes)
        self._print(stmts[0])
        return self._lines

    def condition(self, cond: Expr) -> tuple[list[str], str]:
        """A condition as an expression, and the lines that go before it."""
        self._lines, self._temps, self._bound, self._checked = [], 0, {}, set()
        self._inline = False
        self._share([cond])
        return self._lines, self.value(cond)

    def _print(self, stmt: Stmt) -> None:
        match stmt:
            case Update():
                self._update(stmt)
            case Exchange(a, b):
                self._exchange(a, b)
            case Map(dsts, values, _):
                self._map(dsts, values)
            case When(cond, body):
                self._share([cond])
                self._lines.append(f"if {self.value(cond)}:")
                outer, self._lines = self._lines, []
                for inner in body:
                    self._print(inner)
                outer.extend("    " + line for line in self._lines)
                self._lines = outer
            case Alloc(reg, v):
                self._alloc(reg, v)
            case Free(reg, v):
                self._free(reg, v)
            case Fresh(reg):
                self._fresh(reg)
            case Drop(reg):
                self._drop(reg)
            case Push(src, stack):
                zero = self.constant(system(_scalar(src)).zero)
                load = self._place(src)
                self._lines.append(f"push(state, {self.regs[stack.reg]}, {load})")
                self._lines.append(self._store(src, load, zero))
            case Pop(dst, stack):
                zero = self.constant(system(_scalar(dst)).zero)
                load = self._place(dst)
                s = self.regs[stack.reg]
                self._lines.append(f"if {load} != {zero} or not {s}: trouble()")
                self._lines.append(self._store(dst, load, f"pop(state, {s})"))
            case Land(cond, _):
                self._share([cond])
                text = self.value(cond)
                if text != "False":
                    self._lines.append(f"if {text}: trouble()")
            case _:
                raise Unprintable

    def _update(self, stmt: Update) -> None:
        t = elem_of(_type(stmt.dst))
        code = implementation(stmt.op, (t, t))
        if rank_of(_type(stmt.dst)):
            view = self._view(stmt.dst)
            self._share([stmt.value])
            value = self.value(stmt.value)
            if stmt.op in "*/":
                value = f"factor({value}, {t.is_log})"
            self._lines.append(f"_d = {view}; _v = {value}")
            self._lines.append(f"fits(_d, _v); _d[...] = {self._fill(code.numpy, '_d', '_v')}")
            return
        load = self._place(stmt.dst)
        self._share([stmt.value])
        value = self.value(stmt.value)
        if stmt.op in "*/":
            test = f"not {'cisfinite' if t.is_complex else 'isfinite'}(_v)"
            self._lines.append(f"_v = {value}")
            self._lines.append(f"if {test if t.is_log else 'not _v or ' + test}: trouble()")
            value = "_v"
        if t.name in SIGNED and stmt.op in "+-" and _small(stmt.value) and not stmt.dst.path:
            # Only one end of the range can be passed, so one comparison finds it.
            end = 2 ** (t.bits - 1)
            passed = f">= {end}" if stmt.op == "+" else f"< -{end}"
            self._lines.append(f"{load} {stmt.op}= {value}")
            self._lines.append(f"if {load} {passed}: {load} = wrap_{t}({load})")
            return
        plain = AUGMENTED.fullmatch(code.python)
        if plain and not _parted(stmt.dst):
            self._lines.append(f"{load} {plain[1]}= {_bare(value)}")
        else:
            new = self._fill(code.python, load, value)
            self._lines.append(self._store(stmt.dst, load, _bare(new)))

    def _exchange(self, a: Place, b: Place) -> None:
        if isinstance(_type(a), Array):
            self._lines.append(f"exchange({self._view(a)}, {self._view(b)})")
            return
        x, y = self._place(a), self._place(b)
        if _parted(a) or _parted(b):
            self._lines.append(f"_v = {x}; _w = {y}")
            self._lines.append(self._store(a, x, "_w"))
            # A store to one part rebuilds the whole number, so the other is written after it.
            self._lines.append(self._store(b, y, "_v"))
        else:
            self._lines.append(f"{x}, {y} = {y}, {x}")

    def _map(self, dsts: tuple[Place, ...], values: tuple[Expr, ...]) -> None:
        if any(isinstance(_type(d), Array) for d in dsts):
            views = ", ".join(self._view(d) for d in dsts)
            self._share(values)
            new = ", ".join(self.value(v) for v in values)
            self._lines.append(f"store_all(({views},), ({new},))")
            return
        loads = [self._place(d) for d in dsts]
        for d, load in zip(dsts, loads, strict=True):
            # Within the values a destination is read where it was just found.
            if d.path:
                self._bound[d] = load
        self._share(values)
        new_values = [self.value(v) for v in values]
        if any(map(_parted, dsts)):
            temps = [self._temp() for _ in dsts]
            self._lines.append(f"{', '.join(temps)}, = {', '.join(new_values)},")
            for d, load, temp in zip(dsts, loads, temps, strict=True):
                self._lines.append(self._store(d, load, temp))
        else:
            right = ", ".join(new_values) if len(dsts) > 1 else _bare(new_values[0])
            self._lines.append(f"{', '.join(loads)} = {right}")

    def _alloc(self, reg: Place, v: Expr | None) -> None:
        register = self.function.registers[reg.reg]
        name = self.regs[reg.reg]
        if isinstance(register.type, Stack):
            self._lines.append(f"{name} = []")
        elif isinstance(register.type, Array):
            assert v is not None
            t = self.bind(system(register.type.elem))
            self._lines.append(
                f"{name} = make_array(state, {t}, {self._shape(register.dims)}, {self.value(v)})"
            )
            self._look(reg.reg, f"memoryview({name})")
        else:
            assert v is not None
            self._lines.append(f"{name} = {_bare(self.value(v))}")

    def _free(self, reg: Place, v: Expr | None) -> None:
        register = self.function.registers[reg.reg]
        name = self.regs[reg.reg]
        if isinstance(register.type, Stack):
            self._lines.append(f"if {name}: trouble()")
        elif isinstance(register.type, Array):
            assert v is not None
            t = self.bind(system(register.type.elem))
            self._lines.append(
                f"drop_array(state, {t}, {name}, {self._shape(register.dims)}, {self.value(v)})"
            )
            self._look(reg.reg, "None")
        else:
            assert v is not None
            self._share([v])
            value = self.value(v)
            if register.type.is_exact:
                self._lines.append(f"if {name} != {value}: trouble()")
            else:
                t = self.bind(system(register.type))
                self._lines.append(f"_v = {value}")
                self._lines.append(f"if {name} != _v: residue(state, {t}, {name}, _v)")
        self._lines.append(f"{name} = None")

    def _fresh(self, reg: Place) -> None:
        register, name = self.function.registers[reg.reg], self.regs[reg.reg]
        if isinstance(register.type, Scalar):
            self._lines.append(f"{name} = {self.constant(system(register.type).zero)}")
            return
        if isinstance(register.type, Stack):
            self._lines.append(f"{name} = []")
            return
        t = self.bind(system(register.type.elem))
        self._lines.append(f"{name} = zeros(state, {t}, {self._shape(register.dims)})")
        self._look(reg.reg, f"memoryview({name})")

    def _drop(self, reg: Place) -> None:
        register, name = self.function.registers[reg.reg], self.regs[reg.reg]
        if isinstance(register.type, Stack):
            self._lines.append(f"if {name}: trouble()")
        else:
            t = self.bind(system(elem_of(register.type)))
            test = f"if {name}: " if isinstance(register.type, Scalar) else ""
            self._lines.append(f"{test}forget(state, {t}, {name})")
            self._look(reg.reg, "None")
        self._lines.append(f"{name} = None")

    def _look(self, reg: int, view: str) -> None:
        """Bind the memoryview of a local array; needed only if an element is ever accessed."""
        line = f"{self.regs[reg]}_m = {view}"
        self._views[line] = reg
        self._lines.append(line)

    def is_needed(self, line: str) -> bool:
        """Whether a line does something, now that all instructions have been printed."""
        return self._views.get(line, -1) in (-1, *self.elements)

    def _shape(self, dims: Sequence[Expr | None]) -> str:
        return f"({''.join(self.value(d) + ', ' for d in dims if d is not None)})"

    def _apart(self, clashes: Sequence[Clash]) -> None:
        for a, b, same_ok in clashes:
            one, two = _element(a), _element(b)
            if one is None or two is None or len(one) != len(two):
                raise Unprintable
            if same_ok:
                continue
            test = " and ".join(
                f"{self.value(i)} == {self.value(j)}" for i, j in zip(one, two, strict=True)
            )
            self._lines.append(f"if {test}: trouble()")

    # ------------------------------------------------------------ places

    def _place(self, place: Place) -> str:
        """A place as an expression that can be read, and stored to by `_store`.

        Index computations are put into lines of their own first.
        """
        name = self.regs[place.reg]
        if not place.path:
            return name
        items = _element(place)
        if items is not None and isinstance(self.function.registers[place.reg].type, Array):
            keys = ", ".join(self._key(i) for i in items)
            if elem_of(self.function.registers[place.reg].type).is_complex:
                base = f"{name}[{keys}]"
                return f"{base}.{_part(place)}" if _parted(place) else base
            return self._element_name(place.reg, name) + f"[{keys}]"
        if isinstance(self.function.registers[place.reg].type, Scalar):
            return f"{name}.{_part(place)}"
        if isinstance(_type(place), Array):
            raise Unprintable
        base, last = self._split(place)
        return f"{base}[{last}]"

    def _split(self, place: Place) -> tuple[str, str]:
        """A scalar deep in a chain of views: the view, and the element's key."""
        path = list(place.path)
        part = ""
        if isinstance(path[-1], Part):
            part = "." + _part(place)
            path.pop()
        if not isinstance(path[-1], Index) or part:
            raise Unprintable
        last = cast(Index, path.pop())
        base = self.regs[place.reg] + "".join(map(self._step, path))
        return base, ", ".join(self._key(cast(Expr, i)) for i in last.items)

    def _key(self, index: Expr) -> str:
        """An index that is known not to be negative, as an atom."""
        if isinstance(index, Const):
            return repr(index.value) if index.value >= 0 else "trouble()"
        text = self.value(index)
        if not text.isidentifier():
            temp = self._temp()
            self._lines.append(f"{temp} = {_bare(text)}")
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
        if not _parted(place):
            return f"{load} = {value}"
        base = load[: load.rindex(".")]
        if _part(place) == "real":
            return f"{base} = complex({value}, {base}.imag)"
        return f"{base} = complex({base}.real, {value})"

    def _view(self, place: Place) -> str:
        """An array place as a NumPy view."""
        return self.regs[place.reg] + "".join(map(self._step, place.path))

    def _step(self, step: Index | Part | Transposed) -> str:
        if isinstance(step, Transposed):
            return ".T"
        if isinstance(step, Part):
            return ".real" if step.name == "re" else ".imag"
        out = []
        for item in step.items:
            if isinstance(item, Span):
                if item.lo is None and item.hi is None:
                    out.append(":")
                    continue
                # NumPy clips slices; ours must lie inside, which only the length can tell.
                raise Unprintable
            out.append(self._nonnegative(item))
        return f"[{', '.join(out)}]"

    def _nonnegative(self, index: Expr) -> str:
        if isinstance(index, Const):
            return repr(index.value) if index.value >= 0 else "trouble()"
        text = self.value(index)
        if text in self._checked or is_nonnegative(index):
            return _bare(text)
        if not text.isidentifier():
            temp = self._temp()
            return f"{temp} if ({temp} := {_bare(text)}) >= 0 else trouble()"
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
                if not isinstance(k, int) or not 0 <= k < rank_of(_type(node.args[0])):
                    raise Unprintable
                return f"{self.regs[reg]}.shape[{k}]"
            case Apply("for_end", (a, b, Const(1))):
                # The template serves every step; that of 1, which is nearly all, is simpler.
                end, temp = self.value(Apply("+", (b, Const(1, I64)), I64)), self._temp()
                start = self.value(a)
                return f"({temp} if ({temp} := {_bare(end)}) > {start} else {start})"
            case Apply("<<", (a, Const(k))) if _unsigned(a) and 0 <= k < elem_of(_type(a)).bits:
                return f"({self.value(a)} << {k} & {(1 << elem_of(_type(a)).bits) - 1})"
            case Apply(fn, args):
                elems = tuple(elem_of(_type(a)) for a in args)
                code = implementation(fn, elems)
                texts = self._arguments(fn, args)
                if any(rank_of(_type(a)) for a in args):
                    text = self._fill(code.numpy, *texts)
                    return text if rank_of(_type(node)) else f"plain({text})"
                return self._fill(code.python, *texts)
            case _:
                raise TypeError(f"a template cannot be printed: {node!r}")

    def _arguments(self, fn: str, args: tuple[Expr, ...]) -> list[str]:
        first = self.value(args[0])
        outside, self._inline = self._inline, self._inline or fn in LAZY
        try:
            return [first, *(self.value(a) for a in args[1:])]
        finally:
            self._inline = outside

    def _read(self, place: Place) -> str:
        name = self.regs[place.reg]
        if not place.path:
            return name
        if rank_of(_type(place)):
            return self._view(place)
        base_type = self.function.registers[place.reg].type
        items = _element(place)
        if isinstance(base_type, Scalar):
            return f"{name}.{_part(place)}"
        if items is None:
            base, last = self._split(place)
            return f"{base}[{last}].item()"
        keys = ", ".join(self._nonnegative(i) for i in items)
        if elem_of(base_type).is_complex:
            part = f".{_part(place)}" if _parted(place) else ""
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
            if node in self._bound or rank_of(_type(node)) or not (deep or counts[node] > 1):
                continue
            temp = self._temp()
            self._lines.append(f"{temp} = {_bare(self.value(node))}")
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
        lazy = isinstance(top, Apply) and top.fn in LAZY
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
        case Apply("i64", (a,)) if elem_of(_type(a)) not in (U64, I64):
            return is_nonnegative(a)
    return _unsigned(index)


def _unsigned(node: Expr) -> bool:
    return isinstance(node.type, Scalar) and node.type.name in UNSIGNED


def _small(node: Expr) -> bool:
    return isinstance(node, Const) and 0 <= node.value < 2**31


def item_of(name: str, keys: str, n: int) -> str:
    """An element of an array as a Python number."""
    return f"{name}.item({keys})" if n == 1 else f"{name}[{keys}].item()"


def _bare(text: str) -> str:
    """Without one pair of outer parentheses, where they enclose it all."""
    if not (text.startswith("(") and text.endswith(")")) or ":=" in text:
        return text
    depth = 0
    for k, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def _type(node: Expr) -> ValueType:
    assert node.type is not None
    return node.type


def _scalar(place: Place) -> Scalar:
    return cast(Scalar, place.type)


def _parted(place: Place) -> bool:
    return bool(place.path) and isinstance(place.path[-1], Part) and not rank_of(_type(place))


def _part(place: Place) -> str:
    return {"re": "real", "im": "imag"}[cast(Part, place.path[-1]).name]


def _element(place: Place) -> tuple[Expr, ...] | None:
    """The indices of a single element reached in one step (its part aside), else None."""
    path = place.path[:-1] if _parted(place) else place.path
    if len(path) != 1 or not isinstance(path[0], Index) or rank_of(_type(place)):
        return None
    if any(isinstance(i, Span) for i in path[0].items):
        return None
    return cast("tuple[Expr, ...]", path[0].items)
