"""Bijections of places as destinations and arguments, against what they mean for numbers."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable

import numpy as np
import pytest
from rvm_asm import disassemble
from sizes import part, sized, some, thin

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import AssemblyError
from rvm.isa import OPCODES
from rvm.isa.rules import CLASSES
from rvm.types import SCALARS, Scalar

ENGINES = executing()
Way = Callable[[int], int]
BITS = 1 << 64


def wrap(x: int) -> int:
    return (x + BITS // 2) % BITS - BITS // 2


def bijections(rng: random.Random, text: str, depth: int) -> tuple[str, Way, Way]:
    """A text, what it makes of a number, and what takes that back."""
    if not depth:
        return text, lambda x: x, lambda v: v
    inner, there, back = bijections(rng, text, depth - 1)
    c = rng.randint(-9, 9)
    made: dict[str, tuple[Way, Way]] = {
        f"-({inner})": (lambda v: -v, lambda v: -v),
        f"~({inner})": (lambda v: ~v, lambda v: ~v),
        f"({inner}) + ({c})": (lambda v: v + c, lambda v: v - c),
        f"({c}) + ({inner})": (lambda v: v + c, lambda v: v - c),
        f"({inner}) - ({c})": (lambda v: v - c, lambda v: v + c),
        f"({c}) - ({inner})": (lambda v: c - v, lambda v: c - v),
        f"({inner}) ^ ({c})": (lambda v: v ^ c, lambda v: v ^ c),
        f"({c}) ^ ({inner})": (lambda v: v ^ c, lambda v: v ^ c),
    }
    text, (to, of) = rng.choice(sorted(made.items(), key=lambda item: item[0]))
    return text, lambda x: wrap(to(there(x))), lambda v: back(wrap(of(v)))


INNER = """
func grow(p: i64, q: i64)
    add p, 2 * q + 1
func twice(p: i64, q: i64)
    call grow(-p, q)
    call grow(p + 1, q)
func keep(p: i64, q: i64)
    xor q, p
"""


def grown(v: int, q: int) -> int:
    return v + 2 * q + 1


def twice(v: int, q: int) -> int:
    return grown(-grown(-v, q) + 1, q) - 1


@pytest.mark.parametrize("engine", ENGINES)
@sized
@some
def test_random_ones_in_random_instructions(engine: str) -> None:
    for seed in range(part(40)):
        rng = random.Random(seed)
        x, y = wrap(rng.getrandbits(64)), rng.randint(-99, 99)
        state = {"x": x, "y": y, "a1": 5}
        lines = []
        for _ in range(6):
            name, place = rng.choice([("x", "x"), ("y", "y"), ("a1", "a[1]")])
            other = rng.choice([n for n in ("x", "y", "a1") if n != name])
            text, there, back = bijections(rng, place, rng.randint(1, 3))
            read = {"a1": "a[1]"}.get(other, other)
            v, q = there(state[name]), state[other]
            how = rng.choice(["add", "xor", "swap", "neg", "grow", "twice", "keep", "ungrow"])
            if how == "add":
                lines.append(f"add {text}, 3 * {read}")
                v += 3 * q
            elif how == "xor":
                lines.append(f"xor {text}, {read}")
                v ^= q
            elif how == "neg":
                lines.append(f"neg {text}")
                v = -v
            elif how == "swap":
                text2, there2, back2 = bijections(rng, read, rng.randint(0, 2))
                lines.append(f"swap {text}, {text2}")
                v, w = there2(q), v
                state[other] = wrap(back2(w))
            elif how == "keep":
                # The view is read only: a value is passed.
                lines.append(f"call keep({text}, {read})")
                state[other] = wrap(q ^ wrap(v))
            elif how == "ungrow":
                lines.append(f"uncall grow({text}, {read})")
                v = v - 2 * q - 1
            else:
                lines.append(f"call {how}({text}, {read})")
                v = (grown if how == "grow" else twice)(v, q)
            state[name] = wrap(back(wrap(v)))
        body = "".join(f"    {line}\n" for line in lines)
        lib = rvm.assemble(f"func f(x: i64, y: i64, a: i64[2])\n{body}{INNER}")
        f = lib.f.with_options(engine=engine)
        out = f(x=x, y=y, a=np.array([0, 5]))
        assert (out.x, out.y, out.a.tolist()) == (state["x"], state["y"], [0, state["a1"]]), body
        start = (~f)(**out)
        assert (start.x, start.y, start.a.tolist()) == (x, y, [0, 5])
        data = encode(lib)
        assert decode(data) == lib.program
        assert encode(rvm.assemble(disassemble(lib.program)).program) == data


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_numbers_arrays_and_slices(engine: str) -> None:
    text = """
