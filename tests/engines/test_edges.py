"""Limits of every type, and zeros with a sign, on every engine, there and back and crosswise."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from engines.edges_agreeing import ALL_PAIRS, ENGINES, RING, everywhere, trip
from rvm_tools.isa_page import members
from sizes import part, sample, sized, thin

import rvm
from rvm.engines import executing
from rvm.faults import RvmError
from rvm.run.machine import Machine
from rvm.state import Options

pytest.importorskip("llvmlite")
LOW, HIGH = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize("k", range(part(4)))
@sized
def test_random_programs(k: int) -> None:
    for seed in range(6 * k, 6 * k + 6):
        everywhere(seed, RING)


@pytest.mark.deep
@pytest.mark.parametrize("hundred", range(100))
def test_ten_thousand_random_programs(hundred: int) -> None:
    """On all engines, there on one and back on another."""
    first = 1000 + 100 * hundred
    ended = Counter(everywhere(seed, RING) for seed in range(first, first + 100))
    assert ended["end"] > 20
    assert ended["error"] > 5


@pytest.mark.soak
def test_many_random_programs_on_all_pairs_of_engines() -> None:
    ended = Counter(everywhere(seed) for seed in range(1000, 4000))
    assert ended["end"] > 600
    assert ended["error"] > 200


def seen(text: str, inputs: dict[str, Any], **options: Any) -> list[Any]:
    """What every pair of engines makes of a program, which must be one thing."""
    program = rvm.assemble(text)
    made = []
    for there, back in ALL_PAIRS:
        copies = {
            k: v.copy() if isinstance(v, (np.ndarray, list)) else v for k, v in inputs.items()
        }
        m = Machine.start(program, "main", copies, Options(**options))
        made.append(trip(m, there, back))
    assert all(one == made[0] for one in made), made
    return made[0]


@pytest.mark.parametrize(
    "value", ["square({k})", "{k} * x", "x * x", "x / 0.001", "x // 0.001", "{k} ** 3", "x ** i"]
)
def test_what_does_not_fit_is_an_error_of_the_run(value: str) -> None:
    """Of fixed-point numbers, where LLVM might compute it before there is a run, and elsewhere."""
    text = f"func main(y: fixed, x: fixed, i: i64)\n    add i, 1\n    add y, {value}\n"
    found = seen(text.format(k=f"{HIGH - 3}'fixed"), {"y": 0, "x": 2000, "i": 4})
    assert "R009" in str(found[0]) and "at time 1" in str(found[0])


@pytest.mark.parametrize("value", ["67'i64 {op} {k}", "x {op} {k}", "(7'i64 // 2) {op} ({k})"])
@pytest.mark.parametrize("op", ["<<", ">>", "//", "%", "**"])
def test_constants_that_have_no_value_are_an_error_of_the_run(value: str, op: str) -> None:
    """What a target computes before there is a run fails in it, on every engine alike."""
    least = 0 if op in ("//", "%") else -1
    for k in (least, LOW + 2 if least else 0):
        shown = value.format(op=op, k=f"({k}'i64)")
        text = f"func main(y: i64, x: i64)\n    add x, 1\n    xor y, {shown}\n"
        found = seen(text, {"y": 1, "x": 4})
        assert str(found[0]).count("error[R0") == 1 and "at time 1" in str(found[0]), shown


@pytest.mark.parametrize("t", ["u8", "u32", "u64", "i32"])
@pytest.mark.parametrize("op", ["<<", ">>"])
def test_constant_numbers_of_bits_of_another_type(t: str, op: str) -> None:
    """A negative one is an error of the run, though another type takes it for a huge one."""
    for count, fits in ((LOW + 1, False), (-1, False), (HIGH, True), (1 << 40, True)):
        text = f"func main(y: {t})\n    add y, 1\n    xor y, 67'{t} {op} ({count}'i64)\n"
        found = seen(text, {"y": 1})
        assert ("error[R0" in str(found[0])) != fits, (count, found[0])


def visited(a: int, b: int, step: int) -> list[int]:
    return list(range(a, b + 1, step)) if step > 0 else list(range(a, b - 1, step))


def test_loops_near_the_limits() -> None:
    """What a `for` visits is what counting without an end of the range visits."""
    rng = random.Random(1)
    for _ in range(12):
        edge, step = rng.choice([LOW, HIGH]), rng.choice([1, 1, 2, 3, 5, 1 << 61])
        there, down = edge - rng.choice([-1, 1]) * rng.randrange(12), rng.random() < 0.5
        a, b = (edge, there) if rng.random() < 0.5 else (there, edge)
        a, b = (min(max(v, LOW), HIGH) for v in (a, b))
        text = f"""func main(first: i64, last: i64, by: i64, count: i64, sum: i64)
    for i = first {"downto" if down else "to"} last step {rng.choice([str(step), "by"])}
        inc count
        add sum, i
    end
