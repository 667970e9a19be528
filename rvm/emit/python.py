"""From statements to Python source: scalars as local variables, arrays as NumPy calls.

What the source cannot do right away (an edge case of a function, a failed check)
raises an exception before anything has changed; the engine then has the whole
instruction executed by the reference engine.  So there are no messages here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rvm.emit.values import ValuePrinter, bare, is_small
from rvm.expr import Expr, Place
from rvm.image import Clash
from rvm.ir.typed import Unprintable, element, leading, parted, scalar_of, type_of
from rvm.isa import implementation
from rvm.numbers import system
from rvm.stmt import (
    Alloc,
    Drop,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import Array, Scalar, Stack, elem_of, rank_of

AUGMENTED = re.compile(r"\(?\{0\} (\+|-|\*|/|\^) \{1\}\)?")
"""Templates that an augmented assignment does in place."""


class Printer(ValuePrinter):
    """Prints the statements of one function's code as lines of Python."""

    # ------------------------------------------------------------ statements

    def instruction(self, stmts: Sequence[Stmt], clashes: Sequence[Clash] = ()) -> list[str]:
        """The lines that do an instruction; Unprintable if it is not for this printer."""
        if len(stmts) > 1:
            # Were the second to fail, the first would have been done already.
            raise Unprintable
        self._lines, self._temps, self._bound, self._checked = [], 0, {}, set()
        self._inline = False
        self._apart(clashes)
        self._print(stmts[0])
        return self._lines

    def condition(self, cond: Expr) -> tuple[list[str], str]:
        """A condition as an expression, and the lines that go before it."""
        self._lines, self._temps, self._bound, self._checked = [], 0, {}, set()
        self._inline = False
        self._share([cond])
        return self._lines, self.value(cond)

    def sizes(self, nodes: Sequence[Expr]) -> tuple[list[str], str]:
        """The shapes of array places and the values of lengths, as a tuple's source.

        The lines go before it.
        """
        self._lines, self._temps, self._bound, self._checked = [], 0, {}, set()
        self._inline = False
        parts = [
            f"{self._view(n)}.shape"
            if isinstance(n, Place) and rank_of(type_of(n))
            else self.value(n)
            for n in nodes
        ]
        return self._lines, f"({', '.join(parts)},)"

    def _print(self, stmt: Stmt) -> None:
        match stmt:
            case Update():
                self._update(stmt)
            case Exchange(a, b):
                self._exchange(a, b)
            case Map(dsts, values, _):
                self._map(dsts, values)
            case When(cond, body):
                self._share([cond])
                self._lines.append(f"if {self.value(cond)}:")
                outer, self._lines = self._lines, []
                for inner in body:
                    self._print(inner)
                outer.extend("    " + line for line in self._lines)
                self._lines = outer
            case Alloc(reg, v):
                self._alloc(reg, v)
            case Free(reg, v):
                self._free(reg, v)
            case Fresh(reg):
                self._fresh(reg)
            case Drop(reg):
                self._drop(reg)
            case Push(src, stack):
                zero = self.constant(system(scalar_of(src)).zero)
                load = self._place(src)
                value = self._loaded(src, load)
                self._lines.append(f"push(state, {self.regs[stack.reg]}, {value})")
                self._lines.append(self._store(src, load, zero))
            case Pop(dst, stack):
                zero = self.constant(system(scalar_of(dst)).zero)
                load = self._place(dst)
                s = self.regs[stack.reg]
                held = self._loaded(dst, load)
                exactly = self._exactly(f"signs({held}) != (1.0, 1.0)", scalar_of(dst))
                self._lines.append(f"if {held} != {zero} or not {s}{exactly}: trouble()")
                self._lines.append(self._store(dst, load, f"pop(state, {s})"))
            case Land(cond, _):
                self._share([cond])
                text = self.value(cond)
                if text != "False":
                    self._lines.append(f"if {text}: trouble()")
            case _:
                raise Unprintable

    def _update(self, stmt: Update) -> None:
        t = elem_of(type_of(stmt.dst))
        code, factors = implementation(stmt.op, (t, t)), system(t).factors
        if rank_of(type_of(stmt.dst)):
            view = self._view(stmt.dst)
            self._share([stmt.value])
            value = self.value(stmt.value)
            if stmt.op in "*/" and factors != "any":
                value = f"factor({value}, {factors!r})"
            self._lines.append(f"_d = {view}; _v = {value}")
            self._lines.append(f"fits(_d, _v); _d[...] = {self._fill(code.numpy, '_d', '_v')}")
            return
        load = self._place(stmt.dst)
        self._share([stmt.value])
        value = self.value(stmt.value)
        if stmt.op in "*/" and factors != "any":
            test = f"not {'cisfinite' if t.is_complex else 'isfinite'}(_v)"
            self._lines.append(f"_v = {value}")
            self._lines.append(
                f"if {test if factors == 'finite' else 'not _v or ' + test}: trouble()"
            )
            value = "_v"
        if (
            t.is_integer
            and t.is_signed
            and stmt.op in "+-"
            and is_small(stmt.value)
            and not stmt.dst.path
        ):
            # Only one end of the range can be passed, so one comparison finds it.
            end = 2 ** (t.bits - 1)
            passed = f">= {end}" if stmt.op == "+" else f"< -{end}"
            self._lines.append(f"{load} {stmt.op}= {value}")
            self._lines.append(f"if {load} {passed}: {load} = wrap_{t}({load})")
            return
        plain, old = AUGMENTED.fullmatch(code.python), self._loaded(stmt.dst, load)
        if plain and old == load and not parted(stmt.dst):
            self._lines.append(f"{load} {plain[1]}= {bare(value)}")
        else:
            new = self._fill(code.python, old, value)
            self._lines.append(self._store(stmt.dst, load, bare(new)))

    def _exchange(self, a: Place, b: Place) -> None:
        if isinstance(type_of(a), Array):
            self._lines.append(f"exchange({self._view(a)}, {self._view(b)})")
            return
        x, y = self._place(a), self._place(b)
        if parted(a) or parted(b):
            self._lines.append(f"_v = {self._loaded(a, x)}; _w = {self._loaded(b, y)}")
            self._lines.append(self._store(a, x, "_w"))
            # A store to one part rebuilds the whole number, so the other is written after it.
            self._lines.append(self._store(b, y, "_v"))
        else:
            self._lines.append(f"{x}, {y} = {self._loaded(b, y)}, {self._loaded(a, x)}")

    def _map(self, dsts: tuple[Place, ...], values: tuple[Expr, ...]) -> None:
        if any(isinstance(type_of(d), Array) for d in dsts):
            views = ", ".join(self._view(d) for d in dsts)
            self._share(values)
            new = ", ".join(self.value(v) for v in values)
            self._lines.append(f"store_all(({views},), ({new},))")
            return
        loads = [self._place(d) for d in dsts]
        for d, load in zip(dsts, loads, strict=True):
            # Within the values a destination is read where it was just found.
            if d.path:
                self._bound[d] = self._loaded(d, load)
        self._share(values)
        new_values = [self.value(v) for v in values]
        if any(map(parted, dsts)):
            temps = [self._temp() for _ in dsts]
            self._lines.append(f"{', '.join(temps)}, = {', '.join(new_values)},")
            for d, load, temp in zip(dsts, loads, temps, strict=True):
                self._lines.append(self._store(d, load, temp))
        else:
            right = ", ".join(new_values) if len(dsts) > 1 else bare(new_values[0])
            self._lines.append(f"{', '.join(loads)} = {right}")

    def _alloc(self, reg: Place, v: Expr | None) -> None:
        register = self.function.registers[reg.reg]
        name = self.regs[reg.reg]
        if isinstance(register.type, Stack):
            self._lines.append(f"{name} = []")
        elif isinstance(register.type, Array):
            assert v is not None
            t = self.bind(system(register.type.elem))
            self._lines.append(
                f"{name} = make_array(state, {t}, {self._shape(register.dims)}, {self.value(v)})"
            )
            self._look(reg.reg, f"memoryview({name})")
        else:
            assert v is not None
            self._lines.append(f"{name} = {bare(self.value(v))}")

    def _free(self, reg: Place, v: Expr | None) -> None:
        register = self.function.registers[reg.reg]
        name = self.regs[reg.reg]
        if isinstance(register.type, Stack):
            self._lines.append(f"if {name}: trouble()")
        elif isinstance(register.type, Array):
            assert v is not None
            t = self.bind(system(register.type.elem))
            self._lines.append(
                f"drop_array(state, {t}, {name}, {self._shape(register.dims)}, {self.value(v)})"
            )
            self._look(reg.reg, "None")
        else:
            assert v is not None
            self._share([v])
            value = self.value(v)
            if register.type.is_exact:
                self._lines.append(f"if {name} != {value}: trouble()")
            else:
                t = self.bind(system(register.type))
                self._lines.append(f"_v = {value}")
                parts = (".real", ".imag") if register.type.is_complex else ("",)
                zero = " or ".join(f"not {name}{part}" for part in parts)
                exactly = self._exactly(f"({zero})", register.type)
                test = f"if {name} != _v{exactly}"
                self._lines.append(f"{test}: residue(state, {t}, {name}, _v)")
        self._lines.append(f"{name} = None")

    def _exactly(self, test: str, t: Scalar) -> str:
        """What is added to a test for another number: a test that is made where bits count.

        `exactly` is a variable of the function that the line is for.
        """
        if t.is_exact:
            return ""
        self.asks_exactly = True
        return f" or exactly and {test}"

    def _fresh(self, reg: Place) -> None:
        register, name = self.function.registers[reg.reg], self.regs[reg.reg]
        if isinstance(register.type, Scalar):
            self._lines.append(f"{name} = {self.constant(system(register.type).zero)}")
            return
        if isinstance(register.type, Stack):
            self._lines.append(f"{name} = []")
            return
        t = self.bind(system(register.type.elem))
        self._lines.append(f"{name} = zeros(state, {t}, {self._shape(register.dims)})")
        self._look(reg.reg, f"memoryview({name})")

    def _drop(self, reg: Place) -> None:
        register, name = self.function.registers[reg.reg], self.regs[reg.reg]
        if isinstance(register.type, Stack):
            self._lines.append(f"if {name}: trouble()")
        else:
            t = self.bind(system(elem_of(register.type)))
            test = f"if {name}: " if isinstance(register.type, Scalar) else ""
            self._lines.append(f"{test}forget(state, {t}, {name})")
            self._look(reg.reg, "None")
        self._lines.append(f"{name} = None")

    def _look(self, reg: int, view: str) -> None:
        """Bind the memoryview of a local array; needed only if an element is ever accessed."""
        line = f"{self.regs[reg]}_m = {view}"
        self._views[line] = reg
        self._lines.append(line)

    def is_needed(self, line: str) -> bool:
        """Whether a line does something, now that all instructions have been printed."""
        return self._views.get(line, -1) in (-1, *self.elements)

    def _shape(self, dims: Sequence[Expr | None]) -> str:
        return f"({''.join(self.value(d) + ', ' for d in dims if d is not None)})"

    def _apart(self, clashes: Sequence[Clash]) -> None:
        for a, b, same_ok in clashes:
            if same_ok and None not in (element(a), element(b)):
                continue
            one, two = leading(a), leading(b)
            if same_ok or not one or len(one) != len(two):
                raise Unprintable
            # Views of one element's parts may be apart: the reference engine finds out.
            test = " and ".join(
                f"{self.value(i)} == {self.value(j)}" for i, j in zip(one, two, strict=True)
            )
            self._lines.append(f"if {test}: trouble()")
