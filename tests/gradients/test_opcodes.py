"""Every data opcode on every type with derivatives: scalars, elements, arrays, broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradients.agreeing import ENGINES, agree
from sizes import sample, sized, thin

import rvm
from rvm.isa import OPCODES
from rvm.isa.rows import OpRow, angle_type
from rvm.isa.rules import CLASSES
from rvm.types import BOOL, C128, F32, F64, FIXED, LOG64, Scalar

pytestmark = sized

each_engine = pytest.mark.parametrize("engine", ENGINES)
TYPES = (F64, F32, FIXED, C128, LOG64)
DATA = [
    pytest.param(row, t, id=f"{row.name}-{t}")
    for row in OPCODES.values()
    for t in TYPES
    if row.is_data and CLASSES[row.types](t)
]


class Drawn:
    """Numbers for operands, different ones at every call."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(11)

    def __call__(self, t: Scalar, shape: tuple[int, ...] = ()) -> Any:
        x = self.rng.integers(300, 1500, shape) / 1024
        if t == C128:
            x = x + 1j * (self.rng.integers(300, 1500, shape) / 1024)
        if t == FIXED and shape:
            return np.rint(x * 2.0**FIXED.frac).astype(np.int64)
        if shape:
            return x.astype(np.float32) if t == F32 else x
        if t == LOG64:
            return rvm.LogNumber(float(x))
        return True if t == BOOL else x.item()


def kinds(row: OpRow, t: Scalar) -> dict[str, Scalar]:
    return {o.name: {"T": t, "angle": angle_type(t), "bool": BOOL}[o.kind] for o in row.operands}


def losses(row: OpRow, t: Scalar, index: str = "") -> list[str]:
    parts = (".re", ".im") if t == C128 else ("",)
    return [o.name + index + part for o in row.operands if o.mode == "mut" for part in parts]


@thin
@pytest.mark.parametrize(("row", "t"), DATA)
@sample
def test_scalars(row: OpRow, t: Scalar) -> None:
    types, draw = kinds(row, t), Drawn()
    params = ", ".join(f"{n}: {k}" for n, k in types.items())
    f = rvm.assemble(f"func main({params})\n    {row.name} {', '.join(types)}\n").main
    for loss in losses(row, t):
        for g in (f, ~f):
            agree(g, {n: draw(k) for n, k in types.items()}, loss)


@thin
@pytest.mark.parametrize(("row", "t"), DATA)
@sample
def test_elements_and_expressions(row: OpRow, t: Scalar) -> None:
    """Places are elements of one array; what is only read is an expression that shares places."""
    types, draw = kinds(row, t), Drawn()
    args, params, inputs = [], [f"m: {t}[n]"], {"m": draw(t, (3,))}
    for k, o in enumerate(row.operands):
        own = types[o.name]
        if o.mode == "mut":
            args.append(f"m[{k}]")
            continue
        params.append(f"{o.name}: {own}")
        inputs[o.name] = draw(own)
        shared = "m[2]" if own == t and len(row.operands) < 3 else o.name
        args.append(o.name if own == BOOL else f"{o.name} * {o.name} + {shared}")
    text = f"func main({', '.join(params)})\n    {row.name} {', '.join(args)}\n"
    f = rvm.assemble(text).main
    for k, o in enumerate(row.operands):
        if o.mode == "mut":
            for part in (".re", ".im") if t == C128 else ("",):
                agree(f, inputs, f"m[{k}]{part}")


@thin
@pytest.mark.parametrize(("row", "t"), DATA)
@pytest.mark.parametrize("wide", [False, True], ids=["one", "each"])
@sample
def test_arrays(row: OpRow, t: Scalar, wide: bool) -> None:
    """Arrays change whole; what is read is a number for all elements, or one for each."""
    types, draw = kinds(row, t), Drawn()
    spread = {
        o.name: o.mode == "mut" or (wide and o.kind != "bool" and row.name not in ("rot", "irot"))
        for o in row.operands
    }
    params = ", ".join(f"{n}: {k}{'[p, q]' if spread[n] else ''}" for n, k in types.items())
    f = rvm.assemble(f"func main({params})\n    {row.name} {', '.join(types)}\n").main
    inputs = {n: draw(k, (2, 2) if spread[n] else ()) for n, k in types.items()}
    for loss in losses(row, t, "[1, 0]"):
        agree(f, inputs, loss)


