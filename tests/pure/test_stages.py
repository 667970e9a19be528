"""The stages of the papers' examples are those of the papers, where these have no slips."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from pure.oracle import apart
from pure.oracle import gradient as complex_step
from pure.values import evaluate
from rvm_asm.program import Declarations
from rvm_pure import PureFunction, functions
from rvm_pure.gradient import simple
from rvm_pure.lexer import lex
from rvm_pure.parser import WORDS_OF_TERMS
from rvm_pure.printer import definition
from rvm_pure.reader import TextParser
from rvm_pure.stages import LINES, STAGES, UNARY
from rvm_pure.unary import rebuilt
from rvm_pure.unary_text import read_unary
from tools.running import rvm as command

import rvm
from rvm.faults import AssemblyError, MachineError, UsageError

ARTICLE = """
def article(x: f64, y: f64) =
    p = 7 * x
    r = 1 / y
    q = p * x * 5
    v = 2 * p * q + 3 * r
    v
"""
ANF = """
    p = mul (7, x)
    r = div (1, y)
    i1 = mul (p, x)
    q = mul (i1, 5)
    i2 = mul (2, p)
    i3 = mul (i2, q)
    i4 = mul (3, r)
    v = add (i3, i4)
    v
"""
DUP = """
    (x1, x2) = dup x
    p = mul (7, x1)
    (p1, p2) = dup p
    r = div (1, y)
    i1 = mul (p1, x2)
    q = mul (i1, 5)
    i2 = mul (2, p2)
    i3 = mul (i2, q)
    i4 = mul (3, r)
    v = add (i3, i4)
"""
FORWARD = """
    p = mul (7, x)
    dp = mul (7, dx)
    r = div (1, y)
    dr = negate (div (dy, mul (y, y)))
    i1 = mul (p, x)
    di1 = add (mul (dp, x), mul (p, dx))
    q = mul (i1, 5)
    dq = mul (di1, 5)
    i2 = mul (2, p)
    di2 = mul (2, dp)
    i3 = mul (i2, q)
    di3 = add (mul (di2, q), mul (i2, dq))
    i4 = mul (3, r)
    di4 = mul (3, dr)
    v = add (i3, i4)
    dv = add (di3, di4)
    (v, dv)
"""
# The article's rows, last first, with its slips mended: `d_dx1` and `d_dx2` for `d_x1` and a second
# `d_dx1`, `x2` for `x` where i1 is made, `i1` for `di1`, and `d_dx1` where p is.
REVERSE = """
    (d_di3, d_di4) = dup d_dv
    (_, d_dr) = mul (d_di4, (r, 3))
    (d_di2, d_dq) = mul (d_di3, (q, i2))
    (_, d_dp2) = mul (d_di2, (p2, 2))
    (d_di1, _) = mul (d_dq, (5, i1))
    (d_dp1, d_dx2) = mul (d_di1, (x2, p1))
    d_dy = negate (div (d_dr, mul (y, y)))
    d_dp = add (d_dp1, d_dp2)
    (_, d_dx1) = mul (d_dp, (x1, 7))
    d_dx = add (d_dx1, d_dx2)
    (v, d_dx, d_dy)
"""


def lines(text: str) -> str:
    return text.strip("\n").split("\n", 1)[1].strip()


def test_the_article_s_listings() -> None:
    f = functions(ARTICLE)["article"]
    assert lines(f.stage("anf", prefix=True)) == ANF.strip()
    assert lines(f.stage("dup", prefix=True)) == (DUP + "    v").strip()
    assert lines(f.stage("forward", prefix=True)) == FORWARD.strip()
    assert lines(f.stage("reverse", prefix=True)) == (DUP.rstrip() + REVERSE.rstrip()).strip()


PAPER = """
def first(x1: f64, x2: f64, x3: f64) = let w1 = x1 * x2 in let w2 = w1 * x1 in w2
def prod(A: f64[n]) = reduce * 1 A
def total(A: f64[n]) = reduce + 0 A
def dot(A: f64[n], B: f64[n]) = reduce + 0 (map2 * A B)
"""


def test_the_gradients_of_the_introduction() -> None:
    """The paper's product is of `scanr * 1 (shift1L A)`, which of no elements has one too many."""
    f = functions(PAPER)
    product = "map2 * (shift1L (scanr * 1.0 A)) (shift1R (scanl * 1 A))"
    assert f["prod"].stage("gradient") == f"def prod(A: f64[n]) = {product}\n"
    assert f["total"].stage("gradient") == "def total(A: f64[n]) = map (_. 1.0) A\n"
    assert f["dot"].stage("gradient", wrt="A") == "def dot(A: f64[n], B: f64[n]) = B\n"
    assert f["prod"].gradient()(np.zeros(0)).tolist() == []
    want = "(x1 * x2 + x2 * x1, x1 * x1, 0.0)"
    assert f["first"].stage("gradient").endswith(f"= {want}\n")