"""
        want = visited(a, b, -step if down else step)
        inputs = {"first": a, "last": b, "by": step, "count": 0, "sum": 0}
        total = (sum(want) - LOW) % (1 << 64) + LOW
        there_and_back = seen(text, inputs)
        held = [text for _, text in there_and_back[0][0]]
        assert held[3:] == [str(len(want)), str(total)], (a, b, step, down)
        assert [text for _, text in there_and_back[1][0]] == [str(v) for v in inputs.values()]


BOUNDS = (LOW, LOW + 1, -2, -1, 0, 1, 2, HIGH - 1, HIGH)
STEPS = (LOW, LOW + 1, -(1 << 62), -3, -1, 0, 1, 2, 1 << 62, HIGH - 1, HIGH)
COUNTING = """func main(first: i64, last: i64, by: i64, count: i64, sum: i64, y: f64, x: f64)
    for i = first {} last step {}
        inc count
        add sum, i
        add y, x * f64(i & 7)
    end
"""


def expected(a: int, b: int, step: int, down: bool) -> list[int] | str:
    """What a loop visits, or the code of its error."""
    if down and step == LOW:
        return "R009"
    by = -step if down else step
    if not by:
        return "R015"
    want = range(a, b + (1 if by > 0 else -1), by)
    return "R015" if want and not (len(want) * by) % (1 << 64) else list(want)


@pytest.mark.parametrize("way", ["to", "downto"])
@pytest.mark.parametrize("engine", executing())
@sized
def test_bounds_and_steps_at_the_limits(engine: str, way: str) -> None:
    """Forwards, backwards, and with a gradient, the step at run time or a constant."""
    rng, down = random.Random(engine + way), way == "downto"
    cases = [(a, b, s) for a in BOUNDS for b in BOUNDS for s in STEPS]
    for a, b, step in rng.sample(cases, part(len(cases) // 6)):
        if abs(b - a) > 9 * abs(step or 1 << 63):
            continue
        want = expected(a, b, step, down)
        written = [step] if step and not (down and step == LOW) else []
        for by in ("by", *written):
            f = rvm.assemble(COUNTING.format(way, by)).main
            at = {"first": a, "last": b, "by": step, "count": 0, "sum": 0, "y": 0.0, "x": 0.5}
            if isinstance(want, str):
                with pytest.raises(RvmError) as caught:
                    f(engine=engine, **at)
                assert caught.value.code == want, (a, b, step)
                continue
            found = f(engine=engine, **at)
            weight = sum(v & 7 for v in want)
            total = (sum(want) - LOW) % (1 << 64) + LOW
            assert (found["count"], found["sum"]) == (len(want), total), (a, b, step)
            assert found.y == 0.5 * weight
            assert (~f)(engine=engine, **found) == at
            if rng.random() < 0.3:
                assert f.grad(loss="y", engine=engine, **at).x == weight


def test_a_written_step_without_a_negative() -> None:
    with pytest.raises(RvmError) as caught:
        rvm.assemble(COUNTING.format("downto", LOW))
    assert caught.value.code == "A041"


@pytest.mark.parametrize("step", [1, 2, 1 << 62])
def test_a_loop_all_round_is_refused(step: int) -> None:
    """Behind the last it would be at the first again, as a loop that visits nothing is."""
    text = f"""func main(first: i64, last: i64, count: i64)
    for i = first to last step {step}
        inc count
    end
