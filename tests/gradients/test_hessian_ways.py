"""Hessians in both ways: Taylor propagation, and tangents of the gradient program."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients import properties, smooth
from gradients.agreeing import bits
from gradients.programs import PROGRAMS
from hypothesis import given, settings
from hypothesis import strategies as st

import rvm
from rvm.calling import FunctionHandle
from rvm.gradients import Pullback, dressed, nested
from rvm.hessians import MOST_NUMBERS, MOST_TICKS
from rvm.sweep import FEW
from rvm.taylor import propagate
from rvm.taylor.field import Field

pytestmark = pytest.mark.usefixtures("clean_tables")

WAYS = ("taylor", "forward-over-reverse")
LOSSES = ("x2", "q0", "z1.im", "g0", "u[1]", "M[2, 0]", "p.pos[0]", "p.m")
COARSE = ("fixed", "single precision and conversions")
"""Programs whose numbers are coarser than doubles."""
FOUR = """
func four(a: f64, b: f64, c: f64, d: f64)
    add a, b * c
    add a, b ** d
    add c, b / d
    rot a, c, d
    add b, d ** 2
    add a, c * d
"""
PUBLISHED = {
    "bb": -6.799590,
    "bc": -0.566632,
    "bd": -45.384796,
    "ad": -2.969977,
    "cd": -6.363315,
    "dd": -44.807533,
}


def apart(one: Mapping[str, Any], two: Mapping[str, Any]) -> float:
    """How far two Hessians are apart, as a part of their size where that is above one."""
    assert list(one) == list(two)
    worst = 0.0
    for a in one:
        for b in one[a]:
            x, y = np.asarray(one[a][b]), np.asarray(two[a][b])
            assert x.shape == y.shape, (a, b)
            size = max(1.0, float(np.max(np.abs(y), initial=0.0)))
            worst = max(worst, float(np.max(np.abs(x - y), initial=0.0)) / size)
    return worst


def function(text: str) -> FunctionHandle:
    """The function `main` of an indented text."""
    return rvm.assemble(textwrap.dedent(text)).main


def both(f: FunctionHandle, inputs: Mapping[str, Any], loss: str, near: float = 1e-10) -> Any:
    """The Hessian, in which both ways agree and that leaves the inputs as they were."""
    before = bits(inputs)
    one, two = (f.hessian(inputs, loss=loss, method=w) for w in WAYS)
    assert apart(one, two) <= near
    assert bits(inputs) == before, "the inputs were changed"
    return one


@pytest.mark.parametrize("way", WAYS)
def test_the_published_hessian(way: str) -> None:
    f = rvm.assemble(FOUR)["four"]
    h = f.hessian(loss="a", a=0.0, b=2.0, c=1.0, d=3.0, method=way)
    for x in "abcd":
        for y in "abcd":
            want = PUBLISHED.get(min(x, y) + max(x, y), 0.0)
            assert h[x][y] == pytest.approx(want, abs=5e-7), x + y


@pytest.mark.parametrize("name", PROGRAMS)
def test_kinds_of_programs(name: str) -> None:
    """Every kind of statement and number."""
    text, inputs, loss = PROGRAMS[name]
    both(rvm.assemble(text).main, inputs, loss, 1e-5 if name in COARSE else 1e-11)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(LOSSES))
def test_random_programs(seed: int, loss: str) -> None:
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    both(f, inputs, loss)
    both(~f, dict(f(**properties.copied(inputs))), loss, 1e-8)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(LOSSES))
def test_the_gradient_comes_along(seed: int, loss: str) -> None:
    """By complex numbers, logarithms, records and stacks too."""
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    pull = Pullback(f, inputs, f.options)
    names, found = pull.named, propagate(pull, loss)
    want = f.grad(inputs, loss=loss)
    rows = {}
    for k, bar in pull.bars.items():
        if isinstance(bar, list):
            rows[k] = [found.field.g[s] for s in found.slots[k]]
            continue
        line = found.first(k)
        line = line[0::2] + 1j * line[1::2] if found.wide[k] else line
        rows[k] = line.reshape(np.shape(bar)) if np.ndim(bar) else line[0]
    assert properties.distance(names(rows), want) <= 1e-10


def test_hessians_by_complex_numbers() -> None:
    """y += Re(z³ exp(w)): second derivatives by real and imaginary parts, by Cauchy and Riemann."""
    f = function("func main(y: f64, z: c128, w: c128)\n    add y, real(z * z * z * exp(w))\n")
    z, w = 0.7 - 0.4j, 0.3 + 1.1j
    pull = Pullback(f, {"y": 0.0, "z": z, "w": w}, f.options)
    found = propagate(pull, "y")
    e = complex(mpmath.exp(w))
    for (j, k), d in {(1, 1): 6 * z * e, (1, 2): 3 * z * z * e, (2, 2): z**3 * e}.items():
        want = [[d.real, -d.imag], [-d.imag, -d.real]]
        assert np.allclose(found.second(j, k), want, rtol=1e-13)


def test_what_is_read_twice_gains_twice() -> None:
    """By one place in two ways, and by two names for one element."""
    f = function("""
    func main(y: f64, x: f64[n], i: i64, j: i64)
        add y, x[i] * x[j] * x[i]
        call twice(y, x[i], x[j])
    func twice(y: f64, a: f64, b: f64)
        add y, a * b
    """)
    x = np.array([2.0, 5.0])
    h = both(f, {"y": 0.0, "x": x, "i": 1, "j": 1}, "y")["x"]["x"]
    assert np.allclose(h, [[0, 0], [0, 6 * 5.0 + 2]])
    h = both(f, {"y": 0.0, "x": x, "i": 0, "j": 1}, "y")["x"]["x"]
    assert np.allclose(h, [[2 * 5.0, 2 * 2.0 + 1], [2 * 2.0 + 1, 0]])


def test_array_functions_against_numpy() -> None:
    """Products, sums, scans and gathers of arrays, also in the middle of formulas."""
    f = function("""
    func main(y: f64, A: f64[n, n], x: f64[n], idx: i64[3])
        add y, sqrt(1.0 + dot(x, A @ x)) * sum(scan_left(x) * x)
        add y, sum(gather(x, idx) ** 2) * prod(x) + amax(x) ** 3
    """)
    rng = np.random.default_rng(3)
    inputs = {
        "y": 0.0,
        "A": np.eye(3) + 0.1,
        "x": rng.uniform(0.5, 2, 3),
        "idx": np.array([0, 0, 2]),
    }
    h = both(f, inputs, "y", 1e-12)

    def gradient(x: Any) -> Any:
        return f.grad(inputs | {"x": x}, loss="y").x

    step = 1e-5
    for k in range(3):
        e = step * np.eye(3)[k]
        change = (gradient(inputs["x"] + e) - gradient(inputs["x"] - e)) / (2 * step)
        assert np.allclose(h.x.x[:, k], change, rtol=1e-8)


def test_opcodes_of_several_statements() -> None:
    """What stands between the statements of an opcode is seen."""

    @rvm.opcode(inverse="unsquares")
    def squares(a: rvm.Mut, b: rvm.Mut) -> None:
        a += b * b
        b += a * a

    @rvm.opcode(inverse="squares")
    def unsquares(a: rvm.Mut, b: rvm.Mut) -> None:
        b -= a * a
        a -= b * b

    f = function("func main(a: f64, b: f64)\n    squares a, b\n")
    a, b = 0.5, 0.75
    h = both(f, {"a": a, "b": b}, "b")
    # b + (a + b²)²
    assert h.a.a == pytest.approx(2.0)
    assert h.a.b == pytest.approx(4 * b)
    assert h.b.b == pytest.approx(4 * a + 12 * b * b)


def test_third_derivatives_by_nesting() -> None:
    """The Hessian of a derivative, in both ways, and the gradient of the gradient's gradient."""
    f = function("func main(y: f64, x: f64, w: f64)\n    add y, sin(x) * exp(x * w)\n")
    x, w = 0.7, 0.3
    third = {
        n: float(mpmath.diff(lambda a, b: mpmath.sin(a) * mpmath.exp(a * b), (x, w), n))
        for n in ((3, 0), (2, 1), (1, 2))
    }
    g = f.gradient_program
    d = g[g.entry]
    at = {"y": 0.0, "x": x, "w": w, "y_bar": 1.0, "x_bar": 0.0, "w_bar": 0.0}
    h = both(d, at, "x_bar", 1e-11)
    assert h.x.x == pytest.approx(third[3, 0], rel=1e-10)
    assert h.x.w == pytest.approx(third[2, 1], rel=1e-10)
    assert h.w.w == pytest.approx(third[1, 2], rel=1e-10)
    second = d.gradient_program
    e = second[second.entry]
    bars = {"y_bar_": 0.0, "x_bar_": 0.0, "w_bar_": 0.0}
    bars |= {"y_bar_bar": 0.0, "x_bar_bar": 1.0, "w_bar_bar": 0.0}
    found = e.grad(at | bars, loss="x_bar_")
    assert found.x == pytest.approx(third[3, 0], rel=1e-10)
    assert found.w == pytest.approx(third[2, 1], rel=1e-10)


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 10**9))
def test_hessians_of_gradient_programs(seed: int) -> None:
    """Where adjoints have been forgotten and made anew: third derivatives of random programs."""
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    pull = f.pullback(**inputs)
    pull.seed("x2")
    g = f.gradient_program
    entry = g.function(g.entry)
    regs = [*pull.start[: f.function.n_args], *pull.bars.values()]
    values = dressed(entry, {p.name: nested(p.layout, regs) for p in entry.params})
    one, two = (
        g[g.entry].hessian(values, loss="x0_bar", wrt=["x0", "x1", "x2"], method=w) for w in WAYS
    )
    assert apart(one, two) <= 1e-8


