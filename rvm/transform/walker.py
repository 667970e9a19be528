"""The walk over a function that generates another one on its registers and their duals.

One walk serves adjoints, which go against the code, and tangents, which go along it; a table of
rules determines the result for each instruction.

A function may do more in one direction than in the other.  A bool that is created with `fresh`,
negated, and dropped with `drop` at the end is true forwards.  When the function is undone, it
begins as the zero that undoing `drop` creates, and is false everywhere.  So a branch on it
distinguishes the directions, and is ordinary code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rvm.expr import Expr, Place
from rvm.faults import DefinitionError, Where
from rvm.isa import ENDS, OPCODES, apply, invert_instr, lower
from rvm.isa.derivatives import in_field
from rvm.program import Function, Instr, Program, Register
from rvm.stmt import Exchange, Map, Stmt, Update, When, only_exchanges
from rvm.transform.duals import Duals, Form, bar_slots
from rvm.transform.graph import Graph
from rvm.transform.zeros import Changed
from rvm.types import BOOL
from rvm.verify import where_of

FORTH = "forth"
"""The name of the register that holds forwards."""
OPS = {"+": "add", "-": "sub", "^": "xor", "*": "mul", "/": "div"}


@dataclass(frozen=True, slots=True)
class DualRules:
    """The rules for instructions, and the names of duals."""

    word: str
    suffix: str
    """The suffix of the name of a register's dual."""
    part: str
    """The name of a common part of the formulas for duals."""
    back: bool
    """Whether code is gone over from its end, each instruction undone."""
    machine: Mapping[str, Callable[[Walker, Instr], None]]
    """The rules of opcodes that are not data statements; others are executed, without duals."""
    update: Callable[[Walker, Update, Instr], None]
    """For an update, and the instruction that does it, or undoes it."""
    map: Callable[[Walker, Instr, Map], None]


@contextmanager
def placed(program: Program) -> Iterator[None]:
    """While errors about an instruction of a program are to name its line in the source."""
    try:
        yield
    except DefinitionError as error:
        if error.where.function in program:
            function = program.function(error.where.function)
            error.where = where_of(program, function, error.where.pc)
        raise


