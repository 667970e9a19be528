"""Pure texts become functions that add their values, there and back, and give what NumPy gives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import rvm_pure
from pure.terms import Writer
from pure.values import evaluate
from rvm_asm import assemble as assemble_text
from rvm_asm.program import Declarations
from rvm_pure.assembler import read
from rvm_pure.printer import definition
from sizes import some, thin, wide

import rvm
from rvm.codec import encode
from rvm.engines import executing
from rvm.faults import AssemblyError, UsageError
from rvm.library.handle import Library

TEXT = """
def dot(a: f64[n], b: f64[n]) = reduce (x, y. x + y) 0 (map2 (x, y. x * y) a b)
def nested(x1: f64, x2: f64) = let w1 = x1 * x2 in let w2 = w1 * x1 in w2
def power(x: f64, n: i64) = loop p = 1.0 for i < n do p * x
def article(x: f64, y: f64) =            # a block of lines
    p = 7 * x
    r = 1 / y
    q = p * x * 5
    v = 2 * p * q + 3 * r
    v
def others(a: f64[n]) = map2 * (shift1L (scanr * 1 a)) (shift1R (scanl * 1 a))
def updated(a: f64[n], i: i64) = a with [i] = logsumexp(a) + a[i]
def pairs(a: f64[n]) = map (x. if x < 1 then (x, 1.0) else (log(x), 2.0)) a
def steps(x: f64, n: i64) = loop (a, b) = (x, 1.0) for i < n do (a * b, a + b)
def rows(A: f64[m, n], x: f64[n]) = map (r. dot(r, x)) A
def softmax(x: f64[n]) = let e = map (t. exp(t - amax(x))) x in map (t. t / sum(e)) e
def horner(c: f64[n], x: f64) = foldl (s, a. s * x + a) 0 c
def places(k: i64[n], x: f64[m]) = gather x k
def histogram(k: i64[n], w: f64[n], x: f64[m]) = scatter_add(x, k, w)
def whole(k: i64[n]) = foldl (s, x. s * 3 + x) 7 k
"""
A = np.array([0.5, 2.0, -3.0])
M = np.arange(6.0).reshape(2, 3)
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("dot", {"a": A, "b": A}, A @ A),
    ("nested", {"x1": 3.0, "x2": 5.0}, 45.0),
    ("power", {"x": 1.5, "n": 7}, 1.5**7),
    ("power", {"x": 1.5, "n": 0}, 1.0),
    ("article", {"x": 2.0, "y": 5.0}, 3920.6),
    ("others", {"a": A}, np.array([-6.0, -1.5, 1.0])),
    ("others", {"a": A[:0]}, A[:0]),
    ("updated", {"a": A, "i": 1}, np.array([0.5, 2.0 + np.log(np.exp(A).sum()), -3.0])),
    ("pairs", {"a": A}, {"p1": [0.5, np.log(2.0), -3.0], "p2": [1.0, 2.0, 1.0]}),
    ("steps", {"x": 2.0, "n": 3}, {"p1": 30.0, "p2": 11.0}),
    ("rows", {"A": M, "x": A}, M @ A),
    ("softmax", {"x": A}, np.exp(A) / np.exp(A).sum()),
    ("horner", {"c": A, "x": 2.0}, 0.5 * 4 + 2.0 * 2 - 3.0),
    ("places", {"k": np.array([2, 0, 2]), "x": A}, A[[2, 0, 2]]),
    ("histogram", {"k": np.array([1, 1, 0]), "w": A, "x": M[1]}, M[1] + [-3.0, 2.5, 0.0]),
    ("whole", {"k": np.array([2, 0, 1])}, ((7 * 3 + 2) * 3) * 3 + 1),
]


def zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: zeros(v) for k, v in value.items()}
    value = np.asarray(value)
    return np.zeros_like(value) if value.ndim else value.dtype.type(0).item()


def same(have: Any, want: Any) -> bool:
    if isinstance(want, dict):
        return all(same(have[k], v) for k, v in want.items())
    return bool(np.allclose(have, want, rtol=1e-14, atol=1e-14))


@pytest.mark.parametrize("engine", executing())
@some
def test_values_are_added_and_subtracted(engine: str) -> None:
    lib = Library(rvm_pure.assemble(TEXT))
    for name, given, want in CASES:
        f = lib[name].with_options(engine=engine)
        out = f(out=zeros(want), **given)
        assert same(out["out"], want), name
        back = (~f)(**out)
        assert same(back["out"], zeros(want)), name


def test_a_definition_that_one_expression_says_is_one_instruction() -> None:
    program = rvm_pure.assemble(TEXT)
    for name in ("dot", "nested", "article"):
        assert [i.op for i in program.function(name).code] == ["add"]


def test_overflow_is_an_infinity_and_comes_back() -> None:
    lib = Library(rvm_pure.assemble(TEXT))
    out = lib.power(out=0.0, x=1e200, n=3)
    assert out.out == np.inf
    big = np.array([1e200, 1e200, 0.0])
    found = lib.others(out=np.zeros(3), a=big)
    assert found.out.tolist() == [0.0, 0.0, np.inf]
    assert (~lib.power)(out=1.0, x=1e200, n=1).out == -1e200 + 1


def test_files_are_found_by_their_suffix(tmp_path: Any) -> None:
    (tmp_path / "f.pure").write_text("def f(x: f64) = x * x\n")
    assert rvm.load(tmp_path / "f.pure").f(out=1.0, x=3.0).out == 10.0


def test_the_text_in_the_assembly_language_makes_the_same_bytes() -> None:
    for text in (TEXT, *(Writer(s).definition(6) for s in range(6))):
        program = rvm_pure.assemble(text, "f.pure")
        assert encode(assemble_text(rvm_pure.rasm(text, "f.pure"))) == encode(program)


def agree(seeds: range) -> None:
    """Random terms: the machine's value is the walk's, and what is printed is the same term."""
    for seed in seeds:
        text = Writer(seed).definition(6)
        rng = np.random.default_rng(seed)
        n = (0, 1, 2, 5)[seed % 4]
        x, y = rng.normal(size=2)
        given = {"x": x, "y": y, "A": rng.normal(size=n), "B": rng.normal(size=n)}
        (d,) = read(text, Declarations())
        want = evaluate(d.body, {**given, "n": n})
        f = Library(rvm_pure.assemble(text)).f.with_options(engine="reference")
        out = f(out=0.0, **given)
        assert out.out == pytest.approx(want, rel=1e-12, abs=1e-12), text
        assert (~f)(**out).out == pytest.approx(0.0, abs=1e-12 * max(1, abs(want))), text
        (again,) = read(definition(d), Declarations())
        assert again.body == d.body, text


@thin
@pytest.mark.parametrize("part", range(4))
def test_random_terms_agree_with_their_walk(part: int) -> None:
    agree(range(8 * part, 8 * part + 8))


@pytest.mark.deep
def test_many_random_terms_agree_with_their_walk() -> None:
    agree(range(100, 1100))


WRONG = [
    ("def f(x: f64) = x +", "A002", ""),
    ("def f(x: f64) = y", "A005", "y"),
    ("def f(x: f64) = sine(x)", "A004", "sine"),
    ("def f(a: f64[n], b: f64[m]) = map2 * a b", "A042", "b"),
    ("def f(a: f64[n]) = map2 + a (shift1L a)", "A042", "shift1L a"),
    ("def f(a: f64[n], b: f64[n + 1]) = a + b", "A042", "a + b"),
    ("def f(A: f64[m, n], x: f64[m]) = A @ x", "A042", "A @ x"),
    ("def f(x: f64) = map sin x", "A042", "x"),
    ("def f(x: f64, n: i64) = x * n", "A040", "x * n"),
    ("def f(x: f64) = let (a, b) = x in a", "A044", "let (a, b) = x in a"),
    ("def f(x: f64) = if x then 1 else 2", "A040", "x"),
    ("def f(a: f64[n]) = foldl (s, x. s < x) 0 a", "A040", "s < x"),
    ("def f(x: f64) = f(x)", "A051", "f"),
    ("def f(x: f64) = atan2(x)", "A044", "atan2(x)"),
    ("def f(x: f64) = " + "(" * 120 + "x" + ")" * 120, "A046", "("),
    ("def f(x: f65) = x", "A005", "f65"),
    ("def f(x: f64) = x\ndef f(y: f64) = y", "A006", "f"),
    ("def f(x: f64) = fun (y) -> y", "A040", "fun (y) -> y"),
    ("def f(x: f64) = 1e999 * x", "A041", "1e999"),
]


@pytest.mark.parametrize(("text", "code", "part"), WRONG, ids=lambda v: str(v)[:24])
def test_what_is_wrong_is_shown_at_its_place(text: str, code: str, part: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        rvm_pure.assemble(text)
    first = caught.value.diagnostics[0]
    assert first.code == code
    where = first.where
    line = text.split("\n")[where.line - 1]
    if part:
        assert line[where.column - 1 : (where.end or 0) - 1] == part


HINTS = [
    ("def f(x: f64) x * x", "a definition is written `def f(x: f64) = x * x`"),
    ("def f(x: f64) = let y = x y * y", "`let y = … in …`"),
    ("def f(x: f64) = if x > 0 then x", "`if c then a else b`"),
    ("def f(x: f64) = x if x > 0 else -x", "`if c then a else b`"),
    ("def f(x: f64) = reduce + x", "`reduce f v A`"),
    ("def f(a: f64[n]) = map (x. x * x)", "`map f A`, `map2 f A B`"),
    ("def f(x: f64) = x[0]", "1 index of a value of type f64, which has 0 dimensions"),
    ("def f(x: f64) = sin(x, x)", "`sin` takes 1 argument, not 2"),
    ("def f(x: f64) = (x, x) + 1", "`let (a, b) = p in …`"),
    ("def f(p: (f64, f64)) = let (a, b, c) = p in a", "the 3 names (a, b, c)"),
    ("def f(p: (f64, f64)) = proj 3 p", "its parts have the numbers 1 to 2"),
    ("def f(x: f64, n: i64) = loop s = x for i in n do s", "`loop s = v for i < n do e`"),
    ("def f(x: f64, n: i64) = loop s = x for i < n do (s, s)", "each state has the type"),
    ("def f(x: f64) = g(x)\ndef g(x: f64) = f(x)", "`f` is defined by itself, through `g`"),
    ("def f(x: float) = x", "there are bool, i8"),
    ("def f(a: f64[n + m]) = sum a", "a length is `n`, `n + 1`"),
    ("def f(a: f64[n + 1]) = sum a", "binds it: `a: f64[n]`"),
    ("def f(x: f64) = x ^ 2", "a power is written `**`"),
    ("def f(x: f64) = x && x", "joined by `and`"),
    ("def f(a: f64[n]) = [1, 2]", "`iota`, `replicate`"),
    ("def f(x: f64) = sin x y", "a definition is one term"),
    ("def f(x: f64) = let in = x in x", "another name"),
]


@pytest.mark.parametrize(("text", "words"), HINTS, ids=lambda v: str(v)[:40])
def test_what_to_write_instead_is_said(text: str, words: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        rvm_pure.assemble(text)
    assert words in str(caught.value)


def test_what_becomes_of_lets_is_explained() -> None:
    text = """
