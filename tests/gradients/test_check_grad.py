"""The check of gradients by differences: what it looks at, and what it says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients.test_functions import FLAT, KNOWN, NAMES, points, program
from rvm_tools.isa_page import members
from sizes import thin, wide

import rvm
from rvm.isa.user import apply

pytestmark = pytest.mark.usefixtures("clean_tables")


def places(check: Any) -> list[str]:
    return [r.place for r in check.rows]


def test_every_number_is_checked() -> None:
    f = rvm.assemble(
        """
record P
    pos: f64[2]
    m: log64
    k: i64
end

func main(y: f64, z: c128, q: fixed, A: c128[n, 2], p: P, s: stack[f64], i: i64, h: fixed[m])
    add y, real(z * z) + f64(q) + p.pos[1] * f64(p.m) + real(A[0, 1]) * f64(i) + f64(h[0])
"""
    ).main
    inputs = {
        "y": 0.0,
        "z": 1 + 2j,
        "q": 0.5,
        "A": np.array([[1j, 2 + 1j]]),
        "p": {"pos": np.array([1.0, 2.0]), "m": rvm.LogNumber(0.5), "k": 3},
        "s": [7.0, 8.0],
        "i": 3,
        "h": np.array([1 << 43]),
    }
    check = rvm.check_grad(f, loss="y", **inputs)
    expected = ["y", "z.re", "z.im", "q", "A[0, 0].re", "A[0, 0].im", "A[0, 1].re", "A[0, 1].im"]
    expected += ["p.pos[0]", "p.pos[1]", "p.m", "s[0]", "s[1]", "h[0]"]
    assert places(check) == expected
    assert check.ok, str(check)
    found = {r.place: r.quotient for r in check.rows}
    want = {"z.re": 2, "z.im": -4, "A[0, 1].re": 3, "p.m": 2 * math.exp(0.5), "s[1]": 0, "h[0]": 1}
    assert {n: found[n] for n in want} == pytest.approx(want, abs=1e-6)
    assert places(rvm.check_grad(f, loss="y", wrt=["z"], **inputs)) == ["z.re", "z.im"]


def test_steps_and_tolerances_go_by_the_numbers() -> None:
    """Where one type is coarse, its rounding decides."""
    body = "func main(y: {t}, x: {t})\n    add y, exp(x) * x\n"
    for t, tolerance in (("f64", 1e-6), ("fixed", 1e-6), ("f32", 1e-3), ("fixed(20)", 1e-2)):
        check = rvm.check_grad(rvm.assemble(body.format(t=t)).main, loss="y", y=0.5, x=0.75)
        assert check.tolerance == pytest.approx(tolerance)
        assert check.ok, str(check)
        assert check.rows[1].quotient == pytest.approx(1.75 * math.exp(0.75), abs=tolerance)
    f = rvm.assemble(body.format(t="f64")).main
    long = rvm.check_grad(f, loss="y", step=0.5, y=0.5, x=0.75)
    # extrapolated to no step at all, whichever the first was
    assert long.ok and long.rows[1].error < 1e-9


def test_large_arrays_are_checked_in_part() -> None:
    f = rvm.assemble("func main(y: f64, x: f64[n])\n    add y, sum(x * x)\n").main
    x = np.linspace(-1.0, 1.0, 1001)
    check = rvm.check_grad(f, loss="y", y=0.0, x=x, most=11)
    assert places(check) == ["y", *(f"x[{k}]" for k in range(0, 1001, 100))]
    assert len(rvm.check_grad(f, loss="y", y=0.0, x=x).rows) == 201
    assert check.ok


def test_parameters_may_be_named_as_options_are() -> None:
    f = rvm.assemble("func main(loss: f64, step: f64)\n    add loss, step ** 2\n").main
    check = rvm.check_grad(f, {"loss": 0.0, "step": 3.0}, loss="loss")
    assert check.ok and places(check) == ["loss", "step"]


def test_a_function_that_fails_beside_the_point_is_said_to() -> None:
    f = rvm.assemble(
        """
func main(y: f64, x: f64)
    if x >= 1.0
        add y, 2.0 * x
        alloc t: f64 = floor(x)
        free t = 1.0
    end
    alloc u: f64 = floor(x)
    free u = 1.0
