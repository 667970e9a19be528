"""Stacks of arrays: their elements on a stack of numbers, moved and looked at as arrays."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rvm_asm import disassemble
from sizes import thin

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.expr import Const
from rvm.faults import AssemblyError, RvmError
from rvm.program import Program
from rvm.registry import having
from rvm.types import F64
from rvm.verify import verify

TEXT = """
const K = 3
record Body
    at: f64[K]
    m: i64
end
func fill(s: stack[f64[3]], x: f64[3], n: i64)
    for i = 1 to n
        mul x[i % 3], 2.0
        alloc t: f64[K] = x
        push t, s
        free t
    end
func look(s: stack[f64[3]], y: f64, n: i64, none: bool)
    add y, s.top[1] * s.top[2] + sum(top(s))
    add n, len(s)
    xor none, empty(s)
    add s.top, 0.5
    call turn(s.top)
    add s.top[n % 3], 8.0
func turn(x: f64[3])
    swap x[0], x[2]
func move(s: stack[i64[2, 5]], t: stack[i64[2, 5]], count: i64)
    from count == 0
        alloc x: i64[2, 5]
        pop x, s
        add x[1, :], 100 * count
        push x, t
        free x
        inc count
    until empty(s)
func part(s: stack[f64[2]], x: f64[n, 4])
    push x[1, 0:2], s
    push x[0, 2:4], s
    pop x[0, 2:4], s
func bodies(s: stack[Body], t: stack[Body], b: Body, n: i64)
    push b, s
    add n, 10 * len(s) + len(t)
    add s.top.at[0], 1.0
    add s.top.m, 2
    call whole(s.top)
    swap s.top, b
    alloc c: Body
    pop c, s
    push c, t
    free c
func whole(b: Body)
    add b.at, f64(b.m)
func apply_twice(s: stack[f64[K]], f: func(stack[f64[K]]))
    call f(s)
    call f(s)
func higher(s: stack[f64[3]])
    call apply_twice(s, grow)
func grow(s: stack[f64[3]])
    add s.top, 1.0
macro twice s
    alloc x: f64[3]
    pop x, s
    add s.top, x
    push x, s
    free x
end
func used[T: real](s: stack[T[3]], y: T)
    alloc x: T[3]
    pop x, s
    add y, x[0] + s.top[0]
    push x, s
    free x
func called(s: stack[f64[3]], y: f64)
    twice s
    call used(s, y)
func local(y: f64, n: i64)
    alloc s: stack[f64[12]]
    routine r
        for i = 1 to n
            alloc x: f64[12] = f64(i)
            push x, s
            free x
        end
    end
    add n, len(s)
    add y, s.top[11]
    sub n, len(s)
    undo r
    free s: stack[f64[12]]
"""


def flat(value: Any) -> Any:
    """The numbers of a stack's arrays; of anything else what it is."""
    return np.concatenate([[], *map(np.ravel, value)]).tolist() if type(value) is list else value


FLAT = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("shape", [(0,), (-1,), (1 << 63,), (2,) * 33, (True,), (1.0,)])
def test_lengths_that_no_array_on_a_stack_has_are_refused(shape: Any) -> None:
    program = rvm.assemble("func f(s: stack[f64[3]], x: f64)").program
    f = program.functions[0]
    stack, number = f.registers
    for registers in (
        (replace(stack, shape=shape), number),
        (stack, replace(number, shape=(3,))),
    ):
        with pytest.raises(RvmError) as caught:
            verify(Program((replace(f, registers=registers),), "f"))
        assert caught.value.code == "B020"
    other = replace(stack, shape=(), dims=(Const(1.5, F64),))
    with pytest.raises(RvmError) as caught:
        decode(encode(Program((replace(f, registers=(other, number)),), "f")))
    assert caught.value.code == "B010"


