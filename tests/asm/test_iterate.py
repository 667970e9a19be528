"""`iterate`: what it becomes, where that stands, and that all tools take it like any other code."""

from __future__ import annotations

import numpy as np
import pytest
from rvm_asm import assemble
from rvm_asm.disassemble import disassemble

import rvm
from rvm.codec import encode
from rvm.faults import InvertibilityError, RvmError

STEP = """
func step(y: i64[n], x: i64[n], k: i64, c: i64)
    add y, x * 6364136223846793005 + c
    xor y, (x >> 17) ^ k
"""


def plain(x: np.ndarray, c: int, numbers: range) -> np.ndarray:
    """The states in a loop, each in the place of the one before."""
    x = x.copy()
    with np.errstate(over="ignore"):
        for k in numbers:
            x = (x * 6364136223846793005 + c) ^ ((x >> 17) ^ k)
    return x


POLICIES = ["pebbles = 9", "bennett = 4", "max_moves = 250", "memory = 900, state_bytes = 100"]


@pytest.mark.parametrize("engine", ["reference", "python", "vector", "native", "auto"])
@pytest.mark.parametrize("policy", POLICIES)
def test_values_are_those_of_a_loop(policy: str, engine: str) -> None:
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64)\n"
        f"    iterate step(y, x, k, c) for k = 5 to 94 with {policy}\n"
    )
    x = np.arange(3) * 1_000_003
    main = program.main.with_options(engine=engine)
    y = np.zeros(3, dtype=np.int64)
    result = main(y=y, x=x.copy(), c=7)
    np.testing.assert_array_equal(result.y, plain(x, 7, range(5, 95)))
    np.testing.assert_array_equal(result.x, x)
    assert not (~main)(y=result.y, x=result.x, c=7).y.any()


def test_erase_adds_to_what_is_there() -> None:
    program = rvm.assemble(
        f"const N = 40\n{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64)\n"
        "    iterate step(y, x, 3, c) times N // 2 with pebbles = 6, goal = erase\n"
    )
    x = np.arange(3)
    result = program.main(y=np.array([10, 20, 30]), x=x.copy(), c=7)
    expected = x
    for _ in range(20):
        expected = plain(expected, 7, range(3, 4))
    np.testing.assert_array_equal(result.y, expected + np.array([10, 20, 30]))


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 100])
def test_a_length_that_only_the_run_knows(steps: int) -> None:
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64, m: i64)\n"
        "    iterate step(y, x, k, c) for k = 2 to m with bennett = 4\n"
    )
    x = np.arange(1, 4)
    result = program.main(y=np.zeros(3, dtype=np.int64), x=x.copy(), c=7, m=steps + 1)
    np.testing.assert_array_equal(result.y, plain(x, 7, range(2, steps + 2)))
    assert not (~program.main)(**dict(result.items())).y.any()


def test_fewer_than_no_steps() -> None:
    program = rvm.assemble(
        "func step(y: i64, x: i64)\n    add y, x + 1\n"
        "func main(y: i64, x: i64, m: i64)\n    iterate step(y, x) times m with bennett = 3\n"
    )
    with pytest.raises(RvmError) as caught:
        program.main(y=0, x=1, m=-1)
    assert caught.value.code == "R013"
    assert caught.value.where.line == 4


def test_errors_and_positions_are_those_of_the_statement() -> None:
    """A step that leaves x changed: the ancilla that it came from is not what it was."""
    text = (
        "func step(y: i64, x: i64)\n    add y, x + 1\n    xor x, y\n"
        "func main(y: i64, x: i64)\n    iterate step(y, x) times 20 with pebbles = 7\n"
    )
    program = rvm.assemble(text)
    made = [f for f in program.functions if f.name.startswith("step.times_20")]
    assert {(s.line, s.column, s.end) for f in made for s in f.spans} == {(5, 5, 49)}
    with pytest.raises(InvertibilityError) as caught:
        program.main(y=0, x=1)
    assert caught.value.where.line == 5
    assert caught.value.where.function.startswith("step.times_20")


@pytest.mark.parametrize("policy", POLICIES)
def test_disassembled_code_is_the_same(policy: str) -> None:
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64)\n"
        f"    iterate step(y, x, k, c) for k = 5 to 94 with {policy}\n"
    )
    again = rvm.assemble(disassemble(program))
    assert encode(again) == encode(program)


def test_strict_code_does_the_same() -> None:
    text = (
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64, m: i64)\n"
        "    alloc t: i64[n]\n"
        "    routine there\n"
        "        iterate step(t, x, k, c) for k = 0 to 24 with pebbles = 7\n"
        "    end\n"
        "    iterate step(y, t, k, c) for k = 25 to m with bennett = 3\n"
        "    undo there\n"
        "    free t\n"
    )
    x = np.arange(3)
    for expand in (False, True):
        program = assemble(text, expand=expand)
        result = program.main(y=np.zeros(3, dtype=np.int64), x=x.copy(), c=7, m=59)
        np.testing.assert_array_equal(result.y, plain(x, 7, range(60)))


def test_macros_and_records() -> None:
    program = rvm.assemble(
        """
        record Wave
            u: f64[8]
            v: f64[8]
        end
        func step(y: Wave, x: Wave, dt: f64)
            for i = 0 to 7
                add y.v[i], x.v[i] + dt * (x.u[(i + 1) % 8] - 2 * x.u[i] + x.u[(i - 1) % 8])
                add y.u[i], x.u[i] + dt * x.v[i]
            end
        macro far y, x, dt, s
            iterate step(y, x, dt) times 30 with pebbles = s
        end
        func main(y: Wave, x: Wave, dt: f64)
            far y, x, dt, 6
        func other(y: Wave, x: Wave, dt: f64)
            far y, x, dt, 2 * 15
        """
    )
    x = {"u": np.linspace(0, 1, 8), "v": np.zeros(8)}
    found = program.main(y={"u": np.zeros(8), "v": np.zeros(8)}, x=x, dt=0.1)
    other = program.other(y={"u": np.zeros(8), "v": np.zeros(8)}, x=x, dt=0.1)
    u, v = x["u"].copy(), x["v"].copy()
    for _ in range(30):
        u, v = u + 0.1 * v, v + 0.1 * (np.roll(u, -1) - 2 * u + np.roll(u, 1))
    np.testing.assert_allclose(found.y["u"], u, rtol=1e-12)
    np.testing.assert_allclose(found.y["v"], v, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(other.y["u"], found.y["u"])
    assert len({f.name for f in program.functions if f.name.count(".") < 2}) == 5
