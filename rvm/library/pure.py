"""`rvm.pure`: NumPy functions without side effects as functions of the machine.

A function is traced: it is run once, on values that record the operations on them, by the front end
that is registered for `.pure` files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Pure:
    """`@rvm.pure`, `rvm.pure(f, x=rvm.f64["n"])`, and control flow for tracing: `rvm.pure.loop`."""

    def __call__(self, f: Callable[..., Any] | None = None, /, **types: Any) -> Any:
        """The function as a pure one, which returns its value; its reversible form is `f.program`.

        Types of parameters are annotated or given here; `pebbles=12` and `memory=1_000_000` limit
        the states of loops that are kept; `in_place=True` updates floats in place.  UsageError U060
        at the line of an operation that cannot be traced.
        """
        if f is None:
            return lambda g: self(g, **types)
        return _front_end().pure(f, types)

    def __getattr__(self, name: str) -> Any:
        words: dict[str, Any] = _front_end().WORDS
        if name not in words:
            raise AttributeError(f"`rvm.pure` has no {name!r}; it has {', '.join(words)}")
        return words[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_front_end().WORDS]

    def __repr__(self) -> str:
        return "rvm.pure"


pure = Pure()


def _front_end() -> Any:
    from rvm.library.frontends import needed

    return needed("pure", "pure functions")
