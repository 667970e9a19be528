"""The estimate of a gradient's error against mpmath: on programs that are hard, and random ones."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients.estimated import program
from gradients.hard import HARD, Hard
from gradients.lost import program as lost
from sizes import thin, wide

import rvm
from rvm.derive import estimate, evidence
from rvm.engines import executing
from rvm.isa.rows import FUNCTIONS

ALL = {**HARD, **{f"random {seed}": program(seed) for seed in range(200 - len(HARD))}}
ENGINES = [e for e in executing() if e != "native"]
"""Those that need not compile code for each of some runs."""
LOST = {f"lost {seed}": lost(seed) for seed in range(240)}
SAMPLE = [name for k, name in enumerate(ALL) if k % 9 == 0]


def ratios(h: Hard) -> Iterator[float]:
    """The estimated errors by the true ones, of whatever the gradient comes to."""
    at = {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}
    g = h.handle().grad(at, loss="y", error=True, tolerance=math.inf)
    for k, truth in zip("xp", h.truth(), strict=True):
        error = g.info.error[k]
        assert error >= 4 * 2.0**-52 * abs(g[k])
        yield error / abs(g[k] - truth) if g[k] != truth else math.inf


@thin
@pytest.mark.parametrize("name", SAMPLE)
def test_estimates_are_not_below_a_tenth_of_the_error(name: str) -> None:
    for ratio in ratios(ALL[name]):
        assert ratio >= 0.1


@pytest.mark.deep
def test_estimates_of_two_hundred_programs() -> None:
    """None is below a tenth of the true error; most are within two orders of magnitude above it."""
    found = np.array([ratio for h in ALL.values() for ratio in ratios(h)])
    assert len(ALL) == 200 and found.min() >= 0.1
    finite = found[np.isfinite(found)]
    assert np.quantile(finite, 0.5) < 20 and np.quantile(finite, 0.9) < 200


ABSORBING = {
    "parameter": "x: f64",
    "ancilla": "alloc x: f64",
}
"""Where a small number is that an adjoint reads, and that a large one is added to afterwards."""


@pytest.mark.parametrize("place", ABSORBING)
def test_what_the_check_does_not_see_the_estimate_does(place: str) -> None:
    """A loss that comes back shows what was absorbed, unless it is large beside that itself."""
    first = ABSORBING[place]
    parameters, begin, end = (first, "", "") if ":" in first[:2] else ("u: f64", first, "free x")
    body = [begin, "add x, z", "add y, x ** 2", "add x, w"]
    # Not undone in the opposite order, which would keep a copy.
    body += ["add u, x", "sub x, z", "sub x, w", end] if end else []
    lines = "".join(f"    {line}\n" for line in body if line)
    f = rvm.assemble(f"func f(y: f64, z: f64, w: f64, {parameters})\n{lines}").f
    at = {"z": 0.3, "w": 1e17, parameters[0]: 0.0, "loss": "y"}
    assert f.grad(y=0.0, **{**at, "w": 1.0}).z == pytest.approx(0.6)
    for y in (0.0, 1.0, 1e10):
        with pytest.raises(rvm.InvertibilityError, match="R017"):
            f.grad(y=y, **at)
    accepted = f.grad(y=1e12, **at)
    assert accepted.z == 0.0 and accepted.info.error.z > 0.6


def test_what_the_run_forwards_absorbs_is_in_the_estimate() -> None:
    text = "    add x, z\n    add x, w\n    add y, (x - w) ** 2\n"
    f = rvm.assemble(f"func f(y: f64, x: f64, z: f64, w: f64)\n{text}").f
    g = f.grad(y=0.0, x=0.0, z=0.3, w=1e17, loss="y")
    assert g.z == 0.0 and g.info.error.z > 0.6


@thin
@pytest.mark.parametrize("seed", range(12))
def test_estimates_see_what_is_lost(seed: int) -> None:
    """Adjoints that rounding made 0 have an error, too: what was absorbed, cancelled, too small."""
    assert_told(LOST[f"lost {seed}"])


def assert_told(h: Hard) -> None:
    at = {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}
    try:
        g = h.handle().grad(at, loss="y", error=True, tolerance=math.inf)
    except rvm.RvmError:
        # A division by what has become 0.
        return
    for k, truth in zip("xp", h.truth(), strict=True):
        if math.isfinite(g[k]):
            assert 0.1 * abs(g[k] - truth) <= g.info.error[k], (h.body, k, g[k], truth)


@pytest.mark.deep
def test_estimates_of_programs_that_lose_numbers() -> None:
    for h in LOST.values():
        assert_told(h)


FLOATS = """
func whole(y: f64, x: f64, k: f64)
    add k, 1.0
    add y, x ** (k - 2.0)

