"""Programs with derivatives, one for each thing that a program can be made of.

A name leads to the text, inputs of `main`, and a scalar place for the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm import LogNumber

a = np.array([0.3, 0.7, -0.4])
ONE = 1 << 43
"""One as a raw fixed-point number."""

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
    "the same place many times": (
        """
func main(y: f64, x: f64, a: f64[n])
    add y, x * x
    add y, x ** x / (x + exp(-x))
    sub y, a[1] * a[1] * a[1] + sum(a * a)
    mul y, x * x
    add a[0], a[1] * a[2] * a[1]
    rot a[0], a[1], a[2] * a[2]
    add y, a[0] * a[1]
""",
        {"y": 0.4, "x": 1.3, "a": a},
        "y",
    ),
    "views with steps": (
        """
func row(b: f64[n], t: f64)
    for i = 1 to n - 1
        mul b[i], 1.0 + t * b[i - 1]
    end
func main(a: f64[n], M: f64[m, n], y: f64, s: i64)
    add a[::-1], 0.3 * M[0, :]
    mul a[::2], 1.5 + y * a[1]
    call row(M[::-1, 1], y)
    call row(M[1, ::s], a[0])
    swap a[:1], M.T[::-2, 0][:1]
    add M[::-1, ::-1].T, 0.5 * y
    add y, sum(a[::-1] * M[1, ::s]) + M[::2, ::2][0][1] * M[1, ::-1][2]
""",
        {"a": a, "M": np.array([[0.2, -0.5, 1.1], [0.9, 0.4, -0.3]]), "y": 0.6, "s": -1},
        "y",
    ),
    "shapes": (
        """
func layer(h: f64[m], W: f64[m, n], x: f64[n])
    add h, tanh(W @ x)
func main(y: f64, w: f64[l], k: i64)
    mul w[1:7].reshape(k, 3)[1], 1.0 + w[0] ** 2
    swap w.reshape(4, k)[0, :], w[::-1].reshape(4, k).T[:, 0]
    with h: f64[k]
        call layer(h, w[:6].reshape(k, 3), w[5:])
        add y, sum(h ** 2) + w.reshape(2, 2, k)[1, 0, 1] * sum(w.reshape(k, 4) @ w[:4])
        uncall layer(h, w[:6].reshape(k, 3), w[5:])
    end
    rot w.reshape(k, 4)[0, 1], w.reshape(k, 4)[1, 3], y
""",
        {"y": 0.3, "w": np.array([0.3, 0.7, -0.4, 0.9, 1.1, -0.2, 0.5, 0.8]), "k": 2},
        "y",
    ),
    "strided loops": (
        """
func main(y: f64, x: f64, n: i64)
    for i = 1 to n step 3
        for j = i downto 0 step 2
            mul y, 1.0 + x / f64(i + j + 1)
            add y, sin(x * f64(j))
        end
    end
""",
        {"y": 0.1, "x": 0.8, "n": 9},
        "y",
    ),
    "loops that begin in the middle": (
        """
func main(y: f64, x: f64, n: i64)
    from n == 0
        add y, x * x
        inc n
    loop
        mul x, 0.875
    until n >= 4
""",
        {"y": 0.1, "x": 0.8, "n": 0},
        "y",
    ),
    "while": (
        """
func main(y: f64, x: f64)
    alloc k: i64
    while k < 7, k > 0
        inc k
        if k % 3 == 0
            add y, x ** k
        elseif k % 3 == 1
            mul y, 1.0 + x * x
        else
            sub y, sin(x) / f64(k)
        end
    end
    free k = 7
""",
        {"y": 0.1, "x": 0.8},
        "y",
    ),
    "branches on values": (
        """
func main(y: f64, x: f64, z: f64)
    if x > z
        add y, x * z
        if x * z < 0.5
            mul y, exp(z)
        end
    else
        sub y, x
    end
    if z > x
        add y, 100.0 * x
    end
""",
        {"y": 0.1, "x": 0.8, "z": 0.5},
        "y",
    ),
    "calls and uncalls": (
        """
func step(y: f64, x: f64, k: f64)
    add y, exp(x * k)
    mul y, k

func twice(y: f64, a: f64, b: f64)
    add y, a * b * a

