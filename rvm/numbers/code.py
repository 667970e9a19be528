"""How one function is computed on one number type: templates for generated source, LLVM code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rvm.leaf import Function
from rvm.leaf.llvm import Emitted
from rvm.leaf.ops import F64
from rvm.leaf.python import Inline, Later, inline_on_arrays, on_kinds, total
from rvm.leaf.trace import Node, compare
from rvm.numbers.llvm import Llvm
from rvm.numbers.own import own
from rvm.numbers.support import NAMES

_SLOT = re.compile(r"\{(t?)(\d+)\}")


@dataclass(frozen=True, slots=True)
class Code:
    """How a function is computed on one number type.

    `python` is an inline template for generated source: `{0}`, `{1}` … are the arguments,
    `{t0}`, `{t1}` … fresh names for `:=`.  Every template is closed (a call or in parentheses) and
    uses each argument once; arguments must be closed as well.  It may raise ArithmeticError,
    ValueError or TypeError where the function's stated behaviour is a value or an error of ours:
    engines then have the instruction executed with `value`, which is total (or raises RvmError).
    `numpy` is a template on arrays and scalars mixed; "" where there is none.  It is total under
    `numpy.errstate(all="ignore")`, or raises an RvmError.
    `value` is None where the compiled `python` template is total already.
    `llvm` writes LLVM code (see `rvm.numbers.llvm`). Its result has the bits of that of `value`, or
    it gives the instruction up: where `value` raises, and where the case is too rare. None where
    there is none.
    """

    python: str
    numpy: str = ""
    value: Callable[..., Any] | None = None
    llvm: Llvm | None = None
    alike: bool = False
    """Whether the NumPy template gives the bits of `value`."""


def fill(template: str, *args: str, fresh: str = "_t") -> str:
    """A template with its arguments in place; `fresh` begins the names of its temporaries."""
    return _SLOT.sub(lambda m: fresh + m[2] if m[1] else args[int(m[2])], template)


def compose(outer: str, inner: str) -> str:
    """The template `outer` of one argument, applied to what the template `inner` gives.

    The temporaries of the two are kept apart.
    """
    used = {int(m[2]) for m in _SLOT.finditer(inner) if m[1]}
    start = max(used, default=-1) + 1
    return _SLOT.sub(lambda m: f"{{t{int(m[2]) + start}}}" if m[1] else inner, outer)


def compiled(template: str, arity: int, names: dict[str, Any]) -> Callable[..., Any]:
    """A template as a function of its arguments, over a namespace."""
    args = [f"a{k}" for k in range(arity)]
    source = f"lambda {', '.join(args)}: {fill(template, *args)}"
    # All builtins, as NumPy imports modules by those of its caller.
    result: Callable[..., Any] = eval(source, dict(names))
    return result


Body = Callable[..., Node]
"""What a function computes: called with nodes of leaf operations, it gives the result's."""
COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
"""The comparisons, by the names of their leaf operations."""


def comparisons() -> dict[str, Body]:
    """The bodies of the six comparisons."""
    return {s: (lambda a, b, test=test: compare(test, a, b)) for s, test in COMPARISONS.items()}


LONGEST = 240
"""How long an inline template may be; longer functions are called."""


def coded(
    name: str, body: Callable[..., Node], kinds: tuple[str, ...], python: str = "", numpy: str = ""
) -> Code:
    """The code of a function by its body over leaf operations, on arguments of these kinds.

    `name` is what generated source calls it where it is too long to stand inline.  `python` and
    `numpy` are templates of the target's own, for speed.
    """
    f = Function(name, body, kinds)
    exact, quick = Inline(f, total=True), Inline(f)
    slots = ", ".join(f"{{{k}}}" for k in range(len(kinds)))
    NAMES.update(quick.names)
    value = None if (python or quick.text) == exact.text else Later(lambda: total(f))
    inline = python or quick.text
    if len(inline) > LONGEST:
        NAMES[name], inline, value = Later(lambda: total(f)), f"{name}({slots})", None
    if not numpy:
        numpy = inline_on_arrays(f)
    if not numpy and all(op.numpy for op in f.operations()):
        array = Later(lambda: on_kinds(f))
        NAMES[f"{name}_array"], numpy = array, f"{name}_array({slots})"
    if not all(op.llvm for op in f.operations()):
        return Code(inline, numpy, value, alike=True)
    return Code(inline, numpy, value, lambda e, *args: Emitted(e, args)(f.result), alike=True)


def coded_parts(
    name: str, body: Callable[..., tuple[Node, Node]], complexes: tuple[bool, ...]
) -> Code:
    """The code of a function whose result is complex, by its real and imaginary parts.

    `body` takes f64 nodes, and for a complex argument (`complexes` says which are) a pair of them;
    it gives a pair.  `name` is what generated source calls it.
    """
    kinds = (F64,) * (len(complexes) + sum(complexes))

    def part(k: int) -> Function:
        def traced(*nodes: Node) -> Node:
            left = iter(nodes)
            given = ((next(left), next(left)) if c else next(left) for c in complexes)
            return body(*given)[k]

        return Function(f"{name}_{k}", traced, kinds)

    re, im = part(0), part(1)

    def flat(args: tuple[Any, ...]) -> list[Any]:
        pairs = ((a.real, a.imag) if c else (a,) for a, c in zip(args, complexes, strict=True))
        return [x for pair in pairs for x in pair]

    def on_parts(*args: Any) -> complex:
        parts = flat(args)
        return complex(total(re)(*parts), total(im)(*parts))

    def on_arrays(*args: Any) -> Any:
        parts = flat(tuple(map(np.asarray, args)))
        x, y = np.broadcast_arrays(on_kinds(re)(*parts), on_kinds(im)(*parts))
        z = np.empty(x.shape, np.complex128)
        z.real, z.imag = x, y
        return z

    def llvm(e: Any, *args: Any) -> tuple[str, str]:
        pairs = (a if c else (a,) for a, c in zip(args, complexes, strict=True))
        emitted = Emitted(e, tuple(x for pair in pairs for x in pair))
        return emitted(re.result), emitted(im.result)

    NAMES[name], NAMES[f"{name}_array"] = on_parts, on_arrays
    slots = ", ".join(f"{{{k}}}" for k in range(len(complexes)))
    return Code(f"{name}({slots})", f"{name}_array({slots})", None, llvm, alike=True)


class Codes(Mapping[str, Code]):
    """Codes by the functions' names, each made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Code]]) -> None:
        self._makers = makers
        self._made: dict[str, Code] = {}

    def __getitem__(self, name: str) -> Code:
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._makers[name]()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def identifier(text: str) -> str:
    """A function's name as a part of an identifier."""
    return re.sub(r"\W", lambda m: f"_{ord(m[0]):x}", text)


def codes_of(title: str, kinds: Mapping[str, tuple[str, ...]], bodies: Mapping[str, Body]) -> Codes:
    """The codes of a system's functions.

    `kinds` holds the kinds of the arguments of a function; under "" that of all others.  `title`
    tells the functions' names from those of other systems; `own` knows the systems by it.
    """

    def make(fn: str, body: Body) -> Callable[[], Code]:
        def write() -> Code:
            arity = sum(p.default is p.empty for p in inspect.signature(body).parameters.values())
            given = kinds.get(fn) or kinds[""] * arity
            return coded(f"{title}_{identifier(fn)}", body, given, *own(title, fn))

        return write

    return Codes({fn: make(fn, body) for fn, body in bodies.items()})
