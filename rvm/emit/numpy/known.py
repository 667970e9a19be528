"""Value numbers and buffers: what a segment of code over lanes has computed, and where it lies.

Equal numbers mean equal values: of constants, of registers as they were since their last change,
and of functions of such.  A value lies in a buffer of the segment, in a variable of its own, or in
a register's memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from rvm.expr import Apply, Const, Expr, Index, Place, Shaped, Span, reads
from rvm.program import Function
from rvm.types import Scalar


@dataclass(slots=True)
class Value:
    """A value over lanes (or a uniform one made ready for NumPy) as an atom of source.

    `serial` counts the values made in a segment; `temp` is the letter and number of its buffer,
    `home` the register in whose memory it lies, `number` its value number.
    """

    text: str
    serial: int = -1
    temp: tuple[str, int] | None = None
    home: int = -1
    number: int = -1


FRAME = ("have", "at_home", "register", "numbered", "differing", "varying")


class Known:
    """Which values a printer has, and where.

    A printer is used twice: the first time counts how often each value is asked for, `uses`, so
    that the second can give a buffer free after the last time.  `standing` gives the place that a
    register without a value stands for, if there is one.
    """

    def __init__(
        self,
        function: Function,
        varying: Collection[int],
        uses: Counter[int] | None = None,
        standing: Callable[[int], Place | None] = lambda reg: None,
    ) -> None:
        self.function = function
        self.varying = varying
        self.uses: Counter[int] = Counter()
        self.stored_in: set[int] = set()
        """Registers that were changed."""
        self.have: dict[int, Value] = {}
        """The values that there are, by their numbers."""
        self.at_home: dict[int, list[int]] = {}
        self.register: dict[int, int] = {}
        """The value numbers of scalar registers."""
        self.buffers: list[str] = []
        """The dtypes of the buffers, in the order of their numbers."""
        self.serials = 0
        self._left = uses
        self._standing = standing
        self._numbers: dict[object, int] = {}
        self._versions: Counter[int] = Counter()
        self._alive: list[Expr] = []
        """Nodes whose identities are keys."""
        self._spare: dict[str, list[int]] = {}
        self.forget()

    def forget(self) -> None:
        """Note that registers have other values, or vary otherwise."""
        self.numbered: dict[int, int] = {}
        """Numbers of nodes by identity, until a register changes."""
        self.differing: dict[int, bool] = {}

    def frame(self) -> dict[str, Any]:
        """What an arm of a choice has of its own, to be restored behind it."""
        return {name: vars(self)[name] for name in FRAME}

    def restore(self, frame: dict[str, Any]) -> None:
        """Go on from a frame."""
        vars(self).update(frame)

    # ------------------------------------------------------------ what varies, and numbers

    def differs(self, node: Expr) -> bool:
        """Whether a node's value may differ from lane to lane."""
        found = self.differing.get(id(node))
        if found is None:
            found = any(p.reg in self.varying for p in reads(node))
            self.differing[id(node)] = found
            self._alive.append(node)
        return found

    def number(self, node: Expr) -> int:
        """The value number of a node: equal ones have equal values here."""
        found = self.numbered.get(id(node))
        if found is None:
            found = self.numbered[id(node)] = self._numbered(node)
            self._alive.append(node)
        return found

    def _numbered(self, node: Expr) -> int:
        match node:
            case Const():
                return self.intern(("const", node))
            case Place(reg, ()):
                if isinstance(self.function.registers[reg].type, Scalar):
                    return self._number_of(reg)
                return self.intern(("reg", reg, self._versions[reg]))
            case Place(reg, path):
                steps = tuple(map(self._step_number, path))
                return self.intern(("place", reg, self._versions[reg], steps))
            case Apply(fn, args):
                return self.intern((fn, node.type, *map(self.number, args)))
        raise TypeError(f"a template cannot be printed: {node!r}")

    def _step_number(self, step: object) -> object:
        if isinstance(step, Shaped):
            return "shape", *map(self.number, step.dims)
        if not isinstance(step, Index):
            return step
        return tuple(
            tuple(-1 if end is None else self.number(end) for end in item.ends)
            if isinstance(item, Span)
            else self.number(item)
            for item in step.items
        )

    def intern(self, key: object) -> int:
        """The number of what a key stands for."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _number_of(self, reg: int) -> int:
        if reg not in self.register and (place := self._standing(reg)) is not None:
            return self.number(place)
        if reg not in self.register:
            self.register[reg] = self.intern(("reg", reg, self._versions[reg]))
        return self.register[reg]

    def changed(self, reg: int, number: int | None = None) -> None:
        """Note that a register has a new value, if known what its number is."""
        self.stored_in.add(reg)
        self._versions[reg] += 1
        self.numbered = {}
        if number is None:
            self.register.pop(reg, None)
        else:
            self.register[reg] = number
        for n in self.at_home.pop(reg, ()):
            if n in self.have and self.have[n].home == reg:
                del self.have[n]

    def remember(self, number: int, value: Value) -> None:
        """Note where the value of a number is."""
        value.number = number
        self.have[number] = value
        if value.home >= 0:
            self.at_home.setdefault(value.home, []).append(number)

    # ------------------------------------------------------------ buffers

    def spend(self, *values: Value) -> None:
        """Note a use of values; a buffer that was used for the last time is free again."""
        for v in values:
            if v.serial < 0:
                continue
            self.uses[v.serial] += 1
            if self._left is not None:
                self._left[v.serial] -= 1
                if not self._left[v.serial] and v.temp is not None:
                    self._spare.setdefault(v.temp[0], []).append(v.temp[1])
                    if self.have.get(v.number) is v:
                        del self.have[v.number]

    def buffer(self, dtype: str) -> tuple[str, int]:
        """The letter and number of a buffer that is free."""
        free = self._spare.setdefault(dtype, [])
        if free:
            return dtype, free.pop()
        self.buffers.append(dtype)
        return dtype, len(self.buffers) - 1

    def made(self, text: str, temp: tuple[str, int] | None = None, home: int = -1) -> Value:
        """A new value."""
        self.serials += 1
        return Value(text, self.serials, temp, home)
