"""The form of a chain's states: a NumPy array, a number or bytes, or tuples and dicts of these.

All states of a run have the form of the input: the same nesting, types, dtypes and shapes.  A state
is split into *leaves* and reassembled.  UsageError P040: another form than the input's; P042: a
value that is not a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rvm.faults import UsageError
from rvm.pebble.bridge.runs.leaves import (
    NUMBER_BYTES,
    NUMBERS,
    TYPICAL,
    ArrayLeaf,
    Leaf,
    OddError,
    PlainLeaf,
    fits,
    in_words,
    leaf_bytes,
    leaf_keeper,
    owned,
    same,
)


class Form:
    """The form of a state, found from the first one."""

    def __init__(self, state: Any) -> None:
        self.leaves: list[Leaf] = []
        self._nesting = self._found(state, "the input")
        self.nbytes = sum(leaf_bytes(leaf) for leaf in self.leaves)
        """Bytes of a state; a number counts as 8, a complex one as 16."""
        self.is_array = self._nesting == 0 and isinstance(self.leaves[0], ArrayLeaf)
        self.only_arrays = all(isinstance(leaf, ArrayLeaf) for leaf in self.leaves)

    def _found(self, state: Any, name: str) -> Any:
        """The nesting: numbers of leaves, in tuples with their type and dicts."""
        if isinstance(state, tuple):
            parts = [self._found(v, f"{name}[{k}]") for k, v in enumerate(state)]
            return type(state), parts
        if type(state) is dict:
            return {k: self._found(v, f"{name}[{k!r}]") for k, v in state.items()}
        if isinstance(state, np.ndarray) and state.dtype != object:
            self.leaves.append(ArrayLeaf(state.dtype, state.shape))
            return len(self.leaves) - 1
        for kind, accepted in NUMBERS.items():
            if isinstance(state, accepted):
                size = len(state) if isinstance(state, bytes) else NUMBER_BYTES[kind]
                self.leaves.append(PlainLeaf(kind, size))
                return len(self.leaves) - 1
        hint = "a tuple in its place" if isinstance(state, list) else ""
        raise UsageError(
            "P042", f"{name} is a {type(state).__name__}; a state is {TYPICAL}", hint=hint
        )

    # ------------------------------------------------------------ apart and together

    def apart(self, state: Any, whose: str) -> list[Any]:
        """The leaves of a state, each held against the form; `whose` names the state in errors."""
        return [self._fitting(*part) for part in _leaves(self._nesting, state, whose)]

    def _fitting(self, number: int, state: Any, name: str) -> Any:
        leaf = self.leaves[number]
        if isinstance(leaf, ArrayLeaf) and isinstance(state, np.generic):
            # What NumPy makes of arrays of no dimensions.
            state = np.asarray(state)
        if not fits(leaf, state):
            raise _changed(name, str(leaf), in_words(state))
        return state

    def together(self, leaves: list[Any]) -> Any:
        """A state from its leaves."""
        return self._joined(self._nesting, leaves)

    def _joined(self, nesting: Any, leaves: list[Any]) -> Any:
        if type(nesting) is int:
            return leaves[nesting]
        if type(nesting) is tuple:
            cls, parts = nesting
            values = [self._joined(inner, leaves) for inner in parts]
            return cls(*values) if hasattr(cls, "_fields") else cls(values)
        return {key: self._joined(inner, leaves) for key, inner in nesting.items()}

    def over(self, function: Callable[[Any], Any], state: Any) -> Any:
        """A state with a function done to its arrays; numbers and bytes are as they are."""
        if self.is_array:
            return function(state)
        leaves = self.apart(state, "a state")
        return self.together([function(v) if isinstance(v, np.ndarray) else v for v in leaves])

    def held(self) -> Callable[[Any, str], Any]:
        """A function that holds a state against the form, and makes its arrays read-only."""
        quick = self._keeper(self._nesting)

        def hold(state: Any, whose: str) -> Any:
            try:
                return quick(state)
            except OddError:
                leaves = self.apart(state, whose)
                return self.together([owned(v) if isinstance(v, np.ndarray) else v for v in leaves])

        return hold

    def _keeper(self, nesting: Any) -> Callable[[Any], Any]:
        """`held` for a nesting, in ordinary cases."""
        if type(nesting) is int:
            return leaf_keeper(self.leaves[nesting])
        if type(nesting) is tuple:
            cls, parts = nesting
            keepers = [self._keeper(inner) for inner in parts]
            count, named = len(parts), hasattr(cls, "_fields")

            def keep_tuple(state: Any) -> Any:
                if type(state) is not cls or len(state) != count:
                    raise OddError
                values = [keep(v) for keep, v in zip(keepers, state, strict=True)]
                return cls(*values) if named else cls(values)

            return keep_tuple
        by_key = {key: self._keeper(inner) for key, inner in nesting.items()}

        def keep_dict(state: Any) -> Any:
            if type(state) is not dict or state.keys() != by_key.keys():
                raise OddError
            return {key: keep(state[key]) for key, keep in by_key.items()}

        return keep_dict

    # ------------------------------------------------------------ whole states

    def same(self, a: Any, b: Any) -> bool:
        """Whether two states of this form have the same values; a NaN is like any other."""
        pairs = zip(self.apart(a, "a state"), self.apart(b, "a state"), strict=True)
        return all(same(x, y) for x, y in pairs)

    def arrays(self, state: Any) -> Iterator[np.ndarray[Any, Any]]:
        """The arrays of a state."""
        return (v for v in self.apart(state, "a state") if isinstance(v, np.ndarray))

    def buffer(self) -> Any:
        """A state of arrays with nothing in particular in them."""
        return self.together(
            [np.empty(v.shape, v.dtype) for v in self.leaves if isinstance(v, ArrayLeaf)]
        )

    def fill(self, target: Any, source: Any) -> None:
        """Put the contents of one state of arrays into another."""
        for into, array in zip(self.arrays(target), self.arrays(source), strict=True):
            np.copyto(into, array)

    def copy(self, state: Any) -> Any:
        """A separate state that can be changed."""
        return self.over(np.copy, state)

    def no_adjoint(self) -> Any:
        """An adjoint of zeros; None for bytes and whole numbers."""
        out: list[Any] = []
        for leaf in self.leaves:
            if isinstance(leaf, ArrayLeaf):
                inexact = leaf.dtype.kind in "fc"
                out.append(np.zeros(leaf.shape, leaf.dtype if inexact else np.float64))
            else:
                out.append(leaf.type(0) if leaf.type in (float, complex) else None)
        return self.together(out)

    def adjoint(self, bar: Any, whose: str) -> Any:
        """An adjoint of a state, whose nesting and shapes must be those of the state."""
        if self.is_array:
            shape = self.leaves[0].shape  # type: ignore[union-attr]
            if isinstance(bar, np.ndarray) and bar.shape == shape:
                return bar
        for number, part, name in _leaves(self._nesting, bar, whose):
            leaf = self.leaves[number]
            want = leaf.shape if isinstance(leaf, ArrayLeaf) else ()
            if part is not None and np.shape(part) != want:
                raise _changed(name, f"of the shape {list(want)}", in_words(part))
        return bar


def _leaves(nesting: Any, state: Any, name: str) -> Iterator[Any]:
    """The numbers of a nesting's leaves, with the parts of a state that they are, and their names.

    UsageError P040: the state has another nesting.
    """
    if type(nesting) is int:
        yield nesting, state, name
    elif type(nesting) is tuple:
        cls, parts = nesting
        if not isinstance(state, tuple) or len(state) != len(parts):
            raise _changed(name, f"a {cls.__name__} of {len(parts)}", in_words(state))
        for k, (inner, value) in enumerate(zip(parts, state, strict=True)):
            yield from _leaves(inner, value, f"{name}[{k}]")
    else:
        if not isinstance(state, dict) or state.keys() != nesting.keys():
            raise _changed(name, f"a dict of {', '.join(map(repr, nesting))}", in_words(state))
        for key, inner in nesting.items():
            yield from _leaves(inner, state[key], f"{name}[{key!r}]")


def added(a: Any, b: Any) -> Any:
    """The sum of two adjoints of one form, leaf by leaf; None is nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        parts = [added(x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
    if isinstance(a, dict):
        return {key: added(a[key], b[key]) for key in a}
    return a + b


def _changed(name: str, want: str, got: str) -> UsageError:
    return UsageError(
        "P040",
        f"{name} is {got}, where the input has {want}",
        hint="all states of a run have the form of the input; begin with one that steps give back"
        if "adjoint" not in name
        else "an adjoint has the nesting and the shapes of its state",
    )