func f(z: c128, w: c128[n], x: f64[n], b: bool, g: log64, u: fixed, s: stack[f64])
    add conj(z), (1.0, 2.0)'c128
    mul conj(w[::-1]), 2j
    add 2 * x[::2], 4.0
    sub -x, 1.0
    xor ~b, true
    mul g * 2.0, 3.0
    add u / 1, 0.5
    push -x[0], s
    pop 2.0 * x[0], s
    call turn(-x[::-1], conj(w))
func turn(x: f64[n], w: c128[n])
    for i = 0 to n - 1
        add x[i], f64(i)
        add w[i].im, f64(i)
    end
""".replace("    add u / 1, 0.5\n", "    add 1 - u, 0.5\n")
    x, w = np.array([1.0, 2.0, 4.0]), np.array([1 + 1j, 2.0, 3j])
    f = rvm.assemble(text).f.with_options(engine=engine)
    given = {"z": 3 + 1j, "b": True, "g": 5.0, "u": 2.0, "s": []}
    out = f(x=x.copy(), w=w.copy(), **given)
    x1, w1 = x.copy(), w.copy()
    w1 = np.conj(np.conj(w1) * 2j)
    x1[::2] = (2 * x1[::2] + 4) / 2
    x1 += 1.0
    x1[0] = -x1[0] / 2
    x1[::-1] -= np.arange(3.0)
    w1 = np.conj(np.conj(w1) + 1j * np.arange(3))
    assert out.z == np.conj(np.conj(3 + 1j) + 1 + 2j)
    assert out.b is False and out.s == [] and out.u == 1.5
    assert float(out.g) == pytest.approx(15.0)
    np.testing.assert_array_equal(out.x, x1)
    np.testing.assert_array_equal(out.w, w1)
    back = (~f)(**out)
    np.testing.assert_array_equal(back.x, x)
    np.testing.assert_array_equal(back.w, w)


def test_gradients_go_through_them() -> None:
    text = """
func f(y: f64, x: f64)
    add -y, sin(x)
    call g(2.0 * y, x)
    add y, y2(x)
func g(p: f64, q: f64)
    add p, q * q
pure y2(x) = x ** 3
"""
    lib = rvm.assemble(text)
    x = 0.7
    assert lib.f(y=1.0, x=x).y == pytest.approx(1.0 - np.sin(x) + x * x / 2 + x**3)
    bars = lib.f.grad(y=1.0, x=x, loss="y")
    assert bars.x == pytest.approx(-np.cos(x) + x + 3 * x * x)


def test_macros_maps_and_functions_that_are_passed() -> None:
    text = """
func main(x: i64[n], s: i64, k: i64)
    twice -s, k
    call fold(7 - s, x, plus)
    map plus(-x, k)
macro twice y, c
    add y, c
    add y, c
end
func fold(s: i64, x: i64[n], f: func(i64, i64))
    for i = 0 to n - 1
        call f(s, x[i])
    end
func plus(a: i64, b: i64)
    add a, b
"""
    lib = rvm.assemble(text)
    out = lib.main(x=np.array([1, 2, 3]), s=10, k=4)
    assert out.s == 7 - ((7 - (10 - 8)) + 6)
    assert out.x.tolist() == [1 - 4, 2 - 4, 3 - 4]


def test_a_loop_passes_its_variable_as_a_value() -> None:
    text = """
func f(y: i64)
    for i = 1 to 3
        call g(i + 1, y)
    end
func g(p: i64, y: i64)
    add p, 1
    add y, p
    sub p, 1
"""
    assert rvm.assemble(text).f(y=0).y == 3 + 4 + 5


def test_recursion_that_changes_in_the_end() -> None:
    """That a parameter is changed may follow from functions that stand later in the text."""
    text = """
func f(x: i64, n: i64)
    if n > 0
        call g(-x, n - 1)
    end
func g(p: i64, n: i64)
    call f(p + 3, n)
    call h(~p)
func h(p: i64)
    add p, 10
"""

    def f(x: int, n: int) -> int:
        return -g(-x, n - 1) if n > 0 else x

    def g(p: int, n: int) -> int:
        return ~(~(f(p + 3, n) - 3) + 10)

    lib = rvm.assemble(text)
    for n in range(5):
        assert lib.f(x=1, n=n).x == f(1, n)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("add -3, 1", "A040", ""),
        ("add sin(z), 1.0", "A040", ""),
        ("swap -x, x", "A016", "`-x` and `x` are one place, and both are changed"),
        ("swap x + y, y", "A013", "what `x + y` is follows from `y`, which is changed"),
        ("add -x, x", "A013", "`x`"),
        ("add x + x, 1", "A013", "`x`"),
        ("call g(-x, x)", "A014", "`x` is passed for `p`, which `g` changes"),
        ("call two(x + y, y)", "A013", "what `x + y` is follows from `y`, which is changed"),
        ("call two(-x, ~x)", "A016", "`-x` and `~x` are one place"),
        ("call g(x + z, y)", "A040", ""),
        ("add -s, 1", "A040", ""),
        ("add -n, 1", "A040", ""),
    ],
)
def test_errors(line: str, code: str, said: str) -> None:
    text = f"""
