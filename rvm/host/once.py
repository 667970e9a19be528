"""Things made once: of several threads that ask at the same time, one makes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

T = TypeVar("T")

_making = threading.RLock()
"""Held while an object is made. There is a single lock, since making one object often needs
another."""


def once(cache: MutableMapping[Any, Any], key: object, kind: type[T], make: Callable[[], T]) -> T:
    """The object in a cache under a key, made at first use, or if it is not of this kind."""
    found = cache.get(key)
    if isinstance(found, kind):
        return found
    with _making:
        found = cache.get(key)
        if not isinstance(found, kind):
            found = cache[key] = make()
        return found


def making() -> threading.RLock:
    """The lock held while something is made, for callers that look for it themselves."""
    return _making


def _renew() -> None:
    """In a forked process, the thread that held the lock does not exist."""
    global _making
    _making = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
