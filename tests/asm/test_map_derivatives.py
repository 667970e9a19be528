"""`map f'(…; …)` and its like: a derivative for each element, against the same loop by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rvm_asm import assemble, disassemble
from sizes import sample, thin

import rvm
from rvm.codec import encode
from rvm.engines import executing
from rvm.faults import AssemblyError

FUNCTIONS = """
record P[T: real]
    a: T
    k: i64
    s: T[2]
end
func g(y: f64, a: f64, x: f64, k: i64)
    add y, a * sin(x) ** k
func on[T: real](e: T, p: P[T], k: T)
    for j = 0 to 1
        add e, p.s[j] * p.a * k
    end
func norm(y: f64, x: f64[k])
    add y, sqrt(dot(x, x))
func step(q: f64, p: f64)
    sub p, sin(q)
    add q, p
func apply(x: f64, y: f64, f: func(f64, f64))
    call f(y, x)
func square[T: real](y: T, x: T)
    add y, x ** 2
"""
PARAMETERS = """(y: f64[n], x: f64[n], v: f64[n], w: f64[n], u: f64[n], t: f64[n], \\
    a: f64, b: f64, A: f64[n, m], B: f64[n, m], p: P[f64][n], r: P[f64][n], f: f32[n], h: f32[n])
"""
BY_HAND = {
    "g'(0.0, a, x, 2; 1, b, v)": "g'(0.0, a, x[j], 2; 1, b, v[j])",
    "g'(0.0, a, x, 2; b, v, _)": "g'(0.0, a, x[j], 2; b, v[j], _)",
    "g'(y, u, x, 2; t, w, v)": "g'(y[j], u[j], x[j], 2; t[j], w[j], v[j])",
    "g~'(y, a, x, 2; t, b, v)": "g~'(y[j], a, x[j], 2; t[j], b, v[j])",
    "g.(y, a, x, 2; t, _, v)": "g.(y[j], a, x[j], 2; t[j], _, v[j])",
    "step'(x, y; v, w)": "step'(x[j], y[j]; v[j], w[j])",
    "step.(x, y; v, w)": "step.(x[j], y[j]; v[j], w[j])",
    "norm'(0.0, A; 1, B)": "norm'(0.0, A[j]; 1, B[j])",
    "norm'(0.0, A[0]; x, B[0])": "norm'(0.0, A[0]; x[j], B[0])",
    "on'(0, p, a; 1, r, b)": "on'(0, p[j], a; 1, r[j], b)",
    "on'(0, p, a; u, _, v)": "on'(0, p[j], a; u[j], _, v[j])",
    "apply'(x, 0.0, square; v, 1)": "apply'(x[j], 0.0, square; v[j], 1)",
    "square'(0, f; 1, h)": "square'(0, f[j]; 1, h[j])",
    "square.'(y, x, t, w; u, v, 1, _)": "square.'(y[j], x[j], t[j], w[j]; u[j], v[j], 1, _)",
}
TEXT = FUNCTIONS + "".join(
    f"func {un}m{k}{PARAMETERS}    {un}map {call}\n"
    f"func {un}h{k}{PARAMETERS}    for j = {ends}\n        {un}call {by_hand}\n    end\n"
    for k, (call, by_hand) in enumerate(BY_HAND.items())
    for un, ends in (("", "0 to n - 1"), ("un", "n - 1 downto 0"))
)
LIBRARY = rvm.assemble(TEXT)
REST = ("y", "x", "v", "w", "u", "t", "f", "h")


def arguments() -> dict[str, Any]:
    r = np.random.default_rng(1)
    n, m = 5, 3
    out: dict[str, Any] = {name: r.normal(size=n) for name in REST}
    out |= {name: out[name].astype("f4") for name in "fh"}
    out |= {name: r.normal(size=(n, m)) for name in "AB"}
    for name in "pr":
        out[name] = {"a": r.normal(size=n), "k": np.arange(n), "s": r.normal(size=(n, 2))}
    return out | {"a": 0.7, "b": -1.3}


def after(f: Any) -> dict[str, Any]:
    found = f(**arguments())
    out: dict[str, Any] = {k: found[k] for k in found if k not in "pr"}
    return out | {f"{k}.{field}": v for k in "pr" for field, v in found[k].items()}


@thin
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("k", range(len(BY_HAND)), ids=list(BY_HAND))
@sample
def test_it_is_the_loop_by_hand(k: int, engine: str) -> None:
    for un in ("", "un"):
        got = after(LIBRARY[f"{un}m{k}"].with_options(engine=engine))
        want = after(LIBRARY[f"{un}h{k}"].with_options(engine="reference"))
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)


def test_what_it_computes() -> None:
    """The slopes of a sum over elements, by their formula."""
    at = arguments()
    x, a = at["x"], at["a"]
    found = LIBRARY["m0"](**arguments())
    np.testing.assert_allclose(found.v, at["v"] + a * 2 * np.sin(x) * np.cos(x), rtol=1e-14)
    assert found.b == pytest.approx(at["b"] + np.sum(np.sin(x) ** 2), rel=1e-14)


def test_gradients_of_it() -> None:
    """Second derivatives by a program that maps a gradient."""
    f = rvm.assemble("""
func g(y: f64, a: f64, x: f64)
    add y, a * x ** 3
func main(e: f64, a: f64, x: f64[n])
    with v: f64[n]
        routine
            map g'(0.0, a, x; 1, _, v)
        result
            add e, sum(v)
        end
    end
""").main
    x = np.array([1.0, -2.0, 0.5])
    g = f.grad(loss="e", e=0.0, a=0.7, x=x)
    np.testing.assert_allclose(g.x, 0.7 * 6 * x, rtol=1e-14)
    assert g.a == pytest.approx(np.sum(3 * x**2), rel=1e-14)


def test_it_disassembles() -> None:
    assert encode(assemble(disassemble(LIBRARY))) == encode(LIBRARY)


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("g'(0.0, a, x, 2; 1, a)", "A080", "`g` has 3 real parameters, in order y: f64"),
        ("g'(0.0, a, x; 1, a, x)", "A044", "`g'` takes the 4 arguments of `g`, not 3"),
        ("g'(0.0, a, a, 2; 1, a, b)", "A076", "`g'` is mapped over nothing"),
        ("g'(0.0, a, A, 2; 1, a, x)", "A042", "`x` of `g'` takes 0, or 1 to be mapped over"),
        ("g'(0.0, a, x, 2; 1, a, A)", "A042", "the bar of `x` takes 0, or 1 to be mapped over"),
        ("step'(x, y; v, b)", "A076", "`step'` changes this, which is the same for every"),
        ("step'(x, y; v, 1)", "A076", "`step'` changes this, which is the same for every"),
        ("g.(b, a, x, 2; v, _, w)", "A076", "`g` changes this, which is the same for every"),
        ("g~'(0.0, a, x, 2; 1, a, v)", "A076", "`g` changes this, which is the same for every"),
        ("g'(0.0, a, x, 2; 1, a, f)", "A040", "f32"),
        ("g'(0.0, a, x, 2)", "A002", "`map g'(arguments; bars)`"),
    ],
)
def test_wrong_texts(call: str, code: str, words: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(f"{FUNCTIONS}func main{PARAMETERS}    map {call}\n")
    (only,) = caught.value.diagnostics
    assert only.code == code and words in only.human()
    assert only.where.line == FUNCTIONS.count("\n") + 3, "at the statement"
