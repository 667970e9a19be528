"""The bits that updates lose to rounding: those of the gap from what undoing gives to what was."""

from __future__ import annotations

import math
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from rvm_tools.isa_page import members
from sizes import sample, thin
from test_counting import ENGINES

import rvm
from rvm.engines.counted import CountedSource
from rvm.engines.python import compiled_of
from rvm.image import image_of
from rvm.numbers import gaps
from rvm.run.machine import Machine
from rvm.types import SCALARS

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-40, 1e300]
EVERYTHING = """
func main(y: f64, x: f64, z: f32, c: c128, l: log64, v: f64[n], w: f64[n], u: f32[n], k: i64)
    add y, x
    sub z, f32(x)
    add c, c128(x)
    mul c, c128(1.1)
    mul l, log64(3.0)
    for i = 0 to n - 1
        add v[i], w[i]
        mul v[i], 3.7
        add k, i
    end
    add v, w
    div v, 1.1
    mul u, 1.1
    neg v
    rot y, x, 0.3
    rot v, w, 0.4
    hadamard v, w
"""
MATRICES = """
func main(C: f64[n, n], A: f64[n, n], B: f64[n, n])
    for i = 0 to n - 1
        for j = 0 to n - 1
            for k = 0 to n - 1
                add C[i, j], A[i, k] * B[k, j]
            end
        end
    end
"""


def rounded(machine: Machine, back: bool = False) -> dict[int, int]:
    """The bits that the only function's instructions lose, by position."""
    if back:
        machine.run()
    counts = machine.count()
    if back:
        machine.run_back()
    else:
        machine.run()
    (node,) = counts.nodes()
    copy = pickle.loads(pickle.dumps(node))
    assert copy.rounded == node.rounded
    return dict(node.rounded)


def key(x: float, kind: str = "d") -> int:
    """How many numbers lie between zero and a number, with its sign."""
    whole = {"d": "<q", "f": "<i"}[kind]
    (bits,) = struct.unpack(whole, struct.pack(f"<{kind}", x if x == x else math.nan))
    size = bits & ((1 << (8 * struct.calcsize(whole) - 1)) - 1)
    return int(size if bits >= 0 else -1 - size)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_absorbed_is_lost(engine: str) -> None:
    """0.3 is 0x3fd3333333333333 numbers after zero, which is all that is left of it."""
    program = rvm.assemble("keep none\nfunc f(y: f64, x: f64)\n    add y, x\n    sub y, x\n")
    machine = rvm.Machine(program, y=0.3, x=1e16, engine=engine)
    assert rounded(machine) == {0: (0x3FD3333333333333).bit_length()}
    assert machine.result["y"] == 0.0
    assert machine.erased_bits == 0, "they are in the account of energy alone"


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("kind", "dtype"), [("d", np.float64), ("f", np.float32)])
@pytest.mark.parametrize("shape", ["", "[n]"])
@sample
def test_gaps_of_updates(engine: str, kind: str, dtype: Any, shape: str) -> None:
    """Against NumPy's arithmetic: numbers of all sizes, and special ones."""
    t, rng = "f64" if kind == "d" else "f32", np.random.default_rng(3)
    undo = {"add": np.subtract, "sub": np.add, "mul": np.divide, "div": np.multiply}
    do = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    with np.errstate(all="ignore"):
        ys = np.concatenate([SPECIAL, rng.normal(size=20), 10.0 ** rng.uniform(-30, 30, 20)])
        ys = ys.astype(dtype)
        for op in do:
            bys = [1e16, 0.1, -3.7] + ([math.inf, math.nan, -0.0] if op in ("add", "sub") else [])
            for x in map(dtype, bys):
                guesses = undo[op](do[op](ys, x), x)
                want = sum(
                    0 if g == y or (g != g and y != y)
                    else abs((key(y, kind) - key(g, kind) + 2**63) % 2**64 - 2**63).bit_length()
                    for g, y in zip(guesses.tolist(), ys.tolist(), strict=True)
                )  # fmt: skip
                loop = f"{op} y, x" if shape else f"for i = 0 to n - 1\n {op} y[i], x\n end"
                program = rvm.assemble(f"func f(y: {t}[n], x: {t})\n {loop}\n")
                found = rounded(rvm.Machine(program, y=ys.copy(), x=x, engine=engine))
                assert sum(found.values()) == want, (op, x)


@thin
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("x", [1e16, 0.3, -1e-20, math.inf, math.nan])
def test_engines_agree(x: float, back: bool) -> None:
    program, found = rvm.assemble(EVERYTHING), []
    for engine in ENGINES:
        rng = np.random.default_rng(5)
        values = {
            "y": 0.3, "x": x, "z": 1.5, "c": 1 + 2.5j, "l": 2.0, "k": 0,
            "v": rng.random(20), "w": 1e5 * rng.random(20),
            "u": rng.random(20).astype(np.float32),
        }  # fmt: skip
        found.append(rounded(rvm.Machine(program, **values, engine=engine), back))
    assert found == found[:1] * len(ENGINES)
    assert found[0]


@thin
@pytest.mark.parametrize("n", [1, 3, 8, 21])
def test_rounds_of_loops_that_are_joined(n: int) -> None:
    program, found = rvm.assemble(MATRICES), []
    for engine in ENGINES:
        rng = np.random.default_rng(n)
        made = {name: rng.normal(size=(n, n)) for name in "CAB"}
        found.append(rounded(rvm.Machine(program, **made, engine=engine)))
    assert found == found[:1] * len(ENGINES)
    assert found[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_undoing_restores_is_not_lost(engine: str) -> None:
    text = """
    func f(y: f64, v: f64[n], k: i64, q: fixed)
        add y, 8.0
        mul y, -4.0
        add v, y
        neg v
        swap v[0], v[1]
        add k, 3
        add q, 0.1
        sub y, 1.0
    """
    values = {"y": 0.5, "v": np.arange(6.0), "k": 1, "q": 0.7}
    assert rounded(rvm.Machine(rvm.assemble(text), **values, engine=engine)) == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_strict_log_keeps_is_not_lost(engine: str) -> None:
    program = rvm.assemble("func f(y: f64, x: f64)\n    add y, x\n")
    machine = rvm.Machine(program, y=0.3, x=1e16, engine=engine, strict=True)
    assert rounded(machine) == {}
    assert machine.residue_bytes > 0


@pytest.mark.parametrize("t", members("multiplies"))
def test_arrays_lose_what_their_numbers_lose(t: str) -> None:
    rng, kind = np.random.default_rng(1), SCALARS[t]
    dtype = {"f32": np.float32, "c128": np.complex128}.get(t, np.float64)
    with np.errstate(all="ignore"):
        x = np.array([*SPECIAL, *rng.normal(size=50)]).astype(dtype)
        y = np.concatenate([np.roll(x, 7)[:40], np.nextafter(x.real, 2)[40:]]).astype(dtype)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert gaps.lost(kind, x, y) == sum(gaps.lost(kind, p, q) for p, q in pairs) > 0
    assert gaps.lost(kind, x, x) == 0


def test_integers_are_not_asked() -> None:
    program = rvm.assemble(
        "func f(y: i64, q: fixed, x: i64[n])\n add y, 1\n add q, 2.0\n add x, 3\n"
    )
    code = image_of(program).code("f", False)
    assert "_rounded" not in compiled_of(code, 0, CountedSource).source.text()
