"""Macros, pure functions, constants, records and includes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from oracles import DOMAIN
from rvm_asm import assemble, disassemble, load

import rvm
from rvm.expr import Const
from rvm.faults import AssemblyError
from rvm.isa import FUNCTIONS
from rvm.program import Record
from rvm.types import C128, F32, F64, FIXED, I64, LOG64, U8, fixed


def body(text: str, function: int = 0) -> list[str]:
    """The strict code of one function."""
    parts = disassemble(assemble(text), positions=False).strip().split("\n\n")
    return [" ".join(line.split()) for line in parts[function].split("\n")[1:]]


TWICE = """
macro twice y, x
    alloc t: f64
    add t, x
    add y, t
    add y, t
    sub t, x
    free t
end
"""


def test_a_macro_does_not_capture_the_names_around_it() -> None:
    """The caller's t is passed for x; the macro's own t is another register."""
    code = body(TWICE + "func f(y: f64)\n alloc t: f64 = 2\n twice y, t\n free t = 2")
    assert code == [
        "alloc t: f64 = 2.0", "alloc t#1: f64", "add t#1, t", "add y, t#1", "add y, t#1",
        "sub t#1, t", "free t#1", "free t = 2.0",
    ]  # fmt: skip


def test_nothing_of_a_macro_is_seen_outside() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(TWICE + "func f(y: f64)\n twice y, 1\n add y, t")
    assert caught.value.code == "A005"


def test_two_uses_share_their_registers_and_not_their_labels() -> None:
    macro = "macro m y\nL: br y == 9, M\nM: cf y == 8, L\n alloc t: i64\n free t\nend\n"
    program = assemble(macro + "func f(y: i64)\n m y\n m y")
    function = program.functions[0]
    assert [i.aux for i in function.code if i.op in ("br", "cf")] == [1, 0, 5, 4]
    assert [r.name for r in function.registers] == ["y", "t"]


def test_ancillas_that_a_macro_leaves_live_are_distinct() -> None:
    """In a routine a macro may make ancillas that only `undo` frees."""
    text = "macro m y, x\n alloc t: f64\n add t, x\n add y, t\nend\n"
    text += "func f(y: f64, x: f64)\n routine r\n  m y, x\n  m y, 2 * x\n end\n undo r\nkeep none"
    assert body(text, 1) == [
        "alloc t: f64", "add t, x", "add y, t",
        "alloc t#1: f64", "add t#1, 2.0 * x", "add y, t#1",
        "sub y, t#1", "sub t#1, 2.0 * x", "free t#1",
        "sub y, t", "sub t, x", "free t",
    ]  # fmt: skip


def test_macros_in_macros() -> None:
    text = "macro a p\n b p, p.im\nend\nmacro b q, r\n inc r\n neg q.re\nend\nfunc f(z: c128)\n a z"
    assert body(text) == ["inc z.im", "neg z.re"]


def test_operands_are_put_in_as_a_whole() -> None:
    """An operand is an expression, not a piece of text."""
    text = "macro m y, x\n add y, 2 * x\nend\nfunc f(y: i64, a: i64)\n m y, a + 1"
    assert body(text) == ["add y, 2 * (a + 1)"]


def test_pure_functions() -> None:
    text = "pure sq(a) = a * a\npure norm2(v, w) = sq(v) + sq(w - 1)\n"
    text += "func f(y: f64, x: f64, a: f64)\n add y, norm2(x, a)"
    assert body(text) == ["add y, x * x + (a - 1.0) * (a - 1.0)"]


def test_constants_in_any_order() -> None:
    text = "const A = B * 2 + C\nconst B = 3\nconst C = max(1, 2) ** 2\nfunc f(x: f64, i: i64)\n"
    assert body(text + " add x, A\n add i, A") == ["add x, 10.0", "add i, 10"]
    assert body("const H = pi / 4\nfunc f(x: f64)\n add x, H") == [f"add x, {math.pi / 4!r}"]


def test_constants_have_the_bits_of_a_run() -> None:
    """Every function of real numbers that has a domain, in the midst of it."""
    rows = [FUNCTIONS[n] for n in DOMAIN if n.isidentifier() and FUNCTIONS[n].is_elementwise]
    calls = {
        r.name: f"{r.name}({', '.join(str(0.375 * lo + 0.625 * hi) for lo, hi in DOMAIN[r.name])})"
        for r in rows
    }
    assert {"erf", "cbrt", "tanh", "exp2", "atan2"} < calls.keys()
    given = [f"const C_{name} = {call}" for name, call in calls.items()]
    params = ", ".join(f"y_{name}: f64, z_{name}: f64" for name in calls)
    body = [f"  add y_{n}, C_{n}\n  add z_{n}, {call}" for n, call in calls.items()]
    text = "\n".join([*given, f"func f({params})", *body])
    found = rvm.assemble(text).f(**{f"{v}_{n}": 0.0 for n in calls for v in "yz"})
    for name in calls:
        assert found[f"y_{name}"] == found[f"z_{name}"], name


def test_a_register_hides_a_constant_of_its_name() -> None:
    assert body("func f(x: f64, tau: f64)\n add x, tau") == ["add x, tau"]


@pytest.mark.parametrize(
    ("literal", "value", "t"),
    [
        ("3'u8", 3, U8),
        ("0.1'f32", 0.10000000149011612, F32),
        ("1'fixed(30)", 1, fixed(30)),
        ("-5'fixed", -5, FIXED),
        ("-0.5'log64", -0.5, LOG64),
        ("(1.0, -0.0)'c128", complex(1.0, -0.0), C128),
        ("0x10'i64", 16, I64),
        ("-inf'f64", -math.inf, F64),
    ],
)
def test_typed_literals(literal: str, value: object, t: object) -> None:
    program = assemble(f"func f(x: {t})\n swap x, x\n extern forward\n  print {literal}\n end")
    assert program.functions[0].code[1].args == (Const(value, t),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 - 2.3j", complex(2, -2.3)),
        ("-2.3j", complex(0.0, -2.3)),
        ("-1.5 + 0j", complex(-1.5, 0.0)),
        ("(0.5 - 0.0j)", complex(0.5, -0.0)),
    ],
)
def test_complex_literals_are_one_constant(text: str, value: complex) -> None:
    program = assemble(f"func f(z: c128)\n add z, {text}")
    assert program.functions[0].code[0].args[1] == Const(value, C128)


def test_decimals_of_fixed_numbers_are_exact() -> None:
    """More digits than a float holds."""
    program = assemble("func f(x: fixed)\n add x, 123456.7890123456789")
    exact = (1234567890123456789 * 2**43 * 2 + 10**13) // (2 * 10**13)
    assert program.functions[0].code[0].args[1] == Const(exact, FIXED)


RECORDS = """
record Vec
    x: f64
    y: f64
