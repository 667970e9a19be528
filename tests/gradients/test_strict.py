"""Strict gradients: the way back goes by the log, so that every value in it is the one that was."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from attack.programs import sound as random_programs
from gradients import properties
from gradients.programs import PROGRAMS
from sizes import first_and_another, sample, some, thin, wide
from tools.running import rvm_json

import rvm
from rvm.derive.gradients import Pullback
from rvm.derive.named import dressed, named_duals, nested
from rvm.engines import ENGINES, LAW, executing
from rvm.interop import scipy as port
from rvm.library.handle import FunctionHandle

PROGRAM = rvm.assemble("""
func relax(x: f64[m], y: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, sum(x ** 2)
    end

func momentum(w: f64, v: f64, y: f64, rate: f64, n: i64)
    for i = 1 to n
        mul v, 0.9
        sub v, rate * (w - 1.0 / (1.0 + w ** 2))
        add w, v
    end
    add y, w ** 2

func damped(x: f64, v: f64, y: f64, c: f64, n: i64)
    for i = 1 to n
        add x, v * 0.01
        sub v, sin(x) * 0.01
        call damp(v, c)
    end
    add y, x * v + x

func damp(v: f64, c: f64)
    if c > 0.0
        mul v, 1.0 - c * 0.1
    end
""")


def relax(n: int, x: Any) -> Any:
    y = mpmath.mpf(0)
    for _ in range(n):
        x = x / 2 + mpmath.mpf(0.3)
        y += x**2
    return y


def momentum(n: int, w: Any, v: Any, rate: Any) -> Any:
    for _ in range(n):
        v = v * mpmath.mpf(0.9) - rate * (w - 1 / (1 + w**2))
        w = w + v
    return w**2


def damped(n: int, x: Any, v: Any, c: Any) -> Any:
    step = mpmath.mpf(0.01)
    for _ in range(n):
        x = x + v * step
        v = v - mpmath.sin(x) * step
        v = v * (1 - c * mpmath.mpf(0.1))
    return x * v + x


CASES: dict[str, tuple[Any, dict[str, float], tuple[int, ...]]] = {
    "relax": (relax, {"x": 1.0}, (60, 100)),
    "momentum": (momentum, {"w": 5.0, "v": 0.25, "rate": 0.01}, (60, 400)),
    "damped": (damped, {"x": 1.0, "v": 0.5, "c": 0.5}, (100, 600)),
}
TRIES = [(name, n) for name, (*_, counts) in CASES.items() for n in counts]


def given(name: str, n: int) -> dict[str, Any]:
    inputs: dict[str, Any] = {**CASES[name][1], "y": 0.0, "n": n}
    return inputs | {"x": np.array([1.0])} if name == "relax" else inputs


def flat(value: Any) -> float:
    return float(np.ravel(value)[0])


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize(("name", "n"), TRIES)
@sample
def test_programs_that_contract_have_right_gradients(name: str, n: int, engine: str) -> None:
    function, at, _ = CASES[name]
    f = PROGRAM[name].with_options(strict=True, engine=engine)
    loss, found = f.value_and_grad(loss="y", **given(name, n))
    with mpmath.workdps(60):
        for k, which in enumerate(at):
            along = lambda t, k=k: function(  # noqa: E731
                n, *(t if j == k else mpmath.mpf(v) for j, v in enumerate(at.values()))
            )
            want = float(mpmath.diff(along, mpmath.mpf(at[which])))
            assert abs(flat(found[which]) - want) <= 1e-11 * abs(want) + 1e-13, which
        values = [mpmath.mpf(v) for v in at.values()]
        assert loss == pytest.approx(float(function(n, *values)), rel=1e-12)


def test_the_issue_is_real() -> None:
    """Without the log such a gradient is refused."""
    with pytest.raises(rvm.RvmError, match="R017"):
        PROGRAM.relax.grad(loss="y", **given("relax", 60))


RNG = np.random.default_rng(8)


def bits(values: Any) -> str:
    return repr([v.tolist() if isinstance(v, np.ndarray) else v for v in values])


def seeded(pull: Pullback) -> Any:
    """The adjoints that a pullback has been given, some for all floats."""
    bars = properties.drawn(
        named_duals(pull.function, pull.bars, pull.result.info), np.random.default_rng(3)
    )
    pull.seed_all(bars)
    return bars


def returns(f: FunctionHandle, inputs: dict[str, Any]) -> None:
    """A pullback's values are back to the bit, and its log is empty."""
    pull = f.with_options(strict=True).pullback(**properties.copied(inputs))
    bars = seeded(pull)
    before = bits(pull.start[: f.function.n_args])
    found = pull(check=False)
    assert bits(pull.machine.state.frames[0].regs[: f.function.n_args]) == before
    assert pull.machine.residue_bytes == 0
    plain = f.pullback(**properties.copied(inputs))
    plain.seed_all(bars)
    assert properties.distance(found, plain(check=False)) <= 1e-5


@thin
@sample
@pytest.mark.parametrize("engine", [n for n in executing() if n == LAW or ENGINES[n].compiles])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_comes_back(name: str, engine: str) -> None:
    text, inputs, _ = PROGRAMS[name]
    returns(rvm.assemble(text).main.with_options(engine=engine), inputs)


@thin
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_comes_back_to_the_inverse(name: str) -> None:
    text, inputs, _ = PROGRAMS[name]
    f = rvm.assemble(text).main
    returns(~f, dict(f(**properties.copied(inputs))))


@thin
@pytest.mark.parametrize(
    "name", ["calls and uncalls", "recursion", "ancillas", "routines", "stacks", "in place"]
)
def test_every_value_comes_back_to_a_gradient_itself(name: str) -> None:
    """A gradient is a program, whose own gradient is strict too."""
    text, inputs, _ = PROGRAMS[name]
    f = rvm.assemble(text).main
    pull = f.pullback(**properties.copied(inputs))
    pull.seed_all(properties.drawn(named_duals(f.function, pull.bars, pull.result.info), RNG))
    program = f.gradient_program
    entry = program.program.function(program.program.entry)
    regs = [*pull.start[: f.function.n_args], *pull.bars.values()]
    values = dressed(entry, {p.name: nested(p.layout, regs) for p in entry.params})
    returns(program[entry.name], values)


@thin
@pytest.mark.parametrize("seed", range(40))
@some
def test_values_of_random_programs_come_back(seed: int) -> None:
    f = rvm.assemble(random_programs.program(seed)).main
    gradients = set[str]()
    for engine in first_and_another(executing(), seed) if seed % 4 == 0 else executing()[:1]:
        options = {"strict": True, "engine": engine}
        pull = f.with_options(**options).pullback(**random_programs.inputs(seed))
        seeded(pull)
        before = bits(pull.start[: f.function.n_args])
        gradients.add(repr(pull(check=False)))
        assert bits(pull.machine.state.frames[0].regs[: f.function.n_args]) == before
    assert len(gradients) == 1


def test_every_way_to_a_gradient_uses_the_log() -> None:
    f = PROGRAM.momentum.with_options(strict=True)
    at = given("momentum", 400)
    want = f.grad(loss="y", **at)
    assert f.vjp({"y": 1.0}, **at) == want
    rows = f.map.grad(loss="y", **at | {"w": np.array([5.0, 5.0])})
    assert rows.w.tolist() == [want.w] * 2 and rows.rate == want.rate * 2
    assert f.jacobian(of=["y"], **at).y.w == pytest.approx(want.w, rel=1e-9)
    objective = port.objective(f, "y", ["w", "v"], **at)
    assert objective.grad(objective.x0).tolist()[:2] == [want.w, want.v]


@wide
def test_second_derivatives_by_all_ways() -> None:
    f = PROGRAM.damped.with_options(strict=True)
    at = given("damped", 600)
    taylor = f.hessian(loss="y", method="taylor", **at)
    turned = f.hessian(loss="y", **at)
    for a in ("x", "v", "c"):
        for b in ("x", "v", "c"):
            assert turned[a][b] == pytest.approx(taylor[a][b], rel=1e-9)
    along = f.hvp({"v": 2.0}, loss="y", **at)
    assert along.x == pytest.approx(2 * taylor.x.v, rel=1e-9)
    with pytest.raises(rvm.RvmError, match="R017"):
        PROGRAM.damped.hessian(loss="y", **at)


def test_the_command_line(tmp_path: Any) -> None:
    path = tmp_path / "relax.rasm"
    path.write_text("""\
func relax(x: f64, y: f64)
    for i = 1 to 60
        mul x, 0.5
        add x, 0.3
    add y, x ** 2
    end
""")
    told = rvm_json("grad", str(path), "x=1", "y=0", "--loss", "y", "--strict")
    assert told["gradient"]["x"] == pytest.approx(22 / 15, rel=1e-12)


def test_gradients_within_a_run_are_not_helped_and_say_so() -> None:
    """Of a gradient program that is called, and of a call in a program: the log undoes the call."""
    lib = rvm.assemble("""
func relax(x: f64, y: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, x ** 2
    end

func uses(x: f64, y: f64, n: i64, g: f64)
    with bar = 0.0
        call relax'(x, y, n; bar, 1.0)
        add g, bar
    end
""")
    at = {"x": 1.0, "y": 0.0, "n": 60}
    by_hand = lib.relax.gradient_program["relax_gradient"]
    calls = (
        lambda **options: by_hand(**at, x_bar=0.0, y_bar=1.0, **options),
        lambda **options: lib.uses(**at, g=0.0, **options),
    )
    for call in calls:
        with pytest.raises(rvm.InvertibilityError) as caught:
            call(strict=True)
        assert caught.value.code == "R017" and "by `f.grad`" in caught.value.hint
    with pytest.raises(rvm.InvertibilityError) as caught:
        calls[0]()
    assert "take the gradient in strict mode" in caught.value.hint
    # The call itself is undone to the bit.
    out = calls[0](strict=True, tolerance=float("inf"))
    assert (~by_hand)(out) == {**at, "x_bar": 0.0, "y_bar": 1.0}
    assert lib.relax.grad(at, loss="y", strict=True).x == pytest.approx(22 / 15, rel=1e-14)
