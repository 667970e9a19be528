"""Arrays that are freed and made again with other lengths: what was computed from the lengths has
changed, so that what is freed with the same words is compared, and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sizes import part, sample, sized
from verify.lengths_random import Program

import rvm
from rvm.engines import executing
from rvm.faults import InvertibilityError

PROGRAMS = {
    "as a value": """
func f(y: f64, n: i64)
    alloc u: f64[n]
    alloc t = f64(len(u))
    {away}
    add y, t
    {again}
    free t = f64(len(u))
    free u
""",
    "as an update": """
func f(y: f64, n: i64)
    alloc u: f64[n]
    alloc t: f64
    add t, f64(len(u))
    {away}
    add y, t
    {again}
    sub t, f64(len(u))
    free t
    free u
""",
    "as a filled array": """
func f(y: f64, n: i64)
    alloc u: f64[n]
    alloc t: f64
    for v1 = 0 to n - 1
        add u[v1], 1.0
    end
    add t, sum(u)
    for v2 = 0 to n - 1
        sub u[v2], 1.0
    end
    {away}
    add y, t
    {again}
    for v3 = 0 to n - 1
        add u[v3], 1.0
    end
    sub t, sum(u)
    for v4 = 0 to n - 1
        sub u[v4], 1.0
    end
    free t
    free u
""",
    "as a bound": """
func f(y: f64, n: i64)
    alloc u: f64[n]
    alloc t: f64
    for v5 = 1 to len(u)
        add t, 1.0
    end
    {away}
    add y, t
    {again}
    for v6 = 1 to len(u)
        sub t, 1.0
    end
    free t
    free u
""",
}
LONGER = {"away": "free u\n    inc n", "again": "alloc u: f64[n]"}
AS_LONG = {"away": "free u\n    inc n\n    dec n", "again": "alloc u: f64[n]"}


@sample
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_length_that_has_changed_is_seen(name: str, engine: str) -> None:
    program = rvm.assemble(PROGRAMS[name].format(**LONGER))
    with pytest.raises(InvertibilityError, match="R001"):
        program.f(y=0.0, n=2, engine=engine)


@sample
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_length_that_is_the_same_again_is_right(name: str, engine: str) -> None:
    program = rvm.assemble(PROGRAMS[name].format(**AS_LONG))
    found = program.f(y=0.0, n=2, engine=engine)
    assert (found.y, found.n) == (2.0, 2)
    back = (~program.f)(**found, engine=engine)
    assert (back.y, back.n) == (0.0, 2)


@sized
@pytest.mark.parametrize("t", ["f64", "i64"])
def test_random_programs(t: str) -> None:
    """Whether a `free` is refused does not depend on what the verifier knows."""
    inputs = {"y": 3, "z": 5, "a": [2, 7, 1], "n": 2, "m": 1}
    dtype = {"f64": np.float64, "i64": np.int64}[t]
    verdicts = set()
    for seed in range(part(500)):
        made = Program(seed)
        expected, text = made.expected(inputs), made.text(t)
        f = rvm.assemble(text).f.with_options(engine="python")
        found: dict[str, Any] | str
        try:
            result = f(**inputs | {"a": np.array(inputs["a"], dtype)})
            found = {name: list(v) if name == "a" else v for name, v in result.items()}
        except rvm.RvmError as error:
            found = error.code
        assert found == expected, text
        verdicts.add(found if isinstance(found, str) else "")
    assert verdicts >= {"", "R001"}
