"""Expressions put to use in a frame: texts filled with values, and places given new ones."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np

from rvm.engines.memory import store
from rvm.expr import Place
from rvm.faults import InputError, RvmError, UsageError
from rvm.numbers import system
from rvm.program import Function
from rvm.state import Frame, State
from rvm.types import Array, Stack
from rvm_tools.debug.expressions import Language, value_of
from rvm_tools.debug.keyframes import Keyframe
from rvm_tools.debug.passing import pass_on, passed_otherwise
from rvm_tools.debug.texts import raw_text
from rvm_tools.literals import MadeArray, Typed, read_literal
from rvm_tools.values import array_of, raw_number


def filled(language: Language, frame: Frame, message: str) -> str:
    """A text with `{expression}` replaced by values in a frame."""
    out, rest = "", message
    while "{" in rest:
        head, _, rest = rest.partition("{")
        inside, brace, rest = rest.partition("}")
        if not brace:
            return out + head + "{" + inside
        try:
            shown = raw_text(*language.value(inside, frame.code.function, frame.regs))
        except Exception as error:
            shown = f"<{getattr(error, 'message', error)}>"
        out += head + shown
    return out + rest


def check_filled(language: Language, function: Function, message: str) -> None:
    """Refuse a text whose braces don't match, or contain something other than an expression."""
    stacks = {r.name for r in function.registers if isinstance(r.type, Stack)}
    rest = message
    while "{" in rest:
        inside, brace, rest = rest.partition("{")[2].partition("}")
        if not brace:
            raise UsageError("U036", "a `{` in the text has no `}`", hint='tp 12 "x is {x}"')
        if inside.strip() not in stacks:
            language.expression(inside, function)


def edited(language: Language, state: State, depth: int, text: str, value: str) -> tuple[str, str]:
    """Set a place of a frame to a value, or that of an expression; return old and new as text.

    Values are those of the command line.  InputError I003 or UsageError U035 if it has another type
    or shape.
    """
    frame = state.frames[depth]
    function, regs = frame.code.function, frame.regs
    place = language.place(text, function, regs)
    t = place.type
    if t is None or isinstance(function.registers[place.reg].type, Stack):
        raise UsageError("U035", f"`{text}` is a stack; only numbers and arrays can be set")
    elem = t.elem if isinstance(t, Array) else t
    literal = _literal(value)
    if isinstance(t, Array) and isinstance(literal, (list, MadeArray)):
        return _stored(place, state, depth, text, array_of(t, str(t), text, literal))
    if isinstance(literal, (int, float, complex, Decimal, Typed)):
        return _stored(
            place, state, depth, text, raw_number(system(elem), literal, text, str(elem))
        )
    node = language.expression(value, function, regs, elem)
    assert node.type is not None
    given = node.type.elem if isinstance(node.type, Array) else node.type
    if given != elem or (isinstance(node.type, Array) and not isinstance(t, Array)):
        raise UsageError("U035", f"`{text}` is {t}, and the value is {node.type}")
    return _stored(place, state, depth, text, value_of(node, function, regs))


def _literal(value: str) -> Any:
    """What a text is that is a value by itself; None for an expression."""
    if value.startswith("["):
        return read_literal(value)
    with suppress(InputError):
        return read_literal(value, files=None)
    return None


def _stored(place: Place, state: State, depth: int, text: str, new: Any) -> tuple[str, str]:
    """Replace a value by another of its shape; return both as text."""
    frame = state.frames[depth]
    function, regs = frame.code.function, frame.regs
    old = value_of(place, function, regs)
    before = raw_text(place.type, old)
    if isinstance(new, np.ndarray) and np.shape(new) != np.shape(old):
        shapes = f"{list(np.shape(old))}, and the value {list(np.shape(new))}"
        raise UsageError("U035", f"`{text}` has the shape {shapes}")
    tried = Keyframe(state).state()
    store(place, tried.frames[depth].regs, new)
    with suppress(RvmError):
        # An index that is out of bounds now is found below.
        pass_on(tried, depth, place.reg)
    found = passed_otherwise(tried, state)
    if found is not None:
        arg, name, param = found
        raise UsageError(
            "U035",
            f"`{text}` can't be set during the call of `{name}`, which was passed `{arg}` as "
            f"`{param}`: on the way back it would be passed another value",
            hint="set it before the call, or after it",
        )
    with state.edit():
        store(place, regs, new)
        pass_on(state, depth, place.reg)
    return before, raw_text(place.type, value_of(place, function, regs))
