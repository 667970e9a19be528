"""Stacks of records: a stack for each field, which are pushed, popped and looked at together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rvm_asm import disassemble
from rvm_tools.debug.session import Session
from sizes import some

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import AssemblyError, InputError, RvmError
from rvm.registry import having

TEXT = """
record Point
    x: f64
    y: f64
end
record Body
    at: Point
    k: i64
end
func fill(s: stack[Body], n: i64)
    for i = 1 to n
        alloc b: Body
        add b.at.x, 1.5 * f64(i)
        sub b.at.y, f64(i)
        add b.k, i * i
        push b, s
        free b
    end
func look(s: stack[Body], y: f64, n: i64, none: bool)
    add y, s.top.at.x * top(s.at.y)
    add n, len(s) + s.top.k
    xor none, empty(s)
    add s.top.at.x, 0.25
    call turn(s.top.at)
    call whole(s.top)
func turn(p: Point)
    swap p.x, p.y
func whole(b: Body)
    add b.k, 100
func move(s: stack[Body], t: stack[Body], count: i64)
    from count == 0
        alloc b: Body
        pop b, s
        add b.k, count
        push b, t
        free b
        inc count
    until empty(s)
func exchange(s: stack[Body], b: Body)
    swap s.top, b
macro one_move s, t, b
    pop b, s
    push b, t
end
func pairs[T: real](s: stack[Pair[T]], t: stack[Pair[T]])
    alloc p: Pair[T]
    one_move s, t, p
    free p
record Pair[T: real]
    a: T
    b: T
end
func main(s: stack[Body], t: stack[Body], u: stack[Pair[f64]], v: stack[Pair[f64]])
    alloc b: Body
    one_move s, t, b
    free b
    call pairs(u, v)
func local(y: f64)
    alloc s: stack[Body{at: Point, k: i64}]
    routine r
        call fill(s, 3)
    end
    add y, s.top.at.x
    undo r
    free s
"""


def flat(s: Any) -> list[tuple[float, float, int]]:
    return list(zip(s.at.x, s.at.y, s.k, strict=True))


def made(*rows: tuple[float, float, int]) -> dict[str, Any]:
    x, y, k = (list(c) for c in zip(*rows, strict=True)) if rows else ([], [], [])
    return {"at": {"x": x, "y": y}, "k": k}


@pytest.mark.parametrize("engine", executing())
@some
def test_there_and_back(engine: str) -> None:
    lib = rvm.assemble(TEXT)
    on: dict[str, Any] = {"engine": engine}
    out = lib.fill(s=made((1.0, 2.0, 3)), n=3, **on)
    rows = [(1.0, 2.0, 3), *((1.5 * i, -float(i), i * i) for i in (1, 2, 3))]
    assert flat(out.s) == rows
    assert flat((~lib.fill)(s=made(*rows), n=3, **on).s) == rows[:1]

    seen = lib.look(s=made(*rows), y=0.0, n=0, none=False, **on)
    assert (seen.y, seen.n, seen.none) == (4.5 * -3.0, 4 + 9, False)
    assert flat(seen.s) == [*rows[:3], (-3.0, 4.75, 109)]
    assert flat((~lib.look)(**seen, **on).s) == rows

    moved = lib.move(s=made(*rows), t=made(), count=0, **on)
    assert flat(moved.s) == [] and moved.count == 4
    assert flat(moved.t) == [(x, y, k + i) for i, (x, y, k) in enumerate(rows[::-1])]
    back = (~lib.move)(**moved, **on)
    assert flat(back.s) == rows and flat(back.t) == [] and back.count == 0

    swapped = lib.exchange(s=made(*rows), b={"at": {"x": 7.0, "y": 8.0}, "k": 9}, **on)
    assert flat(swapped.s)[-1] == (7.0, 8.0, 9) and swapped.b.k == 9 and swapped.b.at.x == 4.5

    pairs = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    given = lib.main(s=made(*rows), t=made(), u=pairs, v={"a": [], "b": []}, **on)
    assert flat(given.t) == rows[-1:] and flat(given.s) == rows[:-1]
    assert dict(given.u) == {"a": [1.0], "b": [3.0]} and dict(given.v) == {"a": [2.0], "b": [4.0]}
    assert lib.local(y=1.0, **on).y == 5.5


def test_a_text_of_them_assembles_to_the_same_bytes() -> None:
    lib = rvm.assemble(TEXT)
    data = encode(lib)
    assert decode(data) == lib.program
    assert encode(rvm.assemble(disassemble(lib.program)).program) == data


@pytest.mark.parametrize("engine", having("lanes"))
@some
def test_in_lanes(engine: str) -> None:
    f = rvm.assemble(TEXT).fill.with_options(engine=engine)
    out = f.map(s={"at": {"x": [[], []], "y": [[], []]}, "k": [[], []]}, n=np.array([1, 3]))
    assert out.s.k == [[1], [1, 4, 9]] and out.s.at.x == [[1.5], [1.5, 3.0, 4.5]]


def test_gradients() -> None:
    text = """
record Pair
    a: f64
    b: f64
