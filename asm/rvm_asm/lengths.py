"""Lengths and indices that are known at assembly time, and do not fit.

Errors that a run would report as R003 and R008 are refused if all lengths and indices involved are
constants.  For others, `None` here, only the run can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from rvm.expr import LENGTHS, Apply, Const, Expr, Index, Part, Peek, Place, Shaped, Span, inside
from rvm.isa import FUNCTIONS, MAKES, OPCODES, TypeFault
from rvm.isa.shapes import Lengths, result_dims
from rvm.program import Function, Instr, Program, Register
from rvm.types import I64, Stack, rank_of
from rvm.verify.conflicts import CALLS

Sizes = tuple[int | None, ...]


def known(node: Expr | None) -> int | None:
    """The whole number that an expression is, if it is a constant."""
    return int(node.value) if isinstance(node, Const) and type(node.value) is int else None


def misfits(program: Program) -> Iterator[tuple[str, int, TypeFault]]:
    """The instructions with lengths and indices that are known, and at which any run would stop."""
    functions = {f.name: f for f in program.functions}
    for f in program.functions:
        fitting = Fitting(f.registers)
        is_sized = any(isinstance(d, Const) for r in f.registers for d in r.dims)
        for pc, instr in enumerate(f.code):
            if not is_sized and not any(map(_is_cut, instr.args)):
                continue
            try:
                fitting.instr(instr, functions)
            except TypeFault as fault:
                yield f.name, pc, fault


class Fitting:
    """The lengths in one function's instructions; TypeFault A042 where they do not fit."""

    def __init__(self, registers: Sequence[Register]) -> None:
        self.registers = registers
        self._lengths = Lengths(registers)
        self._whole: dict[int, list[int | None]] = {}

    def instr(self, instr: Instr, functions: Mapping[str, Function]) -> None:
        """Look at an instruction."""
        sizes = [self.value(arg) for arg in instr.args]
        if instr.op in CALLS:
            if instr.symbol in functions:
                self._call(instr, functions[instr.symbol], sizes)
            return
        row = OPCODES[instr.op]
        if instr.op in MAKES:
            if any(n is not None and n < 0 for n in sizes[0]):
                what = f"an array cannot have a negative length: {_shown(sizes[0])}"
                raise TypeFault(what, instr.args[0], code="A042")
            for node, value in zip(instr.args[1:], sizes[1:], strict=True):
                self._into(sizes[0], value, node)
        if not row.is_data:
            return
        first = next(k for k, o in enumerate(row.operands) if o.mode == "mut")
        for k, o in enumerate(row.operands):
            if o.mode != "mut":
                self._into(sizes[first], sizes[k], instr.args[k])
            elif any(_differ(a, b) for a, b in zip(sizes[first], sizes[k], strict=True)):
                what = f"a place of {_shown(sizes[k])} beside one of {_shown(sizes[first])}"
                said = f"only places of one shape can be exchanged: {what}"
                raise TypeFault(said, instr.args[k], code="A042")

    def _into(self, place: Sizes, value: Sizes, node: Expr) -> None:
        """Values are repeated along axes of the length 1, and those that they do not have."""
        pairs = zip(reversed(place), reversed(value), strict=False)
        if any(_differ(p, v) and v != 1 for p, v in pairs):
            what = f"a value of shape {_shown(value)} does not fit a place of shape {_shown(place)}"
            raise TypeFault(what, node, code="A042")

    def _call(self, instr: Instr, callee: Function, sizes: Sequence[Sizes]) -> None:
        for k, have in enumerate(sizes):
            register = callee.registers[k]
            for axis, (dim, n) in enumerate(zip(register.dims, have, strict=False)):
                want = self._wanted(dim, sizes)
                if _differ(want, n):
                    raise TypeFault(
                        f"`{register.name}` of `{callee.name}` has the length {want} on axis "
                        f"{axis}, and this has {n}",
                        instr.args[k],
                        code="A042",
                    )

    def _wanted(self, dim: Expr | None, sizes: Sequence[Sizes]) -> int | None:
        """The callee's requirement for a length: a constant, or that of another argument."""
        if isinstance(dim, Apply) and dim.fn in LENGTHS and isinstance(dim.args[0], Place):
            of = dim.args[0]
            axis = known(dim.args[1]) if len(dim.args) > 1 else 0
            if not of.path and axis is not None and axis < len(sizes[of.reg]):
                return sizes[of.reg][axis]
        return known(dim)

    # Expressions.

    def value(self, node: Expr) -> Sizes:
        """The lengths of a value, after all that it is made of has been looked at."""
        if isinstance(node, Place):
            return self.place(node)
        if not isinstance(node, Apply):
            return ()
        assert node.type is not None
        unknown: Sizes = (None,) * rank_of(node.type)
        row = FUNCTIONS[node.fn]
        if node.fn in LENGTHS:
            return unknown
        if row.lazy:
            self.value(node.args[0])  # the others may never be asked for
            return unknown
        sizes = [self.value(a) for a in node.args]
        if row.is_elementwise:
            return self._together(node, sizes)
        if row.contracts and all(sizes):
            one, two = sizes
            if _differ(one[-1], two[0]):
                what = f"lengths do not match: {one[-1]} and {two[0]}"
                raise TypeFault(what, node, code="A042")
        if not unknown:
            return ()
        dims = [tuple(Const(n, I64) for n in s) for s in sizes]
        return tuple(map(known, result_dims(node.fn, node.args, dims)))

    def _together(self, node: Expr, sizes: Sequence[Sizes]) -> Sizes:
        """The lengths of what is computed element by element, by NumPy's rule."""
        out: list[int | None] = []
        for k in range(1, max(map(len, sizes), default=0) + 1):
            found = {s[-k] for s in sizes if len(s) >= k} - {1}
            lengths = found - {None}
            if len(lengths) > 1:
                shown = " and ".join(_shown(s) for s in sizes if s)
                what = f"the shapes of the arrays do not go together: {shown}"
                raise TypeFault(what, node, code="A042")
            out.append(lengths.pop() if lengths else None if None in found else 1)
        return tuple(reversed(out))

    # Places.

    def place(self, place: Place) -> Sizes:
        """The lengths of a place, as far as they are known."""
        sizes = self._register(place.reg)
        for step in place.path:
            match step:
                case Index(items):
                    kept = [self._item(place, i, n) for i, n in zip(items, sizes, strict=False)]
                    cut = [n for n, i in zip(kept, items, strict=False) if isinstance(i, Span)]
                    sizes = cut + sizes[len(items) :]
                case Shaped(dims):
                    sizes = self._shaped(place, [self._number(d) for d in dims], sizes[0])
                case Part() | Peek():
                    pass
                case _:
                    sizes.reverse()
        return tuple(sizes)

    def _register(self, reg: int) -> list[int | None]:
        """The lengths of a register, as far as they are known."""
        found = self._whole.get(reg)
        if found is None:
            r = self.registers[reg]
            found = [known(d) for d in r.dims]
            if any(isinstance(d, Apply) for d in r.dims) and not isinstance(r.type, Stack):
                found = [known(d) for d in self._lengths.of_place(Place(reg, (), r.type))]
            self._whole[reg] = found
        return found[:]

    def _number(self, node: Expr | None) -> int | None:
        if node is not None:
            self.value(node)
        return known(node)

    def _item(self, place: Place, item: Expr | Span, n: int | None) -> int | None:
        """The length that an axis of n elements has after a step; None after an index."""
        if not isinstance(item, Span):
            i = self._number(item)
            if i is not None and (i < 0 or (n is not None and i >= n)):
                if n is None:
                    raise TypeFault(f"the index {i} is negative", place, code="A042")
                inside = f"outside 0 … {n - 1}" if n else "on an axis of length 0"
                raise TypeFault(f"the index {i} is {inside}", place, code="A042")
            return None
        ends = [self._number(e) for e in item.ends]
        if ends[2] == 0:
            hint = "x[::2] is every other element, x[::-1] all of them from the last to the first"
            raise TypeFault("the step of a slice is 0", place, code="A042", hint=hint)
        open_ = [e is not None and k is None for e, k in zip(item.ends, ends, strict=True)]
        if n is None or any(open_):
            return None
        lo, hi, by = ends
        down = by is not None and by < 0
        first = (n - 1 if down else 0) if lo is None else lo
        if not down:
            end = n if hi is None else hi
            fine = 0 <= first <= end <= n
        else:
            end = -1 if hi is None else hi
            fine = (lo is None or 0 <= lo < n) and (hi is None or 0 <= hi <= first)
        if not fine:
            text = f"{first}:{'' if hi is None and down else end}{'' if by is None else f':{by}'}"
            what = f"the slice {text} does not lie inside a dimension of length {n}"
            raise TypeFault(what, place, code="A042")
        return len(range(first, end, by or 1))

    def _shaped(
        self, place: Place, dims: list[int | None], elements: int | None
    ) -> list[int | None]:
        whole = [d for d in dims if d is not None]
        other = len(whole) == len(dims) and _differ(prod(whole), elements)
        if other or any(d < 0 for d in whole):
            what = "these" if elements is None else str(elements)
            shown = ", ".join("…" if d is None else str(d) for d in dims)
            raise TypeFault(
                f"{what} elements are not an array of the lengths {shown}",
                place,
                code="A042",
                hint="`x.reshape(m, n)` is of m * n elements; `x[a:b].reshape(…)` takes some of x",
            )
        return dims


def _is_cut(node: Expr) -> bool:
    """Whether an expression has a place with an index, or a length, that is a constant."""
    if isinstance(node, Apply):
        return any(map(_is_cut, node.args))
    if not isinstance(node, Place):
        return False
    steps = [s for s in node.path if isinstance(s, (Index, Shaped))]
    return any(isinstance(e, Const) or _is_cut(e) for s in steps for e in inside(s))


def _differ(a: int | None, b: int | None) -> bool:
    return a is not None and b is not None and a != b


def _shown(sizes: Sizes) -> str:
    return f"[{', '.join('…' if n is None else str(n) for n in sizes)}]"
