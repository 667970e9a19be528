"""Gradient mode: a program's gradient as a program.

For every function `f` there is a function `f_adjoint` that undoes `f` on dual
registers: each value has an adjoint beside it, and each instruction is undone
together with the adjoints that pass through it.  `f_gradient` runs `f` forwards
and then `f_adjoint`: with adjoints that hold dL/d(result) at the start, they
hold dL/d(input) at the end.  All of it is ordinary code: it can be listed,
stepped, run backwards and differentiated again.

Source: J.-G. Liu and T. Zhao, "Instruction level automatic differentiation on a
reversible Turing machine" (2020), algorithm 1 and theorem 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from rvm.expr import Const, Expr, Place
from rvm.faults import DefinitionError, UsageError
from rvm.isa import OPCODES, apply, invert_instr, lower, typed
from rvm.isa.machine_ops import ENDS
from rvm.program import Function, Instr, Program, Span
from rvm.stmt import Exchange, Map, Stmt, Update, When, only_exchanges
from rvm.transform.adjoint import sweep
from rvm.transform.directed import Directed
from rvm.transform.duals import bar_slots, bar_type, reachable, unique
from rvm.transform.graph import Graph
from rvm.transform.maps import adjoint_map
from rvm.transform.zeros import passes_nothing, zeros
from rvm.types import Array, RegisterType, Scalar, Stack, ValueType, elem_of
from rvm.verify import inout_slots
from rvm.verify.alias import overlap

ADJOINT, GRADIENT, BAR = "_adjoint", "_gradient", "_bar"
"""What is added to the names of functions and registers."""
OPS = {"+": "add", "-": "sub", "^": "xor", "*": "mul", "/": "div"}
OPPOSITE = {"add": "sub", "sub": "add"}


def gradient(program: Program, function: str | None = None, *, loss: str | None = None) -> Program:
    """The program whose entry `f_gradient` differentiates the function `f`.

    It takes the parameters of `f` and, for each that carries one, an adjoint `x_bar`.  `loss`
    names a scalar parameter whose adjoint is seeded with 1 between the two runs; without it the
    caller seeds the adjoints.  UsageError U001 if there is no such function or parameter.
    """
    name = function or program.entry
    if name not in program:
        raise UsageError("U001", f"the program has no function `{name}`")
    functions = {f.name: f for f in program.functions}
    names = adjoint_names(program)
    kept = reachable(program, name)
    changed = inout_slots(program)
    made = [_Adjoint(functions[n], functions, names, changed).function() for n in kept]
    entry = _entry(functions[name], made[0], loss, set(functions) | set(names.values()))
    originals = (functions[n] for n in kept)
    return Program((entry, *made, *originals), entry.name, program.sources)


def adjoint_names(program: Program) -> dict[str, str]:
    """For each function the name of its adjoint."""
    return {n: unique(n + ADJOINT, set(program)) for n in program}


def _entry(f: Function, adjoint: Function, loss: str | None, taken: set[str]) -> Function:
    """`f_gradient`: run `f`, seed the loss, run its adjoint."""
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
        unique(f.name + GRADIENT, taken),
        adjoint.params,
        registers,
        tuple(code),
        (Span(span.source, 0),) * len(code) if f.spans else (),
        tuple(d for d in adjoint.dims if d.reg < adjoint.n_args),
    )


def _whole(reg: int, t: RegisterType) -> Place:
    # A stack is passed as a place without a value type; only calls take one.
    return Place(reg, (), None if isinstance(t, Stack) else t)


class _Adjoint(Directed):
    """The growing adjoint function of one function."""

    suffix = BAR
    part = "g"

    def __init__(
        self,
        f: Function,
        functions: dict[str, Function],
        names: dict[str, str],
        changed: dict[str, frozenset[int]],
    ) -> None:
        super().__init__(f, functions, names)
        self._changed = changed
        self._zeros = zeros(f, self.bars, changed)
        self._zero: frozenset[int] = frozenset()
        """The adjoints that are surely zero where the code has come to, as registers."""

    def function(self) -> Function:
        """The finished adjoint."""
        f = self.f
        at: dict[int, int] = {}
        for pc in reversed(range(len(f.code))):
            instr = f.code[pc]
            if instr.op not in ENDS:
                self.settle()
            if instr.op in ("br", "cf"):
                at[pc] = len(self.code)
            self.pc, self._zero = pc, frozenset(self.bars[k] for k in self._zeros[pc])
            args = tuple(self.value(a) for a in instr.args)
            self._instruction(replace(instr, args=args))
            self.spanned(pc)
        self.settle()
        for pc, new in at.items():
            self.code[new] = replace(self.code[new], aux=at[f.code[pc].aux])
        self.enclose()
        return self.finished(self.names[f.name])

    # ------------------------------------------------------------ instructions

    def _instruction(self, instr: Instr) -> None:
        row = OPCODES[instr.op]
        match instr.op:
            case "call" | "uncall":
                self._call(instr)
            case "alloc" | "fresh":
                self._made(instr)
            case "free" | "drop":
                self._gone(instr)
            case "push":
                self.code.append(invert_instr(instr))
                self._popped(cast(Place, instr.args[0]), cast(Place, instr.args[1]))
            case "pop":
                self.code.append(invert_instr(instr))
                self._pushed(cast(Place, instr.args[0]), cast(Place, instr.args[1]))
            case _ if not row.is_data:
                self.code.append(invert_instr(instr))
            case _:
                self._data(instr)

    def _gone(self, instr: Instr) -> None:
        """An ancilla was dropped as a value: its adjoint begins as zero, which the value loses."""
        x = cast(Place, instr.args[0])
        self.code.append(invert_instr(instr))
        self.emit_duals("fresh", x)
        if x.reg in self.dual_of and len(instr.args) > 1:
            graph = self.graph()
            held = self._held(graph, x, instr.args[1])
            self.if_undone(graph, self._gains(graph, instr.args[1], self.dual(x), "sub"), held)

    def _made(self, instr: Instr) -> None:
        """An ancilla was made: what its first value came from gains, and its adjoint goes."""
        x = cast(Place, instr.args[0])
        undo = invert_instr(instr)
        if x.reg not in self.dual_of:
            self.code.append(undo)
            return
        bar, graph = self.dual(x), self.graph()
        drop = Instr("drop", (bar,))
        if len(instr.args) == 1:
            self.code += (drop, undo)
            return
        held = self._held(graph, x, instr.args[1])
        gains = self._gains(graph, instr.args[1], bar)
        if bar.reg in self._zero:
            self.if_undone(graph, gains, held)
            self.settle()
            self.code += (drop, undo)
            return
        self.shared(graph, (), gains, (drop, undo), changing=(x.reg, bar.reg), held=held)

    def _held(self, graph: Graph, x: Place, value: Expr) -> dict[int, Place]:
        """What an ancilla holds where it is made and freed: its value need not be computed."""
        return {} if x.type != value.type else {graph.intern(value): x}

    def _popped(self, x: Place, stack: Place) -> None:
        """A value was pushed, which left zero: the adjoint of that zero means nothing."""
        if x.reg in self.dual_of:
            self._forget(self.dual(x))
            self.emit("pop", self.dual(x), self.dual(stack))

    def _pushed(self, x: Place, stack: Place) -> None:
        """A value was popped into a zero: its adjoint goes, and leaves one that means nothing.

        Forwards that is a zero, too.  Undone, it is off by what was forgotten of it.
        """
        if x.reg in self.dual_of:
            self.emit("push", self.dual(x), self.dual(stack))
            self._forget(self.dual(x))

    def _forget(self, bar: Place) -> None:
        """Put zero in the place of an adjoint, in either direction."""
        spare = self.temp("spare" + BAR, cast(Scalar, bar.type), bar)
        self.emit("fresh", spare)
        self.emit("swap", spare, bar)
        self.emit("drop", spare)

    def _gains(self, graph: Graph, value: Expr, g: Expr, op: str = "add") -> list[Instr]:
        """An instruction for each gain from `g` of what `value` reads, over the graph's nodes."""
        return [
            Instr(OPPOSITE[op] if negative else op, (self.dual(read), graph.ref(gain)))
            for read, (negative, gain) in sweep(graph, graph.intern(value), graph.intern(g))
        ]

    # ------------------------------------------------------------ data

    def _data(self, instr: Instr) -> None:
        stmts = lower(instr)
        first = stmts[0]
        if len(stmts) == 1 and isinstance(first, Map):
            self._map(instr, first)
        elif len(stmts) == 1 and isinstance(first, Update):
            self._update(first, invert_instr(instr))
        elif all(map(only_exchanges, stmts)):
            self.code.append(invert_instr(instr))
            self.exchanged(instr, OPCODES[instr.op].inverse)
        else:
            for stmt in reversed(stmts):
                self._statement(stmt, instr.op)

    def _statement(self, stmt: Stmt, op: str) -> None:
        """One statement of an opcode that has several, as instructions of its own."""
        match stmt:
            case Update(dst, sign, value):
                self._update(stmt, invert_instr(Instr(OPS[sign], (dst, value))))
                self.settle()
            case Exchange(a, b):
                self.emit("swap", a, b)
                self.emit_duals("swap", a, b)
            case When(cond, body):
                skip = apply("not", cond)
                start = self.unless(skip)
                for inner in reversed(body):
                    self._statement(inner, op)
                self.until(start)
            case _:
                raise DefinitionError(
                    "D012",
                    f"`{op}` has no adjoint: it stores new values among other statements",
                    hint="let the opcode do nothing but return its new values",
                )

    def _update(self, stmt: Update, undo: Instr) -> None:
        """`dst op= value` is undone, and what `value` reads gains from dst's adjoint."""
        dst, sign, value = stmt.dst, stmt.op, stmt.value
        if dst.reg not in self.dual_of:
            self.code.append(undo)
            return
        g, graph = self.dual(dst), self.graph()
        assert dst.type is not None and value.type is not None
        if sign in "+-" or elem_of(dst.type).is_log:
            op = "add" if sign in "+*" else "sub"
            gains = self._gains(graph, value, g, op)
            if g.reg in self._zero:
                self.code.append(undo)
                self.if_undone(graph, gains)
            else:
                self.shared(graph, (undo,), gains)
            return
        conjugate = apply("conj", value) if elem_of(value.type).is_complex else value
        old = apply("conj", dst) if elem_of(dst.type).is_complex else dst
        changing = (dst.reg, g.reg)
        if sign == "*":
            # dL/dvalue = old dst times g, and dst is the old one once it is undone.
            gains = self._gains(graph, value, apply("*", g, old))
            self.shared(graph, (undo,), gains, (Instr("mul", (g, conjugate)),), changing=changing)
        else:
            # d(y / v)/dv = -(y / v) / v, and dst still holds y / v.
            gains = self._gains(graph, value, apply("/", apply("*", g, old), conjugate), "sub")
            self.shared(graph, (), gains, (undo, Instr("div", (g, conjugate))), changing=changing)

    def _map(self, instr: Instr, stmt: Map) -> None:
        """New values were computed from the old: with those back, adjoints go by the Jacobian."""
        self.code.append(invert_instr(instr))
        if not all(d.reg in self.dual_of for d in stmt.dsts):
            return
        bars = [self.dual(d) for d in stmt.dsts]
        graph = self.graph()
        gains: list[Instr] = []
        for new, g in zip(stmt.values, bars, strict=True):
            gains += self._gains(graph, new, g)
        gains = [i for i in gains if i.args[0] not in bars]
        if all(g.reg in self._zero for g in bars):
            self.if_undone(graph, gains)
            self.settle()
        else:
            self.shared(graph, (), gains)
        row = OPCODES[instr.op]
        op, takes_values = adjoint_map(row, elem_of(cast(ValueType, stmt.dsts[0].type)))
        operands = iter(bars)
        args = [
            next(operands) if o.mode == "mut" else a
            for a, o in zip(instr.args, row.operands, strict=True)
        ]
        self.emit(op, *args, *(stmt.dsts if takes_values else ()))

    # ------------------------------------------------------------ calls

    def _call(self, instr: Instr) -> None:
        """A call is undone by the callee's adjoint, which takes the adjoints along.

        Where no adjoint passes through it, that is for the other direction only.
        """
        duals = frozenset(self.dual_of)
        zero = frozenset(k for k, b in self.dual_of.items() if b in self._zero)
        if not passes_nothing(instr, zero, duals, self._changed):
            self._adjoint_call(instr)
            return
        forth = self.forth()
        start = self.unless(forth)
        self._adjoint_call(instr)
        self.until(start)
        start = self.unless(apply("not", forth))
        self.code.append(invert_instr(instr))
        self.until(start)

    def _adjoint_call(self, instr: Instr) -> None:
        callee = self.functions[instr.symbol]
        extra: list[Place] = []
        after: list[tuple[Expr, Place]] = []
        bars = bar_slots(callee)
        used: list[Place] = []
        for k in bars:
            arg = instr.args[k]
            if isinstance(arg, Place) and arg.type is None:
                extra.append(self.dual(arg))
                continue
            bar = self.dual(arg) if isinstance(arg, Place) and arg.reg in self.dual_of else None
            if bar is None or any(overlap(bar, u) != "never" for u in used):
                # A value, or a place that is passed twice to be read: it gains afterwards.
                t = bar_type(cast(Scalar | Array, arg.type))
                assert isinstance(t, (Scalar, Array))
                bar = self.temp("arg" + BAR, t, arg)
                after.append((arg, bar))
            else:
                used.append(bar)
            extra.append(bar)
        for arg, bar in after:
            self.emit("fresh", bar)
            graph = self.graph()
            self.if_undone(graph, self._gains(graph, arg, bar, "sub"))
        self.settle()
        self.emit(instr.op, *instr.args, *extra, symbol=self.names[instr.symbol])
        for arg, bar in reversed(after):
            graph = self.graph()
            self.shared(graph, (), self._gains(graph, arg, bar))
            self.emit("drop", bar)