"""
    ).main
    check = rvm.check_grad(f, loss="y", y=0.0, x=1.0)
    worst = check.worst
    assert worst is not None and worst.place == "x"
    assert not check.ok and math.isnan(worst.quotient) and worst.gradient == 2.0
    assert worst.note.startswith("R001: ") and worst.note in str(check)
    assert check.rows[0].note == ""
    with pytest.raises(rvm.DefinitionError) as caught:
        check.raise_if_bad()
    assert worst.note in caught.value.notes


def test_a_place_that_takes_one_value_only_is_not_compared() -> None:
    """The zero that `iterate` adds to, an element, a number of another type, an imaginary part."""
    steps = """
func step(out: f64, x: f64)
    add out, 0.5 * x

func main(y: f64, x: f64)
    iterate step(y, x) times 20 with pebbles = 8
"""
    head = "    alloc {n}: i64 = choose({c}, 1, 0)\n    free {n} = 1\n"
    for text, inputs, required in (
        (steps, {"y": 0.0, "x": 0.5}, ["y"]),
        (
            "func main(y: f64, x: f64[n])\n    add y, sum(x)\n"
            + head.format(n="a", c="x[1] == 0.75"),
            {"y": 0.0, "x": np.array([0.5, 0.75, 1.0])},
            ["x[1]"],
        ),
        (
            "func main(y: fixed(20), x: fixed(20))\n    add y, x\n"
            + head.format(n="a", c="x == 2"),
            {"y": 0.0, "x": 2.0},
            ["x"],
        ),
        (
            "func main(y: f64, z: c128)\n    add y, real(z)\n"
            + head.format(n="a", c="imag(z) == 1e-9"),
            {"y": 0.0, "z": 1 + 1e-9j},
            ["z.im"],
        ),
    ):
        check = rvm.check_grad(rvm.assemble(text).main, loss="y", **inputs)
        assert [r.place for r in check.rows if r.is_required] == required, f"{text}\n{check}"
        assert check.raise_if_bad().ok and check.worst is not None and check.worst.tells
        assert [r.place for r in check.rows if not r.tells] == required
        lines = str(check).splitlines()[1:]
        assert [line.split()[0] for line in lines if "  ?  R001: " in line] == required


def test_rounding_of_a_large_loss_is_not_held_against_a_gradient() -> None:
    f = rvm.assemble("func main(y: f64, x: f64)\n    add y, 0.7 * x\n").main
    check = rvm.check_grad(f, loss="y", y=1e10, x=1 / 3)
    x = check.rows[1]
    assert x.error > check.tolerance, "this quotient is all noise"
    assert check.ok and x.tells and abs(x.quotient - 0.7) <= x.uncertainty < 0.1


def test_a_quotient_of_rounding_alone_decides_nothing() -> None:
    f = rvm.assemble("func main(y: f64, x: f64)\n    add y, 0.7 * x\n").main
    check = rvm.check_grad(f, loss="y", y=1e20, x=1 / 3)
    assert [r.tells for r in check.rows] == [True, False] and check.ok
    assert [line.endswith("?") for line in str(check).splitlines()[1:]] == [False, True]


@pytest.mark.parametrize(
    ("t", "body", "x"),
    [
        ("f64", "add y, 1e10 + x\n    sub y, 1e10", 1e-9),
        ("f64", "add y, 1e17 + x\n    sub y, 1e17", 1.0),
        ("f32", "add y, 1.0 + x\n    sub y, 1.0", 1e-9),
        ("f64", "add y, x * x", 1e-170),
    ],
)
def test_steps_that_a_loss_absorbs_are_not_held_against_a_gradient(
    t: str, body: str, x: float
) -> None:
    f = rvm.assemble(f"func f(y: {t}, x: {t})\n    {body}\n").f
    assert rvm.check_grad(f, loss="y", y=0, x=x).ok


def test_a_gradient_by_what_a_function_does_not_depend_on_is_found_out() -> None:
    f = rvm.assemble("func f(y: f64, x: f64, z: f64)\n    add y, x\n").f
    check = rvm.check_grad(f, loss="y", y=0.0, x=1e-9, z=1e-9)
    assert check.ok and not any(line.endswith("?") for line in str(check).splitlines())


def test_coarse_numbers_are_moved_by_what_they_can_be_moved() -> None:
    """Steps are some units long, and losses are rounded to units, however small they are."""
    for frac in (1, 3, 4, 7, 12):
        t = f"fixed({frac})"
        lines = ["x * w", "sqrt(x + 9)", "sin(x)", "x / 3", "x / 32"]
        text = "".join(f"    add y, {e}\n" for e in lines)
        for body in (text, *(f"    add y, {e}\n" for e in lines)):
            f = rvm.assemble(f"func f(y: {t}, x: {t}, w: {t})\n{body}").f
            for x in (0.0, 1.5, -3.0):
                check = rvm.check_grad(f, loss="y", y=0.0, x=x, w=0.5)
                assert check.ok and not any(math.isnan(r.quotient) for r in check.rows), check
    power = rvm.assemble("func f(y: fixed(12), x: fixed(12))\n    add y, x ** 3\n").f
    (row,) = rvm.check_grad(power, loss="y", wrt=["x"], y=0.0, x=4.0).rows
    assert row.tells and abs(row.quotient - 48) <= row.uncertainty


@wide
@pytest.mark.parametrize("t", ["fixed", "fixed(24)", "f32"])
def test_quotients_of_many_roundings_are_as_good_as_they_say(t: str) -> None:
    """The error of a long sum of rounded numbers is far more than that of its last addition."""
    f, exact = (rvm.assemble(TURNS.format(t=t)).main for t in (t, "f64"))
    for n, h in ((10, 0.01), (40, 0.02), (90, 0.003)):
        for x in (0.0, 0.3, 1.7):
            check = rvm.check_grad(f, loss="e", e=0.0, x=x, v=0.0, h=h, n=n)
            right = rvm.check_grad(exact, loss="e", e=0.0, x=x, v=0.0, h=h, n=n)
            assert check.ok, f"{n} {h} {x}\n{check}"
            for row, true in zip(check.rows, right.rows, strict=True):
                assert abs(row.quotient - true.gradient) <= row.uncertainty, f"{n} {h} {x} {row}"


TURNS = """
func main(e: {t}, x: {t}, v: {t}, h: {t}, n: i64)
    for i = 1 to n
        add x, h / 2 * v
        sub v, h * (x - 1) / (1 + x * x)
        add x, h / 2 * v
    end
    add e, v * v / 2 + x * x