end
func f(y: f64, s: stack[Pair], n: i64)
    for i = 1 to n
        alloc p: Pair
        pop p, s
        mul s.top.a, 1.0 + p.b
        add y, sin(p.a) * p.b + s.top.a
        push p, s
        free p
    end
"""
    f = rvm.assemble(text).f
    a, b = np.array([0.3, 0.8]), np.array([0.5, -0.2])
    bars = f.grad(y=0.0, s={"a": list(a), "b": list(b)}, n=2, loss="y")
    # a0 grows by 1 + b1 each time: y = 2 b1 sin a1 + a0 (1 + b1) + a0 (1 + b1)^2
    np.testing.assert_allclose(bars.s.a, [(1 + b[1]) + (1 + b[1]) ** 2, 2 * b[1] * np.cos(a[1])])
    want = 2 * np.sin(a[1]) + a[0] + 2 * a[0] * (1 + b[1])
    np.testing.assert_allclose(bars.s.b, [0.0, want])


def test_the_debugger_knows_them() -> None:
    session = Session(rvm.assemble(TEXT).program, "fill", {"s": made((1.0, 2.0, 3)), "n": 2})
    session.resume()
    for text, want in (("s.top.k + len(s)", 4 + 3), ("s.top.at.y", -2.0), ("empty(s)", False)):
        assert session.evaluate(text)[1] == want
    assert session.evaluate("s.k")[1] == [3, 1, 4]


def test_elements_that_a_stack_lacks_are_reported() -> None:
    lib = rvm.assemble(TEXT)
    with pytest.raises(RvmError) as caught:
        lib.look(s=made(), y=0.0, n=0, none=False)
    assert caught.value.code == "R006"
    assert flat(lib.fill(n=1).s) == [(1.5, -1.0, 1)]


def test_fields_of_a_stack_hold_as_many_values() -> None:
    record = "record R\n    a: f64\n    v: f64[2]\nend\n"
    record += "record Q\n    a: stack[f64]\n    k: stack[i64]\nend\n"
    lib = rvm.assemble(
        f"{record}func f(s: stack[R], r: R)\n    push r, s\nfunc g(q: Q, x: f64)\n    push x, q.a\n"
    )
    r = {"a": 3.0, "v": np.zeros(2)}
    uneven = ({"a": [1.0], "v": []}, {"a": [], "v": [[1.0, 2.0]]}, {"a": [1.0], "v": [[1, 2]] * 2})
    calls = [lambda s: lib.f(s=s, r=r), lambda s: rvm.Machine(lib, "f", s=s, r=r)]
    calls.append(lambda s: lib.f.map(s=s, r={"a": np.zeros(1), "v": np.zeros(2)}))
    calls.append(lambda s: lib.f.vjp({"r": r}, s=s, r=r))
    for call in calls:
        for s in uneven:
            with pytest.raises(InputError) as caught:
                call(s)
            assert caught.value.code == "I004"
    assert lib.f(s={"a": [1.0], "v": [[1.0, 2.0]]}, r=r).s.a == [1.0, 3.0]
    # By lane each stack may be of its own height, but not each field.
    heights = {"a": [[], [1.0]], "v": [[], [[1.0, 2.0]]]}
    assert lib.f.map(s=heights, r=r).s.a == [[3.0], [1.0, 3.0]]
    with pytest.raises(InputError):
        lib.f.map(s={"a": [[1.0], []], "v": [[], [[1.0, 2.0]]]}, r=r)
    # A record of stacks is not one.
    assert lib.g(q={"a": [], "k": [1, 2]}, x=1.0).q.a == [1.0]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("push b, b", "A040", "the second operand is a record, not a stack of them"),
        ("push c, s", "A040", "the records are not of one type"),
        ("push x, s", "A056", ""),
        ("push x, s.x", "A040", "its fields come and go together"),
        ("pop b.k, s.k", "A040", "its fields come and go together"),
        ("push b, u", "A056", ""),
        ("add x, s.top", "A056", ""),
        ("add x, s.top.z", "A055", "has no field `z`"),
        ("swap s, b", "A040", "the records are not of one type"),
        ("call g(s)", "A040", ""),
        ("local t: stack[Body][3]", "A002", ""),
        ("local t: stack[Body[3]]", "A011", "a stack holds numbers, arrays or records of them"),
        ("local t: stack[stack[f64]]", "A011", "a stack holds numbers, arrays or records of them"),
        ("call h(s)", "A071", ""),
        ("call k(s)", "A072", "Body"),
    ],
)
def test_errors(line: str, code: str, said: str) -> None:
    text = f"""
func f(s: stack[Body], u: stack[f64], b: Body, c: Other, x: f64)
    {line}
func g(b: Body)
    add b.x, 1.0
func h[T](x: T)
    swap x, x
func k[T: number](s: stack[T])
    add s.top, T(1)
record Body
    x: f64
    k: i64
end
record Other
    x: f64
    k: u8
end
"""
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    found = [d for d in caught.value.diagnostics if d.where.line == 3]
    assert found and found[0].code == code, caught.value
    assert said in found[0].message, found[0].message
