"""The numeric examples: their results against other sources."""

from __future__ import annotations

import cmath
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from programs.both_ways import ENGINES, load
from sizes import thin

import rvm

EXAMPLES = Path(__file__).parents[2] / "examples"
each_engine = pytest.mark.parametrize("engine", ENGINES)


def example(name: str) -> rvm.Library:
    return load(EXAMPLES / f"{name}.rasm")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------ linear algebra


@each_engine
def test_norm_and_fma_are_those_of_numpy(engine: str) -> None:
    x, y, z = rng().normal(size=(3, 50))
    out = example("norm").length(r=0.0, y=0.0, x=x, engine=engine)
    assert math.isclose(out.r, np.linalg.norm(x), rel_tol=1e-14)
    assert example("norm").norm(y=0.0, x=x, engine=engine).y == out.y
    out = example("fma").fma(s=1.0, a=2.5, x=x, y=y, z=z, engine=engine)
    assert math.isclose(out.s, 1 + z @ (2.5 * x + y), rel_tol=1e-12)


@each_engine
def test_affine_and_matmul_by_loops_are_those_of_numpy(engine: str) -> None:
    a, b, c = rng().normal(size=(3, 4, 4))
    wanted = c + a @ b
    for f in (example("matmul").matmul, example("matmul").by_loops):
        assert np.allclose(f(C=c.copy(), A=a, B=b, engine=engine).C, wanted, rtol=1e-13)
    y, b, x = rng(2).normal(size=(3, 4))
    for f in (example("affine").affine, example("affine").by_loops):
        assert np.allclose(f(y=y.copy(), W=a, b=b, x=x, engine=engine).y, y + a @ x + b)


@each_engine
def test_givens_is_a_product_of_rotations_and_its_inverse_the_transposed(engine: str) -> None:
    n = 6
    t = rng().uniform(-3, 3, n * (n - 1) // 2)
    product, k = np.eye(n), 0
    for j in range(n):
        for i in range(n - 2, j - 1, -1):
            turn = np.eye(n)
            c, s = math.cos(t[k]), math.sin(t[k])
            turn[i : i + 2, i : i + 2] = [[c, -s], [s, c]]
            product = turn @ product
            k += 1
    x = rng(2).normal(size=n)
    umv = example("givens").umv
    assert np.allclose(umv(x=x.copy(), t=t, engine=engine).x, product @ x, atol=1e-14)
    assert np.allclose((~umv)(x=x.copy(), t=t, engine=engine).x, product.T @ x, atol=1e-14)


@thin
@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (1, 1)])
@each_engine
def test_qr_is_that_of_numpy_but_for_signs(shape: tuple[int, int], engine: str) -> None:
    n = shape[1]
    a = rng().normal(size=shape)
    zeros = {"Q": np.zeros(shape), "R": np.zeros((n, n))}
    qr = example("qr").qr
    out = qr(**zeros, A=a.copy(), engine=engine)
    q, r = np.linalg.qr(a)
    signs = np.sign(np.diag(r))
    assert np.allclose(out.Q, q * signs, atol=1e-12)
    assert np.allclose(out.R, r * signs[:, None], atol=1e-12)
    assert np.array_equal(np.tril(out.R, -1), np.zeros((n, n)))
    back = (~qr)(**out, engine=engine)
    assert np.allclose(back.Q, 0, atol=1e-12)
    assert np.allclose(back.A, a, atol=1e-12)


@each_engine
def test_sparse_products_are_the_dense_ones(engine: str) -> None:
    random = rng()
    x, y = random.normal(size=(2, 60)) * (random.random((2, 60)) < 0.3)
    p, q = np.flatnonzero(x), np.flatnonzero(y)
    out = example("sparse_dot").sparse_dot(s=0.0, p=p, x=x[p], q=q, y=y[q], engine=engine)
    assert math.isclose(out.s, x @ y, rel_tol=1e-13)
    a = random.normal(size=(9, 7)) * (random.random((9, 7)) < 0.3)
    a[4] = 0
    rows, column = (k.copy() for k in np.nonzero(a))
    start = np.searchsorted(rows, np.arange(10))
    many = random.normal(size=(7, 3))
    sparse = {"start": start, "column": column, "value": a[rows, column]}
    program = example("sparse_matvec")
    y9 = program.matvec(y=np.zeros(9), **sparse, x=many[:, 0].copy(), engine=engine).y
    assert np.allclose(y9, a @ many[:, 0])
    out = program.matmul(Y=np.zeros((9, 3)), **sparse, X=many, engine=engine)
    assert np.allclose(out.Y, a @ many)


