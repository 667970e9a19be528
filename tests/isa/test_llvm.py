"""LLVM code of every function on scalars, compiled and held against the reference, to the bit."""

from __future__ import annotations

import itertools
import math
import random
import struct

import numpy as np
import pytest

from rvm.faults import RvmError
from rvm.isa.implementation import deciding, implementation, value
from rvm.isa.rows import FUNCTIONS
from rvm.isa.rules import Arg, TypeFault
from rvm.numbers import system
from rvm.types import C128, SCALARS, elem_of, fixed

pytest.importorskip("llvmlite")

from isa.jit import Compiled

INF, NAN = math.inf, math.nan
FIXED = [fixed(f) for f in (0, 1, 8, 43, 62)]
TYPES = [t for t in SCALARS.values() if not t.is_fixed] + FIXED
CONVERSIONS = [*SCALARS, *(str(t) for t in FIXED if str(t) != "fixed")]


def cases():
    """Every function with argument types that it takes, and its result's type."""
    names = {**dict.fromkeys(FUNCTIONS), **dict.fromkeys(CONVERSIONS)}
    for name in names:
        row = FUNCTIONS[name]
        for types in itertools.product(TYPES, repeat=row.arity):
            try:
                typing = row.rule([Arg(t) for t in types], None)
            except TypeFault:
                continue
            if typing.elems == types:
                yield name, types, elem_of(typing.result)


CASES = list(cases())


def integers(bits, signed):
    low = -(1 << bits - 1) if signed else 0
    high = low + (1 << bits) - 1
    near = {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, 100, low, high, high // 2 + 1}
    near |= {s * (1 << k) + d for k in range(0, bits, 9) for d in (-1, 0, 1) for s in (-1, 1)}
    near |= {-n for n in near} | {low + 1, high - 1}
    return sorted(n for n in near if low <= n <= high)


TINY = 5e-324
FLOATS = [
    *(0.0, 1.0, 0.5, 2.0, 3.0, 1.25, 0.1, 7.0, 1e-5, 1e5, 300.0, 710.0, 745.5, 1e19, 2.0**62),
    *(2.0**63, 2.0**64, 2.0**31, 2.0**31 - 0.5, 2.0**53 + 2, 1e300, 1.7976931348623157e308, 1e-300),
    *(2.2250738585072014e-308, TINY, 1 + 2**-52, 1 - 2**-53, math.pi, math.log(2), 255.75, 256.0),
]
FLOATS += [-x for x in FLOATS] + [INF, -INF, NAN]
SINGLES = [np.float32(x).item() for x in FLOATS if abs(x) < 3e38 or x != x or abs(x) == INF]
SINGLES += [3.4028234663852886e38, 1.401298464324817e-45, 1.1754943508222875e-38]
PARTS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.6, -3.25, 50.0, -700.0, 1e-160, 1e160, -1e308, TINY, INF, NAN]


def edges(t):
    if t.is_bool:
        return [False, True]
    if t.is_integer:
        return integers(t.bits, t.name[0] == "i")
    if t.is_fixed:
        one, wide = 1 << t.frac, integers(64, True)
        more = [n for k in (-3, -1, 1, 2, 3, 17) for d in (-1, 0, 1) for n in [k * one // 2 + d]]
        return sorted({*wide[::3], wide[0], wide[-1], *(n for n in more if abs(n) < 2**63)})
    if t.is_complex:
        return [complex(x, y) for x in PARTS for y in PARTS]
    return [*map(float, SINGLES)] if t.name == "f32" else FLOATS


def drawn(t, r):
    """A random raw value, of every order of magnitude."""
    if t.is_bool:
        return r.random() < 0.5
    if t.is_integer or t.is_fixed:
        bits = 64 if t.is_fixed else t.bits
        signed = t.is_fixed or t.name[0] == "i"
        n = r.getrandbits(r.randint(1, bits - signed))
        return -n if signed and r.random() < 0.5 else n
    if t.is_complex:
        if r.random() < 0.1:
            return complex(drawn(SCALARS["f64"], r), drawn(SCALARS["f64"], r))
        return complex(r.gauss(0, 2), r.gauss(0, 2))
    if r.random() < 0.5:
        x = r.gauss(0, 1) * 10.0 ** r.randint(-3, 3)
    else:
        x = struct.unpack("<d", r.getrandbits(64).to_bytes(8, "little"))[0]
    if t.name == "f32":
        with np.errstate(all="ignore"):
            return np.float32(x).item()
    return x


def rows(types, r):
    """Arguments: edges crossed, then random ones."""
    found = list(itertools.product(*map(edges, types)))
    if len(found) > 4000:
        found = r.sample(found, 4000)
    return found + [tuple(drawn(t, r) for t in types) for _ in range(2000)]


def expected(f, zero, arguments):
    """What the reference gives, and where it raises."""
    out, bad = [], []
    for args in arguments:
        try:
            out.append(f(*args))
            bad.append(False)
        except RvmError:
            out.append(zero)
            bad.append(True)
    return out, np.array(bad)


def differences(sys, got, want):
    """The first row where two columns differ in their bits (NaNs are all the same); None."""
    if sys.same(got, want):
        return None
    return next(k for k in range(len(got)) if not sys.same(got[k], want[k]))


RARE = {
    (f, C128)
    for f in ("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")
} | {("tanh", C128), ("**", C128)}
"""Functions that leave unusual arguments to the reference: parts that are infinite, NaN or huge."""


def test_every_function_has_code():
    without = {
        (fn, *map(str, types)) for fn, types, _ in CASES if not implementation(fn, types).llvm
    }
    arrays = {c for c in without if c[0] in ARRAYS}
    assert without == arrays


ARRAYS = {"len", "dim"}
GROUPS = {t: [c for c in CASES if deciding(c[1]) == t and c[0] not in ARRAYS] for t in TYPES}


@pytest.mark.parametrize("t", TYPES, ids=str)
def test_the_bits_are_those_of_the_reference(t):
    compiled = Compiled([c for c in GROUPS[t] if implementation(c[0], c[1]).llvm])
    failures = []
    for k, (fn, types, result) in enumerate(compiled.functions):
        arguments = rows(types, random.Random(f"{fn} {types}"))
        sys = system(result)
        want, raised = expected(value(fn, types), sys.zero, arguments)
        want = np.array(want, sys.dtype)
        got, bad = compiled.call(k, arguments)
        where = f"{fn}({', '.join(map(str, types))}) -> {result}"
        if (fn, t) in RARE:
            assert not np.any(raised & ~bad), where
            usual = (bad & np.isfinite(want))[-2000:].mean()
            assert usual < 0.15, f"{where} gives up {usual:.0%} of all cases"
        elif np.any(raised != bad):
            at = int(np.argmax(raised != bad))
            failures.append(f"{where} at {arguments[at]}: given up {bad[at]}, raises {raised[at]}")
        at = differences(sys, got[~bad], want[~bad])
        if at is not None:
            args = [a for a, b in zip(arguments, bad, strict=True) if not b][at]
            failures.append(f"{where} at {args}: {got[~bad][at]!r}, not {want[~bad][at]!r}")
    assert not failures, "\n".join(failures)
