"""Calls: which parameters a function changes, and whether arguments fit parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rvm.codes.words import count, with_article
from rvm.expr import Expr, Place, is_count
from rvm.isa import TypeFault
from rvm.program import Function, Instr, Program, Register
from rvm.types import RegisterType, Stack, elem_of, rank_of
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


def argument_faults(
    instr: Instr, callee: Function, want: int, registers: Sequence[Register]
) -> Iterator[TypeFault]:
    """The mismatches between the arguments of a call and the callee's `want` parameters.

    `registers` are the caller's.
    """
    if len(instr.args) != want:
        yield TypeFault(
            f"`{callee.name}` takes {want} argument{'s' * (want != 1)}, not {len(instr.args)}",
            code="A044",
            hint=f"its parameters are {', '.join(p.name for p in callee.params) or 'none'}",
        )
        return
    for k, arg in enumerate(instr.args):
        t = arg.type
        if t is None and isinstance(arg, Place):
            have: RegisterType = registers[arg.reg].type
        else:
            assert t is not None
            have = t
        fault = _argument_fault(arg, have, callee, k)
        if fault is not None:
            fault.operand = k
            yield fault


def _argument_fault(arg: Expr, have: RegisterType, callee: Function, k: int) -> TypeFault | None:
    register = callee.registers[k]
    t = register.type
    if is_count(arg):
        return TypeFault("the length of a stack is passed as a value: `i64(len(s))`", arg)
    if have is t or have == t:
        return None
    what = f"parameter `{register.name}` of `{callee.name}`"
    if isinstance(t, Stack) or isinstance(have, Stack):
        hint = "" if isinstance(t, Stack) else "the value on top of a stack `s` is `top(s)`"
        return TypeFault(f"{what} is {with_article(t)}, not {with_article(have)}", arg, hint=hint)
    if elem_of(have) != elem_of(t):
        return TypeFault(
            f"{what} has the type {elem_of(t)}, not {elem_of(have)}",
            arg,
            hint="" if isinstance(arg, Place) else f"convert it: `{elem_of(t)}(…)`",
        )
    wanted = count(rank_of(t), "dimension")
    return TypeFault(f"{what} has {wanted}, not {rank_of(have)}", arg, code="A042")