@thin
@pytest.mark.parametrize("engine", executing())
def test_there_and_back(engine: str) -> None:
    lib = rvm.assemble(TEXT)
    on: dict[str, Any] = {"engine": engine}
    out = lib.fill(s=[7.0] * 3, x=np.array([1.0, 2.0, 3.0]), n=2, **on)
    assert flat(out.s) == [7.0] * 3 + [1.0, 4.0, 3.0, 1.0, 4.0, 6.0]
    assert flat((~lib.fill)(**out, **on).s) == [7.0] * 3

    seen = lib.look(s=list(FLAT), y=0.0, n=0, none=False, **on)
    assert (seen.y, seen.n, seen.none) == (30.0 + 15.0, 2, False)
    assert flat(seen.s) == [1.0, 2.0, 3.0, 6.5, 5.5, 12.5]
    assert flat((~lib.look)(**seen, **on).s) == FLAT

    moved = lib.move(s=list(range(20)), t=[], count=0, **on)
    assert flat(moved.s) == [] and moved.count == 2
    first, second = np.arange(10).reshape(2, 5), np.arange(10, 20).reshape(2, 5)
    first[1] += 100
    assert flat(moved.t) == [*second.ravel(), *first.ravel()]
    assert flat((~lib.move)(**moved, **on).s) == list(range(20))

    x = np.arange(8.0).reshape(2, 4)
    assert flat(lib.part(s=[], x=x, **on).s) == [4.0, 5.0]
    assert x.tolist() == [[0, 1, 2, 3], [0, 0, 6, 7]]

    b = {"at": np.array([1.0, 2.0, 3.0]), "m": 5}
    given = lib.bodies(s={"at": [9.0] * 3, "m": [9]}, t={"at": [], "m": []}, b=b, n=0, **on)
    assert given.n == 20 and flat(given.s.at) == [9.0] * 3 and given.s.m == [9]
    assert given.b.at.tolist() == [9.0, 9.0, 10.0] and given.b.m == 7
    assert flat(given.t.at) == [0.0] * 3 and given.t.m == [0]
    assert (~lib.bodies)(**given, **on).b.at.tolist() == [1.0, 2.0, 3.0]

    used = lib.called(s=list(FLAT), y=0.0, **on)
    assert flat(used.s) == [5.0, 7.0, 9.0, 4.0, 5.0, 6.0] and used.y == 4.0 + 5.0
    assert flat(lib.higher(s=list(FLAT), **on).s) == [1.0, 2.0, 3.0, 6.0, 7.0, 8.0]
    assert lib.local(y=0.0, n=3, **on).y == 3.0


def test_a_text_of_them_assembles_to_the_same_bytes() -> None:
    lib = rvm.assemble(TEXT)
    data = encode(lib)
    assert decode(data) == lib.program
    assert encode(rvm.assemble(disassemble(lib.program)).program) == data


CONDITIONS = """
func choose(s: stack[f64[3]], y: f64)
    if top(s)[0] > 1.0
        add y, top(s)[1]
    else
        sub y, s.top[2]
    end
func move(s: stack[f64[3]], t: stack[f64[3]], n: i64)
    while not empty(s) and top(s)[0] > 1.0, not empty(t) and (t.top[2] > 9.0 or top(t)[0] > 1.0)
        alloc x: f64[3]
        pop x, s
        push x, t
        free x
        inc n
    end
func bounds(s: stack[i64[12]], y: i64, k: i64)
    for i = s.top[0] to s.top[11] step top(s)[1]
        add y, i * s.top[2]
    end
    with t = sum(top(s)), u: i64[12] = 2 * s.top
        add y, t + u[3]
    end
    if k == 0
        add y, 1000
    elseif s.top[k] == 7
        add y, 2000
    elseif s.top[k] == 8, s.top[k] == 8 and y > 0
        add y, 3000
    else
        add y, 4000
    end
func until(s: stack[f64[2]], y: f64)
    from y == s.top[0]
        add y, 1.0
    until y >= top(s)[1]
func leave(s: stack[f64[2]], y: f64, n: i64)
    from n == 0 and y == s.top[0]
        add y, 1.0
    loop
        inc n
    until n == 5 or s.top[1] <= y
func scale(s: stack[f64[2]], y: f64)
    replace y as t by t_of(t, y, s.top), t_back(y, t, s.top)
    extern forward
        assert top(s)[0] > 0, "no"
    end
func t_of(t: f64, y: f64, x: f64[2])
    add t, y * x[0]
func t_back(y: f64, t: f64, x: f64[2])
    add y, t / x[0]
"""
NINE = [0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0]
TWELVE = [1, 2, 3, 7, 8, 7, 7, 8, 7, 7, 7, 9]


