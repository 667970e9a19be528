"""Syntax nodes of statements and declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rvm_asm.nodes import Declared, Node, TypeParam, TypeRef, Word

if TYPE_CHECKING:
    from rvm.program import Function
    from rvm_asm.generics import TypeValue


class Stat:
    """Base of statements: the position and the labels in front."""

    __slots__ = ("end", "labels", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.labels: tuple[Word, ...] = ()


class OpStat(Stat):
    """An instruction or a macro's use: a mnemonic and operands."""

    __slots__ = ("args", "name", "stop")

    def __init__(self, name: str, args: list[Node], start: int, stop: int, end: int) -> None:
        self.name = name
        self.args = args
        self.start = start
        self.stop = stop
        """The end of the mnemonic."""
        self.end = end
        self.labels = ()


class AllocStat(Stat):
    """`alloc x: T = v`, `free x = v`, `local x: T`."""

    __slots__ = ("declared", "name", "value")

    def __init__(
        self, name: str, declared: Declared, value: Node | None, start: int, end: int
    ) -> None:
        super().__init__(start, end)
        self.name = name
        self.declared = declared
        self.value = value


class Jump(Stat):
    """`br C, L` and `cf C, L`; `partner` is None where it is left to be inferred."""

    __slots__ = ("cond", "name", "partner")

    def __init__(self, name: str, cond: Node, partner: Word | None, start: int, end: int) -> None:
        super().__init__(start, end)
        self.name = name
        self.cond = cond
        self.partner = partner


MAPS = {"map": "call", "unmap": "uncall"}
"""The statements that map functions, and how each calls the function that is made."""


class Invoke(Stat):
    """`call f(a, b)`, `uncall f(a, b)`, `map f(a, b)`, `unmap f(a, b)`.

    `types` are those of `call f[f64](a, b)`.  Of the arguments numbered in `walked` the elements
    are passed.  `call f'(a; a_bar)` calls what the `marks` make of f; `bars` is what stands behind
    the `;`.
    """

    __slots__ = ("args", "bars", "callee", "marks", "name", "types", "walked")

    def __init__(
        self,
        name: str,
        callee: Word,
        args: list[Node],
        start: int,
        end: int,
        types: list[TypeRef] | None = None,
        walked: frozenset[int] = frozenset(),
        marks: tuple[str, ...] = (),
        bars: list[Node] | None = None,
    ) -> None:
        super().__init__(start, end)
        self.name = name
        self.callee = callee
        self.args = args
        self.types = types
        self.walked = walked
        self.marks = marks
        self.bars = bars or []

    def over(self, walked: frozenset[int]) -> Invoke:
        """The call for an element of those arguments."""
        start, end = self.start, self.end
        return Invoke(
            "call", self.callee, self.args, start, end, self.types, walked, self.marks, self.bars
        )


class Iterate(Stat):
    """`iterate f(y, x, k) for k = a to b with …`; of `times n` `var` and `first` are None."""

    __slots__ = ("args", "callee", "down", "first", "last", "policy", "types", "var")

    def __init__(
        self,
        callee: Word,
        args: list[Node],
        var: Word | None,
        first: Node | None,
        last: Node,
        down: bool,
        policy: list[tuple[Word, Node]],
        start: int,
        end: int,
        types: list[TypeRef] | None = None,
    ) -> None:
        super().__init__(start, end)
        self.callee = callee
        self.types = types
        self.down = down
        """Whether the variable falls: `downto`."""
        self.args = args
        self.var = var
        self.first = first
        self.last = last
        """The last value of the variable, or the number of steps."""
        self.policy = policy


class EffectStat(Stat):
    """`print`, `assert` and `callback` inside an `extern` block."""

    __slots__ = ("args", "name", "text")

    def __init__(self, name: str, text: str, args: list[Node], start: int, end: int) -> None:
        super().__init__(start, end)
        self.name = name
        self.text = text
        self.args = args


class Extern(Stat):
    """`extern forward … end`."""

    __slots__ = ("body", "when")

    def __init__(self, when: int, body: list[Stat], start: int, end: int) -> None:
        super().__init__(start, end)
        self.when = when
        self.body = body


class Arm:
    """One `if` or `elseif` with its condition, postcondition and body."""

    __slots__ = ("body", "cond", "post")

    def __init__(self, cond: Node, post: Node | None, body: list[Stat]) -> None:
        self.cond = cond
        self.post = post
        self.body = body


class IfStat(Stat):
    """A chain of arms, perhaps with an `else`."""

    __slots__ = ("arms", "orelse")

    def __init__(self, arms: list[Arm], orelse: list[Stat] | None, start: int, end: int) -> None:
        super().__init__(start, end)
        self.arms = arms
        self.orelse = orelse


class While(Stat):
    """`while p, q … end`."""

    __slots__ = ("body", "cond", "post")

    def __init__(self, cond: Node, post: Node, body: list[Stat], start: int, end: int) -> None:
        super().__init__(start, end)
        self.cond = cond
        self.post = post
        self.body = body