func f(x: i64, y: i64, z: f64, s: stack[i64], a: i64[n])
    {line}
func g(p: i64, q: i64)
    add p, q
func two(p: i64, q: i64)
    inc p
    inc q
"""
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    (found,) = caught.value.diagnostics
    assert (found.code, found.where.line) == (code, 3), found
    assert said in found.message, found.message


def test_every_opcode_that_changes_one_place_is_a_bijection() -> None:
    """The table decides: what an opcode does in place, its function names as a view."""
    from rvm_asm.bijections import in_place

    known = in_place()
    assert {"neg", "~", "conj", "+", "-", "*", "/", "^"} <= set(known)
    for fn, op in known.items():
        row = OPCODES[op]
        assert row.operands[0].mode == "mut" and OPCODES[row.inverse].operands == row.operands, fn


def test_bars_of_derivatives() -> None:
    """What a derivative changes is known before it is made: its bars, and what these stand for."""
    text = """
func f(y: f64, x: f64)
    add y, sin(x)
func slope(d: f64, x: f64)
    alloc y: f64
    call f'(y, x; 1, d)
    free y
func main(d: f64, e: f64, x: f64)
    call slope(-d, x)
    call f'(0, x + 1; 1, 2 * e)
"""
    lib = rvm.assemble(text)
    out = lib.main(d=0.0, e=0.0, x=0.5)
    assert out.d == -np.cos(0.5) and out.e == pytest.approx(np.cos(1.5) / 2)
    assert (~lib.main)(**out).d == 0.0


@pytest.mark.parametrize("t", [t for t in SCALARS.values() if CLASSES["int"](t)], ids=str)
def test_products_of_integers_by_odd_constants(t: Scalar) -> None:
    """`add k * x, y` is x with k · x + y for k · x, modulo 2^bits, as Python's integers have it."""
    modulus, rng = 2**t.bits, random.Random(t.bits)
    for k in (3, 7, 101, *(() if t.name[0] == "u" else (-1, -5))):
        f = rvm.assemble(f"func f(x: {t}, y: {t})\n    add {k} * x, y\n    xor x * {k} + 1, y").f
        x, y = rng.randrange(modulus // 2), rng.randrange(modulus // 2)
        out = f(x=x, y=y)
        first = (x + pow(k, -1, modulus) * y) % modulus
        second = (((first * k + 1) % modulus ^ y) - 1) * pow(k, -1, modulus) % modulus
        assert out.x % modulus == second
        assert (~f)(**out) == {"x": x, "y": y}
        with pytest.raises(AssemblyError):
            rvm.assemble(f"func f(x: {t}, y: {t})\n    add {k + 1} * x, y")


@thin
@pytest.mark.parametrize("t", SCALARS)
def test_literals_of_every_type_beside_a_place(t: str) -> None:
    literals = ["2", "3", "true", "1.5", *(["1j", "2.0 - 1j"] if SCALARS[t].is_complex else [])]
    change = "not z" if SCALARS[t].is_bool else "neg z"
    read = f"alloc w: {t} = z\n    free w = z"
    assembled = 0
    for op, literal in itertools.product(("+", "-", "*", "/", "^"), literals):
        for argument in (f"z {op} {literal}", f"{literal} {op} z"):
            calls = f"func main(z: {t}, y: {t})\n    call f({argument})\n    call g(y, {argument})"
            called = f"func f(z: {t})\n    {change}\nfunc g(y: {t}, z: {t})\n    {read}"
            try:
                program = rvm.assemble(f"{calls}\n{called}").program
            except AssemblyError:
                continue
            assembled += 1
            assert encode(rvm.assemble(disassemble(program)).program) == encode(program)
    assert assembled


@pytest.mark.parametrize("t", SCALARS.values(), ids=str)
def test_what_is_refused_names_the_bijections_of_the_type(t: Scalar) -> None:
    """Each form that the hint names is taken; a product by a constant where it says so."""

    def refused(form: str, why: str = "") -> str:
        try:
            rvm.assemble(f"func f(x: {t}, y: {t})\n swap {form}, y\n")
        except AssemblyError as error:
            assert error.code == "A040" and why in str(error), str(error)
            assert f"`{form.replace('(', '').replace(')', '')}` is none" in error.notes[0]
            return error.hint
        return ""

    hint = refused("(x == x)") if t != SCALARS["bool"] else refused("(x or x)")
    forms = [text.split("`")[1] for text in hint.split(" are ")[1].split(", ")]
    assert len(forms) >= 2
    for form in forms:
        assert not refused(re.sub(r"\bc\b", "true" if t == SCALARS["bool"] else "3", form))
    if t.is_integer:
        for c in range(0 if t.name.startswith("u") else -4, 5):
            for form in (f"{c} * x", f"x * {c}"):
                assert bool(refused(form, f"{c} is even")) == (c % 2 == 0)
