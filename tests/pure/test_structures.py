"""Terms over matrices, tuples and the table's functions of arrays, against NumPy.

The values are those of a walk over the term; the derivatives of gradient mode and of the term,
which are found by different rules, agree.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from pure.values import evaluate
from rvm_pure import functions
from sizes import some

HEAD = "def f(A: f64[p, n], B: f64[p, n], x: f64[n], y: f64[p], k: i64[n], i: i64, c: f64) = "
A = np.arange(1.0, 7.0).reshape(2, 3) / 4
GIVEN: dict[str, Any] = {
    "A": A,
    "B": np.cos(A),
    "x": np.array([0.5, -1.0, 2.0]),
    "y": np.array([0.25, 3.0]),
    "k": np.array([1, 0, 1]),
    "i": 1,
    "c": 0.7,
}
REAL = ("A", "B", "x", "y", "c")
MATRICES = """
A
transpose (transpose A)
A with [i] = x
A with [0, 2] = c
map (r. r * c) A
map2 (r, s. map2 * r s) A B
outer(y, x)
shift1L (scanl (s, r. s * r) x A)
shift1R (scanr (s, r. s + sin r) x A)
replicate p x
map (r. shift1L (scanl + 0 r)) A
let C = A * B in C * C + A
if c > 0 then A else B
loop C = A for j < 2 do C * B
loop C = A for j < 2 do C with [j, j] = C[j, j] * c
map (t. x * t) y
transpose (map (t. y * t) x)
map (r. map (t. if t > 0.6 then t * t else c) r) A
map2 (r, t. r with [1] = t) A y
map (j. x * f64(j)) (iota p)
mapn (r, s, t. r * s + t) A B y
snd (loop (u, C) = (x, A) for j < 2 do (u * c, map (r. r + u) C))
map (j. map (l. A[j, l] * B[1 - j, l]) (iota n)) (iota p)
""".strip().splitlines()
NUMBERS = """
sum(map (r. sum r) ({}))
sum(({}) @ x)
sum(y @ ({}))
({})[1, 2]
sum(({})[i])
sum(map (r. reduce * 1 r) ({}))
sum(reduce (u, r. u * r) x ({}))
sum(map (r. amax r) ({}))
sum(transpose ({}) @ y)
sum(gather (({})[0]) k)
sum(map2 (r, t. dot(r, x) * t) ({}) y)
sum(foldl (u, r. u * 0.5 + r) x ({}))
sum(map (r. r[0]) (({}) with [i, 0] = c))
""".strip().splitlines()


def agrees(matrix: str, number: str) -> None:
    f = functions(HEAD + number.format(matrix) + "\n")["f"]
    want = evaluate(f.definition.body, {**GIVEN, "p": 2, "n": 3})
    handle = f.program.f.with_options(engine="reference")
    found = handle(out=0.0, **GIVEN)
    assert found.out == pytest.approx(want, rel=1e-12)
    assert (~handle)(found).out == pytest.approx(0.0, abs=1e-13)
    mode = handle.grad(out=0.0, **GIVEN, loss="out")
    for name, have in zip(REAL, f.by("gradient").grad(**GIVEN), strict=True):
        np.testing.assert_allclose(mode[name], have, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("k", range(len(MATRICES)))
@some
def test_matrices_are_those_of_a_walk(k: int) -> None:
    agrees(MATRICES[k], NUMBERS[k % len(NUMBERS)])


@pytest.mark.deep
@pytest.mark.parametrize(("matrix", "number"), list(product(MATRICES, NUMBERS)))
def test_all_matrices_are_those_of_a_walk(matrix: str, number: str) -> None:
    agrees(matrix, number)


OTHERS = """
let (a, b) = p in a * sum(b)
sum(map ((u, v). u * v) q)
fst (loop (a, b) = p for j < 3 do (a + sum b, map (t. t * a) b))
let r = map ((u, v). (v, u * 2)) q in sum(map ((u, v). u - v) r)
sum(map (t. fst t) (scanl ((a, b), t. (a * t, b + a)) (1.0, c) (snd p)))
sum(snd (if c > 0 then p else (c, map (t. -t) (snd p))))
fst (reduce ((a, b), (u, v). (a + u * v, b * u)) (0.0, 1.0) q)
fst (q[1]) * snd (q[0])
let g = q with [1] = (c, fst p) in sum(map ((u, v). u * v) g)
sum(map ((u, v). u) (shift1L q))
sum(map ((u, v). u * v) (zip (snd p) x))
sum(mapn (a, b, (u, v). a * u + b * v) (snd p) x q)
sum(map (t. fst t * snd t) (replicate 3 (c, fst p)))
let m = scanl ((a, b), (u, v). (a * u, b + v * a)) (1.0, 0.0) q in sum(map ((a, b). a * b * c) m)
snd (loop (j, s) = (0, c) for l < 3 do (j + 1, s * f64(j + 1)))
sum(scatter_add(x, k, map (t. t * c) (snd p)))
let y = scatter_add(x, k, map sin x) in sum(map (t. t * t) y)
sum(map (t. t * t) (gather (map (t. t * c) x) k))
sum(map2 * (scan_left x) (scan_right x))
logsumexp(map (t. t * c) x) + amax(x) * amin(map (t. t * c) x)
prod(x) * dot(x, snd p) + sum(outer(x, snd p) @ x)
sum((transpose(outer(x, snd p)) @ outer(snd p, x)) @ x)
sum(tanh(x) * c + exp(-x) / (1 + x * x)) + hypot(c, x[0]) ** 2
sum(spread_like(c * c, x) * x) + sum(map (t. if t < 1 then t * t else c) x)
sum(map (t. max(t, c) * min(t, fst p)) x) + abs(c - x[1])
""".strip().splitlines()
TUPLES = "def f(p: (f64, f64[n]), q: (f64, f64)[n], x: f64[n], k: i64[n], c: f64) = "


def numbers(v: Any) -> list[float]:
    return [e for w in v for e in numbers(w)] if isinstance(v, tuple) else list(np.ravel(v))


@pytest.mark.parametrize("k", range(len(OTHERS)))
@some
def test_terms_of_the_language_are_those_of_a_walk(k: int) -> None:
    f = functions(TUPLES + OTHERS[k] + "\n")["f"]
    given = {
        "p": (0.5, np.array([1.0, -2.0, 3.0])),
        "q": (np.array([0.5, 1.5, -1.0]), np.array([2.0, -1.0, 0.25])),
        **{name: GIVEN[name] for name in ("x", "k", "c")},
    }
    want = evaluate(f.definition.body, {**given, "n": 3})
    assert f(**given) == pytest.approx(want, rel=1e-12)
    mode, term = (numbers(f.by(form).grad(**given)) for form in ("rasm", "gradient"))
    np.testing.assert_allclose(mode, term, rtol=1e-10, atol=1e-12)
    assert any(mode)
