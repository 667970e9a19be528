"""Consistency of a function's tables, which is checked before its code."""

from __future__ import annotations

from collections.abc import Iterator

from rvm.codes.words import with_article
from rvm.expr import LENGTHS, Apply, Const, Expr, Place, children
from rvm.isa import TypeFault
from rvm.program import Function, Program
from rvm.types import I64, Array, Stack, rank_of
from rvm.verify.finding import Finding
from rvm.verify.nodes import MAX_RANK, Nodes, is_type

BROKEN = "B020"


def program_findings(program: Program) -> Iterator[Finding]:
    """Functions of one name."""
    seen: set[str] = set()
    for f in program.functions:
        if f.name in seen:
            yield Finding(BROKEN, f"there are two functions `{f.name}`", f.name)
        seen.add(f.name)


def table_findings(function: Function, nodes: Nodes) -> Iterator[Finding]:
    """Registers, parameters and dimension variables; the code is sound only if these are."""

    def found(code: str, message: str) -> Finding:
        return Finding(code, message, function.name)

    slots = function.param_slots
    if slots != tuple(range(len(slots))) or len(slots) > len(function.registers):
        yield found(BROKEN, "the parameters are not the first registers, in order")
        return
    for k, register in enumerate(function.registers):
        t, what = register.type, f"register {k}, `{register.name}`,"
        if not is_type(t):
            yield found(BROKEN, f"{what} has no sound type: {t!r}")
            return
        if register.shape and not (
            isinstance(t, Stack)
            and len(register.shape) <= MAX_RANK
            and all(type(n) is int and 1 <= n < 1 << 63 for n in register.shape)
        ):
            yield found(BROKEN, f"{what} holds no arrays of the lengths {register.shape}")
            return
        if len(register.dims) != rank_of(t):
            yield found("A042", f"{what} is {with_article(t)} with {len(register.dims)} lengths")
            return
    for k, register in enumerate(function.registers):
        for dim in register.dims:
            if dim is None:
                if k >= len(slots):
                    yield found("A042", f"the local array `{register.name}` lacks a length")
                continue
            try:
                nodes.check(dim)
            except TypeFault as fault:
                yield found(fault.code, f"a length of `{register.name}`: {fault.message}")
                return
            if dim.type != I64:
                yield found(
                    "A040", f"a length of `{register.name}` has the type {dim.type}, not i64"
                )
            if k < len(slots) and not _of_lengths(dim, len(slots)):
                yield found(
                    "A040",
                    f"a length of the parameter `{register.name}` depends on more than the lengths "
                    "of parameters",
                )
    for d in function.dims:
        known = 0 <= d.reg < len(slots)
        array = function.registers[d.reg].type if known else None
        if not isinstance(array, Array) or not 0 <= d.axis < array.rank:
            yield found(BROKEN, f"the dimension variable `{d.name}` names no axis of a parameter")


def _of_lengths(dim: Expr, params: int) -> bool:
    """Whether an expression reads nothing but lengths of whole parameters."""
    todo = [dim]
    while todo:
        node = todo.pop()
        if isinstance(node, Place):
            return False
        if isinstance(node, Apply) and node.fn in LENGTHS:
            array = node.args[0]
            if not (isinstance(array, Place) and not array.path and array.reg < params):
                return False
            if not all(isinstance(a, Const) for a in node.args[1:]):
                return False
            continue
        todo.extend(children(node))
    return True
