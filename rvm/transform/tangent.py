"""Tangent mode: a program beside its derivative along a direction, run forwards.

For every function `f` there is a function `f_tangent` on values and their tangents:
each instruction is done together with what it does to tangents.  It is ordinary
code, as reversible as `f`; of a gradient program it makes Hessian-vector products
(forward over reverse).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from rvm.expr import Const, Expr, Place
from rvm.faults import DefinitionError, UsageError
from rvm.isa import OPCODES, apply, lower, typed
from rvm.isa.tangents import tangent_of
from rvm.program import Function, Instr, Program
from rvm.stmt import Exchange, Map, Stmt, Update, When, only_exchanges
from rvm.transform.duals import Duals, bar_slots, reachable, unique
from rvm.transform.factors import signed
from rvm.transform.graph import Graph
from rvm.transform.maps import tangent_map
from rvm.types import Array, Scalar, ValueType, elem_of, rank_of

TANGENT, DOT = "_tangent", "_dot"
"""What is added to the names of functions and registers."""
OPS = {"+": "add", "-": "sub", "^": "xor", "*": "mul", "/": "div"}


def tangent(program: Program, function: str | None = None) -> Program:
    """The program whose entry `f_tangent` runs `f` on values and tangents.

    It takes the parameters of `f` and, for each that carries one, a tangent `x_dot`: at the start
    that of the input, at the end that of the result.  UsageError U001 if there is no such function.
    """
    name = function or program.entry
    if name not in program:
        raise UsageError("U001", f"the program has no function `{name}`")
    functions = {f.name: f for f in program.functions}
    names = tangent_names(program)
    kept = reachable(program, name)
    made = [_Tangent(functions[n], functions, names).function() for n in kept]
    originals = (functions[n] for n in kept)
    return Program((*made, *originals), made[0].name, program.sources)


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
            else:
                args, dots = tuple(map(graph.ref, part.args)), tuple(map(visit, part.args))
                raw = tangent_of(part.fn, args, dots) if set(dots) != {None} else None
                found[number] = None if raw is None else tidy(raw)
        return found[number]

    def tidy(raw: Expr) -> Expr:
        negative, value = signed(graph, raw)
        held = graph.ref(graph.intern(value))
        return apply("neg", held) if negative else held

    return visit(graph.intern(node))


class _Tangent(Duals):
    """The growing tangent function of one function."""

    suffix = DOT
    part = "d"

    def function(self) -> Function:
        """The finished function."""
        at: dict[int, int] = {}
        for pc, instr in enumerate(self.f.code):
            before = len(self.code)
            args = tuple(self.value(a) for a in instr.args)
            if instr.op in ("br", "cf"):
                at[pc] = len(self.code)
            self._instruction(replace(instr, args=args))
            self.spans += [self.f.span(pc)] * (len(self.code) - before)
        for pc, new in at.items():
            self.code[new] = replace(self.code[new], aux=at[self.f.code[pc].aux])
        return self.finished(self.names[self.f.name])

    def _tangent(self, graph: Graph, node: Expr) -> Expr | None:
        return tangent_on(graph, node, self._dot)

    def _dot(self, node: Expr) -> Expr | None:
        return self.dual(node) if isinstance(node, Place) and node.reg in self.dual_of else None

    def _instruction(self, instr: Instr) -> None:
        row = OPCODES[instr.op]
        match instr.op:
            case "call" | "uncall":
                self._call(instr)
            case "alloc" | "free":
                self._known(instr)
            case "fresh" | "drop" | "push" | "pop":
                self.code.append(instr)
                self.emit_duals(instr.op, *instr.args)
            case _ if not row.is_data:
                self.code.append(instr)
            case _:
                self._data(instr)

    def _known(self, instr: Instr) -> None:
        """An ancilla's value is known where it begins and ends, and so is its tangent."""
        x = cast(Place, instr.args[0])
        both = [instr]
        graph = self.graph()
        if x.reg in self.dual_of:
            dot, values = self.dual(x), instr.args[1:]
            zero = typed(Const(0), elem_of(cast(ValueType, dot.type)))
            dots = [zero if k is None else k for k in (self._tangent(graph, v) for v in values)]
            both.append(Instr(instr.op, (dot, *dots)))
        self.shared(graph, both if instr.op == "alloc" else both[::-1], ())

    # ------------------------------------------------------------ data

    def _data(self, instr: Instr) -> None:
        stmts = lower(instr)
        first = stmts[0]
        if len(stmts) == 1 and isinstance(first, Map):
            self._map(instr, first)
        elif len(stmts) == 1 and isinstance(first, Update):
            self._update(first, instr)
        elif all(map(only_exchanges, stmts)):
            self.code.append(instr)
            self.exchanged(instr, OPCODES[instr.op].name)
        else:
            for stmt in stmts:
                self._statement(stmt, instr.op)

    def _statement(self, stmt: Stmt, op: str) -> None:
        match stmt:
            case Update(dst, sign, value):
                self._update(stmt, Instr(OPS[sign], (dst, value)))
            case Exchange(a, b):
                self.emit("swap", a, b)
                self.emit_duals("swap", a, b)
            case When(cond, body):
                skip = apply("not", cond)
                start = len(self.code)
                self.emit("br", skip)
                for inner in body:
                    self._statement(inner, op)
                self.emit("cf", skip, aux=start)
                self.code[start] = replace(self.code[start], aux=len(self.code) - 1)
            case _:
                raise DefinitionError(
                    "D012",
                    f"`{op}` has no tangent: it stores new values among other statements",
                    hint="let the opcode do nothing but return its new values",
                )

    def _update(self, stmt: Update, instr: Instr) -> None:
        """Tangents first: they need the old value of the destination."""
        dst, sign, value = stmt.dst, stmt.op, stmt.value
        if dst.reg not in self.dual_of:
            self.code.append(instr)
            return
        graph = self.graph()
        dot, change = self.dual(dst), self._tangent(graph, value)
        if sign in "+-" or elem_of(cast(ValueType, dst.type)).is_log:
            op = OPS[{"*": "+", "/": "-"}.get(sign, sign)]
            both = [instr] if change is None else [Instr(op, (dot, change)), instr]
            self.shared(graph, both, ())
            return
        code = [Instr(OPS[sign], (dot, value))]
        if change is not None and sign == "*":
            code.append(Instr("add", (dot, apply("*", dst, change))))
        elif change is not None:
            quotient = apply("/", apply("*", dst, change), apply("*", value, value))
            code.append(Instr("sub", (dot, quotient)))
        self.shared(graph, [*code, instr], (), changing=(dst.reg, dot.reg))

    def _map(self, instr: Instr, stmt: Map) -> None:
        """Tangents go by the Jacobian, and gain from the operands that are only read."""
        if all(d.reg in self.dual_of for d in stmt.dsts):
            row = OPCODES[instr.op]
            op, takes_values = tangent_map(row, elem_of(cast(ValueType, stmt.dsts[0].type)))
            dots = [self.dual(d) for d in stmt.dsts]
            operands = iter(dots)
            args = [
                next(operands) if o.mode == "mut" else a
                for a, o in zip(instr.args, row.operands, strict=True)
            ]
            self.emit(op, *args, *(stmt.dsts if takes_values else ()))
            own, graph = set(stmt.dsts), self.graph()
            changes = [
                (dot, tangent_on(graph, new, lambda p: None if p in own else self._dot(p)))
                for new, dot in zip(stmt.values, dots, strict=True)
            ]
            self.shared(graph, [Instr("add", (d, c)) for d, c in changes if c is not None], ())
        self.code.append(instr)

    # ------------------------------------------------------------ calls

    def _call(self, instr: Instr) -> None:
        callee = self.functions[instr.symbol]
        extra = [self._argument(instr.args[k]) for k in bar_slots(callee)]
        self.emit(instr.op, *instr.args, *extra, symbol=self.names[instr.symbol])

    def _argument(self, arg: Expr) -> Expr:
        if isinstance(arg, Place) and arg.reg in self.dual_of:
            return self.dual(arg)
        graph = self.graph()
        known = self._tangent(graph, arg)
        if known is not None:
            return graph.expr(graph.intern(known))
        t = cast("Scalar | Array", arg.type)
        zero = typed(Const(0), elem_of(self.dual_type(t)))
        return apply("spread_like", zero, arg) if rank_of(t) else zero