func counted(y: f64, x: f64, n: i64)
    alloc t: f64
    from t == 0.0
        add t, 1.0
        add y, x * t
    until t == f64(n)
    free t = f64(n)
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_exact_is_not_moved(engine: str) -> None:
    """Whole numbers in floats stay whole: exponents, and counters that are compared."""
    lib = rvm.assemble(FLOATS)
    g = lib.whole.grad(loss="y", y=0.0, x=-2.0, k=4.0, engine=engine)
    assert g.x == 12.0 and 0 < g.info.error.x < 1e-13
    g = lib.counted.grad(loss="y", y=0.0, x=0.3, n=10, engine=engine)
    assert g.x == 55.0 and 0 < g.info.error.x < 1e-12


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_too_small_to_be_a_number_counts(engine: str) -> None:
    f = rvm.assemble("""
func f(y: f64, x: f64)
    add y, exp(-800.0 * x) * 1e300
""").f.with_options(engine=engine)
    g = f.grad(loss="y", y=0.0, x=1.0)
    with mpmath.workdps(50):
        truth = -800 * mpmath.exp(-800) * mpmath.mpf(10) ** 300
        assert g.x == 0 and 0.1 * abs(truth) <= g.info.error.x < 1e-10


CANCELLED = {
    "tanh(x) / x - 1.0": lambda x: mpmath.tanh(x) / x - 1,
    "(x - sin(x)) / x ** 3": lambda x: (x - mpmath.sin(x)) / x**3,
    "sin(x) * sin(x) - x * x": lambda x: mpmath.sin(x) ** 2 - x * x,
}
"""What is left of nearly equal numbers, and of their derivatives: rounding, or nothing."""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("text", CANCELLED)
def test_what_cancels_counts(text: str, strict: bool) -> None:
    f = rvm.assemble(f"func f(y: f64, x: f64)\n    add y, {text}\n").f.with_options(strict=strict)
    for x in (1e-9, 1.64e-10, 3e-6, 0.25):
        g = f.grad(loss="y", y=0.0, x=x)
        with mpmath.workdps(80):
            off = abs(g.x - mpmath.diff(CANCELLED[text], mpmath.mpf(x)))
            assert 0.1 * off <= g.info.error.x < math.inf, x


@thin
@pytest.mark.parametrize("name", ["relax 60", "friction 1000", "momentum 400", "pendulum 1000"])
def test_estimates_of_strict_gradients(name: str) -> None:
    """Where values come back by the log, what is left is small, and no other is told."""
    h = HARD[name]
    at = {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}
    g = h.handle().with_options(strict=True).grad(at, loss="y", error=True)
    for k, truth in zip("xp", h.truth(), strict=True):
        assert 0.1 * abs(g[k] - truth) <= g.info.error[k] <= 1e-9 * max(1.0, abs(truth))


ZEROS = {
    "lgamma(x)": (lambda x: mpmath.log(abs(mpmath.gamma(x))), (-2.457, -2.7477, -3.1436, -3.955)),
    "digamma(x)": (mpmath.digamma, (-0.504, -1.5735, -2.6107, -20.7)),
    "polygamma(2.0, x)": (lambda x: mpmath.psi(2, x), (-0.5, -1.52, -7.55)),
    "polygamma(4.0, x)": (lambda x: mpmath.psi(4, x), (-0.5, -2.5)),
}
"""Functions by terms that cancel below 0, and about where they are zero."""


def test_functions_that_cancel() -> None:
    assert {name for name, row in FUNCTIONS.items() if row.cancels} == {
        call.partition("(")[0] for call in ZEROS
    }


