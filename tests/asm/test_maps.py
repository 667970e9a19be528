"""`map`: a function for each element, against the same loop written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from rvm_asm import assemble, disassemble
from sizes import sample, some, thin

import rvm
from rvm.codec import encode
from rvm.engines import executing
from rvm.engines.vector.explain import explain
from rvm.faults import AssemblyError, RvmError

FUNCTIONS = """
record P[T: real]
    a: T
    s: T[2]
end
record Q
    w: f64[3]
    n: i64
end
func plus[T: number[…]](y: T, x: T)
    add y, x
func squares(y: f64, x: f64)
    add y, x ** 2
func on[T: real](p: P[T], k: T)
    for j = 0 to 1
        with t = p.a * k
            add p.s[j], t
        end
    end
func apply(x: f64, y: f64, f: func(f64, f64))
    call f(y, x)
func down(x: i64, d: i64)
    if d > 0
        add x, d
        call down(x, d - 1)
    end
func form(q: Q, m: f64[k, k], v: f64[2*k])
    with t: f64[k] = v[0:k] + v[k:2*k]
        for i = 0 to k - 1
            add q.w[0], m[i, i] * t[i] + v[0]
        end
    end
    inc q.n
func inline(q: In{u: f64, v: f64[2]}, c: f64)
    add q.v, c * q.u
func scatter(y: f64[n], x: f64[n])
    map squares(y, x)
func labels(y: f64, x: f64)
    br x > 0, over
    add y, 1
over: cf x > 0, …
"""
PARAMETERS = """(y: f64[n], x: f64[n], A: f64[m, n], B: f64[m, n], p: P[f32][n], i: i64[n], \\
    d: i64[n], q: Q[n], M: f64[n, k, k], V: f64[n, l], u: In{u: f64, v: f64[2]}[n])
