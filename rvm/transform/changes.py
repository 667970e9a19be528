"""The parameters that functions change, and those that they restore by construction.

A function that undoes its changes of a parameter, or whose adjoint does, restores it; so does a
function that calls such functions.  `rvm.verify.matching` finds this in the code, given the same
facts about called functions.  For a recursive function it is assumed for the calls, and then must
be found in the code: an induction over the depth of calls.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping

from rvm.host.once import once
from rvm.program import Function, Program
from rvm.transform.duals import reachable
from rvm.transform.programs import in_values
from rvm.verify import inout_slots
from rvm.verify.conflicts import CALLS
from rvm.verify.matching import restored


class Changes(Mapping[str, frozenset[int]]):
    """For each function, the parameters that it may change without restoring them.

    Restored parameters are known after the first use of `restored` or `of_calls`.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._inout = inout_slots(program)
        self._groups: dict[object, object] = {}
        self._known: dict[object, object] = {}
        """The parameters that each function of a group restores, by the group's number."""

    def __getitem__(self, name: str) -> frozenset[int]:
        number, _ = self._group(name)
        known = self._known.get(number)
        return self._inout[name] - (known[name] if isinstance(known, dict) else frozenset())

    def __iter__(self) -> Iterator[str]:
        return iter(self._inout)

    def __len__(self) -> int:
        return len(self._inout)

    def in_values(self, name: str) -> tuple[Function, bool] | None:
        """The effect of an adjoint or tangent on values: a function, and whether it is undone."""
        found = in_values(self._program).get(name)
        return None if found is None else (self._program.function(found[0]), found[1])

    def restored(self, name: str) -> frozenset[int]:
        """The parameters that a function leaves as they were, by construction."""
        self.of_calls(self._program.function(name))
        return self._of_group(*self._group(name))[name]

    def of_calls(self, function: Function) -> Changes:
        """The same, with the facts about all functions that one may call."""
        names = {n for c in _called(function) for n in reachable(self._program, c)}
        for group in sorted({self._group(n) for n in names}):
            self._of_group(*group)
        return self

    def _of_group(self, number: int, names: tuple[str, ...]) -> dict[str, frozenset[int]]:
        """The parameters restored by functions that may call each other."""
        return once(self._known, number, dict, lambda: self._restored_by(names))

    def _restored_by(self, names: tuple[str, ...]) -> dict[str, frozenset[int]]:
        found = {n: frozenset(range(self._program.function(n).n_args)) for n in names}
        while True:
            assumed = {n: self._inout[n] - back for n, back in found.items()}
            leaving = ChainMap(assumed, self)  # type: ignore[arg-type]  # it is only read
            seen = {
                n: restored(self._program.function(n), leaving, self.in_values)
                for n, back in found.items()
            }
            if seen == found:
                return found
            found = seen

    def _group(self, name: str) -> tuple[int, tuple[str, ...]]:
        """The functions that may call a function and be called by it, with their number.

        Other functions that they call have lower numbers.
        """
        groups = once(self._groups, _grouped, dict, lambda: _grouped(self._program))
        found: tuple[int, tuple[str, ...]] = groups[name]
        return found


def _grouped(program: Program) -> dict[str, tuple[int, tuple[str, ...]]]:
    """For each function its strongly connected component of the graph of calls, and its number.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms" (1972).
    """
    out: dict[str, tuple[int, tuple[str, ...]]] = {}
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    count = 0
    for root in program:
        todo = [] if root in order else [(root, iter(_called(program.function(root))))]
        while todo:
            name, rest = todo[-1]
            if name not in order:
                order[name] = low[name] = len(order)
                path.append(name)
            for other in rest:
                if other not in order:
                    todo.append((other, iter(_called(program.function(other)))))
                    break
                if other not in out:
                    low[name] = min(low[name], low[other])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[name])
                if low[name] == order[name]:
                    at = len(path) - 1
                    while path[at] != name:
                        at -= 1
                    out |= dict.fromkeys(path[at:], (count, tuple(path[at:])))
                    count += 1
                    del path[at:]
    return out


def _called(function: Function) -> dict[str, None]:
    return {i.symbol: None for i in function.code if i.op in CALLS}
