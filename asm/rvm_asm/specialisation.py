"""Calls of generic functions: which types they are made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from rvm.codes.words import count
from rvm.expr import Const, Expr, Index, Place, Span, walk
from rvm.isa import TypeFault, typed
from rvm.numbers import system
from rvm.types import Stack
from rvm_asm.generics import (
    FUNCTION,
    NUMBERS,
    Types,
    TypeValue,
    class_text,
    listed,
    may_be,
    members,
    named_function,
    type_node,
)
from rvm_asm.inference import Conflict, Inference, Shape, literal, record_of, shape_of
from rvm_asm.memory import Memory
from rvm_asm.messages import did_you_mean
from rvm_asm.names import plain
from rvm_asm.nodes import Declared, Node, Ref, Sub, TypeParam, TypeRef, Word
from rvm_asm.registers import RegisterWriter, TypeProblem
from rvm_asm.scope import NameGroup, Slot
from rvm_asm.stats import Func, Invoke, Iterate, Stat
from rvm_asm.values import Rejected


class Specialising(Memory):
    """Finds the values of type parameters where a generic function is called."""

    def _specialised(
        self, func: Func, stat: Invoke | Iterate, passed: Sequence[Node]
    ) -> tuple[str, list[Node]]:
        """The function made for the types of a call, and the arguments that are not functions."""
        name = plain(func.name.text)
        if len(passed) != len(func.params):
            params = [plain(p.name) + " (a function)" * p.is_function for p in func.params]
            self.wrong_count(name, params, len(passed), stat)
        inference = Inference(func, self.program.records)
        self._explicit(func, inference, stat)
        pairs = list(zip(func.params, passed, strict=True))
        values = [(p, a) for p, a in pairs if not p.is_function]
        walked = stat.walked if isinstance(stat, Invoke) else ()
        weak: list[tuple[Declared, Node]] = []
        for k, (p, given_arg) in enumerate(pairs):
            if p.is_function:
                continue
            arg = _first(stat, given_arg)
            shape = self.shape(arg)
            if shape is not None and k in walked:
                shape = shape.element()
            if shape is None:
                weak.append((p, arg))
            elif p.type is not None:
                self._found(inference, p, p.type, shape, arg)
        functions = [(p, self._function(p, a)) for p, a in pairs if p.is_function]
        for p, given in functions:
            # A function that is made already says what its parameters are.
            signature = self.program.signatures.get(given.name)
            wanted = _wanted(p)
            if signature is not None and len(signature) == len(wanted):
                for (_, binding), t in zip(signature, wanted, strict=True):
                    assert isinstance(binding, (Slot, NameGroup))
                    at = passed[func.params.index(p)]
                    self._found(inference, p, t, shape_of(binding), at, _OTHER_FUNCTION)
        for p, arg in weak:
            template = self.operand(arg)
            values_in = [n.value for n in walk(template) if isinstance(n, Const)]
            if p.type is not None and values_in:
                widest = max(values_in, key=_width)
                inference.given(p.type, literal(widest), plain(p.name), weak=True)
        if inference.missing:
            self._not_inferred(func, inference, stat)
        self._check_classes(func, inference.found, stat, inference)
        types = {p.name: inference.found[p.name] for p in func.types}
        for p, given in functions:
            at = passed[func.params.index(p)]
            types[p.name] = self._fitting(p, given, types, at)
        return self.made_for(func, types, stat.callee), [a for _, a in values]

    def wrong_count(self, name: str, params: Sequence[str], given: int, stat: Stat) -> NoReturn:
        """Report a call with too many arguments, or too few."""
        self.complain(
            "A044",
            f"`{name}` takes {len(params)} argument{'s' * (len(params) != 1)}, not {given}",
            stat,
            f"its parameters are {', '.join(params) or 'none'}",
        )

    def written_type(self, written: TypeRef) -> TypeValue:
        """The value of a type that is written in brackets."""
        try:
            return self.registers.value(written)
        except TypeProblem:
            raise Rejected from None

    def made_for(self, func: Func, types: Types, at: Word) -> str:
        assert self.program.specialise is not None
        return self.program.specialise(func, types, at)

    def _explicit(self, func: Func, inference: Inference, stat: Invoke | Iterate) -> None:
        """The types that a call names in brackets."""
        if stat.types is None:
            return
        if len(stat.types) != len(func.types):
            params = ", ".join(map(class_text, func.types)) or "none"
            self.complain(
                "A071",
                f"`{plain(func.name.text)}` has {count(len(func.types), 'type parameter')}, "
                f"not {len(stat.types)}",
                stat,
                f"they are {params}; {_among_arguments(func)}",
            )
        for p, written in zip(func.types, stat.types, strict=True):
            if written.name in self.program.functions:
                what = f"`{plain(written.name)}` is a function, and `{plain(p.name)}` a type"
                self.report.about(written, "A071", what, hint=_among_arguments(func))
                raise Rejected
            inference.set(p.name, self.written_type(written), f"[{plain(p.name)}]")

    def shape(self, arg: Node) -> Shape | None:
        """The known facts about an argument; None for one made of literals alone."""
        if isinstance(arg, Ref):
            leaves = self.leaves(arg)
            if leaves is not None:
                group, path = self.resolve(arg)
                assert isinstance(group, NameGroup)
                taken = sum(
                    not isinstance(i, Span) for s in path if isinstance(s, Index) for i in s.items
                )
                types = [leaf.type for leaf in leaves]
                stacks = [s.type for s in group.leaves()]
                whole = [t or s for t, s in zip(types, stacks, strict=True)]
                stacked = group.stacked and not path
                return Shape(tuple(whole), record_of(group, group.rank - taken), stacked)
        template = self.operand(arg)
        if isinstance(template, Place):
            if template.type is not None:
                return Shape((template.type,))
            t = self.registers.list[template.reg].type
            return Shape((t,)) if isinstance(t, Stack) else None
        if not _says(template):
            return None
        try:
            value = typed(template).type
        except TypeFault as fault:
            self.fault(fault, arg)
        return None if value is None else Shape((value,))

    def _found(
        self,
        inference: Inference,
        p: Declared,
        written: TypeRef,
        shape: Shape,
        at: Node,
        hint: str = "",
    ) -> None:
        """Infer from an argument; `hint` is for one that can't be converted."""
        try:
            inference.argument(written, shape, plain(p.name))
        except Conflict as conflict:
            self.reject("A071", conflict.message, at, hint or conflict.hint)

    def _not_inferred(
        self, func: Func, inference: Inference, at: Invoke | Iterate | Word
    ) -> NoReturn:
        name = plain(func.name.text)
        missing = inference.missing or [p.name for p in func.functions]
        names = ", ".join(f"`{plain(n)}`" for n in missing)
        usual = [str(inference.found.get(p.name, "f64")) for p in func.types]
        if isinstance(at, Word):
            usual += [plain(p.name) for p in func.functions]
            how = f"{name}[{', '.join(usual)}]"
        else:
            word = at.name if isinstance(at, Invoke) else "iterate"
            how = f"{word} {name}[{', '.join(usual)}](…)"
        self.report.about(
            at,
            "A071",
            f"{names} of `{name}` cannot be inferred from the arguments",
            hint=f"give it: `{how}`",
        )
        raise Rejected

    def _check_classes(
        self,
        func: Func,
        found: Types,
        at: Invoke | Iterate | Word,
        inference: Inference | None = None,
    ) -> None:
        for p in func.types:
            if not may_be(p, found[p.name]):
                by_value = isinstance(at, Word) and inference is not None
                alike = _stored_alike(func, p, found[p.name]) if by_value else ""
                self.report.about(
                    at,
                    "A072",
                    f"`{plain(func.name.text)}` takes {class_text(p)}, and `{plain(p.name)}` "
                    f"is {found[p.name]} "
                    + ("here" if inference is None else inference.by(p.name)),
                    hint=f"it may be {listed(p)}" + alike,
                )
                raise Rejected

    # Outside of calls.

    def named(self, func: Func, written: list[TypeRef], at: Word) -> Types:
        """The values of the parameters from the types and functions named in brackets."""
        name = plain(func.name.text)
        wanted = [*map(class_text, func.types), *(plain(p.name) for p in func.functions)]
        if len(written) != len(wanted):
            self.report.about(
                at,
                "A071",
                f"`{name}` takes {len(wanted)} types or functions in brackets, not {len(written)}",
                hint=f"`{name}[{', '.join(wanted)}]`"
                if wanted
                else f"use the name alone: `{name}`",
            )
            raise Rejected
        types: dict[str, TypeValue] = {}
        for p, one in zip(func.types, written, strict=False):
            types[p.name] = self.written_type(one)
        self._check_classes(func, types, at)
        for q, one in zip(func.functions, written[len(func.types) :], strict=True):
            arg = _as_node(one)
            types[q.name] = self._fitting(q, self._function(q, arg), types, arg)
        return types

    def inferred(self, func: Func, values: Mapping[str, Any]) -> Types:
        """The values of the parameters from a caller's values of the function's parameters."""
        inference = Inference(func, self.program.records)
        word = func.name
        for weak in (False, True):
            for p in func.params:
                if plain(p.name) in values and p.type is not None:
                    value = values[plain(p.name)]
                    try:
                        inference.given(p.type, value, plain(p.name), weak=weak)
                    except Conflict as conflict:
                        self.report.about(word, "A071", conflict.message)
                        raise Rejected from None
        if inference.missing or func.functions:
            self._not_inferred(func, inference, word)
        self._check_classes(func, inference.found, word, inference)
        return {p.name: inference.found[p.name] for p in func.types}

    # Functions as arguments.

    def _function(self, p: Declared, arg: Node) -> TypeValue:
        """The function that is passed for a parameter."""
        written = named_function(arg)
        known = self.scope.types.get(written.name) if written is not None else None
        if known is not None and known.kind == FUNCTION:
            return known
        name = written.name if written is not None else ""
        func = self.program.functions.get(name)
        if written is None or func is None:
            if name in self.excused:
                raise Rejected
            called = getattr(arg, "name", "")
            if called in self.program.functions:
                hint = f"pass its name alone: `{called}`"
            else:
                hint = did_you_mean(name, self.program.functions)
            said = f", and there is none called `{name}`" if name else ""
            self.reject(
                "A074",
                f"`{plain(p.name)}` is a function parameter, which takes the name of a "
                f"function{said}",
                arg,
                hint or "functions here: " + ", ".join(map(plain, self.program.functions)),
            )
        if written.dims is None:
            return TypeValue(FUNCTION, name=name)
        inside = [None if n is None else named_function(n) or type_node(n) for n in written.dims]
        named = [n for n in inside if n is not None]
        if len(named) < len(inside):
            self.reject("A011", "this is not the name of a type or a function", arg)
        word = Word(name, arg.start, arg.end)
        types = self.named(func, named, word)
        return TypeValue(FUNCTION, name=self.made_for(func, types, word))

    def _fitting(self, p: Declared, given: TypeValue, types: Types, at: Node) -> TypeValue:
        """A function with parameters of the types that are wanted; made for them if generic."""
        wanted = [self._wanted_shape(t, types) for t in _wanted(p)]
        func = self.program.generics.get(given.name)
        if func is not None:
            inference = Inference(func, self.program.records)
            if len(func.params) == len(wanted) and not func.functions:
                for param, shape in zip(func.params, wanted, strict=True):
                    if param.type is not None:
                        self._found(inference, param, param.type, shape, at, _OTHER_FUNCTION)
            fits = [
                q.name in inference.found and may_be(q, inference.found[q.name]) for q in func.types
            ]
            if not all(fits) or not fits:
                self._misfit(p, given, wanted, at)
            word = Word(given.name, at.start, at.end)
            given = TypeValue(FUNCTION, name=self.made_for(func, inference.found, word))
        signature = self.program.signatures.get(given.name)
        if signature is None:
            raise Rejected
        have = [shape_of(b) for _, b in signature if isinstance(b, (Slot, NameGroup))]
        if [s.leaves for s in have] != [s.leaves for s in wanted]:
            self._misfit(p, given, wanted, at)
        return given

    def _misfit(self, p: Declared, given: TypeValue, wanted: Sequence[Shape], at: Node) -> NoReturn:
        types = ", ".join(str(s.record or s.leaves[0]) for s in wanted)
        signature = self.program.signatures.get(given.name)
        takes = ""
        if signature is not None:
            have = (shape_of(b) for _, b in signature if isinstance(b, (Slot, NameGroup)))
            takes = f"`{given}` takes ({', '.join(str(s.record or s.leaves[0]) for s in have)})"
        elif given.name in self.program.generics:
            params = map(class_text, self.program.generics[given.name].types)
            takes = f"`{given}` is generic, with {', '.join(params)}"
        self.reject("A074", f"`{given}` does not fit `{plain(p.name)}`, a func({types})", at, takes)

    def _wanted_shape(self, written: TypeRef, types: Types) -> Shape:
        writer = RegisterWriter(self.program.records, self.report, lambda: types)
        constants = self.program.constants

        def length(node: Node | None, slot: Slot, axis: int) -> Expr | None:
            if not isinstance(node, Ref) or node.name not in constants:
                return None
            found = constants.literal(node.name)
            return None if found is None else Const(found.value)

        try:
            binding = writer.declare(Declared("", written, written.start, written.end), length)
        except TypeProblem:
            raise Rejected from None
        assert isinstance(binding, (Slot, NameGroup))
        return shape_of(binding)


