"""Small points of English, and values as messages name them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import count as count_from
from typing import Any

MOST_SHOWN = 100
"""A message does not write out more elements than this."""


def with_article(noun: object) -> str:
    """`a u8`, `an f64`: the article follows how the name is spoken."""
    text = str(noun)
    first = text[:1]
    vowel = first in "aeio" or (first == "f" and text[1:2].isdigit())
    return f"{'an' if vowel else 'a'} {text}"


def count(n: int, noun: str) -> str:
    """`1 step`, `1,200 steps`."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def plainly(value: Any) -> str:
    """A value as texts and callers write it: no names of Python's or NumPy's own classes."""
    if isinstance(value, type):
        return value.__name__
    if value is None:
        return "none"
    if isinstance(value, (array, memoryview)):
        return plainly(value.tolist())
    if is_numpys(value):
        if value.size > MOST_SHOWN:
            return f"{value.dtype.name} of shape {list(value.shape)}"
        held = value.tolist()
        return str(held) if hasattr(held, "tolist") else plainly(held)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{plainly(k)}: {plainly(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        if len(value) > MOST_SHOWN:
            return f"{len(value)} values"
        inside = ", ".join(map(plainly, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    try:
        text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    except Exception:
        # Python does not show whole numbers of thousands of digits, and a class of the caller may
        # show nothing.
        more = " of very many digits" if isinstance(value, int) else ""
        return with_article(type(value).__name__) + more
    return with_article(type(value).__name__) if text.startswith("<") else text


def is_numpys(value: Any) -> bool:
    """Whether a value is an array or a number of NumPy, whose attributes are known."""
    return hasattr(type(value), "__array_interface__")


def described(value: Any) -> str:
    """A description of a wrong value: its kind, and the value itself if it is short."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None:
        return "None"
    if isinstance(value, (array, memoryview)):
        return f"{type(value).__name__} {plainly(value)}"
    if is_numpys(value) and value.ndim > 0:
        return f"an array of shape {list(value.shape)} of {value.dtype.name}"
    kind = type(value.item() if is_numpys(value) else value).__name__
    text = plainly(value)
    if len(text) > 60 or text == with_article(kind):
        return with_article(kind)
    return f"{text} of type {kind}"


def meant(word: object, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one probably means."""
    near = get_close_matches(str(word), list(known), 1)
    return near[0] if near else None


def instead(word: object, known: Iterable[str], otherwise: str) -> str:
    """A hint with the name that a misspelt word probably means, or else with the known names."""
    near = meant(word, known)
    return f"did you mean `{near}`?" if near else otherwise


def unused(name: str, taken: Iterable[str]) -> str:
    """A name for something new, in an advice: the name itself or, if it is taken, with a number."""
    known = set(taken)
    return next(n for k in count_from(1) if (n := f"{name}{k}" if k > 1 else name) not in known)


__all__ = ["count", "described", "instead", "meant", "plainly", "unused", "with_article"]
