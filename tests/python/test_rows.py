"""Each row of the table of what stands in a reversible function: what it does, there and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rvm
from rvm import Array, Stack, c128, f32, f64, i32, i64, u8
from rvm.codec import encode
from rvm.library.generic import GenericFunction

RATE = 0.5
POINTS = (1.5, -2.0, (7, 8))
BIG = np.int64(2) ** 40


def both_ways(f: Any, expected: dict[str, Any], **inputs: Any) -> None:
    """A call gives what is expected, and the way back the inputs; and so does the printed text."""
    start = {n: np.copy(v) if isinstance(v, np.ndarray) else v for n, v in inputs.items()}
    handle = f.of(**inputs)
    text = f.origin.source(handle.program, handle.name)
    again = rvm.assemble(text)
    assert encode(again) == encode(handle.program), text.partition(";@ source")[0]
    out = f(**inputs)
    for name, value in expected.items():
        np.testing.assert_allclose(out[name], value, rtol=1e-12, err_msg=name)
    back = (~f)(**out)
    for name, value in start.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


# ---------------------------------------------------------------- updates and exchanges


@rvm.reversible
def updates(x, y, z, b, k):
    x += y * 2
    y -= 1
    k ^= 5
    b ^= k > 3
    z.real += x
    z.imag -= y


@rvm.reversible
def products(x: f64, y: f64):
    x *= y + 3
    x /= 2


@rvm.reversible
def elements(x: Array[f64, "n"], A: Array[f64, "n", 2], m: i64):
    x[0] += 1
    x[1:3] -= x[0]
    x[-1] += A[0, 1]
    x[:-2] += 10.0
    A[m, :] += x[m]
    A[:, 0] -= 1
    A[-1][-1] += 0.5


def test_updates() -> None:
    both_ways(
        updates,
        dict(x=7, y=2, z=(1 + 7) + (1 - 2) * 1j, b=False, k=6),
        x=1, y=3, z=1 + 1j, b=True, k=6 ^ 5,
    )  # fmt: skip
    both_ways(products, dict(x=2.0 * 4 / 2), x=2.0, y=1.0)


def test_elements_and_slices() -> None:
    x, a = np.arange(4.0), np.arange(8.0).reshape(4, 2)
    wx, wa = x.copy(), a.copy()
    wx[0] += 1
    wx[1:3] -= wx[0]
    wx[-1] += wa[0, 1]
    wx[:-2] += 10
    wa[2, :] += wx[2]
    wa[:, 0] -= 1
    wa[-1][-1] += 0.5
    both_ways(elements, dict(x=wx, A=wa), x=x, A=a, m=2)


@rvm.reversible
def exchanges(a, b, c, x: Array[f64, "n"], y: Array[f64, "n"]):
    a, b = b, a
    a, b, c = c, a, b
    x, y = y, x
    x[0], y[1] = y[1], x[0]


@rvm.reversible
def in_place(x: f64, k: i64, b: rvm.bool, z: c128, v: Array[f64, "n"]):
    x = -x
    k = ~k
    b = not b
    z = z.conjugate()
    z = np.conj(z)
    z = np.conjugate(z)
    v[0] = -v[0]


def test_exchanges_and_changes_in_place() -> None:
    a, b, c = 1, 2, 3
    a, b = b, a
    a, b, c = c, a, b
    x, y = np.array([1.0, 3.0]), np.array([4.0, 5.0])
    both_ways(
        exchanges,
        dict(a=a, b=b, c=c, x=[3.0, 5.0], y=[1.0, 4.0]),
        a=1, b=2, c=3, x=x, y=y,
    )  # fmt: skip
    both_ways(
        in_place,
        dict(x=-1.5, k=~6, b=False, z=1 - 2j, v=[-1.0, 2.0]),
        x=1.5, k=6, b=True, z=1 + 2j, v=np.array([1.0, 2.0]),
    )  # fmt: skip


# ---------------------------------------------------------------- instructions


@pytest.mark.usefixtures("clean_tables")
def test_instructions_of_the_table_and_of_users() -> None:
    @rvm.opcode(inverse="untwist")
    def twist(a: rvm.Mut, b: rvm.Mut):
        a += b * 3

    @rvm.opcode(inverse="twist")
    def untwist(a: rvm.Mut, b: rvm.Mut):
        a -= b * 3

    @rvm.function()
    def cubed(x):
        "x cubed"
        return x * x * x

    @rvm.reversible
    def instructions(a, b, t, k: i64):
        rvm.rot(a, b, t)
        twist(a, b)
        rvm.rol(k, 3)
        t += cubed(2.0) + rvm.softplus(0.0)

    a, b = 1.0, 0.0
    turned = math.cos(0.5), math.sin(0.5)
    both_ways(
        instructions,
        dict(a=turned[0] + 3 * turned[1], b=turned[1], t=0.5 + 8 + math.log(2), k=8),
        a=a, b=b, t=0.5, k=1,
    )  # fmt: skip
    with pytest.raises(rvm.UsageError, match="U045"):
        rvm.rot(1, 2, 3)


# ---------------------------------------------------------------- ancillas and blocks


@rvm.reversible
def ancillas(y, x: Array[f64, "n"]):
    with rvm.ancilla(x[0] * 2) as t, rvm.ancilla(f64, len(x), 3) as u, rvm.ancilla(like=x) as v:
        for i in range(len(x)):
            u[i, 1] += x[i]
            v[i] += u[i, 1] * t
        y += np.sum(v) + sum(u[:, 1])
        for i in range(len(x)):
            v[i] -= u[i, 1] * t
            u[i, 1] -= x[i]


@rvm.reversible
def free_standing(y: f64, x: f64):
    t: f64 = x * x
    y += t
    del t
    t: f64 = x + 1
    y += t
    del t


@rvm.reversible
def blocks(y, x):
    with rvm.compute() as r:
        t: f64 = x * 3
        s: f64 = t * t
    y += s + t
    r.undo()
    with rvm.compute() as q:
        t: f64 = x
    y += t
    ~q


def test_ancillas_and_blocks() -> None:
    x = np.array([1.0, 2.0])
    both_ways(ancillas, dict(y=2 * 3.0 + 3.0), y=0.0, x=x)
    both_ways(free_standing, dict(y=9.0 + 4.0), y=0.0, x=3.0)
    both_ways(blocks, dict(y=36.0 + 6 + 2), y=0.0, x=2.0)


# ---------------------------------------------------------------- control


@rvm.reversible
def branches(y: i64, x: i64):
    if x > 10:
        y += 1
    elif rvm.when(0 < x <= 5, 0 < x <= 5):
        y += 2
    else:
        y += 3
    y += 10 if x == 7 else 20


@rvm.reversible
def loops(y: i64, a: i64, b: i64, s: i64):
    for i in range(b):
        y += i
    for i in range(a, b):
        y += 10 * i
    for i in range(b, a, -2):
        y += 100 * i
    for i in range(0, 9, 4):
        y += 1000 * i
    for i in range(a, b, s):
        y += 10_000 * i
    for _ in range(2):
        for _ in range(3):
            y += 100_000


@rvm.reversible
def halves(n: i64, k: i64):
    while rvm.loop(n > 1, k > 0):
        k += 1
        n -= 3


def test_branches() -> None:
    for x, want in ((11, 21), (3, 22), (7, 13), (-1, 23)):
        both_ways(branches, dict(y=want), y=0, x=x)


@pytest.mark.parametrize("ends", [(2, 7), (7, 2), (0, 0), (-3, 3), (5, 6)])
@pytest.mark.parametrize("s", [1, 2, -1, -3])
def test_loops_visit_what_a_range_has(ends: tuple[int, int], s: int) -> None:
    a, b = ends
    want = sum(range(b)) + 10 * sum(range(a, b)) + 100 * sum(range(b, a, -2)) + 12_000 + 600_000
    want += 10_000 * sum(range(a, b, s))
    both_ways(loops, dict(y=want), y=0, a=a, b=b, s=s)


def test_while() -> None:
    both_ways(halves, dict(n=1, k=3), n=10, k=0)


# ---------------------------------------------------------------- calls


@rvm.reversible
def add_scaled(y, x, by=2.0, *, plus: f64 = 0.0):
    y += x * by + plus


@rvm.reversible
def calls(y: f64, x: Array[f64, "n"], z):
    add_scaled(y, x[0])
    add_scaled(y, x[1], plus=1.0)
    (~add_scaled)(y, x=x[1], by=3.0)
    add_scaled(x[0], y, 0.5)
    add_scaled(z, 2.0 * 3)


@rvm.reversible
def fib(a, b, n):
    if rvm.when(n == 0, a == b):
        a += 1
        b += 1
    else:
        n -= 1
        fib(a, b, n)
        a += b
        a, b = b, a


def test_calls() -> None:
    y = 1 + 2 * 5.0 + 7 * 2 + 1 - 7 * 3.0
    both_ways(
        calls,
        dict(y=y, x=[5 + y / 2, 7.0], z=12.0),
        y=1.0, x=np.array([5.0, 7.0]), z=0.0,
    )  # fmt: skip
    both_ways(fib, dict(a=89, b=144, n=0), a=0, b=0, n=10)
    both_ways(add_scaled, dict(y=8.5), y=0.0, x=4.0, by=2.0, plus=0.5)
    assert add_scaled(0.0, 4.0) == add_scaled(y=0.0, x=4.0, by=2.0, plus=0.0)


@rvm.reversible
def stacks(s: Stack[i64], x: i64, y: i64):
    rvm.push(x, s)
    y += len(s) * 100 + rvm.top(s)
    rvm.push(y, s)


@rvm.reversible
def unnamed_stack(s, x):
    if rvm.empty(s):
        x += 1
    rvm.push(x, s)


def test_stacks() -> None:
    s: list[int] = [4, 5]
    out = stacks(s, 7, 0)
    assert dict(out) == dict(s=s, x=0, y=0) and s == [4, 5, 7, 307]
    assert dict((~stacks)(s, 0, 0)) == dict(s=[4, 5], x=7, y=0)
    held: list[float] = []
    out = unnamed_stack(held, 2.5)
    assert held == [3.5] and out.x == 0
    assert (~unnamed_stack)(**out).s == []


@rvm.reversible
def step(y: f64, x: f64, c: f64):
    y += x + c * x


@rvm.reversible
def many(y: f64, x: f64):
    rvm.iterate(step, y, x, 0.5, times=10, pebbles=5)


def test_iterate() -> None:
    both_ways(many, dict(y=1.5**10), y=0.0, x=1.0)


@rvm.reversible
def effects(x: f64, n: i64):
    assert x > 0, "x is positive"
    print("x is", x, "of", n)
    print(f"{n} times, {{{n:x}}}")
    x += n


def test_effects() -> None:
    lines: list[str] = []
    effects.with_options(output=lines.append)(2.0, 3)
    assert lines == ["x is 2.0 of 3", "3 times, {3}"]
    with pytest.raises(rvm.MachineError, match="x is positive") as caught:
        effects(-1.0, 3)
    assert caught.value.where.text == '    assert x > 0, "x is positive"'


# ---------------------------------------------------------------- names and numbers


@rvm.reversible
def named(y: Array[f64, "n"], x: Array[f64, "n"]):
    n = len(x)
    m, scale = n // 2, 2 * math.pi / n
    y[m] += scale
    for i in range(n):
        theta = scale * i
        y[i] += math.cos(theta) * x[m]


@rvm.reversible
def shapes(y: i64, A: Array[f64, "m", "k"]):
    rows, columns = A.shape
    y += rows * 10 + columns + A.shape[1] * 100


@rvm.reversible
def constants(y: f64, k: i64):
    y += RATE * POINTS[0] + POINTS[-1][1]
    k += BIG - 2**40 + len(POINTS)
    k += 3 if RATE == 0.5 else y


def test_names_for_expressions_and_constants() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    want = [math.cos(2 * math.pi / 4 * i) * 3 + (i == 2) * math.pi / 2 for i in range(4)]
    y = named(np.zeros(4), x).y
    np.testing.assert_allclose(y, want, atol=1e-12)
    both_ways(shapes, dict(y=20 + 3 + 300), y=0, A=np.zeros((2, 3)))
    both_ways(constants, dict(y=0.75 + 8, k=6), y=0.0, k=0)


@rvm.reversible
def too_large(y: i64):
    y += 2**70


def test_constants_keep_their_value() -> None:
    with pytest.raises(rvm.AssemblyError, match="A041"):
        too_large(0)


def test_a_constant_with_another_value_makes_another_program(monkeypatch: Any) -> None:
    assert constants(0.0, 0).y == 8.75
    monkeypatch.setitem(globals(), "RATE", 2.0)
    with pytest.raises(rvm.AssemblyError, match="i64"):
        constants(0.0, 0)
    monkeypatch.setitem(globals(), "RATE", 0.5)
    monkeypatch.setitem(globals(), "POINTS", (1.0, 2, (3, 4)))
    assert constants(0.0, 0).y == 4.5


@rvm.reversible
def mixed(y: f64, n: i64, x: f32, k: i64):
    y += n / 4 + n * 0.5 + math.sqrt(n)
    y += n
    y *= n
    x += n
    k += n // 2 + int(2.75) + int(y)


def test_whole_numbers_beside_real_ones() -> None:
    out = mixed(1.0, 9, 0.5, 0)
    y = (1 + 9 / 4 + 4.5 + 3 + 9) * 9
    assert (out.y, out.x, out.k) == (y, 9.5, 4 + 2 + int(y))
    assert dict((~mixed)(**out)) == dict(y=1.0, n=9, x=0.5, k=0)


@rvm.reversible
def functions(y: Array[f64, "n"], x: Array[f64, "n"], A: Array[f64, "n", "n"], s: f64):
    y += A @ x
    y += np.sin(x) + np.maximum(x, 0.5) * np.where(x > 1, 2.0, 1.0)
    s += np.sum(x) + x.sum() + abs(x[0]) + min(x[0], x[1], 0.25) + max(3, x[0]) + np.max(x)
    s += math.hypot(3, 4) + math.log(8, 2) + np.arctan2(x[0], x[1]) + math.atan2(1, 2)
    s += pow(x[0], 2) + float(len(x)) + np.dot(x, x) + math.floor(2.7) + np.float64(1)


def test_functions_are_those_of_the_table() -> None:
    x, a = np.array([0.75, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    y = a @ x + np.sin(x) + np.maximum(x, 0.5) * np.where(x > 1, 2.0, 1.0)
    s = 2.75 * 2 + 0.75 + 0.25 + 3 + 2 + 5 + 3 + math.atan2(0.75, 2) + math.atan2(1, 2)
    s += 0.75**2 + 2 + float(np.dot(x, x)) + 2 + 1
    both_ways(functions, dict(y=y, s=s), y=np.zeros(2), x=x, A=a, s=0.0)


# ---------------------------------------------------------------- records


@rvm.record
class Body:
    pos: Array[f64, 2]
    mass: f64


@rvm.reversible
def push_on(b: Body, by: f64):
    b.pos[0] += by / b.mass
    b.pos[-1] -= by


@rvm.reversible
def pushed_twice(b, by):
    push_on(b, by)
    with rvm.ancilla(like=b.pos) as t:
        t += b.pos
        by += t[0]
        t -= b.pos
    b.pos = -b.pos


def test_records() -> None:
    b = Body(np.array([1.0, 2.0]), 2.0)
    out = push_on(b, 4.0)
    assert out.b.pos is b.pos and list(b.pos) == [3.0, -2.0]
    (~push_on)(b, 4.0)
    assert list(b.pos) == [1.0, 2.0]
    out = pushed_twice(b, 4.0)
    assert list(b.pos) == [-3.0, 2.0] and out.by == 7.0
    (~pushed_twice)(b, out.by)
    assert list(b.pos) == [1.0, 2.0]


# ---------------------------------------------------------------- types of arguments


@rvm.reversible
def bump(x, by):
    x += by


@pytest.mark.parametrize("t", [np.uint8, np.int16, np.int32, np.uint64, np.float32])
def test_results_of_functions_without_annotations_are_of_their_types(t: Any) -> None:
    out = bump(t(3), t(250))
    assert type(out.x) is t and out.x == t(253)
    back = (~bump)(**out)
    assert type(back.x) is t and back.x == 3


def test_each_set_of_types_has_a_program() -> None:
    assert type(bump(1, 2).x) is int
    assert type(bump(1.0, 2.0).x) is float
    x = np.arange(3.0)
    assert bump(x, 1.0).x is x and list(x) == [1, 2, 3]
    assert bump.of(1, 2).program is bump.of(3, 4).program
    assert bump.of(1, 2).program is not bump.of(1.0, 2).program
    assert isinstance(bump, GenericFunction) and bump.__name__ == "bump"
    assert "generic" in str(bump)


@rvm.reversible
def narrow(x: u8, y: i32):
    x += 200
    y += 1


def test_annotated_results_are_numbers_of_python() -> None:
    out = narrow(100, 1)
    assert (out.x, out.y) == (44, 2) and type(out.x) is int


def test_lists_are_read_and_never_changed() -> None:
    assert add_to(0.0, [1, 2.5]).y == 3.5
    with pytest.raises(rvm.UsageError, match="U046"):
        bump([1.0, 2.0], 1.0)
    with pytest.raises(rvm.UsageError, match="U046"):
        shift([1.0, 2.0])


@rvm.reversible
def add_to(y: f64, x: Array[f64, "n"]):
    y += np.sum(x)


@rvm.reversible
def shift(x: Array[f64, "n"]):
    x += 1.0
