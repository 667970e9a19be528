"""Expressions as short text for messages; the disassembler prints them in full."""

from __future__ import annotations

from rvm.expr import Apply, Const, Expr, Index, Place, Shaped, Span, Transposed
from rvm.isa import FUNCTIONS
from rvm.numbers import system
from rvm.program import Function

MAX_TEXT = 60
CLOSING = {"(": ")", "[": "]", "{": "}"}


def show(node: Expr, function: Function) -> str:
    """`node` as the assembly language would write it, cut short if it is long.

    The node has passed the verifier's check of depth.
    """
    return shortened(_show(node, function))


def shortened(text: str, room: int = MAX_TEXT) -> str:
    """An expression's text, cut to about a number of characters, its brackets closed."""
    if len(text) <= room:
        return text
    cut = text[: room - 1].rstrip()
    open_ = []
    for sign in cut:
        if sign in CLOSING:
            open_.append(CLOSING[sign])
        elif open_ and sign == open_[-1]:
            open_.pop()
    return f"{cut}…{''.join(reversed(open_))}"


def _show(node: Expr | Span | None, function: Function) -> str:
    match node:
        case None:
            return ""
        case Span(lo, hi, by):
            text = f"{_show(lo, function)}:{_show(hi, function)}"
            return text if by is None else f"{text}:{_show(by, function)}"
        case Const(value, t):
            if t is not None and (t.is_fixed or t.is_log):
                return system(t).text(value)
            return str(value).lower() if isinstance(value, bool) else str(value)
        case Place(reg, path):
            return _place(reg, path, function)
        case Apply("dim", (Place(reg, ()), Const(int(axis)))):
            names = [d.name for d in function.dims if (d.reg, d.axis) == (reg, axis)]
            return names[0] if names else f"dim({_place(reg, (), function)}, {axis})"
        case Apply(fn, args):
            row = FUNCTIONS.get(fn)
            symbol = row.symbol if row else ""
            if symbol and len(args) == 2:
                return f" {symbol} ".join(_operand(a, function) for a in args)
            if symbol and len(args) == 1:
                return f"{symbol}{' ' * symbol.isalpha()}{_operand(args[0], function)}"
            return f"{fn}({', '.join(_show(a, function) for a in args)})"
        case _:
            return "?"


def _operand(node: Expr, function: Function) -> str:
    text = _show(node, function)
    row = FUNCTIONS.get(node.fn) if isinstance(node, Apply) else None
    return f"({text})" if row and row.symbol and " " in text else text


def _place(reg: int, path: tuple[object, ...], function: Function) -> str:
    out = function.registers[reg].name if 0 <= reg < len(function.registers) else f"r{reg}"
    for step in path:
        if isinstance(step, Index):
            out += f"[{', '.join(_show(i, function) for i in step.items)}]"
        elif isinstance(step, Shaped):
            out += f".reshape({', '.join(_show(d, function) for d in step.dims)})"
        else:
            out += ".T" if isinstance(step, Transposed) else f".{getattr(step, 'name', '?')}"
    return out
