"""Common parts of expressions in derived programs: when they are held, and what that leaves."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import properties
from gradients.agreeing import agree, function
from mpmath import mp
from rvm_asm import disassemble
from sizes import sized, thin, wide

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.expr import places
from rvm.program import Program
from rvm.verify import findings

pytestmark = sized


def ops(program: Program, name: str) -> list[str]:
    return [i.op for i in program.function(name).code]


@pytest.mark.parametrize(
    ("line", "gains"),
    [
        ("add y, a", 1),
        ("add y, a * a", 2),
        ("sub y, a * b", 2),
        ("add y, a * sin(b)", 2),
        ("mul y, 2 + a ** 2", 1),
        ("add y, a / b", 2),
    ],
)
def test_short_expressions_have_no_ancillas(line: str, gains: int) -> None:
    f = function(f"func main(y: f64, a: f64, b: f64)\n    {line}\n")
    found = ops(f.gradient_program.program, "main_adjoint")
    assert "alloc" not in found
    assert len(found) == 1 + gains + line.startswith("mul")


def test_what_is_used_three_times_is_held() -> None:
    f = function("func main(y: f64, a: f64, b: f64)\n    add y, sqrt(exp(a * b) + a)\n")
    text = disassemble(f.gradient_program)
    assert text.count("alloc t1: f64 = exp(a * b)") == text.count("free  t1 = exp(a * b)") == 1
    agree(f, {"y": 0.5, "a": 0.7, "b": -0.3}, "y")


LONG = "a / ((1 + a * b) * sqrt(1 + a * b)) + sin(a / ((1 + a * b) * sqrt(1 + a * b))) * b"


@thin
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_all_updates(op: str) -> None:
    f = function(f"func main(y: f64, a: f64, b: f64)\n    {op} y, {LONG}\n")
    inputs = {"y": 1.5, "a": 0.7, "b": 0.4}
    rng = np.random.default_rng(1)
    assert "alloc" in ops(f.gradient_program.program, "main_adjoint")
    assert "alloc" in ops(rvm.tangent(f.program).program, "main_tangent")
    agree(f, inputs, "y")
    properties.adjoints_transpose_tangents(f, inputs, rng, 1e-14)
    properties.inverses_undo(f, inputs, rng, 1e-13)
    properties.gradients_run_back(f, inputs, rng)
    properties.hessians_are_symmetric(f, inputs, "y", rng, 1e-12, 1e-6)


@pytest.mark.deep
@pytest.mark.parametrize("where", ["x[i]", "p.x[i]"])
def test_elements_of_the_array_that_is_updated(where: str) -> None:
    """The chain of adjoints starts in the register that the gains go to."""
    other = where.replace("i", "j")
    value = f"sin({other} * a) * exp({other} * a) * sqrt(2 + sin({other} * a))"
    params = "p: P" if where.startswith("p") else "x: f64[n]"
    text = "record P\n    x: f64[3]\nend\n\n" if where.startswith("p") else ""
    for op in ("add", "mul"):
        f = rvm.assemble(
            f"{text}func main(a: f64, i: i64, j: i64, {params})\n    {op} {where}, {value}\n"
        )
        x = np.array([0.5, 0.25, 1.5])
        inputs = {"a": 0.75, "i": 0, "j": 2, **({"p": {"x": x}} if text else {"x": x})}
        agree(f.main, inputs, where.replace("i", "0"))
        properties.gradients_run_back(f.main, inputs, np.random.default_rng(2))


@wide
def test_third_derivatives_through_ancillas() -> None:
    f = function("func main(y: f64, x: f64)\n    add y, exp(x * x) * sin(exp(x * x)) / (2 + x)\n")
    second = f.gradient_program["main_gradient"]
    third = second.gradient_program["main_gradient_gradient"]
    at = {"y": 0.0, "x": 0.5, "y_bar": 1.0, "x_bar": 0.0}
    bars = {"y_bar_": 0.0, "x_bar_": 0.0, "y_bar_bar": 0.0, "x_bar_bar": 1.0}

    def exact(x: mp.mpf) -> mp.mpf:
        return mp.exp(x * x) * mp.sin(mp.exp(x * x)) / (2 + x)

    with mp.workdps(40):
        want = [float(mp.diff(exact, mp.mpf(1) / 2, k)) for k in (1, 2, 3)]
    assert f.grad(loss="y", y=0.0, x=0.5).x == pytest.approx(want[0], rel=1e-14)
    assert second.grad(loss="x_bar", **at).x == pytest.approx(want[1], rel=1e-14)
    assert third.grad(loss="x_bar_", **at, **bars).x == pytest.approx(want[2], rel=1e-13)


# ---------------------------------------------------------------- what may not be evaluated


def test_the_right_side_of_and_is_evaluated_only_if_it_is_needed() -> None:
    """x[i - 1] is read three times over, but not where i is 0."""
    f = function(
        """
func main(y: f64, x: f64[n], i: i64)
    add y, select(i > 0 and sqrt(x[i - 1] * 2) > 1, x[i] * 2, x[i]) * exp(x[i] * x[i])
