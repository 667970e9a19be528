"""NumPy functions are accepted as they stand, and give what NumPy gives; what is not says so."""

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_pure import functions
from rvm_pure.traced import ARRAY_FUNCTIONS
from sizes import wide

import rvm
from rvm import Array, f64, i64
from rvm.faults import InputError, UsageError

X = np.array([0.5, -1.5, 2.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7 - 0.5
VECTOR, MATRIX = "f64[n]", "f64[m, n]"
FUNCTIONS: list[tuple[Callable[..., Any], dict[str, Any], tuple[Any, ...]]] = [
    (lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), {"x": VECTOR}, (X,)),
    (lambda w, x: np.tanh(w @ x), {"w": MATRIX, "x": VECTOR}, (M, X)),
    (lambda w, x: np.sum(np.maximum(w, 0) * x, axis=1), {"w": MATRIX, "x": VECTOR}, (M, X)),
    (lambda w: w.T.sum(axis=0) - np.mean(w, axis=1), {"w": MATRIX}, (M,)),
    (lambda x: np.where(x > 0, np.sqrt(np.abs(x)), -x), {"x": VECTOR}, (X,)),
    (lambda u, c: u[1:-1] + c * (u[2:] - u[1:-1] + u[:-2]), {"u": VECTOR, "c": "f64"}, (X, 0.1)),
    (lambda x: x[-1] * x[0] + x[1:].prod(), {"x": VECTOR}, (X,)),
    (lambda x: x.mean() + np.dot(x, x) / x.shape[0], {"x": VECTOR}, (X,)),
    (lambda w: w[1] + w[:, 2].sum() + w[0, 1:3].sum(), {"w": "f64[3, 4]"}, (M,)),
    (lambda x: np.cumsum(x) * np.ones_like(x), {"x": VECTOR}, (X,)),
    (lambda x, k: x[k] + np.take(x, k), {"x": VECTOR, "k": "i64[m]"}, (X, np.array([3, 0, 3]))),
    (lambda x: (np.sin(x), np.outer(x, x)), {"x": VECTOR}, (X,)),
    (lambda x: np.arctan2(x, 2) ** 2 + np.hypot(x, 1) - x // 2, {"x": VECTOR}, (X,)),
    (lambda x: np.log1p(np.exp(-x)), {"x": VECTOR}, (X,)),
    (lambda x: np.concatenate([x[:1], x, x[-1:]]), {"x": VECTOR}, (X,)),
    (
        lambda x, y: np.concatenate((x, y * 2)).sum() * x[0],
        {"x": VECTOR, "y": "f64[m]"},
        (X, X[1:]),
    ),
    (
        lambda x: np.roll(x, 1) - np.roll(x, -1) + np.roll(x, 6) * np.roll(x, -3),
        {"x": VECTOR},
        (X,),
    ),
    (lambda x: np.diff(x) ** 2, {"x": VECTOR}, (X,)),
    (lambda w: np.concatenate([w, w[:1]]), {"w": MATRIX}, (M,)),
    (lambda x: np.where(np.logical_and(x > 0, x < 1), x, -x), {"x": VECTOR}, (X,)),
    (lambda x: np.where(np.logical_or(x < 0, x > 1), x, -x), {"x": VECTOR}, (X,)),
    (lambda x: (np.clip(x, -1, 1), x.clip(0), np.clip(x, None, 1.5)), {"x": VECTOR}, (X,)),
    (lambda x: (x - x.mean()) / (x.std() + np.linalg.norm(x) + np.var(x)), {"x": VECTOR}, (X,)),
    (lambda w: w[::-1] * np.flip(w[0]) + np.trace(w @ w.T), {"w": MATRIX}, (M,)),
    (lambda x: (np.cumprod(x), np.stack([x, x * 2]), x[::-1]), {"x": VECTOR}, (X,)),
    (lambda x, y: (x[0], np.concatenate([y, x, y])), {"x": VECTOR, "y": "f64[m]"}, (X, X[1:])),
    (lambda w: np.concatenate([w.T, w.T]), {"w": MATRIX}, (M[:0],)),
]


def same(have: Any, want: Any) -> bool:
    if isinstance(want, tuple):
        return all(same(a, b) for a, b in zip(have, want, strict=True))
    close = 1e-6 if np.asarray(want).dtype == np.float32 else 1e-14
    fits = np.shape(have) == np.shape(want)
    return bool(fits and np.allclose(have, want, rtol=close, atol=close, equal_nan=True))


@wide
@pytest.mark.parametrize("k", range(len(FUNCTIONS)))
def test_values_are_those_of_numpy(k: int) -> None:
    f, types, args = FUNCTIONS[k]
    traced = rvm.pure(f, **types)
    assert same(traced(*args), f(*args))
    (again,) = functions(traced.stage("source")).values()
    assert again.definition.body == traced.definition.body


@rvm.pure
def power(x: f64, n: i64) -> f64:
    return rvm.pure.loop(n, lambda i, p: p * x + i, 1.0)


@rvm.pure
def smooth(x: Array[f64, "n"], w: f64) -> f64:
    states = rvm.pure.scan(lambda s, a: s + w * (a - s), 0.0, x)
    return rvm.pure.reduce(lambda s, a: s * 0.5 + a, 0.0, states)


@rvm.pure
def chosen(x: Array[f64, "n"]) -> Array[f64, "n"]:
    return rvm.pure.map(lambda a: rvm.pure.where(a > 0, lambda: np.log(a), lambda: a * a), x)


def test_what_tracing_cannot_see_is_said() -> None:
    p = 1.0
    for i in range(6):
        p = p * 1.5 + i
    assert power(1.5, 6) == p
    s, total = 0.0, 0.0
    for a in X:
        s_next = s + 0.3 * (a - s)
        total, s = total * 0.5 + s, s_next
    assert smooth(X, 0.3) == pytest.approx(total * 0.5 + s, rel=1e-14)
    assert same(chosen(X), np.where(X > 0, np.log(np.abs(X)), X * X))
    step = 1e-6
    by_x, by_w = smooth.gradient()(X, 0.3)
    assert by_w == pytest.approx(
        (smooth(X, 0.3 + step) - smooth(X, 0.3 - step)) / (2 * step), rel=1e-8
    )
    assert by_x.shape == X.shape


def test_there_is_a_way_back_in_the_program() -> None:
    f = power.program.power
    there = f(out=0.0, x=1.5, n=6)
    assert (~f)(**there).out == 0.0
    assert power.program is power.program


def test_an_expression_s_program_is_one_instruction_and_a_stencil_s_one_loop() -> None:
    f = rvm.pure(lambda a, b: np.sum(a * b), a=VECTOR, b=VECTOR)
    assert [i.op for i in f.program.program.functions[0].code] == ["add"]
    stencil = rvm.pure(FUNCTIONS[5][0], **FUNCTIONS[5][1])
    text = stencil.stage("rasm")
    assert text.count("for ") == 1 and "alloc" not in text.replace("alloc out_length", "")
    with pytest.raises(rvm.InvertibilityError, match="out_length"):
        stencil.program.f(out=np.zeros(4), u=X, c=0.1)


def branch(x: Any) -> Any:
    if x[0] > 0:  # line 1
        return x
    return -x


def spectrum(x: Any) -> Any:
    return np.fft.fft(x)  # line 1


def elements(x: Any) -> Any:
    return sum(a for a in x)  # line 1


def library(x: Any) -> Any:
    return math.sin(x[0])  # line 1


def assigned(x: Any) -> Any:
    x[0] = 1.0  # line 1
    return x


def wrong_shape(x: Any) -> Any:
    return x[1:] + x  # line 1


def closed_over(x: Any) -> Any:
    return x + np.linspace(0, 1, 65)  # line 1


@pytest.mark.parametrize(
    ("f", "word"),
    [
        (branch, "where"),
        (spectrum, "np.fft"),
        (elements, "map"),
        (library, "math"),
        (assigned, "update"),
        (wrong_shape, "length"),
        (closed_over, "parameter"),
    ],
)
def test_what_cannot_be_traced_says_so_at_its_line(f: Any, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        rvm.pure(f, x=VECTOR)
    error = caught.value
    assert error.code == "U060" and error.where.source == __file__
    assert error.where.line == f.__code__.co_firstlineno + 1
    assert word in f"{error.message} {error.hint}"


def test_types_are_needed_and_read() -> None:
    with pytest.raises(UsageError, match="has no type"):
        rvm.pure(lambda x: x)
    with pytest.raises(rvm.AssemblyError):
        rvm.pure(lambda x: x, x="f65")
    assert repr(rvm.pure(lambda x: x[0], x=rvm.f64["n"])).endswith("f64[n]) -> f64>")
    with pytest.raises(AttributeError):
        rvm.pure.unroll  # noqa: B018


def test_the_page_lists_the_functions_of_arrays_that_are_traced() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pure.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| functions of arrays \| (.*) \|$", page, re.M)
    assert set(re.findall(r"`np\.([\w.]+)`", row)) == set(ARRAY_FUNCTIONS)


OPTIONS: list[dict[str, Any]] = [
    *({}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": (0, 1)}, {"keepdims": True}),
    *({"dtype": np.float32}, {"n": 2}, {"k": 1}, {"initial": 2.0}, {"ord": 1}, {"ddof": 1}),
]
ARRAYS = (1.5, X, M[:, :3], np.arange(8.0).reshape(2, 2, 2) / 3)
TYPES = ("f64", VECTOR, MATRIX, "f64[a, b, c]")


OTHERS = {"where", "take", "roll", "select", "tile", "repeat", "swapaxes", "moveaxis"}
OTHERS |= {"einsum", "reshape", "broadcast_to", "vstack", "hstack", "cross", "angle", "full_like"}
"""Functions with other arguments, which `test_numpy.py` has."""


def of_arrays(name: str, more: dict[str, Any], count: int) -> Callable[..., Any]:
    """A function of NumPy with options, of one or two arrays."""
    f: Callable[..., Any] = operator.attrgetter(name)(np)

    def call(*xs: Any) -> Any:
        return f(list(xs), **more) if name in ("concatenate", "stack") else f(*xs, **more)

    return (lambda x: call(x)) if count == 1 else (lambda x, y: call(x, y))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(ARRAY_FUNCTIONS))
def test_functions_of_arrays_are_numpy_s_or_refused(name: str) -> None:
    """For one and two arguments of 0 to 3 dimensions, and options: never another value."""
    seen = 0
    for ranks in (*((r,) for r in range(4)), *itertools.product(range(1, 3), repeat=2)):
        args = [ARRAYS[r] for r in ranks]
        for more in OPTIONS:
            f = of_arrays(name, more, len(ranks))
            try:
                want = f(*args)
            except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):
                continue
            try:
                have = rvm.pure(f, **{n: TYPES[r] for n, r in zip("xy", ranks, strict=False)})(
                    *args
                )
            except UsageError as error:
                assert error.code == "U060"
                continue
            except InputError as error:
                assert error.code == "I004" and "`y`" in error.message
                continue
            assert same(have, want), (ranks, more)
            if name not in ("size", "ndim", "shape"):
                assert np.asarray(have).dtype == np.asarray(want).dtype, (ranks, more)
            seen += 1
    assert seen or name in OTHERS, name


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: x * len(x), "`x.shape[0]` is the length"),
        (lambda x: x if x[0] > 0 else -x, "`rvm.pure.where(c, a, b)`"),
        (lambda x: sum(v for v in x), "`rvm.pure.reduce(f, init, x)`"),
        (lambda x: float(x[0]), "NumPy's functions are traced"),
        (lambda x: None, "returns its value"),
    ],
    ids=["len", "if", "iteration", "float", "None"],
)
def test_what_has_no_value_yet_is_reported(body: Any, words: str) -> None:
    with pytest.raises(rvm.UsageError) as caught:
        rvm.pure(body, x="f64[n]")
    assert caught.value.code == "U060" and words in caught.value.hint


