"""Three gradients of random terms agree: the stage's, gradient mode's, and one by other means.

The third is of sixty digits, and JAX's.  Ten thousand terms are tried with `--deep`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pure import oracle
from pure.terms import NAMES, Case, case
from rvm_pure import PureFunction, functions
from sizes import thin

LIMIT = 1e-12
"""How far adjoints may be apart, in parts of the largest."""
CHANCE = 4.0
"""How many times farther than eight tries at rounding at random lead."""
Adjoints = tuple[Any, ...]


def staged(f: PureFunction, c: Case, back: bool = True) -> Adjoints:
    """By the text of the stage `gradient`, read again and run on the machine, there and back."""
    (g,) = functions(f.stage("gradient")).values()
    if c.is_large:
        return g(**c.given)  # type: ignore[no-any-return]
    zeros = {f"p{k + 1}": np.zeros_like(c.given[n]) + 0.0 for k, n in enumerate(NAMES)}
    out = {p: z if z.ndim else 0.0 for p, z in zeros.items()}
    handle = g.program.f.with_options(engine="reference")
    found = handle(out=out, **c.given)
    # The way back changes arrays in their places.
    values = tuple(np.copy(found["out"][p]) for p in out)
    # Sums of several terms leave what rounding takes.
    top = max(1e-300, *(float(np.max(np.abs(v), initial=0)) for v in values))
    left = (~handle)(**found)["out"].values() if back else ()
    assert all(np.max(np.abs(v), initial=0) <= LIMIT * top for v in left), c.text
    return values


def reversed_(f: PureFunction, c: Case) -> Adjoints:
    """By gradient mode of the stage `rasm`."""
    if c.is_large:
        # An infinity can only be taken away from where it was put whole.
        return f.by("rasm").grad(**c.given)  # type: ignore[no-any-return]
    mode = f.program.f.with_options(engine="reference").grad(out=0.0, **c.given, loss="out")
    return tuple(mode[n] for n in NAMES)


def is_explained(have: Adjoints, f: PureFunction, c: Case) -> bool:
    """Whether adjoints are as near to the exact ones as rounding lets any evaluation come."""
    body, given = f.definition.body, {**c.given, "n": c.n}
    rounding = oracle.rounding(body, given, NAMES)
    error = oracle.apart(have, oracle.exact_gradient(body, given, NAMES))
    return rounding > LIMIT / CHANCE and error <= CHANCE * rounding


def distance(have: Adjoints, want: Adjoints, f: PureFunction, c: Case) -> float:
    """How far finite adjoints are apart, in parts of the largest; 0 where rounding explains it."""
    found = oracle.apart(have, want)
    if found <= LIMIT:
        return found
    assert is_explained(have, f, c), (c.text, c.given, have, want)
    return 0.0


def flat(adjoints: Any) -> np.ndarray:
    return np.concatenate([np.ravel(v) for v in adjoints])


def same_infinities(have: Adjoints, want: Adjoints, f: PureFunction, c: Case) -> float:
    """How far the finite of some adjoints are apart; what is infinite in JAX is so here."""
    a, b = flat(have), flat(want)
    text = (c.text, c.given, a, b)
    assert np.array_equal(a[np.isinf(b)], b[np.isinf(b)]), text
    # What has no value in one order of products may be an infinity in another, never a number.
    assert not np.isfinite(a[np.isnan(b)]).any(), text
    lost = np.isnan(a) & np.isfinite(b)
    if lost.any() and c.n:
        # An adjoint of zero at an infinite slope.  JAX goes through loops as they run, and does not
        # meet numbers that nothing is made of; nor, of no elements, what is the same for all.
        exact = flat(oracle.exact_gradient(f.definition.body, {**c.given, "n": c.n}, NAMES))
        assert np.isnan(exact[lost]).all(), text
    finite = np.isfinite(b) & ~lost
    if not np.isfinite(a[finite]).all() or np.isfinite(b).all():
        return distance(have, want, f, c) if not lost.any() else 0.0
    top = float(np.max(np.abs(b[finite]), initial=1e-300))
    found = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / top
    assert found <= LIMIT, text
    return found


def agree(seed: int, jax: bool) -> float:
    """The greatest distance of gradients of a random term from those by other means.

    All that is finite is held to sixty digits; what may overflow, and of the rest a quarter, to
    JAX, which takes a hundred times as long.
    """
    c = case(seed)
    f = functions(c.text)["f"]
    body, given = f.definition.body, {**c.given, "n": c.n}
    jax = jax and (c.is_large or seed % 4 == 0)
    wanted = [] if c.is_large else [oracle.exact_gradient(body, given, NAMES)]
    if jax:
        wanted.append(oracle.by_jax(body, given, NAMES))
    near = same_infinities if c.is_large else distance
    found = (staged(f, c, back=seed % 8 == 0), reversed_(f, c))
    return max((near(have, tuple(w), f, c) for have in found for w in wanted), default=0.0)


@thin
@pytest.mark.parametrize("part", range(4))
def test_gradients_of_random_terms_are_those_of_sixty_digits(part: int) -> None:
    for seed in range(5 * part, 5 * part + 5):
        agree(seed, jax=False)


@pytest.mark.parametrize("seed", [10, 46, 58, 62])
def test_a_name_that_hides_a_parameter_is_another_variable(seed: int) -> None:
    """In these terms the adjoints of both would otherwise be taken for one."""
    agree(seed, jax=False)


@pytest.mark.parametrize(
    "body",
    [
        "let x = sin(x) * y in let y = x * x + exp(x) in x * y * y + x",
        "let (x, y) = loop (x, y) = (x, y) for i < 3 do let y = y - x * 0.1 in (x + y, y) in x * y",
        "let A = map (x. x * y) A in let y = sum(A) * y in sum(map (y. y * sin(y)) A) * y * x",
        "let n = x * x in sum(A) * n * f64(len(A)) + y",
    ],
)
def test_every_form_of_a_derivative_tells_a_hidden_name_from_the_one_that_hides_it(
    body: str,
) -> None:
    f = functions(f"def f(x: f64, y: f64, A: f64[n], B: f64[n]) = {body}")["f"]
    given = {"x": 0.3, "y": 1.7, "A": np.array([0.2, 0.5]), "B": np.zeros(2)}
    exact = oracle.exact_gradient(f.definition.body, {**given, "n": 2}, NAMES)
    for form in ("rasm", "gradient", "direct"):
        assert oracle.apart(f.by(form).grad(**given), exact) < 1e-13


@pytest.mark.deep
@pytest.mark.parametrize("part", range(100))
def test_gradients_of_ten_thousand_random_terms_are_those_by_other_means(part: int) -> None:
    pytest.importorskip("jax")
    for seed in range(100 * part, 100 * part + 100):
        agree(seed, jax=True)


ILL: dict[str, dict[str, Any]] = {
    "def f(x: f64, y: f64, A: f64[n], B: f64[n]) = sin(x * 1000000.0) * sin(x * 1000000.0 + y)": {
        "x": 12345.678,
        "y": 0.1,
    },
    "def f(x: f64, y: f64, A: f64[n], B: f64[n]) = loop p = x for i < 40 do 3.9 * p * (1 - p)": {
        "x": 0.3,
        "y": 0.0,
    },
}


@pytest.mark.parametrize("text", ILL)
def test_what_rounding_changes_is_judged_by_how_much_it_changes(text: str) -> None:
    """Neither as near as others are, nor accepted if it is a little farther than rounding leads."""
    c = Case(text, {**ILL[text], "A": np.zeros(0), "B": np.zeros(0)}, 0, False, False)
    f = functions(text)["f"]
    exact = oracle.exact_gradient(f.definition.body, {**c.given, "n": 0}, NAMES)
    rounding = oracle.rounding(f.definition.body, {**c.given, "n": 0}, NAMES)
    assert rounding > LIMIT
    for have in (staged(f, c), reversed_(f, c)):
        assert oracle.apart(have, exact) > LIMIT and is_explained(have, f, c)
    off = tuple(np.asarray(w) * (1 + 6 * rounding) for w in exact)
    assert not is_explained(off, f, c)


@pytest.mark.parametrize("seed", range(6))
def test_sixty_digits_and_complex_steps_agree(seed: int) -> None:
    c = case(5 * seed)
    body, given = functions(c.text)["f"].definition.body, {**c.given, "n": c.n}
    exact = oracle.exact_gradient(body, given, NAMES)
    assert oracle.apart(oracle.gradient(body, given, NAMES), exact) < 1e-13


BIG = np.array([1e200, 1e200, 3.0])
UNUSED = [
    ("let w = reduce * 1 A in x * x", "a let that nobody names"),
    ("fst (x * x, reduce * x A)", "the second part of a pair"),
    ("x * x + fst (0.0, reduce (s, a. s * a + sin(a)) x A)", "a part of a sum"),
    ("let (p, q) = (x * x, scanl * 1 A) in p", "an array"),
    ("fst (x * x, (scanl (s, a. s * a + sin(a)) x A)[3])", "an element"),
    ("(loop (p, q) = (x, 1.0) for i < 1 do (p * x, q * sum(A) * A[0])).1", "a part of a state"),
]


@pytest.mark.parametrize(("body", "what"), UNUSED, ids=[what for _, what in UNUSED])
def test_what_is_not_used_has_no_adjoint_however_large_it_is(body: str, what: str) -> None:
    if body.endswith(".1"):
        body = f"fst {body[:-2]}"
    f = functions(f"def f(x: f64, A: f64[n]) = {body}\n")["f"]
    for by_x, by_a in (f.by(k).grad(3.0, BIG) for k in ("gradient", "rasm")):
        assert by_x == 6.0 and by_a.tolist() == [0.0, 0.0, 0.0]


def test_states_that_are_arrays_may_be_infinite() -> None:
    text = "def f(x: f64[n], k: i64) = sum(loop u = x for i < k do u * u * x)\n"
    f = functions(text)["f"]
    assert f(np.array([1e200, 1.0]), 2) == np.inf
    for found in (f.by(k).grad(np.array([1e200, 1.0]), 2) for k in ("gradient", "rasm")):
        assert found.tolist() == [np.inf, 7.0]
