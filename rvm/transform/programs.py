"""Programs that derivatives are computed by, each made once for a program and a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rvm.expr import Place
from rvm.host.once import once
from rvm.program import Function, Instr, Program
from rvm.transform import derived
from rvm.transform.duals import bar_slots, reachable
from rvm.transform.gradient import ADJOINT, adjoint_names, adjoints_of, gradient
from rvm.transform.invert import invert
from rvm.transform.tangent import TANGENT, tangent, tangent_names, tangents_of

_Makes = Callable[[Program, Sequence[str], dict[str, str]], tuple[Function, ...]]


def inverse(program: Program) -> Program:
    """The program that `invert` makes of one."""
    return once(program.cache, invert, Program, lambda: invert(program))


def gradient_program(program: Program, name: str) -> Program:
    """The program that `gradient` makes of a function."""
    return _made(gradient, program, name)


def tangent_program(program: Program, name: str) -> Program:
    """The program that `tangent` makes of a function."""
    return _made(tangent, program, name)


def _made(make: Callable[[Program, str], Program], program: Program, name: str) -> Program:
    return once(program.cache, (make, name), Program, lambda: make(program, name))


def differentiated(program: Program, name: str) -> str | None:
    """The function whose gradient a function is, as `gradient` makes it; None if it is not one.

    That is seen from the code: a gradient that was written as a text is one, too.
    """
    key = (differentiated, name)
    if key not in program.cache:
        program.cache[key] = _differentiated(program, program.function(name))
    found = program.cache[key]
    return found if isinstance(found, str) else None


def _differentiated(program: Program, f: Function) -> str | None:
    ops = [i.op for i in f.code]
    if ops not in (["call", "call"], ["call", "add", "call"]):
        return None
    there, back = f.code[0], f.code[-1]
    inner = program.function(there.symbol)
    if not (_passes(there, inner.n_args) and _passes(back, f.n_args)):
        return None
    if f.n_args != inner.n_args + len(bar_slots(inner)):
        return None
    return inner.name if in_values(program).get(back.symbol) == (inner.name, True) else None


def in_values(program: Program) -> Mapping[str, tuple[str, bool]]:
    """What the adjoints and tangents that a program holds do to values, as seen from the code.

    For each the function that it is of, and whether it undoes that.
    """
    found: dict[str, tuple[str, bool]] = once(
        program.cache, in_values, dict, lambda: _in_values(program)
    )
    return found


_KINDS: tuple[tuple[str, Callable[[Program], dict[str, str]], _Makes, bool], ...] = (
    (ADJOINT, adjoint_names, adjoints_of, True),
    (derived.ADJOINT, derived.adjoint_names, adjoints_of, True),
    (TANGENT, tangent_names, tangents_of, False),
    (derived.TANGENT, derived.tangent_names, tangents_of, False),
)
"""The end of a derived function's name, all names for a program, and what makes them."""


def _in_values(program: Program) -> dict[str, tuple[str, bool]]:
    found: dict[str, tuple[str, bool]] = {}
    for f in program.functions:
        for end, names_of, make, undoes in _KINDS:
            if f.name + end not in program or f.name + end in found:
                continue
            # Names are those that hold for the function and what it may call.
            alone = Program(tuple(map(program.function, reachable(program, f.name))), f.name)
            names = names_of(alone)
            # What a derived function does hangs on those that it calls, too.
            if all(
                made.name in program and _alike(made, program.function(made.name))
                for made in make(alone, tuple(alone), names)
            ):
                found |= {name: (of, undoes) for of, name in names.items()}
    return found


def _alike(one: Function, other: Function) -> bool:
    return (one.code, one.registers) == (other.code, other.registers)


def _passes(call: Instr, n: int) -> bool:
    """Whether a call passes the first `n` registers, each whole."""
    return [(a.reg, a.path) if isinstance(a, Place) else None for a in call.args] == [
        (k, ()) for k in range(n)
    ]