# ---------------------------------------------------------------- which way, and what is refused


def long(f: FunctionHandle, n: int) -> rvm.Result:
    return f.hessian(loss="y", y=0.0, x=1.5, n=n)


def test_the_way_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs by Taylor propagation, long ones and many numbers by derived programs."""
    taken = []

    def watched(pull: Any, loss: str) -> Any:
        taken.append(pull.ticks)
        return propagate(pull, loss)

    monkeypatch.setattr("rvm.hessians.propagate", watched)
    f = function("""
    func main(y: f64, x: f64, n: i64)
        for i = 1 to n
            add y, x ** 2
        end
    """)
    assert long(f, 10).x.x == pytest.approx(20.0)
    assert len(taken) == 1
    n = MOST_TICKS
    assert long(f, n).x.x == pytest.approx(2.0 * n)
    assert len(taken) == 1
    many = function("func main(y: f64, x: f64[n])\n    add y, sum(x * x)\n")
    h = many.hessian(loss="y", wrt=["y"], y=0.0, x=np.ones(MOST_NUMBERS))
    assert h.y.y == 0.0
    assert len(taken) == 1


def test_what_taylor_refuses_goes_the_other_way() -> None:
    @rvm.opcode(inverse="unboth")
    def both_if(c: rvm.Use, a: rvm.Mut, b: rvm.Mut) -> None:
        with rvm.when(c > 0):
            a += c * c
            b += a * a

    @rvm.opcode(inverse="both_if")
    def unboth(c: rvm.Use, a: rvm.Mut, b: rvm.Mut) -> None:
        with rvm.when(c > 0):
            b -= a * a
            a -= c * c

    f = function("func main(a: f64, b: f64, c: f64)\n    both_if c, a, b\n")
    at = {"a": 0.5, "b": 0.25, "c": 2.0}
    with pytest.raises(rvm.DefinitionError, match="several statements within one condition") as e:
        f.hessian(at, loss="b", method="taylor")
    assert e.value.code == "D012"
    assert e.value.where is not None and e.value.where.line == 2
    # b + (a + c²)²
    h = f.hessian(at, loss="b")
    assert h.c.c == pytest.approx(4 * 0.5 + 12 * 4.0)


def test_matrices_that_are_too_large_are_refused() -> None:
    f = function("func main(y: f64, x: f64[n])\n    add y, sum(x * x)\n").with_options(
        max_memory=100_000
    )
    x = np.ones(200)
    with pytest.raises(rvm.LimitError) as e:
        f.hessian(loss="y", y=0.0, x=x, method="taylor")
    assert e.value.code == "R011"


def test_there_is_no_other_way() -> None:
    f = rvm.assemble(FOUR)["four"]
    with pytest.raises(rvm.UsageError) as e:
        f.hessian(loss="a", a=0.0, b=2.0, c=1.0, d=3.0, method="guess")
    assert e.value.code == "U017"


@pytest.mark.parametrize("way", WAYS)
def test_values_that_do_not_come_back(way: str) -> None:
    f = function("""
    func main(y: f64, x: f64, n: i64)
        for i = 1 to n
            mul x, 0.5
            add x, 0.3
            add y, x ** 2
        end
    """)
    with pytest.raises(rvm.InvertibilityError) as e:
        f.hessian(loss="y", y=0.0, x=1.1, n=60, method=way)
    assert e.value.code == "R017"


def test_strict_mode_takes_taylor_back_exactly() -> None:
    """The walk back is the machine's own, log and all: what contracts is no trouble."""
    f = function("""
    func main(y: f64, x: f64, n: i64)
        for i = 1 to n
            mul x, 0.5
            add x, 0.3
            add y, x ** 3
        end
    """).with_options(strict=True)
    h = f.hessian(loss="y", y=0.0, x=1.1, n=60, method="taylor")
    with mpmath.workdps(60):
        total, x = mpmath.mpf(0), mpmath.mpf(1.1)
        for k in range(1, 61):
            x = x / 2 + mpmath.mpf(0.3)
            total += 6 * x * mpmath.mpf(0.25) ** k
    assert h.x.x == pytest.approx(float(total), rel=1e-13)


