"""Functions that generated code calls, each in nodes: it is printed for the modules that need it.

The definition of a helper is a Python function with its name, which is given a `Body` and the nodes
of the arguments, appends operations, and returns the result's node, or None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from rvm.ir.items import Operations
from rvm.ir.node import I64, PTR, Argument, Node, Var, constant

NULL = constant(None, PTR)
VOID = "void"


class Body(Operations):
    """The operations of a function by itself, which is never given up.

    Integers are taken for constants of the kind of the operation's first argument.
    """

    def trouble(self, condition: Node) -> None:
        raise AssertionError("a function that is called has no checks")

    def op(self, name: str, *args: Node | int, kind: str = "", aux: object = None) -> Node:
        given = [a if isinstance(a, Node) else constant(a, args[0].kind) for a in args]  # type: ignore[union-attr]
        return super().op(name, *given, kind=kind, aux=aux)

    def intrinsic(self, name: str, *args: Node | int, aux: str = "") -> Node:
        return self.op("intrinsic", *args, kind=args[0].kind, aux=name + aux)  # type: ignore[union-attr]

    def begun(self, value: Node) -> Var:
        """A variable that begins with a value."""
        variable = self.variable(value.kind)
        self.set(variable, value)
        return variable

    def room(self, words: int) -> Node:
        """A pointer to words in the frame."""
        return Node("variable", PTR, (), self.variable(I64, "room", many=words))

    def word(self, pointer: Node, k: Node | int) -> Node:
        """A pointer to a word of a row of them."""
        if isinstance(k, int):
            return self.op("slot", pointer, kind=PTR, aux=k)
        return self.op("moved", pointer, self.op("shl", k, 3), kind=PTR)

    def read(self, pointer: Node, k: Node | int) -> Node:
        """A word of a row."""
        return self.peek(I64, self.word(pointer, k))

    def grow(self, pointer: Node, amount: Node | int) -> None:
        """Add to the word behind a pointer."""
        self.poke(self.op("wadd", self.peek(I64, pointer), amount), pointer)

    def copy(self, to: Node, of: Node, size: Node) -> None:
        """Copy a number of bytes."""
        self.helper("llvm.memcpy.p0.p0.i64", VOID, to, of, size, self.truth(False))

    def either(
        self, condition: Node, yes: Callable[[], Node], no: Callable[[], Node], kind: str = I64
    ) -> Node:
        """One of two values, of which only one is computed."""
        found = self.variable(kind)
        self.when(condition, lambda: self.set(found, yes()), lambda: self.set(found, no()))
        return self.get(found)

    def loop(self, test: Callable[[], Node], body: Callable[[], object]) -> None:
        """Execute `body` as long as a condition holds, which is computed before each round."""
        found: list[Node] = []
        items = self.inside(lambda: found.append(test()))
        self.do("while", aux=(items, found[0], self.inside(body)))


Define = Callable[..., Node | None]


@dataclass(frozen=True, slots=True)
class Helper:
    """A function: the kinds of its arguments and of its result, and LLVM's words about both."""

    define: Define
    args: tuple[Argument, ...]
    gives: str
    before: str
    behind: str


HELPERS: dict[str, Helper] = {}
"""All of them, by their names."""


def helper(
    *kinds: str, gives: str = I64, before: str = "internal", behind: str = ""
) -> Callable[[Define], Define]:
    """Enter a helper; `before` and `behind` are LLVM's attributes of the result and of itself."""

    def enter(define: Define) -> Define:
        _, *names = inspect.signature(define).parameters
        args = tuple(Argument(name, kind) for name, kind in zip(names, kinds, strict=True))
        HELPERS[define.__name__] = Helper(define, args, gives, before, behind)
        return define

    return enter
