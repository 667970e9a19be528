"""The gradient and the second derivative of exp, by its Taylor series.

    python examples/gradients/exp_taylor.py

The series (`exp_taylor.rasm`) uncomputes its terms arithmetically.  All derivatives of exp are exp,
so the gradient must give its value again, and so must the gradient's program run with tangents.
"""

from __future__ import annotations

import math

from common import Gradient, costs, differentiate, error, hessian, program, table


def gradient(x: float) -> Gradient:
    """exp x and its derivative."""
    return differentiate(program("exp_taylor").iexp, "y", y=0.0, x=x)


def second(x: float) -> float:
    """The second derivative, by tangents of the gradient's program."""
    return float(hessian(program("exp_taylor").iexp, "y", "x", y=0.0, x=x)[0, 0])


def report() -> None:
    """Print both at a few places."""
    g = gradient(1.6)
    rows = []
    for x in (-2.0, 0.5, 1.6, 5.0):
        d, dd, e = gradient(x).grad.x, second(x), math.exp(x)
        rows.append((x, e, d, error(d, e), dd, error(dd, e)))
    print(table(("x", "exp x", "gradient", "error", "second", "error"), rows))
    print(f"NiLang's gradient at 1.6: 4.9530324244260555; here: {g.grad.x}")
    print(costs(g))


if __name__ == "__main__":
    report()
