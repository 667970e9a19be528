"""Disassembly assembles to the very same program and bytes."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
from attack.programs.blind import random_program
from hypothesis import given
from hypothesis import strategies as st
from rvm_asm import assemble, disassemble, expand
from sizes import examples, part, sized, some, thin

from rvm.codec import encode
from rvm.codes.templates import escaped
from rvm.expr import Const, Expr, Place
from rvm.faults import AssemblyError, VerifyError
from rvm.isa import apply
from rvm.program import Function, Instr, Param, Program, Register
from rvm.transform import gradient, invert
from rvm.types import (
    BOOL,
    C128,
    F32,
    F64,
    FIXED,
    I32,
    I64,
    LOG64,
    U8,
    U64,
    Scalar,
    fixed,
)
from rvm.verify import verify

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.rasm"))


def same(program: Program) -> None:
    """Whether the program comes back from its text, positions and bytes included."""
    text = disassemble(program)
    back = assemble(text)
    assert back == program, text
    assert encode(back) == encode(program)


@pytest.mark.parametrize("seed", range(part(150)))
@sized
def test_random_programs(seed: int) -> None:
    same(random_program(seed))


@pytest.mark.parametrize("seed", range(part(40)))
@sized
def test_inverses_of_random_programs(seed: int) -> None:
    same(invert(random_program(seed)))


@thin
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
@some
def test_examples(path: Path) -> None:
    program = assemble(path.read_text(encoding="utf-8"), path.name, path=path, includes="below")
    same(program)
    same(invert(program))
    same(expand(program))


@thin
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
@some
def test_gradients_of_examples(path: Path) -> None:
    """Programs that no text was written for: their names and lengths are made up."""
    same(
        gradient(assemble(path.read_text(encoding="utf-8"), path.name, path=path, includes="below"))
    )


def test_fresh_and_drop() -> None:
    text = "func f(x: f64)\n fresh t: f64\n add t, x\n drop t\n fresh t\n drop t\n"
    same(assemble(text))
    same(invert(assemble(text)))


def test_without_positions_the_code_is_the_same() -> None:
    program = random_program(4)
    back = assemble(disassemble(program, positions=False))
    for one, two in zip(program.functions, back.functions, strict=True):
        assert (one.code, one.registers, one.params, one.dims) == (
            two.code, two.registers, two.params, two.dims
        )  # fmt: skip
        assert len(two.spans) == len(two.code)


def test_disassembly_is_strict_code() -> None:
    """One instruction a line: nothing structured is left, whatever it was made from."""
    text = (
        "macro m y\n inc y\nend\nfunc f(x: i64, n: i64)\n routine r\n  for i = 0 to n\n   m x\n"
        "  end\n end\n if x > 0\n  inc n\n else\n  dec n\n end x > 1\n undo r\n"
    )
    for line in disassemble(assemble(text), positions=False).splitlines():
        word = re.sub(r"^L\d+:", "", line).split()
        assert not word or word[0] in {
            "func", "alloc", "free", "br", "cf", "add", "sub", "inc", "dec"
        }  # fmt: skip


# Arguments.

# fmt: off
ARGUMENTS = (
    "y", "v[1]", "z.re", "2.0", "x", "-y", "-v[0]", "y + 1", "1 - y", "y + x", "2 * y", "0 * y",
    "y * y", "y * x", "sin(y)", "-(y + 1)", "-sin(y)", "f64(y)", "f64(-y)", "-i", "f64(k)",
    "choose(x > 0, -y, y)",
)
"""What may be passed for a number that a function changes: places, bijections of them, values."""
MAPPED_ARGUMENTS = (
    "v", "v[:]", "-v", "v + 1", "1 - v", "2 * v", "v * v", "-(v + x)", "sin(v)", "2.0",
)
CALLS = (
    "g(%s, x)", "same(%s, x)", "whole(%s, x)", "g'(%s, x; 1, b)", "g'(%s, x; _, b)",
    "g'(%s, x; b, _)", "g'(0, x; %s, b)", "g'(0, %s; 1, b)", "g~'(%s, x; 1, b)", "g.(%s, x; 1, 2)",
    "h(g, %s, x)", "g'.(%s, x, 1, b; 1, 1, 1, c)", "h'(g, %s, x; 1, b)",
)
MAPPED = (
    "g(%s, x)", "g(%s, w)", "g'(%s, x; w, b)", "g'(x, %s; w, u)", "g'(w, 2; %s, b)",
    "g~'(%s, x; w, b)", "g.(%s, x; w, 2)", "h'(g, %s, x; w, b)",
)
# fmt: on
PASSING = """entry w
func g(y: f64, x: f64)
    add y, x * x
