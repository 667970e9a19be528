"""Every way to a gradient, on programs that are hard to run back: right, or refused.

Each program is written twice: as a text, and for mpmath, whose derivative of many digits is the
truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import rvm
from rvm.interop.port import port
from rvm.interop.scipy import objective
from rvm.library.handle import FunctionHandle


@dataclass(frozen=True)
class Hard:
    """A program `f(y, x, p, n)`, the same for mpmath, and where it is run.

    `honest`: its values are not lost, so that its gradient must not be refused.
    """

    body: str
    formula: Callable[[Any, Any, int], Any]
    x: float
    p: float
    n: int
    honest: bool
    spread: int = 0
    """Powers of ten by which its values are further apart than most programs' are."""

    def truth(self) -> tuple[float, float]:
        """The derivatives of y by x and by p."""
        with mpmath.workdps(self.digits):
            x, p = mpmath.mpf(self.x), mpmath.mpf(self.p)
            h = mpmath.mpf(10) ** -40 * (abs(x) or 1), mpmath.mpf(10) ** -40 * (abs(p) or 1)
            by_x = (self.formula(x + h[0], p, self.n) - self.formula(x - h[0], p, self.n)) / h[0]
            by_p = (self.formula(x, p + h[1], self.n) - self.formula(x, p - h[1], self.n)) / h[1]
            return float(by_x / 2), float(by_p / 2)

    @property
    def digits(self) -> int:
        """Digits that second differences of 10^-25 of the inputs leave enough of."""
        return (420 if abs(self.x) < 1e-100 else 100) + self.spread

    def second(self) -> dict[tuple[str, str], Any]:
        """The second derivatives of y by x and p, in mpmath's numbers."""
        with mpmath.workdps(2 * self.digits + 100):
            at = {"x": mpmath.mpf(self.x), "p": mpmath.mpf(self.p)}
            h = {k: mpmath.mpf(10) ** -70 * (abs(v) or 1) for k, v in at.items()}

            def moved(k: str, a: int, j: str, b: int) -> Any:
                there = {n: v + (a * (n == k) + b * (n == j)) * h[n] for n, v in at.items()}
                return self.formula(there["x"], there["p"], self.n)

            return {
                (k, j): sum(a * b * moved(k, a, j, b) for a in (1, -1) for b in (1, -1))
                / (4 * h[k] * h[j])
                for k in at
                for j in at
            }

    def handle(self) -> FunctionHandle:
        """The program."""
        return rvm.assemble(f"func f(y: f64, x: f64, p: f64, n: i64)\n{self.body}").f


def relax(x: Any, p: Any, n: int) -> Any:
    y = mpmath.mpf(0)
    for _ in range(n):
        x = x / 2 + mpmath.mpf(0.3)
        y += x * x * p
    return y


RELAX = """\
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, x * x * p
    end
"""


def friction(x: Any, p: Any, n: int) -> Any:
    for _ in range(n):
        p -= mpmath.mpf(0.1) * mpmath.sin(x)
        p *= mpmath.mpf(0.8)
        x += mpmath.mpf(0.1) * p
    return mpmath.sin(x) + p * p


FRICTION = """\
    for i = 1 to n
        sub p, 0.1 * sin(x)
        mul p, 0.8
        add x, 0.1 * p
    end
    add y, sin(x) + p * p
"""


def pendulum(x: Any, p: Any, n: int) -> Any:
    for _ in range(n):
        p -= mpmath.mpf(0.05) * mpmath.sin(x)
        x += mpmath.mpf(0.05) * p
    return mpmath.cos(x) + p * p


PENDULUM = """\
    for i = 1 to n
        sub p, 0.05 * sin(x)
        add x, 0.05 * p
    end
    add y, cos(x) + p * p
"""


def doubling(x: Any, p: Any, n: int) -> Any:
    y = mpmath.mpf(0)
    for _ in range(n):
        x = x * 2 - mpmath.mpf(0.3)
        y += mpmath.atan(x) * p
    return y


DOUBLING = """\
    for i = 1 to n
        mul x, 2.0
        sub x, 0.3
        add y, atan(x) * p
    end
"""


def there_and_again(x: Any, p: Any, n: int) -> Any:
    x = (x - mpmath.mpf(0.5)) * mpmath.mpf(3) ** n
    y = mpmath.sin(x) * p
    x = x / mpmath.mpf(3) ** n + mpmath.mpf(0.7)
    return y + x * x


THERE_AND_AGAIN = """\
    sub x, 0.5
    mul x, 3.0 ** f64(n)
    add y, sin(x) * p
    div x, 3.0 ** f64(n)
    add x, 0.7
    add y, x * x
"""


def kinked(x: Any, p: Any, n: int) -> Any:
    y = mpmath.mpf(0)
    for _ in range(n):
        x = x / 2
        y += (mpmath.mpf(500) if x < mpmath.mpf(1e-9) else mpmath.mpf(2)) * x * p
        x += mpmath.mpf(1e-3)
    return y


KINKED = """\
    for i = 1 to n
        mul x, 0.5
        add y, select(x < 1e-9, 500.0, 2.0) * x * p
        add x, 1e-3
    end
"""


def mixed(x: Any, p: Any, n: int) -> Any:
    y = mpmath.log(x) * p
    for _ in range(n):
        x += mpmath.mpf(1)
        y += x * p
    return y


MIXED = """\
    add y, log(x) * p
    for i = 1 to n
        add x, 1.0
        add y, x * p
    end
"""


