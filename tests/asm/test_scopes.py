"""`with`, `replace` and routines with a result, against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from rvm_asm import assemble, disassemble
from sizes import thin

import rvm
from rvm.codec import encode
from rvm.numbers import system
from rvm.program import Instr
from rvm.types import BOOL, SCALARS, Scalar

PAIRS = {
    "numbers": (
        "with t = x * y, k: i64 = n\n        add z, t * f64(k)\n    end",
        "alloc t: f64 = x * y\n    alloc k: i64 = n\n    add z, t * f64(k)\n    free k = n\n"
        "    free t = x * y",
    ),
    "zeros": (
        "with t: f64[n]\n        add t, v\n        sub t, v\n    end",
        "alloc t: f64[n]\n    add t, v\n    sub t, v\n    free t",
    ),
    "elements": (
        "with t: f64[n] = 2 * v, u = v\n        add z, dot(t, u)\n    end",
        "alloc t: f64[n] = 2 * v\n    alloc u: f64[dim(v, 0)] = v\n"
        "    add z, dot(t, u)\n    free u = v\n    free t = 2 * v",
    ),
    "a result": (
        "routine\n        alloc s: f64\n        add s, x * x\n    result\n        add z, sqrt(s)\n"
        "    end",
        "routine r\n        alloc s: f64\n        add s, x * x\n    end\n    add z, sqrt(s)\n"
        "    undo r",
    ),
    "a function": (
        "replace x as t by out(t, x), back(x, t)",
        "alloc t: f64\n    call out(t, x)\n    uncall back(x, t)\n    swap x, t\n    free t",
    ),
    "an expression": (
        "replace v as t by 2 * v, t / 2",
        "alloc t: f64[dim(v, 0)]\n    add t, 2 * v\n    sub v, t / 2\n    swap v, t\n    free t",
    ),
}
HEAD = "func main(x: f64, y: f64, z: f64, v: f64[n])\n    "
REST = """
func out(y: f64, x: f64)
    add y, 2 * x + 1
func back(x: f64, y: f64)
    add x, (y - 1) / 2
"""


def code(text: str) -> tuple[Instr, ...]:
    program = rvm.assemble(HEAD + text + REST).program
    assert encode(assemble(disassemble(program))) == encode(program)
    return program.function("main").code


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_what_it_stands_for(name: str) -> None:
    short, long = PAIRS[name]
    assert code(short) == code(long)


VALUES = {
    "1": "i64",
    "1.5": "f64",
    "2j": "c128",
    "true": "bool",
    "n": "i64",
    "x": "f64",
    "x * y + 1": "f64",
    "x > y": "bool",
    "u8(n)": "u8",
    "v": "f64[dim(v, 0)]",
    "v[1]": "f64",
    '"abc"': "u8[3]",
    " + ".join(f"x * {k}.5" for k in range(200)): "f64",
}


@thin
@pytest.mark.parametrize("value", VALUES)
def test_an_ancilla_without_a_type_has_that_of_its_value(value: str) -> None:
    def held(t: str) -> str:
        return f"alloc t{t} = {value}\n    free t = {value}"

    # Parts of long sums are held in registers, which are numbered otherwise.
    assert len(value) > 100 or code(held("")) == code(held(f": {VALUES[value]}"))
    assert len(code(held(""))) == len(code(held(f": {VALUES[value]}")))
    assert code(held("")) == code(f"with t = {value}\n    end")


@pytest.mark.parametrize("made", ["alloc t", "alloc t = v + 1", "alloc t = missing", "local t"])
def test_an_ancilla_without_a_type_is_reported_once(made: str) -> None:
    with pytest.raises(rvm.AssemblyError) as caught:
        code(f"{made}\n    add t, 1\n    add x, t\n    free t\n    alloc t\n    free t")
    assert len(caught.value.diagnostics) == 1


def test_values_in_place_there_and_back() -> None:
    f = rvm.assemble(HEAD + PAIRS["a function"][0] + "\n    " + PAIRS["an expression"][0] + REST)
    out = f.main(x=4, y=0, z=0, v=np.ones(3))
    assert out.x == 9 and list(out.v) == [2, 2, 2]
    assert (~f.main)(**out).x == 4 and list(out.v) == [1, 1, 1]
    assert f.main.grad(loss="x", x=4, y=0, z=0, v=np.ones(3)).x == 2


def test_bools_are_held_and_replaced() -> None:
    """A bool accumulates by `xor`, in a function of any `bits` too."""
    text = """
func held[T: bits](y: T[n], a: T[n], b: T[n])
    with t: T[n] = a & b, u = a
        xor y, t ^ u
    end
func main(y: bool[n], a: bool[n], b: bool[n], c: bool)
    call held(y, a, b)
    replace b as t by a ^ b, a ^ t
    replace c as t by c ^ true, t ^ true
"""
    a, b = np.array([[False, True, False, True], [False, False, True, True]])
    f = rvm.assemble(text).main
    given = {"y": ~a, "a": a.copy(), "b": b.copy(), "c": False}
    out = f(**given)
    assert out.y.tolist() == (~a ^ (a & b) ^ a).tolist() and out.c is True
    assert out.b.tolist() == (a ^ b).tolist()
    back = (~f)(**out)
    assert (back.y.tolist(), back.b.tolist(), back.c) == ((~a).tolist(), b.tolist(), False)


def test_records_and_elements_in_place() -> None:
    text = """
record P[T: real]
    a: T
    b: T[2]
end
func out[T: real](q: P[T], p: P[T])
    add q.a, 2 * p.a
    add q.b, 4 * p.b
func back[T: real](p: P[T], q: P[T])
    add p.a, q.a / 2
    add p.b, q.b / 4
func each[T: real](p: P[T][n], x: T[n], f: func(P[T], P[T]), g: func(P[T], P[T]))
    replace p[1] as q by f(q, p[1]), g(p[1], q)
    replace x[0] as t by 2 * x[0], t / 2
func main(p: P[f64][n], x: f64[n])
    call each(p, x, out, back)
"""
    p = {"a": np.ones(2), "b": np.ones((2, 2))}
    x = np.ones(2)
    f = rvm.assemble(text).main
    out = f(p=p, x=x)
    assert p["a"].tolist() == [1, 2] and p["b"].tolist() == [[1, 1], [4, 4]]
    assert x.tolist() == [2, 1]
    (~f)(**out)
    assert p["a"].tolist() == [1, 1] and x.tolist() == [1, 1]


def test_what_is_changed_in_its_scope_is_found() -> None:
    f = rvm.assemble("func f(x: f64)\n    with t = x\n        add t, 1\n    end\n").f
    with pytest.raises(rvm.RvmError) as caught:
        f(x=1)
    assert caught.value.code == "R001"


@pytest.mark.parametrize("t", SCALARS.values(), ids=str)
def test_a_value_of_every_type_is_replaced(t: Scalar) -> None:
    sign = "not " if t == BOOL else "-"
    f = rvm.assemble(f"func f(x: {t})\n    replace x as t by {sign}x, {sign}t\n").f
    x = system(t).to_python(system(t).literal(1 if t == BOOL else 2))
    out = f(x=x)
    assert f(x=out.x).x == x != out.x