class From(Stat):
    """`from q … [loop …] until p`, Janus' loop."""

    __slots__ = ("again", "body", "entry", "until")

    def __init__(
        self, entry: Node, body: list[Stat], again: list[Stat], until: Node, start: int, end: int
    ) -> None:
        super().__init__(start, end)
        self.entry = entry
        self.body = body
        self.again = again
        self.until = until


class For(Stat):
    """`for i = a to b step s … end`; `down` for `downto`."""

    __slots__ = ("body", "down", "first", "last", "step", "var")

    def __init__(
        self,
        var: Word,
        first: Node,
        last: Node,
        step: Node | None,
        down: bool,
        body: list[Stat],
        start: int,
        end: int,
    ) -> None:
        super().__init__(start, end)
        self.var = var
        self.first = first
        self.last = last
        self.step = step
        self.down = down
        self.body = body


class Routine(Stat):
    """`routine r … end`; with a `result` it is undone after that."""

    __slots__ = ("body", "name", "result")

    def __init__(
        self, name: Word, body: list[Stat], result: list[Stat] | None, start: int, end: int
    ) -> None:
        super().__init__(start, end)
        self.name = name
        self.body = body
        self.result = result


class With(Stat):
    """`with t: T = v, … end`: registers that hold their values before and after the body."""

    __slots__ = ("body", "held")

    def __init__(
        self, held: list[tuple[Declared, Node | None]], body: list[Stat], start: int, end: int
    ) -> None:
        super().__init__(start, end)
        self.held = held
        self.body = body


class Replace(Stat):
    """`replace x as t by f(t, x), g(x, t)`: the place, the new value's name, there and back."""

    __slots__ = ("back", "name", "place", "there")

    def __init__(
        self, place: Node, name: Word, there: Node, back: Node, start: int, end: int
    ) -> None:
        super().__init__(start, end)
        self.place = place
        self.name = name
        self.there = there
        self.back = back


class Undo(Stat):
    """`undo r`."""

    __slots__ = ("name",)

    def __init__(self, name: Word, start: int, end: int) -> None:
        super().__init__(start, end)
        self.name = name


class Empty(Stat):
    """No instruction; carries labels at the end of a block."""

    __slots__ = ()


# Declarations.


class Func:
    """`func name[types](params)` and its body; or a function of another program, `linked`."""

    __slots__ = ("body", "end", "linked", "name", "params", "start", "types")

    def __init__(
        self,
        name: Word,
        types: list[TypeParam],
        params: list[Declared],
        body: list[Stat],
        start: int,
        end: int,
        linked: Function | None = None,
    ) -> None:
        self.name = name
        self.linked = linked
        self.types = types
        self.params = params
        self.body = body
        self.start = start
        self.end = end

    @property
    def functions(self) -> list[Declared]:
        """The parameters that are functions."""
        return [p for p in self.params if p.is_function]

    @property
    def is_generic(self) -> bool:
        return bool(self.types or self.functions)


class Constant:
    """`const NAME = expression`."""

    __slots__ = ("name", "value")

    def __init__(self, name: Word, value: Node) -> None:
        self.name = name
        self.value = value


class RecordDef:
    """`record Name[types] … end`."""

    __slots__ = ("fields", "name", "types")

    def __init__(self, name: Word, types: list[TypeParam], fields: list[Declared]) -> None:
        self.name = name
        self.types = types
        self.fields = fields


class Macro:
    """`macro name a, b … end`; `types` are the values of type parameters in its body."""

    __slots__ = ("body", "formals", "name", "types")

    def __init__(
        self,
        name: Word,
        formals: list[Word],
        body: list[Stat],
        types: Mapping[str, TypeValue] | None = None,
    ) -> None:
        self.name = name
        self.formals = formals
        self.body = body
        self.types = types


class Pure:
    """`pure name(a, b) = expression`, inlined where it is used."""

    __slots__ = ("formals", "name", "value")

    def __init__(self, name: Word, formals: list[Word], value: Node) -> None:
        self.name = name
        self.formals = formals
        self.value = value


class Include:
    """`include "file"`."""

    __slots__ = ("end", "path", "start")

    def __init__(self, path: str, start: int, end: int) -> None:
        self.path = path
        self.start = start
        self.end = end


class EntryDef:
    """`entry name`, `entry name[f64]`."""

    __slots__ = ("name", "types")

    def __init__(self, name: Word, types: list[TypeRef] | None) -> None:
        self.name = name
        self.types = types


class Keep:
    """`keep none`: no copies are kept of what is undone and lives on; `keep values`: expressions
    that are passed are values, never bijections of a place; `keep numbers`: of stacks of arrays
    instructions move and name single numbers; `keep faults`: what every run would stop at is left
    to the run.
    """

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what


Declaration = Func | Constant | RecordDef | Macro | Pure | Include | EntryDef | Keep