# ------------------------------------------------------------------ functions by series and logs


@each_engine
def test_clog_is_the_complex_logarithm_in_every_quadrant(engine: str) -> None:
    for z in (3 + 4j, -3 + 4j, -3 - 4j, 3 - 4j, 2, -2, 1e-8j, -1e8j):
        got = example("clog").clog(y=0, x=z, engine=engine).y
        assert cmath.isclose(got, cmath.log(z), rel_tol=1e-15, abs_tol=1e-15)


@each_engine
def test_exp_by_its_series_is_that_of_mpmath(engine: str) -> None:
    for x in (-4.0, -0.5, 1e-9, 0.0, 0.3, 1.6, 12.0):
        got = example("exp_taylor").iexp(y=0.0, x=x, engine=engine).y
        wanted = float(mpmath.exp(mpmath.mpf(x)))
        assert math.isclose(got, wanted, rel_tol=1e-14, abs_tol=1e-14), x


@each_engine
def test_exp_in_fixed_point_is_right_to_its_rounding_and_undone_exactly(engine: str) -> None:
    f = example("fixed_exp").fixed_exp
    for x in (-5.0, 0.0, 0.25, 3.5, 13.0):
        out = f(y=rvm.Fixed(12345), x=x, engine=engine)
        wanted = 12345 * Fraction(2) ** -43 + Fraction(float(mpmath.exp(mpmath.mpf(x))))
        terms = 64 * max(1.0, math.exp(x))
        assert abs(float(out.y) - float(wanted)) < terms * 2.0**-43, x
        assert (~f)(**out, engine=engine).y == rvm.Fixed(12345)


def peak(name: str, function: str, **inputs: Any) -> int:
    machine = rvm.Machine(example(name), function, engine="reference", **inputs)
    machine.run()
    return machine.state.account.peak_bytes


def test_series_and_power_use_the_same_memory_however_long_they_are() -> None:
    assert peak("exp_taylor", "iexp", y=0.0, x=0.1) == peak("exp_taylor", "iexp", y=0.0, x=15.0)
    short = peak("log_power", "power", y=0, x=1.01, n=2)
    assert short == peak("log_power", "power", y=0, x=1.01, n=300)


@each_engine
def test_power_through_logarithms_is_the_power(engine: str) -> None:
    f = example("log_power").power
    for x, n in ((1.5, 10), (0.5, 20), (2.0, 17), (1.0009765625, 1000)):
        out = f(y=rvm.Fixed(7), x=x, n=n, engine=engine)
        assert math.isclose(float(out.y), x**n, rel_tol=1e-12, abs_tol=1e-12)
        assert (~f)(**out, engine=engine).y == rvm.Fixed(7)


# ------------------------------------------------------------------ random numbers


@thin
@each_engine
def test_box_muller_makes_normal_numbers_and_the_uniform_ones_again(engine: str) -> None:
    n = 20_000
    u0, v0 = 1 - rng().random(n), rng(2).random(n)
    u, v = u0.copy(), v0.copy()
    f = example("box_muller").box_muller
    f(u=u, v=v, engine=engine)
    radius = np.sqrt(-2 * np.log(u0))
    assert np.allclose(u, radius * np.cos(2 * np.pi * v0), rtol=1e-13, atol=1e-13)
    assert np.allclose(v, radius * np.sin(2 * np.pi * v0), rtol=1e-13, atol=1e-13)
    both = np.concatenate([u, v])
    # Four standard errors of the mean, the variance, the fourth moment and the correlation.
    assert abs(both.mean()) < 4 / math.sqrt(2 * n)
    assert abs(both.var() - 1) < 4 * math.sqrt(2 / (2 * n))
    assert abs((both**4).mean() - 3) < 4 * math.sqrt(96 / (2 * n))
    assert abs((u * v).mean()) < 4 / math.sqrt(n)
    (~f)(u=u, v=v, engine=engine)
    assert np.allclose(u, u0, atol=1e-14)
    assert np.allclose(v, v0, atol=1e-14)