@thin
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        ("choose", {"s": [2.0, 3.0, 4.0], "y": 0.0}, {"y": 3.0}),
        ("choose", {"s": [0.0, 3.0, 4.0], "y": 0.0}, {"y": -4.0}),
        ("move", {"s": NINE, "t": [], "n": 0}, {"t": [3.0] * 3 + [2.0] * 3, "n": 2}),
        ("move", {"s": NINE[3:], "t": [1.0] * 3, "n": 4}, {"s": [], "n": 6}),
        ("move", {"s": [], "t": [], "n": 0}, {"n": 0}),
        *(
            ("bounds", {"s": TWELVE, "y": 0, "k": k}, {"y": 75 + 73 + 14 + 1000 * arm})
            for k, arm in enumerate([1, 4, 4, 2, 3])
        ),
        ("until", {"s": [0.0, 5.0], "y": 0.0}, {"y": 5.0}),
        ("leave", {"s": [0.0, 5.0], "y": 0.0, "n": 0}, {"y": 5.0, "n": 4}),
        ("leave", {"s": [0.0, 15.0], "y": 0.0, "n": 0}, {"y": 6.0, "n": 5}),
        ("scale", {"s": [2.0, 5.0], "y": 3.0}, {"y": 6.0}),
    ],
)
def test_tops_where_expressions_stand(
    engine: str, name: str, given: dict[str, Any], want: dict[str, Any]
) -> None:
    lib = rvm.assemble(CONDITIONS)
    f = lib[name].with_options(engine=engine)
    out = f(**deepcopy(given))
    assert {k: flat(out[k]) for k in want} == want
    back = (~f)(**deepcopy(dict(out)))
    assert {k: flat(back[k]) for k in given} == given


def test_conditions_with_tops_are_code_like_any_other() -> None:
    lib = rvm.assemble(CONDITIONS)
    data = encode(lib)
    assert encode(rvm.assemble(disassemble(lib.program)).program) == data
    bars = lib.choose.grad(s=[2.0, 3.0, 4.0], y=0.0, loss="y")
    assert flat(bars.s) == [0.0, 1.0, 0.0]
    for f, given, code in (
        (lib.until, {"s": [1.0, 5.0], "y": 0.0}, "R002"),
        (lib.move, {"s": NINE, "t": [2.0] * 3, "n": 2}, "R002"),
        (~lib.choose, {"s": [], "y": 0.0}, "R006"),
    ):
        with pytest.raises(RvmError) as caught:
            f(**given)
        assert caught.value.code == code and ".holds" not in str(caught.value)


@pytest.mark.parametrize("engine", having("lanes"))
def test_in_lanes(engine: str) -> None:
    f = rvm.assemble(TEXT).fill.with_options(engine=engine)
    out = f.map(s=[[], [[5.0] * 3]], x=np.array([[1.0, 2.0, 3.0]] * 2), n=np.array([0, 1]))
    assert [flat(s) for s in out.s] == [[], [5.0] * 3 + [1.0, 4.0, 3.0]]


def test_gradients() -> None:
    text = """
func f(y: f64, s: stack[f64[3]], n: i64)
    for i = 1 to n
        alloc x: f64[3]
        pop x, s
        add y, sin(x[0]) * x[1] * s.top[2]
        push x, s
        free x
    end
func g(y: f64, s: stack[f64[3]], s_bar: stack[f64[3]])
    call f'(y, s, 1; 1, s_bar)
"""
    lib = rvm.assemble(text)
    bars = lib.f.grad(y=0.0, s=list(FLAT), n=2, loss="y")
    want = [0, 0, 2 * np.sin(4) * 5, 2 * np.cos(4) * 5 * 3, 2 * np.sin(4) * 3, 0]
    np.testing.assert_allclose(flat(bars.s), want)
    found = lib.g(y=0.0, s=list(FLAT), s_bar=[0.0] * 6)
    np.testing.assert_allclose(flat(found.s_bar), np.array(want) / 2)