@pytest.mark.parametrize(
    "part", ["f64(u8(sum(w)))", "amax(shift1R w)", "f64(i64(sum(w)) // 0)", "f64(2 ** i64(sum(w)))"]
)
def test_a_loop_that_does_not_run_asks_for_no_constant(part: str) -> None:
    f = functions(f"def f(x: f64[n], w: f64[m]) = map (a. a + {part}) x")["f"]
    w = np.array([-1.0])
    assert f(np.zeros(0), w).tolist() == []
    with pytest.raises(MachineError):
        f(np.zeros(1), w)


def test_and_of_arrays_is_that_of_their_elements() -> None:
    text = "def f(p: bool[n], q: bool[n]) = (p and q, p or q)"
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    body = functions(text)["f"].definition.body
    both, either = evaluate(body, {"p": p, "q": q, "n": 4})
    assert (both.tolist(), either.tolist()) == ((p & q).tolist(), (p | q).tolist())


def test_the_transformation_of_the_first_example() -> None:
    """Example 3.1 but for names: `Y1`, `w2`, and five adjoints in the last body but one."""
    text = functions(PAPER)["first"].stage("direct")
    for line in (
        "fun (y1, y2, y3, z) -> Y(y1 + z, y2, y3)",
        "fun (y1, y2, y3, y4, z) -> Y7(y1, y2 + z, y3, y4)",
        "(x8 * x9, fun (y1, y2, y3, z) -> Y8(y1, y2, y3, x9 * z, x8 * z))",
        "fun (y1, y2, y3, y4, z) -> Y1(y1, y2, y3, y4 + z)",
        "fun (y1, y2, y3, y4, y5, z) -> Y5(y1 + z, y2, y3, y4, y5)",
        "(x6 * x7, fun (y1, y2, y3, y4, z) -> Y6(y1, y2, y3, y4, x7 * z, x6 * z))",
        "(x4, fun (y1, y2, y3, z) -> Y2(y1, y2, y3, 0.0, z))",
    ):
        assert line in text


# Where the paper's rules are wrong, by its own definitions.
SLIPS: list[tuple[str, dict[str, Any]]] = [
    (
        "def f(c: f64, A: f64[n]) = reduce (x, y. x + y + c * x * y) 0 A",
        {"c": 0.8, "A": np.array([1.1, 0.4, 2.0])},
    ),
    ("def f(v: f64, A: f64[n]) = reduce + v A", {"v": 2.0, "A": np.ones(2)}),
    ("def f(v: f64, A: f64[n]) = foldl (s, a. sin(s * a)) v A", {"v": 2.0, "A": np.zeros(0)}),
    ("def f(x: f64) = if x < 1 then x else log(x - 1)", {"x": 0.5}),
    ("def f(x: f64, A: f64[n]) = sum(map (a. a * x) A)", {"x": 0.5, "A": np.arange(3.0)}),
    ("def f(x: f64, n: i64) = loop p = x for i < n do p * x", {"x": 1.5, "n": 3}),
    (
        "def f(x: f64, n: i64) = let (a, b) = loop (a, b) = (x, 1.0) for i < n do"
        " (sin(b), a * f64(i)) in a * b",
        {"x": 1.5, "n": 4},
    ),
    ("def f(A: f64[n]) = (scanl (s, a. s * a + s) 1 A)[2] * A[0]", {"A": np.arange(1.0, 4.0)}),
    ("def f(A: f64[n], x: f64) = sum(A with [1] = x * A[1])", {"A": np.ones(3), "x": 2.0}),
    (
        "def f(A: f64[n]) = let B = shift1L A in sum(map2 * B (shift1R A))",
        {"A": np.arange(1.0, 5.0)},
    ),
    ("def f(x: f64) = sum(replicate 3 (x * x))", {"x": 1.5}),
]


