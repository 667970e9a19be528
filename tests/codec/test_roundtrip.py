"""What is written is read again, bit for bit, and the same program always gives the same bytes."""

from __future__ import annotations

import math
import struct
import time

import pytest
from attack.programs.blind import random_program
from sizes import part, sized, wide
from verify.making import Maker, array, program

from rvm.codec import MAGIC, decode, encode
from rvm.expr import Apply, Const, Expr
from rvm.faults import BytecodeError
from rvm.program import Function, Param, Program, Record, Register, Source, Span
from rvm.types import C128, F32, F64, FIXED, I64, LOG64, U8, U64, Scalar, fixed

pytestmark = pytest.mark.smoke


@sized
def test_random_programs() -> None:
    for seed in range(part(150)):
        p = random_program(seed)
        data = encode(p)
        q = decode(data)
        assert q == p
        assert encode(q) == data


def one_constant(value: object, t: Scalar) -> Const:
    m = Maker("f")
    m.raw("print", Const(value, t), aux=1)
    ((instr,),) = (f.code for f in decode(encode(program(m))).functions)
    (node,) = instr.args
    assert isinstance(node, Const)
    assert node.type == t
    return node


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_DEAD_BEEF))[0]


@pytest.mark.parametrize(
    "x", [0.0, -0.0, 5e-324, -1e308, math.inf, -math.inf, math.nan, -math.nan, PAYLOAD]
)
@pytest.mark.parametrize("t", [F64, LOG64])
def test_floats_keep_every_bit(x: float, t: Scalar) -> None:
    assert bits(one_constant(x, t).value) == bits(x)
    z = one_constant(complex(x, -x), C128).value
    assert (bits(z.real), bits(z.imag)) == (bits(x), bits(-x))


def test_zeros_and_nans_of_different_bits_are_different_constants() -> None:
    m = Maker("f")
    values = [0.0, -0.0, math.nan, PAYLOAD, 0.0]
    for x in values:
        m.raw("print", Const(x, F64), aux=1)
    code = decode(encode(program(m))).functions[0].code
    assert [bits(i.args[0].value) for i in code] == [bits(x) for x in values]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "t"),
    [
        (-(2**63), I64), (2**64 - 1, U64), (255, U8), (-(2**63), FIXED), (7, fixed(0)),
        (1.5, F32), (math.inf, F32), (True, Scalar("bool")),
    ],
)  # fmt: skip
def test_extreme_values(value: object, t: Scalar) -> None:
    assert one_constant(value, t).value == value


def test_names_texts_layouts_and_spans() -> None:
    inner = Record("é", (("re", 0), ("", 1)))
    layout = Record("outer", (("a", inner), ("b", Record("empty", ())), ("c", 2)))
    registers = tuple(Register(f"x{k}", F64) for k in range(3))
    f = Function("main", (Param("p", layout),), registers, (), (Span(), Span(0, 1 << 31, 7, 9)), ())
    p = Program((f,), "elsewhere", (Source("a b.rasm", "text\n\0 and more"), Source("", "")))
    q = decode(encode(p))
    assert q == p
    assert q.sources == p.sources
    assert q.entry == "elsewhere"


def test_an_empty_program() -> None:
    p = Program((), "")
    data = encode(p)
    assert data.startswith(MAGIC)
    assert decode(data) == p


def test_equal_parts_are_written_and_built_once() -> None:
    m = Maker("f", y=I64, x=array(I64))
    for _ in range(50):
        m.op("add", m["y"], Apply("+", (m.elem("x", 1), m.elem("x", 1))))
    (f,) = decode(encode(program(m))).functions
    first = f.code[0].args[1]
    assert isinstance(first, Apply)
    assert first.args[0] is first.args[1]
    assert all(i.args[1] is first for i in f.code)


def test_one_register_number_has_the_type_of_its_function() -> None:
    f, g = Maker("f", x=I64), Maker("g", x=F64)
    f.op("add", f["x"], 1)
    g.op("add", g["x"], 1)
    one, two = decode(encode(program(f, g))).functions
    assert (one.code[0].args[0].type, two.code[0].args[0].type) == (I64, F64)


UNWRITABLE: list[tuple[str, Expr]] = [
    ("a template", Const(1.0)),
    ("a value out of range", Const(300, U8)),
    ("a value of another kind", Const("x", I64)),
]


@pytest.mark.parametrize(("name", "node"), UNWRITABLE, ids=[n for n, _ in UNWRITABLE])
def test_what_no_file_can_hold_is_not_written_or_not_read(name: str, node: Expr) -> None:
    m = Maker("f")
    m.raw("print", node, aux=1)
    with pytest.raises(BytecodeError) as caught:
        decode(encode(program(m)))
    assert caught.value.code in ("B018", "B009")


def test_b018_too_many_operands_and_too_deep() -> None:
    m = Maker("f", x=I64)
    m.raw("print", *[m["x"]] * 256, aux=1)
    with pytest.raises(BytecodeError) as caught:
        encode(program(m))
    assert caught.value.code == "B018"
    m = Maker("f", x=I64)
    node: Expr = m["x"]
    for _ in range(100):
        node = Apply("neg", (node,), I64)
    m.raw("print", node, aux=1)
    with pytest.raises(BytecodeError) as caught:
        encode(program(m))
    assert caught.value.code == "B018"


@wide
def test_a_hundred_thousand_instructions_in_seconds() -> None:
    m = Maker("f", s=I64, x=array(I64), i=I64)
    product = m.op("add", m.elem("x", m["i"]), Apply("*", (m["s"], Const(3))))
    m.code *= 50_000
    other = m.op("inc", m["i"])
    m.code.extend([other] * 49_999)
    p = program(m)
    start = time.thread_time()
    q = decode(encode(p))
    assert time.thread_time() - start < 6.0
    assert q.functions[0].code[0] == product
    assert len(q.functions[0].code) == 100_000
