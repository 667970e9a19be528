"""The computation of a function on a number type: its body, and templates for generated source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rvm.leaf import Function
from rvm.leaf.function import Body as Body
from rvm.leaf.ops import BIT, COMPARISONS, I64, limits
from rvm.leaf.python import Inline, Later, inline_on_arrays, on_kinds, total
from rvm.leaf.trace import by_kind
from rvm.numbers.own import own
from rvm.numbers.support import NAMES
from rvm.types import Scalar

_SLOT = re.compile(r"\{(t?)(\d+)\}")
DOUBT = limits(I64)[0]
"""The result of a text for a number that it cannot round, which must be computed exactly: the least
raw number."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a function on one number type.

    `python` is an inline template for generated source: `{0}`, `{1}` … are the arguments,
    `{t0}`, `{t1}` … fresh names for `:=`.  Every template is closed (a call or in parentheses) and
    uses each argument once; arguments must be closed as well.  It may raise ArithmeticError,
    ValueError or TypeError where the function's stated behaviour is a value or an error of ours:
    engines then have the instruction executed with `value`, which is total (or raises RvmError).
    `numpy` is a template on arrays and scalars mixed; "" where there is none.  It is total under
    `numpy.errstate(all="ignore")`, or raises an RvmError.
    `value` is None where the compiled `python` template is total already.
    `body` is what machine code is made of.  Its result has the bits of that of `value`, or a check
    in it fails: where `value` raises, and where the case is too rare.
    """

    python: str
    numpy: str = ""
    value: Callable[..., Any] | None = None
    body: Function | None = None
    alike: bool = False
    """Whether the NumPy template gives the bits of `value`."""

    @property
    def is_native(self) -> bool:
        """Whether it can be compiled to machine code."""
        return self.body is not None and self.body.is_native


def fill(template: str, *args: str, fresh: str = "_t") -> str:
    """A template with its arguments in place; `fresh` begins the names of its temporaries."""
    return _SLOT.sub(lambda m: fresh + m[2] if m[1] else args[int(m[2])], template)


def compiled(template: str, arity: int, names: dict[str, Any]) -> Callable[..., Any]:
    """A template as a function of its arguments, over a namespace."""
    args = [f"a{k}" for k in range(arity)]
    source = f"lambda {', '.join(args)}: {fill(template, *args)}"
    # All builtins, as NumPy imports modules by those of its caller.
    result: Callable[..., Any] = eval(source, dict(names))
    return result


def comparisons() -> dict[str, Body]:
    """The bodies of the six comparisons."""
    return {s: (lambda a, b, test=test: by_kind(test, a, b)) for test, s in COMPARISONS.items()}


def kind_of(t: Scalar) -> str:
    """The kind of a type's raw values."""
    held, size = t.row.dtype[0], t.row.bytes
    return BIT if held == "b" else f"{held}{8 * size}"


LONGEST = 240
"""The largest length of an inline template; longer functions are called."""


def coded(name: str, body: Body, kinds: tuple[str, ...], python: str = "", numpy: str = "") -> Code:
    """The code of a function from its body over leaf operations, on arguments of these kinds.

    `name` is its name in generated source where it is too long to be inlined. `python` and `numpy`
    are faster, target-specific templates.
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
    return Code(inline, numpy, value, f, alike=True)


def moved(t: Scalar) -> Code:
    """The code of a function that gives its argument itself."""
    return Code("{0}", "{0}", None, Function("same", lambda x: x, (kind_of(t),)), alike=True)


class Codes(Mapping[str, Code]):
    """Codes by the functions' names, each made when first requested."""

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

    `kinds` holds the kinds of the arguments of each function; the key "" is for all others. `title`
    distinguishes the functions' names from those of other systems, and identifies the system in
    `own`.
    """

    def make(fn: str, body: Body) -> Callable[[], Code]:
        def write() -> Code:
            arity = sum(p.default is p.empty for p in inspect.signature(body).parameters.values())
            given = kinds.get(fn) or kinds[""] * arity
            return coded(f"{title}_{identifier(fn)}", body, given, *own(title, fn))

        return write

    return Codes({fn: make(fn, body) for fn, body in bodies.items()})
