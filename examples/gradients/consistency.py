"""Learning by consistency: a program that can be trained by running it to and fro, and one not.

    python examples/gradients/consistency.py

Which p makes y = e^(x+p) - e^x equal to 1, for x = 0.3?  No gradient is used: run, correct the
result, run back, correct the input, and again (`consistency.rasm`).  `keeping` leaves enough behind
to tell the old p, so nothing is learnt.  `clearing` leaves no trace of x, and p is driven to the
answer, log(1 + e^0.3) - 0.3; each round makes the error e^0.3 times less, as theory says.
"""

from __future__ import annotations

import math

from common import program, table

X, WANTED, START = 0.3, 1.0, 1.6
ANSWER = math.log(WANTED + math.exp(X)) - X


def train(name: str, rounds: int = 100, p: float = START) -> list[tuple[float, float]]:
    """Each round's p, and the y that it gave."""
    f = program("consistency")[name]
    seen = []
    for _ in range(rounds):
        out = f(y=0.0, x=X, p=p)
        seen.append((p, out.y))
        p = (~f)(y=WANTED, x=out.x, p=out.p).p
    return seen


def newton(rounds: int = 6, p: float = START) -> list[float]:
    """For comparison: Newton's method with the derivative from the program run back."""
    f = program("consistency").clearing
    seen = [p]
    for _ in range(rounds):
        y, grad = f.value_and_grad(loss="y", y=0.0, x=X, p=p)
        p -= (y - WANTED) / grad.p
        seen.append(p)
    return seen


def report() -> None:
    """Print both trainings."""
    keeping, clearing = train("keeping"), train("clearing")
    rows = []
    for k in (0, 1, 2, 5, 10, 20, 50, 99):
        (p, y), (q, z) = keeping[k], clearing[k]
        rows.append((k, p, y, q, z, f"{abs(q - ANSWER):.1e}"))
    print(table(("round", "p kept", "y", "p cleared", "y", "error of p"), rows))
    errors = [abs(p - ANSWER) for p, _ in clearing[20:30]]
    rate = (errors[-1] / errors[0]) ** (1 / 9)
    print(f"the error falls by {rate:.6f} a round; theory: {math.exp(-X):.6f}")
    print(f"Newton's method by gradients: {', '.join(f'{p:.12g}' for p in newton())}")
    print(f"answer: {ANSWER:.12g}")


if __name__ == "__main__":
    report()
