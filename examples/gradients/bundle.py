"""Bundle adjustment as ADBench states it: its sparse Jacobian, its gradient, and a solution.

    python examples/gradients/bundle.py

Cameras look at a generated cloud of points.  Each error depends on one camera, one point and one
weight, so a row of the Jacobian is one small run back (`bundle.rasm`).  Some steps of Levenberg and
Marquardt with it bring the reprojection error down to the size of the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Gradient, complex_step, costs, differentiate, error, program, table

Values = dict[str, Any]
FIELDS = {"turn": 3, "centre": 3, "focal": 1, "principal": 2, "radial": 2}
"""The eleven numbers of a camera."""
NOISE = 0.5
"""Of what was seen, in pixels."""


def inputs(cameras: int = 3, points: int = 12, seed: int = 1) -> Values:
    """A scene that is a little wrong: what to start an adjustment from."""
    rng = np.random.default_rng(seed)
    n, m = cameras, points
    cams = {
        "turn": rng.normal(scale=0.1, size=(n, 3)),
        "centre": rng.normal(scale=0.5, size=(n, 3)) - [0, 0, 8],
        "focal": np.full(n, 500.0),
        "principal": np.tile([320.0, 240.0], (n, 1)),
        "radial": np.tile([0.05, 0.01], (n, 1)),
    }
    true = {
        "cams": cams,
        "X": rng.normal(size=(m, 3)),
        "w": np.ones(n * m),
        "which": np.array([(c, p) for c in range(n) for p in range(m)]),
        "seen": np.zeros((n * m, 2)),
    }
    seen = formula(true)[0] + rng.normal(scale=NOISE, size=(n * m, 2))
    off = {
        "turn": cams["turn"] + rng.normal(scale=0.02, size=(n, 3)),
        "centre": cams["centre"] + rng.normal(scale=0.1, size=(n, 3)),
    }
    start = {"cams": cams | off, "X": true["X"] + rng.normal(scale=0.1, size=(m, 3))}
    return true | start | {"seen": seen, "w": 1 + rng.normal(scale=0.05, size=n * m)}


def formula(v: Values) -> tuple[np.ndarray, np.ndarray]:
    """The errors and the weights' errors with NumPy; numbers may be complex."""
    cams, (camera, point) = v["cams"], v["which"].T
    r = cams["turn"][camera]
    angle = np.sqrt((r * r).sum(1))[:, None]
    axis = r / np.where(angle == 0, 1, angle)
    way = v["X"][point] - cams["centre"][camera]
    along = (axis * way).sum(1)[:, None] * axis
    turned = along + np.cos(angle) * (way - along) + np.sin(angle) * np.cross(axis, way)
    p = turned[:, :2] / turned[:, 2:]
    s = (p * p).sum(1)
    k = cams["radial"][camera]
    scale = cams["focal"][camera] * (1 + k[:, 0] * s + k[:, 1] * s * s)
    error = v["w"][:, None] * (scale[:, None] * p + cams["principal"][camera] - v["seen"])
    return error, 1 - v["w"] ** 2


def gradient(values: Values) -> Gradient:
    """Half the sum of all squares, and its gradient."""
    return differentiate(program("bundle").cost, "y", y=0.0, **values)


def row(values: Values, k: int, axis: int) -> np.ndarray:
    """The derivatives of one coordinate of error k by its camera, point and weight: 15 numbers."""
    camera, point = values["which"][k]
    seed = np.zeros(2)
    seed[axis] = 1.0
    g = program("bundle").reprojection.vjp(
        {"error": seed},
        error=np.zeros(2),
        cam={name: value[camera] for name, value in values["cams"].items()},
        X=values["X"][point], w=float(values["w"][k]), seen=values["seen"][k],
    )  # fmt: skip
    return np.hstack([*(np.ravel(g.cam[name]) for name in FIELDS), g.X, g.w])


