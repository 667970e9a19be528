"""Hessians in both ways: Taylor propagation, and tangents of the gradient program."""

from __future__ import annotations

import math
import random
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import mpmath
import numpy as np
import pytest
from attack.programs import smooth
from gradients import properties
from gradients.agreeing import bits
from gradients.programs import PROGRAMS
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples, thin, wide

import rvm
from rvm.derive.gradients import Pullback
from rvm.derive.named import dressed, named_duals, nested
from rvm.derive.sweep import FEW
from rvm.derive.taylor import propagate
from rvm.derive.taylor.field import Field
from rvm.engines.auto import WARM
from rvm.library.handle import FunctionHandle
from rvm.run.lanes import run_lanes
from rvm.run.results import Info

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


def blocks(h: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """The blocks of a Hessian by their path of names."""
    for key, value in h.items():
        if isinstance(value, Mapping):
            yield from blocks(value, f"{name}/{key}")
        else:
            yield f"{name}/{key}", value


def apart(one: Mapping[str, Any], two: Mapping[str, Any]) -> float:
    """How far two Hessians are apart, as a part of their size where that is above one."""
    found, others = dict(blocks(one)), dict(blocks(two))
    assert list(found) == list(others)
    worst = 0.0
    for path in found:
        x, y = np.asarray(found[path]), np.asarray(others[path])
        assert x.shape == y.shape, path
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


@thin
@pytest.mark.parametrize("name", PROGRAMS)
def test_kinds_of_programs(name: str) -> None:
    """Every kind of statement and number."""
    text, inputs, loss = PROGRAMS[name]
    both(rvm.assemble(text).main, inputs, loss, 1e-5 if name in COARSE else 1e-11)


@pytest.mark.deep
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(LOSSES))
def test_random_programs(seed: int, loss: str) -> None:
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    both(f, inputs, loss)
    both(~f, dict(f(**properties.copied(inputs))), loss, 1e-8)


@examples(8)
@given(st.integers(0, 10**9), st.sampled_from(LOSSES))
def test_the_gradient_comes_along(seed: int, loss: str) -> None:
    """By complex numbers, logarithms, records and stacks too."""
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    pull = Pullback(f.target, inputs)
    found = propagate(pull, loss)
    want = f.grad(inputs, loss=loss)
    rows = {}
    for k, bar in pull.bars.items():
        if isinstance(bar, list):
            rows[k] = [found.field.g[s] for s in found.slots[k]]
            continue
        line = found.first(k)
        line = line[0::2] + 1j * line[1::2] if found.wide[k] else line
        rows[k] = line.reshape(np.shape(bar)) if np.ndim(bar) else line[0]
    assert properties.distance(named_duals(f.function, rows, Info()), want) <= 1e-10


def test_hessians_by_complex_numbers() -> None:
    """y += Re(z³ exp(w)): second derivatives by real and imaginary parts, by Cauchy and Riemann."""
    f = function("func main(y: f64, z: c128, w: c128)\n    add y, real(z * z * z * exp(w))\n")
    z, w = 0.7 - 0.4j, 0.3 + 1.1j
    pull = Pullback(f.target, {"y": 0.0, "z": z, "w": w})
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


@wide
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
    d = g[g.program.entry]
    at = {"y": 0.0, "x": x, "w": w, "y_bar": 1.0, "x_bar": 0.0, "w_bar": 0.0}
    h = both(d, at, "x_bar", 1e-11)
    assert h.x.x == pytest.approx(third[3, 0], rel=1e-10)
    assert h.x.w == pytest.approx(third[2, 1], rel=1e-10)
    assert h.w.w == pytest.approx(third[1, 2], rel=1e-10)
    second = d.gradient_program
    e = second[second.program.entry]
    bars = {"y_bar_": 0.0, "x_bar_": 0.0, "w_bar_": 0.0}
    bars |= {"y_bar_bar": 0.0, "x_bar_bar": 1.0, "w_bar_bar": 0.0}
    found = e.grad(at | bars, loss="x_bar_")
    assert found.x == pytest.approx(third[3, 0], rel=1e-10)
    assert found.w == pytest.approx(third[2, 1], rel=1e-10)


def of_a_gradient(seed: int, way: str, **options: Any) -> Any:
    """The Hessian of an adjoint in a random program's gradient."""
    f, inputs = rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed)
    pull = f.pullback(**inputs)
    pull.seed("x2")
    g = f.gradient_program
    entry = g.program.function(g.program.entry)
    regs = [*pull.start[: f.function.n_args], *pull.bars.values()]
    values = dressed(entry, {p.name: nested(p.layout, regs) for p in entry.params})
    made = g[entry.name].with_options(**options)
    return made.hessian(values, loss="x0_bar", wrt=["x0", "x1", "x2"], method=way)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, 2, 9, 10])