def test_lengths_that_are_traced_are_those_of_the_call() -> None:
    f = rvm.pure(lambda x: np.sum(x) * x.shape[0] + x.size, x="f64[n]")
    assert f(np.ones(3)) == 12.0


def test_what_would_lose_digits_is_refused() -> None:
    f = rvm.pure(lambda k: k + k, k="i64[n]")
    assert f([1, 2]).tolist() == f(np.array([1, 2], "i4")).tolist() == [2, 4]
    for dtype in ("fixed[n]", "i64[n]"):
        with pytest.raises(InputError, match="I003"):
            rvm.pure(lambda k: k + k, k=dtype)(np.array([0.5, 1.5]))


def test_a_stencil_on_a_padded_array_is_loops_over_parts() -> None:
    def step(u: Any, c: Any) -> Any:
        p = np.concatenate([u[:1], u, u[-1:]])
        return u + c * (p[:-2] - 2.0 * u + p[2:])

    def ring(u: Any, c: Any) -> Any:
        return u + c * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))

    for f in (step, ring):
        pure = rvm.pure(f, u=VECTOR, c="f64")
        text = pure.stage("rasm")
        assert "choose" not in text and "alloc" not in text.replace("alloc out_length", "")
        for n in range(1, 5):
            np.testing.assert_allclose(pure(X[:n], 0.1), f(X[:n], 0.1), rtol=1e-14)


