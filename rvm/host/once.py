"""Things made once: of several threads that ask at the same time, one makes them.

So are the definitions in tables: a name has one, unless the import that made it was broken off.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, MutableMapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
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


_defined: dict[tuple[int, object], tuple[MutableMapping[Any, Any], dict[str, Any]]] = {}
"""For an entry of a table: the table, and the globals of the module that was being run."""


def taken(table: MutableMapping[Any, Any], name: object) -> bool:
    """Whether a table has a definition of this name.

    An import that Ctrl-C ends leaves in the tables what its module had defined, and the next import
    runs that module again: what it left is removed here.
    """
    if name not in table:
        return False
    before, now = _defined.get((id(table), name), (table, {}))[1], _home()
    if before is now or not before or before.get("__name__") != now.get("__name__"):
        return True
    for key, (other, home) in list(_defined.items()):
        if home is before:
            other.pop(key[1], None)
            del _defined[key]
    return False


def enter(table: MutableMapping[Any, Any], name: object, value: object) -> None:
    """Enter a definition whose name is not `taken`."""
    _defined[id(table), name] = table, _home()
    table[name] = value


def one_by_one(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that changes tables: threads that call it wait for each other."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        with making():
            return function(*args, **kwargs)

    return called


def _home() -> dict[str, Any]:
    """The globals of the innermost module that is being run."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame.f_globals


def making() -> threading.RLock:
    """The lock held while something is made, for callers that look for it themselves."""
    return _making


def _renew() -> None:
    """In a forked process, the thread that held the lock does not exist."""
    global _making
    _making = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
