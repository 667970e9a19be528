"""Tangent mode: a program together with its derivative along a direction, run forwards.

For every function `f` there is a function `f_tangent` on values and their tangents: each
instruction is executed together with its effect on tangents.  It is ordinary code, as reversible as
`f`; applied to a gradient program it gives Hessian-vector products (forward over reverse).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from rvm.expr import Const, Expr, Place, is_count
from rvm.isa import OPCODES, apply, typed
from rvm.isa.shapes import Lengths
from rvm.isa.tangents import choice_of, tangent_of
from rvm.numbers import system
from rvm.program import Function, Instr, Program, unknown_function
from rvm.stmt import Map, Update
from rvm.transform.duals import DOT, Form, forms, reachable, unique, with_called
from rvm.transform.factors import signed
from rvm.transform.graph import Graph, Node
from rvm.transform.maps import tangent_map
from rvm.transform.walker import OPS, DualRules, Walker, placed
from rvm.types import Array, Scalar, ValueType, elem_of, rank_of
from rvm.verify import inout_slots

TANGENT = "_tangent"
"""The suffix of function names."""


def tangent(program: Program, function: str | None = None) -> Program:
    """The program whose entry `f_tangent` runs `f` on values and tangents.

    It takes the parameters of `f` and, for each that carries one, a tangent `x_dot`: at the start
    that of the input, at the end that of the result.  UsageError U001 if there is no such function.
    """
    name = function or program.entry
    if name not in program:
        raise unknown_function(name, program)
    kept = reachable(program, name)
    made = tangents_of(program, forms(kept), tangent_names(program))
    originals = map(program.function, kept)
    return Program((*made.values(), *originals), made[Form(name)].name, program.sources)


def tangents_of(
    program: Program, wanted: Sequence[Form], names: dict[str, str]
) -> dict[Form, Function]:
    """The tangents of functions, named by `names`, including those of functions that they call."""
    functions = {f.name: f for f in program.functions}
    changed = inout_slots(program)

    def make(form: Form) -> tuple[Function, Sequence[Form]]:
        w = Walker(functions[form.name], functions, names, TANGENT_RULES, changed, form.without)
        return w.walk(), w.called

    with placed(program):
        return with_called(wanted, make)


def tangent_names(program: Program) -> dict[str, str]:
    """For each function the name of its tangent."""
    return {n: unique(n + TANGENT, set(program)) for n in program}


def tangent_on(graph: Graph, node: Expr, dot: Callable[[Expr], Expr | None]) -> Expr | None:
    """The tangent of an expression over a graph's nodes, `dot` giving that of a place.

    None if it is zero.
    """
    found: dict[int, Expr | None] = {}

    def visit(number: int) -> Expr | None:
        if number not in found:
            part = graph[number]
            if part.leaf is not None:
                found[number] = dot(part.leaf)
            elif part.lazy:
                found[number] = chosen(part)
            else:
                args, dots = tuple(map(graph.ref, part.args)), tuple(map(visit, part.args))
                raw = tangent_of(part.fn, args, dots) if set(dots) != {None} else None
                found[number] = None if raw is None else tidy(raw)
        return found[number]

    def chosen(part: Node) -> Expr | None:
        """The tangent of a choice, which is a choice too."""
        arms = tuple(_along(arm, dot) for arm in part.lazy)
        made = choice_of(part.fn, graph.ref(part.args[0]), part.lazy, arms)
        return None if made is None else graph.ref(graph.intern(made))

    def tidy(raw: Expr) -> Expr:
        negative, value = signed(graph, raw)
        held = graph.ref(graph.intern(value))
        return apply("neg", held) if negative else held

    return visit(graph.intern(node))


def _along(node: Expr, dot: Callable[[Expr], Expr | None]) -> Expr | None:
    """The tangent of a separate expression."""
    inner = Graph(Lengths())
    found = tangent_on(inner, node, dot)
    return None if found is None else inner.expr(inner.intern(found))


def _tangent(w: Walker, graph: Graph, node: Expr) -> Expr | None:
    return tangent_on(graph, node, partial(_dot, w))


def _dot(w: Walker, node: Expr) -> Expr | None:
    """The tangent of a leaf; that of a stack's length is zero."""
    if not isinstance(node, Place) or is_count(node) or not w.has_dual(node):
        return None
    return w.dual(node)


def _known(w: Walker, instr: Instr) -> None:
    """An ancilla's value is known where it begins, and so is its tangent, which the end forgets.

    There it is another one, if the value is known of inputs only that are not changed along the
    direction: a parameter that must be zero has come into the ancilla.  The adjoint, too, begins as
    zero there, so both give the same derivatives.
    """
    x, *values = cast("tuple[Place, *tuple[Expr, ...]]", instr.args)
    if not values:
        _moved(w, instr)
        return
    both, graph = [instr], w.graph()
    if x.reg in w.dual_of:
        dot, value = w.dual(x), _tangent(w, graph, values[0])
        both.append(Instr("fresh" if instr.op == "alloc" else "drop", (dot,)))
        if value is not None:
            both.append(Instr("add" if instr.op == "alloc" else "sub", (dot, value)))
    w.shared(graph, both if instr.op == "alloc" else both[::-1], ())


