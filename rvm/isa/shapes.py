"""The lengths of an array-valued expression, as expressions over its operands' lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rvm.expr import LENGTHS, Apply, Const, Expr, Index, Part, Place, Shaped
from rvm.expr import Span as Range
from rvm.isa.typing import apply
from rvm.program import Register
from rvm.types import I64, rank_of

Dims = tuple[Expr, ...]


def is_length(node: Expr) -> bool:
    """Whether `node` is a length of a constant axis, which never changes during a run."""
    return (
        isinstance(node, Apply)
        and node.fn in LENGTHS
        and isinstance(node.args[0], Place)
        and all(isinstance(a, Const) for a in node.args[1:])
    )


def length(of: Place, axis: int) -> Expr:
    """The length of an axis of a place."""
    return apply("dim", of, Const(axis, I64))


class Lengths:
    """Lengths of places in a function, in a common notation where registers show them equal.

    A parameter's lengths are those of the parameters that define their names; an ancilla's are the
    expressions with which it is allocated, if these stay constant during its life.
    """

    def __init__(self, registers: Sequence[Register] = ()) -> None:
        self.registers = registers

    def of_place(self, node: Place) -> Dims:
        """The lengths of a place; () for a scalar."""
        assert node.type is not None
        axes = self._axes(node)
        return tuple(self._length(node, axes, k) for k in range(rank_of(node.type)))

    def _length(self, node: Place, axes: list[int | None] | None, k: int) -> Expr:
        if axes is None or axes[k] is None:
            return length(node, k)
        return self._axis(node.reg, axes[k])

    def _axes(self, node: Place) -> list[int | None] | None:
        """The register's axis for each axis of a place, None for a sliced one."""
        if not 0 <= node.reg < len(self.registers):
            return None
        axes: list[int | None] = list(range(len(self.registers[node.reg].dims)))
        for step in node.path:
            match step:
                case Index(items):
                    kept: list[int | None] = []
                    for axis, item in zip(axes, items, strict=False):
                        if isinstance(item, Range):
                            kept.append(axis if item.is_whole else None)
                    axes = kept + axes[len(items) :]
                case Shaped(dims):
                    axes = [None] * len(dims)
                case Part():
                    pass
                case _:
                    axes.reverse()
        return axes

    def _axis(self, reg: int, axis: int | None) -> Expr:
        assert axis is not None
        register = self.registers[reg]
        given = register.dims[axis]
        if given is not None and self._lasts(given):
            return self._known(given)
        return length(Place(reg, (), register.type), axis)  # type: ignore[arg-type]

    def _lasts(self, node: Expr) -> bool:
        """Whether an expression contains only lengths and constants."""
        if isinstance(node, Apply):
            if is_length(node):
                return node.args[0].type is not None
            return all(map(self._lasts, node.args))
        return isinstance(node, Const)

    def _known(self, node: Expr) -> Expr:
        """A length by its other known names."""
        if not isinstance(node, Apply):
            return node
        if is_length(node):
            of, axis = node.args[0], node.args[1] if node.fn == "dim" else Const(0, I64)
            assert isinstance(of, Place) and isinstance(axis, Const)
            # Only this axis: others of a square matrix are as long as it.
            known = of.type is not None and axis.value < rank_of(of.type)
            return self._length(of, self._axes(of), axis.value) if known else node
        return Apply(node.fn, tuple(map(self._known, node.args)), node.type)


def dims_of(node: Expr, of_place: Callable[[Place], Dims]) -> Dims | None:
    """The lengths of a value; () for a scalar, None if they are not known before a run."""
    assert node.type is not None
    if not rank_of(node.type):
        return ()
    if isinstance(node, Place):
        return of_place(node)
    if not isinstance(node, Apply):
        return None
    inner = [dims_of(a, of_place) for a in node.args]
    known = [d for d in inner if d is not None]
    return result_dims(node.fn, node.args, known) if len(known) == len(inner) else None


def result_dims(fn: str, args: Sequence[Expr], dims: Sequence[Dims]) -> Dims:
    """The lengths of the result of an array function from those of its arguments."""
    match fn:
        case "matvec" | "matmul" | "@" | "dot":
            a, b = dims
            return (*a[:-1], *(b[1:] if len(b) == 2 else ()))
        case "outer":
            return (*dims[0], *dims[1])
        case "scatter":
            return (args[2],)
        case "transpose":
            return dims[0][::-1]
        case "gather" | "sum_like" | "spread_like":
            return dims[1]
        case _:
            return _broadcast(dims)


def _broadcast(dims: Sequence[Dims]) -> Dims:
    """NumPy's rule: from the right, lengths agree or are one."""
    rank = max(len(d) for d in dims)
    out: list[Expr] = []
    for k in range(rank):
        lengths: list[Expr] = []
        for d in dims:
            at = k - (rank - len(d))
            if at >= 0 and d[at] not in lengths:
                lengths.append(d[at])
        total = lengths[0]
        for other in lengths[1:]:
            total = apply("max", total, other)
        out.append(total)
    return tuple(out)
