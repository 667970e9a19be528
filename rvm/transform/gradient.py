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

from rvm.expr import Const, Expr, Place, rebuild
from rvm.faults import DefinitionError, UsageError
from rvm.isa import OPCODES, apply, invert_instr, lower, place, typed
from rvm.isa.derivatives import adjoint_type
from rvm.program import Function, Instr, Layout, Param, Program, Record, Register, Span
from rvm.stmt import Exchange, Map, Stmt, Update, When
from rvm.transform.adjoint import contributions
from rvm.transform.maps import adjoint_map
from rvm.types import F64, I64, Array, RegisterType, Scalar, Stack, ValueType, elem_of, with_rank
from rvm.verify.alias import overlap

ADJOINT, GRADIENT, BAR = "_adjoint", "_gradient", "_bar"
"""What is added to the names of functions and registers."""
OPS = {"+": "add", "-": "sub", "^": "xor", "*": "mul", "/": "div"}


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
    made = [_Adjoint(functions[n], functions, names).function() for n in _reachable(program, name)]
    entry = _entry(functions[name], made[0], loss, set(functions) | set(names.values()))
    return Program((entry, *made, *program.functions), entry.name, program.sources)


def adjoint_names(program: Program) -> dict[str, str]:
    """For each function the name of its adjoint."""
    return {n: _unique(n + ADJOINT, set(program)) for n in program}


def _unique(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _reachable(program: Program, name: str) -> tuple[str, ...]:
    seen = {name: None}
    todo = [name]
    while todo:
        for instr in program.function(todo.pop()).code:
            if instr.op in ("call", "uncall") and instr.symbol not in seen:
                seen[instr.symbol] = None
                todo.append(instr.symbol)
    return tuple(seen)


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
        _unique(f.name + GRADIENT, taken),
        adjoint.params,
        registers,
        tuple(code),
        (Span(span.source, 0),) * len(code) if f.spans else (),
        tuple(d for d in adjoint.dims if d.reg < adjoint.n_args),
    )


def _whole(reg: int, t: RegisterType) -> Place:
    # A stack is passed as a place without a value type; only calls take one.
    return Place(reg, (), None if isinstance(t, Stack) else t)


def bar_type(t: RegisterType) -> RegisterType | None:
    """The type of the register that holds the adjoints of one of type `t`, if it has any."""
    elem = adjoint_type(elem_of(t))
    if elem is None:
        return None
    if isinstance(t, Stack):
        return Stack(elem)
    return with_rank(elem, t.rank if isinstance(t, Array) else 0)


def bar_slots(f: Function) -> dict[int, int]:
    """For each parameter register that has adjoints the register of those, in `f_adjoint`."""
    carrying = [k for k in range(f.n_args) if bar_type(f.registers[k].type) is not None]
    return {k: f.n_args + j for j, k in enumerate(carrying)}


