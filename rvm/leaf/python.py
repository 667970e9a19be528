"""Functions over leaf operations as Python, on numbers and on NumPy arrays.

There are two texts on numbers: one that is total, or raises a check's fault, and one that is faster
and may raise ArithmeticError or ValueError in its place.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.leaf.function import Function, Order
from rvm.leaf.ops import BIT, C128, F32, F64, I64, MASK, OPS, WIDTHS, signed
from rvm.leaf.trace import Fault, Node, Table

LONGEST = 120
"""The largest length of an expression built by inlining; longer ones get a variable."""
BLOCK = 4096
"""The number of array elements computed at a time, so that temporaries stay in the cache."""

_pack_d, _unpack_d = struct.Struct("<d").pack, struct.Struct("<d").unpack
_pack_q, _unpack_q = struct.Struct("<q").pack, struct.Struct("<q").unpack


def _bits_of(x: float) -> int:
    return _unpack_q(_pack_d(x))[0]  # type: ignore[no-any-return]


def _float_of(n: int) -> float:
    return _unpack_d(_pack_q(n))[0]  # type: ignore[no-any-return]


def _wrap(n: int) -> int:
    return ((n + (1 << 63)) & MASK) - (1 << 63)


def _lshr(n: int, k: int) -> int:
    return _wrap((n & MASK) >> k)


def _umulh(a: int, b: int) -> int:
    return _wrap((a & MASK) * (b & MASK) >> 64)


def _lshr_array(n: Any, k: Any) -> NDArray[np.int64]:
    found: NDArray[Any] = np.asarray(n, np.int64).view(np.uint64) >> np.asarray(k).astype(np.uint64)
    return found.view(np.int64)


def umulh_array(a: Any, b: Any) -> NDArray[np.int64]:
    """The upper halves of products of numbers without signs, all in two's complement."""
    s, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = (np.asarray(v, np.int64).view(np.uint64) for v in (a, b))
    x0, x1, y0, y1 = x & low, x >> s, y & low, y >> s
    middle = x1 * y0 + (x0 * y0 >> s)
    cross = x0 * y1 + (middle & low)
    high: NDArray[Any] = x1 * y1 + (middle >> s) + (cross >> s)
    return high.view(np.int64)


def _wrapper(kind: str) -> Callable[[int], int]:
    """A function that reduces any integer to the range of a kind."""
    mask, half = (1 << WIDTHS[kind]) - 1, 1 << WIDTHS[kind] - 1
    if signed(kind):
        return lambda x: ((x + half) & mask) - half
    return lambda x: x & mask


_pack_f, _unpack_f = struct.Struct("=f").pack, struct.Struct("=f").unpack


def f32(x: float) -> float:
    """An f64 rounded to the nearest f32, an infinity where it is beyond the largest."""
    try:
        return _unpack_f(_pack_f(x))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return math.copysign(math.inf, x)


def _divide(a: float, b: float) -> float:
    """The quotient of IEEE 754; a NaN has the bits that processors give it."""
    if b:
        return a / b
    with np.errstate(all="ignore"):
        return float(np.divide(a, b))


def _remainder(a: float, b: float) -> float:
    """C's remainder, of the sign of the dividend."""
    if b and abs(a) < math.inf:
        return math.fmod(a, b)
    with np.errstate(all="ignore"):
        return float(np.fmod(a, b))


def f32_of_int(n: int) -> float:
    """The f32 nearest to an integer.

    A large one is first cut to 53 bits with a sticky last bit, so that it is not rounded twice.
    """
    if -(1 << 53) <= n <= 1 << 53:
        return f32(float(n))
    size = abs(n)
    cut = size >> 11 | (size & 2047 != 0)
    return math.copysign(f32(cut * 2048.0), n)


def _root(x: float) -> float:
    """The square root of IEEE 754."""
    if x >= 0:
        return math.sqrt(x)
    with np.errstate(all="ignore"):
        return float(np.sqrt(x))


def _turned(x: Any, left: Any, right: Any) -> NDArray[Any]:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    u = x.view(unsigned)
    found: NDArray[Any] = u << left.astype(unsigned) | u >> right.astype(unsigned)
    return found.view(x.dtype)


def _rotl_array(x: Any, k: Any) -> NDArray[Any]:
    bits = 8 * x.dtype.itemsize
    return _turned(x, k, -k & bits - 1)


def _rotr_array(x: Any, k: Any) -> NDArray[Any]:
    bits = 8 * x.dtype.itemsize
    return _turned(x, -k & bits - 1, k)


