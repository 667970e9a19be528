"""Gradient mode: a program's gradient as a program.

For every function `f` there is a function `f_adjoint` that undoes `f` on dual registers: each value
has an adjoint next to it, and each instruction is undone together with the propagation of adjoints
through it.  `f_gradient` runs `f` forwards and then `f_adjoint`: if adjoints hold dL/d(result) at
the start, they hold dL/d(input) at the end.  All of it is ordinary code: it can be listed, stepped,
run backwards and differentiated again.

Source: J.-G. Liu and T. Zhao, "Instruction level automatic differentiation on a
reversible Turing machine" (2020), algorithm 1 and theorem 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from rvm.expr import Const, Expr, Place
from rvm.faults import UsageError
from rvm.isa import OPCODES, apply, invert_instr, lower, typed
from rvm.numbers import system
from rvm.program import Function, Instr, Program, Span, unknown_function
from rvm.stmt import Map, Update, writes
from rvm.transform.adjoint import sweep, where_taken
from rvm.transform.duals import (
    BAR,
    Form,
    bar_slots,
    bar_type,
    forms,
    reachable,
    unique,
    with_called,
)
from rvm.transform.forth import without_directions
from rvm.transform.graph import Graph
from rvm.transform.maps import adjoint_map
from rvm.transform.walker import DualRules, Walker, placed
from rvm.transform.zeros import passes_nothing, zeros
from rvm.types import Array, RegisterType, Scalar, Stack, ValueType, elem_of
from rvm.verify import inout_slots
from rvm.verify.alias import overlap

ADJOINT, GRADIENT = "_adjoint", "_gradient"
"""The suffixes of function names."""
OPPOSITE = {"add": "sub", "sub": "add"}


def gradient(
    program: Program,
    function: str | None = None,
    *,
    loss: str | None = None,
    without: frozenset[int] = frozenset(),
) -> Program:
    """The program whose entry `f_gradient` differentiates the function `f`.

    It takes the parameters of `f` and, for each that carries one, an adjoint `x_bar`.  `loss`
    names a scalar parameter whose adjoint is seeded with 1 between the two runs; without it the
    caller seeds the adjoints.  Of the parameters `without` adjoints, which are registers, it only
    reads.  UsageError U001 if there is no such function or parameter.
    """
    name = function or program.entry
    if name not in program:
        raise unknown_function(name, program)
    names = adjoint_names(program)
    kept = reachable(program, name)
    wanted_forms = (Form(name, without),) if without else forms(kept)
    made = adjoints_of(program, wanted_forms, names)
    f = program.function(name)
    wanted = unique(name + GRADIENT, set(program) | set(names.values()))
    entry = there_and_back(f, made[Form(name, without)], wanted, loss)
    # That one of them is an adjoint itself is no longer of use: it is undone, all of it.
    originals = (replace(program.function(n), undoing=None) for n in kept)
    return Program((entry, *made.values(), *originals), entry.name, program.sources)


def adjoints_of(
    program: Program, wanted: Sequence[Form], names: dict[str, str]
) -> dict[Form, Function]:
    """The adjoints of functions, named by `names`, including those of functions that they call."""
    functions = {f.name: f for f in program.functions}
    changed = inout_slots(program)

    def make(form: Form) -> tuple[Function, Sequence[Form]]:
        f = without_directions(functions[form.name])
        w = Walker(f, functions, names, ADJOINT_RULES, changed, form.without)
        return _adjoint(w), w.called

    with placed(program):
        return with_called(wanted, make)


def adjoint_origins(f: Function, adjoint: Function) -> tuple[int, ...]:
    """For an adjoint, the original instruction of each of its instructions."""
    less = len(f.code) - len(without_directions(f).code)
    return tuple(pc + less * (pc > 0) for pc in adjoint.origins)


def adjoint_names(program: Program) -> dict[str, str]:
    """For each function the name of its adjoint."""
    return {n: unique(n + ADJOINT, set(program)) for n in program}


def there_and_back(f: Function, adjoint: Function, name: str, loss: str | None = None) -> Function:
    """The gradient of `f`: run it, seed the loss, run its adjoint."""
    registers = adjoint.registers[: adjoint.n_args]
    args = [_whole(k, r.type) for k, r in enumerate(registers)]
    code = [Instr("call", tuple(args[: f.n_args]), symbol=f.name)]
    if loss is not None:
        found = [k for k, r in enumerate(registers[: f.n_args]) if r.name == loss]
        bars = bar_slots(f)
        if not found or found[0] not in bars or not isinstance(registers[found[0]].type, Scalar):
            raise UsageError(
                "U001",
                f"`{f.name}` has no scalar parameter `{loss}` with an adjoint",
                hint="for an element of an array, seed its adjoint and give no loss",
            )
        bar = args[bars[found[0]]]
        code.append(Instr("add", (bar, typed(Const(1), elem_of(cast(ValueType, bar.type))))))
    code.append(Instr("call", tuple(args), symbol=adjoint.name))
    span = f.span(0)
    return Function(
        name,
        adjoint.params,
        registers,
        tuple(code),
        (Span(span.source, 0),) * len(code) if f.spans else (),
        tuple(d for d in adjoint.dims if d.reg < adjoint.n_args),
    )


def _whole(reg: int, t: RegisterType) -> Place:
    # A stack is passed as a place without a value type; only calls take one.
    return Place(reg, (), None if isinstance(t, Stack) else t)


def _adjoint(w: Walker) -> Function:
    """The adjoint of a function: it undoes the function and propagates adjoints back."""
    known = zeros(w.f, {*w.bars, *w.without}, w.changed)

    def visit(pc: int) -> None:
        w.zero = frozenset(w.bars[k] for k in known[pc] if k in w.bars)

    made = w.walk(visit)
    return replace(made, undoing=_undoing(made, frozenset(w.moved.values())))


def _undoing(adjoint: Function, values: frozenset[int]) -> frozenset[int]:
    """The instructions that undo the function: those that change values, and all calls.

    The others change adjoints and their own ancillas.
    """

    def undoes(instr: Instr) -> bool:
        return instr.op in ("call", "uncall") or any(
            place.reg in values for stmt in lower(instr) for place in writes(stmt)
        )

    return frozenset(pc for pc, instr in enumerate(adjoint.code) if undoes(instr))


def _gone(w: Walker, instr: Instr) -> None:
    """An ancilla was dropped as a value: its adjoint begins as zero, which the value loses."""
    x = cast(Place, instr.args[0])
    w.code.append(invert_instr(instr))
    w.emit_duals("fresh", x)
    if x.reg in w.dual_of and len(instr.args) > 1:
        graph = w.graph()
        held = _held(graph, x, instr.args[1])
        w.if_undone(graph, _gains(w, graph, instr.args[1], w.dual(x), "sub"), held)


def _made(w: Walker, instr: Instr) -> None:
    """An ancilla was made: its adjoint is propagated to its initial value, and dropped."""
    x = cast(Place, instr.args[0])
    undo = invert_instr(instr)
    if x.reg not in w.dual_of:
        w.code.append(undo)
        return
    bar, graph = w.dual(x), w.graph()
    drop = Instr("drop", (bar,))
    if len(instr.args) == 1:
        w.code += (drop, undo)
        return
    held = _held(graph, x, instr.args[1])
    gains = _gains(w, graph, instr.args[1], bar)
    if bar.reg in w.zero:
        w.if_undone(graph, gains, held)
        w.settle()
        w.code += (drop, undo)
        return
    w.shared(graph, (), gains, (drop, undo), changing=(x.reg, bar.reg), held=held)


def _held(graph: Graph, x: Place, value: Expr) -> dict[int, Place]:
    """The contents of an ancilla where it is made and freed, which need not be computed."""
    return {} if x.type != value.type else {graph.intern(value): x}


def _push(w: Walker, instr: Instr) -> None:
    """A value was pushed, which left zero: the adjoint of that zero means nothing."""
    w.code.append(invert_instr(instr))
    x, stack = cast("tuple[Place, Place]", instr.args)
    if w.have_duals((x, stack)):
        _forget(w, w.dual(x))
        w.emit("pop", w.dual(x), w.dual(stack))


def _pop(w: Walker, instr: Instr) -> None:
    """A value was popped into a zero: its adjoint moves, and leaves one without meaning.

    Forwards this is zero, too.  Undone, it is off by the adjoints that were discarded.
    """
    w.code.append(invert_instr(instr))
    x, stack = cast("tuple[Place, Place]", instr.args)
    if w.have_duals((x, stack)):
        w.emit("push", w.dual(x), w.dual(stack))
        _forget(w, w.dual(x))


def _forget(w: Walker, bar: Place) -> None:
    """Put zero in the place of an adjoint, in either direction."""
    spare = w.temp("spare" + BAR, cast(Scalar, bar.type), bar)
    w.emit("fresh", spare)
    w.emit("swap", spare, bar)
    w.emit("drop", spare)


def _gains(w: Walker, graph: Graph, value: Expr, g: Expr, op: str = "add") -> list[Instr]:
    """An instruction for each term from `g` that a place in `value` receives, over graph nodes.

    It is inside a branch if the place only exists where a choice selects it.
    """
    out: list[Instr] = []
    for read, (negative, gain) in sweep(graph, graph.intern(value), graph.intern(g)):
        if not w.has_dual(read):
            continue
        add = Instr(OPPOSITE[op] if negative else op, (w.dual(read), graph.ref(gain)))
        taken = where_taken(graph, read, gain)
        if taken is None:
            out.append(add)
        else:
            skipped = apply("not", taken)
            out += (Instr("br", (skipped,)), add, Instr("cf", (skipped,)))
    return out


def _update(w: Walker, stmt: Update, undo: Instr) -> None:
    """`dst op= value` is undone, and dst's adjoint is propagated to the places in `value`."""
    dst, sign, value = stmt.dst, stmt.op, stmt.value
    if dst.reg not in w.dual_of:
        w.code.append(undo)
        return
    g, graph = w.dual(dst), w.graph()
    assert dst.type is not None and value.type is not None
    if sign in system(elem_of(dst.type)).additive:
        op = "add" if sign in "+*" else "sub"
        gains = _gains(w, graph, value, g, op)
        if g.reg in w.zero:
            w.code.append(undo)
            w.if_undone(graph, gains)
        else:
            w.shared(graph, (undo,), gains)
        return
    conjugate = apply("conj", value) if elem_of(value.type).is_complex else value
    old = apply("conj", dst) if elem_of(dst.type).is_complex else dst
    changing = (dst.reg, g.reg)
    if sign == "*":
        # dL/dvalue = old dst times g, and dst is the old one once it is undone.
        gains = _gains(w, graph, value, apply("*", g, old))
        w.shared(graph, (undo,), gains, (Instr("mul", (g, conjugate)),), changing=changing)
    else:
        # d(y / v)/dv = -(y / v) / v, and dst still holds y / v.
        gains = _gains(w, graph, value, apply("/", apply("*", g, old), conjugate), "sub")
        w.shared(graph, (), gains, (undo, Instr("div", (g, conjugate))), changing=changing)


