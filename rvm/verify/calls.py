"""Calls: which parameters a function changes, and whether arguments fit parameters."""

from __future__ import annotations

from collections.abc import Iterator

from rvm.expr import Expr, Place
from rvm.isa import TypeFault
from rvm.program import Function, Instr, Program
from rvm.types import Stack, elem_of, rank_of
from rvm.verify.conflicts import CALLS, written_operands


def inout_slots(program: Program) -> dict[str, frozenset[int]]:
    """For each function the numbers of the parameters that it changes, in itself or by calls.

    Parameters are counted by register, the leaves of records one by one.
    """
    cached = program.cache.get(inout_slots)
    if isinstance(cached, dict):
        return cached
    changed: dict[str, set[int]] = {}
    callers: dict[tuple[str, int], list[tuple[str, int]]] = {}
    todo: list[tuple[str, int]] = []
    for f in program.functions:
        own = changed[f.name] = set()
        n = f.n_args
        for instr in f.code:
            if instr.op in CALLS:
                for k, arg in enumerate(instr.args):
                    if isinstance(arg, Place) and 0 <= arg.reg < n:
                        callers.setdefault((instr.symbol, k), []).append((f.name, arg.reg))
                continue
            for k in written_operands(instr):
                arg = instr.args[k]
                if isinstance(arg, Place) and 0 <= arg.reg < n and arg.reg not in own:
                    own.add(arg.reg)
                    todo.append((f.name, arg.reg))
    while todo:
        for name, reg in callers.get(todo.pop(), ()):
            if reg not in changed[name]:
                changed[name].add(reg)
                todo.append((name, reg))
    out = {name: frozenset(slots) for name, slots in changed.items()}
    program.cache[inout_slots] = out
    return out


def argument_faults(instr: Instr, callee: Function) -> Iterator[TypeFault]:
    """What does not fit between the arguments of a call and the callee's parameters."""
    want = callee.n_args
    if len(instr.args) != want:
        yield TypeFault(
            f"`{callee.name}` takes {want} argument{'s' * (want != 1)}, not {len(instr.args)}",
            code="A044",
            hint=f"its parameters are {', '.join(p.name for p in callee.params) or 'none'}",
        )
        return
    for k, arg in enumerate(instr.args):
        fault = _argument_fault(arg, callee, k)
        if fault is not None:
            fault.operand = k
            yield fault


def _argument_fault(arg: Expr, callee: Function, k: int) -> TypeFault | None:
    register = callee.registers[k]
    t = register.type
    if arg.type is t or (arg.type == t and not isinstance(t, Stack)):
        return None
    what = f"parameter `{register.name}` of `{callee.name}`"
    if isinstance(t, Stack):
        return TypeFault(f"{what} is a {t}, not a {arg.type}", arg)
    if arg.type is None:
        return TypeFault(f"{what} is a {t}, not a stack", arg)
    if elem_of(arg.type) != elem_of(t):
        return TypeFault(
            f"{what} has the type {elem_of(t)}, not {elem_of(arg.type)}",
            arg,
            hint="" if isinstance(arg, Place) else f"convert it: `{elem_of(t)}(…)`",
        )
    return TypeFault(
        f"{what} has {rank_of(t)} dimensions, not {rank_of(arg.type)}", arg, code="A042"
    )
