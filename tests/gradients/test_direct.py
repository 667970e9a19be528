"""Derivatives that go straight to machine code give what machines give: values, errors, inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import LAW
from rvm.library.handle import FunctionHandle

pytestmark = pytest.mark.smoke


def program() -> Any:
    text = """
func line(e: f64, m: f64, x: f64[n])
    for i = 0 to n - 1
        add e, square(m * x[i] - 1.0)
    end

func turn(a: f64, b: f64[n], z: c128, q: fixed)
    for i = 0 to n - 1
        add a, sin(b[i])
        sub b[i], a * 0.25
    end
    add z, complex(a, 1.0) * 0.5
    add q, fixed(a * 2.0)

func steps(x: f64, v: f64, n: i64)
    for i = 1 to n
        add x, v * 1e-4
        sub v, sin(x) * 1e-4
    end
"""
    return rvm.assemble(text)


def inputs(name: str) -> dict[str, Any]:
    if name == "line":
        return {"e": 0.5, "m": 0.3, "x": np.linspace(-1.0, 2.0, 7)}
    if name == "turn":
        return {"a": 0.5, "b": np.linspace(0.0, 1.0, 5), "z": 1 + 2j, "q": 0.25}
    return {"x": 1.0, "v": 0.2, "n": 50}


SEEDS: dict[str, dict[str, Any]] = {
    "line": {"e": 1.5, "x": np.arange(7.0)},
    "turn": {"a": 1.0, "b": np.arange(5.0), "z": 0.5 - 2j, "q": 3.0},
    "steps": {"x": 2.0, "v": -1.0},
}
NAMES = list(SEEDS)


def same(found: Any, wanted: Any) -> bool:
    """Whether results are the same to the bit, whatever they are made of."""
    if hasattr(wanted, "keys"):
        return list(found) == list(wanted) and all(same(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, np.ndarray):
        return bool(found.dtype == wanted.dtype and np.array_equal(found, wanted))
    return type(found) is type(wanted) and found == wanted


def engines(name: str) -> tuple[FunctionHandle, FunctionHandle]:
    p = program()
    return tuple(p[name].with_options(engine=e) for e in ("native", LAW))  # type: ignore[return-value]


@pytest.mark.parametrize("name", NAMES)
def test_vjp_is_that_of_two_machines(name: str) -> None:
    fast, slow = engines(name)
    for seeds in (SEEDS[name], dict(list(SEEDS[name].items())[:1]), {}):
        given = inputs(name)
        wanted = slow.vjp(seeds, inputs(name))
        assert same(fast.vjp(seeds, given), wanted)
        assert same(given, inputs(name)), "inputs are left as they were"
        assert same(fast.vjp(seeds, given), wanted), "a second call"


@pytest.mark.parametrize("name", NAMES)
def test_pullbacks_and_pushforwards_are_those_of_machines(name: str) -> None:
    fast, slow = engines(name)
    pulls = [f.pullback(**inputs(name)) for f in (fast, slow)]
    assert same(pulls[0].result, pulls[1].result)
    assert pulls[0].ticks == pulls[1].ticks
    for pull in pulls:
        pull.seed_all(SEEDS[name])
    assert same(pulls[0](), pulls[1]())
    assert pulls[0].ticks == pulls[1].ticks
    assert pulls[0].machine.time == pulls[1].machine.time
    assert pulls[0].machine.finished
    for a, b in zip(*(f.jvp(SEEDS[name], inputs(name)) for f in (fast, slow)), strict=True):
        assert same(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_inverses_too(name: str) -> None:
    fast, slow = (~f for f in engines(name))
    assert same(fast.vjp(SEEDS[name], inputs(name)), slow.vjp(SEEDS[name], inputs(name)))
    for a, b in zip(*(f.jvp(SEEDS[name], inputs(name)) for f in (fast, slow)), strict=True):
        assert same(a, b)


def test_matrices_are_those_of_machines() -> None:
    fast, slow = engines("turn")
    assert same(fast.jacobian(inputs("turn")), slow.jacobian(inputs("turn")))
    fast, slow = engines("line")
    for f in (lambda h: h.hessian(inputs("line"), loss="e", method="forward-over-reverse"),):
        assert same(f(fast), f(slow))
    dots = {"m": 1.0, "x": np.ones(7)}
    assert same(fast.hvp(dots, inputs("line"), loss="e"), slow.hvp(dots, inputs("line"), loss="e"))


def test_a_run_that_takes_longer_goes_on_by_itself() -> None:
    """Longer than what one flight of machine code is given; the adjoint by a closed formula."""
    f = rvm.assemble(
        "func main(y: f64, k: f64, n: i64)\n    for i = 1 to n\n        add y, k\n    end\n"
    ).main.with_options(engine="native")
    n = 9_000_000
    assert f.vjp({"y": 1.0}, y=0.0, k=1.0, n=n).k == n
    pull = f.pullback(y=0.0, k=1.0, n=n)
    assert pull.result.y == n
    pull.seed("y")
    assert pull().k == n


# ---------------------------------------------------------------- errors

ROOTS = """
func main(y: f64, x: f64[n], z: f64[n])
    for i = 0 to n - 1
        alloc r: f64 = x[i]
        add y, r / z[i]
        free r = x[i]
    end
    add z[0], 1.0
    extern forward
        assert z[n - 1] > 0.0, "z stays positive"
    end