class _Adjoint:
    """The growing adjoint function of one function."""

    def __init__(self, f: Function, functions: dict[str, Function], names: dict[str, str]) -> None:
        self.f = f
        self.functions = functions
        self.names = names
        self.code: list[Instr] = []
        self.spans: list[Span] = []
        self._taken = {r.name for r in f.registers}
        self._layout()

    # ------------------------------------------------------------ registers

    def _layout(self) -> None:
        """Parameters, their adjoints, locals, their adjoints."""
        f = self.f
        self.bars = bar_slots(f)
        self.moved = {k: k for k in range(f.n_args)}
        shift = len(self.bars)
        self.moved |= {k: k + shift for k in range(f.n_args, len(f.registers))}
        n = len(f.registers) + shift
        local_bars = [k for k in range(f.n_args, len(f.registers)) if bar_type(f.registers[k].type)]
        self.bars |= {k: n + j for j, k in enumerate(local_bars)}
        self.owner = {b: self.moved[k] for k, b in self.bars.items()}
        self.bar_of = {self.moved[k]: b for k, b in self.bars.items()}
        self.registers: list[Register] = [Register("", F64)] * (n + len(local_bars))
        for k, r in enumerate(f.registers):
            dims = tuple(None if d is None else self._value(d) for d in r.dims)
            self.registers[self.moved[k]] = Register(r.name, r.type, dims)
        for k, b in self.bars.items():
            r, t = f.registers[k], bar_type(f.registers[k].type)
            assert t is not None
            whole = isinstance(r.type, Array) and k < f.n_args
            dims = (
                tuple(self._dim(place(k, r.type), axis) for axis in range(len(r.dims)))
                if whole
                else tuple(None if d is None else self._value(d) for d in r.dims)
            )
            self.registers[b] = Register(self._name(r.name + BAR), t, dims)

    def _name(self, name: str) -> str:
        name = _unique(name, self._taken)
        self._taken.add(name)
        return name

    def _dim(self, of: Expr, axis: int) -> Expr:
        return apply("dim", of, Const(axis, I64))

    def _temp(self, name: str, t: Scalar | Array, shape_of: Expr) -> Place:
        """A new local register shaped like an expression."""
        rank = t.rank if isinstance(t, Array) else 0
        dims = tuple(self._dim(shape_of, axis) for axis in range(rank))
        self.registers.append(Register(self._name(name), t, dims))
        return Place(len(self.registers) - 1, (), t)

    def _value(self, node: Expr) -> Expr:
        """An expression of `f` over the registers of the adjoint."""
        if isinstance(node, Place):
            moved = Place(self.moved[node.reg], node.path, node.type)
            return rebuild(moved, self._value)
        return rebuild(node, self._value)

    def _bar(self, of: Place) -> Place:
        """The adjoint of a place (of the adjoint function's registers)."""
        b = self.bar_of[of.reg]
        t = self.registers[b].type
        return Place(b, (), None) if isinstance(t, Stack) else place(b, t, of.path)

    # ------------------------------------------------------------ code

    def function(self) -> Function:
        """The finished adjoint."""
        f = self.f
        at: dict[int, int] = {}
        for pc in reversed(range(len(f.code))):
            instr = f.code[pc]
            if instr.op in ("br", "cf"):
                at[pc] = len(self.code)
            before = len(self.code)
            args = tuple(self._value(a) for a in instr.args)
            self._instruction(replace(instr, args=args))
            self.spans += [f.span(pc)] * (len(self.code) - before)
        for pc, new in at.items():
            self.code[new] = replace(self.code[new], aux=at[f.code[pc].aux])
        params = list(f.params)
        for p in f.params:
            layout = self._bar_layout(p.layout)
            if layout is not None:
                name = (
                    self.registers[layout].name
                    if isinstance(layout, int)
                    else self._name(p.name + BAR)
                )
                params.append(Param(name, layout))
        return Function(
            self.names[f.name],
            tuple(params),
            tuple(self.registers),
            tuple(self.code),
            tuple(self.spans) if f.spans else (),
            tuple(d._replace(reg=self.moved[d.reg]) for d in f.dims),
        )

    def _bar_layout(self, layout: Layout) -> Layout | None:
        if isinstance(layout, int):
            return self.bars.get(layout)
        fields = tuple(
            (name, inner)
            for name, field in layout.fields
            if (inner := self._bar_layout(field)) is not None
        )
        return Record(layout.name + BAR, fields) if fields else None

    def _emit(self, op: str, *args: Expr, aux: int = -1, symbol: str = "") -> None:
        self.code.append(Instr(op, args, aux, symbol))

    def _instruction(self, instr: Instr) -> None:
        row = OPCODES[instr.op]
        match instr.op:
            case "call" | "uncall":
                self._call(instr)
            case "alloc" | "fresh":
                self._made(instr)
            case "free" | "drop":
                self.code.append(invert_instr(instr))
                self._emit_bars("fresh", instr.args[0])
            case "push":
                self.code.append(invert_instr(instr))
                self._popped(cast(Place, instr.args[0]), cast(Place, instr.args[1]))
            case "pop":
                self.code.append(invert_instr(instr))
                self._emit_bars("push", *instr.args)
            case _ if not row.is_data:
                self.code.append(invert_instr(instr))
            case _:
                self._data(instr)

    def _emit_bars(self, op: str, *places: Expr) -> None:
        """The same opcode on the adjoints, if there are any."""
        if cast(Place, places[0]).reg in self.bar_of:
            self._emit(op, *(self._bar(cast(Place, p)) for p in places))

    def _made(self, instr: Instr) -> None:
        """An ancilla was made: what its first value came from gains, and its adjoint goes."""
        x = cast(Place, instr.args[0])
        if x.reg in self.bar_of:
            if len(instr.args) > 1:
                self._gain(instr.args[1], self._bar(x))
            self._emit("drop", self._bar(x))
        self.code.append(invert_instr(instr))

    def _popped(self, x: Place, stack: Place) -> None:
        """A value was pushed, which left zero: the adjoint of that zero means nothing."""
        if x.reg not in self.bar_of:
            return
        bar = self._bar(x)
        spare = self._temp("spare" + BAR, cast(Scalar, bar.type), bar)
        self._emit("fresh", spare)
        self._emit("swap", spare, bar)
        self._emit("drop", spare)
        self._emit("pop", bar, self._bar(stack))

    def _gain(self, value: Expr, g: Expr, op: str = "add") -> None:
        """Whatever `value` reads gains from `g`."""
        for read, gain in contributions(value, g):
            self._emit(op, self._bar(read), gain)

    # ------------------------------------------------------------ data

    def _data(self, instr: Instr) -> None:
        stmts = lower(instr)
        first = stmts[0]
        if len(stmts) == 1 and isinstance(first, Map):
            self._map(instr, first)
        elif len(stmts) == 1 and isinstance(first, Update):
            self._update(first, invert_instr(instr))
        elif all(map(_only_exchanges, stmts)):
            self.code.append(invert_instr(instr))
            self._exchanged(instr)
        else:
            for stmt in reversed(stmts):
                self._statement(stmt, instr.op)

    def _exchanged(self, instr: Instr) -> None:
        """An opcode that only moves values moves their adjoints alike."""
        row = OPCODES[instr.op]
        if not all(
            cast(Place, a).reg in self.bar_of
            for a, o in zip(instr.args, row.operands, strict=True)
            if o.mode == "mut"
        ):
            return
        self._emit(
            row.inverse,
            *(
                self._bar(cast(Place, a)) if o.mode == "mut" else a
                for a, o in zip(instr.args, row.operands, strict=True)
            ),
        )

    def _statement(self, stmt: Stmt, op: str) -> None:
        """One statement of an opcode that has several, as instructions of its own."""
        match stmt:
            case Update(dst, sign, value):
                self._update(stmt, invert_instr(Instr(OPS[sign], (dst, value))))
            case Exchange(a, b):
                self._emit("swap", a, b)
                self._emit_bars("swap", a, b)
            case When(cond, body):
                skip = apply("not", cond)
                start = len(self.code)
                self._emit("br", skip)
                for inner in reversed(body):
                    self._statement(inner, op)
                end = len(self.code)
                self._emit("cf", skip, aux=start)
                self.code[start] = replace(self.code[start], aux=end)
            case _:
                raise DefinitionError(
                    "D012",
                    f"`{op}` has no adjoint: it stores new values among other statements",
                    hint="let the opcode do nothing but return its new values",
                )

    def _update(self, stmt: Update, undo: Instr) -> None:
        """`dst op= value` is undone, and what `value` reads gains from dst's adjoint."""
        dst, sign, value = stmt.dst, stmt.op, stmt.value
        if dst.reg not in self.bar_of:
            self.code.append(undo)
            return
        g = self._bar(dst)
        if sign in "+-":
            self.code.append(undo)
            self._gain(value, g, OPS[sign])
            return
        assert dst.type is not None and value.type is not None
        if elem_of(dst.type).is_log:
            self.code.append(undo)
            self._gain(value, g, "add" if sign == "*" else "sub")
            return
        conjugate = apply("conj", value) if elem_of(value.type).is_complex else value
        old = apply("conj", dst) if elem_of(dst.type).is_complex else dst
        if sign == "*":
            # dL/dvalue = old dst times g, and dst is the old one once it is undone.
            self.code.append(undo)
            self._gain(value, apply("*", g, old))
            self._emit("mul", g, conjugate)
        else:
            # d(y / v)/dv = -(y / v) / v, and dst still holds y / v.
            self._gain(value, apply("/", apply("*", g, old), conjugate), "sub")
            self.code.append(undo)
            self._emit("div", g, conjugate)

    def _map(self, instr: Instr, stmt: Map) -> None:
        """New values were computed from the old: with those back, adjoints go by the Jacobian."""
        self.code.append(invert_instr(instr))
        if not all(d.reg in self.bar_of for d in stmt.dsts):
            return
        bars = [self._bar(d) for d in stmt.dsts]
        own = set(stmt.dsts)
        for new, g in zip(stmt.values, bars, strict=True):
            for read, gain in contributions(new, g):
                if read not in own:
                    self._emit("add", self._bar(read), gain)
        row = OPCODES[instr.op]
        op, takes_values = adjoint_map(row, elem_of(cast(ValueType, stmt.dsts[0].type)))
        operands = iter(bars)
        args = [
            next(operands) if o.mode == "mut" else a
            for a, o in zip(instr.args, row.operands, strict=True)
        ]
        self._emit(op, *args, *(stmt.dsts if takes_values else ()))

    # ------------------------------------------------------------ calls

    def _call(self, instr: Instr) -> None:
        """A call is undone by the callee's adjoint, which takes the adjoints along."""
        callee = self.functions[instr.symbol]
        extra: list[Place] = []
        after: list[tuple[Expr, Place]] = []
        bars = bar_slots(callee)
        used: list[Place] = []
        for k in bars:
            arg = instr.args[k]
            if isinstance(arg, Place) and arg.type is None:
                extra.append(self._bar(arg))
                continue
            bar = self._bar(arg) if isinstance(arg, Place) and arg.reg in self.bar_of else None
            if bar is None or any(overlap(bar, u) != "never" for u in used):
                # A value, or a place that is passed twice to be read: it gains afterwards.
                t = bar_type(cast(Scalar | Array, arg.type))
                assert isinstance(t, (Scalar, Array))
                bar = self._temp("arg" + BAR, t, arg)
                after.append((arg, bar))
            else:
                used.append(bar)
            extra.append(bar)
        for _, bar in after:
            self._emit("fresh", bar)
        self._emit(instr.op, *instr.args, *extra, symbol=self.names[instr.symbol])
        for arg, bar in reversed(after):
            self._gain(arg, bar)
            self._emit("drop", bar)


def _only_exchanges(stmt: Stmt) -> bool:
    return isinstance(stmt, Exchange) or (
        isinstance(stmt, When) and all(map(_only_exchanges, stmt.body))
    )
