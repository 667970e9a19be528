"""From expression nodes to the machine's expressions: names, literals, functions.

The result is a template: places are typed, literals and functions are not yet; the ISA's typing
gives them types when their instruction is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import NoReturn

from rvm.expr import Apply, Const, Expr, Index, Part, Peek, Place, Shaped, Span, Step, Transposed
from rvm.isa import FUNCTIONS, OPCODES, TypeFault, place, typed
from rvm.isa.typing import MAX_NODES, surplus
from rvm.types import I64, Scalar, Stack
from rvm_asm.expressions import MAX_DEPTH, operator_name
from rvm_asm.generics import FUNCTION, NUMBERS, Types
from rvm_asm.literals import NO_NUMBER, TEXTS, WORDS, raw_constant
from rvm_asm.messages import did_you_mean
from rvm_asm.names import plain
from rvm_asm.nodes import (
    Application,
    FieldStep,
    Lit,
    Node,
    Operator,
    Range,
    Ref,
    RefStep,
    ShapeStep,
    Sub,
)
from rvm_asm.program import Declarations
from rvm_asm.registers import RegisterWriter, TypeProblem
from rvm_asm.scope import Alias, Binding, Length, NameGroup, Scope, Slot, leaves_of

ELEMENTS = ".len"
"""A step to how many numbers a stack holds, which nothing written leads to."""
MAX_LINKS = 50
"""The number of links per instruction of a chain of operators that is too long for one."""
MAX_KNOWN = 8
"""The largest number of known names listed in a message."""


class Rejected(Exception):
    """An operand or statement that is wrong; reported already."""


class ValueReader:
    """Lowers the expressions of one function."""

    def __init__(
        self, program: Declarations, excused: set[str], types: Types | None = None
    ) -> None:
        self.program = program
        self.report = program.report
        self.excused = excused
        self.scope = Scope(types=types)
        self.registers = RegisterWriter(program.records, program.report, lambda: self.scope.types)
        self.registers.keeps_numbers = program.keeps_numbers
        self.made: list[tuple[Expr, Node]] = []
        """Every node made, with what it was made from: for messages, and to keep ids unique."""
        self._syntax: dict[int, Node] = {}
        self._indexed = 0
        self._depth = 0
        self._count = 0
        self.is_lazy = False
        """Whether the expression is an argument that may not be evaluated."""

    def reject(self, code: str, message: str, node: Node | RefStep, hint: str = "") -> NoReturn:
        self.report.about(node, code, message, hint=hint)
        raise Rejected

    # Expressions.

    def operand(self, node: Node) -> Expr:
        """A whole operand as a template."""
        self._count = 0
        self._depth = 0
        self.is_lazy = False
        return self.value(node)

    def whole(self, node: Node, code: str, refusal: str) -> Expr:
        """An operand of type i64; one of another type is refused."""
        template = self.operand(node)
        try:
            done = typed(template, I64)
        except TypeFault as fault:
            self.fault(fault, node)
        if done.type != I64:
            self.reject(code, f"{refusal} {done.type}", node)
        return done

    def value(self, node: Node) -> Expr:
        """A node as a template."""
        kind = type(node)
        if kind is Ref:
            out = self._ref(node)  # type: ignore[arg-type]
        elif kind is Lit:
            out = self._literal(node)  # type: ignore[arg-type]
        else:
            out = self._apply(node)
        self.made.append((out, node))
        self._count += 1
        if self._count > MAX_NODES:
            self.reject(
                "A046",
                f"the expression has more than {MAX_NODES} nodes",
                node,
                "compute a part of it into an ancilla",
            )
        return out

    def text_of(self, node: Node | None) -> bytes | None:
        """The bytes of a text literal, or of a constant that is one."""
        binding = self.scope.names.get(node.name) if type(node) is Ref else None
        if type(binding) is Alias and not node.steps:  # type: ignore[union-attr]
            outer, self.scope = self.scope, binding.scope
            try:
                return self.text_of(binding.node)
            finally:
                self.scope = outer
        return self.program.constants.text(node) if binding is None else None

    def _literal(self, node: Lit) -> Const:
        if type(node.value) is bytes:
            self.reject("A041", NO_NUMBER, node, TEXTS)
        if node.type is None:
            return Const(node.value)
        try:
            t = self.registers.register_type(node.type, len(node.type.dims or ()))
        except TypeProblem:
            raise Rejected from None
        if not isinstance(t, Scalar):
            self.reject("A041", f"a literal is a scalar, not a {t}", node)
        try:
            return Const(raw_constant(node.value, t), t)
        except (ValueError, TypeError, OverflowError) as error:
            self.reject("A041", str(error), node)

    def _apply(self, node: Node) -> Expr:
        assert not isinstance(node, (Ref, Lit))
        name = node.name
        if isinstance(node, Operator):
            fn = operator_name(name, len(node.args))
        else:
            value = self.scope.types.get(name)
            pure = self.program.pures.get(name) if value is None else None
            if pure is not None:
                return self._inline(node)
            stack = self._of_stack(node)
            if stack is not None:
                return self.value(stack)
            fn = name if value is None or value.kind != NUMBERS else str(value.elem)
            if fn not in FUNCTIONS:
                fn = plain(name)
                if fn not in FUNCTIONS:
                    self._unknown_function(node)
        if isinstance(node, Operator):
            links = _links(node)
            if len(links) > MAX_LINKS:
                height = max(_height(link.args[1]) for link in links)
                if self._depth + len(links) + height >= MAX_DEPTH:
                    return self._chain(links)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.too_deep(node)
        lazy, self.is_lazy = self.is_lazy, self.is_lazy or FUNCTIONS[fn].lazy
        args = tuple([self.value(a) for a in node.args])
        self.is_lazy = lazy
        self._depth -= 1
        return Apply(fn, args)

    def _chain(self, links: list[Operator]) -> Expr:
        """A long chain of operators, the last of them first, of which parts are held."""
        outer = self._depth
        is_deep = outer + MAX_LINKS >= MAX_DEPTH
        base = 0 if is_deep else outer
        self._depth = base + MAX_LINKS
        value = self.value(links[-1].args[0])
        for k, link in enumerate(reversed(links)):
            if k and k % MAX_LINKS == 0:
                value = self.held_part(value, link.args[0])
                self._count = 0
            self._depth = base + MAX_LINKS - k % MAX_LINKS
            fn = operator_name(link.name, 2)
            lazy, self.is_lazy = self.is_lazy, self.is_lazy or FUNCTIONS[fn].lazy
            value = Apply(fn, (value, self.value(link.args[1])))
            self.is_lazy = lazy
            self.made.append((value, link))
        self._depth = outer
        return self.held_part(value, links[0]) if is_deep else value

    def held_part(self, value: Expr, node: Node) -> Expr:
        """The ancilla that holds a part of a long expression while a statement uses it."""
        self.too_deep(node)

    def too_deep(self, node: Node) -> NoReturn:
        self.reject(
            "A046",
            f"the expression nests deeper than {MAX_DEPTH} levels",
            node,
            "compute a part of it into an ancilla",
        )

    def _of_stack(self, node: Node) -> Node | None:
        """`top(s)`, `len(s)` and `empty(s)` of a stack, as places and what is asked of them.

        `len(…)` of a text is a number.
        """
        assert not isinstance(node, (Ref, Lit))
        if node.name not in ("top", "len", "empty") or len(node.args) != 1:
            return None
        s = node.args[0]
        text = self.text_of(s) if node.name == "len" else None
        if text is not None:
            return Lit(len(text), node.start, node.end)
        if not isinstance(s, Ref):
            return None
        found, path = self.resolve(s)
        is_stack = isinstance(found, Slot) and isinstance(found.type, Stack)
        if isinstance(found, NameGroup) and found.stacked and not path:
            is_stack = True
            if node.name != "top":
                # All of its fields hold as many.
                s = self._first_leaf(s, found)
        if path or not is_stack:
            return None
        step = FieldStep("top" if node.name == "top" else ELEMENTS, node.start, node.end)
        place = Ref(s.name, (*s.steps, step), node.start, node.end)
        if node.name == "empty":
            return Operator("==", [place, Lit(0, node.start, node.end)], node.start, node.end)
        size = prod(next(leaf.shape for leaf in leaves_of(found)))
        if node.name == "top" or size == 1:
            return place
        return Operator("//", [place, Lit(size, node.start, node.end)], node.start, node.end)

    def _first_leaf(self, s: Ref, group: Slot | NameGroup) -> Ref:
        """The first field of a stack of records."""
        while isinstance(group, NameGroup):
            name, group = next(iter(group.fields.items()))
            s = Ref(s.name, (*s.steps, FieldStep(name, s.start, s.end)), s.start, s.end)
        return s

    def _unknown_function(self, node: Node) -> NoReturn:
        assert not isinstance(node, (Ref, Lit))
        name = node.name
        start = node.start
        hint = did_you_mean(name, [*FUNCTIONS, *self.program.pures])
        if name in ("top", "empty") and name not in self.program.functions:
            self.reject("A040", f"`{name}` takes a stack, by its name", node)
        if name in self.program.functions or name in self.scope.types:
            hint = f"`{name}` is run by `call {name}(…)`, and its results are its parameters"
        elif name in OPCODES:
            hint = f"`{name}` is an instruction, and needs a separate line"
        self.report.error(
            "A004", f"there is no function `{name}`", start, start + len(name), hint=hint
        )
        raise Rejected

    def _inline(self, node: Node) -> Expr:
        assert not isinstance(node, (Ref, Lit))
        pure = self.program.pures[node.name]
        if len(node.args) != len(pure.formals):
            self.reject(
                "A044",
                f"`{node.name}` takes {len(pure.formals)} arguments, not {len(node.args)}",
                node,
            )
        context = self.report.context
        if any(name == node.name for name, _, _ in context):
            self.reject("A051", f"the pure function `{node.name}` uses itself", node)
        inner = Scope(f"{node.name}()", depth=len(context) + 1)
        for formal, arg in zip(pure.formals, node.args, strict=True):
            inner.names[formal.text] = Alias(arg, self.scope)
        outer, self.scope = self.scope, inner
        self._depth += 1
        context.append((node.name, node.start, node.end))
        try:
            if self._depth > MAX_DEPTH:
                self.reject("A046", f"expressions nest deeper than {MAX_DEPTH} levels", node)
            return self.value(pure.value)
        finally:
            context.pop()
            self._depth -= 1
            self.scope = outer

    def held_top(self, stack: Slot, node: Ref) -> Slot:
        """The ancilla that holds the array on top of a stack while a statement uses it."""
        self.reject(
            "A040",
            f"`{node.name}` is a stack of arrays, whose top has no value here",
            node,
            "`if`, `while`, instructions and calls may use it; or `pop x, s`, and push it again",
        )

    # Names and places.

    def _ref(self, node: Ref) -> Expr:
        binding = self.scope.names.get(node.name)
        if type(binding) is Slot and not node.steps:
            return Place(binding.reg, (), binding.value_type)
        found, path = self.resolve(node)
        if isinstance(found, Slot):
            return self._place(found, path, node)
        if isinstance(found, NameGroup):
            text = self.report.sources.text(node.start, node.end)
            self.reject(
                "A056",
                f"`{text}` is a record, which is not a value",
                node,
                f"name a field: {', '.join(f'`.{f}`' for f in found.fields)}",
            )
        if isinstance(found, Length):
            return found.expr()
        if isinstance(found, Alias):
            return self._in_scope(found)
        return self.value(found)

    def _in_scope(self, alias: Alias) -> Expr:
        outer, self.scope = self.scope, alias.scope
        context = self.report.context
        # What an operand's own expression uses is not inside of what it is an operand of.
        self.report.context = context[: alias.scope.depth]
        try:
            return self.value(alias.node)
        finally:
            self.scope, self.report.context = outer, context

    def _place(self, slot: Slot, path: tuple[Step, ...], node: Ref) -> Expr:
        if not path:
            return Place(slot.reg, (), slot.value_type)
        try:
            return place(slot.reg, slot.type, path)
        except TypeFault as fault:
            self.fault(fault, node)

    def resolve(self, node: Ref) -> tuple[Binding | Lit, tuple[Step, ...]]:
        """The meaning of a name and its steps: a register and path, a record, length or value."""
        binding, steps = self._lookup(node)
        path: list[Step] = []
        if isinstance(binding, Alias) and steps:
            target = binding.node
            if not isinstance(target, Ref):
                self.reject(
                    "A052", f"`{node.name}` stands for an expression here, which has no parts", node
                )
            outer, self.scope = self.scope, binding.scope
            try:
                inner, inner_path = self.resolve(target)
            finally:
                self.scope = outer
            path = list(inner_path)
            if isinstance(inner, Alias):
                self.reject("A052", f"`{node.name}` stands for an expression here", node)
        elif isinstance(binding, Alias) and isinstance(binding.node, Ref):
            outer, self.scope = self.scope, binding.scope
            try:
                return self.resolve(binding.node)
            finally:
                self.scope = outer
        else:
            inner = binding
        crossed = isinstance(binding, Alias)
        for step in steps:
            if isinstance(step, Sub):
                self._index(inner, step, path, crossed, node)
                crossed = False
            elif isinstance(step, ShapeStep):
                if not isinstance(inner, Slot):
                    self.reject("A055", f"`{node.name}` is not an array, so it has no shape", step)
                path.append(Shaped(tuple([self.value(d) for d in step.dims])))
            elif isinstance(inner, NameGroup):
                field = inner.fields.get(step.name)
                if field is None and inner.stacked and step.name == "top" and not path:
                    path.append(Peek("top"))
                    continue
                if field is None:
                    self.reject(
                        "A055",
                        f"the record `{inner.record}` has no field `{step.name}`",
                        step,
                        f"{did_you_mean(step.name, inner.fields)} its fields: ".lstrip()
                        + ", ".join(f"`{f}`" for f in inner.fields),
                    )
                inner = field
                crossed = True
                if isinstance(inner, Slot) and inner.shape and path:
                    inner, path = self.held_top(inner, node), []
            elif isinstance(inner, Slot) and step.name in ("re", "im", "T"):
                path.append(Transposed() if step.name == "T" else Part(step.name))
            elif (
                isinstance(inner, Slot)
                and isinstance(inner.type, Stack)
                and (step.name in ("top", ELEMENTS) or (step.name == "len" and not inner.shape))
            ):
                if inner.shape and step.name == "top":
                    inner = self.held_top(inner, node)
                else:
                    path.append(Peek("top" if step.name == "top" else "len"))
            else:
                is_length = step.name in ("len", "length", "size", "shape", "count")
                hint = f"its length is `len({node.name})`" if is_length else ""
                if (
                    step.name == "empty"
                    and isinstance(inner, Slot)
                    and isinstance(inner.type, Stack)
                ):
                    hint = f"`empty({node.name})` asks"
                self.reject("A055", f"`{node.name}` has no field `{step.name}`", step, hint)
        return inner, tuple(path)

    def _index(
        self, target: Binding | Lit, step: Sub, path: list[Step], crossed: bool, node: Ref
    ) -> None:
        if isinstance(target, (Length, Lit, Alias)):
            self.reject("A042", f"`{node.name}` is a number and has no elements", step)
        if isinstance(target, NameGroup):
            taken = sum(len(s.items) for s in path if isinstance(s, Index))
            if taken + len(step.items) > target.rank:
                self.reject("A042", surplus(taken + len(step.items), target.rank), step)
        items = tuple([self._item(i, step) for i in step.items])
        last = path[-1] if path else None
        if crossed and isinstance(last, Index) and not any(isinstance(i, Span) for i in last.items):
            path[-1] = Index((*last.items, *items))
        else:
            path.append(Index(items))

    def _item(self, item: Node | Range, step: Sub) -> Expr | Span:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._depth = 0
            inner = item.ends if isinstance(item, Range) else (item,)
            node = next((e for e in inner if e is not None), step)
            self.reject("A046", f"indices nest deeper than {MAX_DEPTH} levels", node)
        if isinstance(item, Range):
            ends = (None if e is None else self.value(e) for e in item.ends)
            out: Expr | Span = Span(*ends)
        else:
            out = self.value(item)
        for end in (out.lo, out.hi) if isinstance(out, Span) else (out,):
            if isinstance(end, Const) and type(end.value) is int and end.value < 0:
                if self.program.keeps_faults:
                    continue
                self.reject(
                    "A042",
                    f"the index {end.value} is negative, and indices do not count from the end",
                    step if isinstance(item, Range) else item,
                    f"`n - {-end.value}`, where n is the length of the axis",
                )
        self._depth -= 1
        return out

    def _lookup(self, node: Ref) -> tuple[Binding | Lit, tuple[RefStep, ...]]:
        names = self.scope.names
        steps = node.steps
        if steps and type(steps[0]) is FieldStep:
            # A register's own name may have dots: that of a record's leaf, or of a loop's bound.
            name, found = node.name, None
            for k, step in enumerate(steps, 1):
                if not isinstance(step, FieldStep):
                    break
                name = f"{name}.{step.name}"
                if name in names:
                    found = names[name], steps[k:]
            if found is not None:
                return found
        binding = names.get(node.name)
        if binding is not None:
            return binding, steps
        if node.name in self.program.constants:
            literal = self.program.constants.literal(node.name)
            if literal is None:
                raise Rejected
            return literal, node.steps
        if node.name in self.excused:
            raise Rejected
        if node.name in self.scope.types:
            is_function = self.scope.types[node.name].kind == FUNCTION
            what, how = ("function", "call {}(…)") if is_function else ("type", "alloc t: {}")
            self.reject(
                "A005", f"`{node.name}` is a {what} here", node, f"`{how.format(node.name)}`"
            )
        there = [*self.scope.names, *self.program.constants.definitions]
        hint = did_you_mean(node.name, [*there, *WORDS])
        if node.name == "_":
            hint = "`_` leaves out a bar or a dot, behind the `;` in `call f'(…; …)`"
        if node.name.lower() in WORDS:
            hint = f"write `{node.name.lower()}`"
        if self.scope.owner:
            hint = hint or "a macro sees its parameters, its own ancillas and constants only"
        self.report.error(
            "A005",
            f"nothing here is called `{node.name}`",
            node.start,
            node.start + len(node.name),
            hint=hint or self._known(there),
        )
        raise Rejected

    def _known(self, names: Sequence[str]) -> str:
        """The known names, for a hint."""
        shown = [n for n in names if n.isidentifier()][:MAX_KNOWN]
        more = ", …" if len(names) > len(shown) else ""
        known = ", ".join(f"`{n}`" for n in shown) + more if shown else "nothing"
        return f"known here: {known}; `alloc` makes an ancilla"

    def leaves(self, node: Node) -> list[Expr] | None:
        """The places of all leaves if `node` names a record, else None."""
        if not isinstance(node, Ref):
            return None
        binding = self.scope.names.get(node.name)
        if type(binding) is Slot or binding is None:
            return None
        found, path = self.resolve(node)
        if isinstance(found, Alias):
            return None
        if not isinstance(found, NameGroup):
            return None
        out = []
        for leaf in found.leaves():
            if leaf.shape and path:
                place = self._place(self.held_top(leaf, node), (), node)
            else:
                place = self._place(leaf, path, node)
            self.made.append((place, node))
            out.append(place)
        return out

    # Faults of typing.

    def syntax(self) -> dict[int, Node]:
        """The syntax that each expression was made from, by the expression's identity."""
        for expr, node in islice(self.made, self._indexed, None):
            self._syntax[id(expr)] = node
        self._indexed = len(self.made)
        return self._syntax

    def origin(self, node: Expr | None) -> Node | None:
        """The syntax that an expression was made from."""
        return self.syntax().get(id(node))

    def fault(self, fault: TypeFault, node: Node) -> NoReturn:
        """Report a fault of typing at the syntax of its node, or else at `node`."""
        at = self.origin(fault.node) if fault.node is not None else None
        at = node if at is None else at
        self.report.about(at, fault.code, fault.message, hint=fault.hint)
        raise Rejected


def _height(node: Node) -> int:
    """The number of levels of functions in an expression."""
    height, level = -1, [node]
    while level:
        height += 1
        level = [a for n in level if isinstance(n, (Operator, Application)) for a in n.args]
    return height


def _links(node: Node) -> list[Operator]:
    """A binary operator, that on its left, the one on that one's left, and so on."""
    links: list[Operator] = []
    while type(node) is Operator and len(node.args) == 2:
        links.append(node)
        node = node.args[0]
    return links
