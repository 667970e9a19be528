"""Functions of libraries, and pure functions, called in Python functions: they do what they do when
they are called from outside, in every way of calling, and the text has the program's bytes."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import rvm_janus
from rvm_asm import assemble as assemble_text
from sizes import thin

import rvm
from rvm import Array, Stack, f64, i64, log64
from rvm.codec import encode
from rvm.engines import executing

LIB = rvm.assemble(
    """
record Pair
    a: f64
    b: f64
end

func inner(y: f64, x: f64)
    add y, x * x

func square(y: f64, x: f64)
    call inner(y, x)
    extern both
        assert x < 100, "too large: {}", x
    end

func mixed(p: Pair, k: f64)
    add p.a, p.b * k

func kept(x: i64, s: stack[i64])
    push x, s

func ramp(y: f64[n], x: f64[n])
    for i = 0 to n - 1
        add y[i], x[i] * f64(i)
    end

func scale[T: real](y: T, x: T)
    add y, x * 2
""",
    "lib.rasm",
)
JANUS = rvm.Library(
    rvm_janus.assemble("procedure up(int x, int y)\n    x += y\n    assert(x < 9)\n", "up.ja")
)


@rvm.pure
def norm(x: Array[f64, "n"], c: f64):
    return c * np.sum(x**2)


@rvm.pure
def smooth(u: Array[f64, "n"], c: f64):
    return u + c * np.cumsum(u)


@rvm.pure
def both(x: f64, y: f64):
    return x * y, x + y


@rvm.pure
def less(x: f64, y: f64):
    return x < y


@rvm.pure
def product(x: log64, y: log64):
    return x * y


@rvm.record
class Two:
    p1: f64
    p2: f64


@rvm.reversible
def all_ways(
    y: f64,
    x: f64,
    p: Two,
    s: Stack[i64],
    k: i64,
    Y: Array[f64, "n"],
    X: Array[f64, "n"],
    w: f64,
    m: i64,
):
    LIB.square(y, x)
    (~LIB.inner)(x=x + 1, y=y)
    LIB["scale[f64]"](y, x)
    LIB.mixed(p, x)
    rvm.gradient_of(LIB.square)(y, x, bars=(1, p.p2))
    rvm.map(LIB.square, Y, X)
    LIB.ramp(Y, X)
    LIB.kept(k, s)
    y += norm(X, x)
    y -= norm(X, c=3)
    Y += smooth(X, 0.5)
    both(p, x, 2.0)
    p -= both(x, 1)
    rvm.iterate(LIB.square, w, x, times=m, pebbles=3)


X = np.array([0.5, 1.5, -2.0])
GIVEN = {
    "y": 0.25,
    "x": 2.0,
    "p": Two(1.0, 2.0),
    "s": [7],
    "k": 5,
    "Y": np.ones(3),
    "X": X,
    "w": 0.0,
    "m": 2,
}


@thin(2)
@pytest.mark.parametrize("engine", executing())
def test_functions_of_programs_are_called_in_every_way(engine: str) -> None:
    f = all_ways.of(**GIVEN).with_options(engine=engine)
    given = deepcopy(GIVEN)
    out = f(**given)
    x = 2.0
    y = 0.25 + x**2 - (x + 1) ** 2 + 2 * x + (x - 3) * np.sum(X**2)
    assert out.y == pytest.approx(y, rel=1e-14) and out.w == (x**2) ** 2
    # The gradient adds 2 x times the bar of y to the bar of x.
    a, b = 1.0 + 2.0 * x + (x * 2.0 - x * 1.0), 2.0 + 2 * x + ((x + 2.0) - (x + 1.0))
    assert (out.p.p1, out.p.p2) == pytest.approx((a, b), rel=1e-14)
    assert out.Y == pytest.approx(1 + X**2 + X * np.arange(3) + X + 0.5 * np.cumsum(X), rel=1e-14)
    assert out.s == [7, 5] and out.k == 0 and out.x == 2.0
    back = (~f)(**out)
    assert back.y == pytest.approx(0.25) and back.Y == pytest.approx(np.ones(3))
    assert back.s == [7] and back.k == 5


def test_the_text_of_a_linked_program_has_its_bytes() -> None:
    assert encode(assemble_text(all_ways.source)) == encode(all_ways.program)
    assert pickle.loads(pickle.dumps(rvm.Library(all_ways.program))) == all_ways.program


def test_gradients_go_through_linked_functions() -> None:
    @rvm.reversible
    def loss(y: f64, x: f64, v: Array[f64, "n"]):
        LIB.square(y, x)
        y += norm(v, x)

    v = np.array([1.0, -2.0])
    found = loss.grad(y=0.0, x=3.0, v=v, loss="y")
    assert found.x == pytest.approx(2 * 3.0 + 5.0) and found.v == pytest.approx(2 * 3.0 * v)


def test_values_of_bools_and_logarithms_have_their_own_updates() -> None:
    @rvm.reversible
    def f(b: bool, z: log64, x: f64, y: log64):
        b ^= less(x, 2)
        z *= product(y, y)
        z /= product(y, 2.0)

    out = f(False, 1.0, 1.0, 4.0)
    assert out.b is True and float(out.z) == pytest.approx(2.0)
    back = (~f)(**out)
    assert back.b is False and float(back.z) == pytest.approx(1.0)


def test_functions_of_programs_are_passed_to_parameters() -> None:
    @rvm.reversible
    def fold(y, x, g):
        for i in range(len(x)):
            g(y, x[i])

    x = np.array([1.0, 2.0, 3.0])
    assert fold(0.0, x, LIB.square).y == 14.0
    assert fold(14.0, x, ~LIB.square).y == 0.0
    assert fold(0.0, x, LIB["scale[f64]"]).y == 12.0


def test_names_of_linked_functions_do_not_clash() -> None:
    other = rvm.assemble("func inner(y: f64, x: f64)\n    sub y, x\n")

    @rvm.reversible
    def inner(y: f64, x: f64):
        other.inner(y, x)
        LIB.square(y, x)

    @rvm.reversible
    def square(y: f64, x: f64):
        inner(y, x)
        LIB.square(y, x)
        other.inner(y, x)

    assert square(0.0, 3.0).y == 2 * 9.0 - 2 * 3.0
    assert encode(assemble_text(square.source)) == encode(square.program)


def test_failures_in_linked_functions_are_told_at_their_own_lines() -> None:
    @rvm.reversible
    def f(y: f64, x: f64, n: rvm.i32, k: rvm.i32):
        LIB.square(y, x)
        JANUS.up(n, k)

    with pytest.raises(rvm.AssertionFailed, match=r"too large: 200.0\n *--> lib.rasm:13") as caught:
        f(0.0, 200.0, 1, 2)
    assert "in `f`" in str(caught.value) and "test_linked.py" in str(caught.value)
    with pytest.raises(rvm.AssertionFailed, match=r"up.ja:3"):
        f(0.0, 2.0, 8, 2)


def test_a_function_is_made_again_when_its_library_is_another() -> None:
    names = {"rvm": rvm, "f64": f64, "lib": rvm.assemble("func g(y: f64)\n    add y, 1\n")}
    f = rvm.reversible.source("def f(y: f64):\n    lib.g(y)\n", names)
    assert f(0.0).y == 1.0
    f.origin.function.__globals__["lib"] = rvm.assemble("func g(y: f64)\n    add y, 2\n")
    assert f(0.0).y == 2.0


def test_files_that_call_libraries_are_files_like_others(tmp_path: Path) -> None:
    (tmp_path / "lib.rasm").write_text("func g(y: f64, x: f64)\n    add y, x * x\n")
    file = tmp_path / "user.py"
    file.write_text(
        "import rvm\nfrom pathlib import Path\n"
        "lib = rvm.load(Path(__file__).with_name('lib.rasm'))\n"
        "@rvm.reversible\ndef f(y: rvm.f64, x: rvm.f64):\n    lib.g(y, x)\n"
    )
    lib = rvm.load(file)
    assert lib.f(y=1.0, x=2.0).y == 5.0 and lib.program.entry == "f"


REFUSED = {
    "y += 2 * norm(v, y)": ("A004", "`y += norm(…)` on a separate line"),
    "y ^= norm(v, x)": ("A004", "accumulated by `+=`"),
    "y += norm(v)": ("A044", "missing a required argument: 'c'"),
    "y += norm(v, y)": ("A014", "which `norm` changes"),
    "y += norm(x, y)": ("A042", "has 1 dimension, not 0"),
    "LIB.scale(y, x)": ("A071", '`lib["scale[f64]"](y, x)`'),
    "LIB.squar(y, x)": ("A045", "did you mean `square`?"),
    "y += LIB.square(y, x)": ("A004", "call it on a separate line"),
    "LIB.square(y)": ("A044", "missing a required argument: 'x'"),
    "LIB.square(v, x)": ("A042", "0 dimensions, not 1"),
    "LIB.square(y, x, 3)": ("A044", "too many"),
}


@pytest.mark.parametrize("body", REFUSED)
def test_wrong_calls_are_refused_at_their_place(body: str) -> None:
    code, says = REFUSED[body]
    text = f"def f(y: f64, x: f64, v: Array[f64, 'n']):\n    {body}\n"
    with pytest.raises(rvm.AssemblyError) as caught:
        rvm.reversible.source(text, globals(), name="f.py")(1.0, 2.0, np.ones(2))
    assert caught.value.code == code and says in str(caught.value)
    assert caught.value.where.line == 2
