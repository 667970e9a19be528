"""A module of LLVM code: a root function and all that it calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rvm.emit.llvm.functions import Definitions, declared
from rvm.emit.llvm.lanes import LanePrinter, LanesPrinter
from rvm.emit.llvm.prelude import declaration
from rvm.emit.llvm.printer import CELL, ELEMENT, FRAMES, Printer
from rvm.emit.llvm.rooms import POOL
from rvm.emit.llvm.runtime import DECLARATIONS
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.ir.ahead import ahead
from rvm.ir.blocks import FunctionBuilder, Left
from rvm.ir.flow import Flow
from rvm.ir.function import machine_function, plan_of
from rvm.ir.kind import ANYWHERE, INNER, ROOT, Kind
from rvm.ir.steady import steady
from rvm.ir.typed import Unprintable
from rvm.leaf import Function, Table
from rvm.types import Scalar, Stack

ATTRIBUTES = """
attributes #0 = { nounwind willreturn memory(none) }
attributes #1 = { nounwind }
attributes #2 = { nounwind willreturn }
!1 = !{!"branch_weights", i32 1, i32 2000}
!2 = !{}
"""
Varying = Callable[[Code, frozenset[int]], frozenset[int]]
"""The registers of a function that vary where certain parameters do."""
Inner = tuple[Code, frozenset[int], frozenset[int] | None]
"""An inner function: its code, its parameters that have strides, those that differ by lane; None of
one that is for one lane."""


class ModulePrinter:
    """The printer of the module for one root; `codes` are those that frames refer to by number.

    `entry` is the function that Python enters: the root, or a helper that calls it.

    With `varying` it is for several lanes, among which the parameters `params` differ; Unprintable
    if there is no such module.
    """

    def __init__(
        self,
        code: Code,
        kind: Kind,
        params: frozenset[int] = frozenset(),
        varying: Varying | None = None,
        entry: str = ROOT,
    ) -> None:
        self.codes: list[Code] = []
        self.kind = kind
        self.steady = steady(code)
        self.varying = varying
        self._symbols: dict[Inner, str] = {}
        self._waiting: list[Callable[[], Printer]] = []
        self._sites: Counter[str] = Counter()
        """The number of printed calls of each inner function."""
        self._metadata: list[str] = []
        self._numbers: dict[Code, int] = {}
        self.placed: dict[str, Table] = {}
        """The tables whose values it finds where it is loaded, by their symbols."""
        self.cells: list[Changed] = []
        """The guards whose values are in cells, by number."""
        symbols: set[str] = set()
        helpers = {entry}
        functions: set[Function] = set()
        frames = 0
        printed: list[Printer] = []
        wide = None if varying is None else params
        self._enter(ROOT, (code, kind.scattered, wide), kind)
        while self._waiting:
            printer = self._waiting.pop()()
            printer.print()
            printed.append(printer)
            symbols |= printer.symbols
            helpers |= printer.helpers
            functions |= printer.functions
            self.placed |= printer.placed
            frames += printer.frame
        self.texts = [p.text(self._attributes(p.b)) for p in printed]
        prelude = Definitions(functions, helpers)
        self.placed |= prelude.placed
        self.symbols = tuple(sorted(symbols | prelude.symbols))
        """The C library's functions that it calls, by their aliases."""
        cells = [f"@{POOL} = external global ptr"]
        cells += [f"@{CELL}{k} = external global [3 x i64]" for k in range(len(self.cells))]
        for k, guard in enumerate(self.cells):
            if guard.element is not None:
                cells.append(f"@{ELEMENT}{k} = external global [2 x i64]")
        cells += [declared(table) for _, table in sorted(self.placed.items())]
        # Any function may be put into another.
        bound = f"@{FRAMES} = private unnamed_addr constant i64 {frames}"
        library = map(declaration, self.symbols)
        texts = [*library, *cells, bound, DECLARATIONS, prelude.text(), ATTRIBUTES]
        self._rest = "\n".join(texts)

    def _printer(self, symbol: str, inner: Inner, what: Kind) -> Printer:
        code, _, params = inner
        plan = plan_of(code, what.checks, what.strict)
        if self.varying is None or params is None:
            b = FunctionBuilder(symbol, code, what, plan.flow, self)
            machine_function(b, plan.loops)
            ahead(b, b.blocks)
            return Printer(b, self)
        if plan.flow.apart or any(isinstance(r.type, Stack) for r in code.function.registers):
            raise Unprintable
        b = FunctionBuilder(symbol, code, what, plan.flow, self, self.varying(code, params))
        return LanesPrinter(machine_function(b, plan.loops), self)

    def text(self, triple: str, layout: str) -> str:
        """The module's source."""
        head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
        return "\n".join([head, *self.texts, self._rest, *self._metadata]) + "\n"

    # ------------------------------------------------------------ what functions ask for

    def inner(self, code: Code, scattered: frozenset[int], varying: frozenset[int] | None) -> str:
        """The symbol of an inner function, which is printed later."""
        key = code, scattered, varying
        found = self._symbols.get(key)
        if found is None:
            found = self._symbols[key] = f"f{len(self._symbols)}"
            what = self.kind._replace(
                entry=INNER,
                scattered=scattered,
                unread=frozenset(),
                blank=False,
                finite=frozenset(),
            )
            self._enter(found, key, what)
        self._sites[found] += 1
        return found

    def _enter(self, symbol: str, inner: Inner, what: Kind) -> None:
        self._waiting.append(lambda: self._printer(symbol, inner, what))

    def single(self, b: FunctionBuilder) -> str:
        """The symbol of the function in which lanes continue alone after they have diverged."""
        assert b.varying is not None
        code, symbol = b.code, f"{b.symbol}_lane"
        left = Left(tuple(sorted(set(b.partings))), b.varying)
        arrays = frozenset(k for k in b.arrays if k in b.varying)
        entry = left.at[0] if len(left.at) == 1 else ANYWHERE
        what = b.kind._replace(entry=entry, scattered=arrays)
        plan = plan_of(code, what.checks, what.strict)
        flow = Flow(code, plan.flow.apart, plan.flow.calls, left.at)

        def make() -> Printer:
            own = FunctionBuilder(symbol, code, what, flow, self, left=left)
            return LanePrinter(machine_function(own, plan.loops), self)

        self._waiting.append(make)
        return symbol

    def _attributes(self, b: FunctionBuilder) -> str:
        """LLVM's attributes of a function: the root is not inlined where it is called."""
        return "#1 noinline" if b.symbol == ROOT else "#1 alwaysinline" * self._joins(b) or "#1"

    def _joins(self, b: FunctionBuilder) -> bool:
        """Whether a function is inlined at once: a function of numbers, called in one place.

        LLVM would inline it only after optimising both separately, and then optimise again.  About
        functions of arrays LLVM knows more as long as they are separate.
        """
        if self.varying is not None or self._sites[b.symbol] != 1:
            return False
        registers = b.function.registers[: b.function.n_args]
        return all(isinstance(r.type, Scalar) for r in registers)

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


__all__ = ["ModulePrinter"]