"""


def lines(**changed: Any) -> dict[str, Any]:
    return {"y": 0.0, "x": np.ones(4), "z": np.ones(4)} | changed


def frozen() -> Any:
    a = np.ones(4)
    a.flags.writeable = False
    return a


shared = np.ones(4)
CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "an assertion": lambda: lines(z=-np.ones(4)),
    "lengths": lambda: lines(z=np.ones(3)),
    "no array": lambda: lines(z=1.0),
    "read-only": lambda: lines(z=frozen()),
    "shared memory": lambda: lines(x=shared, z=shared),
    "missing": lambda: {"y": 0.0, "x": np.ones(4)},
    "unknown": lambda: lines(w=1.0),
    "another dtype": lambda: lines(x=np.ones(4, np.float32)),
}


def fault(call: Callable[[], Any]) -> tuple[Any, ...]:
    with pytest.raises(rvm.RvmError) as caught:
        call()
    e = caught.value
    return type(e), e.code, e.message, e.where.line if e.where else None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["vjp", "value_and_grad", "jvp", "pullback"])
def test_errors_are_those_of_machines(case: str, way: str) -> None:
    found = []
    for engine in ("native", LAW):
        f = rvm.assemble(ROOTS).main.with_options(engine=engine)
        given = CASES[case]()
        before = {k: np.copy(v) for k, v in given.items()}
        calls = {
            "vjp": lambda f=f, given=given: f.vjp({"y": 1.0}, given),
            "value_and_grad": lambda f=f, given=given: f.value_and_grad(given, loss="y"),
            "jvp": lambda f=f, given=given: f.jvp({"y": 1.0}, given),
            "pullback": lambda f=f, given=given: f.pullback(**given),
        }
        found.append(fault(calls[way]))
        assert all(np.array_equal(given[k], before[k]) for k in before)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "seeds", [{"nobody": 1.0}, {"y": np.ones(2)}, {"x": np.ones(3)}, {"z": 1.0}]
)
def test_seeds_that_do_not_fit(seeds: dict[str, Any]) -> None:
    found = [
        fault(lambda e=e: rvm.assemble(ROOTS).main.with_options(engine=e).vjp(seeds, lines()))
        for e in ("native", LAW)
    ]
    assert found[0] == found[1]


def test_a_run_that_does_not_come_back_is_refused() -> None:
    """Sixty halvings of a number of 53 bits, and nothing is left of where it began."""
    step = "        mul x, 0.5\n        add x, 1e9\n        add y, x * x\n"
    text = f"func main(y: f64, x: f64, n: i64)\n    for i = 1 to n\n{step}    end\n"
    for engine in ("native", LAW):
        f = rvm.assemble(text).main.with_options(engine=engine)
        with pytest.raises(rvm.InvertibilityError) as caught:
            f.vjp({"y": 1.0}, y=0.0, x=math.pi, n=60)
        assert caught.value.code == "R017"


def test_limits_hold() -> None:
    f = program().line.with_options(engine="native")
    with pytest.raises(rvm.LimitError) as caught:
        f.with_options(max_steps=10).vjp({"e": 1.0}, inputs("line"))
    assert caught.value.code == "R010"
    text = "func main(y: f64, n: i64)\n    alloc t: f64[n]\n    add y, t[0]\n    free t\n"
    f = rvm.assemble(text).main.with_options(engine="native", max_memory=10_000)
    assert f.vjp({"y": 2.0}, y=0.0, n=10).y == 2.0
    with pytest.raises(rvm.LimitError) as caught:
        f.vjp({"y": 1.0}, y=0.0, n=100_000)
    assert caught.value.code == "R011"


def test_stacks_keep_what_they_hold() -> None:
    text = "func main(x: fixed, y: fixed, s: stack[fixed])\n    add y, x * x\n    push x, s\n"
    for engine in ("native", LAW):
        f = rvm.assemble(text).main.with_options(engine=engine)
        held = [rvm.Fixed(1 << 43)]
        pull = f.pullback(x=1.5, y=0.0, s=held)
        assert [float(v) for v in held] == [1.0], "the caller's list"
        assert [float(v) for v in pull.result.s] == [1.0, 1.5]
        pull.seed("y")
        assert pull(["x"]).x == 3.0


@thin
@pytest.mark.parametrize("name", NAMES)
def test_parts_of_a_gradient_are_those_of_the_whole(name: str) -> None:
    """Asked for alone, whatever is seeded: adjoints that nobody asks for are not computed."""
    fast, slow = engines(name)
    able = list(slow.vjp(SEEDS[name], inputs(name)))
    loss = "a" if name == "turn" else able[0]
    for wrt in (*([p] for p in able), able[:2], able[0], tuple(able)):
        for seeds in (SEEDS[name], dict(list(SEEDS[name].items())[:1])):
            wanted = slow.vjp(seeds, inputs(name), wrt=wrt)
            found = fast.vjp(seeds, inputs(name), wrt=wrt)
            assert same(found, wanted)
            assert found.info.error is not None and list(found.info.error) == list(wanted)
        wanted = slow.value_and_grad(inputs(name), loss=loss, wrt=wrt)
        found = fast.value_and_grad(inputs(name), loss=loss, wrt=wrt)
        assert found[0] == wanted[0] and same(found[1], wanted[1])
    for loss in ("x[2]", "m") if name == "line" else ():
        wanted = slow.value_and_grad(inputs(name), loss=loss, wrt=["e"])
        assert same(fast.value_and_grad(inputs(name), loss=loss, wrt=["e"])[1], wanted[1])
    for wrt in (["nobody"], [3], [["x"]]):
        found = [fault(lambda f=f, w=wrt: f.vjp({}, inputs(name), wrt=w)) for f in (fast, slow)]
        assert found[0] == found[1]


@pytest.mark.parametrize("y", [-0.0, 0.0, 1.5])
def test_a_value_has_its_sign_where_it_is_zero(y: float) -> None:
    f = rvm.assemble("func f(y: f64, x: f64)\n    add y, x * 0.0\n").f
    for x in (-1.0, 1.0):
        values = [
            f.value_and_grad(loss="y", y=y, x=x, engine=engine)[0] for engine in (LAW, "native")
        ]
        want = y + x * 0.0
        assert [str(v) for v in values] == [str(want)] * 2