@thin
@pytest.mark.parametrize("call", ZEROS)
def test_estimates_next_to_zeros_of_a_function(call: str) -> None:
    """There the rounding of the terms counts, which that of the result says nothing of."""
    exact, about = ZEROS[call]
    f = rvm.assemble(f"func f(y: f64, x: f64, p: f64)\n    add y, {call} * p\n").f
    for start in about:
        with mpmath.workdps(50):
            zero = float(mpmath.findroot(exact, start))
            for x in [zero + k * 2.0**-j for j in (52, 50, 40, 20) for k in (0, 1, -1, 3)]:
                g = f.grad(loss="y", y=0.0, x=x, p=0.3)
                slope, steep = mpmath.diff(exact, x), abs(mpmath.diff(exact, x, 2))
                for k, truth in ("x", 0.3 * slope), ("p", exact(mpmath.mpf(x))):
                    error = g.info.error[k]
                    assert 0.1 * abs(g[k] - truth) <= error, (k, x)
                    assert error <= 1e-14 * abs(x) * (1 + abs(slope) + steep), (k, x)


# ---------------------------------------------------------------- where none is needed

LEAPFROG = """
func f(y: f64, q: f64, v: f64, n: i64)
    for i = 1 to n
        add v, -0.05 * q
        add q, 0.1 * v
        add v, -0.05 * q
    end
    add y, q * q + v
"""
PENDULUM = """
func f(y: f64, q: f64, v: f64, n: i64)
    for i = 1 to n
        sub v, 0.05 * sin(q)
        add q, 0.05 * v
    end
    add y, cos(q) + v * v
"""


def forbidden(*args: Any) -> None:
    raise AssertionError("a rerun was made")