func same(y: f64, x: f64)
    add y, x
    sub y, x
func whole(p: i64, x: f64)
    add p, 1
func h[T: real](f: func(T, T), y: T, x: T)
    call f(y, x)
func w(y: f64, x: f64, b: f64, c: f64, v: f64[n], w: f64[n], t: f64[n], u: f64[n], z: c128, k: i64)
    for i = 0 to 1
        %s %s
    end
"""


@thin
@pytest.mark.parametrize("op", ["call", "uncall", "map", "unmap"])
@sized
def test_what_is_passed_is_passed_by_the_disassembly_too(op: str) -> None:
    """Each form of an argument in each kind of call: values stay values, bijections are turned."""
    forms, args = (MAPPED, MAPPED_ARGUMENTS) if "map" in op else (CALLS, ARGUMENTS)
    calls = [call % arg for call in forms for arg in args]
    tried = random.Random(op).sample(calls, part(len(calls)))
    fine = 0
    for call in tried:
        try:
            program = assemble(PASSING % (op, call))
        except AssemblyError:
            continue
        fine += 1
        same(program)
    assert 2 * fine > len(tried)


def test_only_texts_that_would_be_read_otherwise_keep_values() -> None:
    for line, values in (
        ("g(y + 1, x)", False),
        ("g'(y + 1, x; 1, b)", True),
        ("g'(y * y, x; 1, b)", False),
        ("whole(-i, x)", True),
    ):
        assert ("keep values" in disassemble(assemble(PASSING % ("call", line)))) == values, line


# Constants.

FLOATS = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan])
SINGLE = st.floats(width=32, allow_nan=False) | st.just(math.nan)
RAW: dict[Scalar, st.SearchStrategy[object]] = {
    BOOL: st.booleans(),
    I32: st.integers(-(1 << 31), (1 << 31) - 1),
    I64: st.integers(-(1 << 63), (1 << 63) - 1),
    U8: st.integers(0, 255),
    U64: st.integers(0, (1 << 64) - 1),
    F32: SINGLE,
    F64: FLOATS,
    LOG64: FLOATS,
    C128: st.builds(complex, FLOATS, FLOATS),
    FIXED: st.integers(-(1 << 63), (1 << 63) - 1),
    fixed(0): st.integers(-(1 << 63), (1 << 63) - 1),
    fixed(62): st.integers(-(1 << 63), (1 << 63) - 1),
}


def holding(*instrs: Instr, types: tuple[Scalar, ...] = (F64,)) -> Program:
    """A program of these instructions, over parameters of these types."""
    registers = tuple(Register(f"x{k}", t) for k, t in enumerate(types))
    params = tuple(Param(r.name, k) for k, r in enumerate(registers))
    return Program((Function("f", params, registers, instrs),), "f")


@st.composite
def constants(draw: st.DrawFn) -> Const:
    t = draw(st.sampled_from(sorted(RAW, key=str)))
    return Const(draw(RAW[t]), t)


@given(constants())
@examples(400)
def test_constants_where_a_place_decides_their_type(const: Const) -> None:
    assert const.type is not None
    op = {BOOL: "xor", LOG64: "mul"}.get(const.type, "add")
    place = Place(0, (), const.type)
    same(holding(Instr(op, (place, const)), types=(const.type,)))


@given(constants())
@examples(400)
def test_constants_where_nothing_decides_their_type(const: Const) -> None:
    same(holding(Instr("print", (const,), 1, "text")))


@given(st.lists(constants(), min_size=2, max_size=2), st.sampled_from(["==", "!="]))
@examples(200)
def test_constants_that_decide_each_others_type(pair: list[Const], sign: str) -> None:
    a = pair[0]
    b = Const(pair[1].value, a.type) if pair[1].type == a.type else a
    same(holding(Instr("assert", (apply(sign, a, b),), 3)))


# Expressions.

LEAVES: list[Expr] = [Place(0, (), F64), Place(1, (), I64), Place(2, (), BOOL)]
REALS = ["+", "-", "*", "/", "**", "min", "atan2", "//", "%"]
INTEGERS = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "**"]


@st.composite
def expressions(draw: st.DrawFn, t: Scalar, depth: int = 4) -> Expr:
    """A typed expression with all kinds of signs and literals in it."""
    kind = draw(st.integers(0, 5 if depth else 1))
    if kind == 0:
        return next(p for p in LEAVES if p.type == t)
    if kind == 1:
        values = {F64: FLOATS, I64: RAW[I64], BOOL: st.booleans()}[t]
        return Const(draw(values), t)
    inner = expressions(t, depth - 1)
    if t == BOOL:
        if kind == 2:
            return apply(draw(st.sampled_from(["not", "~"])), draw(inner))
        if kind == 3:
            other = draw(st.sampled_from([F64, I64]))
            side = expressions(other, depth - 1)
            sign = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
            return apply(sign, draw(side), draw(side))
        sign = draw(st.sampled_from(["and", "or", "&", "|", "^"]))
        return apply(sign, draw(inner), draw(inner))
    if kind == 2:
        return apply("neg", draw(inner))
    if kind == 3:
        return apply("select", draw(expressions(BOOL, depth - 1)), draw(inner), draw(inner))
    sign = draw(st.sampled_from(REALS if t == F64 else INTEGERS))
    return apply(sign, draw(inner), draw(inner))


@given(st.sampled_from([F64, I64, BOOL]).flatmap(lambda t: expressions(t)))
@examples(600)
def test_expressions(node: Expr) -> None:
    same(holding(Instr("print", (node,), 2), types=(F64, I64, BOOL)))


# Names and texts.

NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.sampled_from(
    ["and", "x.y", "i.end", "z.re", "a b", "`", "\\", "t#1", "L1", "end", "", "\n", "é"]
)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), st.lists(NAMES, max_size=5))
@examples(300)
def test_names(params: list[str], locals_: list[str]) -> None:
    """Any names, those of locals as often as they like."""
    registers = tuple(Register(n, F64) for n in (*params, *locals_))
    places = [Place(k, (), F64) for k in range(len(registers))]
    zero = Const(0.0, F64)
    order = range(len(params), len(registers))
    code = (
        *(Instr("alloc", (places[k], zero)) for k in order),
        *(Instr("add", (places[k], places[0])) for k in order),
        *(Instr("sub", (places[k], places[0])) for k in order),
        *(Instr("free", (places[k], zero)) for k in reversed(order)),
    )
    layout = tuple(Param(n, k) for k, n in enumerate(params))
    same(Program((Function(params[0], layout, registers, code),), params[0]))


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_texts(text: str) -> None:
    kept = escaped(text)
    program = holding(Instr("print", (), 1, kept), Instr("assert", (Const(True, BOOL),), 2, kept))
    same(program)


@pytest.mark.parametrize("text", ["{", "}", "{x}", "{}", "{:x}", "a {{}"])
def test_a_brace_that_no_value_fills_is_refused_in_bytecode_too(text: str) -> None:
    for instr in Instr("print", (), 1, text), Instr("assert", (Const(True, BOOL),), 2, text):
        with pytest.raises(VerifyError) as caught:
            verify(holding(instr))
        assert [d.code for d in caught.value.diagnostics] == ["A044"]


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=1, max_size=3))
def test_sources_are_kept(lines: list[str]) -> None:
    """The source text comes back from the comments, whatever stands in it."""
    from dataclasses import replace

    from rvm.program import Source, Span

    program = holding(Instr("inc", (Place(0, (), F64),)))
    function = replace(program.functions[0], spans=(Span(0, 7, 2, 9),))
    same(replace(program, functions=(function,), sources=(Source('a"b.rasm', "\n".join(lines)),)))


def test_position_comments_that_say_nothing_are_comments() -> None:
    text = "func f(x: f64)\n inc x ;@ here\n"
    assert assemble(text).functions[0].span(0).line == 2
    with pytest.raises(AssemblyError):
        assemble("func f(x: f64) ;@ 1:2-3\n inc y\n")
