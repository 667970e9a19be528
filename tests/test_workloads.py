"""The numbers that programs must meet: values measured with NiLang 0.9.4, or known otherwise.

Each test is a row of the list of workloads; gradients and schedules have tests of their own.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from rvm_tools.drift import drifts
from sizes import sample, wide

import rvm
from rvm import InvertibilityError, LogNumber, Machine
from rvm.engines import executing

TESTS = Path(__file__).parent
ENGINES = executing()
each_engine = pytest.mark.parametrize("engine", ENGINES)


def example(name: str) -> rvm.Library:
    return rvm.load(str(TESTS.parent / "examples" / f"{name}.rasm"))


def program(name: str) -> rvm.Library:
    return rvm.load(str(TESTS / "programs" / f"{name}.rasm"))


def near(got: float, wanted: float) -> bool:
    """Whether the digits of the list are met: it gives ten."""
    return math.isclose(got, wanted, rel_tol=1e-9)


@each_engine
def test_norm(engine: str) -> None:
    f = example("norm").length.with_options(engine=engine)
    x = np.array([1.0, 2.0, 3.0])
    out = f(r=0.0, y=0.0, x=x)
    assert (out.r, out.y) == (3.7416573867739413, 14.0)
    back = (~f)(**out)
    assert (back.r, back.y, x.tolist()) == (0.0, 0.0, [1.0, 2.0, 3.0])


@each_engine
def test_fused_multiply_add_and_dot(engine: str) -> None:
    x, y, z = np.array([1.0, 2, 3]), np.ones(3), np.array([3.0, 2, 1])
    assert example("fma").fma(s=0.0, a=2.0, x=x, y=y, z=z, engine=engine).s == 26.0


@each_engine
def test_rotation_and_hadamard(engine: str) -> None:
    rotations = program("rotations")
    out = rotations.turn(a=1.0, b=2.0, t=2.0, engine=engine)
    assert near(out.a, -2.2347416902)
    assert near(out.b, 0.0770037537914)
    out = rotations.mix(a=3.0, b=2.0, engine=engine)
    assert near(out.a, 3.5355339059)
    assert near(out.b, 0.70710678119)


@each_engine
def test_chain_of_updates(engine: str) -> None:
    # The list gives the arguments last first.
    out = program("pointwise").chain(x=0.8, y=0.5, z=0.2, engine=engine)
    assert near(out.z, -9.158872354)
    assert near(out.y, 0.8153223624)


@each_engine
def test_while_with_its_postcondition(engine: str) -> None:
    loops = program("while_post")
    assert loops.climb(x=0, engine=engine).x == 108
    assert (~loops.climb)(x=108, engine=engine).x == 0
    with pytest.raises(InvertibilityError) as caught:
        loops.always_after(x=0, engine=engine)
    assert caught.value.code == "R002"


@each_engine
def test_if_whose_condition_changes(engine: str) -> None:
    with pytest.raises(InvertibilityError):
        program("if_changed").lower(x=1.2, engine=engine)


@each_engine
def test_if_elseif_else(engine: str) -> None:
    f = program("elseif").sign
    assert [f(y=0, x=x, engine=engine).y for x in (1, -2, 0)] == [1, 2, 3]


@each_engine
def test_freed_residues(engine: str) -> None:
    programs = program("free_residue")
    assert programs.rounded(x=0.1, y=0.2, engine=engine).x == 0.1
    for f, x in ((programs.floats, 2e-8), (programs.floats, math.nan), (programs.moved, math.nan)):
        with pytest.raises(InvertibilityError) as caught:
            f(x=x, engine=engine)
        assert caught.value.code == "R001"
    assert programs.large(x=1e6, tolerance=1e-8, engine=engine).x == 1e6
    for f, given in ((programs.large, {"x": 1e6}), (programs.rounded, {"x": 0.1, "y": 0.2})):
        with pytest.raises(InvertibilityError):
            f(tolerance=0 if "y" in given else 1e-10, engine=engine, **given)


@each_engine
def test_square_with_the_old_value_pushed(engine: str) -> None:
    f = program("square_push").square.with_options(engine=engine)
    stack = [1.0]
    out = f(x=3.0, s=stack)
    assert (out.x, stack) == (9.0, [1.0, 3.0])
    assert (~f)(x=9.0, s=stack).x == 3.0
    assert stack == [1.0]


@each_engine
def test_stepped_loop_is_undone_in_the_order_it_was_done(engine: str) -> None:
    seen: list[int] = []
    f = program("for_step").visits
    options = {"engine": engine, "callbacks": {"visit": seen.append}}
    out = f(seen=np.zeros(3, np.int64), a=1, b=4, s=2, **options)
    assert seen == [1, 3]
    (~f)(**out, **options)
    assert seen == [1, 3, 3, 1]


@each_engine
def test_element_added_to_itself_is_an_error(engine: str) -> None:
    y = np.array([1.0, 2.0])
    with pytest.raises(rvm.RvmError) as caught:
        program("alias_at_run").gather(y=y, i=1, j=1, engine=engine)
    assert caught.value.code == "R004"
    assert y.tolist() == [1.0, 2.0]


@wide
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["fixeds", "floats"])
@sample
def test_a_hundred_thousand_sums_undone(name: str, engine: str) -> None:
    m = Machine(example("drift"), name, y=0.1, n=100_000, engine=engine)
    start = m["y"]
    m.run()
    assert near(float(m["y"]), 0.1 + 1e5 * math.sin(0.7))
    m.run_back()
    if name == "fixeds":
        assert m["y"] == start
    else:
        assert 1e-12 < abs(m["y"] - start) < 1e-11


@pytest.mark.deep
def test_a_hundred_thousand_sums_undone_strictly() -> None:
    m = Machine(example("drift"), "floats", y=0.1, n=100_000, strict=True).run()
    plain = example("drift").floats(y=0.1, n=100_000)
    assert m["y"] == plain.y, "strict mode computes the same"
    assert 0 < m.residue_bytes <= 800_000
    m.run_back()
    assert m["y"] == 0.1
    assert m.residue_bytes == 0


@each_engine
def test_a_number_lost_in_a_large_one(engine: str) -> None:
    absorbed = rvm.assemble("func absorb(y: f64, x: f64)\n    add y, x\n")
    for strict in (False, True):
        m = Machine(absorbed, y=0.1, x=1e16, engine=engine, strict=strict)
        function, start = absorbed.program.function("absorb"), list(m.state.frames[0].regs)
        m.run()
        assert m["y"] == 1e16
        m.run_back()
        lost = drifts(function, start, m.state.frames[0].regs, 1e-8)
        if strict:
            assert m["y"] == 0.1
            assert not lost
        else:
            assert m["y"] == 0.0
            assert [(d.name, d.within) for d in lost] == [("y", False)]
            assert lost[0].bits > 50


@each_engine
def test_exponential_in_fixed_point(engine: str) -> None:
    # NiLang's series ends with an error of 1.4e-10.
    f = example("fixed_exp").fixed_exp.with_options(engine=engine)
    out = f(y=0, x=3.5)
    assert abs(float(out.y) - 33.115451958549) < 2e-10
    assert abs(float(out.y) - math.exp(3.5)) < 2e-12
    assert (~f)(**out) == {"y": rvm.Fixed(0), "x": out.x}
    plain = rvm.assemble("func f(y: fixed, x: fixed)\n    add y, exp(x)\n").f(y=0, x=3.5)
    assert abs(float(plain.y) - math.exp(3.5)) < 2**-43


@each_engine
def test_product_of_logarithms(engine: str) -> None:
    x, y, z = map(LogNumber, (7.0, 2.0, 3.0))
    assert program("log64").product(x=x, y=y, z=z, engine=engine).x.log == 10.313261687518223


@each_engine
def test_complex_exponential_and_modulus(engine: str) -> None:
    out = program("pointwise").complexes(a=0.0, b=0.0, z=2 - 2.3j, engine=engine)
    assert near(out.a, math.exp(2) * math.cos(2.3))
    assert near(out.b, math.hypot(2, 2.3))


@each_engine
def test_factorial_and_fibonacci(engine: str) -> None:
    assert example("factorial").factorial(f=1, n=10, engine=engine).f == 3628800
    assert example("fibonacci").fib(out=0, n=10, engine=engine).out == 55
    for f in (example("fibonacci").fib_at_least, program("language").fib_at_least):
        assert f(n=0, x=100, engine=engine).n == 12
        assert (~f)(n=12, x=100, engine=engine).n == 0


@each_engine
def test_affine(engine: str) -> None:
    w, b, x = np.array([[1.0, 2], [3, 4]]), np.array([10.0, 20]), np.array([1.0, -1])
    out = example("affine").affine(y=np.zeros(2), W=w, b=b, x=x, engine=engine)
    assert out.y.tolist() == [9.0, 19.0]


@each_engine
def test_exponential_by_its_series(engine: str) -> None:
    assert near(example("exp_taylor").iexp(y=0.0, x=1.6, engine=engine).y, 4.9530324244)


@each_engine
def test_heat_on_a_ring(engine: str) -> None:
    state = np.zeros((101, 100))
    state[0, 50] = 1
    c = 0.04 * 0.01 / (math.pi / 100) ** 2
    example("ring_diffusion_step").diffuse(state=state, c=c, engine=engine)
    assert near(state[100, 50], 0.04421357216)
    assert near(state[100].sum(), 1)
