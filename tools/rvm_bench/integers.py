"""Workloads of whole numbers, which have no gradient."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import Packed, c_peers, packed
from rvm_bench.contest import Values, Workload

_U32 = 0xFFFFFFFF
_U64 = 0xFFFFFFFFFFFFFFFF
_DELTA = 0x9E3779B9

# ---------------------------------------------------------------- Fibonacci numbers


def _fibonacci(a: int, b: int, n: int) -> Any:
    for _ in range(n):
        a, b = b, (a + b) & _U64
    return a, b


def _fibonacci_numba(a: Any, b: Any, n: Any) -> Any:
    a, b = np.uint64(a), np.uint64(b)
    for _ in range(n):
        a, b = b, a + b
    return a, b


def _fibonacci_c(v: dict[str, Any]) -> Packed:
    pair = np.array([v["a"], v["b"]], np.uint64)
    return (pair, v["n"]), lambda: {"a": pair[0], "b": pair[1]}


FIB = Workload(
    "fib",
    "Fibonacci numbers modulo 2⁶⁴",
    "step",
    (10, 100, 1_000, 10_000, 100_000, 1_000_000),
    lambda n: {"a": 0, "b": 1, "n": n},
    ("a", "b"),
    (
        *c_peers("fib", _fibonacci_c),
        libraries.python(_fibonacci, ("a", "b")),
        libraries.numba(_fibonacci_numba, ("a", "b")),
    ),
)

# ---------------------------------------------------------------- a cipher


def _message(blocks: int) -> Values:
    rng = random.Random(2)
    return {
        "v": np.array([rng.getrandbits(32) for _ in range(2 * blocks)], np.uint32),
        "k": np.array([rng.getrandbits(32) for _ in range(4)], np.uint32),
    }


def _xtea(v: list[int], k: list[int]) -> Any:
    for b in range(0, len(v) - 1, 2):
        p, q, s = v[b], v[b + 1], 0
        for _ in range(32):
            p = (p + ((((q << 4) ^ (q >> 5)) + q) ^ (s + k[s & 3]))) & _U32
            s = (s + _DELTA) & _U32
            q = (q + ((((p << 4) ^ (p >> 5)) + p) ^ (s + k[(s >> 11) & 3]))) & _U32
        v[b], v[b + 1] = p, q
    return (v,)


def _xtea_numpy(v: Any, k: Any) -> Values:
    """All blocks at once."""
    p, q, s = v[0::2].copy(), v[1::2].copy(), 0
    for _ in range(32):
        p += (((q << 4) ^ (q >> 5)) + q) ^ np.uint32((s + int(k[s & 3])) & _U32)
        s = (s + _DELTA) & _U32
        q += (((p << 4) ^ (p >> 5)) + p) ^ np.uint32((s + int(k[(s >> 11) & 3])) & _U32)
    v[0::2], v[1::2] = p, q
    return {"v": v}


def _xtea_numba(v: Any, k: Any) -> Any:
    for b in range(0, len(v) - 1, 2):
        p, q, s = v[b], v[b + 1], np.uint32(0)
        for _ in range(32):
            p = np.uint32(p + ((np.uint32(np.uint32(q << 4) ^ (q >> 5)) + q) ^ (s + k[s & 3])))
            s = np.uint32(s + np.uint32(_DELTA))
            q = np.uint32(
                q + ((np.uint32(np.uint32(p << 4) ^ (p >> 5)) + p) ^ (s + k[(s >> 11) & 3]))
            )
        v[b] = p
        v[b + 1] = q
    return (v,)


XTEA = Workload(
    "xtea",
    "a block cipher on u32",
    "block",
    (10, 100, 1_000, 10_000),
    _message,
    ("v",),
    (
        *c_peers("xtea", packed("v k #v", "v")),
        libraries.python(_xtea, ("v",)),
        libraries.numpy(_xtea_numpy),
        libraries.numba(_xtea_numba, ("v",)),
    ),
    core=False,
)
