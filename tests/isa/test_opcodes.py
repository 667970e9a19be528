"""Every data opcode × type × shape × engine × direction, against arithmetic done here."""

from __future__ import annotations

import cmath
import math
import random
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import executing
from rvm.isa import OPCODES, OpRow
from rvm.isa.rows import angle_type
from rvm.isa.rules import CLASSES
from rvm.numbers import system
from rvm.run.machine import Machine
from rvm.types import BOOL, I64, SCALARS, Scalar, fixed

ENGINES = executing(loops=False)
SHAPES = ("scalar", "element", "array", "row")
TYPES = (*SCALARS.values(), fixed(20))
LENGTH = 3

Cell = tuple[Any, ...]


def f32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0] if abs(x) < 3e38 else x


def wrapped(t: Scalar) -> Callable[[Any], Any]:
    """What the type's storage makes of an ideal result."""
    if t.is_bool:
        return bool
    if t.is_integer and t.name.startswith("u"):
        return lambda v: v % 2**t.bits
    if t.is_integer or t.is_fixed:
        return lambda v: (v + 2 ** (t.bits - 1)) % 2**t.bits - 2 ** (t.bits - 1)
    return f32 if t.name == "f32" else lambda v: v


def rotated(v: int, k: int, bits: int) -> int:
    v, k = v % 2**bits, k % bits
    return (v << k | v >> (bits - k)) % 2**bits


def lifted(op: str, t: Scalar, v: Cell) -> Cell:
    """A rotation by shears, or a mirror image."""

    def shear(x: int, factor: Any) -> int:
        return round(Fraction(x * int(mpmath.nint(factor * 2**62)), 2**62))

    with mpmath.workdps(80):
        a, b = v[:2]
        if op == "hadamard":
            p, s = mpmath.tan(mpmath.pi / 8), mpmath.sin(mpmath.pi / 4)
            a += shear(b, p)
            b = shear(a, s) - b
            return (a - shear(b, p), b)
        angle = mpmath.mpf(v[2]) / 2**t.frac
        turns = int(mpmath.nint(angle / mpmath.pi))
        u, sign = angle - turns * mpmath.pi, -1 if turns % 2 else 1
        p, s = mpmath.tan(u / 2), mpmath.sin(u)
        if op == "rot":
            a, b = sign * a, sign * b
            a -= shear(b, p)
            b += shear(a, s)
            return (a - shear(b, p), b, v[2])
        a += shear(b, p)
        b -= shear(a, s)
        a += shear(b, p)
        return (sign * a, sign * b, v[2])


def oracle(op: str, t: Scalar, v: Cell) -> Cell:
    """The operands after `op`, ideal: before the storage wraps or rounds them."""
    one = 2**t.frac if t.is_fixed else 1
    h = 0.5**0.5
    match op:
        case "add":
            return (v[0] + v[1], v[1])
        case "sub":
            return (v[0] - v[1], v[1])
        case "xor":
            return (v[0] ^ v[1], v[1])
        case "mul":
            return (v[0] + v[1] if t.is_log else v[0] * v[1], v[1])
        case "unmul":
            return (v[0] * pow(v[1], -1, 2**t.bits), v[1])
        case "div":
            return (v[0] - v[1] if t.is_log else v[0] / v[1], v[1])
        case "swap" | "exch":
            return (v[1], v[0])
        case "cswap":
            return (v[0], v[2], v[1]) if v[0] else v
        case "rot" | "irot" | "hadamard" if t.is_exact:
            return lifted(op, t, v)
        case "rot" | "irot":
            angle = v[2] if op == "rot" else -v[2]
            c, s = math.cos(angle), math.sin(angle)
            return (v[0] * c - v[1] * s, v[0] * s + v[1] * c, v[2])
        case "hadamard":
            return ((v[0] + v[1]) * h, (v[0] - v[1]) * h)
        case "neg":
            return (-v[0],)
        case "conj":
            return (v[0].conjugate(),)
        case "inc":
            return (v[0] + one,)
        case "dec":
            return (v[0] - one,)
        case "not":
            return (not v[0] if t.is_bool else ~v[0],)
        case "rol":
            return (rotated(v[0], v[1], t.bits), v[1])
        case "ror":
            return (rotated(v[0], -v[1], t.bits), v[1])
    raise AssertionError(f"no oracle for {op}")


def kinds(row: OpRow, t: Scalar) -> list[Scalar]:
    named = {"T": t, "angle": angle_type(t), "bool": BOOL, "i64": I64}
    return [named[o.kind] for o in row.operands]


