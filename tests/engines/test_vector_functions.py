"""What the vector engine computes by NumPy has the bits of the scalar code, at the edges too."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

from rvm.faults import RvmError
from rvm.isa import FUNCTIONS, implementation, value
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.implementation import is_alike
from rvm.isa.rules import Arg, TypeFault
from rvm.numbers import NAMES, compiled, system
from rvm.types import BOOL, C128, F32, F64, I32, I64, LOG64, U8, U32, U64, Scalar, fixed

TYPES = (F64, F32, C128, LOG64, fixed(43), fixed(0), I64, I32, U8, U32, U64, BOOL)
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-310, -5e-324, 1e308, -1e16, 2.0**53 + 2, 3.0]
EDGES += [math.inf, -math.inf, math.nan, 1 / 3, -7.25, 0.1]
RANDOM = np.random.default_rng(11)


def samples(t: Scalar) -> list[Any]:
    """Raw numbers of a type: its edges, and some in between."""
    if t.is_bool:
        return [False, True]
    if t.is_integer or t.is_fixed:
        info = np.iinfo(system(t).dtype)
        low, high = int(info.min), int(info.max)
        more = RANDOM.integers(low, high, 12, system(t).dtype, endpoint=True).tolist()
        return sorted({low, low + 1, high, high - 1, 0, 1, 2, 3, 7, *more})
    if t.is_complex:
        return [complex(a, b) for a, b in itertools.product(EDGES[:4] + EDGES[-4:], repeat=2)]
    found = [*EDGES, *RANDOM.normal(size=12), *np.exp(RANDOM.normal(size=8) * 30)]
    with np.errstate(all="ignore"):
        return [float(np.float32(v)) if t == F32 else float(v) for v in found]


def alike(fn: str, t: Scalar) -> bool:
    code = implementation(fn, (t,) * arity(fn))
    return bool(code.numpy) and is_alike(fn, (t,) * arity(fn))


def arity(fn: str) -> int:
    return FUNCTIONS[fn].arity


def has(fn: str, t: Scalar) -> bool:
    """Whether a function of equal arguments takes this type."""
    row = FUNCTIONS[fn]
    if arity(fn) > 2 or row.vjp is not None or conversion_target(fn) or row.formula is not None:
        return False
    try:
        if row.rule([Arg(t)] * arity(fn), None).elems != (t,) * arity(fn):
            return False
        return alike(fn, t)
    except (RvmError, TypeFault):
        return False


CASES = [
    (fn, t)
    for t in TYPES
    for fn in sorted(FUNCTIONS)
    if fn not in ("and", "or", "len", "dim") and has(fn, t)
]


def test_there_are_cases() -> None:
    assert len(CASES) > 120
    assert {("exp", F64), ("sqrt", F64), ("**", F64)} <= set(CASES)
    assert {("exp", C128), ("*", C128), ("/", C128), ("**", C128)} <= set(CASES)


@thin
@pytest.mark.parametrize(("fn", "t"), CASES, ids=lambda v: str(v))
@sample
def test_numpy_gives_the_scalar_bits(fn: str, t: Scalar) -> None:
    n = arity(fn)
    scalar = value(fn, (t,) * n)
    rows, want = [], []
    for args in itertools.product(samples(t), repeat=n):
        try:
            want.append(scalar(*args))
        except RvmError:
            continue
        rows.append(args)
    columns = [np.array(c, system(t).dtype) for c in zip(*rows, strict=True)]
    array = compiled(implementation(fn, (t,) * n).numpy, n, NAMES)
    with np.errstate(all="ignore"):
        got = np.asarray(array(*columns))
        same(got, np.array(want, got.dtype))
        if n == 1:
            return
        for second in samples(t):
            # A value that is the same in all iterations stays a Python number.
            picked = [k for k, row in enumerate(rows) if repr(row[1]) == repr(second)]
            if picked:
                mixed = np.asarray(array(columns[0][picked], second))
                same(mixed, np.array([want[k] for k in picked], mixed.dtype))


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("target", TYPES, ids=str)
def test_numpy_converts_to_the_scalar_bits(target: Scalar, source: Scalar) -> None:
    if source.is_complex and not target.is_complex:
        return
    code = implementation(str(target), (source,))
    if target == source or not is_alike(str(target), (source,)):
        return
    scalar = value(str(target), (source,))
    taken, want = [], []
    for x in samples(source):
        try:
            want.append(scalar(x))
        except RvmError:
            continue
        taken.append(x)
    array = compiled(code.numpy, 1, NAMES)
    with np.errstate(all="ignore"):
        got = np.asarray(array(np.array(taken, system(source).dtype)))
    assert got.dtype == system(target).dtype
    same(got, np.array(want, got.dtype))


def same(got: Any, want: Any) -> None:
    """Equal bits; all NaNs are one."""
    if np.iscomplexobj(got):
        same(got.real, want.real)
        same(got.imag, want.imag)
        return
    assert got.shape == want.shape
    ok = got == want
    if got.dtype.kind == "f":
        ok = (ok & (np.signbit(got) == np.signbit(want))) | (np.isnan(got) & np.isnan(want))
    assert ok.all(), (got[~ok][:3], want[~ok][:3])