func main(y: f64, x: f64)
    call step(y, x, 1.5)
    uncall step(y, x, x * x)
    call step(y, x, x)
    call twice(y, x, x)
    uncall twice(y, x + 1.0, x)
""",
        {"y": 0.1, "x": 0.8},
        "y",
    ),
    "arrays passed in part": (
        """
func mix(p: f64[k], q: f64[k], s: f64)
    add p, q * s
    mul q, s + 2.0
    add q[0], sum(p) ** 2

func main(A: f64[m, n], v: f64[m])
    call mix(A[0, :], A[1, :], v[0])
    uncall mix(v[0:1], v[1:2], A[0, 0] * A[1, 0])
    call both(A, A, v)
    call mix(A[:, 1], v, 0.5)

func both(x: f64[m, n], y: f64[m, n], v: f64[m])
    add v, x[:, 0] * y[:, 1]
    add v[0], sum(x * y)
""",
        {"A": np.arange(1.0, 7.0).reshape(2, 3) / 9, "v": a[:2]},
        "v[0]",
    ),
    "the same array in two parameters": (
        """
func main(y: f64, p: f64[n], q: f64[n])
    add y, dot(p, q ** 2)
""",
        {"y": 0.0, "p": a, "q": a},
        "y",
    ),
    "recursion": (
        """
func main(y: f64, x: f64, n: i64)
    if n > 0
        add y, x ** n
        alloc m: i64 = n - 1
        call main(y, x, m)
        mul y, 1.0 + x / 8.0
        free m = n - 1
    end
""",
        {"y": 0.0, "x": 1.3, "n": 6},
        "y",
    ),
    "recursion in two functions, backwards": (
        """
func main(y: f64, x: f64, n: i64)
    if n > 0
        uncall other(x, y, n - 1)
        add y, x * f64(n)
    end

func other(y: f64, x: f64, n: i64)
    add y, sin(x) / 4.0
    call main(x, y, n)
""",
        {"y": 0.2, "x": 0.3, "n": 4},
        "y",
    ),
    "ancillas": (
        """
func main(y: f64, x: f64, a: f64[n], b: f64[n])
    alloc t: f64 = x
    add t, sin(y)
    alloc u: f64[n] = t * t
    mul u, b + 2.0
    add a, u * x
    div u, b + 2.0
    free u = t * t
    sub t, sin(y)
    free t = x
    alloc s: f64 = y * y
    add x, s * a[1]
    free s = y * y
    alloc v: f64[n] = b
    add v, b * x
    add y, dot(v, a)
    free v = b * (1.0 + x)
""",
        {"y": 0.1, "x": 0.8, "a": a, "b": 0.5 - a},
        "y",
    ),
    "routines": (
        """
func main(y: f64, x: f64)
    routine r
        alloc t: f64
        for i = 1 to 3
            add t, x ** i / f64(i)
        end
        alloc u: f64 = t
        mul u, x
    end
    add y, u * t
    undo r
    mul y, x
""",
        {"y": 0.1, "x": 0.8},
        "y",
    ),
    "macros and pure functions": (
        """
pure gauss(x, s) = exp(-(x / s) ** 2 / 2)

macro horner y, x
    alloc t: f64
    add t, gauss(x, 1.5)
    add y, t * x
    sub t, gauss(x, 1.5)
    free t
end

func main(y: f64, x: f64, z: f64)
    horner y, x
    horner z, y
""",
        {"y": 0.1, "x": 0.8, "z": 0.0},
        "z",
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
    "views that change": (
        """
func main(A: f64[m, n], x: f64[n], k: i64[p])
    add A[0, :], x * A[1, 2]
    mul A[:, 1], 1.5
    swap A[0, 0:2], A[1, 1:3]
    rot A.T[0, :], A.T[2, :], x[0]
    for i = 0 to len(k) - 1
        add x[k[i]], A[1, k[i]] ** 2
        add A[0, 0], x[k[i]]
    end
""",
        {
            "A": np.arange(1.0, 7.0).reshape(2, 3) / 7,
            "x": a,
            "k": np.array([0, 2, 0, 0]),
        },
        "A[0, 0]",
    ),
    "records": (
        """
record Body
    pos: f64[3]
    m: f64
    spin: i64
end

record Pair
    one: Body
    two: Body
end