def large_sum(x: Any, p: Any, n: int) -> Any:
    return sum((x * (k + 1) + p) ** 2 for k in range(n))


LARGE_SUM = """\
    for i = 1 to n
        add y, (x * f64(i) + p) ** 2
    end
"""


def momentum(x: Any, p: Any, n: int) -> Any:
    for _ in range(n):
        p = mpmath.mpf(0.9) * p - mpmath.mpf(0.05) * (x + x**3)
        x += p
    return x * x + mpmath.exp(p)


MOMENTUM = """\
    for i = 1 to n
        mul p, 0.9
        sub p, 0.05 * (x + x ** 3)
        add x, p
    end
    add y, x * x + exp(p)
"""


HARD = {
    **{f"relax {n}": Hard(RELAX, relax, 1.1, 0.7, n, n <= 10) for n in (5, 10, 20, 40, 60, 100)},
    **{
        f"friction {n}": Hard(FRICTION, friction, 1.0, 0.5, n, n <= 20)
        for n in (10, 20, 100, 300, 1000)
    },
    **{f"pendulum {n}": Hard(PENDULUM, pendulum, 1.0, 0.0, n, True) for n in (1, 10, 1000)},
    "pendulum nearly from rest": Hard(PENDULUM, pendulum, 1.0, 1e-13, 500, True),
    "pendulum of small swings": Hard(PENDULUM, pendulum, 1e-150, 3e-151, 500, True),
    **{f"doubling {n}": Hard(DOUBLING, doubling, 0.31, 1.5, n, n < 40) for n in (5, 20, 60, 200)},
    **{
        f"there and again {n}": Hard(THERE_AND_AGAIN, there_and_again, 0.5001, 1.5, n, n < 10)
        for n in (5, 10, 20, 30)
    },
    **{f"kinked {n}": Hard(KINKED, kinked, 9e-7, 1.0, n, n < 10) for n in (1, 5, 30, 60)},
    **{f"mixed {k}": Hard(MIXED, mixed, 10.0**-k, 1.0, 3, k < 4) for k in (0, 2, 6, 9, 12, 14)},
    **{
        f"large sum {x:g}": Hard(LARGE_SUM, large_sum, x, 0.1 * x, 100, True)
        for x in (1e-200, 1e-5, 1e5, 1e100)
    },
    **{f"momentum {n}": Hard(MOMENTUM, momentum, 0.8, 0.0, n, n <= 20) for n in (10, 100, 400)},
}


Way = Callable[[FunctionHandle, Hard], tuple[float, float]]
"""The derivatives of y by x and p, in one way."""


def _at(h: Hard) -> dict[str, Any]:
    return {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}


def _of(g: Mapping[str, Any]) -> tuple[float, float]:
    return float(g["x"]), float(g["p"])


def _pullback(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    pull = f.pullback(**_at(h))
    pull.seed("y")
    return _of(pull())


def _map(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    at = _at(h) | {"x": np.full(2, h.x), "p": np.full(2, h.p)}
    g = f.map.grad(loss="y", **at)
    assert g.x[0] == g.x[1]
    return float(g.x[0]), float(g.p[0])


def _by_hand(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    out = f.gradient_program.f_gradient(**_at(h), y_bar=1.0, x_bar=0.0, p_bar=0.0)
    return float(out.x_bar), float(out.p_bar)


def _from_text(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    from rvm_asm import disassemble

    text = disassemble(f.gradient_program, positions=False)
    out = rvm.assemble(text).f_gradient(**_at(h), y_bar=1.0, x_bar=0.0, p_bar=0.0)
    return float(out.x_bar), float(out.p_bar)


def _hand_map(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    at = _at(h) | {"y_bar": np.array([1.0, 2.0]), "x_bar": 0.0, "p_bar": 0.0}
    out = f.gradient_program.f_gradient.map(**at)
    return float(out.x_bar[0]), float(out.p_bar[0])


def _hand_tangents(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    at = _at(h) | {"y_bar": 1.0, "x_bar": 0.0, "p_bar": 0.0}
    out = f.gradient_program.f_gradient.jvp({"x": 1.0}, at)[0]
    return float(out.x_bar), float(out.p_bar)


def _scipy(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    goal = objective(f, "y", ["x", "p"], x=h.x, p=h.p, n=h.n)
    x, p = goal.grad(goal.x0)
    return float(x), float(p)


def _port(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    made = port(f, ["x", "p"], ["y"], {"n": h.n})
    inputs = [np.array(h.x), np.array(h.p)]
    x, p = made.backward(inputs, made.forward(inputs), [np.array(1.0)])
    return float(x), float(p)


def _jacobian(f: FunctionHandle, h: Hard) -> tuple[float, float]:
    return _of(f.jacobian(_at(h), of=["y"]).y)


WAYS: dict[str, Way] = {
    "grad": lambda f, h: _of(f.grad(_at(h), loss="y")),
    "value_and_grad": lambda f, h: _of(f.value_and_grad(_at(h), loss="y")[1]),
    "vjp": lambda f, h: _of(f.vjp({"y": 1.0}, _at(h))),
    "pullback": _pullback,
    "map": _map,
    "by hand": _by_hand,
    "from a text": _from_text,
    "by hand in lanes": _hand_map,
    "by hand with tangents": _hand_tangents,
    "scipy": _scipy,
    "port": _port,
    "jacobian": _jacobian,
    "native": lambda f, h: _of(f.with_options(engine="native").grad(_at(h), loss="y")),
    "reference": lambda f, h: _of(f.with_options(engine="reference").grad(_at(h), loss="y")),
}