"""
    )
    x = np.array([0.75, 0.25, -1.0])
    for i in (0, 1):
        agree(f, {"y": 0.0, "x": x, "i": i}, "y")
        assert f.jvp({"x": np.eye(3)[i]}, y=0.0, x=x, i=i)[1].y == pytest.approx(
            f.grad(loss="y", y=0.0, x=x, i=i).x[i], rel=1e-14
        )


def test_a_part_that_is_not_a_number_is_freed_all_the_same() -> None:
    f = function(
        """
func main(y: f64, x: f64[n])
    add y, sum(select(x > 0, sqrt(x) * sqrt(x) * sqrt(x), 0))
"""
    )
    x = np.array([0.0, 4.0])
    for engine in executing():
        g = f.with_options(engine=engine).grad(loss="y", y=0.0, x=x)
        assert np.isnan(g.x[0]) and g.x[1] == pytest.approx(3.0, rel=1e-15)


# ---------------------------------------------------------------- shapes


SHAPES = {
    "a number over an array": "add v, exp(a * b) * sin(exp(a * b)) * w",
    "a number to an array": "add v, exp(a * b) * sin(exp(a * b))",
    "one element over many": "add v, exp(one * a) * sin(exp(one * a)) * w",
    "one element to many": "add v, exp(one * a) * sin(exp(one * a))",
    "a row over a matrix": "add M, exp(w * a) * sin(exp(w * a)) + M2",
    "columns": "add M[:, 0], exp(M2[:, 1] * a) * sin(exp(M2[:, 1] * a))",
    "slices": "add v[0:2], exp(w[1:3] * a) * sin(exp(w[1:3] * a))",
    "products": "add v, tanh(M2 @ w) * (M2 @ w) * tanh(M2 @ w)",
    "transposed": "add v, tanh(transpose(M2) @ w) * (transpose(M2) @ w)",
    "norms": "add b, sqrt(dot(w - v, w - v)) * dot(w - v, w - v) / (1 + dot(w - v, w - v))",
    "gathered": "add b, sum(sin(gather(w, idx)) * gather(w, idx) * cos(gather(w, idx)))",
    "scattered": "add v, tanh(scatter(w, idx, len(v))) * scatter(w, idx, len(v))",
    "scans": "add v, tanh(scan_left(w * a)) * scan_left(w * a) * scan_right(w * a)",
    "outer": "add M, tanh(outer(v, w)) * outer(v, w) * tanh(outer(v, w))",
    "fixed": "add q, fixed(sin(f64(q2) * a) * exp(sin(f64(q2) * a)) * sin(f64(q2) * a))",
}


def test_what_is_computed_from_an_ancilla_is_not_kept_beyond_it() -> None:
    """`0.5 / size` would be worth keeping, but size is freed before that could be."""
    f = function(
        """
        func main(y: f64, a: f64, b: f64)
            alloc size: f64 = sqrt(a * a + b * b)
            add y, log(size)
            free size = sqrt(a * a + b * b)
        """
    )
    code = f.gradient_program.program.function("main_adjoint").code
    held: list[int] = []
    for instr in code:
        for arg in instr.args[instr.op in ("alloc", "fresh") :]:
            assert all(p.reg < 6 or p.reg in held for p in places(arg)), instr
        if instr.op in ("alloc", "fresh"):
            held.append(instr.args[0].reg)
        elif instr.op in ("free", "drop"):
            held.remove(instr.args[0].reg)
    found = f.grad(loss="y", y=0.0, a=3.0, b=4.0)
    assert (found.a, found.b) == pytest.approx((3 / 25, 4 / 25), rel=1e-14)


@pytest.mark.deep
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    f = function(
        "func main(a: f64, b: f64, v: f64[n], w: f64[n], one: f64[k], M: f64[n, n], M2: f64[n, n],"
        f" idx: i64[n], q: fixed, q2: fixed)\n    {SHAPES[name]}\n"
    )
    rng = np.random.default_rng(3)
    inputs = {
        "a": 0.7,
        "b": 0.3,
        "v": rng.normal(size=3),
        "w": rng.normal(size=3),
        "one": rng.normal(size=1),
        "M": rng.normal(size=(3, 3)),
        "M2": rng.normal(size=(3, 3)),
        "idx": np.array([2, 0, 2]),
        "q": 0.5,
        "q2": 0.25,
    }
    for program in (f.gradient_program, rvm.tangent(f.program)):
        assert findings(program) == []
        assert decode(encode(program)) == program
    properties.adjoints_transpose_tangents(f, inputs, rng, 1e-13)
    properties.differences_agree(f, inputs, rng, 1e-7)
    properties.gradients_run_back(f, inputs, rng)
    properties.hessians_are_symmetric(f, inputs, "b", rng, 1e-12, 1e-5)


def test_deep_expressions_give_programs_that_can_be_saved() -> None:
    nested = "x"
    for _ in range(90):
        nested = f"sin({nested})"
    f = function(f"func main(y: f64, x: f64)\n    add y, {nested}\n")
    with mp.workdps(30):
        x = want = mp.mpf(1)
        for _ in range(90):
            x, want = mp.sin(x), want * mp.cos(x)
    for program in (f.gradient_program, rvm.tangent(f.program)):
        assert findings(program) == []
        assert decode(encode(program)) == program
    assert f.grad(loss="y", y=0.0, x=1.0).x == pytest.approx(float(want), rel=1e-13)
    assert f.jvp({"x": 1.0}, y=0.0, x=1.0)[1].y == pytest.approx(float(want), rel=1e-13)