def f(x: f64[n], y: f64) =
    let a = sin y in
    let b = map (t. if t < 0 then a else t * a) x in
    let c = foldl (s, t. s * t + 1) 1 b in
    let d = c * y in
    d * d + c
"""
    assert list(rvm_pure.functions(text)["f"].lets) == [
        "a: an ancilla, freed by the same expression (f64, 8 bytes, used 2 times, work 3): "
        "its uses are in several instructions, or in a loop",
        "b: each element is put in where it is used (f64[n], used 1 time, work 45): "
        "an element is used once, or takes no work",
        "c: put in where it is used (f64, used 2 times, work 50): it is the last state",
        "s1: the states of a fold or loop, stored and uncomputed (f64[n + 1], 8 * (n + 1) bytes): "
        "no update that can be undone was found, and there is no budget",
        "d: put in where it is used (f64, used 2 times, work 4): "
        "an instruction computes equal parts once",
    ]


def test_what_is_used_many_times_is_held() -> None:
    # An operand of a product of matrices, a number in a loop over elements, terms of a sum.
    text = """
def layers(V: f64[k, h], W: f64[h, n], x: f64[n]) = tanh(V @ tanh(W @ x))
def scaled(x: f64[n], k: i64[m]) = map2 * (gather x k) (replicate m (1 / sum(x)))
def nested(x: f64[n], y: f64[m]) =
    sum(map (a. let s = sum(map (b. if a < b then b else a * b) y) in s * s) x) - 2 * sum(y)
