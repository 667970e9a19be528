"""How one function is computed on one number type: templates for generated source, LLVM code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rvm.numbers.llvm import Llvm

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


def with_llvm(codes: Mapping[str, Code], llvm: Mapping[str, Llvm | None]) -> dict[str, Code]:
    """Codes by the functions' names, each with its LLVM code."""
    return {f: replace(code, llvm=llvm.get(f)) for f, code in codes.items()}


def compiled(template: str, arity: int, names: dict[str, Any]) -> Callable[..., Any]:
    """A template as a function of its arguments, over a namespace."""
    args = [f"a{k}" for k in range(arity)]
    source = f"lambda {', '.join(args)}: {fill(template, *args)}"
    # All builtins, as NumPy imports modules by those of its caller.
    result: Callable[..., Any] = eval(source, dict(names))
    return result
