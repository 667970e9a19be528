"""LLVM code of every function on scalars, compiled and held against the reference, to the bit."""

from __future__ import annotations

import cmath
import itertools
import math
import random
import struct

import numpy as np
import pytest
from sizes import part, sized, thin, wide

from rvm.faults import RvmError
from rvm.isa.implementation import deciding, implementation, value
from rvm.isa.rows import FUNCTIONS
from rvm.isa.rules import Arg, TypeFault
from rvm.leaf.python import on_numbers
from rvm.numbers import complex_functions, system
from rvm.numbers.code import DOUBT
from rvm.numbers.fixedpoint_functions import BINARY, UNARY, UNROLLED, power_text, text
from rvm.types import C128, F64, I32, I64, SCALARS, U8, U32, U64, elem_of, fixed

pytest.importorskip("llvmlite")

from isa.jit import Compiled

INF, NAN = math.inf, math.nan
FIXED = [fixed(f) for f in (0, 1, 8, 43, 62)]
TYPES = [t for t in SCALARS.values() if not t.is_fixed] + FIXED
OFTEN = [pytest.param(t, marks=pytest.mark.deep) if t in (fixed(1), fixed(8)) else t for t in TYPES]
"""Each fixed-point type takes a second to compile, so two of the five are for `--deep`."""
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
    if len(found) > part(2500):
        found = r.sample(found, part(2500))
    return found + [tuple(drawn(t, r) for t in types) for _ in range(part(1000))]


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


def failure(compiled, k, f, arguments, usual=None):
    """What is wrong with a compiled function on rows of arguments; "" where nothing is.

    It must give up just where the reference raises; with `usual`, which says what arguments are
    usual, it may also do so for those that are not, or whose value is not finite.  Functions of
    fixed-point numbers must also do so where their text is in doubt, which few are.
    """
    fn, types, result, *last = compiled.functions[k]
    sys = system(result)
    want, raised = expected(f, sys.zero, arguments)
    want = np.array(want, sys.dtype)
    got, bad = compiled.call(k, arguments)
    where = f"{fn}({', '.join(map(str, types))}) -> {result} {last}"
    raised |= in_doubt(fn, types, arguments, *last)
    must_not = ~raised
    if usual is not None:
        must_not &= np.isfinite(want) & np.array([all(map(usual, args)) for args in arguments])
    wrong = (raised & ~bad) | (must_not & bad)
    if np.any(wrong):
        at = int(np.argmax(wrong))
        return f"{where} at {arguments[at]}: given up {bad[at]}, raises {raised[at]}"
    at = differences(sys, got[~bad], want[~bad])
    if at is None:
        return ""
    args = [a for a, b in zip(arguments, bad, strict=True) if not b][at]
    return f"{where} at {args}: {got[~bad][at]!r}, not {want[~bad][at]!r}"


def in_doubt(fn, types, arguments, last=None):
    """Of which arguments a function of fixed-point numbers is settled by Python's integers."""
    t = types[0]
    if not t.is_fixed or fn not in UNARY | BINARY:
        return np.zeros(len(arguments), bool)
    of, arity = text(fn, t.frac), len(types)
    if fn == "**" and types[1].is_integer:
        if last in (1, 2):
            return np.zeros(len(arguments), bool)
        small = last is not None and 0 < last <= UNROLLED
        of, arity = power_text(t.frac, last if small else None), 1 if small else 2
    return np.array([on_numbers(of)(*args[:arity]) == DOUBT for args in arguments])


def usual(x):
    """Whether a number's parts are finite: others are left to the reference."""
    return cmath.isfinite(x)


def arrays_only(fn):
    return fn in ("len", "dim")


def test_every_function_has_code():
    assert not [c for c in CASES if not arrays_only(c[0]) and not implementation(*c[:2]).is_native]


GROUPS = {t: [c for c in CASES if deciding(c[1]) == t and not arrays_only(c[0])] for t in TYPES}


@thin
@pytest.mark.parametrize("t", OFTEN, ids=str)
@sized
def test_the_bits_are_those_of_the_reference(t):
    compiled = Compiled(GROUPS[t])
    failures = []
    for k, (fn, types, _) in enumerate(compiled.functions):
        arguments = rows(types, random.Random(f"{fn} {types}"))
        some = usual if t.is_complex and fn in complex_functions.FUNCTIONS else None
        failures.append(failure(compiled, k, value(fn, types), arguments, some))
    assert not any(failures), "\n".join(filter(None, failures))


TWO = [fixed(1), fixed(43)]
CONSTANTS = [
    *[(f, I64, k) for f in ("//", "%") for k in (-8, -1, 0, 1, 7, 64)],
    *[(f, t, k) for f in ("//", "%") for t in (I32, *TWO) for k in (-7, 2)],
    *[(f, t, k) for f in ("//", "%") for t in (U8, U64) for k in (0, 3, 128)],
    *[("**", t, k) for t in (I64, U8) for k in (0, 1, 2, 7, 12, 65)],
    *[("**", I32, k) for k in (-2, -1)],
    *[("/", t, k) for t in TWO for k in (0, 1, -5, 1 << 40)],
]
COUNTS = [
    (f, (t, I64), k)
    for f in ("<<", ">>", "rotl")
    for t, counts in ((I32, (-1, 0, 5, 31, 32)), (I64, (63, 64, 200)), (U8, (-65, 7, 8)))
    for k in counts
]
COUNTS += [("rotr", (U32, I64), k) for k in (-5, 0, 37)]
COUNTS += [(f, (U8, U8), 201) for f in ("<<", ">>", "rotl")]
COUNTS += [(f, (U64, U64), 2**64 - 3) for f in ("<<", ">>", "rotl", "rotr")]
EXPONENTS = [(C128, n) for n in (-101, -3, -1, 0, 1, 2, 6, 100)]
EXPONENTS += [(t, n) for t in (F64, *TWO) for n in (-17, -3, 0, 1, 3, 16)]
WITH_CONSTANTS = [
    *[(f, (t, t), k) for f, t, k in CONSTANTS],
    *COUNTS,
    *[("**", (t, I64), n) for t, n in EXPONENTS],
    *[("**", (C128, C128), z) for z in (0j, 2 + 0j, 0.5 + 0j, -3 + 1j, complex(3, -0.0))],
]


@wide
@sized
def test_constant_divisors_counts_and_exponents():
    cases = [(fn, types, types[0], k) for fn, types, k in WITH_CONSTANTS]
    compiled = Compiled(cases)
    failures = []
    for k, (fn, types, _, last) in enumerate(cases):
        first = [x for x, *_ in rows(types[:1], random.Random(f"{fn} {types} {last}"))[:700]]
        arguments = [(x, last) for x in first]
        failures.append(failure(compiled, k, value(fn, types), arguments))
    assert not any(failures), "\n".join(filter(None, failures))


@sized
def test_quotients_of_fixed_point_numbers_with_long_runs_of_bits():
    # Digits near 2**32 are where a guessed digit of the quotient is too high.
    r = random.Random(7)

    def runs():
        n = 0
        for _ in range(r.randint(1, 4)):
            k, m = r.randint(0, 63), r.randint(0, 63)
            n ^= (1 << k) - (1 << m)
        n = (n & (1 << 63) - 1) or 1
        return -n if r.random() < 0.2 else n

    arguments = [(runs(), runs()) for _ in range(part(20_000))]
    compiled = Compiled([("/", (t, t), t) for t in FIXED])
    for k, (_, types, _) in enumerate(compiled.functions):
        assert not failure(compiled, k, value("/", types), arguments)