def _complex_array(re: Any, im: Any) -> NDArray[np.complex128]:
    """Complex numbers from their parts, signed zeros, infinities and NaN kept."""
    re, im = np.broadcast_arrays(re, im)
    z = np.empty(re.shape, np.complex128)
    z.real, z.imag = re, im
    return z


def _cast(x: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array in another storage type; numbers that fit are converted as in C, integers wrap."""
    return np.asarray(x).astype(dtype)


def _refuse(fault: Fault, *shown: Any) -> Any:
    """Raises a check's fault."""
    raise fault.make(*shown)


def _refuse_any(bad: Any, fault: Fault, *shown: Any) -> None:
    """Raise the fault of the first failing element, if there is one."""
    if np.any(bad):
        bad, *all_shown = np.broadcast_arrays(bad, *shown)
        raise fault.make(*(v[bad].flat[0].item() for v in all_shown))


NAMES: dict[str, Any] = {
    "np": np,
    "inf": math.inf,
    "nan": math.nan,
    "sqrt": math.sqrt,
    "divide": _divide,
    "root": _root,
    "f32": f32,
    "f32_of_int": f32_of_int,
    "fmod": math.fmod,
    "remainder": _remainder,
    "pack32": _pack_f,
    "unpack32": _unpack_f,
    "bits_of": _bits_of,
    "float_of": _float_of,
    **{f"wrap_{kind}": _wrapper(kind) for kind in WIDTHS},
    "lshr_i64": _lshr,
    "umulh": _umulh,
    "lshr_array": _lshr_array,
    "umulh_array": umulh_array,
    "rotl_array": _rotl_array,
    "rotr_array": _rotr_array,
    "cast": _cast,
    "complex_array": _complex_array,
    "refuse": _refuse,
    "refuse_any": _refuse_any,
}
"""The names used in the texts of operations."""
DTYPES = {
    BIT: np.dtype(np.bool_),
    C128: np.dtype(np.complex128),
    F32: np.dtype(np.float32),
    F64: np.dtype(np.float64),
    **{k: np.dtype(f"{'i' if signed(k) else 'u'}{n // 8}") for k, n in WIDTHS.items()},
}
"""The storage of kinds in arrays."""
NAMES |= {f"dtype_{kind}": dtype for kind, dtype in DTYPES.items()}


def needed(node: Node, total: bool) -> tuple[Node, ...]:
    """The arguments that the Python text of a node evaluates, in order."""
    if node.op != "check":
        return node.args
    return (node.args[1],) if node.aux.implied and not total else node.args


def text_of(name: str, total: bool = False) -> str:
    """The Python text of an operation on numbers."""
    op = OPS[name]
    return op.total if total and op.total else op.python


def call_name(f: Function, arrays: bool = False) -> str:
    """The name by which texts call a function on numbers, or on arrays; it is added to `NAMES`."""
    name = f"{f.params[0].kind}_{f.name}{'_array' * arrays}"
    if name not in NAMES:
        NAMES[name] = on_arrays(f) if arrays else on_numbers(f)
    return name


class Inline:
    """A function's result as one expression of Python, a template of `rvm.numbers.code`.

    `names` holds the faults that it names.  A value used several times is named where it is first
    evaluated; a value that only one branch evaluates is not available after it.
    """

    def __init__(self, f: Function, total: bool = False, arrays: bool = False) -> None:
        self.names: dict[str, Any] = {}
        self._total = total
        self._arrays = arrays
        result = f.ordered.results[-1]
        self._uses: Counter[int] = Counter([id(result)])
        self._count(result, set())
        self._held: dict[int, str] = {}
        self._temps = 0
        surely: set[int] = set()
        self._surely(result, surely)
        late = [p for p in f.params if self._uses[id(p)] and id(p) not in surely]
        unused = [p for p in f.params if not self._uses[id(p)]]
        for p in late:
            self._uses[id(p)] = 2
        first = [f"{{{p.aux}}}" if p in unused else self._text(p) for p in (*unused, *late)]
        text = self._text(result)
        self.text = f"({', '.join([*first, text])})[-1]" if first else text
        if first:
            self.text = f"({self.text})"

    def _count(self, node: Node, seen: set[int]) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        for a in needed(node, self._total):
            self._uses[id(a)] += 1
            self._count(a, seen)

    def _surely(self, node: Node, found: set[int]) -> None:
        if id(node) not in found:
            found.add(id(node))
            args = needed(node, self._total)
            for a in args[:1] if node.op.startswith(LAZY) and len(args) > 1 else args:
                self._surely(a, found)

    def _text(self, node: Node) -> str:
        if id(node) in self._held:
            return self._held[id(node)]
        text = self._made(node)
        if self._uses[id(node)] > 1 and node.op != "constant":
            name = f"{{t{self._temps}}}"
            self._temps += 1
            self._held[id(node)] = name
            return f"({name} := {text})"
        return text

    def _made(self, node: Node) -> str:
        args = needed(node, self._total)
        match node.op:
            case "argument":
                return f"{{{node.aux}}}"
            case "constant":
                return _literal(node.aux)
            case "table":
                raise ValueError("a template has no tables")
            case "check" if len(args) == 1:
                return self._text(args[0])
            case "call":
                name = call_name(node.aux, self._arrays)
                return f"{name}({', '.join(map(self._text, args))})"
            case "check":
                return self._check(node)
        first = self._text(args[0])
        rest = []
        for a in args[1:]:
            known = dict(self._held)
            rest.append(self._text(a))
            if node.op.startswith(LAZY):
                self._held = known
        text = OPS[node.op].numpy if self._arrays else text_of(node.op, self._total)
        return text.format(first, *rest, t="{t8}", u="{t9}")

    def _check(self, node: Node) -> str:
        bad, value, *shown = node.args
        test = self._text(bad)
        known = dict(self._held)
        name = fault_name(node.aux)
        self.names[name] = node.aux
        raised = ", ".join([name, *map(self._text, shown)])
        self._held = known
        return f"(refuse({raised}) if {test} else {self._text(value)})"


LAZY = ("select_", "both", "either", "check")
"""Operations that evaluate their first argument, but not always the others."""


def fault_name(fault: Fault) -> str:
    """The name of a fault in source."""
    return f"fault_{fault.name}"


def _literal(value: Any) -> str:
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


class _Source:
    """Lines of Python that compute results; nodes used once are written inside others."""

    def __init__(self, arrays: bool, order: Order, total: bool = False) -> None:
        self.arrays = arrays
        self.total = total
        self.lines: list[str] = []
        self.tables: dict[str, Table] = {}
        self.faults: dict[str, Fault] = {}
        self.calls: dict[str, Any] = {}
        self.found: list[str] = []
        """The results' texts."""
        self.ends: list[int] = []
        """The number of lines before each result."""
        wanted = list(zip(order.results, order.ends, strict=True))
        uses = Counter(id(a) for node in order.nodes for a in node.args)
        uses.update(id(node) for node, _ in wanted)
        texts: dict[int, str] = {}
        done = 0
        for result, end in wanted:
            for k, node in enumerate(order.nodes[done:end], done):
                args = [texts[id(a)] for a in node.args]
                text = self._checked(node, args) if node.op == "check" else self._text(node, args)
                simple = node.op in ("argument", "constant")
                if not simple and (uses[id(node)] > 1 or len(text) > LONGEST):
                    self.lines.append(f"v{k} = {text}")
                    text = f"v{k}"
                texts[id(node)] = text
            done = end
            self.found.append(texts[id(result)])
            self.ends.append(len(self.lines))

    def _text(self, node: Node, args: list[str]) -> str:
        match node.op:
            case "argument":
                return f"a{node.aux}"
            case "constant":
                text = _literal(node.aux)
                plain = not self.arrays or node.kind in (F64, I64, BIT)
                return text if plain else f"dtype_{node.kind}.type({text})"
            case "table":
                name = f"table_{node.aux.name}"
                self.tables[name] = node.aux
                return f"{name}[{args[0]}]"
            case "call":
                name = call_name(node.aux, self.arrays)
                self.calls[name] = NAMES[name]
                return f"{name}({', '.join(args)})"
            case _:
                op = OPS[node.op]
                text = op.numpy if self.arrays else text_of(node.op, self.total)
                return text.format(*args, t="_t", u="_u")

    def _checked(self, node: Node, args: list[str]) -> str:
        """The text of a checked value; the check is a line before."""
        bad, value, *shown = args
        name = fault_name(node.aux)
        self.faults[name] = node.aux
        inside = ", ".join([name, *shown])
        if self.arrays:
            self.lines.append(f"refuse_any({bad}, {inside})")
        else:
            self.lines.append(f"if {bad}: refuse({inside})")
        return value


def _definition(f: Function, arrays: bool, names: dict[str, Any], total: bool = False) -> str:
    """The source of one text; its tables and faults are entered in `names`."""
    params = ", ".join(f"a{k}" for k in range(len(f.params)))
    head = f"def {f.name}({params}):"
    if f.guard is None:
        source = _Source(arrays, f.ordered, total)
        # Of any shape, arguments that are numbers too.
        ready = [f"a{k} = np.asarray(a{k}, dtype_{p.kind})" for k, p in enumerate(f.params)]
        body = [*(ready if arrays and total else []), *source.lines, f"return {source.found[0]}"]
    else:
        assert f.cold is not None
        source = _Source(arrays, f.ordered, total)
        (test, result), end = source.found, source.ends[0]
        first, rest = source.lines[:end], source.lines[end:]
        if arrays:
            chosen = ", ".join(f"a{k}[cold]" for k in range(len(f.params)))
            body = [*first, f"cold = {test}", *rest, f"found = {result}"]
            body += [f"if cold.any(): found[cold] = {f.cold.name}({chosen})", "return found"]
        else:
            leave = f"if {test}: return {f.cold.name}({params})"
            body = [*first, leave, *rest, f"return {result}"]
    names |= _tables(source, arrays) | source.faults | source.calls
    return "\n    ".join([head, *body]) + "\n"


def _tables(source: _Source, arrays: bool) -> dict[str, Any]:
    return {
        name: np.array(t.values, np.int64 if t.kind == I64 else np.float64)
        if arrays
        else tuple(t.values)
        for name, t in source.tables.items()
    }


def _compiled(f: Function, arrays: bool, total: bool = False) -> Callable[..., Any]:
    names = dict(NAMES)
    kind = "arrays" if arrays else "numbers"
    for text in f.texts():
        source = _definition(text, arrays, names, total)
        exec(compile(source, f"<leaf function {text.name}, {kind}>", "exec"), names)
    return names[f.name]  # type: ignore[no-any-return]


@cache
def on_numbers(f: Function) -> Callable[..., Any]:
    """The function on Python numbers; it may raise where an operation's text does."""
    return _compiled(f, arrays=False)


@cache
def total(f: Function) -> Callable[..., Any]:
    """The function on Python numbers, which raises nothing but its faults."""
    return _compiled(f, arrays=False, total=True)


class Later:
    """A function made when it is first called, or requested as `function`."""

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self._make = make

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._make()

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


@cache
def on_kinds(f: Function) -> Callable[..., Any]:
    """The function on arrays and numbers of its kinds, which NumPy broadcasts.

    To be called under `np.errstate(all="ignore")`.
    """
    return _compiled(f, arrays=True, total=True)


NOT_INLINE = re.compile(r"^\{0\}|_array\(|where\(|astype")
"""NumPy texts that require arrays of their kinds, or would give another type."""


def inline_on_arrays(f: Function) -> str:
    """The function on arrays and numbers as one expression, a template; "" where it is not one.

    Then every operation is a function of NumPy's or a call, for arguments of any shape.
    """
    nodes, result = f.ordered.nodes, f.ordered.results[-1]
    uses = Counter(id(a) for node in nodes for a in node.args)
    for node in nodes:
        op = OPS.get(node.op)
        if node.op in ("check", "table") or (uses[id(node)] > 1 and node.op != "constant"):
            return ""
        if op is not None and NOT_INLINE.search(op.numpy):
            return ""
    return "" if result.op == "constant" else Inline(f, arrays=True).text


@cache
def on_arrays(f: Function) -> Callable[..., NDArray[Any]]:
    """The function on float64 arrays and numbers, which are broadcast; a new array."""
    core = _compiled(f, arrays=True)

    def run(*args: Any) -> NDArray[Any]:
        given, _, out = in_blocks(core, args, np.float64)
        return out.reshape(given[0].shape)

    return run


def in_blocks(
    core: Callable[..., Any], args: Sequence[Any], dtype: Any
) -> tuple[Sequence[NDArray[Any]], Sequence[NDArray[Any]], NDArray[Any]]:
    """A function's arguments, which are broadcast, in their shape and in a row, and its values."""
    given = np.broadcast_arrays(*(np.asarray(a, dtype) for a in args))
    flat = [np.ascontiguousarray(a).reshape(-1) for a in given]
    out = np.empty(flat[0].shape, dtype)
    with np.errstate(all="ignore"):
        for at in range(0, out.size, BLOCK):
            out[at : at + BLOCK] = core(*(a[at : at + BLOCK] for a in flat))
    return given, flat, out
