"""From call statements to Python source: filling a callee's registers, and taking them back.

Both work on the lists of raw register values in frames.  In unusual cases they raise, before
anything has changed, and the reference engine executes the tick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import cast

from rvm.emit.python.printer import Printer
from rvm.expr import Apply, Const, Expr, Place
from rvm.image import Clash
from rvm.ir.statements import apart, note
from rvm.ir.typed import Unprintable, type_of
from rvm.ir.values import located, put
from rvm.program import Function
from rvm.stmt import Call, Stmt
from rvm.types import Array, Scalar, elem_of


class CallPrinter(Printer):
    """Prints `enter(regs)` and `leave(regs, inner)` for calls of one function."""

    def register_names(self, taken: Iterable[str]) -> list[str]:
        return [f"regs[{k}]" for k in range(len(self.function.registers))]

    def print(
        self,
        call: Call,
        callee: Function,
        changed: Collection[int],
        clashes: Sequence[Clash],
        strict: int,
        notes: Sequence[Stmt],
        suffix: str,
    ) -> str:
        """The source of both functions, whose names end in `suffix`.

        Unprintable if the call is not for this printer.
        """
        if strict and any(
            k in changed and not isinstance(a, Place) and not elem_of(type_of(a)).is_exact
            for k, a in enumerate(call.args)
        ):
            raise Unprintable
        self.begin()
        self.builder.begin()
        apart(self.builder, clashes)
        self.text.print(self.builder.items)
        given = list(map(self.value, call.args))
        enter = [*self._lines, *entered(callee, given)]
        leave = self._leave(call, changed, notes) or ["pass"]
        heads = (f"def enter{suffix}(regs):", enter), (f"def leave{suffix}(regs, inner):", leave)
        return "".join(f"{head}\n    " + "\n    ".join(body) + "\n" for head, body in heads)

    def _leave(self, call: Call, changed: Collection[int], notes: Sequence[Stmt]) -> list[str]:
        self.begin()
        self.builder.begin()
        b, stores = self.builder, []
        for k in sorted(changed):
            arg = call.args[k]
            if isinstance(arg.type, Array):
                if not isinstance(arg, Place):
                    raise Unprintable
            elif isinstance(arg.type, Scalar):
                t = arg.type
                found = b.call(f"inner[{k}]", kind=t.name)
                if isinstance(arg, Place):
                    stores.append((located(b, arg), found))
                    continue
                text = "{0} != {1}"
                if not t.is_exact:
                    zero = "" if t.is_complex else "not {1} and "
                    text += f" or {zero}signs({{0}}) != signs({{1}})"
                b.trouble(b.call(f"({text})", found, b.value(arg)))
        for place, found in stores:
            put(b, place, found)
        note(b, notes)
        self.text.print(b.items)
        return self._lines


def entered(callee: Function, given: Sequence[str]) -> Iterator[str]:
    """Lines that return a callee's registers with the values given, whose lengths must be right."""
    yield f"inner = [{''.join(f'{value}, ' for value in given)}]"
    for k in range(len(given)):
        for axis, dim in enumerate(callee.registers[k].dims):
            if dim is not None:
                yield f"if inner[{k}].shape[{axis}] != {_length(dim)}: trouble()"
    more = len(callee.registers) - len(given)
    yield f"return inner + [{'None, ' * more}]" if more else "return inner"


def _length(dim: Expr) -> str:
    """A parameter's length as an expression over the callee's registers."""
    match dim:
        case Const(v):
            return repr(v)
        case Apply("dim", (Place(reg, ()), Const(axis))):
            return f"inner[{reg}].shape[{cast(int, axis)}]"
        case _:
            raise Unprintable
