"""Programs that derivatives are computed by, each made once for a program and a function."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rvm.expr import Place
from rvm.host.once import once
from rvm.program import Function, Instr, Program
from rvm.transform import derived
from rvm.transform.duals import Form, bar_slots, form_called, reachable
from rvm.transform.gradient import ADJOINT, adjoint_names, adjoints_of, gradient
from rvm.transform.invert import invert
from rvm.transform.tangent import TANGENT, tangent, tangent_names, tangents_of

_Makes = Callable[[Program, Sequence[Form], dict[str, str]], Mapping[Form, Function]]


def inverse(program: Program) -> Program:
    """The program that `invert` makes of one."""
    return once(program.cache, invert, Program, lambda: invert(program))


def gradient_program(program: Program, name: str, without: frozenset[int] = frozenset()) -> Program:
    """The program that `gradient` makes of a function."""
    if not without:
        return _made(gradient, program, name)
    key = (gradient, name, without)
    return once(program.cache, key, Program, lambda: gradient(program, name, without=without))


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
    code = steps_of(f)
    if [i.op for i in code] not in (["call", "call"], ["call", "add", "call"]):
        return None
    there, back = code[0], code[-1]
    inner = program.function(there.symbol)
    if not (_passes(there, inner.n_args) and _passes(back, f.n_args)):
        return None
    if f.n_args != inner.n_args + len(bar_slots(inner)):
        return None
    found = in_values(program).get(back.symbol)
    return inner.name if found is not None and found[:2] == (inner.name, True) else None


def steps_of(f: Function) -> tuple[Instr, ...]:
    """The instructions of a function without those that keep copies of its parameters."""
    return tuple(i for i in f.code if not _keeps(f, i))


def _keeps(f: Function, instr: Instr) -> bool:
    """Whether an instruction makes, exchanges or frees the copy of a parameter."""
    regs = [a.reg for a in instr.args if isinstance(a, Place) and not a.path]
    if instr.op not in ("alloc", "swap", "free") or len(regs) != 2 or len(instr.args) != 2:
        return False
    copy, x = sorted(regs, reverse=True)
    return x < f.n_args <= copy


class Derived(NamedTuple):
    """The effect of an adjoint or tangent on values: the original function, done or undone."""

    of: str
    undoes: bool
    made: Function
    """The same code, as it is made."""


def in_values(program: Program) -> Mapping[str, Derived]:
    """The effects on values of the adjoints and tangents of a program, according to their code."""
    found: dict[str, Derived] = once(program.cache, in_values, dict, lambda: _in_values(program))
    return found


def doing(program: Program) -> Callable[[str], tuple[Function, bool] | None]:
    """A function from a name to its effect on values: a function, and whether it is undone."""

    def find(name: str) -> tuple[Function, bool] | None:
        found = in_values(program).get(name)
        return None if found is None else (program.function(found.of), found.undoes)

    return find


_KINDS: tuple[tuple[str, Callable[[Program], dict[str, str]], _Makes, bool], ...] = (
    (ADJOINT, adjoint_names, adjoints_of, True),
    (derived.ADJOINT, derived.adjoint_names, adjoints_of, True),
    (TANGENT, tangent_names, tangents_of, False),
    (derived.TANGENT, derived.tangent_names, tangents_of, False),
)
"""The suffix of a derived function's name, all such names in a program, and a maker."""


def _in_values(program: Program) -> dict[str, Derived]:
    found: dict[str, Derived] = {}
    called = defaultdict[str, list[str]](list)
    for name in program:
        # Behind a bracket it may say for which parameters there are duals.
        for base in (name, *(name[: m.start()] for m in re.finditer(r"\(", name))):
            called[base].append(name)
    for f in program.functions:
        for end, names_of, make, undoes in _KINDS:
            for name in called.get(f.name + end, ()):
                form = form_called(name, f.name + end, f)
                if form is None or name in found:
                    continue
                # Names are those that hold for the function and what it may call.
                alone = Program(tuple(map(program.function, reachable(program, f.name))), f.name)
                made = make(alone, (form,), names_of(alone))
                # What a derived function does depends on those that it calls, too.
                if all(_alike(m, program) for m in made.values()):
                    found |= {m.name: Derived(of.name, undoes, m) for of, m in made.items()}
    return found


def _alike(made: Function, program: Program) -> bool:
    """Whether a program has a function as it is made."""
    if made.name not in program:
        return False
    held = program.function(made.name)
    return (made.code, made.registers) == (held.code, held.registers)


def _passes(call: Instr, n: int) -> bool:
    """Whether a call passes the first `n` registers, each whole."""
    return [(a.reg, a.path) if isinstance(a, Place) else None for a in call.args] == [
        (k, ()) for k in range(n)
    ]