"""
BY_HAND = {
    "squares(y, x)": "squares(y[j], x[j])",
    "squares(y, 3)": "squares(y[j], 3)",
    "squares(y, A[0, 1] + 1)": "squares(y[j], A[0, 1] + 1)",
    "plus(y, x)": "plus(y[j], x[j])",
    "plus(y, 2)": "plus(y[j], 2)",
    "plus(A, B)": "plus(A[j], B[j])",
    "plus(A, x)": "plus(A[j], x)",
    "plus[f64](A[0], x)": "plus(A[0, j], x[j])",
    "plus[f64](A[:, 1], B[:, 0])": "plus(A[j, 1], B[j, 0])",
    "plus(A.T, B.T)": "plus(A[:, j], B[:, j])",
    "on(p, 2)": "on(p[j], 2)",
    "apply(x, y, squares)": "apply(x[j], y[j], squares)",
    "down(i, d)": "down(i[j], d[j])",
    "down(i, 3)": "down(i[j], 3)",
    "form(q, M, V)": "form(q[j], M[j], V[j])",
    "form(q, M[0], V)": "form(q[j], M[0], V[j])",
    "inline(u, x)": "inline(u[j], x[j])",
    "scatter(A, B)": "scatter(A[j], B[j])",
    "labels(y, x)": "labels(y[j], x[j])",
}
OVER_M = {"plus(A, B)", "plus(A, x)", "plus[f64](A[:, 1], B[:, 0])", "scatter(A, B)"}
TEXT = FUNCTIONS + "".join(
    f"func m{k}{PARAMETERS}    map {call}\n"
    f"func h{k}{PARAMETERS}    for j = 0 to {'m' if call in OVER_M else 'n'} - 1\n"
    f"        call {by_hand}\n    end\n"
    for k, (call, by_hand) in enumerate(BY_HAND.items())
)
LIBRARY = rvm.assemble(TEXT)


def arguments() -> dict[str, Any]:
    r = np.random.default_rng(1)
    n, m, k = 4, 3, 2
    numbers = {"y": (n,), "x": (n,), "A": (m, n), "B": (m, n), "M": (n, k, k), "V": (n, 2 * k)}
    return {
        **{name: r.normal(size=shape) for name, shape in numbers.items()},
        "p": {"a": r.normal(size=n).astype("f4"), "s": np.zeros((n, 2), "f4")},
        "i": np.zeros(n, int),
        "d": np.arange(n),
        "q": {"w": np.zeros((n, 3)), "n": np.zeros(n, int)},
        "u": {"u": r.normal(size=n), "v": r.normal(size=(n, 2))},
    }


def flat(values: Any, path: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in values:
        v = values[name]
        if isinstance(v, Mapping):
            out |= flat(v, f"{path}{name}.")
        else:
            out[path + name] = np.array(v)
    return out


def after(f: Any) -> dict[str, np.ndarray]:
    given = arguments()
    f(**given)
    return flat(given)


@thin
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("k", range(len(BY_HAND)), ids=list(BY_HAND))
@sample
def test_it_is_the_loop_by_hand(k: int, engine: str) -> None:
    one = LIBRARY[f"m{k}"].with_options(engine=engine)
    two = LIBRARY[f"h{k}"].with_options(engine="reference")
    got, want, start = after(one), after(two), flat(arguments())
    assert any(not np.array_equal(want[n], start[n]) for n in start)
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value)

    given = arguments()
    one(**given)
    (~one)(**given)
    for name, value in flat(given).items():
        np.testing.assert_allclose(value, start[name], atol=1e-6)


def test_unmap_is_the_inverse() -> None:
    text = FUNCTIONS + f"func f{PARAMETERS}    map squares(y, x)\n    unmap squares(y, x)\n"
    code = rvm.assemble(text).program.function("f").code
    assert [i.op for i in code if i.symbol] == ["call", "uncall"]
    start = flat(arguments())
    for name, value in after(rvm.assemble(text).f).items():
        np.testing.assert_allclose(value, start[name], atol=1e-15)


@thin
@pytest.mark.parametrize("k", range(len(BY_HAND)), ids=list(BY_HAND))
def test_gradients_are_those_of_the_loop(k: int) -> None:
    weights = np.random.default_rng(2).normal(size=(9, 3))

    def gradient(name: str) -> dict[str, np.ndarray]:
        given = arguments()
        loss = {"y": weights[0, 0] * given["x"], "A": given["B"] ** 2, "q": {"w": weights[:4]}}
        return flat(LIBRARY[name].vjp(loss, **given))

    one, two = gradient(f"m{k}"), gradient(f"h{k}")
    assert one.keys() == two.keys()
    for name, value in two.items():
        np.testing.assert_allclose(one[name], value, rtol=1e-13, err_msg=name)


def test_what_is_shared_gets_the_sum_of_adjoints() -> None:
    text = "func g(y: f64, k: f64)\n    add y, k ** 2\nfunc f(y: f64[n], k: f64)\n    map g(y, k)\n"
    f = rvm.assemble(text).f
    g = f.vjp({"y": np.ones(5)}, y=np.zeros(5), k=3.0)
    assert g.k == 5 * 2 * 3.0


def test_in_lanes() -> None:
    f = LIBRARY.m0
    rest = {n: v for n, v in arguments().items() if n not in ("y", "x")}
    x = np.random.default_rng(3).normal(size=(7, 4))
    out = f.map(y=np.zeros((7, 4)), x=x, **rest)
    np.testing.assert_array_equal(out.y, x * x)


def test_it_disassembles() -> None:
    data = encode(LIBRARY)
    assert encode(assemble(disassemble(LIBRARY))) == data


def test_one_function_for_each_way_of_mapping() -> None:
    names = [n for n in LIBRARY if ".map" in n]
    assert "plus.map[f64]" in names and "plus.map(y)[f64]" in names
    assert "form.map" in names and "form.map(q, v)" in names
    assert len(names) == len(set(names)) == 15


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_elements(count: int) -> None:
    text = "func g(y: i64)\n    add y, 3\nfunc f(y: i64[n])\n    map g(y)\n"
    y = np.arange(count)
    rvm.assemble(text).f(y=y)
    assert list(y) == [k + 3 for k in range(count)]


def test_elements_that_are_called_like_what_is_made() -> None:
    """Whatever names a function's own parameters, lengths and constants have."""
    text = """
const length = 2
func g(i: f64, n: f64, i_: f64[k], n_: f64[length])
    add i, n * i_[k - 1] + n_[0]
func f(i: f64[n], n_: f64[n], a: f64[n, k], b: f64[n, 2])
    map g(i, n_, a, b)
"""
    a = np.arange(6.0).reshape(2, 3)
    out = rvm.assemble(text).f(i=np.zeros(2), n_=np.array([10.0, 100]), a=a, b=a[:, :2] + 0.5)
    assert list(out.i) == [20 + 0.5, 500 + 3.5]