def as_tuple(v: Any) -> tuple[Any, ...]:
    """The adjoints by several parameters, or by one."""
    return v if isinstance(v, tuple) else (v,)


def active(f: PureFunction) -> tuple[str, ...]:
    return tuple(p.name for p in f.definition.params if str(p.type) != "i64")


@pytest.mark.parametrize(("text", "given"), SLIPS, ids=[t.split("=", 1)[1][:24] for t, _ in SLIPS])
def test_where_the_paper_s_rules_are_wrong_ours_are_right(text: str, given: dict[str, Any]) -> None:
    f = functions(text)["f"]
    sizes = {"n": len(given["A"])} if "A" in given else {}
    want = complex_step(f.definition.body, {**given, **sizes}, active(f))
    assert apart(as_tuple(f.gradient()(**given)), want) < 1e-14
    for name in ("direct", "loops"):
        again = functions(f.stage(name))["f"]
        value, gradient = evaluate(again.definition.body, {**given, **sizes})
        assert value == pytest.approx(f(**given), rel=1e-14)
        assert apart(as_tuple(gradient), want) < 1e-14


@pytest.mark.parametrize("stage", LINES)
def test_stages_of_lines_are_read_again_and_give_derivatives(stage: str) -> None:
    text = (
        "def f(x: f64, y: f64) = let (a, b) = (sin x, x) in atan2(a * x, y + b) ** 2 - x / y / x\n"
    )
    f = functions(text)["f"]
    by_x, by_y = f.gradient()(0.7, 1.3)
    for prefix in (False, True):
        (again,) = functions(f.stage(stage, prefix=prefix)).values()
        given = {"x": 0.7, "y": 1.3, "dx": 0.5, "dy": -0.25, "d_dv": 2.0}
        found = evaluate(again.definition.body, given)
        found = found if isinstance(found, tuple) else (found,)
        want: tuple[Any, ...] = (f(0.7, 1.3),)
        if stage == "forward":
            want += (0.5 * by_x - 0.25 * by_y,)
        if stage == "reverse":
            want += (2 * by_x, 2 * by_y)
        assert found == pytest.approx(want, rel=1e-13)


def test_what_is_never_used_has_the_derivative_zero() -> None:
    f = functions("def f(x: f64, y: f64) =\n    w = sin y\n    x * x\n")["f"]
    assert "    d_dw = 0.0\n" in f.stage("reverse", prefix=True)
    (again,) = functions(f.stage("reverse")).values()
    assert again(3.0, 1.0, 1.0) == (9.0, 6.0, 0.0)