@wide
@pytest.mark.parametrize("engine", executing(loops=False))
def test_what_comes_back_passes_without_reruns(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leapfrog, a pendulum from rest, bodies and a mixture of Gaussians: the gate suffices."""
    monkeypatch.setattr(evidence, "again", forbidden)
    monkeypatch.setattr(estimate.Estimate, "_change", forbidden)
    for text in (LEAPFROG, PENDULUM):
        f = rvm.assemble(text).f.with_options(engine=engine)
        for _ in range(2):
            assert f.grad(loss="y", y=0.0, q=1.0, v=0.0, n=2_000).y == 1.0
    if engine == "native":
        # Compiling the large ones takes longer than all else here.
        return
    bodies = rvm.load("examples/leapfrog.rasm").main.with_options(engine=engine)
    assert bodies.grad(loss="after", before=0.0, after=0.0, steps=50).after == 1.0
    gmm = rvm.load("examples/gradients/gmm.rasm").gmm.with_options(engine=engine)
    rng = np.random.default_rng(3)
    n, d, k = 20, 2, 3
    points = {"alphas": rng.normal(size=k), "means": rng.normal(size=(k, d))}
    points |= {"icf": rng.normal(scale=0.3, size=(k, 3)), "x": rng.normal(size=(n, d))}
    assert gmm.grad(points, loss="y", y=0.0, gamma=1.0, m=0).y == 1.0


# ---------------------------------------------------------------- as results

RECORDS = rvm.assemble("""
record P
    a: f64
    z: c128
end
func f(p: P, x: f64[n], s: stack[f64], y: f64)
    mul p.a, 1.1
    add y, sum(sin(x)) * p.a + p.z.re
    alloc t: f64
    pop t, s
    add y, t * t
    push t, s
    free t

func g(x: f64[n], y: f64, error: f64)
    add y, sum(sin(x)) * error
""")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_is_a_result_like_the_gradient(engine: str) -> None:
    lib, x = RECORDS, np.linspace(1, 2, 4)
    given = {"p": {"a": 1.0, "z": 1j}, "x": x, "s": [1.0, 2.0], "y": 0.1}
    for _ in range(2):
        g = lib.f.grad(given, loss="y", engine=engine)
        e = g.info.error
        assert list(e) == list(g) and list(e.p) == ["a", "z"] and e.x.shape == (4,)
        assert len(e.s) == 2 and type(e.p.z) is float and type(e.y) is float
        assert 0 < e.p.a < 1e-13 and (e.x < 1e-14).all()
        only = lib.f.vjp({"y": 2.0}, given, wrt=["x"], engine=engine).info.error
        assert list(only) == ["x"]
        # A parameter of the name stays one.
        g = lib.g.grad(loss="y", x=x, error=3.0, y=0.1, engine=engine)
        assert g.error == pytest.approx(np.sin(x).sum()) and g.info.error.error < 1e-13
        pull = lib.g.pullback(x=x, error=3.0, y=0.1, engine=engine)
        pull.seed("y")
        assert pull().info.error.error == g.info.error.error
        copies = [pickle.loads(pickle.dumps(g)), copy.deepcopy(g)]
        assert all(c.info.error.error == g.info.error.error for c in copies)
    assert lib.g(x=x, error=3.0, y=0.1, engine=engine).info.error is None


@wide
@pytest.mark.parametrize("engine", ENGINES)
def test_errors_of_lanes_are_those_of_single_gradients(engine: str) -> None:
    h = HARD["relax 20"]
    f = h.handle().with_options(engine=engine)
    xs = np.array([h.x, 0.3, 2.0])
    g = f.map.grad(loss="y", y=0.0, x=xs, p=h.p, n=20)
    singles = [f.grad(loss="y", y=0.0, x=x, p=h.p, n=20) for x in xs.tolist()]
    found = g.info.error
    assert found is not None and list(found) == list(g)
    assert found.x.tolist() == [s.info.error.x for s in singles]
    assert found.p == sum(s.info.error.p for s in singles)
    kept = pickle.loads(pickle.dumps(g))
    assert kept.info.error.p == found.p
    xs[0] = 7.0
    with pytest.raises(rvm.UsageError) as caught:
        _ = pickle.loads(pickle.dumps(f.map.grad(loss="y", y=0.0, x=xs, p=h.p, n=20))).info.error.x
        late = f.map.grad(loss="y", y=0.0, x=xs, p=h.p, n=20)
        xs[0] = 8.0
        _ = late.info.error
    assert caught.value.code == "U018"
    at_once = f.map.grad(loss="y", y=0.0, x=xs, p=h.p, n=20, error=True)
    xs[0] = h.x
    assert at_once.info.error.x[1:].tolist() == found.x[1:].tolist()
    # Below what values that are back promise each lane is looked at.
    wave = rvm.assemble("func f(y: f64, x: f64)\n    add y, sin(1e8 * x)\n").f.map
    wave = wave.with_options(engine=engine)
    assert wave.grad(loss="y", y=0.0, x=xs, tolerance=1e-5)
    with pytest.raises(rvm.RvmError) as refused:
        wave.grad(loss="y", y=0.0, x=xs, tolerance=1e-11)
    assert refused.value.code == "R017"


def test_engines_estimate_alike() -> None:
    """Perturbed rounding is a hash of bits, the same on all."""
    h = HARD["relax 20"]
    at = {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}
    found = {e: h.handle().grad(at, loss="y", engine=e).info.error for e in executing()}
    assert all(e == found["reference"] for e in found.values())


def test_it_is_of_the_inputs_that_the_gradient_was_of() -> None:
    """Arrays are not copied, so a change of them since is an error, and not another estimate."""
    f = rvm.assemble("func f(x: f64[n], y: f64)\n    add y, sum(sin(x)) ** 2\n").f
    for engine in ENGINES:
        for _ in range(2):
            x = np.linspace(1, 2, 4)
            now = f.grad(loss="y", x=x, y=0.1, engine=engine, error=True)
            later = f.grad(loss="y", x=x, y=0.1, engine=engine)
            kept = pickle.loads(pickle.dumps(later))
            spoilt = f.grad(loss="y", x=x.copy(), y=0.1, engine=engine)
            spoilt.x[0] = 7.0
            x[0] = 3.0
            assert (now.info.error.x > 0).all()
            assert (kept.info.error.x == now.info.error.x).all()
            for g in (later, spoilt):
                try:
                    assert (g.info.error.x == now.info.error.x).all()
                except rvm.UsageError as error:
                    assert error.code == "U018"
                else:
                    # An ordinary run has copies of its inputs.
                    assert g is later


ABSORBED = """
func f(y: f64[n], x: f64[n], w: f64)
    for i = 0 to n - 1
        add y[i], (1e17 + x[i] - 1e17) * w
    end
"""
"""The gradient does not depend on the last bits of 10¹⁷ + x, but its error is x."""


@pytest.mark.parametrize("small", [evidence.SMALL, 0])
def test_changes_that_leave_the_gradient_as_it_was_are_seen(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an array that is not small the marks are sums, of rows of words and of what is left."""
    monkeypatch.setattr(evidence, "SMALL", small)
    monkeypatch.setattr(evidence, "WIDTH", 2)
    size = 3
    f, ones = rvm.assemble(ABSORBED).f, np.ones(size)
    for engine in executing(loops=False):
        g = f.with_options(engine=engine)
        ways: list[Callable[..., Any]] = [
            lambda g, **at: g.grad(at, loss="y[0]"),
            lambda g, **at: g.value_and_grad(at, loss="y[0]")[1],
            lambda g, **at: g.vjp({"y": ones}, at),
            lambda g, **at: g.map.grad(**at | {"w": np.array([0.5, 2.0])}, loss="y[0]"),
        ]
        for way in ways:
            for name in "yx":
                at = {"y": np.zeros(size), "x": np.full(size, 0.75), "w": 0.5}
                now, later = way(g.with_options(error=True), **at), way(g, **at)
                at[name][-1] = 0.001
                try:
                    errors = later.info.error
                    assert all(np.array_equal(errors[k], v) for k, v in now.info.error.items())
                except rvm.UsageError as error:
                    assert error.code == "U018"


CONTRACTING = """
func f(y: T, x: T, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, x * x
    end

func z(y: f64, x: c128, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, real(x * x) + imag(x)
    end
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_types_that_round_differently(engine: str) -> None:
    """f32 is held against f64, a complex function against its formula."""
    wide, short = (
        rvm.assemble(CONTRACTING.replace("T", t)).f.with_options(engine=engine, tolerance=math.inf)
        for t in ("f64", "f32")
    )
    for n in (3, 8, 12):
        x = float(np.float32(1.1))
        truth = wide.grad(loss="y", y=0.0, x=x, n=n).x
        g = short.grad(loss="y", y=0.0, x=x, n=n)
        # Constants are others there, by half a unit in the last place.
        assert 0.1 * abs(g.x - truth) <= g.info.error.x + 1e-7
        assert g.info.error.x <= 1e3 * 2.0 ** (n - 24)
    f = rvm.assemble(CONTRACTING.replace("T", "f64")).z.with_options(engine=engine)
    for n in (5, 20):
        g = f.grad(loss="y", y=0.0, x=1.1 + 0.7j, n=n, tolerance=math.inf)
        truth, at = 0.0j, 1.1 + 0.7j
        for k in range(1, n + 1):
            at = at * 0.5 + 0.3
            truth += 0.5**k * complex(2 * at.real, -2 * at.imag + 1)
        error = g.info.error.x
        assert type(error) is float and 0.1 * abs(g.x - truth) <= error <= 1e-13 * 2.0**n


def test_logarithms_have_errors_too() -> None:
    f = rvm.assemble("""
func f(y: log64, x: log64, n: i64)
    for i = 1 to n
        mul y, x
    end
""").f
    g = f.grad(loss="y", y=1.0, x=2.0, n=3)
    assert g.x == 3.0 and 0 < g.info.error.x < 1e-14


@pytest.mark.parametrize("tolerance", [1e-7, 1e-13])
def test_other_doors_take_the_same_tolerance(tolerance: float) -> None:
    h = HARD["relax 20"]
    at = {"y": 0.0, "x": h.x, "p": h.p, "n": 20}
    f = h.handle()
    by_hand = f.gradient_program.f_gradient.with_options(tolerance=tolerance)
    step = rvm.assemble("""
func step(y: f64[k], x: f64[k], n: i64)
    add y, x
    for i = 1 to n
        mul y[0], 0.5
        add y[0], 0.3
        add y[1], y[0] * y[0] * x[1]
    end
""").step.with_options(tolerance=tolerance)
    run = rvm.pebble.iterate(step, 3, pebbles=2)

    def chain() -> Any:
        loss = lambda s: (float(s.sum()), np.ones(2))  # noqa: E731
        return run.gradient(np.array([0.7, 1.3]), loss, constants={"n": 20})

    doors = (lambda: by_hand(**at, y_bar=1.0, x_bar=0.0, p_bar=0.0), chain)
    for door in doors:
        if tolerance == 1e-7:
            door()
        else:
            with pytest.raises(rvm.InvertibilityError) as caught:
                door()
            assert caught.value.code == "R017"