@each_engine
def test_factors(engine: str) -> None:
    """mul and div by hand: y = y0 v has dv = y0, y = y0 / v has dv = -y0 / v²."""
    f = rvm.assemble("func main(y: f64, v: f64)\n    mul y, v * v\n").main
    g = f.with_options(engine=engine).grad(loss="y", y=3.0, v=2.0)
    assert (g.y, g.v) == (4.0, 12.0)
    f = rvm.assemble("func main(y: f64, v: f64)\n    div y, v\n").main
    g = f.with_options(engine=engine).grad(loss="y", y=3.0, v=2.0)
    assert (g.y, g.v) == (0.5, -0.75)
    f = rvm.assemble("func main(y: c128, v: c128)\n    mul y, v\n").main
    z = f.with_options(engine=engine).grad(loss="y.re", y=1 + 2j, v=3 - 1j)
    assert (z.y, z.v) == (3 + 1j, pytest.approx(1 - 2j, rel=1e-15))


@each_engine
def test_rotations_and_exchanges(engine: str) -> None:
    f = rvm.assemble("func main(a: f64, b: f64)\n    hadamard a, b\n").main
    g = f.with_options(engine=engine).grad(loss="b", a=3.0, b=2.0)
    assert (g.a, g.b) == (pytest.approx(0.5**0.5), pytest.approx(-(0.5**0.5)))
    f = rvm.assemble("func main(c: bool, a: f64[n], b: f64[n])\n    cswap c, a, b\n").main
    for c, name in ((True, "b"), (False, "a")):
        g = f.with_options(engine=engine).grad(loss="a[1]", c=c, a=np.ones(2), b=np.ones(2))
        other = {"a": "b", "b": "a"}[name]
        assert (g[name].tolist(), g[other].tolist()) == ([0.0, 1.0], [0.0, 0.0])


@each_engine
def test_integers_are_undone_and_carry_nothing(engine: str) -> None:
    text = """
func main(y: f64, x: f64, p: i64, q: i64, u: u8, b: bool)
    add p, q * 3
    xor q, 6
    rol u, 3
    not b
    inc p
    if b
        add y, x * f64(p)
    end
    ror u, q
    neg p
    dec q
    swap p, q
    add y, x ** q + f64(p // q)
"""
    f = rvm.assemble(text).main.with_options(engine=engine)
    pull = f.pullback(y=0.0, x=0.5, p=5, q=-7, u=77, b=False)
    pull.seed("y")
    g = pull()
    # p = 5 - 21 + 1 = -15; then y += -15 x; then q = 15, so that y += x ** 15
    assert dict(g) == {"y": 1.0, "x": pytest.approx(-15 + 15 * 0.5**14, rel=1e-14)}
    m = pull.machine
    assert [m[n] for n in ("x", "p", "q", "u", "b")] == [0.5, 5, -7, 77, False]


def test_data_opcodes_of_the_table_are_all_here() -> None:
    here = {p.values[0].name for p in DATA}
    integers = {r.name for r in OPCODES.values() if r.types in ("bits", "int")}
    assert here | integers >= {r.name for r in OPCODES.values() if r.is_data}


def test_engines_divide_complex_elements_alike() -> None:
    """To the last bit, although the elements of an array are NumPy's numbers."""
    f = rvm.assemble("func main(z: c128[n], v: c128)\n    div z[1], v\n    mul z[0], v\n").main
    rng = np.random.default_rng(5)
    for _ in range(100):
        z, (v,) = (rng.normal(size=n) + 1j * rng.normal(size=n) for n in (2, 1))
        for g in (f, ~f):
            out = [g(z=z.copy(), v=complex(v), engine=e).z.tobytes() for e in ENGINES]
            assert out[0] == out[1]
