"""Every function and update of whole arrays has the same bits on all engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sizes import DEEP, part, sized, thin
from verify.making import Maker, array, program

import rvm
from rvm.engines import LAW
from rvm.expr import Apply
from rvm.faults import RvmError
from rvm.isa import FUNCTIONS, TypeFault, typed
from rvm.numbers import system
from rvm.types import C128, F32, F64, FIXED, I64, LOG64, Scalar, ValueType, elem_of, rank_of

TYPES = (F32, F64, C128, LOG64, FIXED, I64)
LENGTH = 37
SOME = 6
"""How many instructions a function has: compiling takes more than in proportion to them."""
UPDATES = ("mul", "div", "add", "sub")
TURNS = ("hadamard", "rot", "irot")
What = tuple[str, str]
"""An opcode on arrays; or a function, and the letters of its arguments: x, w arrays, s a number."""


def everything() -> list[What]:
    """All functions of one or two arguments, on arrays and numbers, and opcodes on arrays."""
    found = [(fn, n) for fn, row in FUNCTIONS.items() for n in ("x", "xw", "xs", "sx")
             if row.arity == len(n)]  # fmt: skip
    return found + [(op, "") for op in UPDATES + TURNS]


def made(t: Scalar, whats: Sequence[What]) -> rvm.Library:
    """One function with an instruction for each; TypeFault where there is none."""
    given: dict[str, Any] = {"x": array(t), "w": array(t), "s": t, "a": array(F64)}
    values = {}
    reading = Maker("f", **given)
    for k, (fn, names) in enumerate(whats):
        result: ValueType = array(t)
        if names:
            values[k] = typed(Apply(fn, tuple(reading[n] for n in names)))
            assert values[k].type is not None
            result = values[k].type
            if rank_of(result) != 1:
                raise TypeFault("no vector")
        given[f"y{k}"] = given[f"z{k}"] = result
    maker = Maker("f", **given)
    for k, (fn, _) in enumerate(whats):
        y = maker[f"y{k}"]
        if k in values:
            elem = elem_of(given[f"y{k}"])
            op = "xor" if elem.is_bool else "mul" if elem.is_log else "add"
            maker.op(op, y, values[k])
        elif fn in UPDATES:
            maker.op(fn, y, maker["w"])
        else:
            angle = [maker["a"]] if fn != "hadamard" else []
            maker.op(fn, y, maker[f"z{k}"], *angle)
    return rvm.Library(program(maker))


def inputs(p: rvm.Library) -> dict[str, Any]:
    """Numbers between 0 and 1, in which most functions have values."""
    rng = np.random.default_rng(3)
    out: dict[str, Any] = {}
    for r in p.program.function("f").registers:
        elem = elem_of(r.type)
        sys = system(elem)
        values = rng.uniform(0.3, 0.97, LENGTH)
        if elem.is_complex:
            values = values + 1j * rng.normal(size=LENGTH)
        if elem.is_fixed:
            values = np.round(values * 2.0**elem.frac)
        elif elem.is_bool or elem.is_integer:
            values = np.floor(values * (2 if elem.is_bool else 9))
        raw = values.astype(sys.dtype)
        out[r.name] = raw if rank_of(r.type) else sys.to_python(raw[0].item())
    return out


def fits(t: Scalar, what: What) -> bool:
    """Whether there is such an instruction, and it runs."""
    try:
        p = made(t, [what])
        p.f(engine="reference", **inputs(p))
    except (TypeFault, RvmError):
        return False
    return True


@thin
@pytest.mark.parametrize("t", TYPES, ids=str)
@sized
def test_arrays_have_the_bits_of_the_law(t: Scalar) -> None:
    whats = [w for w in everything()[:: 1 if DEEP else 4] if fits(t, w)]
    assert len(whats) > part(12)
    for start in range(0, len(whats), SOME):
        some = whats[start : start + SOME]
        p = made(t, some)
        registers = p.program.function("f").registers
        wanted, found = (dict(p.f(engine=e, **inputs(p))) for e in (LAW, "native"))
        for k, what in enumerate(some):
            for name in (f"y{k}", f"z{k}"):
                elem = next(elem_of(r.type) for r in registers if r.name == name)
                assert system(elem).same(wanted[name], found[name]), what
