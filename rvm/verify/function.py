"""The checks of one function: its instructions, then liveness along every path."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rvm.isa import ENDS, MAKES, OPCODES
from rvm.program import Function
from rvm.verify.finding import Finding
from rvm.verify.flow import Conflict, liveness
from rvm.verify.instructions import MEMORY, Checker
from rvm.verify.nodes import Nodes

MAX_ALIASES = 1000
"""Findings in unfinished code end here."""


def function_findings(
    function: Function,
    nodes: Nodes,
    functions: Mapping[str, tuple[Function, int]],
    inout: Mapping[str, Collection[int]],
    limit: int,
) -> list[Finding]:
    """The findings in a function whose tables are sound, in the order of its code."""
    checker = Checker(function, nodes, functions, inout, limit)
    needed: list[tuple[int, ...]] = []
    for pc, instr in enumerate(function.code):
        named = checker.check(pc, instr)
        needed.append(() if named is None else checker.needed(instr, named))
        if len(checker.found) >= limit:
            return checker.found
    _Lives(function, checker, needed).check()
    checker.found.sort(key=lambda f: f.pc)
    return checker.found


def alias_findings(function: Function, nodes: Nodes) -> list[Finding]:
    """Data instructions whose own places overlap, each by itself: for unfinished code."""
    checker = Checker(function, nodes, {}, {}, MAX_ALIASES)
    for pc, instr in enumerate(function.code):
        if OPCODES[instr.op].is_data:
            checker.alias(pc, instr)
    return checker.found


class _Lives:
    """Uses against live sets: before alloc, after free, twice alive, never freed."""

    def __init__(self, function: Function, checker: Checker, needed: list[tuple[int, ...]]) -> None:
        self.function = function
        self.checker = checker
        self.needed = needed
        self.told: set[int] = set()
        """Registers with a reported finding; consequences are not reported again."""
        self.left: list[int] = []
        """The registers live at the end."""
        self._made: dict[int, int] | None = None

    def check(self) -> None:
        conflicts = liveness(self.function, self._visit).conflicts
        for conflict in conflicts:
            self._disagree(conflict)
        self._end()

    def _name(self, reg: int) -> str:
        return self.function.registers[reg].name

    def _visit(self, position: int, live: set[int]) -> None:
        code = self.function.code
        if position and code[position - 1].op == "cf":
            self._uses(position - 1, live)
        if position == len(code):
            self.left = sorted(live)
            return
        instr = code[position]
        if instr.op == "cf":
            return
        self._uses(position, live)
        if instr.op in MEMORY:
            self._memory(position, live)

    def _uses(self, pc: int, live: set[int]) -> None:
        for reg in self.needed[pc]:
            if reg not in live and reg not in self.told:
                self.told.add(reg)
                self.checker.report(
                    pc,
                    "A030",
                    f"`{self._name(reg)}` is used where it is not live",
                    hint=self._where_live(reg, pc),
                )

    def _where_live(self, reg: int, pc: int) -> str:
        made = self._allocs().get(reg)
        if made is None:
            return f"allocate it first:  alloc {self._name(reg)}: …"
        return "use it after its alloc" if made > pc else "use it before its free"

    def _allocs(self) -> dict[int, int]:
        """For each register the first instruction that allocates it."""
        if self._made is None:
            self._made = {}
            for pc, instr in enumerate(self.function.code):
                if instr.op in MAKES and (reg := _target(instr.args)) is not None:
                    self._made.setdefault(reg, pc)
        return self._made

    def _memory(self, pc: int, live: set[int]) -> None:
        instr = self.function.code[pc]
        reg = _target(instr.args)
        if reg is None or reg in self.told or reg < self.checker.n_args:
            return
        name = self._name(reg)
        if instr.op in MAKES and reg in live:
            self.told.add(reg)
            self.checker.report(
                pc,
                "A031",
                f"`{name}` is live already",
                labels=((instr.args[0], "allocated again"),),
                hint=f"free `{name}` first, or take another name",
            )
        elif instr.op in ENDS and reg not in live:
            self.told.add(reg)
            self.checker.report(
                pc,
                "A030",
                f"`{name}` is freed where it is not live",
                labels=((instr.args[0], "freed here"),),
            )

    def _end(self) -> None:
        for reg in self.left:
            if reg < self.checker.n_args or reg in self.told:
                continue
            pc = self._allocs()[reg]
            name = self._name(reg)
            self.checker.report(
                pc,
                "A032",
                f"`{name}` is not freed",
                labels=((self.function.code[pc].args[0], "allocated here"),),
                hint=f"bring `{name}` back to a known value, then:  free {name} = …",
            )

    def _disagree(self, conflict: Conflict) -> None:
        differing = {r for r in conflict.differing if r not in self.told}
        if conflict.differing and not differing:
            return
        self.told |= differing
        pc = min(conflict.position, len(self.function.code) - 1)
        names = ", ".join(f"`{self._name(r)}`" for r in sorted(differing)[:8])
        more = len(differing) > 8
        self.checker.report(
            pc,
            "A033",
            f"{names}{' and others' if more else ''} "
            f"{'is' if len(differing) == 1 else 'are'} live on one path to this point and not "
            f"on another"
            if differing
            else "further paths disagree on which registers are live",
            notes=(f"one of the paths comes from instruction {conflict.source}",),
            hint="allocate and free on the same side of a branch, or on both sides",
        )


def _target(args: tuple[object, ...]) -> int | None:
    reg = getattr(args[0], "reg", None) if args else None
    return reg if isinstance(reg, int) else None
