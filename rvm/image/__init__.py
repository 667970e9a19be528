"""A program made ready to run: each function in both directions, lowered once.

Engines only ever run forwards; `Code` with `undo` set is the inverse of a
function, so running that forwards is running the function backwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import rvm.codec.pickled  # noqa: F401 - code is pickled with its program
from rvm.expr import Apply, Const, Expr, Place, reads
from rvm.host.once import once
from rvm.image.sizes import Sizes, kept_for, notes, with_sizes
from rvm.image.traps import Traps
from rvm.isa import FUNCTIONS, lower
from rvm.isa.lower import plain
from rvm.program import AnyProgram, Function, Instr, Program, Span, program_of
from rvm.stmt import Drop, Effect, Free, Map, Pop, Stmt, Update, When, invert, writes
from rvm.transform import invert_function
from rvm.transform.changes import Changes
from rvm.transform.duals import reachable
from rvm.transform.ends import NOTHING, Ends, ends_of
from rvm.transform.forth import telling
from rvm.types import Stack, elem_of
from rvm.verify import inout_slots
from rvm.verify.conflicts import conflicts
from rvm.verify.flow import LIVES, Liveness, liveness


class Code:
    """A function in one direction: instructions, their statements, and aliasing checks."""

    traps: Mapping[int, Traps] = {}
    """Positions where a run may have to stop: none, except in code that `rvm.probes` armed."""

    def __init__(self, image: Image, function: Function, undo: bool) -> None:
        self.image = image
        self.sizes, self._ends = image.sizes(function)
        """The ancillas whose sizes are kept, and where; see `rvm.image.sizes`."""
        self.function = with_sizes(function, self.sizes)
        self.undo = undo
        self.instrs: tuple[Instr, ...] = (invert_function(function) if undo else function).code
        self._ready: list[Ready | None] = [None] * len(self.instrs)
        self._notes: dict[int, tuple[Stmt, ...]] = {}
        self._undone: dict[int, tuple[Stmt, ...]] = {}
        self._lives: Liveness | None = None
        self._losses: dict[int, bool] = {}
        self._roundings: dict[int, bool] = {}
        self.compiled: dict[object, object] = {}
        """Data that engines derive from it."""

    @property
    def name(self) -> str:
        return self.function.name

    def __len__(self) -> int:
        return len(self.instrs)

    def __repr__(self) -> str:
        return f"<Code {'~' * self.undo}{self.name}, {len(self)} instructions>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Traps, and what engines made of the code, stay where they are.
        return code_of, (self.image.program, self.name, self.undo)

    @cached_property
    def telling(self) -> int | None:
        """The register that tells directions apart; see `rvm.transform.walker`."""
        return telling(self.function)

    def behind(self, pc: int) -> int | None:
        """The end of the forward-only part that the position is inside."""
        for start, instr in enumerate(self.instrs):
            if instr.op == "br" and start < pc <= instr.aux:
                (cond,) = instr.args
                if isinstance(cond, Apply) and any(p.reg == self.telling for p in reads(cond)):
                    return instr.aux + 1
        return None

    def ready(self, pc: int) -> Ready:
        """The instruction at `pc`: its statements, and the aliasing checks to make at run time."""
        found = self._ready[pc]
        if found is None:
            stmts = tuple(map(partial(self._known, pc), lower(plain(self.instrs[pc]))))
            found = self._ready[pc] = (stmts, self._find_clashes(pc))
        return found

    def stmts(self, pc: int) -> tuple[Stmt, ...]:
        """The statements of the instruction at `pc`."""
        return self.ready(pc)[0]

    def notes(self, pc: int) -> tuple[Stmt, ...]:
        """Statements after the instruction at `pc` that record ancillas' sizes; they never fail."""
        if not self.sizes:
            return ()
        found = self._notes.get(pc)
        if found is None:
            live = self._live(pc) if self.sizes.copies else ()
            kept = partial(notes, self.function, self.sizes, self.image.inout, live)
            found = self._notes[pc] = tuple(n for s in self.stmts(pc) for n in kept(s))
        return found

    def _live(self, pc: int) -> frozenset[int]:
        """The registers that are live before the instruction at `pc`."""
        if self._lives is None:
            self._lives = liveness(self.image.program.function(self.name))
        return self._lives.live(self.forward_pc(pc))

    def _known(self, pc: int, stmt: Stmt) -> Stmt:
        """A statement with the known facts about the value that it checks."""
        match stmt:
            case Drop(Place(reg)):
                return replace(stmt, held=self.sizes.get(reg))
            case Free(Place(reg)) | Pop(Place(reg)):
                held = self.sizes.get(reg)
                if isinstance(stmt, Pop):
                    return replace(stmt, held=held, is_known=pc in self._ends[self.undo].known)
                returns = pc in self._ends[self.undo].returning
                measured = returns and reg in self.sizes.returning
                is_known = not measured and (returns or pc in self._ends[self.undo].known)
                returns &= measured or self._begins_as_value(stmt)
                return replace(stmt, held=held, is_known=is_known, returns=returns)
        return stmt

    def _begins_as_value(self, stmt: Free) -> bool:
        """Whether a register of inexact numbers is not made as zero."""
        t = self.function.registers[stmt.reg.reg].type
        zero = isinstance(stmt.value, Const) and not stmt.value.value
        return not (isinstance(t, Stack) or elem_of(t).is_exact or zero)

    def clashes(self, pc: int) -> tuple[Clash, ...]:
        """Pairs of places of the instruction at `pc` whose overlap only the run can decide."""
        return self.ready(pc)[1]

    def callee(self, pc: int) -> Code:
        """The code that the call at `pc` enters."""
        instr = self.instrs[pc]
        return self.image.code(instr.symbol, instr.op == "uncall")

    def loses(self, pc: int) -> bool:
        """Whether strict mode logs what an instruction loses: inexact numbers, dropped values."""
        found = self._losses.get(pc)
        if found is None:
            effect = isinstance(self.stmts(pc)[0], Effect)
            found = self._losses[pc] = not effect and self._loses(self.instrs[pc])
        return found

    def _loses(self, instr: Instr) -> bool:
        if instr.op in ("cf", "br", "swap", "exch", "cswap"):
            return False
        if instr.op in ("fresh", "drop"):
            return True
        first = instr.args[0]
        if instr.op in LIVES:
            assert isinstance(first, Place)
            return not elem_of(self.function.registers[first.reg].type).is_exact
        return not all(elem_of(a.type).is_exact for a in instr.args if a.type is not None)

    def rounds(self, pc: int) -> bool:
        """Whether an instruction updates inexact numbers, which may lose bits by rounding."""
        found = self._roundings.get(pc)
        if found is None:
            found = self._roundings[pc] = any(
                not elem_of(place.type).is_exact
                for stmt in self.stmts(pc)
                if isinstance(stmt, (Update, Map, When)) and not _only_moves(stmt)
                for place in writes(stmt)
                if place.type is not None
            ) and self.loses(pc)
        return found

    def logging(self, pc: int, way: int) -> int:
        """How the instruction at `pc` uses the strict log: push (1), pop (-1), not at all (0).

        `way` is the run's mode: the same values, or 2 or -2 where marks are heeded; see
        `rvm.numbers.residue`.
        """
        if not way or not self.loses(pc):
            return 0
        undoing = self.function.undoing
        if abs(way) > 1 and undoing is not None and self.forward_pc(pc) not in undoing:
            return 0
        return 1 if way > 0 else -1

    def undone(self, pc: int) -> tuple[Stmt, ...]:
        """The statements that undo those of the instruction at `pc`, in order.

        The inverse opcode may have other statements with the same values.
        """
        found = self._undone.get(pc)
        if found is None:
            found = tuple(invert(s) for s in reversed(self.stmts(pc)))
            self._undone[pc] = found
        return found

    def logged(self, pc: int, way: int) -> tuple[Stmt, ...]:
        """The statements at `pc` in a run that uses the log in mode `way`.

        Data statements that pop are the `undone` ones of the instruction that they undo, so that
        they compute the values for which gaps were pushed.
        """
        stmts = self.stmts(pc)
        if way >= 0 or not isinstance(stmts[0], (Update, Map, When)):
            return stmts
        return self.image.code(self.name, not self.undo).undone(len(self) - 1 - pc)

    def span(self, pc: int) -> Span:
        """The source span of the instruction at `pc` of this direction."""
        return self.function.span(len(self.instrs) - 1 - pc if self.undo else pc)

    def forward_pc(self, pc: int) -> int:
        """The instruction's index in the function as it was written."""
        return len(self.instrs) - 1 - pc if self.undo else pc

    def _find_clashes(self, pc: int) -> tuple[Clash, ...]:
        instr = self.instrs[pc]
        inout = self.image.inout.get(instr.symbol, frozenset())
        return tuple(
            (c.written, c.other, c.same_allowed)
            for c in conflicts(instr, inout)
            if c.verdict == "maybe"
        )


