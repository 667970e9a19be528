"""Expanding nested expressions to strict code: one function per instruction.

Intermediate results of an instruction go into temporaries, which are uncomputed right after it
(compute, copy, uncompute):

    add v, 2*p*q + r        alloc t = 2 * p
                            alloc t#1 = t * q
                            add   v, t#1 + r
                            free  t#1 = t * q
                            free  t = 2 * p

The right side of `and` and `or` stays as it is: it is evaluated only if necessary.
"""

from __future__ import annotations

from dataclasses import replace

from rvm.expr import Apply, Expr, Place, Step, through
from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.shapes import Dims, Lengths, dims_of, is_length
from rvm.program import AnyProgram, Function, Instr, Program, Register, program_of
from rvm.program import Span as SourceSpan
from rvm.types import BOOL, Array, RegisterType, ValueType, rank_of

_VALUES = ("add", "sub", "xor", "mul", "div")
"""Opcodes whose value may be a function of places."""


def expand(program: AnyProgram) -> Program:
    """The program without nested expressions; it computes the same, in more and smaller steps."""
    program = program_of(program)
    functions = tuple(_Expander(f).function() for f in program.functions)
    return replace(program, functions=functions, generics=None)


class _Expander:
    """The growing code of one function."""

    def __init__(self, function: Function) -> None:
        self.source = function
        self.registers = list(function.registers)
        self.code: list[Instr] = []
        self.spans: list[SourceSpan] = []
        self.at: list[int] = []
        """The new position of each of the source's instructions."""
        self._free: dict[tuple[RegisterType, tuple[Expr, ...]], list[int]] = {}
        self._dims: dict[int, tuple[Expr, ...]] = {}
        self._made: list[Instr] = []
        self._flag = -1

    def function(self) -> Function:
        source = self.source
        flagged = self._flagged()
        for pc, instr in enumerate(source.code):
            before = len(self.code)
            if instr.op in ("br", "cf"):
                self._jump(instr, pc in flagged)
            else:
                self._plain(instr)
            self.spans += [source.span(pc)] * (len(self.code) - before)
        for new in self.at:
            instr = self.code[new]
            if instr.op in ("br", "cf"):
                self.code[new] = replace(instr, aux=self.at[instr.aux])
        return replace(
            source,
            registers=tuple(self.registers),
            code=tuple(self.code),
            spans=tuple(self.spans) if source.spans else (),
        )

    def _flagged(self) -> set[int]:
        """The jumps whose condition, or whose partner's, is nested."""
        code = self.source.code
        nested = {
            pc for pc, i in enumerate(code) if i.op in ("br", "cf") and self._steps(i.args[0])
        }
        return nested | {code[pc].aux for pc in nested}

    def _steps(self, node: Expr) -> bool:
        """Whether an expression needs temporaries."""
        expander = _Expander(replace(self.source, code=()))
        expander._simple(node)
        return bool(expander._made)

    # Instructions.

    def _plain(self, instr: Instr) -> None:
        op = instr.op
        row = OPCODES[op]
        args = []
        for k, arg in enumerate(instr.args):
            used = op in ("alloc", "free") and k == 1
            if op in _VALUES and row.operands[k].mode == "use":
                used = True
            args.append(self._simple(arg) if used else self._atom(arg))
        self._around(replace(instr, args=tuple(args)))

    def _around(self, instr: Instr, keep: bool = True) -> None:
        """An instruction between the making and the freeing of its temporaries."""
        made, self._made = self._made, []
        self.code += made
        if keep:
            self.at.append(len(self.code))
        self.code.append(instr)
        for alloc in reversed(made):
            self.code.append(replace(alloc, op="free"))
            self._release(alloc)

    def _jump(self, instr: Instr, flagged: bool) -> None:
        """A jump with a nested condition uses a flag, which is freed by its partner's condition.

        A jump arrives with the flag set; control that falls in has just made it.  After the landing
        it is freed by the condition there, which then holds for both.
        """
        if not flagged:
            self.at.append(len(self.code))
            self.code.append(instr)
            return
        if self._flag < 0:
            self._flag = len(self.registers)
            self.registers.append(Register("flag", BOOL))
        flag = Place(self._flag, (), BOOL)
        self._around(Instr("alloc", (flag, self._simple(instr.args[0]))), keep=False)
        self.at.append(len(self.code))
        self.code.append(replace(instr, args=(flag,)))
        self._around(Instr("free", (flag, self._simple(instr.args[0]))), keep=False)

    # Expressions.

    def _simple(self, node: Expr) -> Expr:
        """A place, a constant, or a function of such; deeper parts become temporaries."""
        if isinstance(node, Place):
            return self._place(node)
        if not isinstance(node, Apply):
            return node
        if is_length(node):
            return Apply(node.fn, (self._simple(node.args[0]), *node.args[1:]), node.type)
        if FUNCTIONS[node.fn].lazy:
            return Apply(node.fn, (self._atom(node.args[0]), *node.args[1:]), node.type)
        return Apply(node.fn, tuple(self._atom(a) for a in node.args), node.type)

    def _atom(self, node: Expr) -> Expr:
        """A place, a constant or a length; anything else becomes a temporary."""
        simple = self._simple(node)
        if not isinstance(simple, Apply) or is_length(simple):
            return simple
        t = simple.type
        assert t is not None
        dims = dims_of(simple, self._lengths) if isinstance(t, Array) else ()
        if dims is None or len(dims) != rank_of(t):
            return simple
        place = Place(self._temporary(t, dims), (), t)
        self._made.append(Instr("alloc", (place, simple)))
        return place

    def _place(self, node: Place) -> Place:
        if not node.path:
            return node
        return Place(node.reg, tuple(self._step(s) for s in node.path), node.type)

    def _step(self, step: Step) -> Step:
        return through(step, self._atom)

    # Temporaries.

    def _lengths(self, node: Place) -> Dims:
        known = None if node.path else self._dims.get(node.reg)
        return Lengths().of_place(node) if known is None else known

    def _temporary(self, t: ValueType, dims: tuple[Expr, ...]) -> int:
        free = self._free.setdefault((t, dims), [])
        if free:
            return free.pop()
        self.registers.append(Register("t", t, dims))
        self._dims[len(self.registers) - 1] = dims
        return len(self.registers) - 1

    def _release(self, alloc: Instr) -> None:
        place = alloc.args[0]
        assert isinstance(place, Place)
        register = self.registers[place.reg]
        dims = tuple(d for d in register.dims if d is not None)
        self._free[register.type, dims].append(place.reg)
