"""NaN is one number: computed ones may have any bits, moved ones keep theirs."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import executing
from rvm.run.machine import Machine
from rvm.state import Options

TEXT = """
func f(a: T, b: T, s: stack[T], x: T[n], y: T[n], m: T[n], q: T[n])
    swap a, b
    swap x, y
    swap m[0], x[1]
    swap m[1:], q[1:]
    push a, s
    pop a, s
    push b, s
    pop b, s
    call g(x)

func g(x: T[n])
    for i = 1 to n - 1
        swap x[0], x[i]
    end
"""
BITS = {"f64": np.uint64, "f32": np.uint32, "c128": np.uint64, "log64": np.uint64}
QUIET = {"f64": 0x7FF8 << 48, "f32": 0x7FC0 << 16, "c128": 0x7FF8 << 48, "log64": 0x7FF8 << 48}


def numbers(t: str, first: int, n: int) -> Any:
    """NaNs of both signs, each with bits of its own."""
    words = np.arange(first, first + n * (2 if t == "c128" else 1), dtype=BITS[t]) + QUIET[t]
    words[::2] |= BITS[t](1 << 31 if t == "f32" else 1 << 63)
    return words.view({"f64": "f8", "f32": "f4", "c128": "c16", "log64": "f8"}[t])


def held(m: Machine, t: str) -> list[list[int]]:
    """The bits of all parameters."""
    dtype = numbers(t, 0, 1).dtype
    return [
        np.atleast_1d(np.asarray(v, dtype)).view(BITS[t]).tolist() for v in m.state.frames[0].regs
    ]


@thin
@pytest.mark.parametrize("t", BITS)
@pytest.mark.parametrize("strict", [False, True], ids=["tolerant", "strict"])
@sample
def test_moves_keep_the_bits(t: str, strict: bool) -> None:
    program = rvm.assemble(TEXT.replace(": T", f": {t}").replace("[T]", f"[{t}]")).program
    seen = []
    for engine in executing():
        arrays = [numbers(t, 100 * k, 5) for k in range(1, 5)]
        one, two = (numbers(t, k, 1)[0].item() for k in (7, 9))
        m = Machine.entered(
            program, "f", [one, two, [], *arrays], Options(engine=engine, strict=strict), False
        )
        begun = held(m, t)
        m.run()
        seen.append(held(m, t))
        assert sorted(chain(*seen[-1])) == sorted(chain(*begun))
        m.run_back()
        assert held(m, t) == begun, engine
    assert all(s == seen[0] for s in seen)
