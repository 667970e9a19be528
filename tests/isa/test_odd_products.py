"""Integers multiplied by odd numbers, there and back, against Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest
from rvm_asm import assemble, disassemble
from sizes import thin

import rvm
from rvm.engines import ENGINES
from rvm.numbers import system
from rvm.transform import invert
from rvm.types import SCALARS, Scalar

INTEGERS = [t for t in SCALARS.values() if t.is_integer]


def wrapped(value: int, t: Scalar) -> int:
    """A whole number modulo 2^bits, within the limits of a type."""
    info = np.iinfo(system(t).dtype)
    return (value - info.min) % (1 << info.bits) + info.min


def edges(t: Scalar) -> list[int]:
    info = np.iinfo(system(t).dtype)
    near = [info.min + k for k in range(4)] + [info.max - k for k in range(4)] + [0, 1, 2, 3]
    rng = np.random.default_rng(7)
    return near + rng.integers(info.min, info.max, 20, info.dtype, endpoint=True).tolist()


@thin
@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_products_wrap_and_come_back(t: Scalar) -> None:
    program = rvm.assemble(
        f"""
        func f(x: {t}[n], y: {t}, k: {t})
            mul x, k
            mul y, k
            unmul x[0], k
            mul x[0], k * k
        """
    )
    start = np.array(edges(t), system(t).dtype)
    for engine in ENGINES:
        f = program.f.with_options(engine=engine)
        for k in edges(t):
            x, y = start.copy(), int(start[-1])
            if k % 2 == 0:
                with pytest.raises(rvm.RvmError) as caught:
                    f(x, y, k)
                assert caught.value.code == "R007" and np.array_equal(x, start)
                continue
            out = f(x, y, k)
            want = [wrapped(int(v) * k, t) for v in start]
            assert out.y == wrapped(y * k, t)
            assert out.x.tolist() == [wrapped(int(start[0]) * k * k, t), *want[1:]]
            (~f)(**out)
            assert np.array_equal(x, start)
    lanes = program.f.map(x=np.stack([start] * 3), y=[1, 2, 3], k=[1, 3, 5])
    assert lanes.y.tolist() == [1, 6, 15]
    assert lanes.x[2].tolist()[1:] == [wrapped(int(v) * 5, t) for v in start[1:]]


def test_a_generator_of_random_numbers_runs_back() -> None:
    """PCG32 by M. E. O'Neill (pcg-random.org), whose demonstration prints these six for seed 42."""
    program = rvm.assemble(
        """
        func pcg32(s: u64, inc: u64, out: u32[n])
            for i = 0 to n - 1
                xor out[i], rotr(u32((s >> 18 ^ s) >> 27 & 0xFFFFFFFF'u64), i64(s >> 59))
                mul s, 6364136223846793005
                add s, inc
            end
        """
    )
    mask = (1 << 64) - 1
    inc = 54 << 1 | 1
    state = ((inc + 42) * 6364136223846793005 + inc) & mask
    found = program.pcg32(state, inc, np.zeros(6, np.uint32))
    assert [hex(v) for v in found.out.tolist()] == [
        "0xa15c02b7", "0x7b47f409", "0xba1d3330", "0x83d2f293", "0xbfa4784b", "0xcbed606e",
    ]  # fmt: skip
    back = (~program.pcg32)(**found)
    assert back.s == state and not back.out.any()


def test_the_inverse_is_printed_and_read() -> None:
    program = rvm.assemble("func f(s: u8)\n    mul s, 5\n").program
    text = disassemble(invert(program))
    assert "unmul s, 5" in text
    assert assemble(text).function("f").code == invert(program).function("f").code
    with pytest.raises(rvm.AssemblyError, match="unmul"):
        rvm.assemble("func f(s: i64)\n    div s, 3\n")
    with pytest.raises(rvm.AssemblyError):
        rvm.assemble("func f(s: f64)\n    unmul s, 3\n")
