"""False inverses of opcodes are refused, however rare the numbers that tell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import pytest

import rvm
from rvm.codec import decode, encode
from rvm.isa import OPCODES
from rvm.isa.define import _row
from rvm.isa.proof import _composed, _places, prove_inverse
from rvm.isa.rules import CLASSES
from rvm.isa.trials import valued
from rvm.isa.user import apply
from rvm.stmt import invert
from rvm.types import I64, SCALARS, U8, Scalar
from rvm.verify import verify

pytestmark = pytest.mark.usefixtures("clean_tables")
Body = Callable[..., Any]


def refused(*bodies: Body, **options: Any) -> str:
    """The message that refuses an opcode, or the second of a pair."""
    if len(bodies) == 2:
        rvm.opcode(name="forth", inverse="back", **options)(bodies[0])
        with pytest.raises(rvm.DefinitionError) as caught:
            rvm.opcode(name="back", inverse="forth", **options)(bodies[1])
    else:
        with pytest.raises(rvm.DefinitionError) as caught:
            rvm.opcode(name="forth", **options)(bodies[0])
    assert caught.value.code == "D006"
    return str(caught.value)


@pytest.mark.parametrize("name", [n for n, row in OPCODES.items() if row.is_data])
def test_the_table_is_proved(name: str) -> None:
    row = OPCODES[name]
    for inverse in {row.inverse, row.exact_inverse} - {""}:
        assert name in (OPCODES[inverse].inverse, OPCODES[inverse].exact_inverse)
        prove_inverse(row, OPCODES[inverse])


def choice(a: rvm.Mut, limit: Any, small: Any, large: Any) -> Any:
    return apply("select", apply("<", a, limit), small, large)


@pytest.mark.parametrize("types", ["number", "int", "i64", "real", "inexact", "value"])
@pytest.mark.parametrize("limit", [100, 100_000])
def test_an_inverse_that_holds_for_small_numbers_only(types: str, limit: int) -> None:
    def liar(a: rvm.Mut) -> Any:
        return choice(a, limit, -a, 2 * a)

    assert "does not" in refused(liar, types=types)


def test_an_inverse_that_fails_at_one_number() -> None:
    def liar(a: rvm.Mut) -> Any:
        return apply("select", apply("==", a, 123_456_789_123), a, -a)

    assert "can't be proved on i64" in refused(liar, types="i64")


FALSE_PAIRS: dict[str, tuple[Body, Body, str]] = {
    "fixed products round": (lambda a: a * 0.75, lambda a: a / 0.75, "real"),
    "integers have no half": (lambda a: a * 2, lambda a: apply("//", a, 2), "int"),
    "even factors": (lambda a: a * 6, lambda a: a * 3, "int"),
    "bits shifted out": (
        lambda a: apply("<<", a, 3),
        lambda a: apply(">>", a, 3),
        "int",
    ),
    "a square": (lambda a: a * a, lambda a: apply("sqrt", a), "inexact"),
    "rounded away": (lambda a: (a + 1e6) - 1e6, lambda a: a, "float"),
    "the other way round": (
        lambda a: apply("rotl", a, 3),
        lambda a: apply("rotl", a, 3),
        "int",
    ),
    "two xorshifts": (
        lambda a: apply("^", a, apply("<<", a, 7)),
        lambda a: apply("^", a, apply("<<", a, 7)),
        "i64",
    ),
}


@pytest.mark.parametrize("name", FALSE_PAIRS)
def test_false_pairs(name: str) -> None:
    forth, back, types = FALSE_PAIRS[name]

    def one(a: rvm.Mut) -> Any:
        return forth(a)

    def two(a: rvm.Mut) -> Any:
        return back(a)

    refused(one, two, types=types)


def multiplied(a: rvm.Mut, b: rvm.Use) -> None:
    a *= b


def divided(a: rvm.Mut, b: rvm.Use) -> None:
    a /= b


def crossed(a: rvm.Mut, b: rvm.Use) -> None:
    a ^= b


def added(a: rvm.Mut, b: rvm.Use) -> None:
    a += b


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (multiplied, "multiplies"),
        (divided, "multiplies"),
        (crossed, "bits"),
        (added, "value"),
    ],
)
@pytest.mark.parametrize("t", SCALARS.values(), ids=str)
def test_a_form_is_enough_where_the_type_has_the_update(body: Body, kind: str, t: Scalar) -> None:
    """A product of `fixed` numbers, for example, is rounded, and no quotient undoes it."""
    row = _row(body, "forth", "back", "any", "ADDS")
    back = tuple(invert(s) for s in reversed(row.body))
    inverse = replace(row, name="back", inverse="forth", body=back)
    if CLASSES[kind](t):
        prove_inverse(row, inverse, t)
    else:
        with pytest.raises(rvm.DefinitionError) as caught:
            prove_inverse(row, inverse, t)
        assert caught.value.code == "D006"


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    return apply("select", condition, then, otherwise)


def size(a: Any) -> Any:
    return apply("abs", a)


WRONG_FLOATS: dict[str, Body] = {
    "beyond 1e30": lambda a: where(a < 1e30, -a, 2 * a),
    "beyond 1e120": lambda a: where(a < 1e120, -a, 2 * a),
    "beyond 1e250": lambda a: where(a > 1e250, a * 0.5, 1 / a),
    "near the largest": lambda a: where(a > 1e308, a * 0.5, -a),
    "below 1e-16": lambda a: where(a > 1e-16, 1 / a, -a),
    "below 1e-200": lambda a: where(size(a) < 1e-200, 2 * a, -a),
    "below 1e-290": lambda a: where(size(a) < 1e-290, 3 / a, 1 / a),
    "at a number": lambda a: where(a == 7, a + 1, -a),
    "at a negative number": lambda a: where(a == -7, a + 1, -a),
    "at zero": lambda a: where(a == 0, a + 1, -a),
    "at a fixed point": lambda a: where(a == 2.5, a + 1, 5 - a),
    "near a number": lambda a: where(size(a - 7) < 1e-3, 2 * a, -a),
    "at the next number": lambda a: where(a == 7.000000000000001, 2 * a, -a),
    "by a millionth": lambda a: -a * (1 + 1e-6),
    "by the twelfth digit": lambda a: -a * (1 + 1e-12),
    "by a constant of twelve digits": lambda a: where(a > 0, a * -1.414213562373, a / -(2**0.5)),
}
RIGHT_FLOATS: dict[str, Body] = {
    "a reciprocal": lambda a: where(a == 0, a, 1 / a),
    "a large quotient": lambda a: where(a == 0, a, 1e30 / a),
    "a difference": lambda a: 5 - a,
    "a large difference": lambda a: 1e30 - a,
    "a small difference": lambda a: 1e-30 - a,
    "a part": lambda a: where(size(a) < 3, -a, a),
}


@pytest.mark.parametrize("types", ["float", "f64"])
@pytest.mark.parametrize("name", WRONG_FLOATS)
def test_wrong_at_a_few_sizes_or_numbers(name: str, types: str) -> None:
    assert "does not undo" in refused(of_one(WRONG_FLOATS[name]), types=types)


@pytest.mark.parametrize("types", ["float", "f64", "inexact", "f32", "c128"])
@pytest.mark.parametrize("name", RIGHT_FLOATS)
def test_right_at_all_sizes(name: str, types: str) -> None:
    row = _row(
        of_one(RIGHT_FLOATS[name]),
        "honest",
        "",
        "inexact" if types in ("f32", "c128") else types,
        "ADDS",
    )
    prove_inverse(row, row, *([SCALARS[types]] if types in SCALARS else []))


@pytest.mark.parametrize("low", [1e-12, 1.0])
def test_right_pairs_at_all_sizes(low: float) -> None:
    """Each loses numbers that are too large or too small for it; the error is that of rounding."""
    pairs: tuple[tuple[Body, Body], ...] = (
        (lambda a: a * low, lambda a: a / low),
        (lambda a: a + 1e10 * low, lambda a: a - 1e10 * low),
        (lambda a: 3 * a - low, lambda a: (a + low) / 3),
        (lambda a: apply("exp", a), lambda a: apply("log", a)),
        (lambda a: apply("tanh", a), lambda a: apply("atanh", a)),
        (lambda a: apply("sinh", low * a), lambda a: apply("asinh", a) / low),
    )
    for k, pair in enumerate(pairs):
        for body, name, undo in zip(pair, ("forth", "back"), ("back", "forth"), strict=True):
            rvm.opcode(name=f"{name}{k}", inverse=f"{undo}{k}", types="float")(of_one(body))


def of_one(body: Body) -> Body:
    """An opcode of one operand."""

    def one(a: rvm.Mut) -> Any:
        return body(a)

    return one


def test_true_ones_are_accepted() -> None:
    @rvm.opcode(types="number")
    def mirrored(a: rvm.Mut, b: rvm.Mut) -> Any:
        return -b, -a

    @rvm.opcode(types="int")
    def chosen(a: rvm.Mut, b: rvm.Mut, c: Annotated[rvm.Use, "bool"]) -> Any:
        flip = apply("select", c, -b, b)
        return flip, apply("select", c, -a, a)

    @rvm.opcode(types="bits")
    def crossed(a: rvm.Mut, b: rvm.Mut) -> Any:
        return apply("~", b), apply("~", a)

    @rvm.opcode(types="int", inverse="unshear")
    def shear(a: rvm.Mut, b: rvm.Mut) -> Any:
        return 2 * a + b, a + b

    @rvm.opcode(types="int", inverse="shear")
    def unshear(a: rvm.Mut, b: rvm.Mut) -> Any:
        return a - b, 2 * b - a

    odd = 0x9E3779B97F4A7C15

    @rvm.opcode(types="i64", inverse="unmix")
    def mix(a: rvm.Mut) -> Any:
        return a * (odd - (1 << 64))

    @rvm.opcode(types="i64", inverse="mix")
    def unmix(a: rvm.Mut) -> Any:
        return a * ((pow(odd, -1, 1 << 64) + (1 << 63)) % (1 << 64) - (1 << 63))

    @rvm.opcode(types="i64", inverse="unscramble")
    def scramble(a: rvm.Mut) -> Any:
        return apply("^", a, apply("<<", a, 33))

    @rvm.opcode(types="i64", inverse="scramble")
    def unscramble(a: rvm.Mut) -> Any:
        return apply("^", a, apply("<<", a, 33))

    @rvm.opcode(types="inexact")
    def reflected(a: rvm.Mut, b: rvm.Mut, t: Annotated[rvm.Use, "angle"]) -> Any:
        c, s = apply("cos", t), apply("sin", t)
        return c * a + s * b, s * a - c * b

    program = rvm.assemble(
        "func f(a: i64, b: i64)\n mix a\n shear a, b\n scramble b\n mirrored a, b\n"
    )
    out = program.f(a=3, b=-5)
    assert out.a != 3 and (~program.f)(**out) == {"a": 3, "b": -5}


def steps(rng: random.Random, count: int) -> list[tuple[str, int]]:
    """Some invertible steps on a byte."""
    kinds = ("+", "-", "^", "~", "neg", "rotl", "rotr", "*", "branch")
    return [(rng.choice(kinds), rng.randrange(1, 256)) for _ in range(count)]


def taken(node: Any, todo: list[tuple[str, int]], undo: bool) -> Any:
    """A formula that does the steps, or undoes them from the last to the first."""
    for kind, k in reversed(todo) if undo else todo:
        match kind:
            case "+" | "-":
                node = node + k if (kind == "+") != undo else node - k
            case "^":
                node = apply("^", node, k)
            case "~" | "neg":
                node = apply(kind, node)
            case "rotl" | "rotr":
                other = "rotr" if kind == "rotl" else "rotl"
                node = apply(other if undo else kind, node, k % 8)
            case "*":
                node = node * (pow(k | 1, -1, 256) if undo else k | 1)
            case "branch":
                node = apply("select", apply("<", node, k), -node, apply("~", node))
    return node


def trial(seed: int) -> str:
    """A random pair, true or damaged: one that is accepted comes back from each of 256 values."""
    rng = random.Random(seed)
    forth = steps(rng, rng.randint(1, 4))
    back = list(forth)
    if rng.random() < 0.6:
        k = rng.randrange(len(back))
        back[k] = steps(rng, 1)[0] if rng.random() < 0.5 else (back[k][0], back[k][1] ^ 1)

    def one(a: rvm.Mut) -> Any:
        return taken(a, forth, False)

    def two(a: rvm.Mut) -> Any:
        return taken(a, back, True)

    CLASSES["byte"] = lambda t: t is U8
    try:
        rvm.opcode(name=f"forth_{seed}", inverse=f"back_{seed}", types="byte")(one)
        rvm.opcode(name=f"back_{seed}", inverse=f"forth_{seed}", types="byte")(two)
    except rvm.DefinitionError:
        return "refused"
    finally:
        del CLASSES["byte"]
    rows = [OPCODES[f"{name}_{seed}"] for name in ("forth", "back")]
    there, again = (_composed(row.body, _places(row, U8)) for row in rows)
    for x in range(256):
        assert valued(again[0], [valued(there[0], [x])]) == x, (seed, forth, back, x)
    return "accepted"


def test_what_is_accepted_holds_for_every_byte() -> None:
    seen = Counter(trial(seed) for seed in range(250))
    assert seen["accepted"] > 40 and seen["refused"] > 100, seen


@pytest.mark.soak
def test_what_is_accepted_holds_for_every_byte_in_many_trials() -> None:
    print(Counter(trial(seed) for seed in range(1000, 21000)))


def test_pairs_that_are_none() -> None:
    def doubled(a: rvm.Mut) -> Any:
        return a * 2

    def negated(a: rvm.Mut) -> Any:
        return -a

    def halved(a: rvm.Mut) -> Any:
        return a * 0.5

    def added(a: rvm.Mut, b: rvm.Use) -> None:
        a += b

    def exchanged(a: rvm.Mut, b: rvm.Mut) -> None:
        rvm.exchange(a, b)

    cases: tuple[tuple[Body, dict[str, str], Body, dict[str, str]], ...] = (
        (doubled, {"inverse": "back"}, negated, {"inverse": "back"}),
        (doubled, {"inverse": "back", "types": "number"}, halved, {"types": "inexact"}),
        (doubled, {"inverse": "back", "types": "inexact"}, halved, {"types": "field"}),
        (added, {"inverse": "back"}, added, {"inverse": "sub"}),
        (exchanged, {"inverse": "back"}, added, {"inverse": "forth"}),
        (negated, {"inverse": "back", "types": "int"}, negated, {"types": "i64"}),
    )
    for one, its, two, others in cases:
        rvm.opcode(name="forth", **its)(one)
        with pytest.raises(rvm.DefinitionError) as caught:
            rvm.opcode(name="back", **({"inverse": "forth"} | others))(two)
        assert caught.value.code == "D006" and "back" not in OPCODES
        del OPCODES["forth"]
    with pytest.raises(rvm.DefinitionError, match="not a pair"):
        rvm.opcode(name="forth", inverse="sub")(added)


def test_an_opcode_is_used_when_its_inverse_is_there() -> None:
    @rvm.opcode(inverse="unraise")
    def raise_(a: rvm.Mut) -> None:
        a += 1

    text = "func f(a: i64)\n raise a\n"
    with pytest.raises(rvm.AssemblyError, match="A003"):
        rvm.assemble(text)

    @rvm.opcode(inverse="raise")
    def unraise(a: rvm.Mut) -> None:
        a -= 1

    program = rvm.assemble(text)
    assert (~program.f)(a=3).a == 2
    data = encode(program)
    del OPCODES["unraise"]
    with pytest.raises(rvm.VerifyError, match="`unraise`, which undoes `raise`"):
        verify(decode(data))


# ------------------------------------------------------------ kinds of numbers


@pytest.mark.parametrize(
    ("name", "frac"), [("f16", 0), ("", 0), ("F64", 0), ("f64", 3), ("fixed", 63), ("fixed", -1)]
)
def test_there_are_no_other_kinds_of_numbers(name: str, frac: int) -> None:
    with pytest.raises(ValueError, match=r"type|fraction"):
        Scalar(name, frac)


def test_no_class_holds_a_kind_that_it_does_not_name() -> None:
    """A scalar that got past the door is in no class but "any", and nothing computes on it."""
    from rvm.numbers import system

    odd = object.__new__(Scalar)
    object.__setattr__(odd, "name", "posit32")
    object.__setattr__(odd, "frac", 0)
    assert [name for name, holds in CLASSES.items() if holds(odd)] == ["any"]
    with pytest.raises(TypeError, match="posit32"):
        system.__wrapped__(odd)


EDGES: dict[str, tuple[Any, ...]] = {
    "bool": (False, True),
    **dict.fromkeys(("i8", "i16"), (0, 1, -1, 77, -128, 127)),
    **dict.fromkeys(("i32", "i64"), (0, 1, -1, 77, -(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys(("u8", "u16", "u32", "u64"), (0, 1, 2, 77, 255)),
    "fixed": (0, 1, -1, 1 << 43, -(1 << 63), (1 << 63) - 1),
}


@pytest.mark.parametrize("t", [t for t in SCALARS.values() if t.is_exact], ids=str)
def test_updates_of_exact_types_have_inverses(t: Scalar) -> None:
    """What `add`, `sub` and `xor` accept they undo, at the edges too."""
    from rvm.isa.implementation import value

    edges = (*EDGES[t.name], 1 << 62, (1 << 63) - 1) if t is I64 else EDGES[t.name]
    for op, undo in (("+", "-"), ("-", "+"), ("^", "^")):
        name = {"+": "add", "-": "sub", "^": "xor"}[op]
        if CLASSES[OPCODES[name].types](t):
            for x in edges:
                for v in edges:
                    there = value(op, (t, t))(x, v)
                    assert value(undo, (t, t))(there, v) == x


@pytest.mark.parametrize("options", [{"types": "f32"}, {"types": ""}, {"exact_types": "floats"}])
def test_a_class_of_types_that_does_not_exist_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(rvm.DefinitionError, match="no class of types") as caught:
        rvm.opcode(**options)(lambda a: -a)  # type: ignore[arg-type]
    assert caught.value.code == "D008"