"""
    found = rvm_pure.functions(text)
    assert found["layers"].stage("rasm").count("@") == 3
    # The derivative of `tanh` reads the product.
    assert "f64[h] = W @ x\n    alloc t: f64[h] = tanh(t1)" in found["layers"].stage("rasm")
    assert "alloc c: f64 = 1.0 / sum(x)\n    for" in found["scaled"].stage("rasm")
    text = found["nested"].stage("rasm")
    assert text.count("routine") == 1 and "= sum(t)" in text and "[m + 1]" not in text
    rng = np.random.default_rng(0)
    v, w, x = rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)
    np.testing.assert_allclose(found["layers"](v, w, x), np.tanh(v @ np.tanh(w @ x)), rtol=1e-14)
    k = np.array([1, 0, 1])
    np.testing.assert_allclose(found["scaled"](x, k), x[k] / x.sum(), rtol=1e-14)
    for y in (v[0], np.zeros(0)):
        want = sum(np.where(a < y, y, a * y).sum() ** 2 for a in x) - 2 * y.sum()
        np.testing.assert_allclose(found["nested"](x, y), want, rtol=1e-13)
        assert found["nested"](np.zeros(0), y) == -2 * y.sum()


def test_loops_that_ask_where_they_are_go_in_pieces_without_asking() -> None:
    r = random.Random(3)
    ends = ["0", "1", "2", "n", "n - 1", "n - 2", "m", "3"]

    def condition(depth: int) -> str:
        if depth and r.random() < 0.4:
            parts = [condition(depth - 1), condition(depth - 1)]
            return f"({r.choice([' and ', ' or ']).join(parts)})"
        number = r.choice(["i", "i + 1", "i - 1"])
        pair = [number, r.choice(ends)]
        r.shuffle(pair)
        return f"({r.choice(['<', '<=', '>', '>=', '==', '!='])})".strip("()").join(
            f" {x} " for x in pair
        )

    split = 0
    for _ in range(60):
        inner = f"if {condition(1)} then 2 * x[i] else c"
        body = f"if {condition(1)} then x[i] + c else ({inner})"
        text = f"def f(x: f64[n], c: f64, m: i64) = map (i. {body}) (iota n)\n"
        f = rvm_pure.functions(text)["f"]
        code = f.stage("rasm")
        split += code.count("for") > 1
        assert code.count("for") == 1 or "choose" not in code, text
        handle = f.program.f.with_options(engine="reference")
        for n in range(5):
            given = {"x": np.arange(1.0, n + 1), "c": -0.5, "m": r.randint(-1, 4)}
            want = evaluate(f.definition.body, {**given, "n": n})
            assert handle(out=np.zeros(n), **given).out.tolist() == list(want), text
        # Names for arrays, as traces have them, in a loop too, hide no condition.
        named = f"let k = iota n in let v = map (i. let j = i in {body}) k in v"
        for term, others in ((named, 0), (f"loop x = x for t < 2 do {named}", 2)):
            g = rvm_pure.functions(text.split("=", 1)[0] + f"= {term}\n")["f"]
            again = g.stage("rasm")
            assert again.count("for") == code.count("for") + others, again
            x = np.arange(1.0, 4.0)
            given = {"x": x, "c": -0.5, "m": 2}
            want = evaluate(g.definition.body, {**given, "n": 3})
            if len(code) % 5 == 0:
                there = g.program.f.with_options(engine="reference")(out=np.zeros(3), **given)
                assert there.out.tolist() == list(want), again
    assert split > 20


INFINITE = """
def whole(a: f64[n], u: f64[n]) = loop u = u for i < 3 do map2 (s, t. 0.5 * s * t + 0.25) a u
def rows(A: f64[m, n]) = (scanl (s, r. s * r) (replicate n 1.0) A)[m]
def backwards(A: f64[m, n]) = (scanr (s, r. s * r - 1) (replicate n 1.0) A)[0]
def pair(x: f64, u: f64[n]) = snd (loop (x, u) = (x, u) for i < 3 do (x * x, u * x))
def begun(u: f64[n]) = loop v = map (t. exp(t)) u for i < 2 do map (t. t * 2) v
def parts(a: f64[n]) = loop v = a for i < 2 do map2 (s, t. if s < 2 then t else s * t) a v
def held(x: f64[n]) = let e = exp(x) in map (t. sum(e) * t) e
"""
BIG = np.array([1e200, -2e200, 1.5])


@pytest.mark.parametrize(
    "engine", [pytest.param(e, marks=wide if e == "native" else ()) for e in executing()]
)
def test_arrays_that_overflow_inside_come_back(engine: str) -> None:
    # What is done with the infinities is finite, so that the result can be taken away again.
    for d in read(INFINITE, Declarations()):
        name = d.name.text
        if engine == "native" and name != "pair":
            continue  # It is slow to compile.
        given = {p.name: BIG if p.name != "x" else 1e200 for p in d.params}
        if name in ("rows", "backwards"):
            given["A"] = np.array([BIG, BIG, [1.0, -1.0, 2.0]])
        if name in ("begun", "held"):
            given = {p.name: np.array([800.0, 700.0, -1.0]) for p in d.params}
        with np.errstate(over="ignore", invalid="ignore"):
            inner = evaluate(d.body, {**given, "n": 3, "m": 3})
            want = float(np.sum(1 / (1 + np.abs(inner))))
        assert np.isinf(inner).any() and np.isfinite(want), name
        args = ", ".join(p.name for p in d.params)
        head = ", ".join(f"{p.name}: {p.type}" for p in d.params)
        text = f"{INFINITE}def f({head}) = sum(map (t. 1 / (1 + abs(t))) ({name}({args})))\n"
        f = rvm_pure.functions(text)["f"].program.f.with_options(engine=engine)
        found = f(out=0.0, **given)
        assert found.out == pytest.approx(want, rel=1e-14), name
        assert (~f)(found).out == 0.0, name


def test_an_array_that_is_held_may_hold_infinities() -> None:
    text = """
