"""Positions of a piece's elements: first indices, slices, and checks of bounds."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from rvm.engines.vector.access import Access, Axis
from rvm.engines.vector.loops import Counted
from rvm.expr import Expr


class Indices:
    """Lines in front of a piece, and the names that they give.

    With `mirrored` the last iteration is the first lane: NumPy goes upwards faster than downwards.
    `fixed` prints an expression that no iteration changes, `name` an array register.
    """

    def __init__(
        self,
        counted: Counted,
        mirrored: bool,
        fixed: Callable[[Expr], str],
        name: Callable[[int], str],
    ) -> None:
        self.stride = counted.stride
        """The increment of the loop's variable from lane to lane; None if only the run knows."""
        if mirrored and self.stride is not None:
            self.stride = -self.stride
        self.fixed = fixed
        self.name = name
        self.starts: list[str] = []
        """Lines that find the first index of each run of indices."""
        self.bounds: list[str] = []
        """Lines that check both ends of runs, when the number of lanes is known."""
        self._firsts: dict[object, str] = {}
        self._slices: dict[object, str] = {}
        self._bounded: set[object] = set()
        self._reached: dict[Hashable, tuple[tuple[int, str], tuple[int, str], str]] = {}

    def rate(self, axis: Axis) -> str:
        """The increment of an affine index from lane to lane."""
        if not axis.rate:
            return "0"
        if self.stride is not None:
            return repr(axis.rate * self.stride)
        return "_by" if axis.rate == 1 else f"({axis.rate} * _by)"

    def first(self, axis: Axis) -> str:
        """The name of an index's value in the first lane; a fixed one has it in all lanes."""
        if not axis.rate:
            return self.fixed(axis.index)
        found = self._firsts.get(axis.key)
        if found is None:
            found = self._firsts[axis.key] = f"_f{len(self._firsts)}"
            self.starts.append(f"{found} = {self._sum(axis)}")
        return found

    def _sum(self, axis: Axis) -> str:
        """An affine index in the first lane.

        It does not wrap: an index that would is out of bounds here, and so left to the ordinary
        loop.
        """
        assert axis.rest is not None
        terms = [(axis.rate, "_at")]
        for atom, factor in axis.rest.atoms.items():
            assert isinstance(atom, Expr)
            terms.append((factor, self.fixed(atom)))
        text = ""
        for factor, name in terms:
            size = "" if abs(factor) == 1 else f"{abs(factor)} * "
            sign = "- " if factor < 0 else "+ " if text else ""
            text += f"{' ' if text else ''}{sign}{size}{name}"
        constant = axis.rest.constant
        return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text

    def base(self, found: Access) -> str:
        """The array that an element belongs to."""
        return self.name(found.reg) + {"": "", "re": ".real", "im": ".imag"}[found.part]

    def length(self, found: Access, k: int) -> str:
        """The length of an axis."""
        name = self.name(found.reg)
        return f"{name}.shape[{k}]" if k else f"len({name})"

    def fix(self, found: Access, k: int) -> str:
        """A checked index, of which only the value in the first lane matters."""
        axis = found.axes[k]
        first = self.first(axis)
        line = f"within({first}, {first}, {self.length(found, k)})"
        self._bound((found.reg, k, axis.key, "first"), line)
        return first

    def at(self, found: Access) -> str:
        """The element that the first lane reaches."""
        return (
            f"{self.base(found)}[{', '.join(self.fix(found, k) for k in range(len(found.axes)))}]"
        )

    def view(self, found: Access) -> str:
        """The elements that all lanes reach, as a slice; "" if they do not form one."""
        if found.kind != "stream" or sum(bool(a.rate) for a in found.axes) != 1:
            return ""
        keys = ", ".join(
            self._run(found, k) if axis.rate else self.fix(found, k)
            for k, axis in enumerate(found.axes)
        )
        return f"{self.base(found)}[{keys}]"

    def _run(self, found: Access, k: int) -> str:
        """The index of a slice that grows."""
        axis = found.axes[k]
        first, length, rate = self.first(axis), self.length(found, k), self.rate(axis)
        run = f"run_of({first}, {rate}, _k)"
        if rate == "1":
            # For a short run, calls here would cost as much as the NumPy operation.
            run = f"slice({first}, {first} + _k)"
            self._reach(found.reg, axis, length)
        else:
            last = f"{first} + {rate} * (_k - 1)"
            self._bound((found.reg, k, axis.key), f"within({first}, {last}, {length})")
        name = self._slices.get(axis.key)
        if name is None:
            name = self._slices[axis.key] = f"_s{len(self._slices)}"
            self.bounds.append(f"{name} = {run}")
        return name

    def _reach(self, reg: int, axis: Axis, length: str) -> None:
        """Record that an axis is used from an index on; only the outermost indices are checked."""
        assert axis.rest is not None
        key = reg, length, axis.rate, frozenset(axis.rest.atoms.items())
        here = axis.rest.constant, self.first(axis)
        low, high, _ = self._reached.get(key, (here, here, length))
        self._reached[key] = min(low, here), max(high, here), length

    @property
    def reached(self) -> list[str]:
        """Lines that check both ends of runs of neighbours."""
        return [
            f"if {low} < 0 or {high} + _k > {length}: raise Trouble"
            for (_, low), (_, high), length in self._reached.values()
        ]

    def _bound(self, key: object, line: str) -> None:
        if key not in self._bounded:
            self._bounded.add(key)
            self.bounds.append(line)
