"""Functions over leaf operations as Python, on numbers and on NumPy arrays."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.leaf.function import Function, Order
from rvm.leaf.ops import I64, MASK, OPS
from rvm.leaf.trace import Node, Table

LONGEST = 120
"""How long a text may become by having others in it, instead of a variable of its own."""
BLOCK = 4096
"""How many elements of arrays are computed at a time: what they need stays in the cache."""

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


def _umulh_array(a: Any, b: Any) -> NDArray[np.int64]:
    s, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = (np.asarray(v, np.int64).view(np.uint64) for v in (a, b))
    x0, x1, y0, y1 = x & low, x >> s, y & low, y >> s
    middle = x1 * y0 + (x0 * y0 >> s)
    cross = x0 * y1 + (middle & low)
    high: NDArray[Any] = x1 * y1 + (middle >> s) + (cross >> s)
    return high.view(np.int64)


NAMES: dict[str, Any] = {
    "np": np,
    "inf": math.inf,
    "nan": math.nan,
    "sqrt": math.sqrt,
    "bits_of": _bits_of,
    "float_of": _float_of,
    "wrap_i64": _wrap,
    "lshr_i64": _lshr,
    "umulh": _umulh,
    "lshr_array": _lshr_array,
    "umulh_array": _umulh_array,
    "dtype_i64": np.dtype(np.int64),
    "dtype_u64": np.dtype(np.uint64),
    "dtype_f64": np.dtype(np.float64),
}


class _Source:
    """Lines of Python that compute results; nodes that are used once stand within others."""

    def __init__(self, arrays: bool, results: list[Node]) -> None:
        self.arrays = arrays
        self.lines: list[str] = []
        self.tables: dict[str, Table] = {}
        self.found: list[str] = []
        """The results' texts."""
        self.ends: list[int] = []
        """Behind how many lines each result stands."""
        order = Order()
        wanted = [(order.add(r), len(order.nodes)) for r in results]
        uses = Counter(id(a) for node in order.nodes for a in node.args)
        uses.update(id(node) for node, _ in wanted)
        texts: dict[int, str] = {}
        done = 0
        for result, end in wanted:
            for k, node in enumerate(order.nodes[done:end], done):
                text = self._text(node, [texts[id(a)] for a in node.args])
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
                text = repr(node.aux)
                return f"({text})" if text.startswith("-") else text
            case "table":
                name = f"table_{node.aux.name}"
                self.tables[name] = node.aux
                return f"{name}[{args[0]}]"
            case _:
                op = OPS[node.op]
                return (op.numpy if self.arrays else op.python).format(*args)


def _definition(f: Function, arrays: bool, names: dict[str, Any]) -> str:
    """The source of one text; its tables are entered in `names`."""
    params = ", ".join(f"a{k}" for k in range(len(f.params)))
    head = f"def {f.name}({params}):"
    if f.guard is None:
        source = _Source(arrays, [f.result])
        body = [*source.lines, f"return {source.found[0]}"]
    else:
        assert f.cold is not None
        source = _Source(arrays, [f.guard, f.result])
        (test, result), end = source.found, source.ends[0]
        first, rest = source.lines[:end], source.lines[end:]
        if arrays:
            chosen = ", ".join(f"a{k}[cold]" for k in range(len(f.params)))
            body = [*first, f"cold = {test}", *rest, f"found = {result}"]
            body += [f"if cold.any(): found[cold] = {f.cold.name}({chosen})", "return found"]
        else:
            leave = f"if {test}: return {f.cold.name}({params})"
            body = [*first, leave, *rest, f"return {result}"]
    names |= _tables(source, arrays)
    return "\n    ".join([head, *body]) + "\n"


def _tables(source: _Source, arrays: bool) -> dict[str, Any]:
    return {
        name: np.array(t.values, np.int64 if t.kind == I64 else np.float64)
        if arrays
        else tuple(t.values)
        for name, t in source.tables.items()
    }


def _compiled(f: Function, arrays: bool) -> Callable[..., Any]:
    names = dict(NAMES)
    kind = "arrays" if arrays else "numbers"
    for text in f.texts():
        source = _definition(text, arrays, names)
        exec(compile(source, f"<leaf function {text.name}, {kind}>", "exec"), names)
    return names[f.name]  # type: ignore[no-any-return]


@cache
def on_numbers(f: Function) -> Callable[..., Any]:
    """The function on Python numbers."""
    return _compiled(f, arrays=False)


@cache
def on_arrays(f: Function) -> Callable[..., NDArray[Any]]:
    """The function on float64 arrays and numbers, which are broadcast; a new array."""
    core = _compiled(f, arrays=True)

    def run(*args: Any) -> NDArray[Any]:
        given = np.broadcast_arrays(*(np.asarray(a, np.float64) for a in args))
        flat = [np.ascontiguousarray(a).reshape(-1) for a in given]
        out = np.empty(flat[0].shape)
        with np.errstate(all="ignore"):
            for at in range(0, out.size, BLOCK):
                out[at : at + BLOCK] = core(*(a[at : at + BLOCK] for a in flat))
        return out.reshape(given[0].shape)

    return run