class Walker(Duals):
    """A growing function on a function's registers and their duals."""

    def __init__(
        self,
        f: Function,
        functions: dict[str, Function],
        names: dict[str, str],
        rules: DualRules,
        changed: Changed,
        without: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(f, functions, names, rules.suffix, rules.part, without)
        self.rules = rules
        self.changed = changed
        self.changing = changed.get(f.name, frozenset())
        self.called: list[Form] = []
        """The forms whose derivatives the code calls."""
        self.pc = 0
        """The instruction of `f` from which code is being made."""
        self._nothing: list[tuple[int, Graph, list[Instr], Mapping[int, Place]]] = []
        """Gains that wait, with the position that they belong to."""
        self._forth: Place | None = None
        self.zero: frozenset[int] = frozenset()
        """The adjoints that are always zero at the present position, as registers."""
        self.origins: list[int] = []

    def walk(self, visit: Callable[[int], None] | None = None) -> Function:
        """The finished function; `visit` is called for each instruction before it is walked."""
        f, at = self.f, dict[int, int]()
        for pc in reversed(range(len(f.code))) if self.rules.back else range(len(f.code)):
            instr = f.code[pc]
            if instr.op not in ENDS:
                self.settle()
            if instr.op in ("br", "cf"):
                at[pc] = len(self.code)
            self.pc = pc
            if visit is not None:
                visit(pc)
            try:
                self._instruction(replace(instr, args=tuple(self.value(a) for a in instr.args)))
            except DefinitionError as error:
                error.where = Where(function=f.name, pc=pc)
                raise
            self.spanned(pc)
        self.settle()
        for pc, new in at.items():
            self.code[new] = replace(self.code[new], aux=at[f.code[pc].aux])
        self.enclose()
        name = Form(f.name, self.without).called(self.names[f.name], f)
        return replace(self.finished(name), origins=tuple(self.origins))

    # ------------------------------------------------------------ instructions

    def done(self, instr: Instr) -> Instr:
        """An instruction as executed in this direction."""
        return invert_instr(instr) if self.rules.back else instr

    def _instruction(self, instr: Instr) -> None:
        rule = self.rules.machine.get(instr.op)
        if rule is not None:
            rule(self, instr)
        elif OPCODES[instr.op].is_data:
            self._data(instr)
        else:
            self.code.append(self.done(instr))

    def _data(self, instr: Instr) -> None:
        stmts = lower(instr)
        match stmts:
            case (Map() as only,):
                self.rules.map(self, instr, only)
            case (Update() as only,):
                self.rules.update(self, only, self.done(instr))
            case _ if all(map(only_exchanges, stmts)):
                self.code.append(self.done(instr))
                self.exchanged(instr, self.done(instr).op)
            case _:
                self._statements(stmts, instr.op)

    def _statements(self, stmts: tuple[Stmt, ...], op: str) -> None:
        """Statements of an opcode that has several, as instructions of their own."""
        for stmt in reversed(stmts) if self.rules.back else stmts:
            match stmt:
                case Update(dst, sign, value):
                    self.rules.update(self, stmt, self.done(Instr(OPS[sign], (dst, value))))
                    self.settle()
                case Exchange(a, b):
                    self.emit("swap", a, b)
                    self.emit_duals("swap", a, b)
                case When(cond, body):
                    start = self.unless(apply("not", cond))
                    self._statements(body, op)
                    self.until(start)
                case _:
                    raise DefinitionError(
                        "D012",
                        f"`{op}` has no {self.rules.word}: it stores new values among other "
                        "statements",
                        hint="let the opcode do nothing but return its new values",
                    )

    def derivative(self, call: Instr) -> tuple[str, list[int]]:
        """The derivative that replaces a called function, and the arguments whose duals it takes.

        Arguments whose duals are left out here are left out there.
        """
        callee = self.functions[call.symbol]
        without = set[int]()
        for k, arg in enumerate(call.args):
            if isinstance(arg, Place) and arg.reg in self.without:
                without.add(k)
                if k not in self.changed[callee.name]:
                    self.has_dual(arg)
        form = Form(callee.name, frozenset(without & set(bar_slots(callee))))
        self.called.append(form)
        return form.called(self.names[callee.name], callee), list(bar_slots(callee, form.without))

    def is_constant(self, call: Instr) -> bool:
        """Whether all that a call changes is without duals, since they are left out."""
        found = [call.args[k] for k in self.changed[call.symbol]]
        regs = {a.reg for a in found if isinstance(a, Place)}
        return bool(regs & self.without) and not regs & set(self.dual_of)

    def on_duals(self, instr: Instr, op: str, duals: list[Place], more: tuple[Place, ...]) -> None:
        """An opcode on the duals of the places `instr` changes, its other operands, and `more`."""
        operands = iter(duals)
        args = [
            next(operands) if o.mode == "mut" else in_field(a) if o.kind == "angle" else a
            for a, o in zip(instr.args, OPCODES[instr.op].operands, strict=True)
        ]
        self.emit(op, *args, *more)

    def spanned(self, pc: int) -> None:
        """Attribute all instructions without a line to the instruction at `pc`."""
        more = len(self.code) - len(self.spans)
        self.spans += [self.f.span(pc)] * more
        self.origins += [pc] * more

    def if_undone(
        self, graph: Graph, gains: list[Instr], held: Mapping[int, Place] | None = None
    ) -> None:
        """Terms from an adjoint that is zero, which are not computed forwards.

        In the inverse that adjoint is off by what was discarded, and the terms compensate for
        exactly this. They are collected with those of the next ancillas, to be skipped together.
        """
        if gains:
            self._nothing.append((self.pc, graph, gains, held or {}))

    def settle(self) -> None:
        """Add the gains that wait, for the other direction only."""
        if not self._nothing:
            return
        start = self.unless(self.forth())
        for pc, graph, gains, held in self._nothing:
            self.spanned(pc)
            self.shared(graph, (), gains, held=held)
        self.until(start)
        self.spanned(self._nothing[-1][0])
        self._nothing = []

    def unless(self, cond: Expr) -> int:
        """Begin code that is executed unless a condition holds; return its start."""
        self.emit("br", cond)
        return len(self.code) - 1

    def until(self, start: int) -> None:
        """End the code that was begun at `start`."""
        begun = self.code[start]
        self.code[start] = replace(begun, aux=len(self.code))
        self.emit("cf", *begun.args, aux=start)

    def forth(self) -> Place:
        """The register that holds forwards."""
        if self._forth is None:
            self.registers.append(Register(self._name(FORTH), BOOL))
            self._forth = Place(len(self.registers) - 1, (), BOOL)
        return self._forth

    def enclose(self) -> None:
        """Wrap the code so that the register holds forwards, and only then."""
        forth = self._forth
        if forth is None:
            return
        before = (Instr("fresh", (forth,)), Instr("not", (forth,)))
        moved = [
            replace(i, aux=i.aux + len(before)) if i.op in ("br", "cf") else i for i in self.code
        ]
        self.code = [*before, *moved, Instr("drop", (forth,))]
        last = len(self.f.code) - 1
        self.spans = [self.f.span(last)] * len(before) + self.spans + [self.f.span(0)]
        self.origins = [last] * len(before) + self.origins + [0]
