"""States on disk: a separate folder for each run, with a `.npy` file for each leaf of a state.

The folder is made when the first state is saved, and is gone when the run has ended, whichever way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

import numpy as np

from rvm.host.signals import Listening, deferred

PREFIX = "rvm-pebble-"


P = ParamSpec("P")
T = TypeVar("T")


def _unbroken(function: Callable[P, T]) -> Callable[P, T]:
    """A function that signals wait for."""
    deferred(function)

    def call(*args: P.args, **named: P.kwargs) -> T:
        with Listening():
            return function(*args, **named)

    return call


class Files:
    """The states of a run that are on disk, by node.

    `folder`: where the run's own folder is made; without it where temporary files go.
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.parent = None if folder is None else Path(folder)
        self._own: TemporaryDirectory[str] | None = None
        self._kinds: dict[int, tuple[type, ...]] = {}

    def close(self) -> None:
        """Remove the run's folder with all that is in it."""
        if self._own is not None:
            self._own.cleanup()
            self._own = None
        self._kinds.clear()

    @_unbroken
    def save(self, node: int, leaves: Sequence[Any]) -> None:
        """Write the leaves of a state."""
        if self._own is None:
            if self.parent is not None:
                self.parent.mkdir(parents=True, exist_ok=True)
            # It is removed at the end of the process at the latest, if a walk is just dropped.
            self._own = TemporaryDirectory(
                prefix=PREFIX, dir=self.parent, ignore_cleanup_errors=True
            )
        self._kinds[node] = tuple(type(leaf) for leaf in leaves)
        for k, leaf in enumerate(leaves):
            np.save(self._path(node, k), _stored(leaf), allow_pickle=False)

    @_unbroken
    def load(self, node: int, into: Sequence[Any] | None = None) -> list[Any]:
        """Read the leaves of a state; arrays go to those of `into`, if it is given."""
        out: list[Any] = []
        for k, kind in enumerate(self._kinds[node]):
            path = self._path(node, k)
            if into is not None and isinstance(into[k], np.ndarray):
                # Through a map of the file there is never a second state in memory.
                np.copyto(into[k], np.load(path, mmap_mode="r" if into[k].size else None))
                out.append(into[k])
            else:
                out.append(_restored(np.load(path, allow_pickle=False), kind))
        return out

    @_unbroken
    def drop(self, node: int) -> None:
        """Remove the files of a state."""
        for k in range(len(self._kinds[node])):
            self._path(node, k).unlink()
        del self._kinds[node]

    def _path(self, node: int, leaf: int) -> Path:
        assert self._own is not None
        part = f".{leaf}" if len(self._kinds[node]) > 1 else ""
        return Path(self._own.name, f"state-{node}{part}.npy")


def _stored(leaf: Any) -> np.ndarray[Any, Any]:
    """A leaf as an array; whole numbers of any size and bytes as bytes."""
    if isinstance(leaf, np.ndarray):
        return leaf
    if isinstance(leaf, int) and not isinstance(leaf, bool):
        leaf = leaf.to_bytes(leaf.bit_length() // 8 + 1, "little", signed=True)
    if isinstance(leaf, bytes):
        return np.frombuffer(leaf, np.uint8)
    return np.asarray(leaf)


def _restored(array: np.ndarray[Any, Any], kind: type) -> Any:
    if issubclass(kind, np.ndarray):
        return array
    if kind is bytes:
        return array.tobytes()
    if kind is int:
        return int.from_bytes(array.tobytes(), "little", signed=True)
    return array.item() if kind in (bool, float, complex) else array[()]
