"""The examples with gradients: derivatives against formulas, complex steps and differences."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
import rvm_asm
from programs.both_ways import MODES, Case, agree, cases, from_the_end, load, run
from sizes import sample, sized, some, thin, wide

import rvm
from rvm.codec import decode, encode

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = EXAMPLES / "gradients"
FILES = sorted(HERE.glob("*.rasm"))
SCRIPTS = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in ("common", "svg"))
CASES = [c for f in FILES for c in cases(f)]


def script(name: str) -> ModuleType:
    """A script as a module; scripts find each other as they do when they are run."""
    if str(HERE) not in sys.path:
        sys.path.append(str(HERE))
    return importlib.import_module(name)


common = script("common")


def near(got: Any, expected: Any, within: float) -> bool:
    return bool(common.error(got, expected) <= within)


# ------------------------------------------------------------------ the programs themselves


@thin
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
@sample
@sized
def test_programs_run_both_ways_on_engines_that_agree(case: Case, mode: str) -> None:
    agree(case, mode)


@pytest.mark.parametrize("case", CASES, ids=str)
@some
def test_strict_code_does_the_same_and_the_inverse_goes_back(case: Case) -> None:
    run(replace(case, strict=True), "python", "tolerant")
    from_the_end(case, "python")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_programs_tell_their_idea_and_disassemble(path: Path) -> None:
    idea, blank, *more = path.read_text(encoding="utf-8").splitlines()
    assert idea.startswith("; ") and idea.endswith(".") and blank == ";"
    assert any(line.startswith(("; Source: ", "; Sources: ")) for line in more)
    assert any(c.directive.function == load(path).program.entry for c in cases(path))
    data = encode(load(path))
    assert encode(decode(data)) == data
    assert encode(rvm.assemble(rvm_asm.disassemble(load(path)))) == data


def test_the_table_of_examples_names_every_script_and_program() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in FILES:
        assert f"[`{path.name}`](gradients/{path.name})" in text
    for name in SCRIPTS:
        assert f"[`{name}.py`](gradients/{name}.py)" in text


# ------------------------------------------------------------------ of one idea each


@pytest.mark.parametrize("x", (-2.0, 0.5, 1.6, 5.0))
def test_exp_is_its_own_derivative_twice(x: float) -> None:
    exp = script("exp_taylor")
    want = float(mpmath.exp(x))
    assert near(exp.gradient(x).grad.x, want, 1e-13)
    assert near(exp.second(x), want, 1e-12)


def test_exp_gives_the_digits_of_the_paper_at_1_6() -> None:
    assert script("exp_taylor").gradient(1.6).grad.x == pytest.approx(4.9530324244260555, abs=1e-10)
    assert script("exp_taylor").second(1.6) == pytest.approx(4.95303, abs=5e-6)


@pytest.mark.parametrize("x", (3 + 4j, 2 - 2.3j, -1 + 1e-3j, -0.5j))
def test_the_adjoint_of_a_complex_logarithm(x: complex) -> None:
    h = mpmath.mpf(10) ** -12
    with mpmath.workdps(40):
        for part, of in (("re", mpmath.re), ("im", mpmath.im)):
            by_re = (of(mpmath.log(x + h)) - of(mpmath.log(x - h))) / (2 * h)
            by_im = (of(mpmath.log(x + 1j * h)) - of(mpmath.log(x - 1j * h))) / (2 * h)
            got = script("clog").gradient(x, part).grad.x
            assert got == pytest.approx(complex(by_re, by_im), rel=1e-13)


@pytest.mark.parametrize("shape", ((3, 3), (6, 6), (7, 4)))
def test_qr(shape: tuple[int, int]) -> None:
    qr = script("qr")
    rng = np.random.default_rng(7)
    a, on_q = rng.normal(size=shape), rng.normal(size=shape)
    on_r = np.triu(rng.normal(size=(shape[1], shape[1])))
    g = qr.gradient(a, on_q, on_r)
    assert near(g.loss, qr.loss(a, on_q, on_r), 1e-12)
    assert near(g.grad.A, qr.formula(g.result.Q, g.result.R, on_q, on_r), 1e-12)
    assert near(g.grad.A, common.central(lambda x: qr.loss(x, on_q, on_r), a), 1e-8)


@pytest.mark.parametrize("n", (2, 5, 9))
def test_givens(n: int) -> None:
    givens = script("givens")
    x, t = givens.inputs(n, seed=n)
    g = givens.gradient(x, t)
    by_x, by_t = givens.expected(x, t)
    assert near(g.loss, (givens.matrix(n, t) @ x)[0], 1e-14)
    assert near(g.grad.x, by_x, 1e-14) and near(g.grad.t, by_t, 1e-14)
    assert np.linalg.norm(g.grad.x) == pytest.approx(1.0, abs=1e-14)


def test_sparse_products() -> None:
    sparse = script("sparse")
    rng = np.random.default_rng(3)
    a, b = sparse.vector(rng, 300, 0.1), sparse.vector(rng, 300, 0.15)
    assert len(set(a.places) & set(b.places)) > 3
    g = sparse.dot_gradient(a, b)
    assert near(g.loss, a.dense() @ b.dense(), 1e-14)
    assert near(g.grad.x, b.dense()[a.places], 0) and near(g.grad.y, a.dense()[b.places], 0)
    m = sparse.matrix(rng, (12, 9), 0.1)
    assert 0 in np.diff(m.start)
    for shape in ((9,), (9, 3)):
        x, seed = rng.normal(size=shape), rng.normal(size=(12, *shape[1:]))
        by_a, by_x = sparse.product_adjoints(m, x, seed)
        dense = np.multiply.outer(seed, x) if x.ndim == 1 else seed @ x.T
        assert near(by_a, dense[m.places], 1e-14) and near(by_x, m.dense().T @ seed, 1e-14)


# ------------------------------------------------------------------ Petersen's graph


def test_the_graph_is_petersens() -> None:
    near_pairs = script("petersen").NEAR
    around = {v: {w for pair in near_pairs if v in pair for w in pair} - {v} for v in range(10)}
    for v, w in combinations(range(10), 2):
        assert len(around[v] & around[w]) == (0 if (v, w) in near_pairs else 1)
    assert all(len(a) == 3 for a in around.values())


@pytest.mark.parametrize("k", range(1, 11))
def test_embedding_has_the_gradient_of_the_formula(k: int) -> None:
    petersen = script("petersen")
    x = petersen.start(k, seed=k)
    g = petersen.gradient(x)
    assert near(g.loss, petersen.numpy_loss(x).real, 1e-14)
    assert near(g.grad.x, common.complex_step(petersen.numpy_loss, x), 1e-13)


@pytest.mark.parametrize("k", (2, 5))
def test_embedding_has_the_hessian_of_the_formula(k: int) -> None:
    petersen = script("petersen")
    x, step = petersen.start(k), 1e-6
    h = petersen.second(x)
    assert near(h, h.T, 1e-13)
    for n in (0, 3, 10 * k - 1):
        d = np.zeros(x.shape)
        d.flat[n] = step
        there, here = (common.complex_step(petersen.numpy_loss, x + s * d) for s in (1, -1))
        assert near(h[n], (there - here).ravel() / (2 * step), 1e-7)
    for axis in range(k):
        shift = np.zeros(x.shape)
        shift[:, axis] = 1
        assert np.abs(h @ shift.ravel()).max() < 1e-12


@wide
def test_training_in_five_dimensions_ends_at_the_square_root_of_two() -> None:
    pytest.importorskip("scipy", reason="needs SciPy's minimize")
    petersen = script("petersen")
    t = petersen.train(petersen.start(5, seed=0))
    assert t.losses[0] > 1 and t.losses[t.by_bfgs] < 1e-18 and t.losses[-1] < 1e-29
    assert t.ratio == pytest.approx(math.sqrt(2), abs=1e-14)
    for pairs in (petersen.NEAR, petersen.FAR):
        assert np.ptp(petersen.distances(t.x, pairs)) < 1e-13


# ------------------------------------------------------------------ planets


@wide
@pytest.mark.parametrize("steps", (1, 40))
def test_planets_have_the_gradient_of_complex_steps(steps: int) -> None:
    solar = script("solar")
    g = solar.gradient(steps)
    for part in ("x", "v", "m"):
        assert near(g.grad.b[part], solar.numpy_gradient(steps, part), 1e-12), part


@wide
def test_planets_obey_galileos_laws() -> None:
    """All moved or pushed together, Saturn moves as they do, whatever the forces."""
    solar = script("solar")
    steps = 200
    g = solar.gradient(steps)
    assert g.grad.b["x"].sum(0) == pytest.approx([1, 0, 0], abs=1e-10)
    assert g.grad.b["v"].sum(0) == pytest.approx([steps * solar.STEP, 0, 0], abs=1e-9)


def test_planets_take_as_much_memory_through_any_number_of_steps() -> None:
    solar = script("solar")
    short, long = solar.gradient(10), solar.gradient(160)
    assert short.bytes == long.bytes
    assert long.ratio < 5  # in steps: common parts are computed once, by steps of their own
    start = solar.giants()
    assert all(np.array_equal(start[k], solar.giants()[k]) for k in start)


@wide
def test_adjoints_on_the_way_back_are_gradients_of_what_is_left() -> None:
    solar = script("solar")
    begin = solar.giants()
    for moment in solar.back(60, 20):
        left = solar.gradient(moment.before, b=moment.b)
        for part in ("x", "v", "m"):
            assert near(moment.adjoint[part], left.grad.b[part], 1e-11)
    assert moment.before == 60
    assert near(moment.b["x"], begin["x"], 1e-13)


@pytest.mark.soak
def test_planets_through_ten_thousand_steps() -> None:
    solar = script("solar")
    steps = 10_000
    g = solar.gradient(steps)
    assert g.bytes == solar.gradient(10).bytes
    assert near(g.grad.b["v"], solar.numpy_gradient(steps, "v"), 1e-8)


# ------------------------------------------------------------------ ADBench


@thin
@pytest.mark.parametrize("n", range(1, 20))
def test_log_gamma_at_halves(n: int) -> None:
    got = rvm.load(HERE / "gmm.rasm").log_gamma(y=0.0, n=n).y
    assert got == pytest.approx(math.lgamma(n / 2), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize(("n", "d", "k", "m"), ((8, 1, 1, 0), (20, 2, 3, 2), (15, 4, 2, 1)))
def test_gaussian_mixture(n: int, d: int, k: int, m: int) -> None:
    gmm = script("gmm")
    values = gmm.inputs(n, d, k, seed=d) | {"gamma": 1.3, "m": m}
    g = gmm.gradient(values)
    assert near(g.loss, gmm.formula(values), 1e-13)
    for name in (*gmm.PARAMETERS, "x", "gamma"):
        assert near(g.grad[name], gmm.expected(values, name), 1e-12), name
    assert g.ratio < 3


def test_gaussian_mixture_of_one_is_the_normal_density() -> None:
    """With one component and the precision Qᵀ Q, by a determinant and an inverse."""
    gmm = script("gmm")
    values = gmm.inputs(12, 3, 1)
    q = np.diag(np.exp(values["icf"][0, :3]))
    q[[1, 2, 2], [0, 0, 1]] = values["icf"][0, 3:]
    covariance = np.linalg.inv(q.T @ q)
    z = values["x"] - values["means"][0]
    want = -np.einsum("ni,ij,nj->", z, np.linalg.inv(covariance), z) / 2
    want -= 12 / 2 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    # The prior's share: ADBench's formula with γ = 1, m = 0, and so four degrees of freedom.
    log_gamma_3 = 1.5 * math.log(math.pi) + sum(math.lgamma((5 - j) / 2) for j in (1, 2, 3))
    want += (q**2).sum() / 2 + 6 * math.log(2) + log_gamma_3
    assert near(gmm.gradient(values).loss, want, 1e-13)


@wide
def test_a_fit_finds_the_centres() -> None:
    gmm = script("gmm")
    values = gmm.inputs(60, 2, 2, seed=3) | {"gamma": 0.01}
    values |= {"means": values["x"][:2].copy(), "alphas": np.zeros(2), "icf": np.zeros((2, 3))}
    found, seen = gmm.fit(values, steps=80)
    assert seen[-1] > seen[0] + 0.3
    for centre in gmm.centres(2, 2, seed=3):
        assert min(np.linalg.norm(found["means"] - centre, axis=1)) < 0.6


def test_bundle_adjustment() -> None:
    bundle = script("bundle")
    values = bundle.inputs(2, 5)
    values["cams"]["turn"][1] = 0  # the other branch
    flat = bundle.pack(values)
    assert near(bundle.pack(bundle.unpack(values, flat)), flat, 0)
    assert near(
        bundle.errors(values), np.hstack([e.ravel() for e in bundle.formula(values)]), 1e-13
    )
    j, o = bundle.jacobian(values), len(values["w"])
    turned = np.ones(len(flat), bool)
    turned[11:14] = False  # where the formula in NumPy divides by zero
    for k in (0, 3, 2 * o - 1, 2 * o, 3 * o - 1):

        def one(x: np.ndarray, k: int = k) -> Any:
            return np.hstack([e.ravel() for e in bundle.formula(bundle.unpack(values, x))])[k]

        assert near(j[k][turned], common.complex_step(one, flat)[turned], 1e-12)
        assert near(j[k], common.central(one, flat), 1e-6)
    g = bundle.gradient(values).grad
    got = bundle.pack({"cams": g.cams, "X": g.X, "w": g.w})
    assert near(got, j.T @ bundle.errors(values), 1e-12)


def test_an_adjustment_comes_down_to_the_noise() -> None:
    bundle = script("bundle")
    values = bundle.inputs(2, 8)
    found, costs = bundle.adjust(values, steps=3)
    assert costs[-1] < costs[0] / 500
    assert bundle.pixels(values) > 5 > bundle.NOISE > bundle.pixels(found)


# ------------------------------------------------------------------ learning


def test_learning_by_consistency() -> None:
    consistency = script("consistency")
    kept, cleared = consistency.train("keeping"), consistency.train("clearing")
    assert all(p == pytest.approx(1.6, abs=1e-12) for p, _ in kept)
    p, y = cleared[-1]
    answer = float(mpmath.log(1 + mpmath.exp("0.3")) - mpmath.mpf("0.3"))
    assert p == pytest.approx(answer, abs=1e-12) and y == pytest.approx(1, abs=1e-12)
    assert cleared[5][0] != pytest.approx(answer, abs=1e-2)
    # A round takes p to p - log(e^(p + 0.3) - 1) + 0.3, of derivative -e^-0.3 at the answer.
    (first, _), (last, _) = cleared[20], cleared[30]
    assert abs((last - answer) / (first - answer)) == pytest.approx(math.exp(-3), rel=1e-2)
    assert consistency.newton()[-1] == pytest.approx(answer, abs=1e-14)


def test_the_flow_has_the_gradient_of_the_formula() -> None:
    nice = script("nice")
    rng = np.random.default_rng(4)
    points, p = nice.moons(15, rng), nice.parameters(3, 4)
    p |= {"C": rng.normal(size=(3, 4)), "s": np.array([0.3, -0.2])}
    g = nice.gradient(p, points)
    assert near(g.loss, nice.numpy_surprise(p, points), 1e-14)
    for name in p:
        assert near(g.grad[name], nice.expected(p, points, name), 1e-13), name
    by_points = common.complex_step(lambda x: nice.numpy_surprise(p, x), points)
    assert near(np.transpose([g.grad.u, g.grad.v]), by_points, 1e-13)


def test_the_flow_is_a_density() -> None:
    """The density that the flow gives, added up over the plane, is 1."""
    nice = script("nice")
    p = nice.parameters(4, 6)
    p |= {"C": np.random.default_rng(1).normal(scale=0.3, size=(4, 6)), "s": np.array([0.4, 0.1])}
    side = np.linspace(-9, 9, 301)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    z = nice.forwards(p, grid)
    density = np.exp(-(z**2).sum(1) / 2 + p["s"].sum()) / (2 * np.pi)
    assert density.sum() * (side[1] - side[0]) ** 2 == pytest.approx(1, abs=1e-6)
    assert near(nice.backwards(p, z), grid, 1e-13)


@pytest.mark.deep
def test_training_makes_the_moons_likelier() -> None:
    nice = script("nice")
    t = nice.train(steps=300)
    seen = [v for _, v in t.seen]
    rng = np.random.default_rng(9)
    best = nice.log_density(nice.moons(2000, rng)).mean()
    assert seen[0] + 0.8 < seen[-1] < best
    samples = nice.backwards(t.parameters, rng.normal(size=(500, 2)))
    plain = nice.backwards(nice.parameters(), rng.normal(size=(500, 2)))
    assert nice.log_density(samples).mean() > nice.log_density(plain).mean() + 2


def test_the_moons_density_adds_up_to_one() -> None:
    nice = script("nice")
    side = np.linspace(-2.5, 2.5, 101)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    total = np.exp(nice.log_density(grid)).sum() * (side[1] - side[0]) ** 2
    assert total == pytest.approx(1, abs=1e-9)


def test_box_and_mullers_determinant() -> None:
    box = script("box_muller")
    u, v = box.inputs(50)
    j, g = box.jacobians(u, v)
    x, y = g.result.u, g.result.v
    assert np.linalg.det(j) == pytest.approx(-2 * np.pi / u, rel=1e-13)
    assert -box.log_det(u, v) == pytest.approx(
        -(x**2 + y**2) / 2 - math.log(2 * math.pi), rel=1e-13
    )
    r = np.sqrt(-2 * np.log(u))
    assert near(x, r * np.cos(2 * np.pi * v), 1e-14)
    assert near(j[:, 0, 1], -2 * np.pi * y, 1e-13) and near(j[:, 1, 1], 2 * np.pi * x, 1e-13)
    assert near(box.inverse_jacobians(x, y) @ j, np.broadcast_to(np.eye(2), j.shape), 1e-12)


# ------------------------------------------------------------------ pictures and reports


def test_pictures_are_small_svg() -> None:
    from xml.etree import ElementTree

    for name in ("orbits", "petersen", "flow"):
        path = common.PICTURES / f"{name}.svg"
        assert path.stat().st_size < 40_000
        root = ElementTree.parse(path).getroot()
        assert root.tag.endswith("svg") and "nan" not in path.read_text(encoding="utf-8")


def test_tables_have_texts_to_the_left_and_numbers_to_the_right() -> None:
    rows = [("one", 1, 2.5, 1e-9), ("thousand", 1000, -0.125, 0.0)]
    assert common.table(("name", "n", "x", "error"), rows).splitlines() == [
        "name          n       x    error",
        "one           1     2.5  1.0e-09",
        "thousand  1,000  -0.125        0",
    ]


@pytest.mark.parametrize(
    "name", ("exp_taylor", "clog", "qr", "sparse", "consistency", "box_muller")
)
def test_reports_print_numbers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    script(name).report()
    out = capsys.readouterr().out
    assert len(out.splitlines()) >= 5 and "nan" not in out and "inf" not in out
