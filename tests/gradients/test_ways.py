"""Every way to a gradient is right or refuses: against mpmath, at all scales, on all examples."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients.hard import HARD, RELAX, WAYS, Hard
from rvm_tools.directives import directives
from rvm_tools.isa_page import members
from rvm_tools.values import inputs_for
from sizes import part, sized, some, thin, wide

import rvm
from rvm.derive.decisions import decides
from rvm.interop.scipy import objective
from rvm.library.handle import FunctionHandle
from rvm.numbers import system
from rvm.transform.duals import bar_slots
from rvm.transform.programs import differentiated
from rvm.types import elem_of

WRONG = 1e-6
"""How far an accepted gradient may be off, in parts of itself, beside what tangents are off."""
HONEST = 1e-11
"""How far that of a program may be off whose values are not lost."""
EXAMPLES = sorted(
    p for folder in ("", "gradients/") for p in Path(f"examples/{folder}").glob("*.rasm")
)


def verdict(call: Callable[[], Any]) -> Any:
    """What a call gives; R017 if it is refused."""
    try:
        return call()
    except rvm.RvmError as error:
        assert error.code == "R017", error
        return "R017"


def off(found: tuple[float, float], want: tuple[float, float]) -> float:
    return max(abs(a - b) / abs(b) if b else abs(a) for a, b in zip(found, want, strict=True))


@thin
@pytest.mark.parametrize("name", HARD)
@some
def test_right_or_refused(name: str) -> None:
    h = HARD[name]
    f, want = h.handle(), h.truth()
    # What the run forwards rounds nothing that runs back can know.
    tangents = tuple(f.jvp({v: 1.0}, {"y": 0.0, "x": h.x, "p": h.p, "n": h.n})[1].y for v in "xp")
    forwards = off(tangents, want)
    assert forwards <= (HONEST if h.honest else 1e-5)
    for way, gradient in WAYS.items():
        found = verdict(lambda gradient=gradient: gradient(f, h))
        if found == "R017":
            assert not h.honest and way != "jacobian", way
        else:
            allowed = HONEST if h.honest or way == "jacobian" else WRONG
            assert off(found, want) <= 2 * forwards + allowed, way


GEOMETRIC = """
func f(y: f64, p: f64, x: f64, n: i64)
    for i = 1 to n
        mul p, x
        alloc next: f64 = p + x
        swap next, p
        free next = p - x
    end
    add y, p
