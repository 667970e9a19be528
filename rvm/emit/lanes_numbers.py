"""Value numbers and buffers: what a segment of code over lanes has computed, and where it lies.

Equal numbers mean equal values: of constants, of registers as they were since their last change,
and of functions of such.  A value lies in a buffer of the segment, in a variable of its own, or in
a register's memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from rvm.emit.python.lines import bare
from rvm.emit.python.printer import Printer
from rvm.expr import Apply, Const, Expr, Index, Place, Span, reads
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


class LaneNumbers(Printer):
    """A printer that knows which values it has, and where.

    It is used twice: the first time counts how often each value is asked for, so that the second
    can give a buffer free after the last time.  What is the same in all lanes is computed as in
    single runs, but by total functions, which do not raise.
    """

    total = True

    def __init__(
        self,
        function: Function,
        names: dict[str, object],
        varying: Collection[int],
        special: Callable[[str], str | None],
        uses: Counter[int] | None = None,
    ) -> None:
        super().__init__(function, names)
        self.varying = varying
        self.special = special
        """For a function of arrays the name of its form over lanes; "" where it has none."""
        self.uses: Counter[int] = Counter()
        self.stored_in: set[int] = set()
        """Registers that were changed."""
        self._left = uses
        self._serials = 0
        self._numbers: dict[object, int] = {}
        self._have: dict[int, Value] = {}
        self._versions: Counter[int] = Counter()
        self._known: dict[int, int] = {}
        """Numbers of nodes by identity, until a register changes."""
        self._differing: dict[int, bool] = {}
        self._alive: list[Expr] = []
        """Nodes whose identities are keys."""
        self._at_home: dict[int, list[int]] = {}
        self._register: dict[int, int] = {}
        """The value numbers of scalar registers."""
        self._spare: dict[str, list[int]] = {}
        self.buffers: list[str] = []
        """The dtypes of the buffers, in the order of their numbers."""
        self._guard = ""
        self._keys: dict[tuple[str, str], str] = {}
        self._later: list[Value] = []
        """Values that are used until the end of the statement."""

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
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = self._numbered(node)
            self._alive.append(node)
        return found

    def _numbered(self, node: Expr) -> int:
        match node:
            case Const():
                return self._intern(("const", node))
            case Place(reg, ()):
                if isinstance(self.function.registers[reg].type, Scalar):
                    return self._register_number(reg)
                return self._intern(("reg", reg, self._versions[reg]))
            case Place(reg, path):
                steps = tuple(map(self._step_number, path))
                return self._intern(("place", reg, self._versions[reg], steps))
            case Apply(fn, args):
                return self._intern((fn, node.type, *map(self.number, args)))
        raise TypeError(f"a template cannot be printed: {node!r}")

    def _step_number(self, step: object) -> object:
        if not isinstance(step, Index):
            return step
        return tuple(
            tuple(-1 if end is None else self.number(end) for end in (item.lo, item.hi))
            if isinstance(item, Span)
            else self.number(item)
            for item in step.items
        )

    def _intern(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _register_number(self, reg: int) -> int:
        if reg not in self._register:
            self._register[reg] = self._intern(("reg", reg, self._versions[reg]))
        return self._register[reg]

    def changed(self, reg: int, number: int | None = None) -> None:
        """Note that a register has a new value, if known what its number is."""
        self.stored_in.add(reg)
        self._versions[reg] += 1
        self._known = {}
        if number is None:
            self._register.pop(reg, None)
        else:
            self._register[reg] = number
        for n in self._at_home.pop(reg, ()):
            if n in self._have and self._have[n].home == reg:
                del self._have[n]

    def _remember(self, number: int, value: Value) -> None:
        """Note where the value of a number is."""
        value.number = number
        self._have[number] = value
        if value.home >= 0:
            self._at_home.setdefault(value.home, []).append(number)

    # ------------------------------------------------------------ buffers

    def _spend(self, *values: Value) -> None:
        """Note a use of values; a buffer that was used for the last time is free again."""
        for v in values:
            if v.serial < 0:
                continue
            self.uses[v.serial] += 1
            if self._left is not None:
                self._left[v.serial] -= 1
                if not self._left[v.serial] and v.temp is not None:
                    self._spare.setdefault(v.temp[0], []).append(v.temp[1])
                    if self._have.get(v.number) is v:
                        del self._have[v.number]

    def _buffer(self, dtype: str) -> tuple[str, int]:
        free = self._spare.setdefault(dtype, [])
        if free:
            return dtype, free.pop()
        self.buffers.append(dtype)
        return dtype, len(self.buffers) - 1

    def _made(self, text: str, temp: tuple[str, int] | None = None, home: int = -1) -> Value:
        self._serials += 1
        return Value(text, self._serials, temp, home)

    def _named(self, text: str, home: int = -1) -> Value:
        """A value put into a variable of its own."""
        value = self._made(f"_v{self._serials}", home=home)
        self._lines.append(f"{value.text} = {bare(text)}")
        return value