"""


def test_inverses_are_checked_as_functions_are() -> None:
    f = rvm.assemble("func main(y: f64, x: f64)\n    add y, x ** 3\n").main
    check = rvm.check_grad(~f, loss="y", y=0.0, x=2.0)
    assert check.ok and check.rows[1].gradient == -12.0


def test_wrong_partials_are_found() -> None:
    @rvm.function(partials=lambda x: (apply("*", 3, x),))
    def wrong_square(x: float) -> float:
        """x², with partials that are not its own."""
        return float(x) ** 2

    f = rvm.assemble("func f(y: f64, x: f64)\n    add y, wrong_square(x)\n").f
    check = rvm.check_grad(f, loss="y", y=0.0, x=2.0)
    assert not check.ok
    assert check.worst is not None
    assert check.worst.place == "x"
    assert (check.worst.gradient, round(check.worst.quotient, 6)) == (6.0, 4.0)
    lines = str(check).splitlines()
    assert lines[0].split() == ["place", "gradient", "difference", "quotient", "±", "error"]
    assert [line.endswith("<--") for line in lines[1:]] == [False, True]
    with pytest.raises(rvm.DefinitionError) as caught:
        check.raise_if_bad()
    assert caught.value.code == "D013"
    assert caught.value.values["gradient"] == 6.0


def test_a_good_check_raises_nothing() -> None:
    f = rvm.assemble("func f(y: f64, x: f64)\n    add y, x * x\n").f
    check = rvm.check_grad(f, loss="y", y=0.0, x=2.0)
    assert check.raise_if_bad() is check


def test_the_message_says_where_and_by_how_much() -> None:
    @rvm.function(partials=lambda x: (apply("*", 1.5, x),))
    def half_square(x: float) -> float:
        """x² / 2, with partials half too large."""
        return float(x) ** 2 / 2

    f = rvm.assemble("func main(y: f64, x: f64[n])\n    add y, sum(half_square(x))\n").main
    with pytest.raises(rvm.DefinitionError) as e:
        rvm.check_grad(f, loss="y", y=0.0, x=np.array([0.0, 2.0, 0.0])).raise_if_bad()
    assert e.value.code == "D013"
    assert "`x[1]`" in e.value.message
    assert e.value.values["error"] == 0.33
    assert e.value.notes[0] == (
        "beyond the tolerance of 1e-06: 1 of 4 numbers compared; this one differs most"
    )


# ---------------------------------------------------------------- how good the quotient is

SMOOTH = [
    ("x ** 5", 0.7, "x**5"),
    ("exp(sin(7.0 * x))", 1.3, "exp(sin(7*x))"),
    ("log(x)", 1e-9, "log(x)"),
    ("1.0 / x", 3e-7, "1/x"),
    ("sin(1e6 * x)", 0.5, "sin(10**6*x)"),
    ("sqrt(x)", 4e12, "sqrt(x)"),
    ("exp(-x * x)", 6.0, "exp(-x*x)"),
    ("x ** 20", 3.0, "x**20"),
    ("atan(1e4 * (x - 1.0))", 1.0001, "atan(10000*(x-1))"),
    ("1e-30 * sin(x)", 1.0, "mpf(10)**-30*sin(x)"),
    ("1e-200 * x ** 3", 1e60, "mpf(10)**-200*x**3"),
]


@pytest.mark.parametrize(("text", "x", "formula"), SMOOTH, ids=[t for t, _, _ in SMOOTH])
def test_quotients_are_as_good_as_they_say(text: str, x: float, formula: str) -> None:
    """Against mpmath; whatever the scale of the number, of the function, and of its bends."""
    f = rvm.assemble(f"func main(y: f64, x: f64)\n    add y, {text}\n").main
    row = rvm.check_grad(f, loss="y", y=0.0, x=x).rows[1]
    with mpmath.workdps(50):

        def g(v: Any) -> Any:
            return eval(formula, {**vars(mpmath), "x": v})

        want = float(mpmath.diff(g, mpmath.mpf(x), h=mpmath.mpf(10) ** -40))
    assert abs(row.quotient - want) <= row.uncertainty <= 1e-5 * abs(want)
    assert row.agrees(1e-6)
    for factor in (1 + 1e-4, 1 - 1e-4, -1, 0):
        assert not replace(row, gradient=row.gradient * factor).agrees(1e-6), factor


@thin
@pytest.mark.parametrize("t", members("real"))
def test_functions_of_the_table(t: str) -> None:
    """Right gradients are called right; a part in a hundred off is found wherever it can be."""
    found = looked = 0
    for row in KNOWN:
        if row.name in FLAT:
            continue
        for at in points(row, 3):
            f = program(row, "add", t, ("", ""), "")
            inputs = dict(zip(NAMES, at, strict=False))
            check = rvm.check_grad(f, loss="y", y=0.0, **inputs)
            assert check.ok, f"{row.name} at {at}\n{check}"
            for r in check.rows:
                if r.gradient:
                    looked += 1
                    wrong = replace(r, gradient=1.01 * r.gradient)
                    found += not wrong.agrees(check.tolerance)
    assert looked > 100 and found >= 0.97 * looked


def test_a_program_whose_quotients_are_hard() -> None:
    """An integrator of order 4, by its step, and powers of `fixed`: right, and called so."""
    f = rvm.assemble(ORDER_4).main
    assert rvm.check_grad(f, loss="q", q=1.0, p=0.1, h=0.05, n=200).ok
    f = rvm.assemble("func main(y: fixed, x: fixed, k: fixed)\n    add y, x ** k\n").main
    for x in (0.25, 1.5, 3.0):
        for k in (-2.0, 0.5, 3.0, 6.5):
            check = rvm.check_grad(f, loss="y", y=0.0, x=x, k=k)
            assert check.ok, f"{x} ** {k}\n{check}"


ORDER_4 = """
func main(q: f64, p: f64, h: f64, n: i64)
    alloc a: f64 = 1.3512071919596578
    alloc b: f64 = -1.7024143839193153
    for i = 1 to n
        add q, a * h * 0.5 * p
        sub p, a * h * sin(q)
        add q, (a + b) * h * 0.5 * p
        sub p, b * h * sin(q)
        add q, (a + b) * h * 0.5 * p
        sub p, a * h * sin(q)
        add q, a * h * 0.5 * p
    end
    free b = -1.7024143839193153
    free a = 1.3512071919596578
"""