def test_hessians_of_gradient_programs(seed: int) -> None:
    """Where adjoints have been forgotten and made anew: third derivatives of random programs.

    In two of them an adjoint cancels to zero and comes back as what rounding left of that.  Columns
    that are zero are then nothing but rounding, which is refused if the whole Hessian is.
    """
    one, two = (of_a_gradient(seed, way, tolerance=math.inf) for way in WAYS)
    assert apart(one, two) <= 1e-8


FLAT = """
func flat(y: f64, x: f64, w: f64, u: f64, z: f64, c: f64[3])
    add z, 1e6
    sub z, 1e6
    alloc a: f64 = x / detach(c[0])
    add y, (u / detach(c[2])) ** 3 + (w / detach(c[1])) * (sin(2 * a) - 2 * sin(a) * cos(a)) + z
    free a = x / detach(c[0])

func lost(y: f64, x: f64, w: f64, u: f64, z: f64, c: f64[3])
    for i = 1 to 40
        add y, 1000 * (u / detach(c[2])) + 1e-4 * (u / detach(c[2])) ** 3
        mul u, 0.5
        add u, 0.3 * detach(c[2])
    end
    call flat(y, x, w, u, z, c)
"""
"""The derivatives by x and w are nothing but rounding, z is not restored, and in `lost` u is off by
10⁻⁴, which matters for second derivatives only."""
UNITS = [(0, 0, 0), (300, 0, 0), (0, 200, -200), (-100, 150, 200)]


def in_units(exps: tuple[int, int, int]) -> dict[str, Any]:
    c = 2.0 ** np.array(exps)
    x, w, u = c * [0.3, 0.7, 1.1]
    return {"y": 0.0, "x": x, "w": w, "u": u, "z": 1.2345678e-9, "c": c}


def test_columns_of_rounding_are_not_refused_in_any_unit() -> None:
    """They count as a part of the largest column."""
    f = rvm.assemble(FLAT).flat
    for at in map(in_units, UNITS):
        a, b, c = at["c"]
        for way in WAYS:
            h = f.hessian(at, loss="y", wrt=["x", "w", "u"], method=way)
            assert abs(h.x.x) * a * a < 1e-14 and abs(h.x.w) * a * b < 1e-14
            assert h.u.u * c * c == pytest.approx(6.6)
        assert abs(f.hvp({"x": a}, at, loss="y").w) * b < 1e-14


def test_columns_that_are_lost_are_refused_in_any_unit() -> None:
    f = rvm.assemble(FLAT).lost
    for at in map(in_units, UNITS):
        for way in WAYS:
            with pytest.raises(rvm.InvertibilityError) as caught:
                f.hessian(at, loss="y", wrt=["x", "w", "u"], method=way)
            assert caught.value.code == "R017"
        assert f.grad(at, loss="y").u * at["c"][2] == pytest.approx(2000, rel=1e-3)


@pytest.mark.deep
@pytest.mark.parametrize("way", WAYS)
def test_hessians_of_a_gradient_program_that_loses_its_start(way: str) -> None:
    """The two ways are off by a factor of 10^4 there, and strict mode by a part in ten."""
    with pytest.raises(rvm.InvertibilityError) as caught:
        of_a_gradient(1, way)
    assert caught.value.code == "R017"


# ---------------------------------------------------------------- which way, and what is refused


def test_derived_programs_are_the_way_unless_another_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = []

    def watched(pull: Any, loss: str) -> Any:
        taken.append(pull.ticks)
        return propagate(pull, loss)

    monkeypatch.setattr("rvm.derive.hessians.propagate", watched)
    f = function("func main(y: f64, x: f64)\n    add y, x ** 2\n")
    assert f.hessian(loss="y", y=0.0, x=1.5).x.x == 2.0 and not taken
    assert f.hessian(loss="y", y=0.0, x=1.5, method="taylor").x.x == 2.0 and len(taken) == 1