func kinetic(e: f64, b: Body)
    add e, b.m * dot(b.pos, b.pos) + f64(b.spin)
    mul b.m, 1.0 + b.pos[0] ** 2

func main(e: f64, p: Pair, all: Body[n])
    call kinetic(e, p.one)
    uncall kinetic(e, p.two)
    swap p.one, p.two
    add p.one.m, e * p.two.m
    call kinetic(p.one.m, all[1])
    add all[0].pos[2], all[1].m * p.one.m
    add e, all[0].pos[2] * p.two.pos[1]
""",
        {
            "e": 0.1,
            "p": {
                "one": {"pos": a, "m": 1.5, "spin": 2},
                "two": {"pos": 2 * a, "m": 0.5, "spin": -1},
            },
            "all": {
                "pos": np.arange(6.0).reshape(2, 3) / 5,
                "m": np.array([1.0, 2.0]),
                "spin": np.array([1, 0]),
            },
        },
        "e",
    ),
    "stacks": (
        """
func main(e: f64, m: f64, s: stack[f64])
    alloc x: f64
    pop x, s
    add e, m * x
    add m, e * e
    push m, s
    swap m, x
    mul m, 1.0 + e * e
    add e, m
    pop x, s
    call under(e, s)
    for i = 1 to 2
        mul m, 1.0 + x * x
        push x, s
        swap x, e
        call under(x, s)
        pop e, s
    end
    push x, s
    free x

func under(e: f64, s: stack[f64])
    alloc t: f64
    pop t, s
    add e, t ** 2
    mul t, 1.25
    push t, s
    free t
""",
        {"e": 0.1, "m": 1.5, "s": [0.3, 0.7]},
        "e",
    ),
    "complex": (
        """
func main(y: c128, x: c128, z: c128[n])
    add y, x * z[0] + log(z[1])
    add y.re, abs(x) + angle(z[0])
    mul y, exp(x)
    conj y
    add z[0].im, y.re * x.im
    swap y.re, x.im
    add y, sum(z * conj(z))
    rot z[0], z[1], x.re
    div y, z[0] * z[1]
""",
        {"y": 0.3 + 0.1j, "x": 0.7 - 0.2j, "z": np.array([1 + 2j, 0.5 - 1j])},
        "y.re",
    ),
    "log64": (
        """
func main(y: f64, u: log64, v: log64, w: log64[n])
    mul u, (u_free(v)) ** 2.0
    div w[0], v
    mul u, w[0] + w[1]
    neg v
    add y, f64(u) + log(v)

pure u_free(v) = v + v * v
""",
        {"y": 0.0, "u": LogNumber(0.3), "v": LogNumber(-0.2), "w": np.array([0.1, -0.4])},
        "y",
    ),
    "fixed": (
        """
func main(y: fixed, x: fixed[n], t: fixed(30))
    for i = 0 to len(x) - 1
        add y, x[i] * exp(x[i]) / 3
        alloc u: fixed = y * y
        add x[i], u * sin(fixed(t))
        sub x[i], y * y * sin(fixed(t))
        free u = y * y
    end
    swap y, x[1]
    neg x[0]
    add y, sum(x * x) + sqrt(fixed(t))
""",
        {"y": 0.25, "x": np.array([ONE // 3, ONE // 5, -ONE // 7]), "t": 0.75},
        "y",
    ),
    "single precision and conversions": (
        """
func main(y: f64, x: f32, q: fixed, g: log64, z: c128, n: i64)
    add x, f32(y) * 0.5 + f32(n)
    add y, f64(x) ** 2 + f64(q) * f64(n)
    add q, fixed(y) * fixed(x)
    mul g, log64(y)
    add z, c128(g) + c128(q)
    add y, real(z) + f64(n // 2)
""",
        {
            "y": 0.5,
            "x": 1.25,
            "q": 0.75,
            "g": LogNumber(0.1),
            "z": 0.5 + 1j,
            "n": 3,
        },
        "y",
    ),
}


def copies(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs whose arrays a run may change."""

    def copy(v: Any) -> Any:
        if isinstance(v, dict):
            return {k: copy(w) for k, w in v.items()}
        return v.copy() if isinstance(v, np.ndarray) else list(v) if isinstance(v, list) else v

    return {k: copy(v) for k, v in inputs.items()}
