"""Value numbers: the values that a segment of code over lanes has computed, and where they are.

Equal numbers mean equal values: of constants, of registers since their last change, and of
functions of these.  A value is in a separate variable, or in a register's memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from rvm.expr import Apply, Const, Expr, Index, Place, Shaped, Span, reads
from rvm.program import Function
from rvm.types import Scalar


@dataclass(slots=True)
class Value:
    """A value over lanes (or a uniform one prepared for NumPy) as an atom of source.

    `home` is the register in whose memory it is; `is_full` says that it has an axis of lanes.
    """

    text: str
    home: int = -1
    is_full: bool = True


class Known:
    """The values that a printer has, and where they are."""

    def __init__(self, function: Function, varying: Collection[int]) -> None:
        self.function = function
        self.varying = varying
        self.stored_in: set[int] = set()
        """Registers that were changed."""
        self.have: dict[int, Value] = {}
        """The available values, by number."""
        self.at_home: dict[int, list[int]] = {}
        self.register: dict[int, int] = {}
        """The value numbers of scalar registers."""
        self._numbers: dict[object, int] = {}
        self._versions: Counter[int] = Counter()
        self._alive: list[Expr] = []
        """Nodes whose identities are keys."""
        self._numbered: dict[int, int] = {}
        """Numbers of nodes by identity, until a register changes."""
        self._differing: dict[int, bool] = {}

    # ------------------------------------------------------------ what varies, and numbers

    def differs(self, node: Expr) -> bool:
        """Whether a node's value may differ from lane to lane."""
        found = self._differing.get(id(node))
        if found is None:
            found = any(p.reg in self.varying for p in reads(node))
            self._differing[id(node)] = found
            self._alive.append(node)
        return found

    def number(self, node: Expr) -> int:
        """The value number of a node: equal ones have equal values here."""
        found = self._numbered.get(id(node))
        if found is None:
            found = self._numbered[id(node)] = self._number(node)
            self._alive.append(node)
        return found

    def _number(self, node: Expr) -> int:
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
        """The number of the value for a key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _number_of(self, reg: int) -> int:
        if reg not in self.register:
            self.register[reg] = self.intern(("reg", reg, self._versions[reg]))
        return self.register[reg]

    def changed(self, reg: int, number: int | None = None) -> None:
        """Record that a register has a new value, with its number if known."""
        self.stored_in.add(reg)
        self._versions[reg] += 1
        self._numbered = {}
        if number is None:
            self.register.pop(reg, None)
        else:
            self.register[reg] = number
        for n in self.at_home.pop(reg, ()):
            if n in self.have and self.have[n].home == reg:
                del self.have[n]

    def remember(self, number: int, value: Value) -> None:
        """Record where the value with a number is."""
        self.have[number] = value
        if value.home >= 0:
            self.at_home.setdefault(value.home, []).append(number)
