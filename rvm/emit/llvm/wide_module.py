"""A module of LLVM code for several lanes at once: a root function and all that it calls."""

from __future__ import annotations

from collections.abc import Callable

from rvm.emit.llvm.kind import INNER, ROOT, Kind
from rvm.emit.llvm.module import ATTRIBUTES, plan_of
from rvm.emit.llvm.runtime import DECLARATIONS, RUNTIME, frame_bound
from rvm.emit.llvm.wide import WideFunctionPrinter
from rvm.emit.llvm.wide_text import WIDTH
from rvm.emit.values import Unprintable
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.numbers.llvm import declaration
from rvm.numbers.llvm_prelude import definitions

Varying = Callable[[Code, frozenset[int]], frozenset[int]]
"""The registers of a function that vary where certain parameters do."""


class WideModulePrinter:
    """Prints the module for a root whose parameters `params` vary; Unprintable if it can't."""

    def __init__(self, code: Code, kind: Kind, params: frozenset[int], varying: Varying) -> None:
        self.kind = kind
        self.varying = varying
        self._symbols: dict[tuple[Code, frozenset[int], frozenset[int]], str] = {}
        self._waiting = [(ROOT, code, kind, params)]
        self._metadata: list[str] = []
        texts: list[str] = []
        symbols: dict[str, str] = {}
        helpers: set[str] = set()
        while self._waiting:
            symbol, made, what, by_lane = self._waiting.pop()
            plan = plan_of(made, kind.checks, kind.strict)
            printer = WideFunctionPrinter(
                symbol, made, what, plan.flow, plan.loops, self, varying(made, by_lane)
            )
            texts.append(printer.text())
            symbols |= printer.symbols
            helpers |= printer.helpers
        prelude, more = definitions(sorted(h for h in helpers if h not in RUNTIME))
        self.symbols = tuple(sorted({*symbols, *more}))
        """The C library's functions that it calls, by their aliases."""
        own = (RUNTIME[h] for h in sorted(helpers) if h in RUNTIME)
        declared = map(declaration, self.symbols)
        rest = [*declared, frame_bound(texts, 8 * WIDTH), DECLARATIONS, *own, prelude, ATTRIBUTES]
        self._parts = [*texts, *rest, *self._metadata]

    def text(self, triple: str, layout: str) -> str:
        """The module's source."""
        head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
        return "\n".join([head, *self._parts]) + "\n"

    # ------------------------------------------------------------ what functions ask for

    def wide(self, code: Code, scattered: frozenset[int], params: frozenset[int]) -> str:
        """The symbol of an inner function, which is printed when its turn comes."""
        key = code, scattered, params
        found = self._symbols.get(key)
        if found is None:
            found = self._symbols[key] = f"f{len(self._symbols)}"
            what = self.kind._replace(entry=INNER, scattered=scattered)
            self._waiting.append((found, code, what, params))
        return found

    def inner(self, code: Code, scattered: frozenset[int]) -> str:
        """The symbol of an inner function in which nothing varies."""
        return self.wide(code, scattered, frozenset())

    def number(self, code: Code) -> int:
        """Stopped frames are not kept, so no code has a number."""
        raise Unprintable

    def cell(self, guard: Changed) -> int:
        """There are no guards in lanes."""
        raise Unprintable

    def metadata(self, text: str) -> str:
        """A new metadata node; `{}` in its text is its own name."""
        name = f"!{10 + len(self._metadata)}"
        self._metadata.append(f"{name} = {text.replace('{}', name)}")
        return name