def _map(w: Walker, instr: Instr, stmt: Map) -> None:
    """New values were computed from the old: with those back, adjoints go by the Jacobian."""
    w.code.append(invert_instr(instr))
    if not w.have_duals(stmt.dsts):
        return
    bars = [w.dual(d) for d in stmt.dsts]
    graph = w.graph()
    gains: list[Instr] = []
    for new, g in zip(stmt.values, bars, strict=True):
        gains += _gains(w, graph, new, g)
    gains = [i for i in gains if i.args[0] not in bars]
    if all(g.reg in w.zero for g in bars):
        w.if_undone(graph, gains)
        w.settle()
    else:
        w.shared(graph, (), gains)
    op, takes_values = adjoint_map(OPCODES[instr.op], elem_of(cast(ValueType, stmt.dsts[0].type)))
    w.on_duals(instr, op, bars, stmt.dsts if takes_values else ())


def _call(w: Walker, instr: Instr) -> None:
    """A call is undone by the callee's adjoint, which takes the adjoints along.

    Where no adjoint passes through it, that is for the other direction only, unless it changes a
    stack: the adjoint's stack must become as deep, even if it holds zeros only.
    """
    if w.is_constant(instr):
        w.code.append(invert_instr(instr))
        return
    duals = frozenset(w.dual_of)
    zero = frozenset(k for k, b in w.dual_of.items() if b in w.zero)
    if _stacks(w, instr) or not passes_nothing(instr, zero, duals, w.changed):
        _adjoint_call(w, instr)
        return
    forth = w.forth()
    start = w.unless(forth)
    _adjoint_call(w, instr)
    w.until(start)
    start = w.unless(apply("not", forth))
    w.code.append(invert_instr(instr))
    w.until(start)