def test_derivatives_of_stacks_of_arrays_are_arrays() -> None:
    lib = rvm.assemble("""
func f(y: f64, s: stack[f64[3]], n: i64)
    add y, sin(top(s)[0]) * s.top[2]
""")
    s = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    slope = [0.0, 0.0, 0.0, np.cos(4) * 6, 0.0, np.sin(4)]
    given: dict[str, Any] = {"y": 0.0, "s": s, "n": 1}
    found = lib.f.grad(**deepcopy(given), loss="y")
    for bars in (found, lib.f.value_and_grad(**deepcopy(given), loss="y")[1]):
        assert all(a.shape == (3,) for a in bars.s)
        assert flat(bars.s) == pytest.approx(slope)
    error = lib.f.grad(**deepcopy(given), loss="y", error=True).info.error.s
    assert [a.shape for a in error] == [(3,), (3,)]
    for along in ([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], np.eye(6)[0] + np.eye(6)[5]):
        dots = lib.f.jvp({"s": along}, **deepcopy(given))[1]
        assert dots.y == pytest.approx(slope[5]) and flat(dots.s) == [1.0, 0, 0, 0, 0, 1.0]
    with pytest.raises(RvmError, match="must have the shape"):
        lib.f.jvp({"s": [[1.0, 0.0, 0.0]]}, **deepcopy(given))
    lanes = lib.f.map.grad(y=0.0, s=[[s[0]], s], n=1, loss="y")
    assert [flat(v) for v in lanes.s] == [
        pytest.approx([np.cos(1) * 3, 0.0, np.sin(1)]),
        pytest.approx(slope),
    ]
    shared = lib.f.map(y=np.zeros(2), s=s, n=1)
    assert [flat(v) for v in shared.s] == [flat(s)] * 2


def test_what_is_missing_is_reported() -> None:
    lib = rvm.assemble(TEXT)
    with pytest.raises(RvmError) as caught:
        lib.look(s=[], y=0.0, n=0, none=False)
    assert caught.value.code == "R006"


