"""Gradients of whole programs against central differences, and the check that does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rvm
from rvm.user import apply

ENGINES = ("reference", "python")
pytestmark = pytest.mark.usefixtures("clean_tables")
a = np.array([0.3, 0.7, -0.4])

PROGRAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "in place": (
        """
func main(a: f64[n], t: f64)
    rot a[0], a[1], t
    mul a[0], t
    div a[1], t + 1.0
    hadamard a[0], a[2]
    neg a[1]
    swap a[1], a[2]
    cswap t > 0.0, a[0], a[1]
""",
        {"a": a, "t": 0.9},
        "a[1]",
    ),
    "loops and branches": (
        """
func main(y: f64, x: f64, n: i64)
    for i = 1 to n step 2
        if x * f64(i) > 2.0
            add y, x ** i
        else
            sub y, sin(x) / f64(i)
        end
    end
""",
        {"y": 0.1, "x": 0.8, "n": 8},
        "y",
    ),
    "calls and uncalls": (
        """
func step(y: f64, x: f64, k: f64)
    add y, exp(x * k)
    mul y, k

func main(y: f64, x: f64)
    call step(y, x, 1.5)
    uncall step(y, x, x * x)
    call step(y, x, x)
    call twice(y, x, x)

func twice(y: f64, a: f64, b: f64)
    add y, a * b * a
""",
        {"y": 0.1, "x": 0.8},
        "y",
    ),
    "recursion": (
        """
func main(y: f64, x: f64, n: i64)
    if n > 0
        add y, x ** n
        alloc m: i64 = n - 1
        call main(y, x, m)
        free m = n - 1
    end
""",
        {"y": 0.0, "x": 1.3, "n": 6},
        "y",
    ),
    "arrays": (
        """
func main(y: f64, W: f64[m, n], b: f64[m], x: f64[n], k: i64[p])
    alloc h: f64[m]
    add h, W @ x + b
    add y, sum(tanh(h)) + prod(x) * dot(b, h)
    add y, sum(gather(x, k) ** 2) + sum(scan_left(x) * x)
    add y, sum(outer(b, x) * W) + sum(W[1, :] * x) + amax(x)
    sub h, W @ x + b
    free h
""",
        {
            "y": 0.0,
            "W": np.arange(6.0).reshape(2, 3) / 7,
            "b": np.array([0.2, -0.1]),
            "x": a,
            "k": np.array([0, 2, 0, 1]),
        },
        "y",
    ),
    "records and stacks": (
        """
record P
    pos: f64[3]
    m: f64
end

func main(e: f64, p: P, s: stack[f64])
    add e, p.m * dot(p.pos, p.pos)
    alloc t: f64 = p.m ** 2
    push p.m, s
    swap t, p.m
    free t
    add e, p.m * p.pos[1]
""",
        {"e": 0.0, "p": {"pos": a, "m": 1.5}, "s": []},
        "e",
    ),
    "complex": (
        """
func main(y: c128, x: c128, z: c128[n])
    add y, x * z[0] + log(z[1])
    add y.re, abs(x) + angle(z[0])
    mul y, exp(x)
    conj y
    add y, sum(z * conj(z))
""",
        {"y": 0.3 + 0.1j, "x": 0.7 - 0.2j, "z": np.array([1 + 2j, 0.5 - 1j])},
        "y.re",
    ),
    "log64": (
        """
func main(y: f64, u: log64, v: log64)
    mul u, (u_free(v)) ** 2.0
    add y, f64(u) + log(v)

pure u_free(v) = v + v * v
""",
        {"y": 0.0, "u": rvm.LogNumber(0.3), "v": rvm.LogNumber(-0.2)},
        "y",
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, engine: str) -> None:
    text, inputs, loss = PROGRAMS[name]
    f = rvm.assemble(text).main.with_options(engine=engine)
    check = rvm.check_grad(f, loss=loss, **inputs)
    assert check.rows
    assert check.ok, str(check)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "stack" not in n])
def test_inverse(name: str) -> None:
    """The gradient of the inverse, at the result, takes back what the gradient did."""
    text, inputs, loss = PROGRAMS[name]
    f = rvm.assemble(text).main
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    out = f(**copies)
    pull = f.pullback(**inputs)
    pull.seed(loss)
    bars = pull()
    back = (~f).vjp(dict(bars), **out)
    seeded = f.pullback(**inputs)
    seeded.seed(loss)
    want = seeded.named(seeded.bars)
    for key in want:
        assert np.allclose(back[key], want[key], rtol=1e-9, atol=1e-9), key


def test_fixed() -> None:
    f = rvm.assemble("func f(y: fixed, x: fixed[n])\n    add y, x[0] * exp(x[1])\n").f
    x = np.array([1 << 42, 1 << 41])
    assert rvm.check_grad(f, loss="y", y=0, x=x, step=1e-4).ok


def test_user_opcodes_and_functions() -> None:
    @rvm.opcode(inverse="unshear", types="inexact")
    def shear(p: rvm.Mut, q: rvm.Mut) -> Any:
        """A map that is not linear: (p, q + p*p)."""
        return p, q + p * p

    @rvm.opcode(inverse="shear", types="inexact")
    def unshear(p: rvm.Mut, q: rvm.Mut) -> Any:
        return p, q - p * p

    @rvm.opcode(inverse="unmix", types="inexact")
    def mix(p: rvm.Mut, q: rvm.Mut, r: rvm.Use) -> None:
        q += p * r
        p -= apply("sin", q)

    @rvm.opcode(inverse="mix", types="inexact")
    def unmix(p: rvm.Mut, q: rvm.Mut, r: rvm.Use) -> None:
        p += apply("sin", q)
        q -= p * r

    f = rvm.assemble(
        """
func f(x: f64[n], r: f64)
    shear x[0], x[1]
    mix x[1], x[2], r
    unshear x[2], x[0]
"""
    ).f
    for g in (f, ~f):
        check = rvm.check_grad(g, loss="x[0]", x=a, r=0.6)
        assert check.ok, str(check)
    h = f.hessian(loss="x[0]", x=a, r=0.6)
    assert np.allclose(h.x.x, h.x.x.T, rtol=1e-10)


def test_the_check_finds_wrong_partials() -> None:
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
    assert "<--" in str(check)
    with pytest.raises(rvm.DefinitionError) as caught:
        check.raise_if_bad()
    assert caught.value.code == "D013"


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_programs_are_programs(name: str) -> None:
    """They verify, come back from their text, and undo to the adjoints that they were given."""
    from rvm_asm import assemble, disassemble

    from rvm.verify import findings

    f = rvm.assemble(PROGRAMS[name][0]).main
    for program in (f.gradient_program, rvm.tangent(f.program, "main")):
        assert findings(program) == []
        assert assemble(disassemble(program)) == program
        assert findings(rvm.gradient(program)) == []