def jacobian(values: Values) -> np.ndarray:
    """All derivatives of all errors, with zeros where there is nothing.

    Columns: cameras, 11 each; points, 3 each; weights.  Rows: errors, two each; weights' errors.
    """
    n, m, o = len(values["cams"]["focal"]), len(values["X"]), len(values["w"])
    out = np.zeros((3 * o, 11 * n + 3 * m + o))
    for k, (camera, point) in enumerate(values["which"]):
        for axis in range(2):
            r = row(values, k, axis)
            out[2 * k + axis, 11 * camera : 11 * camera + 11] = r[:11]
            out[2 * k + axis, 11 * n + 3 * point : 11 * n + 3 * point + 3] = r[11:14]
            out[2 * k + axis, 11 * n + 3 * m + k] = r[14]
        out[2 * o + k, 11 * n + 3 * m + k] = -2 * values["w"][k]
    return out


def pack(values: Values) -> np.ndarray:
    """Everything adjustable as a vector, in the order of the Jacobian's columns."""
    cams = [np.reshape(values["cams"][name], (-1, width)) for name, width in FIELDS.items()]
    return np.hstack([np.hstack(cams).ravel(), np.ravel(values["X"]), values["w"]])


def unpack(values: Values, flat: np.ndarray) -> Values:
    """The values with everything adjustable from a vector."""
    n, m = len(values["cams"]["focal"]), len(values["X"])
    numbers = flat[: 11 * n].reshape(n, 11)
    ends = np.cumsum(list(FIELDS.values()))
    cams = {
        name: numbers[:, end - width : end] if width > 1 else numbers[:, end - 1]
        for (name, width), end in zip(FIELDS.items(), ends, strict=True)
    }
    cams = {name: np.ascontiguousarray(value) for name, value in cams.items()}
    x = flat[11 * n : 11 * n + 3 * m].reshape(m, 3)
    return values | {"cams": cams, "X": x, "w": flat[11 * n + 3 * m :]}


def errors(values: Values) -> np.ndarray:
    """The errors by the program, as a vector."""
    o = len(values["w"])
    out = program("bundle").errors(error=np.zeros((o, 2)), weight_error=np.zeros(o), **values)
    return np.hstack([out.error.ravel(), out.weight_error])


def pixels(values: Values) -> float:
    """The root of the mean square of the errors, in pixels."""
    return float(np.sqrt(np.mean(errors(values)[: 2 * len(values["w"])] ** 2)))


def adjust(values: Values, steps: int = 8) -> tuple[Values, list[float]]:
    """Levenberg and Marquardt: the values adjusted, and the cost after each step."""
    damping, flat = 1e-3, pack(values)
    e, j = errors(values), jacobian(values)
    seen = [float(e @ e) / 2]
    for _ in range(steps):
        a = j.T @ j
        trial = flat - np.linalg.solve(a + damping * np.diag(np.diag(a) + 1e-9), j.T @ e)
        now = errors(unpack(values, trial))
        if now @ now < e @ e:
            flat, e, damping = trial, now, damping / 10
            j = jacobian(unpack(values, flat))
        else:
            damping *= 10
        seen.append(float(e @ e) / 2)
    return unpack(values, flat), seen


def report() -> None:
    """Print errors and costs of the derivatives, and an adjustment."""
    values = inputs()
    g, e, j = gradient(values), errors(values), jacobian(values)
    flat = pack(values)

    def cost(x: np.ndarray) -> Any:
        return sum((part * part).sum() for part in formula(unpack(values, x))) / 2

    by_steps = complex_step(cost, flat)
    got = pack({"cams": g.grad.cams, "X": g.grad.X, "w": g.grad.w})
    rows = [
        ("cost", g.loss, error(g.loss, cost(flat))),
        ("gradient, in one run back", float(np.linalg.norm(got)), error(got, by_steps)),
        ("Jacobianᵀ errors", float(np.linalg.norm(j.T @ e)), error(j.T @ e, by_steps)),
    ]
    print(table(("", "its size", "error"), rows))
    print(costs(g))
    filled = np.count_nonzero(j) / j.size
    print(f"Jacobian: {j.shape[0]} x {j.shape[1]}, {filled:.1%} of it not zero")
    found, seen = adjust(values)
    print("\ncost in steps of Levenberg and Marquardt:")
    print("  ".join(f"{v:.5g}" for v in seen))
    print(f"mean error {pixels(values):.3g} pixels, then {pixels(found):.3g}")
    print(f"(the noise was {NOISE}; with so many unknowns part of it is fitted too)")


if __name__ == "__main__":
    report()