def mask(x: Any) -> Any:
    return x[x > 0]


WRONG: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (lambda x: np.sort(x), {"x": VECTOR}, "docs/pure.md lists"),
    (lambda x: np.linalg.det(x), {"x": MATRIX}, "np.linalg.det"),
    (lambda x: x[:: x.shape[0]], {"x": VECTOR}, "the step of a slice"),
    (lambda x: x[0:1:0], {"x": VECTOR}, "and not 0"),
    (mask, {"x": VECTOR}, "`np.where(c, x, 0)`"),
    (lambda x: x[[0, -1]], {"x": VECTOR}, "whole numbers from 0 on"),
    (lambda x: x[1.5], {"x": VECTOR}, "1.5"),
    (lambda x: x[..., 0, ...], {"x": MATRIX}, "one `...`"),
    (lambda x: x[0, 0], {"x": VECTOR}, "more indices than dimensions"),
    (lambda x: x.max(initial=0.0), {"x": VECTOR}, "`np.max` is traced without `initial`"),
    (lambda x: np.add(x, 1, where=x > 0), {"x": VECTOR}, "`np.add` is traced without `where`"),
    (lambda x: x.sum(axis=1), {"x": VECTOR}, "no axis 1 of an array of 1 dimension"),
    (lambda x: np.array([x[0], x[1]]), {"x": VECTOR}, "`np.stack([a, b])`"),
    (lambda x: np.zeros(x.shape) + x, {"x": VECTOR}, "`np.zeros_like(x)`"),
    (lambda x: np.linspace(0, 1, 5) * x, {"x": VECTOR}, "one number, in the types"),
    (lambda x: np.add(x, 1, out=x), {"x": VECTOR}, "without `out`"),
    (lambda x: {"a": x}, {"x": VECTOR}, "returns {'a': "),
    (lambda x: "a", {"x": VECTOR}, "a number, an array or a tuple"),
    (lambda x: x.reshape(2, 2), {"x": VECTOR}, "cannot be seen to have the shape (2, 2)"),
    (lambda x: x.reshape(2, -1), {"x": VECTOR}, "cannot be seen to have the shape (2, -1)"),
    (lambda x: f"{x[0]:.2f}", {"x": VECTOR}, "show them after a call"),
    (lambda x: float(x[0]) if x[0] > 0 else 0.0, {"x": VECTOR}, "`&` and `|` combine"),
    (np.sin, {"x": VECTOR}, "a function in Python is traced"),
    (
        lambda x: sum(x[0] * k for k in range(301)),
        {"x": VECTOR},
        "`rvm.pure.loop(n, body, init)` is",
    ),
    (lambda x: x.astype(object), {"x": VECTOR}, "float64, float32"),
    (lambda x, y: x + y, {"x": VECTOR}, "and `y` has no type"),
    (lambda x: x, {"x": VECTOR, "z": VECTOR}, "no parameter `z`"),
    (lambda *x: x[0], {"x": VECTOR}, "`*x`"),
    (lambda x: x, {"x": list}, "`list`"),
    (lambda x: rvm.pure.reduce(lambda s: s, 0.0, x), {"x": VECTOR}, "with 2 values"),
    (
        lambda x: rvm.pure.loop(3, lambda i, s: x, 0.0),
        {"x": VECTOR},
        "has the type f64[n], not f64",
    ),
    (lambda x: rvm.pure.map(lambda a: a, 3.0), {"x": VECTOR}, "not a value of type f64"),
]