def test_the_first_hessian_waits_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many directions are NumPy's lanes at first, and machine code's when they have run a while."""
    from rvm.derive import sweep

    asked = []

    def watched(*args: Any) -> Any:
        asked.append(args[4].engine)
        return run_lanes(*args)

    monkeypatch.setattr(sweep, "run_lanes", watched)
    text = "for i = 0 to n - 1\n        add y, sin(x[i]) * x[i]\n    end\n"
    f = function(f"func main(y: f64, x: f64[k], n: i64)\n    {text}")
    x = np.linspace(0.1, 1.0, 10)
    first = f.hessian(loss="y", wrt=["x"], y=0.0, x=x, n=10).x.x
    assert asked == ["vector"]
    assert np.allclose(np.diag(first), 2 * np.cos(x) - x * np.sin(x), rtol=1e-14)
    monkeypatch.setattr(sweep, "AS_PYTHON", WARM)
    for _ in range(2):
        again = f.hessian(loss="y", wrt=["x"], y=0.0, x=x, n=10).x.x
    assert " ".join(asked) == "vector vector auto"
    assert bits({"h": again}) == bits({"h": first})


@pytest.mark.parametrize("way", WAYS)
def test_every_parameter_with_derivatives_has_a_row(way: str) -> None:
    """Records by their fields, complex numbers by both parts, stacks as rows of numbers."""
    f = rvm.assemble("""
record Body
    pos: f64
    spin: i64
end

func main(y: f64, z: c128, q: fixed, g: log64, p: Body, s: stack[f64], w: c128[k], i: i64)
    add y, abs2(z) + f64(q) * p.pos ** 2 + f64(g) + real(z * w[1] * w[0])
    alloc t: f64
    pop t, s
    add y, 5 * t * t * p.pos
    push t, s
    free t
""").main
    at: dict[str, Any] = {"y": 0.0, "z": 1 - 2j, "q": 0.5, "g": rvm.LogNumber(2.0), "i": 1}
    at |= {"p": {"pos": 4.0, "spin": 2}, "s": [7.0, 8.0], "w": np.array([1j, 2.0])}
    h = f.hessian(at, loss="y", method=way)
    assert list(h) == list(h.z) == ["y", "z", "q", "g", "p", "s", "w"]
    assert list(h.p) == list(h.z.p) == ["pos"]
    want = {
        "zz": [[2, 0], [0, 2]],  # |z|²
        "qp": 8.0,  # 2 pos
        "gg": math.exp(2.0),  # by the logarithm
        "ps": [0, 80],  # 10 t, t = 8 on top
        "ss": [[0, 0], [0, 40]],
        # Re(z w₀ w₁): by z.re and z.im, by w₀ and w₁, by their parts
        "zw": [[[2, 0], [0, -1]], [[0, -2], [-1, 0]]],
    }
    for (a, b), value in want.items():
        row = h.p.pos if a == "p" else h[a]
        assert np.asarray(row.p.pos if b == "p" else row[b]) == pytest.approx(np.array(value)), (
            a + b
        )
    j = f.jacobian(at, of=["y", "s", "w"])
    assert j.y.z.tolist() == [2 * 1 + 0, 2 * -2 - 2] and j.y.p.pos == 2 * 0.5 * 4 + 5 * 64
    assert j.s.s.tolist() == [[1, 0], [0, 1]] and j.w.w.shape == (2, 2, 2, 2)
    assert np.array_equal(j.w.w.reshape(4, 4), np.eye(4))


@pytest.mark.parametrize("n", [0, 1])
def test_empty_arrays_have_empty_blocks(n: int) -> None:
    f = function("func main(y: f64, x: f64[n])\n    add y, sum(x * x)\n")
    x = np.ones(n)
    for way in WAYS:
        h = f.hessian(loss="y", wrt=["x"], y=0.0, x=x, method=way)
        assert h.x.x.tolist() == (2 * np.eye(n)).tolist() and h.x.x.shape == (n, n)
    for outs, ins, want in (("y", "x", [2.0] * n), ("x", "y", [0.0] * n)):
        assert f.jacobian(of=[outs], wrt=[ins], y=0.0, x=x)[outs][ins].tolist() == want


def test_what_taylor_refuses_is_left_to_the_other_way() -> None:
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
        pull = Pullback(f.target, {"y": 0.0, "x": 0.5, "n": n})
        tops.append(propagate(pull, "y").field.top)
    assert tops[0] == tops[1] < 16


def test_operations_grow_with_what_is_touched() -> None:
    """An update costs so many operations for each slot in use, not their square."""
    counts = []
    for size in (64, 256):
        field = Field()
        field.new((size,), False)
        before = field.operations
        field.pull([(0, [(1, 2.0)])], [(1, 1, 0.5)], replace=False)
        counts.append(field.operations - before)
    assert 3 < counts[1] / counts[0] < 5


# ---------------------------------------------------------------- Jacobians


@wide
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
        full = dict(blocks(every))
        for part in (columns, rows):
            for path, block in blocks(part):
                assert np.allclose(full[path], block, rtol=1e-9, atol=1e-9), path


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