# ---------------------------------------------------------------- errors


def test_lengths_that_differ() -> None:
    text = FUNCTIONS + "func f(y: f64[n], x: f64[m])\n    map squares(y, x)\n"
    y = np.ones(3)
    with pytest.raises(RvmError) as caught:
        rvm.assemble(text).f(y=y, x=np.ones(2))
    assert caught.value.code == "R008"
    assert "`x` of `squares.map` has the length 2 on axis 0, not 3" in str(caught.value)
    assert list(y) == [1, 1, 1]


@pytest.mark.parametrize("engine", executing())
@some
def test_arguments_that_overlap(engine: str) -> None:
    text = FUNCTIONS + "func f(y: f64[n], a: i64)\n    map squares(y[0:2], y[a:a+2])\n"
    f = rvm.assemble(text).f.with_options(engine=engine)
    assert list(f(y=np.arange(4.0), a=2).y) == [4, 10, 2, 3]
    with pytest.raises(RvmError) as caught:
        f(y=np.arange(4.0), a=1)
    assert caught.value.code == "R004"


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("squares(y, y)", "A014", "`y`"),
        ("squares(y[0:2], y[1:3])", "A014", "`y[1:3]`"),
        ("squares(k, y)", "A076", "`squares` changes this"),
        ("squares(k, k)", "A076", "mapped over nothing"),
        ("plus(k, y)", "A076", "`plus[f64]` changes this"),
        ("pop_(y, s)", "A076", "`pop_` changes this"),
        ("squares(A, y)", "A042", "this has 3 dimensions: `y` of `squares` takes 0, or 1 to"),
        ("squares(y, A)", "A042", "this has 3 dimensions: `x` of `squares` takes 0"),
        ("squares(A, 3)", "A042", "this has 3 dimensions"),
        ("squares(y)", "A044", "`squares` takes 2 arguments, not 1"),
        ("plus(y)", "A044", "`plus` takes 2 arguments, not 1"),
        ("squares(y, z)", "A005", "`z`"),
        ("nothing(y)", "A045", "`nothing`"),
        ("squares(y, b)", "A040", ""),
    ],
)
def test_wrong_texts(call: str, code: str, words: str) -> None:
    text = f"""{FUNCTIONS}
func pop_(y: f64, s: stack[f64])
    pop y, s
func f(y: f64[n], k: f64, s: stack[f64], A: f64[n, m, l], b: i64[n])
    map {call}
"""
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    (only,) = caught.value.diagnostics
    assert only.code == code and words in only.message
    assert only.where.line == text.count("\n"), "at the statement"


def test_what_is_wrong_in_the_function_is_reported_once() -> None:
    text = "func g(y: f64, x: f64)\n    add y, y * x\nfunc f(y: f64[n])\n    map g(y, 2)\n"
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    (only,) = caught.value.diagnostics
    assert (only.code, only.where.line) == ("A013", 2)


def test_a_failing_element_is_reported_at_its_line() -> None:
    text = (
        "func g(y: i64, x: i64)\n    add y, 6 // x\nfunc f(y: i64[n], x: i64[n])\n    map g(y, x)\n"
    )
    y = np.zeros(3, int)
    for engine in executing():
        with pytest.raises(RvmError) as caught:
            rvm.assemble(text).f.with_options(engine=engine)(y=y, x=np.array([2, 0, 3]))
        assert caught.value.where.line == 2 and list(y) == [0, 0, 0]


# ---------------------------------------------------------------- engines


def test_engines_see_what_an_element_reaches() -> None:
    found = {v.function: v for v in explain(LIBRARY)}
    for name in ("squares.map", "squares.map(y)", "plus.map[f64]", "apply.map[squares]"):
        declined = name.startswith("apply")  # which calls another
        assert found[name].vectorised is not declined, (name, str(found[name]))