def _update(w: Walker, stmt: Update, instr: Instr) -> None:
    """Tangents first: they need the old value of the destination."""
    dst, sign, value = stmt.dst, stmt.op, stmt.value
    if dst.reg not in w.dual_of:
        w.code.append(instr)
        return
    graph = w.graph()
    dot, change = w.dual(dst), _tangent(w, graph, value)
    if sign in system(elem_of(cast(ValueType, dst.type))).additive:
        op = OPS[{"*": "+", "/": "-"}.get(sign, sign)]
        both = [instr] if change is None else [Instr(op, (dot, change)), instr]
        w.shared(graph, both, ())
        return
    code = [Instr(OPS[sign], (dot, value))]
    if change is not None and sign == "*":
        code.append(Instr("add", (dot, apply("*", dst, change))))
    elif change is not None:
        # Divided last, as tangents of quotients are.
        code.insert(0, Instr("sub", (dot, apply("*", apply("/", dst, value), change))))
    w.shared(graph, [*code, instr], (), changing=(dst.reg, dot.reg))


def _map(w: Walker, instr: Instr, stmt: Map) -> None:
    """Tangents go by the Jacobian, and gain from the operands that are only read."""
    if w.have_duals(stmt.dsts):
        op, takes_values = tangent_map(
            OPCODES[instr.op], elem_of(cast(ValueType, stmt.dsts[0].type))
        )
        dots = [w.dual(d) for d in stmt.dsts]
        w.on_duals(instr, op, dots, stmt.dsts if takes_values else ())
        own, graph = set(stmt.dsts), w.graph()
        changes = [
            (dot, tangent_on(graph, new, lambda p: None if p in own else _dot(w, p)))
            for new, dot in zip(stmt.values, dots, strict=True)
        ]
        w.shared(graph, [Instr("add", (d, c)) for d, c in changes if c is not None], ())
    w.code.append(instr)


def _call(w: Walker, instr: Instr) -> None:
    if w.is_constant(instr):
        w.code.append(instr)
        return
    name, dots = w.derivative(instr)
    passed: list[Expr] = []
    held: list[tuple[Place, Expr]] = []
    for k in dots:
        arg = instr.args[k]
        if isinstance(arg, Place) and arg.reg in w.dual_of:
            passed.append(w.dual(arg))
        elif k not in w.changed[instr.symbol]:
            passed.append(_value(w, arg))
        else:
            # The callee may forget it, as `_known` does.
            t = w.dual_type(cast("Scalar | Array", arg.type))
            dot = w.temp("arg" + DOT, t, arg)
            passed.append(dot)
            held.append((dot, arg))
    for dot, arg in held:
        w.emit("fresh", dot)
        w.shared(*_added(w, "add", dot, arg), ())
    w.emit(instr.op, *instr.args, *passed, symbol=name)
    for dot, arg in reversed(held):
        w.shared(*_added(w, "sub", dot, arg), ())
        w.emit("drop", dot)


def _added(w: Walker, op: str, dot: Place, arg: Expr) -> tuple[Graph, list[Instr]]:
    """A graph, and an instruction over it that adds the tangent of a value to a place."""
    graph = w.graph()
    known = _tangent(w, graph, arg)
    return graph, [] if known is None else [Instr(op, (dot, known))]


def _value(w: Walker, arg: Expr) -> Expr:
    """The tangent of a value."""
    graph = w.graph()
    known = _tangent(w, graph, arg)
    if known is not None:
        return graph.expr(graph.intern(known))
    t = cast("Scalar | Array", arg.type)
    zero = typed(Const(0), elem_of(w.dual_type(t)))
    return apply("spread_like", zero, arg) if rank_of(t) else zero


def _moved(w: Walker, instr: Instr) -> None:
    """An instruction that makes or drops values does the same with their tangents."""
    w.code.append(instr)
    w.emit_duals(instr.op, *instr.args)


def _stacked(w: Walker, instr: Instr) -> None:
    """A value moves to or from a zero, and so does its tangent; that of the zero is forgotten."""
    w.code.append(instr)
    x, stack = cast("tuple[Place, Place]", instr.args)
    if w.have_duals((x, stack)):
        dot = w.dual(x)
        spare = w.temp("spare" + DOT, cast("Scalar | Array", dot.type), dot)
        moved, swapped = Instr(instr.op, (spare, w.dual(stack))), Instr("swap", (spare, dot))
        w.emit("fresh", spare)
        w.code += (moved, swapped) if instr.op == "pop" else (swapped, moved)
        w.emit("drop", spare)


TANGENT_RULES = DualRules(
    word="tangent",
    suffix=DOT,
    part="d",
    back=False,
    machine={
        **dict.fromkeys(("call", "uncall"), _call),
        **dict.fromkeys(("alloc", "free"), _known),
        **dict.fromkeys(("fresh", "drop"), _moved),
        **dict.fromkeys(("push", "pop"), _stacked),
    },
    update=_update,
    map=_map,
)