Clash = tuple[Place, Place, bool]
"""Two places that must not overlap; True where being the very same place is allowed."""
Ready = tuple[tuple[Stmt, ...], tuple[Clash, ...]]
"""An instruction's statements and its clashes."""


class Image:
    """All code of a program, prepared on demand; one per program, see `image_of`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._codes: dict[tuple[str, bool], Code] = {}
        self._sizes: dict[object, Any] = {}
        self._changes = Changes(program)
        self._forgets: dict[str, bool] = {}
        self.heat: Counter[str] = Counter()
        """Ticks that runs of each function have taken so far, as far as engines care to count."""

    def code(self, name: str, undo: bool) -> Code:
        """The code of a function in one direction."""
        found = self._codes.get((name, undo))
        if found is None:
            function = self.program.function(name)
            found = once(self._codes, (name, undo), Code, lambda: self._made(function, undo))
        return found

    def _made(self, function: Function, undo: bool) -> Code:
        return Code(self, function, undo)

    @cached_property
    def inout(self) -> dict[str, frozenset[int]]:
        """For each function the parameter registers that it (or a callee) may change."""
        return inout_slots(self.program)

    def sizes(self, function: Function) -> tuple[Sizes, tuple[Ends, Ends]]:
        """The ancillas of a function whose sizes are recorded, and the facts about its ends.

        The facts are those of the code forwards, and of its inverse.
        """
        registers = function.registers[function.n_args :]
        rounds = any(not (isinstance(r.type, Stack) or elem_of(r.type).is_exact) for r in registers)
        if not rounds and not any(i.op in ("push", "pop") for i in function.code):
            return Sizes(), (NOTHING, NOTHING)

        def find() -> tuple[Sizes, tuple[Ends, Ends]]:
            ways = function, invert_function(function)
            changes = self._changes
            there, back = (
                ends_of(self.program, function.name, undo, changes.of_calls)
                for undo in (False, True)
            )
            both = (ways[0], there), (ways[1], back)
            return kept_for(self.program, function, both), (there, back)

        return once(self._sizes, function.name, tuple, find)

    def restored(self, name: str) -> frozenset[int]:
        """The parameters that a function leaves as they were, by construction."""
        return self._changes.restored(name)

    def is_exact(self, name: str) -> bool:
        """Whether running `name` back restores every bit: no inexact number is ever changed."""
        return all(
            elem_of(r.type).is_exact
            for f in self.reachable(name)
            for r in self.program.function(f).registers
        )

    def reachable(self, name: str) -> tuple[str, ...]:
        """`name` and every function that it may call."""
        return reachable(self.program, name)

    def strays(self, name: str) -> bool:
        """Whether a way back without a log may take other ticks than the way there."""
        return any(self.code(f, False).telling is not None for f in self.reachable(name))

    def forgets(self, name: str) -> bool:
        """Whether values are dropped, which a way back without a log does not lead past again."""
        found = self._forgets.get(name)
        if found is None:
            found = self._forgets[name] = any(map(self.drops, self.reachable(name)))
        return found

    def drops(self, name: str) -> bool:
        """Whether a function itself drops values, in either direction."""
        return any(i.op in ("drop", "fresh") for i in self.program.function(name).code)

    def recurs(self, name: str) -> bool:
        """Whether `name`, or a function that it may call, may call itself, even indirectly."""
        names = self.reachable(name)
        calls = {
            n: {i.symbol for i in self.program.function(n).code if i.op in ("call", "uncall")}
            for n in names
        }
        return any(n in self.reachable(m) for n in names for m in calls[n])


def _only_moves(stmt: Stmt) -> bool:
    """Whether a statement only moves numbers and changes signs, which rounds nothing."""

    def is_exact(value: Expr) -> bool:
        if not isinstance(value, Apply):
            return True
        row = FUNCTIONS[value.fn]
        return (row.exact or row.moves) and all(map(is_exact, value.args))

    return isinstance(stmt, Map) and all(map(is_exact, stmt.values))


def code_of(program: Program, name: str, undo: bool) -> Code:
    """The code of a function of a program in one direction."""
    return image_of(program).code(name, undo)


def image_of(program: AnyProgram) -> Image:
    """The image of a program, made at first use."""
    if type(program) is not Program:
        program = program_of(program)
    found = program.cache.get(Image)
    if not isinstance(found, Image):
        found = once(program.cache, Image, Image, lambda: Image(program))
    return found