def draw(rng: random.Random, t: Scalar, op: str, k: int) -> Any:
    if t.is_bool:
        return rng.random() < 0.5
    if op in ("rol", "ror") and k == 1:
        return rng.randrange(-40, 80)
    if op in ("rot", "irot", "hadamard") and t.is_exact and k < 2:
        # What fits, with what shears make of it on the way.
        return rng.randrange(-(2 ** (t.bits - 3)), 2 ** (t.bits - 3))
    if t.is_integer or t.is_fixed:
        low = 0 if t.name.startswith("u") else -(2 ** (t.bits - 1))
        wide = rng.randrange(low, low + 2**t.bits)
        if op in ("mul", "unmul") and k == 1:
            return wide | 1
        return rng.choice([wide, rng.randrange(0, 5), low, low + 2**t.bits - 1])
    if t.is_complex:
        return complex(rng.uniform(-4, 4), rng.uniform(0.1, 4))
    v = rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 4.0)
    return f32(v) if t.name == "f32" else v


def cases() -> Iterator[Any]:
    for name, row in OPCODES.items():
        if not row.is_data:
            continue
        for t in TYPES:
            if not CLASSES[row.types](t):
                continue
            for shape in SHAPES:
                for engine in ENGINES:
                    yield pytest.param(name, t, shape, engine, id=f"{name}-{t}-{shape}-{engine}")


def program(row: OpRow, t: Scalar, shape: str) -> rvm.Library:
    """A function that does one instruction on operands of a shape."""
    types = kinds(row, t)
    params, operands = [], []
    for o, kind in zip(row.operands, types, strict=True):
        whole = shape in ("array", "row") and o.kind in ("T", "angle")
        if shape == "scalar" or o.kind not in ("T", "angle"):
            params.append(f"{o.name}: {kind}")
            operands.append(o.name)
        elif shape == "row":
            params.append(f"{o.name}: {kind}[2, {LENGTH}]")
            operands.append(f"{o.name}[1, :]")
        else:
            params.append(f"{o.name}: {kind}[{LENGTH}]")
            operands.append(o.name if whole else f"{o.name}[1]")
    text = f"func f({', '.join(params)})\n    {row.name} {', '.join(operands)}\n"
    return rvm.assemble(text)


def argument(kind: Scalar, shape: str, values: list[Any], o_kind: str) -> Any:
    dtype = system(kind).dtype
    if shape == "scalar" or o_kind not in ("T", "angle"):
        return system(kind).to_python(values[0])
    if shape == "row":
        return np.array([[values[0]] * LENGTH, values], dtype)
    return np.array(values, dtype)


def raw(machine: Machine, shape: str) -> list[list[Any]]:
    """The raw values of each operand, as the instruction sees them."""
    out = []
    for v in machine.state.frames[0].regs:
        if isinstance(v, np.ndarray):
            v = v[1] if v.ndim == 2 else v
            out.append(v.tolist() if shape != "element" else [v[1].item()])
        else:
            out.append([v])
    return out


def near(a: Any, b: Any, t: Scalar) -> bool:
    if t.is_exact:
        return bool(a == b)
    eps = 3e-6 if t.name == "f32" else 1e-13
    return cmath.isclose(a, b, rel_tol=eps, abs_tol=eps)


@pytest.mark.parametrize(("op", "t", "shape", "engine"), list(cases()))
@sample(2)
def test_opcode(op: str, t: Scalar, shape: str, engine: str) -> None:
    row = OPCODES[op]
    rng = random.Random(f"{op}{t}{shape}")
    made = program(row, t, shape)
    types = kinds(row, t)
    for _ in range(4):
        values = [[draw(rng, kind, op, k) for _ in range(LENGTH)] for k, kind in enumerate(types)]
        inputs = {
            o.name: argument(kind, shape, v, o.kind)
            for o, kind, v in zip(row.operands, types, values, strict=True)
        }
        m = Machine.start(made, "f", inputs, rvm.Options(engine=engine, strict=True))
        before = raw(m, shape)
        m.run()
        after = raw(m, shape)
        n = max(map(len, before))
        for k in range(n):
            cell = tuple(v[k] if len(v) > 1 else v[0] for v in before)
            want = oracle(op, t, cell)
            for kind, got, ideal in zip(types, after, want, strict=True):
                g = got[k] if len(got) > 1 else got[0]
                assert near(g, wrapped(kind)(ideal), kind), (cell, g, ideal)
        m.run_back()
        assert repr(raw(m, shape)) == repr(before)
        assert m.time == 0


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_memory(t: Scalar, engine: str) -> None:
    """alloc, free, push and pop of every type, forwards and backwards."""
    made = rvm.assemble(
        f"""
func f(x: {t}, y: {t}, s: stack[{t}])
    alloc t: {t} = x
    push y, s
    free t = x
    push x, s
"""
    )
    rng = random.Random(str(t))
    sys = system(t)
    x, y = draw(rng, t, "", 0), draw(rng, t, "", 1)
    stack: list[Any] = []
    m = Machine.start(
        made,
        "f",
        {"x": sys.to_python(x), "y": sys.to_python(y), "s": stack},
        rvm.Options(engine=engine),
    )
    m.run()
    assert m.state.frames[0].regs[:3] == [sys.zero, sys.zero, [y, x]]
    m.run_back()
    assert m.state.frames[0].regs[:3] == [x, y, []]