def f(W: f64[m, n], V: f64[m, m], x: f64[n]) = V @ exp(W @ x)
"""
    found = rvm_pure.functions(text)
    eye = np.eye(2)
    assert found["f"](eye, np.ones((2, 2)), [800.0, 1.0]).tolist() == [np.inf, np.inf]
    assert "= exp(W @ x)" in found["f"].stage("rasm")


def test_tuples_are_taken_and_given_as_tuples() -> None:
    body = "let (a, (b, k)) = p in (a * b[k], (k, map (t. t * a) b))"
    text = f"def f(p: (f64, (f64[n], i64))) = {body}\n"
    f = rvm_pure.functions(text)["f"]
    value, (k, many) = f((2.0, ([1.0, 3.0], 1)))
    assert (value, k, many.tolist()) == (6.0, 1, [2.0, 6.0])
    for wrong in (2.0, (2.0,), (2.0, ([1.0],))):
        with pytest.raises(UsageError, match="is a tuple of 2"):
            f(wrong)
    g = rvm_pure.functions("def g(p: (f64, f64[n])) = let (a, b) = p in a * sum(b)\n")["g"]
    for form in ("rasm", "gradient"):
        by_a, by_b = g.by(form).grad((2.0, [1.0, 3.0]))
        assert (by_a, by_b.tolist()) == (4.0, [2.0, 2.0])


def test_the_result_is_multiplied_by_a_value_that_is_held_as_its_logarithm() -> None:
    text = """
def power(x: log64, n: i64) = loop p = x for i < n do p * x
def squares(x: log64[n]) = (map (t. t * t) x, reduce * (log64(1)) x)
def plain(x: log64, y: log64) = f64(x * y)
"""
    found = rvm_pure.functions(text)
    assert float(found["power"](2.0, 3)) == pytest.approx(16.0, rel=1e-14)
    f = found["power"].program.power
    there = f(out=3.0, x=2.0, n=3)
    assert float(there.out) == pytest.approx(48.0, rel=1e-14)
    assert float((~f)(there).out) == pytest.approx(3.0, rel=1e-14)
    many, product = found["squares"](np.log([2.0, 3.0]))  # Arrays hold the logarithms.
    np.testing.assert_allclose(np.exp(many), [4.0, 9.0])
    assert float(product) == pytest.approx(6.0, rel=1e-14)
    # Derivatives are by the logarithms; straight-line programs add adjoints as other numbers.
    for form in ("rasm", "gradient"):
        assert found["plain"].by(form).grad(2.0, 3.0) == pytest.approx((6.0, 6.0), rel=1e-14)
    with pytest.raises(AssemblyError, match="A085"):
        found["plain"].by("reverse").grad(2.0, 3.0)