@pytest.mark.parametrize(
    "given",
    [
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        [[1.0, 2.0], (3.0, 4.0)],
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        [1.0, 2.0, 3.0, 4.0],
        np.array([1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_callers_give_arrays_and_are_given_arrays(given: Any) -> None:
    lib = rvm.assemble("""
func f(s: stack[f64[2]], t: stack[i64[2, 2]])
    alloc x: f64[2] = 9.0
    push x, s
    free x
""")
    t = [np.arange(4).reshape(2, 2)]
    found = lib.f(s=given, t=t)
    assert [a.tolist() for a in found.s] == [[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]
    assert [a.tolist() for a in found.t] == [[[0, 1], [2, 3]]] and found.t[0].dtype == np.int64
    assert t[0].tolist() == [[0, 1], [2, 3]]
    if isinstance(given, list):
        assert [a.tolist() for a in given] == [[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]
    assert [a.tolist() for a in (~lib.f)(**found).s] == [[1.0, 2.0], [3.0, 4.0]]
    machine = rvm.Machine(lib, s=[[5.0, 6.0]], t=[])
    machine.run()
    assert [a.tolist() for a in machine["s"]] == [[5.0, 6.0], [9.0, 9.0]]
    machine["s"] = [[7.0, 8.0]]
    assert [a.tolist() for a in machine["s"]] == [[7.0, 8.0]]


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ([[1.0, 2.0]], "I004", "array 0 has the shape [2], not [3]"),
        ([[1.0] * 3, np.ones((3, 1))], "I004", "array 1 has the shape [3, 1], not [3]"),
        (np.ones((2, 2)), "I004", "array 0 has the shape [2], not [3]"),
        ([[1.0, [2.0], 3.0]], "I004", "array 0 has rows of several lengths, not [3]"),
        ([1.0, 2.0], "I004", "2 numbers are not a whole number of arrays"),
        ([["a", 1, 2]], "I003", "expected a real number, not 'a'"),
        ([np.ones(3, int)], "I003", "its dtype must be float64, not int64"),
        ([1.0, [1.0, 2.0, 3.0]], "I003", "expected a real number"),
        (5, "I003", "it takes a list or a NumPy array"),
    ],
)
def test_what_is_not_a_stack_of_arrays(given: Any, code: str, said: str) -> None:
    lib = rvm.assemble(TEXT)
    with pytest.raises(RvmError) as caught:
        lib.fill(s=given, x=np.ones(3), n=0)
    assert caught.value.code == code
    assert "`s` is a stack[f64[3]]: " in str(caught.value) and said in str(caught.value)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("push y, s", "A040", "what is moved is of type f64, and the stack a stack[f64[3]]"),
        ("pop m, s", "A040", "is of type f64[:, :], and"),
        ("push k, s", "A040", "is of type i64[:], and"),
        ("push x, s", "A040", "an array of f64[?] does not fit a stack[f64[3]]"),
        ("push w, s", "A040", "an array of f64[2] does not fit a stack[f64[3]]"),
        ("push v, u", "A040", ""),
        ("add y, s", "A040", ""),
        ("add y, s.len", "A055", ""),
        ("add y, s.top[0] * f64(len(s))", "A016", "used together with the stack itself"),
        ("push s.top, s", "A016", "used together with the stack itself"),
        ("call g(s.top, s)", "A016", "used together with the stack itself"),
        ("br s.top[0] > 1.0, L\n    L: cf s.top[0] > 1.0", "A040", "whose top has no value here"),
        ("if s.top[0] > f64(len(s))\n    end", "A016", "used together with the stack itself"),
        ("if top(s)[0, 1] > 1.0\n    end", "A042", ""),
        ("if top(s) > 1.0\n    end", "A040", "bool[:], not bool"),
        ("add y, top(s[0])", "A040", "`top` takes a stack, by its name"),
        ("add y, top(s, s)", "A040", "`top` takes a stack, by its name"),
        ("add y, sum(s)", "A040", "a stack is not a value"),
        ("call g(s, s)", "A040", "parameter `x` of `g` is an f64[:], not a stack[f64]"),
        ("if len(s)[0] > 1\n    end", "A002", "the value of `len` is not a place"),
        ("with t = s.top[0, 1]\n    end", "A042", ""),
        ("call h(s)", "A040", "a stack[f64] is required here, but this is a stack[f64[3]]"),
        ("call h2(s)", "A040", "a stack[f64[2]] is required here"),
        ("call h(b)", "A040", ""),
        ("local t: stack[f64[n]]", "A011", "constants, and at least 1"),
        ("local t: stack[f64[0]]", "A011", "constants, and at least 1"),
        ("local t: stack[f64[3]][2]", "A002", ""),
        ("local t: stack[stack[f64[3]]]", "A011", ""),
        ("call any[stack[f64[3]]](s)", "A011", "not of arrays"),
        ("alloc t: stack[f64[3]]\n    free t: stack[f64[2]]", "A040", "is a stack[f64[3]], not"),
    ],
)
def test_errors(line: str, code: str, said: str) -> None:
    text = f"""
func f(s: stack[f64[3]], u: stack[f64], b: stack[Body], y: f64, m: f64[3, 3], k: i64[3], \\
       x: f64[n], w: f64[2], v: f64[3])
    {line}
func g(x: f64[3], s: stack[f64[3]])
    swap x[0], x[1]
func h(s: stack[f64])
    add s.top, 1.0
func h2(s: stack[f64[2]])
    add s.top, 1.0
func any[T](x: T)
    swap x, x
record Body
    x: f64[3]
end
"""
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    found = [d for d in caught.value.diagnostics if 4 <= d.where.line <= 5]
    assert found and found[0].code == code, caught.value
    assert said in found[0].message, found[0].message