def _wanted(p: Declared) -> list[TypeRef]:
    """The types of the parameters of a parameter that is a function."""
    assert p.type is not None
    return [f.type for f in p.type.fields or () if f.type is not None]


def _as_node(written: TypeRef) -> Node:
    """The name of a function in brackets, in the form of an argument."""
    if written.dims is None:
        return Ref(written.name, (), written.start, written.end)
    items = [d if d is not None else Ref("", (), written.start, written.end) for d in written.dims]
    step = Sub([*items], written.start, written.end)
    return Ref(written.name, (step,), written.start, written.end)


def _first(stat: Invoke | Iterate, arg: Node) -> Node:
    """An argument, of which the number of a step is the first of these numbers."""
    if not isinstance(stat, Iterate) or stat.var is None or stat.first is None:
        return arg
    is_number = isinstance(arg, Ref) and arg.name == stat.var.text and not arg.steps
    return stat.first if is_number else arg


_OTHER_FUNCTION = "pass a function with parameters of these types, or a generic one"


def _among_arguments(func: Func) -> str:
    """The place in a call where the functions that a function takes are named."""
    names = [plain(p.name) for p in func.params]
    shown = ", ".join(names) if func.functions else "…"
    return f"functions are arguments: `{plain(func.name.text)}[…]({shown})`"


def _stored_alike(func: Func, p: TypeParam, value: TypeValue) -> str:
    """A hint that names the type that a function may be for, and whose numbers are stored so."""
    if value.kind != NUMBERS or len(func.types) > 1:
        return ""
    dtype = system(value.elem).dtype
    alike = [t for t in members([c.text for c in p.classes]) if system(t).dtype == dtype]
    name = plain(func.name.text)
    return "".join(f"; arrays of {t} have this dtype, too: name it, `{name}[{t}]`" for t in alike)


def _says(template: Expr) -> bool:
    """Whether something in an expression has a type that is not a literal's own."""
    return any(n.type is not None for n in walk(template))


def _width(value: object) -> int:
    return 3 if isinstance(value, complex) else 1 if isinstance(value, int) else 2