@thin
@each_engine
def test_box_muller_comes_back_bit_for_bit_in_strict_mode(engine: str) -> None:
    u, v = 1 - rng().random(500), rng(2).random(500)
    before = u.tobytes(), v.tobytes()
    machine = rvm.Machine(example("box_muller"), u=u, v=v, engine=engine, strict=True).run()
    assert (u.tobytes(), v.tobytes()) != before
    assert machine.residue_bytes > 0
    machine.run_back()
    assert (u.tobytes(), v.tobytes()) == before
    assert machine.residue_bytes == 0


# ------------------------------------------------------------------ physics


@each_engine
def test_heat_on_a_ring_spreads_as_it_should(engine: str) -> None:
    n, steps, h = 100, 100, math.pi / 100
    c = 0.04 * 0.01 / h**2
    state = np.zeros((steps + 1, n))
    state[0, 50] = 1
    machine = rvm.Machine(
        example("ring_diffusion_step"), "diffuse", state=state, c=c, engine=engine
    )
    machine.run()
    assert math.isclose(state[-1, 50], 0.04421357216, rel_tol=1e-9)
    assert math.isclose(state[-1].sum(), 1, rel_tol=1e-13)
    x = state[0].copy()
    for _ in range(steps):
        x = x + c * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
    assert np.allclose(state[-1], x, rtol=1e-13, atol=1e-16)
    machine.run_back()
    assert np.abs(state[1:]).max() < 1e-15


def total_energy(x: np.ndarray, v: np.ndarray, m: np.ndarray) -> float:
    kinetic = (m[:, None] * v**2).sum() / 2
    pairs = combinations(range(len(m)), 2)
    return float(kinetic - sum(m[i] * m[j] / np.linalg.norm(x[i] - x[j]) for i, j in pairs))


def planets(number: str = "f64") -> dict[str, np.ndarray]:
    dtype = {"f32": np.float32, "f64": np.float64, "fixed": np.int64}[number]
    b = {"x": np.zeros((5, 3), dtype), "v": np.zeros((5, 3), dtype), "m": np.zeros(5, dtype)}
    example("leapfrog")[f"solar_system[{number}]"](b=b)
    return b


def test_the_planets_energy_is_that_of_the_published_program() -> None:
    # The n-body program kicks, then drifts; so does leapfrog between two half kicks.
    program, b, h = example("leapfrog"), planets(), 0.01
    assert f"{total_energy(**b):.9f}" == "-0.169075164"
    program.kick(b=b, h=h / 2)
    program.leapfrog(b=b, h=h, steps=1000)
    (~program.kick)(b=b, h=h / 2)
    assert f"{total_energy(**b):.9f}" == "-0.169087605"
    assert np.allclose((b["m"][:, None] * b["v"]).sum(0), 0, atol=1e-13)


def test_leapfrog_is_that_of_numpy() -> None:
    b, h, steps = planets(), 0.01, 60
    x, v, m = (b[k].copy() for k in "xvm")

    def pulls() -> np.ndarray:
        d = x[None] - x[:, None]
        r = np.linalg.norm(d, axis=2) + np.eye(5)
        return (m[None, :, None] * d / r[..., None] ** 3).sum(1)

    v += pulls() * h / 2
    for _ in range(steps):
        x += v * h
        v += pulls() * h
    v -= pulls() * h / 2
    example("leapfrog").leapfrog(b=b, h=h, steps=steps)
    assert np.allclose(b["x"], x, rtol=1e-12)
    assert np.allclose(b["v"], v, rtol=1e-12)


