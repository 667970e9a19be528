"""Every function on every type that takes it: the inline template, the array code and the value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sizes import thin

from rvm.faults import RvmError
from rvm.isa.implementation import array_value, implementation, value
from rvm.isa.rows import FUNCTIONS
from rvm.isa.rules import Arg, TypeFault
from rvm.numbers import NAMES, compiled, system
from rvm.types import SCALARS, elem_of, fixed

ONE = 1 << 43
SAMPLES = {
    "bool": [True, False],
    "i8": [-128, -7, -1, 0, 3, 127],
    "i16": [-(2**15), -7, -1, 0, 3, 2**15 - 1],
    "i32": [-(2**31), -7, -1, 0, 3, 2**31 - 1],
    "i64": [-(2**63), -7, -1, 0, 3, 70, 2**63 - 1],
    "u8": [0, 3, 8, 255],
    "u16": [0, 5, 2**16 - 1],
    "u32": [0, 5, 2**32 - 1],
    "u64": [0, 7, 2**63, 2**64 - 1],
    "f32": [0.0, -0.0, 0.5, -1.25, 3.0, 2.0**100, math.inf, math.nan],
    "f64": [0.0, -0.0, 0.5, -1.25, 3.7, -math.inf, math.nan, 1e300],
    "c128": [0j, 1 + 2j, -0.5 - 3j, 2 + 0j],
    "fixed": [0, ONE, -3 * ONE // 4, 5 * ONE + 12345, -(2**63)],
    "log64": [0.0, -1.5, 2.0, -math.inf, math.inf],
}
TYPES = [*SCALARS.values(), fixed(8)]
FACTOR = fixed(62)
# What array code takes from NumPy's own loops, which may differ from the C library's last bits.
LIBRARY = {
    *("exp", "log", "log2", "expm1", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("atan2", "sinh", "cosh", "tanh", "hypot", "**", "abs", "sqrt", "f64", "f32", "c128"),
    *("i32", "i64", "u8", "u32", "u64", "fixed", "/", "+", "-", "angle", "*", "log64"),
}


def cases():
    for name, row in FUNCTIONS.items():
        kinds = [*TYPES, FACTOR] if name == "shear" else TYPES
        for types in itertools.product(kinds, repeat=row.arity):
            try:
                typing = row.rule([Arg(t) for t in types], None)
            except TypeFault:
                continue
            if typing.elems == types:
                yield pytest.param(
                    name, types, elem_of(typing.result), id=f"{name}-{'-'.join(map(str, types))}"
                )


CASES = list(cases())


def test_the_table_is_covered():
    array_only = {
        *("sum", "prod", "amin", "amax", "last_min", "first_max", "prod_others", "dot", "matvec"),
        *("prod_others_1", "prod_others_2", "matmul", "@", "outer", "scan_left", "scan_right"),
        *("len", "dim", "gather", "scatter", "transpose", "sum_like", "spread_like", "logsumexp"),
    }
    assert {c.values[0] for c in CASES} == set(FUNCTIONS) - array_only
    assert len(CASES) > 500


@thin
@pytest.mark.parametrize(("name", "types", "result"), CASES)
def test_template_and_array_code_give_the_value(name, types, result):
    code = implementation(name, types)
    function = value(name, types)
    inline = compiled(code.python, len(types), NAMES)
    arrays = array_value(name, types) if code.numpy else None
    sys = system(result)
    for raws in itertools.product(*(SAMPLES[t.name] for t in types)):
        try:
            expected = function(*raws)
        except RvmError as fault:
            expected = fault
        try:
            got = inline(*raws)
        except (ArithmeticError, ValueError, TypeError):
            pass  # the engine then asks for the value
        else:
            assert not isinstance(expected, RvmError), (raws, got)
            assert type(got) is type(expected) is type(sys.zero), raws
            assert sys.same(got, expected), (raws, got, expected)
        if arrays is None:
            continue
        columns = [
            np.array([raw, raw], system(t).dtype) for raw, t in zip(raws, types, strict=True)
        ]
        with np.errstate(all="ignore"):
            if isinstance(expected, RvmError):
                with pytest.raises(type(expected)) as info:
                    arrays(*columns)
                assert info.value.code == expected.code
                continue
            got = arrays(*columns)
        assert got.dtype == sys.dtype
        assert _agree(name, sys, got[1].item(), expected), (raws, got, expected)


def _agree(name, sys, got, expected):
    if sys.same(got, expected):
        return True
    if name not in LIBRARY and not (name == "sech" and sys.type.is_complex):
        return False
    if sys.type.is_complex:
        # C leaves open which parts of a complex power or quotient without a value are NaN.
        return not np.isfinite([got, expected]).all() or sys.close(got, expected, 1e-13)
    if sys.type.is_fixed:
        return abs(got - expected) <= max(1, abs(expected) >> 50)
    return sys.close(got, expected, 1e-6 if sys.type.name == "f32" else 1e-14)


MIXED = [c for c in CASES if len(c.values[1]) > 1 and implementation(*c.values[:2]).numpy]


@thin
@pytest.mark.parametrize(("name", "types", "result"), MIXED)
def test_a_scalar_mixes_with_an_array(name, types, result):
    """One argument an array, the other scalars: the storage type is still the result's."""
    ones = [True if t.is_bool else system(t).literal(1) for t in types]
    function = array_value(name, types)
    expected = value(name, types)(*ones)
    for k in range(len(types)):
        mixed = [
            np.array([v, v, v], system(t).dtype) if j == k else v
            for j, (v, t) in enumerate(zip(ones, types, strict=True))
        ]
        with np.errstate(all="ignore"):
            got = function(*mixed)
        assert got.dtype == system(result).dtype
        assert got.shape == (3,)
        assert system(result).close(got[2].item(), expected, 1e-12)