"""
    found = seen(text, {"first": LOW, "last": HIGH, "count": 0})
    assert found[0][0].startswith("error[R015]: the loop would end where it begins")


# ---------------------------------------------------------------- zeros with a sign

MINUS = {
    "pop": ("x: T, s: stack[T]", "pop x, s", {"x": -0.0, "s": [1.5]}, "R006"),
    "free": ("x: T, y: T", "alloc t: T = x; add y, 1; free t = -x", {"x": 0.0, "y": 1.0}, "R001"),
    "array": (
        "x: T[n], y: T",
        "alloc t: T[n] = x; add y, 1; free t = -x",
        {"x": np.array([1.0, 0.0]) * 0, "y": 1.0},
        "R001",
    ),
    "temporary": ("y: T", "call turned(y, 0.0)", {"y": 1.0}, "R012"),
}


@thin
@pytest.mark.parametrize("t", members("inexact"))
@pytest.mark.parametrize("case", MINUS)
@sample
def test_a_negative_zero(case: str, t: str) -> None:
    """It passes for zero, is kept in strict mode, and is refused where every bit counts."""
    parameters, body, inputs, code = MINUS[case]
    kind = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}[t]
    given = {k: v.astype(kind) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    lines = "\n    ".join(body.split("; "))
    text = f"func main({parameters})\n    {lines}\n".replace("T", t)
    text += f"\nfunc turned(y: {t}, z: {t})\n    add y, 1\n    neg z\n"
    program = rvm.assemble(text)
    copies = {k: v.copy() if isinstance(v, (np.ndarray, list)) else v for k, v in given.items()}
    before = str(Machine.start(program, "main", copies).result)
    assert len(seen(text, given)[0]) == len(seen(text, given)[1]) == 4
    for name in ENGINES:
        copies = {k: v.copy() if isinstance(v, (np.ndarray, list)) else v for k, v in given.items()}
        strict = Machine.start(program, "main", copies, Options(engine=name, strict=True))
        assert str(strict.run().run_back().result) == before
        assert strict.residue_bytes == 0
    assert seen(text, given, tolerance=0)[0][0].startswith(f"error[{code}]")


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("op", ["mul", "div"])
def test_a_factor_is_asked_for_where_there_are_no_elements(op: str, engine: str) -> None:
    one = rvm.assemble(f"func f(y: f64[n], e: f64)\n    {op} y, e\n").f
    row = rvm.assemble(f"func f(y: f64[m, n], e: f64[n])\n    {op} y, e\n").f
    for m in 0, 2:
        for e in 0.0, np.inf, np.nan:
            for f, given in (one, e), (row, np.array([1.0, e])):
                y = np.ones(m) if f is one else np.ones((m, 2))
                with pytest.raises(RvmError) as caught:
                    f(y=y, e=given, engine=engine)
                assert caught.value.code == "R007"
                assert (y == 1).all()
        assert (one(y=np.ones(m), e=2.0, engine=engine).y == (2.0 if op == "mul" else 0.5)).all()


@pytest.mark.parametrize("engine", executing())
def test_a_swap_that_is_not_made_asks_for_no_index(engine: str) -> None:
    program = rvm.assemble("func f(y: i64[n], c: bool, i: i64)\n    cswap c, y[i], y[0]\n")
    assert program.f(y=np.arange(4), c=False, i=7, engine=engine).y.tolist() == [0, 1, 2, 3]
    with pytest.raises(rvm.MachineError) as caught:
        program.f(y=np.arange(4), c=True, i=7, engine=engine)
    assert caught.value.code == "R003"
