"""The workloads as one writes them in Python; each takes and returns the program's parameters."""

from __future__ import annotations

from typing import Any

U32 = 0xFFFFFFFF
U64 = 0xFFFFFFFFFFFFFFFF
DELTA = 0x9E3779B9

Values = dict[str, Any]


def total(s: int, n: int) -> Values:
    for i in range(n):
        s += i
    return {"s": s, "n": n}


def fibonacci(a: int, b: int, n: int) -> Values:
    k = 0
    while k < n:
        a, b = b, (a + b) & U64
        k += 1
    return {"a": a, "b": b, "n": n}


def leapfrog(x: float, y: float, u: float, v: float, n: int, h: float) -> Values:
    for _ in range(n):
        x += 0.5 * h * u
        y += 0.5 * h * v
        g = h * (x * x + y * y) ** -1.5
        u -= g * x
        v -= g * y
        x += 0.5 * h * u
        y += 0.5 * h * v
    return {"x": x, "y": y, "u": u, "v": v, "n": n, "h": h}


def xtea(v: list[int], k: list[int]) -> Values:
    for b in range(0, len(v) - 1, 2):
        p, q, s = v[b], v[b + 1], 0
        for _ in range(32):
            p = (p + ((((q << 4) ^ (q >> 5)) + q) ^ (s + k[s & 3]))) & U32
            s = (s + DELTA) & U32
            q = (q + ((((p << 4) ^ (p >> 5)) + p) ^ (s + k[(s >> 11) & 3]))) & U32
        v[b], v[b + 1] = p, q
    return {"v": v, "k": k}


def matmul(C: list[list[float]], A: list[list[float]], B: list[list[float]]) -> Values:  # noqa: N803
    n, p = len(B), len(B[0])
    for row, out in zip(A, C, strict=True):
        for j in range(p):
            for k in range(n):
                out[j] += row[k] * B[k][j]
    return {"C": C, "A": A, "B": B}
