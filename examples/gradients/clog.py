"""The gradient of the complex logarithm, and of a modulus.

    python examples/gradients/clog.py

A complex adjoint is dL/dRe + i dL/dIm.  For L = Re f(x), and f holomorphic, this is the conjugate
of f'(x); for L = Im f(x) it is i times that.
"""

from __future__ import annotations

import cmath

from common import Gradient, costs, differentiate, error, program, table


def gradient(x: complex, part: str) -> Gradient:
    """The adjoint of x, for the loss Re log x or Im log x."""
    return differentiate(program("clog").clog, f"y.{part}", y=0j, x=x)


def expected(x: complex, part: str) -> complex:
    """The same by the formula."""
    return (1 / x).conjugate() * (1j if part == "im" else 1)


def report() -> None:
    """Print adjoints beside the formula."""
    rows = []
    for x in (3 + 4j, 2 - 2.3j, -1 + 1e-3j):
        for part in ("re", "im"):
            g, want = gradient(x, part).grad.x, expected(x, part)
            rows.append((f"{part} log {x}", g, want, error(g, want)))
    print(table(("loss", "gradient", "by formula", "error"), rows))
    g = gradient(3 + 4j, "re")
    print(f"log(3+4j) = {g.result.y}, from cmath {cmath.log(3 + 4j)}")
    print(costs(g))


if __name__ == "__main__":
    report()