end
record Body
    pos: Vec
    trail: f64[3]
    m: f64
end
"""


def test_records_are_flattened() -> None:
    program = assemble(RECORDS + "func f(b: Body, bs: Body[n])\n inc b.m")
    function = program.functions[0]
    assert [(r.name, str(r.type)) for r in function.registers] == [
        ("b.pos.x", "f64"), ("b.pos.y", "f64"), ("b.trail", "f64[:]"), ("b.m", "f64"),
        ("bs.pos.x", "f64[:]"), ("bs.pos.y", "f64[:]"), ("bs.trail", "f64[:, :]"),
        ("bs.m", "f64[:]"),
    ]  # fmt: skip
    assert function.params[0].layout == Record(
        "Body", (("pos", Record("Vec", (("x", 0), ("y", 1)))), ("trail", 2), ("m", 3))
    )
    assert function.param_slots == tuple(range(8))


def test_fields_of_arrays_of_records() -> None:
    head = "func f(e: f64, b: Body[n], i: i64)\n"
    assert body(RECORDS + head + " add e, b[i].pos.x * b[i].trail[2]") == [
        "add e, b.pos.x[i] * b.trail[i, 2]"
    ]
    assert body(RECORDS + head + " add e, b.m[i] + b[1:3].m[i]") == ["add e, b.m[i] + b.m[1:3][i]"]


def test_records_are_passed_made_and_exchanged_as_a_whole() -> None:
    text = RECORDS + "func g(v: Vec)\n neg v.x\nfunc f(b: Body[n], v: Vec)\n"
    text += " call g(b[0].pos)\n alloc w: Vec\n swap v, w\n swap w, v\n free w"
    assert body(text, 1) == [
        "call g(b.pos.x[0], b.pos.y[0])", "alloc w.x: f64", "alloc w.y: f64",
        "swap v.x, w.x", "swap v.y, w.y", "swap w.x, v.x", "swap w.y, v.y",
        "free w.y", "free w.x",
    ]  # fmt: skip


def test_the_same_record_twice_as_inout_is_refused() -> None:
    text = RECORDS + "func g(v: Vec, w: Vec)\n inc v.x\nfunc f(v: Vec)\n call g(v, v)"
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    assert [d.code for d in caught.value.diagnostics] == ["A014"]


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.rasm").write_text(
        'include "a.rasm"\ninclude "b.rasm"\nfunc f(x: f64)\n inc x\n'
    )
    (tmp_path / "a.rasm").write_text('include "b.rasm"\nfunc a(x: f64)\n call b(x)\n')
    (tmp_path / "lib" / "b.rasm").write_text('include "../a.rasm"\nfunc b(x: f64)\n add x, 2\n')
    program = load(tmp_path / "main.rasm", include_path=(tmp_path / "lib",))
    assert list(program) == ["b", "a", "f"]
    assert [Path(s.name).name for s in program.sources] == ["main.rasm", "a.rasm", "b.rasm"]
    span = program.function("b").span(0)
    assert program.sources[span.source].line(span.line) == " add x, 2"


def test_errors_in_included_files_name_them(tmp_path: Path) -> None:
    (tmp_path / "main.rasm").write_text('include "a.rasm"\nfunc f(x: f64)\n bump x\n')
    (tmp_path / "a.rasm").write_text("macro bump y\n add y, z\nend\n")
    with pytest.raises(AssemblyError) as caught:
        load(tmp_path / "main.rasm")
    found = caught.value.diagnostics[0]
    assert (Path(found.where.source).name, found.where.line) == ("a.rasm", 2)
    assert "in the expansion of `bump`" in found.notes[0] and "main.rasm:3:2" in found.notes[0]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends(end: str) -> None:
    text = end.join(["func f(x: f64)", "    add x, 1 + \\ ; goes on", "  2", "    inc x"])
    program = assemble(text)
    assert [i.op for i in program.functions[0].code] == ["add", "inc"]
    assert program.functions[0].span(1).line == 4