"""


@thin
@pytest.mark.parametrize(("x", "lost"), [(0.5, False), (1e-20, True)])
def test_values_that_matter_to_second_derivatives_alone(x: float, lost: bool) -> None:
    """p x is lost in p x + x: the gradient is right all the same, and the Hessian would be 0."""
    f, p = rvm.assemble(GEOMETRIC).f, 1.0
    at = {"y": 0.0, "p": p, "x": x, "n": 2}
    assert f.grad(at, loss="y").x == pytest.approx(2 * x * p + 2 * x + 1, rel=1e-14)
    for second in (
        lambda: f.hessian(at, loss="y").x.x,
        lambda: f.hessian(at, loss="y", method="taylor").x.x,
        lambda: f.hvp({"x": 1.0}, at, loss="y").x,
    ):
        assert verdict(second) == ("R017" if lost else pytest.approx(2 * p + 2, rel=1e-14))
    everything = f.with_options(tolerance=math.inf)
    assert everything.hessian(at, loss="y").info.error.x.x > 1e-15


@thin
@pytest.mark.parametrize("name", [n for n in HARD if "kinked" not in n])
@some
def test_second_derivatives_are_right_or_refused(name: str) -> None:
    h = HARD[name]
    f, at = h.handle(), {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}
    with mpmath.workdps(h.digits):
        e = [mpmath.mpf(10) ** -25 * (abs(v) or 1) for v in (h.x, h.p)]

        def y(i: int, j: int) -> Any:
            return h.formula(h.x + i * e[0], h.p + j * e[1], h.n)

        xx = float((y(1, 0) - 2 * y(0, 0) + y(-1, 0)) / e[0] ** 2)
        xp = float((y(1, 1) - y(1, -1) - y(-1, 1) + y(-1, -1)) / (4 * e[0] * e[1]))

    def row(g: Any) -> tuple[float, float]:
        return float(g.x), float(g.p)

    goal = objective(f, "y", ["x", "p"], x=h.x, p=h.p, n=h.n)
    second = {"y_bar": 1.0, "x_bar": 0.0, "p_bar": 0.0}
    for call in (
        lambda: row(f.hessian(at, loss="y").x),
        lambda: row(f.hessian(at, loss="y", method="taylor").x),
        lambda: row(f.hvp({"x": 1.0}, at, loss="y")),
        lambda: tuple(goal.hess(goal.x0)[0]),
        lambda: row(f.gradient_program.f_gradient.grad(at | second, loss="x_bar")),
    ):
        found = verdict(call)
        if found == "R017":
            assert not h.honest
        else:
            size = max(abs(xx), abs(xp))
            assert abs(found[0] - xx) <= 1e-5 * size and abs(found[1] - xp) <= 1e-5 * size


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_other_libraries_raise_it(library: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"needs {library}")
    f = Hard(RELAX, math.fsum, 1.1, 1.0, 60, False).handle()
    for n, want in ((10, 1.5307), (60, None)):
        if library == "torch":
            import torch

            from rvm.interop.torch import function

            x = torch.tensor(1.1, dtype=torch.float64, requires_grad=True)
            y = function(f, inputs=["x"], outputs=["y"], p=1.0, n=n)(x)

            def gradient(y: Any = y, x: Any = x) -> float:
                return float(torch.autograd.grad(y, x)[0])
        else:
            import jax

            from rvm.interop.jax import function as of_jax

            jax.config.update("jax_enable_x64", True)
            g = jax.grad(of_jax(f, inputs=["x"], outputs=["y"], p=1.0, n=n))

            def gradient(g: Any = g) -> float:
                return float(g(1.1))

        if want is not None:
            assert gradient() == pytest.approx(want, abs=2e-3)
        else:
            with pytest.raises(Exception, match="R017"):
                gradient()


# ---------------------------------------------------------------- units

F64, F32, LOG = 300, 30, 8
SCALED = {
    "contracting": (
        "func f(y: f64, x: f64, c: f64, n: i64)\n    for i = 1 to n\n        mul x, 0.5\n"
        "        add x, c\n        add y, x * x\n    end\n",
        {"x": 1.1, "c": 0.3},
        (5, 20, 40, 60),
        F64,
    ),
    "with momentum, from rest": (
        "func f(y: f64, x: f64, p: f64, n: i64)\n    for i = 1 to n\n        mul p, 0.8\n"
        "        sub p, 0.1 * x\n        add x, p\n    end\n    add y, x * x + p * p\n",
        {"x": 1.3, "p": 0.0},
        (3, 50, 400),
        F64,
    ),
    "a sum of squares": (
        "func f(y: f64, x: f64[k], n: i64)\n    for i = 0 to n - 1\n"
        "        add y, x[i] ** 2\n    end\n",
        {"x": np.array([0.3, -1.7, 1e-8, 0.0, 12.5])},
        (1, 5),
        F64,
    ),
    "an array that contracts": (
        "func f(y: f64, x: f64[k], c: f64[k], n: i64)\n    for i = 1 to n\n        mul x, 0.3\n"
        "        add x, c\n        add y, sum(x * x)\n    end\n",
        {"x": np.array([0.3, -1.7, 0.0]), "c": np.array([0.0, 0.7, 1e-3])},
        (3, 20, 40),
        F64,
    ),
    "complex numbers": (
        "func f(y: f64, z: c128, c: c128, n: i64)\n    for i = 1 to n\n        mul z, 0.4 + 0.3j\n"
        "        add z, c\n        add y, abs2(z)\n    end\n",
        {"z": 1 + 2j, "c": 0.3 - 0.1j},
        (3, 20, 60),
        F64,
    ),
    "single precision": (
        "func f(y: f32, x: f32[k], c: f32, n: i64)\n    for i = 1 to n\n        mul x, f32(0.7)\n"
        "        add x, c\n        add y, sum(x * x)\n    end\n",
        {"x": np.array([0.3, -1.7, 1.1], np.float32), "c": float(np.float32(0.3))},
        (3, 15, 60),
        F32,
    ),
    "logarithms": (
        "func f(y: log64, x: log64, n: i64)\n    for i = 1 to n\n        mul y, x ** 3\n    end\n",
        {"x": rvm.LogNumber(0.7)},
        (1, 30),
        LOG,
    ),
}


def scaled(value: Any, k: int) -> Any:
    if isinstance(value, rvm.LogNumber):
        return rvm.LogNumber(value.log * 2.0**k)
    return (value * value.dtype.type(2.0**k)) if isinstance(value, np.ndarray) else value * 2.0**k


@wide
@pytest.mark.parametrize("name", SCALED)
@some
def test_verdicts_do_not_depend_on_units(name: str) -> None:
    """Inputs times 2^k: the same verdict, and the gradient's bits times 2^k (of a square)."""
    text, inputs, lengths, most = SCALED[name]
    f = rvm.assemble(text).f
    zero: Any = rvm.LogNumber(0.0) if name == "logarithms" else 0.0
    seen = set()
    for n in lengths:
        found = {}
        for k in (0, 1, -1, most // 3, -most // 3, most, -most):
            at = {"y": zero, "n": n, **{a: scaled(v, k) for a, v in inputs.items()}}
            g = verdict(lambda at=at: f.grad(at, loss="y", wrt=list(inputs)))
            in_lanes = verdict(lambda at=at, k=k: by_lane(f, at, inputs))
            assert (g == "R017") == (in_lanes == "R017")
            degree = 0 if name == "logarithms" else k
            found[k] = (
                g
                if g == "R017"
                else {a: np.asarray(v * 2.0**-degree).tobytes() for a, v in g.items()}
            )
        assert all(v == found[0] for v in found.values()), (n, found)
        seen.add(found[0] == "R017")
    # What is linear but for its end has the right gradient however little comes back.
    contracts = name not in ("a sum of squares", "logarithms", "with momentum, from rest")
    assert seen == ({False, True} if contracts else {False})


def by_lane(f: FunctionHandle, at: dict[str, Any], inputs: dict[str, Any]) -> Any:
    """The gradient of two lanes alike; of logarithms the single one."""
    if isinstance(at["y"], rvm.LogNumber):
        return f.grad(at, loss="y")
    dtypes = {a: f.function.registers[k].type for k, a in enumerate(f.parameters)}
    both = {a: np.stack([np.asarray(at[a], system(elem_of(dtypes[a])).dtype)] * 2) for a in inputs}
    try:
        return f.map.grad(loss="y", **(at | both))
    except rvm.library.lane_map.LaneErrors as error:
        assert error.code == "R017"
        return "R017"


@thin
@pytest.mark.parametrize("t", members("float"))
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_accurate_sums_are_not_refused(t: str, scale: float) -> None:
    """Sums of squares of normal numbers, whose gradient is exact to the bit: 30 draws each."""
    body = "    for i = 0 to n - 1\n        add y, x[i] * x[i]\n    end\n"
    f = rvm.assemble(f"func f(y: {t}, x: {t}[m], n: i64)\n{body}").f
    dtype = np.float64 if t == "f64" else np.float32
    for seed in range(30):
        x = (np.random.default_rng(seed).normal(size=100) * scale).astype(dtype)
        assert np.array_equal(f.grad(loss="y", y=0.0, x=x, n=100).x, 2 * x)
        # Where y begins as something small, tangents decide.
        assert np.array_equal(f.grad(loss="y", y=scale, x=x, n=100).x, 2 * x)


@wide
@sized
def test_accurate_orbits_of_random_arrays_are_not_refused() -> None:
    """Numbers far smaller than others of their array come back less well, and that does not matter.
    Numbers far smaller than others of their array come back less well, and that does not matter.
    """
    f = rvm.assemble("""
func f(y: f64, q: f64[k], p: f64[k], n: i64)
    for i = 1 to n
        sub p, 0.05 * sin(q)
        add q, 0.05 * p
    end
    add y, sum(q * q)
""").f
    for seed in range(part(10)):
        q, p = np.random.default_rng(seed).normal(size=(2, 300)) ** 5
        g = f.grad(loss="y", y=0.0, q=q, p=p, n=200)
        assert np.isfinite(g.q).all() and np.isfinite(g.p).all()


def test_an_adjoint_that_is_rounding_is_not_refused() -> None:
    """0.1 + 0.2 - 0.3 is nothing, and in either direction another nothing."""
    body = "    add y, 0.1 * q\n    add y, 1e6 * x\n    add y, 0.2 * q\n    sub y, 0.3 * q\n"
    f = rvm.assemble(f"func f(y: f64, x: f64, q: f64)\n{body}").f
    for seed in range(20):
        x, q = np.random.default_rng(seed).normal(size=2).tolist()
        g = f.grad(loss="y", y=1e-9, x=x, q=q)
        assert g.x == 1e6 and abs(g.q) < 1e-15


STEP = """
func step(y: f64[k], x: f64[k], n: i64)
    add y, x
    for i = 1 to n
        mul y, 0.5
        add y, 0.3 * x
    end

func bent(y: f64[k], x: f64[k], n: i64)
    add y, x
    for i = 1 to n
        mul y[0], 0.5
        add y[0], 0.3
        add y[1], y[0] * y[0] * x[1]
    end
"""


@pytest.mark.parametrize("n", [5, 60])
def test_steps_of_a_chain_are_checked(n: int) -> None:
    """What a step adds to must be zero again when the adjoint has undone it, or not matter."""
    program = rvm.assemble(STEP)
    x = np.array([0.7, 1.3])

    def gradient(f: FunctionHandle) -> Any:
        run = rvm.pebble.iterate(f, 3, pebbles=2)
        return run.gradient(x, lambda s: (float(s.sum()), np.ones(2)), constants={"n": n}).state

    slope = 0.5**n + 0.3 * 2 * (1 - 0.5**n)
    assert gradient(program.step) == pytest.approx(np.full(2, slope**3), rel=1e-12)
    if n == 5:
        assert gradient(program.bent).min() > 0
    else:
        with pytest.raises(rvm.InvertibilityError) as caught:
            gradient(program.bent)
        assert caught.value.code == "R017"


# ---------------------------------------------------------------- the gate by itself


@thin
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
@some
def test_examples_come_back(path: Path) -> None:
    """Every example with a gradient passes by its values alone, on each of its `;! run` lines."""
    program = rvm.load(path)
    for run in directives(path.read_text(encoding="utf-8"), path.name):
        if not run.is_run or run.codes or not bar_slots(program.program.function(run.function)):
            continue
        f = program[run.function]
        pull = f.pullback(**inputs_for(f.function, run.inputs, path.parent))
        pull(check=False)
        if not decides(program.program, run.function):  # Else tangents judge, too.
            assert pull.is_back(pull.machine.state.frames[0].regs), run.text


@wide
def test_a_tolerance_is_by_the_gradient() -> None:
    """It is held to the estimated error, in parts of the gradient, by every way."""
    h = HARD["relax 20"]
    at = {"y": 0.0, "x": h.x, "p": h.p, "n": 20}
    truth = h.truth()

    def error(found: tuple[float, float]) -> float:
        return max(abs(g - t) / abs(t) for g, t in zip(found, truth, strict=True))

    for name, way in WAYS.items():
        if name == "jacobian" or name.startswith(("by hand", "from a text")):
            # By tangents where values are not back; programs have options of their own.
            continue
        loose = h.handle().with_options(tolerance=1e-7)
        assert error(way(loose, h)) < 1e-7, name

        with pytest.raises(rvm.RvmError) as caught:
            way(h.handle().with_options(tolerance=1e-13), h)
        assert caught.value.code == "R017" and "`tolerance=" in (caught.value.hint or ""), name
    f = h.handle()
    for derivative in (f.hvp, f.hessian):
        given = ({"x": 1.0}, at) if derivative == f.hvp else (at,)
        assert derivative(*given, loss="y", tolerance=1e-7)
        with pytest.raises(rvm.InvertibilityError) as caught:
            derivative(*given, loss="y", tolerance=1e-13)
        assert caught.value.code == "R017"
    # What an error names as enough is enough.
    lost, at = HARD["relax 40"], at | {"n": 40}
    with pytest.raises(rvm.InvertibilityError) as caught:
        lost.handle().grad(at, loss="y")
    enough = float(re.findall(r"tolerance=(\S+?)`", caught.value.hint or "")[0])
    assert lost.handle().grad(at, loss="y", tolerance=enough).y == 1.0
    assert lost.handle().grad(at, loss="y", tolerance=math.inf).y == 1.0


def test_a_tolerance_of_zero_demands_the_bits() -> None:
    exact = rvm.assemble("func g(y: f64, x: f64)\n    add y, x * x\n").g
    assert exact.grad(loss="y", y=0.0, x=0.1, tolerance=0).x == 0.2
    with pytest.raises(rvm.InvertibilityError):
        exact.grad(loss="y", y=0.1, x=0.7, tolerance=0)


def test_a_tolerance_below_what_the_values_promise_is_checked() -> None:
    """Values that are back do not say that a gradient is right to the last digit."""
    f = rvm.assemble("func f(y: f64, x: f64)\n    add y, sin(1e8 * x)\n").f
    assert f.grad(loss="y", y=0.0, x=0.7).x == pytest.approx(1e8 * math.cos(7e7), rel=1e-6)
    assert f.grad(loss="y", y=0.0, x=0.7, tolerance=1e-7)
    with pytest.raises(rvm.InvertibilityError, match="may be off by more than the tolerance"):
        f.grad(loss="y", y=0.0, x=0.7, tolerance=1e-10)


def test_stacks_are_looked_into() -> None:
    f = rvm.assemble("""
func f(y: f64, s: stack[f64], n: i64)
    alloc t: f64
    pop t, s
    for i = 1 to n
        mul t, 0.5
        add t, 0.3
        add y, t * t
    end
    push t, s
    free t
""").f
    assert f.grad(loss="y", y=0.0, s=[1.1], n=10).s[0] == pytest.approx(1.5321611, rel=1e-6)
    with pytest.raises(rvm.InvertibilityError) as caught:
        f.grad(loss="y", y=0.0, s=[1.1], n=60)
    assert caught.value.code == "R017"


# ---------------------------------------------------------------- gradients called by hand


def test_a_gradient_by_hand_is_a_transaction() -> None:
    h = HARD["relax 60"]
    f = rvm.assemble("func f(y: f64, x: f64[k], n: i64)\n    for i = 1 to n\n        mul x, 0.5\n"
                     "        add x, 0.3\n        add y, sum(x ** 2)\n    end\n").f  # fmt: skip
    x, bar = np.array([h.x]), np.zeros(1)
    with pytest.raises(rvm.InvertibilityError) as caught:
        f.gradient_program.f_gradient(y=0.0, x=x, n=60, y_bar=1.0, x_bar=bar)
    assert caught.value.code == "R017" and (x[0], bar[0]) == (h.x, 0.0)
    f.gradient_program.f_gradient(y=0.0, x=x, n=10, y_bar=1.0, x_bar=bar)
    assert bar[0] == pytest.approx(1.532161, abs=1e-6)


def test_a_gradient_is_known_by_its_code() -> None:
    """As it was made, with a loss and without; as a text; but not if it was changed."""
    from rvm_asm import disassemble

    program = rvm.assemble("func f(y: f64, x: f64)\n    add y, sin(x)\n    mul x, 0.5\n")
    for made in (program.f.gradient_program, rvm.gradient(program, "f", loss="y")):
        text = disassemble(made, positions=False)
        assert differentiated(made.program, made.program.entry) == "f"
        assert differentiated(rvm.assemble(text).program, "f_gradient") == "f"
        assert (
            differentiated(made.program, "f") is differentiated(made.program, "f_adjoint") is None
        )
        changed = rvm.assemble(text.replace("cos(x)", "sin(x)"))
        assert differentiated(changed.program, "f_gradient") is None
    out = rvm.gradient(program, "f", loss="y").f_gradient(y=0.0, x=0.3, y_bar=0.0, x_bar=0.0)
    assert out.x_bar == pytest.approx(math.cos(0.3)) and out.y_bar == 1.0