@pytest.mark.parametrize(("f", "types", "words"), WRONG, ids=[w for *_, w in WRONG])
def test_what_is_wrong_is_reported_in_this_file_with_what_it_is(
    f: Any, types: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        rvm.pure(f, **types)
    error = caught.value
    assert error.code == "U060" and error.where.source == __file__
    assert words in f"{error.message} {error.hint}"


def underlined(error: rvm.RvmError) -> str:
    """The text that a message underlines, in this file."""
    where = error.where
    assert where.source == __file__ and where.text is not None
    return where.text[where.column - 1 : where.end - 1]


def fifth(x: Any) -> Any:
    ä = x * 2.0
    return (np.exp(ä) +
            ä[5])  # fmt: skip


def nested_in(x: Any) -> Any:
    return np.exp(x[0]) + x[7]


@rvm.pure
def nested(x: Array[f64, "n"]) -> Any:
    first = fifth(x)
    return rvm.pure.reduce(lambda s, e: s + e * x[7], 0.0, first)


def test_what_goes_wrong_in_a_run_is_underlined_in_python() -> None:
    """As what cannot be traced is: the expression, after letters of two bytes too."""
    with pytest.raises(rvm.MachineError, match="the index 5 is outside") as found:
        rvm.pure(fifth, x=VECTOR)(np.ones(3))
    assert underlined(found.value).startswith("np.exp(ä)")
    with pytest.raises(rvm.MachineError, match="the index 7 is outside") as found:
        nested(np.ones(6))
    assert underlined(found.value).startswith("rvm.pure.reduce(lambda")
    with pytest.raises(rvm.AssemblyError, match="the index 7 is outside") as wrong:
        rvm.pure(nested_in, x="f64[3]").program  # noqa: B018
    assert underlined(wrong.value) == "x[7]"
    with pytest.raises(UsageError) as refused:
        rvm.pure(lambda x: "ä" if (ä := np.sort(x)) is None else ä, x=VECTOR)
    assert underlined(refused.value) == "np.sort(x)"
    with pytest.raises(rvm.AssemblyError, match="a gradient is of a real number") as wrong:
        rvm.pure(fifth, x=VECTOR).grad(np.ones(6))
    assert underlined(wrong.value).startswith("np.exp(ä)")


@rvm.reversible
def added(x: f64) -> None:
    x += 1


def test_arguments_that_are_wrong_are_named() -> None:
    f = rvm.pure(lambda x, y: x + y, x="f64", y="f64")
    for call, words in (
        (lambda: f(1.0), "needs a value for `y`"),
        (lambda: f(1.0, y=2.0, z=3.0), "has no parameter `z`"),
        (lambda: f(1.0, 2.0, 3.0), "takes 2 arguments, not 3"),
        (lambda: ~f, "is not undone"),
    ):
        with pytest.raises(UsageError, match=words):
            call()
    with pytest.raises(InputError, match="not a traced value"):
        rvm.pure(lambda x: added(x), x="f64")


def test_a_loop_from_numbers_needs_no_traced_value() -> None:
    f = rvm.pure(lambda x: rvm.pure.loop(3, lambda i, s: s * 2.0 + x[0], 1.0), x=VECTOR)
    assert f(np.array([0.5])) == 8.0 + 0.5 * 7
    with pytest.raises(UsageError, match="nothing is traced"):
        rvm.pure.iota(3)


def test_loops_of_python_are_traced_round_by_round() -> None:
    """An expression that nests too deep is made in parts."""

    def f(x: Any) -> Any:
        for k in range(40):
            x = np.sin(x) * (1.1 + k / 40)
        return x + x

    assert rvm.pure(f, x="f64")(0.5) == pytest.approx(f(0.5), rel=1e-13)


@pytest.mark.wide
def test_expressions_that_become_too_large_are_made_in_parts() -> None:
    def terms(x: Any) -> Any:
        s = 0.0
        for k in range(60):
            s = s + np.sin(x[k % 3]) * k
        return s

    def factors(x: Any) -> Any:
        p = 1.0
        for k in range(60):
            p = p * (1 + x[k % 3] / (k + 1))
        return p

    x = np.array([0.5, -1.5, 2.0])
    assert rvm.pure(terms, x=VECTOR)(x) == pytest.approx(terms(x), rel=1e-13)
    program = rvm.pure(factors, x=VECTOR).program
    out = program.factors(0.0, x)
    assert out.out == pytest.approx(factors(x), rel=1e-13)
    assert (~program.factors)(**out).out == 0.0


VIEWS = """
y[1:]; y[::-1]; y[None]; y[None, ::2]; y[...]; y[:]; y.T; y.T.T; y.real; y.conj(); +y; -y; y.copy()
np.expand_dims(y, 0); np.expand_dims(y, 1); np.squeeze(y); np.ravel(y); y.reshape(-1); y.flatten()
y.reshape(2, 2); np.reshape(y, (4, 1)); np.broadcast_to(y, (4,)); np.broadcast_to(y, (2, 4))
np.swapaxes(y[None], 0, 1); np.moveaxis(y[None], 0, 1); np.transpose(y); np.flip(y); np.roll(y, 1)
y.astype(float); y.astype(float, copy=False); np.take(y, [0, 1]); y[[0, 1]]; np.real(y); np.copy(y)
np.diagonal(y[None]); np.concatenate([y]); np.stack([y]); y * 1; np.where(y > 0, y, y); y.clip(0)
"""


@pytest.mark.parametrize(
    "text", [t for t in map(str.strip, VIEWS.replace("\n", ";").split(";")) if t]
)
def test_a_change_in_place_is_seen_where_numpy_sees_it(text: str) -> None:
    """Of an array and a view of it, whichever is changed; or it is refused."""
    for changed in "yz":
        for returned in "yz":
            names: dict[str, Any] = {"np": np}
            lines = ["y = x * 1", f"z = {text}", f"{changed} += 1", f"return {returned}"]
            exec("def f(x):\n" + "".join(f"    {line}\n" for line in lines), names)
            try:
                want = names["f"](X)
            except (TypeError, ValueError):  # a view that is read-only
                continue
            try:
                have = rvm.pure(names["f"], x="f64[4]")(X)
            except UsageError as error:
                assert error.code == "U060"
                continue
            np.testing.assert_array_equal(have, want)


def test_ends_of_slices_that_are_numbers() -> None:
    """Of arrays whose length only the call tells: as many elements as NumPy's."""
    ends = (None, 0, 1, 2, -1, -2, -3)
    for start, stop, step in itertools.product(ends, ends, (1, 2, 3, -1, -2, -3)):
        if (start or 0) < 0 <= (stop or 0) or (stop or 0) < 0 <= (start or 0):
            continue  # counted from both ends, which a length says
        f = rvm.pure(lambda x: x[start:stop:step] * 1.0, x="f64[n]")  # noqa: B023
        np.testing.assert_array_equal(f(X), X[start:stop:step], f"{start}:{stop}:{step}")


def test_parameters_are_passed_as_python_passes_them() -> None:
    def keyword(x: Any, *, a: Any) -> Any:
        return x * a

    @functools.wraps(keyword)
    def around(*args: Any, **named: Any) -> Any:
        return keyword(*args, **named) + 1

    for f, more in ((keyword, 0.0), (around, 1.0)):
        np.testing.assert_array_equal(rvm.pure(f, x="f64[n]", a="f64")(X, 2.0), X * 2 + more)
    last = rvm.pure(lambda x: rvm.pure.update(x, -1, 7.0), x="f64[n]")
    np.testing.assert_array_equal(last(X), [*X[:-1], 7.0])


CONSTANTS = [1.5, math.inf, -0.0, 2, True, 1 - 2j, complex(math.inf, 1), np.float64(0.1)]
CONSTANTS += [np.float32(0.1), np.int64(-3), np.uint8(200), np.bool_(True), np.complex128(2 + 1j)]


@pytest.mark.parametrize("c", CONSTANTS, ids=repr)
def test_constants_are_written_as_numbers_whatever_their_class(c: Any) -> None:
    """A number of NumPy may be one of Python's too, which prints itself otherwise."""
    made = [lambda x: x * c, lambda x: (x, c), lambda x: rvm.pure.where(x > 0, x * c, x * c)]
    for f in made:
        traced = rvm.pure(f, x=f64)
        want = f(np.float64(2.5)) if f is not made[2] else np.float64(2.5) * c
        (again,) = functions(traced.stage("source")).values()
        assert np.array_equal(again(2.5), want, equal_nan=True)
        out = rvm.assemble(traced.stage("rasm"))
        assert out.program.functions


def test_arrays_from_outside_keep_the_signs_of_zeros() -> None:
    for v in (np.array([0.0, -0.0]), np.array([[0.0, -0.0], [0.0, -0.0]]), -np.zeros(3)):
        found = rvm.pure(lambda x: 1 / (v * x), x=f64)(1.0)  # noqa: B023
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(found, 1 / v)


def test_an_array_from_outside_is_made_once_before_the_loop_that_uses_it() -> None:
    """Twice in each round: the rounds are instructions on whole arrays, without loops inside."""
    turn, shift = np.array([[0.8, -0.6], [0.6, 0.8]]), np.array([0.25, -1.0])

    def walk(x: Any, c: Any, n: Any) -> Any:
        return rvm.pure.loop(n, lambda i, s: turn @ (s + c * shift) + turn @ shift, x)[0]

    f = rvm.pure(walk, x="f64[2]", c=f64, n=i64)
    x, c, n = np.array([1.0, 2.0]), 0.5, 7
    want, powers = x, np.zeros((2, 2))
    for _ in range(n):
        want = turn @ (want + c * shift) + turn @ shift
        powers = turn @ (powers + np.eye(2))
    assert f(x, c, n) == pytest.approx(want[0], rel=1e-14)
    by_x, by_c = f.grad(x, c, n)
    np.testing.assert_allclose(by_x, np.linalg.matrix_power(turn, n)[0], rtol=1e-13)
    assert by_c == pytest.approx((powers @ shift)[0], rel=1e-13)
    text = f.stage("rasm")
    rounds = text[text.index(" to n - 1\n") :]
    assert "i64[2]" not in text and rounds.count("f64[2, 2]") == 0
    assert "turn" not in text and text.count("0.8") <= 4
    (again,) = functions(f.stage("source")).values()
    assert again(x, c, n) == f(x, c, n)