@pytest.mark.parametrize(
    ("text", "stage", "part"),
    [
        ("def f(a: f64[n]) = sum(map sin a)", "anf", "sum(map sin a)"),
        ("def f(a: f64[n]) = map sin a", "gradient", "map sin a"),
        ("def f(k: i64) = k", "gradient", "k"),
        ("def f(x: f64) = if x < 0 then x else 1", "dup", "if x < 0 then x else 1"),
    ],
)
def test_what_a_stage_cannot_take_is_shown(text: str, stage: str, part: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        functions(text)["f"].stage(stage)
    (found,) = caught.value.diagnostics
    where = found.where
    assert found.code == "A085" and text[where.column - 1 : (where.end or 0) - 1] == part


def test_wrong_names() -> None:
    f = functions(PAPER)["dot"]
    for call in (lambda: f.stage("antiderivative"), lambda: f.stage("gradient", wrt="C")):
        with pytest.raises(UsageError):
            call()


def test_the_command_prints_stages(tmp_path: Any) -> None:
    file = tmp_path / "p.pure"
    file.write_text(PAPER)
    assert command("pure", str(file), "-f", "dot", "--stage", "gradient", "--wrt", "B").stdout == (
        "def dot(A: f64[n], B: f64[n]) = A\n"
    )
    assert command("pure", str(file)).stdout.count("def ") == 4
    assert "no definition `cross`" in command("pure", str(file), "-f", "cross", code=2).stderr
    assert "not Python" in command("pure", "some.py", code=2).stderr
    shown = re.sub(r"[\s│|]+", " ", command("pure", "--help").stdout)
    assert f"The stage to print: {', '.join(STAGES)}." in shown


VALUES: list[tuple[str, tuple[Any, ...], Any, Any]] = [
    ("x: f32, a: f32[n]) = sum(map (t. t * x) a)", (1.5, np.ones(3, "f")), 4.5, (3.0, [1.5] * 3)),
    ("x: c128, y: f64) = real(x * x) * y", (1 + 2j, 3.0), -9.0, (6 - 12j, -3.0)),
    ("x: fixed, y: fixed) = x * y", (1.5, 2.0), 3.0, (2.0, 1.5)),
    ("A: f64[m, n]) = sum(map (r. reduce * 1 r) A)", ([[1.0, 2], [3, 4]],), 14.0, [[2, 1], [4, 3]]),
    ("p: (f64, f64[n])) = let (a, b) = p in a * sum(b)", ((2.0, [1.0, 3]),), 8.0, (4.0, [2, 2])),
    (
        "p: (f64, f64)[n]) = reduce + 0 (map ((a, b). a * b) p)",
        (([0.0, 1], [3.0, 2]),),
        2.0,
        ([3, 2], [0, 1]),
    ),
    ("x: f64[n], k: i64) = x[k] * x[0]", ([2.0, 3], 1), 6.0, [3, 2]),
    ("x: f64[n]) = logsumexp(x)", ([0.0, 0.0],), np.log(2), [0.5, 0.5]),
    ("n: i64, x: f64) = sum(replicate n x)", (3, 2.0), 6.0, 3.0),
    ("n: i64, x: f64) = foldl (s, i. s * x + 1) 0 (iota n)", (3, 2.0), 7.0, 5.0),
    ("k: i64[n], x: f64) = x * f64(foldl (s, i. s * 2 + i) 0 k)", ([1, 1], 2.0), 6.0, 3.0),
    ("x: f64[n]) = sum(mapn (a, b, c. a * b * c) x x x)", ([2.0, 3],), 35.0, [12, 27]),
]


@pytest.mark.parametrize(("text", "args", "value", "gradient"), VALUES, ids=lambda v: str(v)[:20])
def test_values_and_gradients_of_all_types(
    text: str, args: tuple[Any, ...], value: Any, gradient: Any
) -> None:
    f = functions(f"def f({text}\n")["f"]
    assert f(*args) == pytest.approx(value, rel=1e-6)
    found = f.gradient()(*args)
    if not isinstance(gradient, tuple):
        found, gradient = (found,), (gradient,)
    for have, want in zip(found, gradient, strict=True):
        assert np.allclose(have, want, rtol=1e-6)


def test_arrays_as_long_as_a_number_says() -> None:
    f = functions("def f(n: i64) = iota n\n")["f"]
    assert f(4).tolist() == [0, 1, 2, 3]


INF = np.inf
OVERFLOWING = [
    ("def f(x: f64, y: f64) = exp(x) * y", (800.0, 2.0), [INF, INF]),
    ("def f(x: f64, y: f64) = x * y * y", (1e200, 1e200), [INF, INF]),
    ("def f(A: f64[n]) = reduce * 1 A", ([1e200, 1e200, 3.0],), [3e200, 3e200, INF]),
    ("def f(A: f64[n]) = sum(map (a. exp(a)) A)", ([0.0, 710.0, -800.0],), [1.0, INF, 0.0]),
    ("def f(x: f64, n: i64) = loop p = x for i < n do p * p", (1e100, 2), [4e300]),
    ("def f(x: f64) = log(x)", (5e-324,), [INF]),
    (
        "def f(A: f64[n]) = sum(map (a. if a > 0 then exp(a) else a) A)",
        ([710.0, -1.0],),
        [INF, 1.0],
    ),
]


@pytest.mark.parametrize(("text", "args", "want"), OVERFLOWING, ids=lambda v: str(v)[:40])
def test_what_overflows_has_the_derivatives_that_floats_give(
    text: str, args: tuple[Any, ...], want: list[float]
) -> None:
    f = functions(text)["f"]
    for found in (f.by("rasm").grad(*args), f.gradient()(*args)):
        np.testing.assert_allclose(np.ravel(found), want, rtol=1e-14)


READ_AGAIN = f"""
{ARTICLE}{PAPER}
def power(x: f64, n: i64) = loop p = 1.0 for i < n do p * x
def down(x: f64, n: i64) = loop (p, q) = (x, 1.0) for i = n - 1 to 0 do (p * q, q + f64(i))
def chosen(x: f64, y: f64) = if x < y then sin(x) else x * y
def horner(c: f64[n], x: f64) = foldl (s, a. s * x + a) 0 c
def last(A: f64[n], x: f64) = (scanl (s, a. sin(s * a)) x A)[n]
def rows(A: f64[m, n], x: f64[n]) = sum(map (r. dot(r, x)) A)
def parts(p: (f64, f64[n])) = let (a, b) = p in a * sum(b with [0] = a)
"""


@pytest.mark.parametrize("name", [n for n in STAGES if n not in ("unf", "unf-reverse", "rasm")])
def test_stages_print_as_they_were_read(name: str) -> None:
    seen = 0
    for f in functions(READ_AGAIN).values():
        for prefix in (False, True) if name in LINES else (False,):
            try:
                text = f.stage(name, prefix=prefix)
            except AssemblyError:  # Of lines and real values only.
                continue
            declarations = Declarations()
            file = declarations.sources.add("f.pure", text)
            (d,) = TextParser(lex(file, declarations.report), declarations.report).definitions()
            assert definition(d, block=name in LINES or None, prefix=prefix) == text
            # And typed, it is a function that the machine runs.
            assert "func " in functions(text)[f.name].stage("rasm")
            seen += 1
    assert seen >= 2


TUPLES = [
    "def f(p: (f64, f64)) = fst p * snd p + sin(fst p)",
    "def f(x: f64, p: (f64, f64)) = let (a, b) = p in a * exp(b) + x",
    "def f(p: (f64, i64), q: ((f64, f64), f64), n: i64) ="
    " fst p * snd (fst q) + snd q ** snd p + f64(n) * fst p",
    "def f(p: ((f64, f64), bool), x1: (f64, f64)) = fst (fst p) / snd x1 + fst x1 * fst (fst p)",
]


def nested(t: Any, leaf: Any) -> Any:
    """A value of a type, of what `leaf` gives for each of its numbers."""
    return tuple(nested(item, leaf) for item in t.items) if hasattr(t, "items") else leaf(t)


def numbers(v: Any) -> list[Any]:
    """The numbers of nested tuples, in order."""
    return [x for item in v for x in numbers(item)] if isinstance(v, tuple) else [v]


@pytest.mark.parametrize("text", TUPLES)
def test_lines_of_tuples_have_the_derivatives_of_their_numbers(text: str) -> None:
    """Of random inputs: along a random direction, and by each number, as differences have them."""
    f = functions(text)["f"]
    rng = np.random.default_rng(1)
    real = {"f64": lambda: float(rng.uniform(0.5, 2)), "i64": lambda: 3, "bool": lambda: True}
    kinds = [p.type for p in f.definition.params]
    at = [nested(t, lambda s: real[str(s)]()) for t in kinds]

    def moved(along: list[Any], h: float) -> Any:
        steps = iter(numbers(tuple(along)))

        def step(v: Any) -> Any:
            d = next(steps)
            return v + h * d if isinstance(v, float) else v

        return f(*[step(v) if not isinstance(v, tuple) else apply(step, v) for v in at])

    def apply(fn: Any, v: Any) -> Any:
        return tuple(apply(fn, x) for x in v) if isinstance(v, tuple) else fn(v)

    def slope(along: list[Any]) -> float:
        return float(moved(along, 1e-6) - moved(along, -1e-6)) / 2e-6

    for stage in ("anf", "dup"):
        assert functions(f.stage(stage))["f"](*at) == f(*at)
    active = [k for k, t in enumerate(kinds) if str(t) != "i64"]
    along = [nested(t, lambda s: real[str(s)]()) for t in kinds]
    forward = functions(f.stage("forward"))["f"]
    value, tangent = forward(*at, *(along[k] for k in active))
    assert value == f(*at)
    assert tangent == pytest.approx(slope(along), rel=1e-8)
    back = functions(f.stage("reverse"))["f"](*at, 2.0)
    assert back[0] == f(*at)
    found = iter(numbers(back[1:]))
    for k in active:
        for j, v in enumerate(numbers(at[k])):
            got = next(found)
            if not isinstance(v, float):
                assert got == 0
                continue
            unit = [nested(t, lambda s: 0.0) for t in kinds]
            ones = iter([0.0] * j + [1.0] + [0.0] * len(numbers(at[k])))
            unit[k] = nested(kinds[k], lambda s, ones=ones: next(ones))
            assert got == pytest.approx(2 * slope(unit), rel=1e-7, abs=1e-9)


def test_a_tuple_of_numbers_is_a_line_of_several_values() -> None:
    f = functions("def f(p: (f64, f64), x: f64) = (snd p * x, fst p)")["f"]
    assert f((2.0, 3.0), 5.0) == functions(f.stage("anf"))["f"]((2.0, 3.0), 5.0) == (15.0, 2.0)
    with pytest.raises(AssemblyError, match="a tuple is not a line"):
        functions("def f(x: f64) = ((x, x), x)")["f"].stage("anf")


WORDS = sorted({*WORDS_OF_TERMS, "sin", "cos", "exp", "sum", "len", "Y", "y1", "o", "ef", "up"})


@pytest.mark.parametrize("name", WORDS)
def test_names_that_are_words_or_functions_are_read_back(name: str) -> None:
    """As a parameter, as the definition itself, and as the stem of the names of derivatives."""
    written = f"`{name}`"
    texts = [
        f"def f({written}: f64, y: f64) = let {written} = sin({written}) * y in exp({written}) / y",
        f"def {written}(x: f64, y: f64) = sin(x) * exp(y) * cos(x)",
        f"def f({written}: f64[n], y: f64) ="
        f" foldl (s, {written}. s * y + sin {written}) y {written}",
    ]
    for text in texts:
        (f,) = functions(text).values()
        at = (np.array([0.3, 0.6]) if "f64[n]" in text else 0.3, 1.7)
        value = f(*at)
        for stage in STAGES:
            if stage in (*LINES, *UNARY) and "foldl" in text:
                continue
            found = f.stage(stage)
            if stage == "rasm":
                assert rvm.assemble(found)[f.name](0.0, *at)["out"] == pytest.approx(value)
                continue
            if stage in UNARY:
                found = definition(simple(rebuilt(read_unary(found))))
            (again,) = functions(found).values()
            more = {"forward": (1.0, 0.0), "reverse": (1.0,)}.get(stage, ())
            got = again(*at, *more) if stage != "direct" else None
            if stage == "gradient":
                assert apart(got, f.grad(*at)) < 1e-14
            elif got is not None:
                assert (got if not isinstance(got, tuple) else got[0]) == pytest.approx(value)


def test_a_word_in_backquotes_is_no_function() -> None:
    with pytest.raises(AssemblyError, match=r"(?s)A062.*in backquotes"):
        functions("def f(map: f64) = map")
    f = functions("def f(`sin`: f64) = `sin` + sin(`sin`)\ndef g(x: f64) = `f`(x) * f(x)")
    assert f["g"](0.5) == pytest.approx((0.5 + math.sin(0.5)) ** 2)
