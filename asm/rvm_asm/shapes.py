"""The lengths of an array-valued expression, as expressions over its operands' lengths."""

from __future__ import annotations

from collections.abc import Mapping

from rvm.expr import Apply, Const, Expr, Place
from rvm.isa import apply
from rvm.types import I64, rank_of

Dims = tuple[Expr, ...]


def is_length(node: Expr) -> bool:
    """Whether `node` asks for a length: of a constant axis, which never changes in a run."""
    return (
        isinstance(node, Apply)
        and node.fn in ("len", "dim")
        and isinstance(node.args[0], Place)
        and all(isinstance(a, Const) for a in node.args[1:])
    )


def dims_of(node: Expr, known: Mapping[int, Dims]) -> Dims | None:
    """The lengths of a value; () of a scalar, None where they are not known before a run.

    `known` holds the lengths of registers that have just been made.
    """
    assert node.type is not None
    rank = rank_of(node.type)
    if not rank:
        return ()
    if isinstance(node, Place):
        if not node.path and node.reg in known:
            return known[node.reg]
        return tuple(apply("dim", node, Const(k, I64)) for k in range(rank))
    if not isinstance(node, Apply):
        return None
    inner = [dims_of(a, known) for a in node.args]
    if any(d is None for d in inner):
        return None
    return _result(node, [d for d in inner if d is not None])


def _result(node: Apply, dims: list[Dims]) -> Dims | None:
    match node.fn:
        case "matvec" | "matmul" | "@" | "dot":
            a, b = dims
            return (*a[:-1], *(b[1:] if len(b) == 2 else ()))
        case "outer":
            return (*dims[0], *dims[1])
        case "gather":
            return dims[1]
        case "scatter":
            return (node.args[2],)
        case "transpose":
            return dims[0][::-1]
        case "sum_like" | "spread_like":
            return dims[1]
        case _:
            return _broadcast(dims)


def _broadcast(dims: list[Dims]) -> Dims:
    """NumPy's rule: from the right, lengths agree or are one."""
    rank = max(len(d) for d in dims)
    out: list[Expr] = []
    for k in range(rank):
        lengths: list[Expr] = []
        for d in dims:
            at = k - (rank - len(d))
            if at >= 0 and d[at] not in lengths:
                lengths.append(d[at])
        length = lengths[0]
        for other in lengths[1:]:
            length = apply("max", length, other)
        out.append(length)
    return tuple(out)