def _stacks(w: Walker, call: Instr) -> bool:
    """Whether a call changes a stack that has an adjoint."""
    args = [call.args[k] for k in w.changed[call.symbol]]
    regs = {a.reg for a in args if isinstance(a, Place)} & set(w.dual_of)
    return any(isinstance(w.registers[reg].type, Stack) for reg in regs)


def _adjoint_call(w: Walker, instr: Instr) -> None:
    extra: list[Place] = []
    after: list[tuple[Expr, Place]] = []
    name, bars = w.derivative(instr)
    used: list[Place] = []
    for k in bars:
        arg = instr.args[k]
        if isinstance(arg, Place) and arg.type is None:
            extra.append(w.dual(arg))
            continue
        bar = w.dual(arg) if isinstance(arg, Place) and arg.reg in w.dual_of else None
        if bar is None or any(overlap(bar, u) != "never" for u in used):
            # A value, or a place that is passed twice to be read: it gains afterwards.
            t = bar_type(cast(Scalar | Array, arg.type))
            assert isinstance(t, (Scalar, Array))
            bar = w.temp("arg" + BAR, t, arg)
            after.append((arg, bar))
        else:
            used.append(bar)
        extra.append(bar)
    for arg, bar in after:
        w.emit("fresh", bar)
        graph = w.graph()
        w.if_undone(graph, _gains(w, graph, arg, bar, "sub"))
    w.settle()
    w.emit(instr.op, *instr.args, *extra, symbol=name)
    for arg, bar in reversed(after):
        graph = w.graph()
        w.shared(graph, (), _gains(w, graph, arg, bar))
        w.emit("drop", bar)


ADJOINT_RULES = DualRules(
    word="adjoint",
    suffix=BAR,
    part="g",
    back=True,
    machine={
        **dict.fromkeys(("call", "uncall"), _call),
        **dict.fromkeys(("alloc", "fresh"), _made),
        **dict.fromkeys(("free", "drop"), _gone),
        "push": _push,
        "pop": _pop,
    },
    update=_update,
    map=_map,
)
