"""A module of LLVM code: a root function and all that it calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rvm.emit.llvm.calls import is_callable
from rvm.emit.llvm.counting import CountingPrinter
from rvm.emit.llvm.flow import Flow
from rvm.emit.llvm.function import FunctionPrinter
from rvm.emit.llvm.kind import INNER, ROOT, Kind
from rvm.emit.llvm.loops import Counted, counted
from rvm.emit.llvm.runtime import DECLARATIONS, RUNTIME, frame_bound
from rvm.emit.llvm.traps import declared
from rvm.emit.values import Unprintable
from rvm.host.once import once
from rvm.host.signals import listen
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.numbers.llvm import declaration
from rvm.numbers.llvm_prelude import definitions
from rvm.types import Array, Scalar

ATTRIBUTES = """
attributes #0 = { nounwind willreturn memory(none) }
attributes #1 = { nounwind }
attributes #2 = { nounwind willreturn }
!1 = !{!"branch_weights", i32 1, i32 2000}
!2 = !{}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of a code before it is printed."""

    flow: Flow
    loops: dict[int, Counted]


class ModulePrinter:
    """Prints the module for one root; `codes` are those that its frames name by number."""

    def __init__(self, code: Code, kind: Kind) -> None:
        self.codes: list[Code] = []
        self.kind = kind
        self._symbols: dict[tuple[Code, frozenset[int]], str] = {}
        self._waiting: list[tuple[str, Code, Kind]] = []
        self._sites: Counter[str] = Counter()
        """How many calls of each inner function are printed."""
        self._metadata: list[str] = []
        self._numbers: dict[Code, int] = {}
        self.cells: list[Changed] = []
        """The guards whose values stand in cells, by number."""
        self.texts: list[str] = []
        symbols: dict[str, str] = {}
        helpers: set[str] = set()
        printed: list[tuple[str, Code]] = []
        self._waiting.append((ROOT, code, kind))
        printing = CountingPrinter if kind.counts else FunctionPrinter
        while self._waiting:
            symbol, made, what = self._waiting.pop()
            plan = plan_of(made, kind.checks, kind.strict)
            printer = printing(symbol, made, what, plan.flow, plan.loops, self)
            self.texts.append(printer.text())
            printed.append((symbol, made))
            symbols |= printer.symbols
            helpers |= printer.helpers
        self._join(printed)
        prelude, more = definitions(sorted(h for h in helpers if h not in RUNTIME))
        self.symbols = tuple(sorted({*symbols, *more}))
        """The C library's functions that it calls, by their aliases."""
        own = "".join(RUNTIME[h] for h in sorted(helpers) if h in RUNTIME)
        watched = {k for k, guard in enumerate(self.cells) if guard.element is not None}
        cells = declared(len(self.cells), watched)
        bound = frame_bound(self.texts, 8)
        self._rest = "\n".join(
            [_declared(self.symbols), cells, bound, DECLARATIONS, own, prelude, ATTRIBUTES]
        )

    def text(self, triple: str, layout: str) -> str:
        """The module's source."""
        head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
        return "\n".join([head, *self.texts, self._rest, *self._metadata]) + "\n"

    # ------------------------------------------------------------ what functions ask for

    def inner(self, code: Code, scattered: frozenset[int]) -> str:
        """The symbol of an inner function, which is printed when its turn comes."""
        found = self._symbols.get((code, scattered))
        if found is None:
            found = self._symbols[code, scattered] = f"f{len(self._symbols)}"
            what = self.kind._replace(entry=INNER, scattered=scattered)
            self._waiting.append((found, code, what))
        self._sites[found] += 1
        return found

    def _join(self, printed: list[tuple[str, Code]]) -> None:
        """Have functions of numbers that are called in one place put there at once.

        LLVM would do that after it has optimised them by themselves, and then optimise all again.
        Those of arrays it knows more about as long as they are functions.
        """
        for k, (symbol, code) in enumerate(printed):
            registers = code.function.registers[: code.function.n_args]
            if self._sites[symbol] == 1 and all(isinstance(r.type, Scalar) for r in registers):
                self.texts[k] = self.texts[k].replace(") #1 {", ") #1 alwaysinline {", 1)

    def number(self, code: Code) -> int:
        """The number of a code."""
        if code not in self._numbers:
            self._numbers[code] = len(self.codes)
            self.codes.append(code)
        return self._numbers[code]

    def cell(self, guard: Changed) -> int:
        """The number of a guard's cell."""
        for k, known in enumerate(self.cells):
            if known is guard:
                return k
        self.cells.append(guard)
        return len(self.cells) - 1

    def metadata(self, text: str) -> str:
        """A new metadata node; `{}` in its text is its own name."""
        name = f"!{10 + len(self._metadata)}"
        self._metadata.append(f"{name} = {text.replace('{}', name)}")
        return name


def _declared(symbols: tuple[str, ...]) -> str:
    return "\n".join(map(declaration, symbols))


def plan_of(code: Code, checks: bool, strict: bool) -> Plan:
    """The shape of a code, worked out once."""
    key = (Plan, checks, strict)
    return once(code.compiled, key, Plan, lambda: _planned(code, checks, strict))


def _planned(code: Code, checks: bool, strict: bool) -> Plan:
    calls = {pc for pc in _calls(code) if is_callable(code, pc)}
    apart = {
        pc
        for pc in range(len(code))
        if pc not in calls and ((strict and code.loses(pc)) or _is_apart(code, pc, checks))
    }
    flow = Flow(code, apart, calls)
    return Plan(flow, counted(code, flow))


def _calls(code: Code) -> list[int]:
    return [pc for pc, i in enumerate(code.instrs) if i.op in ("call", "uncall")]


class _Probe(FunctionPrinter):
    """A printer that is asked what it can print."""

    def __init__(self, code: Code, checks: bool) -> None:
        scattered = frozenset(
            k for k, r in enumerate(code.function.registers) if isinstance(r.type, Array)
        )
        super().__init__(
            "probe", code, Kind(INNER, scattered, checks), Flow(code, (), ()), {}, _Nobody()
        )
        self._variables()
        self.certain = frozenset()  # code for all gates checks what this does not

    def able(self, pc: int) -> bool:
        """Whether an instruction is for it."""
        self.lines.clear()
        self._tail.clear()
        self.leaving(lambda: "out")
        stmts = self.code.stmts(pc)
        try:
            if self.code.instrs[pc].op == "br":
                self.value(self.code.instrs[pc].args[0])
                self.value(self.code.instrs[self.code.instrs[pc].aux].args[0])
            else:
                self.instruction(stmts, self.code.clashes(pc))
        except Unprintable:
            return False
        return True


class _Nobody:
    def inner(self, code: Code, scattered: frozenset[int]) -> str:
        raise Unprintable

    def number(self, code: Code) -> int:
        return 0

    def metadata(self, text: str) -> str:
        return "!0"

    def cell(self, guard: Changed) -> int:
        return 0


def _is_apart(code: Code, pc: int, checks: bool) -> bool:
    listen()
    if code.instrs[pc].op in ("call", "uncall"):
        return True
    probe = code.compiled.get((_Probe, checks))
    if not isinstance(probe, _Probe):
        probe = code.compiled[_Probe, checks] = _Probe(code, checks)
    return not probe.able(pc)


__all__ = ["ModulePrinter", "Plan", "plan_of"]
