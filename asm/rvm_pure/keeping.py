"""The states that loops and folds keep: all of them, a limited number, or only the last."""

from __future__ import annotations

from dataclasses import dataclass

from rvm.faults import UsageError
from rvm.types import TYPES
from rvm_pure.types import Arr, Product, Size, Type


@dataclass(frozen=True, slots=True)
class Keep:
    """A budget for the states of a loop or fold, and whether floats are updated in place.

    Without a budget every state is kept.  UsageError U006 if there are two, or one is not a number.
    """

    pebbles: int | None = None
    """The number of states kept at a time, besides the first and the last."""
    memory: int | None = None
    """The largest total size of its states in bytes."""
    in_place: bool = False
    """Whether updates that only rounding keeps from being undone are made in place."""

    def __post_init__(self) -> None:
        if self.pebbles is not None and self.memory is not None:
            raise UsageError("U006", "states have one budget: `pebbles` or `memory`")
        for name in ("pebbles", "memory"):
            k = getattr(self, name)
            if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
                raise UsageError("U006", f"`{name}` must be a whole number, 1 or more, not {k!r}")

    @property
    def has_budget(self) -> bool:
        return self.pebbles is not None or self.memory is not None


ALL = Keep()


def bytes_of(t: Type) -> dict[tuple[str, ...], int]:
    """The bytes of a value: for each product of lengths that a run knows, how many times it.

    A length without a name is `?`.
    """
    match t:
        case Product(items):
            out: dict[tuple[str, ...], int] = {}
            for item in items:
                for key, k in bytes_of(item).items():
                    out[key] = out.get(key, 0) + k
            return out
        case Arr(elem, length):
            n = length or Size("?")
            factor, name = (1, str(n)) if n.name else (n.more, "")
            name = f"({name})" if n.more and name else name
            inner = bytes_of(elem).items()
            return {(*filter(None, (name,)), *key): factor * k for key, k in inner}
    return {(): TYPES[t.name].bytes}


def bytes_text(t: Type, more: str = "") -> str:
    """`8 * n bytes`: how much memory a value takes, or as many of it as `more` says."""
    factor = (more,) if more else ()
    terms = (" * ".join((str(k), *factor, *key)) for key, k in bytes_of(t).items() if k)
    return f"{' + '.join(terms) or '0'} bytes"