def test_slots_are_given_back() -> None:
    """However long the run, the field is as large as what is live at a time."""
    f = function("""
    func main(y: f64, x: f64, n: i64)
        for i = 1 to n
            alloc t: f64 = sin(x)
            alloc a: f64[3] = t
            add y, sum(a * a) * t
            free a = t
            free t = sin(x)
        end
    """)
    tops = []
    for n in (2, 50):
        pull = Pullback(f, {"y": 0.0, "x": 0.5, "n": n}, f.options)
        tops.append(propagate(pull, "y").field.top)
    assert tops[0] == tops[1] < 16


def test_operations_grow_with_what_is_touched() -> None:
    """An update costs so many operations for each slot in use, not their square."""
    counts = []
    for size in (64, 256):
        field = Field()
        field.new((size,), False)
        before = field.operations
        field.gain(0, [(1, 2.0)], [(1, 1, 0.5)])
        counts.append(field.operations - before)
    assert 3 < counts[1] / counts[0] < 5


# ---------------------------------------------------------------- Jacobians


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**9))
def test_rows_and_columns_agree(seed: int) -> None:
    """Many as lanes, few one by one; backwards too."""
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    for g, at in ((f, inputs), (~f, dict(f(**properties.copied(inputs))))):
        every = g.jacobian(at)
        some = ["x0", "u"]
        assert len(some) <= FEW
        columns, rows = g.jacobian(at, wrt=some), g.jacobian(at, of=["x0"], wrt=None)
        for y in every:
            for x in some:
                assert np.allclose(every[y][x], columns[y][x], rtol=1e-9, atol=1e-9)
        for x in every:
            assert np.allclose(every["x0"][x], rows["x0"][x], rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- names


def test_parameters_called_as_arguments_are() -> None:
    f = function("""
    func main(loss: f64, wrt: f64, engine: f64, given: f64, tangents: f64)
        add loss, wrt * wrt * engine + given * tangents
    """)
    at = {"loss": 1.0, "wrt": 2.0, "engine": 3.0, "given": 5.0, "tangents": 7.0}
    assert f.grad(at, loss="loss", wrt=["wrt"]) == {"wrt": 12.0}
    value, g = f.value_and_grad(at, loss="loss")
    assert (value, g.given, g.tangents) == (1.0 + 12.0 + 35.0, 7.0, 5.0)
    assert f.vjp({"loss": 2.0}, at).engine == 8.0
    assert f.jvp({"wrt": 1.0}, at)[1].loss == 12.0
    assert f.jacobian(at, of=["loss"], wrt=["wrt"]).loss.wrt == 12.0
    assert f.hessian(at, loss="loss").wrt.engine == 4.0
    assert f.hvp({"wrt": 1.0}, at, loss="loss").wrt == 6.0
    # Half of them by name; options go by name as ever.
    rest = {"given": 5.0, "tangents": 7.0, "engine": 3.0}
    some = {"loss": 1.0, "wrt": 2.0}
    assert f.grad(some, loss="loss", strict=True, **rest).wrt == 12.0
    with pytest.raises(rvm.UsageError, match="twice"):
        f.grad(at, loss="loss", given=5.0)
    with pytest.raises(rvm.UsageError, match="one mapping"):
        f.grad(1.0, loss="loss")  # type: ignore[arg-type]


@pytest.mark.soak
def test_many_random_programs() -> None:
    rng = random.Random(20260301)
    for _ in range(300):
        seed = rng.randrange(10**9)
        f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
        both(f, inputs, rng.choice(LOSSES))
