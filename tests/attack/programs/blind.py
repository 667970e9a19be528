"""Random sound programs: every opcode and many functions, branches, loops, ancillas, calls.

Instructions are drawn blindly and kept if they have a type and no certain conflict; the frame
around them (ancillas, pairs of jumps) is sound by construction.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from rvm.expr import Apply, Const, Expr, Index, Part, Peek, Place, Span, Step, Transposed
from rvm.isa import FUNCTIONS, OPCODES, TypeFault, check_operands, place, typed
from rvm.program import Dim, Function, Instr, Param, Program, Record, Register, Source
from rvm.program import Span as SourceSpan
from rvm.types import (
    BOOL,
    C128,
    F32,
    F64,
    FIXED,
    I32,
    I64,
    LOG64,
    U8,
    U32,
    U64,
    Array,
    RegisterType,
    Scalar,
    Stack,
    elem_of,
    fixed,
)
from rvm.verify.conflicts import conflicts

_SCALAR_TYPES = (BOOL, I32, I64, U8, U32, U64, F32, F64, C128, FIXED, fixed(12), LOG64)
DATA = tuple(name for name, row in OPCODES.items() if row.is_data)
_SPECIAL = (0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 1e300, 5e-324)


class _RandomFunction:
    """One function in the making."""

    def __init__(self, rng: random.Random, name: str, others: list[Function]) -> None:
        self.rng = rng
        self.name = name
        self.others = others
        self.registers: list[Register] = []
        self.dims: list[Dim] = []
        self.params: list[Param] = []
        self.code: list[Instr] = []
        self.live: list[int] = []
        for k in range(rng.randint(1, 5)):
            self._param(k)
        self.n_params = len(self.registers)

    def _type(self, arrays: bool = True) -> RegisterType:
        elem = self.rng.choice(_SCALAR_TYPES)
        kind = self.rng.random()
        if arrays and kind < 0.3:
            return Array(elem, self.rng.randint(1, 3))
        return Stack(elem) if arrays and kind < 0.4 else elem

    def _param(self, k: int) -> None:
        first = len(self.registers)
        if self.rng.random() < 0.2:
            inner = Record("pair", (("re", first), ("im", first + 1)))
            leaves = [self._type(), self._type()]
            layout: Any = Record("outer", (("p", inner), ("none", Record("empty", ()))))
        else:
            leaves, layout = [self._type()], first
        for t in leaves:
            rank = t.rank if isinstance(t, Array) else 0
            reg = len(self.registers)
            lengths: list[Expr | None] = [None] * rank
            if rank and self.rng.random() < 0.3:
                lengths[0] = typed(Const(self.rng.randint(1, 9)), I64)
            elif rank:
                self.dims.append(Dim(f"n{reg}", reg, 0))
            self.registers.append(Register(f"x{reg}", t, tuple(lengths)))
            self.live.append(reg)
        self.params.append(Param(f"p{k}", layout))

    # --- expressions

    def constant(self, t: Scalar) -> Const:
        rng = self.rng
        if t.is_bool:
            return Const(rng.random() < 0.5, t)
        if t.is_complex:
            return Const(complex(rng.choice(_SPECIAL), rng.uniform(-2, 2)), t)
        if t.is_integer or t.is_fixed:
            low = 0 if t.name.startswith("u") else -(1 << (t.bits - 1))
            value = rng.choice((low, low + (1 << t.bits) - 1, rng.randint(0, 100)))
            return Const(value, t)
        if t.name == "f32":
            return Const(rng.choice(_SPECIAL[:6]), t)
        return Const(rng.choice((*_SPECIAL, rng.random())), t)

    def place(self) -> Place:
        reg = self.rng.choice(self.live)
        base = self.registers[reg].type
        if isinstance(base, Stack):
            what = self.rng.choice((None, None, "top", "len"))
            return Place(reg) if what is None else place(reg, base, (Peek(what),))
        path: list[Step] = []
        for _ in range(self.rng.randint(0, 3)):
            roll = self.rng.random()
            if roll < 0.15:
                path.append(Transposed())
            elif roll < 0.3:
                path.append(Part(self.rng.choice(("re", "im"))))
            else:
                items = [self.item() for _ in range(self.rng.randint(1, 2))]
                path.append(Index(tuple(items)))
            try:
                place(reg, base, path)
            except TypeFault:
                path.pop()
        return place(reg, base, path)

    def item(self) -> Expr | Span:
        if self.rng.random() < 0.3:
            lo = self.index() if self.rng.random() < 0.6 else None
            hi = self.index() if self.rng.random() < 0.6 else None
            return Span(lo, hi, self.stride() if self.rng.random() < 0.3 else None)
        return self.index()

    def stride(self) -> Expr:
        if self.rng.random() < 0.2:
            return self.index()
        return Const(self.rng.choice((1, 2, 3, -1, -2, 0, 1 << 62, -1 << 63)), I64)

    def index(self) -> Expr:
        whole = [
            r for r in self.live if isinstance(t := self.registers[r].type, Scalar) and t.is_integer
        ]
        if not whole or self.rng.random() < 0.4:
            return Const(self.rng.randint(0, 6), I64)
        at = Place(reg := self.rng.choice(whole), (), self.registers[reg].type)  # type: ignore[arg-type]
        if self.rng.random() < 0.5:
            return at
        return typed(Apply(self.rng.choice("+-*"), (at, Const(self.rng.randint(0, 3)))))

    def expr(self, depth: int = 3) -> Expr:
        roll = self.rng.random()
        if depth and roll < 0.5:
            row = self.rng.choice(list(FUNCTIONS.values()))
            for _ in range(6):
                args = tuple(self.expr(depth - 1) for _ in range(row.arity))
                try:
                    return typed(Apply(row.name, args))
                except TypeFault:
                    continue
        if roll < 0.8:
            found = self.place()
            if found.type is not None:
                return found
        return self.constant(self.rng.choice(_SCALAR_TYPES))

    def condition(self) -> Expr:
        for _ in range(20):
            node = self.expr()
            if node.type == BOOL and not isinstance(node, Const):
                return node
        return typed(Apply("==", (self.index(), Const(0))))

    # --- instructions

    def data(self) -> None:
        """One data instruction, if a few tries find one."""
        op = ""
        for attempt in range(32):
            op = op if attempt % 8 else self.rng.choice(DATA)
            args = self._operands(op)
            if any(a.type is None for a in args):
                continue
            try:
                instr = Instr(op, check_operands(op, args, self.registers))
            except TypeFault:
                continue
            if not any(c.verdict == "always" for c in conflicts(instr)):
                self.code.append(instr)
                return

    def _operands(self, op: str) -> list[Expr]:
        """Operands for a data opcode: half of them drawn blindly, half with its type in mind."""
        operands = OPCODES[op].operands
        blind = self.rng.random() < 0.5
        main = self.place()
        args: list[Expr] = []
        for o in operands:
            if o.mode == "mut" and (blind or main.type is None):
                args.append(self.place())
            elif o.mode == "mut":
                same = [main] + [p for p in (self.place() for _ in range(5)) if p.type == main.type]
                args.append(self.rng.choice(same))
            elif o.kind == "bool" and not blind:
                args.append(self.condition())
            elif blind or main.type is None:
                args.append(self.expr())
            else:
                t = elem_of(main.type)
                args.append(self.constant(F64 if o.kind == "angle" and t.is_complex else t))
        return args

    def call(self) -> None:
        """A call of an earlier function, all arguments fresh ancillas."""
        if not self.others:
            return self.data()
        callee = self.rng.choice(self.others)
        types = [callee.registers[k].type for k in range(callee.n_args)]
        made = [self._local(t) for t in types]
        for reg in made:
            self._memory("alloc", reg)
        args = tuple(self._whole(r) for r in made)
        op = self.rng.choice(("call", "uncall"))
        self.code.append(Instr(op, args, -1, callee.name))
        for reg in reversed(made):
            self._memory("free", reg)
        return None

    def _whole(self, reg: int) -> Place:
        t = self.registers[reg].type
        return Place(reg, (), None if isinstance(t, Stack) else t)

    def _local(self, t: RegisterType) -> int:
        rank = t.rank if isinstance(t, Array) else 0
        lengths = tuple(Const(self.rng.randint(0, 5), I64) for _ in range(rank))
        self.registers.append(Register(f"t{len(self.registers)}", t, lengths))
        return len(self.registers) - 1

    def _memory(self, op: str, reg: int) -> None:
        args: list[Expr] = [self._whole(reg)]
        t = self.registers[reg].type
        if not isinstance(t, Stack):
            args.append(self.constant(elem_of(t)))
        self.code.append(Instr(op, tuple(args)))

    def ancilla(self, budget: int) -> None:
        reg = self._local(self._type())
        self._memory("alloc", reg)
        self.live.append(reg)
        self.block(budget)
        self.live.remove(reg)
        self._memory("free", reg)

    def stack(self, budget: int) -> None:
        """A scalar pushed on a stack of its type, and popped again."""
        t = self.rng.choice(_SCALAR_TYPES)
        reg, home = self._local(t), self._local(Stack(t))
        for r in (reg, home):
            self._memory("alloc", r)
        args = (self._whole(reg), self._whole(home))
        self.code.append(Instr("push", args))
        self.block(budget)
        self.code.append(Instr("pop", args))
        for r in (home, reg):
            self._memory("free", r)

    def branch(self, budget: int) -> None:
        start = len(self.code)
        condition = self.condition()
        self.code.append(Instr("br", (condition,)))
        self.block(budget)
        self.code.append(Instr("cf", (self.condition(),), start))
        self.code[start] = Instr("br", (condition,), len(self.code) - 1)

    def loop(self, budget: int) -> None:
        start = len(self.code)
        condition = self.condition()
        self.code.append(Instr("cf", (condition,)))
        self.block(budget)
        self.code.append(Instr("br", (self.condition(),), start))
        self.code[start] = Instr("cf", (condition,), len(self.code) - 1)

    def effect(self) -> None:
        op = self.rng.choice(("print", "assert", "callback"))
        args: tuple[Expr, ...] = (self.condition(),) if op == "assert" else (self.expr(),)
        self.code.append(Instr(op, args, self.rng.randint(1, 3), "text é"))

    def block(self, budget: int) -> None:
        for _ in range(self.rng.randint(0, budget)):
            roll = self.rng.random()
            if budget < 2 or roll < 0.5:
                self.data()
            elif roll < 0.6:
                self.effect()
            elif roll < 0.7:
                self.call()
            else:
                make = self.rng.choice((self.ancilla, self.stack, self.branch, self.loop))
                make(budget - 1)

    def function(self, size: int) -> Function:
        self.block(size)
        spans = tuple(SourceSpan(0, k + 1, 3, 9) for k in range(len(self.code)))
        return Function(
            self.name,
            tuple(self.params),
            tuple(self.registers),
            tuple(self.code),
            spans if self.rng.random() < 0.7 else (),
            tuple(self.dims),
        )


@cache
def random_program(seed: int, size: int = 4) -> Program:
    """A sound program, always the same for a seed."""
    rng = random.Random(seed)
    functions: list[Function] = []
    for k in range(rng.randint(1, 3)):
        functions.append(_RandomFunction(rng, f"f{k}", functions).function(size))
    text = "\n".join(f"line {k}" for k in range(5))
    return Program(tuple(functions), functions[-1].name, (Source("random.rasm", text),))
