"""From call statements to Python source: filling a callee's registers, and taking them back.

Both work on the lists of raw register values that frames hold.  As in
`rvm.emit.python`, whatever is out of the ordinary raises, before anything has
changed, and the reference engine does the tick.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from rvm.emit.python import Printer
from rvm.emit.values import item_of
from rvm.expr import Apply, Const, Expr, Place
from rvm.image import Clash
from rvm.ir.typed import Unprintable
from rvm.program import Function
from rvm.stmt import Call
from rvm.types import Array, Scalar, elem_of


class CallPrinter(Printer):
    """Prints `enter(regs)` and `leave(regs, inner)` for one call."""

    def __init__(self, function: Function, names: dict[str, object]) -> None:
        super().__init__(function, names)
        self.regs = [f"regs[{k}]" for k in range(len(function.registers))]

    def _element_name(self, reg: int, name: str) -> str:
        return name

    def _read_element(self, place: Place, name: str, keys: str, n: int) -> str:
        return item_of(name, keys, n)

    def print(
        self,
        call: Call,
        callee: Function,
        changed: Collection[int],
        clashes: Sequence[Clash],
        strict: bool,
    ) -> str:
        """The source of both functions; Unprintable if the call is not for this printer."""
        self._lines, self._temps, self._bound = [], 0, {}
        self._apart(clashes)
        tests, self._lines = self._lines, []
        values = [self.value(a) for a in call.args]
        if strict and any(
            k in changed and not isinstance(a, Place) and not elem_of(_known(a)).is_exact
            for k, a in enumerate(call.args)
        ):
            raise Unprintable
        if self._lines:
            raise Unprintable
        enter = ["def enter(regs):", *("    " + line for line in tests)]
        enter.append(f"    inner = [{''.join(v + ', ' for v in values)}]")
        for k in range(len(call.args)):
            for axis, dim in enumerate(callee.registers[k].dims):
                if dim is not None:
                    want = _length(dim)
                    enter.append(f"    if inner[{k}].shape[{axis}] != {want}: trouble()")
        more = len(callee.registers) - len(call.args)
        enter.append(f"    inner += ({'None, ' * more})" if more else "    pass")
        enter.append("    return inner")
        return "\n".join([*enter, *self._leave(call, changed)]) + "\n"

    def _leave(self, call: Call, changed: Collection[int]) -> list[str]:
        checks, stores = [], []
        for k in sorted(changed):
            arg = call.args[k]
            if isinstance(arg, Place):
                if isinstance(arg.type, Scalar):
                    self._lines = []
                    load = self._place(arg)
                    checks.extend(self._lines)
                    stores.append(self._store(arg, load, f"inner[{k}]"))
            elif isinstance(_known(arg), Array):
                raise Unprintable
            else:
                text = f"inner[{k}] != (_v := {self.value(arg)})"
                t = elem_of(_known(arg))
                if not t.is_exact:
                    zero = "" if t.is_complex else "not _v and "
                    text += f" or {zero}signs(inner[{k}]) != signs(_v)"
                checks.append(f"if {text}: trouble()")
        lines = [*checks, *stores] or ["pass"]
        return ["def leave(regs, inner):", *("    " + line for line in lines)]


def _known(node: Expr) -> Scalar | Array:
    assert node.type is not None
    return node.type


def _length(dim: Expr) -> str:
    """A parameter's length as an expression over the callee's registers."""
    match dim:
        case Const(v):
            return repr(v)
        case Apply("dim", (Place(reg, ()), Const(axis))):
            return f"inner[{reg}].shape[{cast(int, axis)}]"
        case _:
            raise Unprintable
