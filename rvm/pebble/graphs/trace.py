"""Straight-line Python programs as graphs: a function is run once on values that record operations.

    dag = trace(lambda a, b: (a + b) * (a - b), 2)

Each operation is a node.  Constants and the arguments are inputs and not nodes.  Applications of
functions other than operators are written `apply("sin", x)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rvm.pebble.graphs.dag import Dag, wrong


class Tape:
    """The operations of a run so far."""

    def __init__(self) -> None:
        self.preds: list[tuple[int, ...]] = []
        self.names: list[str] = []

    def node(self, name: str, operands: Sequence[Any]) -> Value:
        """A new node, computed from those operands that are values."""
        read = [x for x in operands if isinstance(x, Value)]
        if any(x.tape is not self for x in read):
            raise wrong("a value of another traced program is used")
        self.preds.append(tuple(sorted({x.node for x in read if x.node is not None})))
        self.names.append(f"{name}.{len(self.names)}")
        return Value(self, len(self.preds) - 1)


class Value:
    """A value of a traced program: an input (no node), or the result of an operation."""

    __slots__ = ("node", "tape")
    __array_ufunc__ = None
    """NumPy's operators leave theirs to this class."""

    def __init__(self, tape: Tape, node: int | None) -> None:
        self.tape = tape
        self.node = node

    def __bool__(self) -> bool:
        raise wrong(
            "a traced program is straight-line: it does not depend on values",
            "compute both sides, and choose by `apply('select', condition, a, b)`",
        )

    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        raise wrong("a traced value is one value, and has no parts")


def _operator(name: str, reflected: bool) -> Callable[..., Value]:
    def operate(self: Value, *others: Any) -> Value:
        return self.tape.node(name, [*others, self] if reflected else [self, *others])

    return operate


ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
BITS = ("and", "or", "xor", "lshift", "rshift")
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
UNARY = ("neg", "pos", "invert", "abs")
for _name in (*ARITHMETIC, *BITS):
    setattr(Value, f"__{_name}__", _operator(_name, False))
    setattr(Value, f"__r{_name}__", _operator(_name, True))
for _name in (*COMPARE, *UNARY):
    setattr(Value, f"__{_name}__", _operator(_name, False))


def apply(name: str, *operands: Any) -> Value:
    """A node for a function of operands, at least one of which is a traced value."""
    first = next((x for x in operands if isinstance(x, Value)), None)
    if first is None:
        raise wrong(f"`{name}` is applied to constants only")
    return first.tape.node(name, operands)


def trace(function: Callable[..., Any], inputs: int) -> Dag:
    """The graph of a function of a number of arguments, which returns a value or several.

    UsageError P008: it asks for a truth value, or returns what it did not compute.
    """
    tape = Tape()
    result = function(*(Value(tape, None) for _ in range(inputs)))
    results = result if isinstance(result, (tuple, list)) else (result,)
    outputs = []
    for value in results:
        if not isinstance(value, Value) or value.tape is not tape:
            raise wrong(f"the program returns {value!r}, which is not a traced value")
        if value.node is None:
            raise wrong("the program returns an input, which is there already")
        outputs.append(value.node)
    return Dag(tuple(tape.preds), tuple(dict.fromkeys(outputs)), tuple(tape.names))