def test_the_energy_ripples_and_does_not_grow() -> None:
    program, b = example("leapfrog"), planets()
    start, ripple = total_energy(**b), []
    for _ in range(120):
        program.leapfrog(b=b, h=0.01, steps=20)
        ripple.append(abs(total_energy(**b) / start - 1))
    assert 1e-7 < max(ripple) < 1.2e-6
    assert max(ripple[60:]) < 1.1 * max(ripple[:60])


def test_planets_in_floats_drift_and_those_in_fixed_point_do_not() -> None:
    f, b = example("leapfrog").leapfrog, planets()
    before = {k: a.copy() for k, a in b.items()}
    (~f)(**f(b=b, h=0.01, steps=200))
    off = np.abs(b["x"] - before["x"]).max()
    assert 0 < off < 2e-13
    f, b = example("leapfrog")["leapfrog[fixed]"], planets("fixed")
    before = {k: a.tobytes() for k, a in b.items()}
    out = f(b=b, h=0.01, steps=50)
    assert {k: a.tobytes() for k, a in b.items()} != before
    (~f)(**out)
    assert {k: a.tobytes() for k, a in b.items()} == before


def test_planets_in_floats_come_back_bit_for_bit_in_strict_mode() -> None:
    b = planets()
    before = {k: a.tobytes() for k, a in b.items()}
    machine = rvm.Machine(example("leapfrog"), "leapfrog", b=b, h=0.01, steps=20, strict=True)
    machine.run()
    assert {k: a.tobytes() for k, a in b.items()} != before
    machine.run_back()
    assert {k: a.tobytes() for k, a in b.items()} == before


def test_all_number_types_agree_on_the_planets() -> None:
    floats, short, fixed = planets(), planets("f32"), planets("fixed")
    example("leapfrog").leapfrog(b=floats, h=0.01, steps=30)
    example("leapfrog").leapfrog(b=short, h=0.01, steps=30)
    assert short["x"].dtype == np.float32
    assert np.allclose(short["x"], floats["x"], atol=1e-4)
    example("leapfrog")["leapfrog[fixed]"](b=fixed, h=0.01, steps=30)
    assert np.allclose(fixed["x"] * 2.0**-43, floats["x"], atol=1e-8)


# ------------------------------------------------------------------ the Petersen graph

RING = [(i, (i + 1) % 5) for i in range(5)]
EDGES = {frozenset(e) for e in (*RING, *((i, i + 5) for i in range(5)),
                                *((i + 5, (i + 2) % 5 + 5) for i in range(5)))}  # fmt: skip


def petersen_loss(x: np.ndarray) -> float:
    near, far = [], []
    for i, j in combinations(range(10), 2):
        (near if {i, j} in EDGES else far).append(np.linalg.norm(x[i] - x[j]))
    gap = np.mean(near) - np.mean(far) + 0.1
    return float(np.var(near, ddof=1) + np.var(far, ddof=1) + np.exp(max(gap, 0)) - 1)


@each_engine
def test_petersen_loss_is_that_of_numpy_in_every_dimension(engine: str) -> None:
    for k in range(1, 11):
        x = rng(k).normal(size=(10, k))
        out = example("petersen").loss(y=0.0, x=x, engine=engine)
        assert math.isclose(out.y, petersen_loss(x), rel_tol=1e-12)


@each_engine
def test_petersen_loss_is_nothing_for_the_perfect_embedding(engine: str) -> None:
    # The eigenvectors of the adjacency matrix for the eigenvalue 1 span the five dimensions.
    adjacency = np.array([[float({i, j} in EDGES) for j in range(10)] for i in range(10)])
    values, vectors = np.linalg.eigh(adjacency)
    x = np.ascontiguousarray(vectors[:, np.isclose(values, 1)])
    assert x.shape == (10, 5)
    near, far = np.zeros(15), np.zeros(30)
    example("petersen").distances(near=near, far=far, x=x, engine=engine)
    assert np.allclose(far / near[0], math.sqrt(2))
    assert abs(example("petersen").loss(y=0.0, x=x, engine=engine).y) < 1e-15
