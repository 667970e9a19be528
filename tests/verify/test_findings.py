"""Every code of the verifier, each with the program that must not pass and one that may."""

from __future__ import annotations

from dataclasses import replace

import pytest
from verify.making import Maker, array, program

from rvm.expr import Apply, Const, Expr, Formal, Index, Part, Place, Span, Transposed
from rvm.faults import VerifyError
from rvm.isa import place, typed
from rvm.isa.typing import MAX_NODES
from rvm.program import Dim, Instr, Param, Program, Record, Register, Source
from rvm.program import Span as SourceSpan
from rvm.types import BOOL, C128, F64, I64, U8, Array, Scalar, Stack
from rvm.verify import Finding, findings, verify
from rvm.verify.nodes import MAX_DEPTH

pytestmark = pytest.mark.smoke

TRUE = Const(True, BOOL)


def found(*makers: Maker) -> list[tuple[str, int]]:
    return [(f.code, f.pc) for f in findings(program(*makers))]


def only(*makers: Maker) -> Finding:
    (finding,) = findings(program(*makers))
    return finding


def zero(m: Maker, name: str) -> Expr:
    return typed(Apply("==", (m[name], Const(0))))


# --- aliasing


def test_a013_a_destination_that_its_value_reads() -> None:
    m = Maker("f", x=F64, y=F64)
    m.op("add", m["x"], Apply("*", (m["x"], m["y"])))
    f = only(m)
    assert (f.code, f.function, f.pc) == ("A013", "f", 0)
    assert f.message == "the destination `x` is also read by the expression"
    assert "alloc t: f64 / add t, x * y" in f.hint
    instr = m.code[0]
    assert [text for _, text in f.labels] == ["written here", "read here"]
    assert f.labels[0][0] is instr.args[0]
    assert f.labels[1][0] is instr.args[1].args[0]  # type: ignore[attr-defined]


def test_a013_reads_in_indices_count_lengths_do_not() -> None:
    m = Maker("f", i=I64, p=array(I64))
    m.op("add", m["i"], m.elem("p", m["i"]))
    assert found(m) == [("A013", 0)]
    m = Maker("f", p=array(I64))
    m.op("add", m.elem("p", 0), m.length("p"))
    assert found(m) == []


def test_a013_elements_apart_pass_and_unknown_ones_are_for_the_run() -> None:
    m = Maker("f", x=array(), i=I64, j=I64)
    m.op("add", m.elem("x", m["i"]), m.elem("x", Apply("+", (m["i"], Const(1)))))
    m.op("add", m.elem("x", m["i"]), m.elem("x", m["j"]))
    m.op("add", m.elem("x", m["i"]), m.elem("x", m["i"]))
    assert found(m) == [("A013", 2)]


def test_a013_the_condition_of_a_guarded_exchange() -> None:
    m = Maker("f", a=BOOL, b=BOOL)
    m.op("cswap", m["a"], m["a"], m["b"])
    assert found(m) == [("A013", 0)]


def test_a013_an_ancilla_whose_value_needs_itself() -> None:
    m = Maker("f", x=I64)
    t = m.local("t")
    m.op("alloc", t, m["x"])
    m.op("free", t, t)
    assert found(m) == [("A013", 1)]


def test_a014_one_array_for_two_parameters_of_which_one_is_changed() -> None:
    g = Maker("g", y=array(), x=array())
    g.op("add", g["y"], g["x"])
    m = Maker("f", a=array(), b=array())
    m.op("call", m["a"], m["b"], symbol="g")
    m.op("call", m["a"], m["a"], symbol="g")
    m.op("uncall", m["a"], m["a"], symbol="g")
    assert found(m, g) == [("A014", 1), ("A014", 2)]


def test_a014_through_views_and_through_another_call() -> None:
    h = Maker("h", y=array(), x=array())
    h.op("add", h["y"], h["x"])
    g = Maker("g", y=array(), x=array())
    g.op("uncall", g["y"], g["x"], symbol="h")
    m = Maker("f", a=array(F64, 2), i=I64)
    row = m.elem("a", m["i"])
    same = m.at("a", Transposed(), Index((Span(), m["i"])))
    after = m.elem("a", Apply("+", (m["i"], Const(1))))
    m.op("call", row, same, symbol="g")
    m.op("call", row, after, symbol="g")
    assert found(m, g, h) == [("A014", 0)]


def test_a014_read_only_parameters_may_share() -> None:
    g = Maker("g", y=array(), x=array(), z=array())
    g.op("add", g["y"], Apply("*", (g["x"], g["z"])))
    m = Maker("f", a=array(), b=array())
    m.op("call", m["a"], m["b"], m["b"], symbol="g")
    assert found(m, g) == []


def test_a014_a_value_that_reads_what_the_callee_changes() -> None:
    g = Maker("g", y=I64, x=I64)
    g.op("add", g["y"], g["x"])
    m = Maker("f", a=I64)
    m.op("call", m["a"], Apply("+", (m["a"], Const(1))), symbol="g")
    assert found(m, g) == [("A014", 0)]


def test_a014_records_are_their_leaves() -> None:
    pair = Record("pair", (("p", 0), ("q", 1)))
    g = Maker("g", p=F64, q=F64, r=F64)
    g.params = (Param("a", pair), Param("b", 2))
    g.op("add", g["q"], g["r"])
    m = Maker("f", x=F64, y=F64)
    m.op("call", m["x"], m["y"], m["y"], symbol="g")
    m.op("call", m["x"], m["y"], m["x"], symbol="g")
    assert found(m, g) == [("A014", 0)]


def test_a015_a_place_found_by_what_is_written() -> None:
    m = Maker("f", i=I64, p=array(I64))
    m.op("swap", m["i"], m.elem("p", m["i"]))
    m.op("add", m.elem("p", m.elem("p", 0)), 1)
    assert found(m) == [("A015", 0)]  # x[x[0]] may be x[1]: the run checks
    g = Maker("g", k=I64, y=F64)
    g.op("inc", g["k"])
    m = Maker("f", i=I64, x=array())
    m.op("call", m["i"], m.elem("x", m["i"]), symbol="g")
    assert found(m, g) == [("A015", 0)]


def test_a016_two_places_that_overlap() -> None:
    m = Maker("f", x=array(), t=F64, i=I64)
    one = m.elem("x", m["i"])
    m.op("rot", one, m.elem("x", m["i"]), m["t"])
    left = m.elem("x", Span(Const(0), Const(3)))
    m.op("swap", left, m.elem("x", Span(Const(1), Const(4))))
    m.op("swap", one, m.elem("x", m["i"]))  # a place may be exchanged with itself
    m.op("swap", left, m.elem("x", Span(Const(3), Const(6))))
    assert found(m) == [("A016", 0), ("A016", 1)]


# --- jumps


def test_a020_jumps_that_do_not_name_each_other() -> None:
    m = Maker("f", n=I64)
    m.op("br", zero(m, "n"), aux=2)
    m.op("br", zero(m, "n"), aux=2)
    m.op("cf", zero(m, "n"), aux=1)
    assert found(m) == [("A020", 0)]
    m = Maker("f", n=I64)
    m.op("br", zero(m, "n"), aux=0)
    m.op("br", zero(m, "n"), aux=3)
    m.op("cf", zero(m, "n"), aux=3)
    m.op("inc", m["n"])
    assert found(m) == [("A020", 0), ("A020", 1), ("A020", 2)]


@pytest.mark.parametrize("aux", [-1, 1, 99])
def test_a021_a_jump_out_of_the_function(aux: int) -> None:
    m = Maker("f", n=I64)
    m.op("br", zero(m, "n"), aux=aux)
    assert found(m) == [("A021", 0)]


# --- live sets


def test_a030_use_before_alloc_and_after_free() -> None:
    m = Maker("f", y=I64)
    t, u = m.local("t"), m.local("u")
    m.op("add", m["y"], t)
    m.op("alloc", t, 0)
    m.op("free", t, 0)
    m.op("alloc", u, 0)
    m.op("free", u, 0)
    m.op("add", m["y"], u)
    assert found(m) == [("A030", 0), ("A030", 5)]
    v = m.local("v")
    m.op("free", v, 0)
    assert found(m)[-1] == ("A030", 6)


def test_a030_the_length_of_an_ancilla_needs_what_is_not_live() -> None:
    m = Maker("f", y=I64)
    n = m.local("n")
    t = m.local("t", array(), n)
    m.op("alloc", t, 0.0)
    m.op("free", t, 0.0)
    assert found(m) == [("A030", 0)]


def test_a030_in_a_condition_that_is_only_asked_when_landed_on() -> None:
    m = Maker("f", n=I64)
    t = m.local("t")
    m.op("br", zero(m, "n"), aux=3)
    m.op("inc", m["n"])
    m.op("br", TRUE, aux=4)
    m.op("cf", TRUE, aux=0)
    m.op("cf", Apply("!=", (t, Const(0))), aux=2)
    assert found(m) == [("A030", 4)]


def test_a031_alloc_of_what_is_live() -> None:
    m = Maker("f", y=I64)
    t = m.local("t")
    m.op("alloc", t, 0)
    m.op("alloc", t, 0)
    m.op("free", t, 0)
    assert found(m) == [("A031", 1)]
    m = Maker("f", y=I64)
    m.op("alloc", m["y"], 0)
    assert found(m) == [("A031", 0)]


def test_a032_is_reported_where_the_ancilla_was_made() -> None:
    m = Maker("f", y=I64)
    t = m.local("t")
    m.op("inc", m["y"])
    m.op("alloc", t, 0)
    m.op("inc", t)
    f = only(m)
    assert (f.code, f.pc, f.message) == ("A032", 1, "`t` is not freed")


def test_a033_freed_on_one_way_only() -> None:
    m = Maker("f", y=I64)
    t = m.local("t")
    m.op("alloc", t, 0)
    m.op("br", zero(m, "y"), aux=3)
    m.op("free", t, 0)
    m.op("cf", zero(m, "y"), aux=1)
    f = only(m)
    assert f.code == "A033"
    assert f.message == "`t` is live on one path to this point and not on another"


def test_a033_a_loop_that_allocates_each_time() -> None:
    m = Maker("f", y=I64)
    t = m.local("t")
    m.op("cf", Apply("!=", (m["y"], Const(0))), aux=2)
    m.op("alloc", t, 0)
    m.op("br", Apply("<", (m["y"], Const(9))), aux=0)
    assert found(m) == [("A033", 1)]


def test_a034_a_parameter_is_not_freed() -> None:
    m = Maker("f", y=I64)
    m.op("free", m["y"], 0)
    assert found(m) == [("A034", 0)]


# --- types and shapes


def test_a040_types_that_differ() -> None:
    m = Maker("f", y=F64, n=I64, s=Stack(F64))
    m.raw("add", m["y"], m["n"])
    m.raw("br", m["n"], aux=2)
    m.raw("cf", m["n"], aux=1)
    m.raw("add", m["y"], m["s"])
    m.raw("push", m["n"], m["s"])
    m.raw("alloc", Const(0.0, F64), Const(0.0, F64))
    assert [c for c, _ in found(m)] == ["A040"] * 6


def test_a040_an_index_that_is_not_an_integer() -> None:
    m = Maker("f", x=array(), y=F64)
    m.raw("add", Place(0, (Index((m["y"],)),), F64), Const(1.0, F64))
    assert found(m) == [("A040", 0)]


def test_a042_ranks() -> None:
    m = Maker("f", y=F64, x=array(), z=array(F64, 2))
    m.raw("add", m["y"], m["x"])
    m.raw("add", m["x"], m["z"])
    m.raw("add", m["z"], m["y"])
    m.raw("add", Place(0, (Index((Const(0, I64),)),), F64), Const(1.0, F64))
    m.raw("add", m["y"], Apply("f64", (Apply("dim", (m["x"], Const(1, I64)), I64),), F64))
    assert found(m) == [("A042", 0), ("A042", 1), ("A042", 3), ("A042", 4)]


def test_a042_lengths_of_registers() -> None:
    m = Maker("f", y=F64)
    m.registers.append(Register("t", array(), ()))
    assert found(m) == [("A042", -1)]
    m.registers[-1] = Register("t", array(), (None,))
    assert found(m) == [("A042", -1)]


def test_a043_an_opcode_that_does_not_take_the_type() -> None:
    m = Maker("f", y=F64, n=I64)
    m.raw("xor", m["y"], Const(1.0, F64))
    m.raw("div", m["n"], Const(2, I64))
    assert found(m) == [("A043", 0), ("A043", 1)]


def test_a044_numbers_of_operands() -> None:
    m = Maker("f", y=F64)
    m.raw("add", m["y"])
    m.raw("inc", m["y"], m["y"])
    m.raw("call", symbol="f")
    m.raw("print", *[m["y"]] * 256, aux=1)
    m.raw("print", *[m["y"]] * 255, aux=1)
    t = m.local("t", F64)
    m.raw("alloc", t)
    m.raw("free", t, Const(0.0, F64))
    assert [f for f in found(m) if f[0] == "A044"] == [
        ("A044", 0), ("A044", 1), ("A044", 2), ("A044", 3), ("A044", 5)
    ]  # fmt: skip


def test_a045_and_arguments_that_do_not_fit() -> None:
    g = Maker("g", y=F64, x=array(), s=Stack(U8))
    m = Maker("f", a=F64, n=I64, v=array(), w=array(F64, 2), s=Stack(U8), o=Stack(I64))
    m.op("call", m["a"], symbol="nowhere")
    m.op("call", m["a"], m["v"], m["s"], symbol="g")
    m.op("call", m["n"], m["v"], m["s"], symbol="g")
    m.op("call", m["a"], m["w"], m["s"], symbol="g")
    m.op("call", m["a"], m["v"], m["o"], symbol="g")
    m.op("call", m["a"], m["v"], m["a"], symbol="g")
    m.op("call", m["s"], m["v"], m["s"], symbol="g")
    assert found(m, g) == [
        ("A045", 0), ("A040", 2), ("A042", 3), ("A040", 4), ("A040", 5), ("A040", 6)
    ]  # fmt: skip


def test_a046_size_depth_and_graphs_that_unfold() -> None:
    m = Maker("f", y=I64, x=I64)
    deep: Expr = m["x"]
    for _ in range(MAX_DEPTH - 1):
        deep = Apply("neg", (deep,), I64)
    m.raw("add", m["y"], deep)
    m.raw("add", m["y"], Apply("neg", (deep,), I64))
    wide: Expr = m["x"]
    for _ in range(11):  # 2 ** 12 - 1 nodes, then twice as many
        wide = Apply("+", (wide, wide), I64)
    m.raw("add", m["y"], wide)
    m.raw("add", m["y"], Apply("+", (wide, wide), I64))
    for _ in range(5_000):
        wide = Apply("+", (wide, wide), I64)
    m.raw("add", m["y"], wide)
    assert 2**12 - 1 <= MAX_NODES < 2**13 - 1
    assert found(m) == [("A046", 1), ("A046", 3), ("A046", 4)]


def test_unknown_names() -> None:
    m = Maker("f", y=I64)
    m.raw("frobnicate", m["y"])
    m.raw("add", m["y"], Apply("frob", (Const(1, I64),), I64))
    assert found(m) == [("A003", 0), ("A004", 1)]


# --- what no assembler makes

LIES: list[tuple[str, Expr]] = [
    ("type of a place", Place(1, (), I64)),
    ("type of a sum", Apply("+", (Const(1.0, F64), Const(1.0, F64)), I64)),
    ("register", Place(7, (), F64)),
    ("negative register", Place(-1, (), F64)),
    ("constant", Const(300, U8)),
    ("constant's kind", Const(1, F64)),
    ("bool", Const(1, BOOL)),
    ("no f32", Const(0.1, Scalar("f32"))),
    ("untyped", Const(1.0)),
    ("formal", Formal(0, F64)),
    ("empty index", Place(2, (Index(()),), array())),
    ("part", Place(3, (Part("modulus"),), F64)),
]


@pytest.mark.parametrize(("name", "node"), LIES, ids=[n for n, _ in LIES])
def test_b020_nodes_that_lie(name: str, node: Expr) -> None:
    m = Maker("f", y=F64, x=F64, v=array(), z=C128)
    m.raw("print", node, aux=1)
    assert found(m) == [("B020", 0)]


def test_b020_fields_that_an_opcode_has_no_use_for() -> None:
    m = Maker("f", y=I64)
    m.raw("inc", m["y"], aux=3)
    m.raw("inc", m["y"], symbol="f")
    m.raw("print", m["y"], aux=0)
    m.raw("print", m["y"], aux=4)
    assert found(m) == [("B020", k) for k in range(4)]


def test_b020_tables_that_contradict_each_other() -> None:
    def tables(**changes: object) -> list[str]:
        m = Maker("f", x=array(), y=F64)
        function = replace(m.function(), **changes)  # type: ignore[arg-type]
        return [f.code for f in findings(Program((function,), "f"))]

    registers = Maker("f", x=array(), y=F64).function().registers
    assert tables() == []
    assert tables(params=(Param("x", 1), Param("y", 0))) == ["B020"]
    assert tables(params=(Param("x", 0), Param("y", 5))) == ["B020"]
    assert tables(dims=(Dim("n", 1, 0),)) == ["B020"]
    assert tables(dims=(Dim("n", 0, 1),)) == ["B020"]
    assert tables(registers=(registers[0], Register("y", Array(F64, 0)))) == ["B020"]
    y = place(1, F64)
    by_value = Register("x", array(), (typed(Apply("i64", (y,))),))
    assert tables(registers=(by_value, registers[1])) == ["A040"]
    twice = Maker("f").function()
    assert [f.code for f in findings(Program((twice, twice), "f"))] == ["B020"]


# --- verify


def test_verify_raises_all_findings_with_their_source_lines() -> None:
    m = Maker("f", x=F64)
    m.op("add", m["x"], m["x"])
    m.raw("xor", m["x"], m["x"])
    source = Source("bad.rasm", "add x, x\nxor x, x\n")
    f = replace(m.function(), spans=(SourceSpan(0, 1, 5, 6), SourceSpan(0, 2, 5, 6)))
    p = Program((f,), "f", (source,))
    with pytest.raises(VerifyError) as caught:
        verify(p)
    one, two = caught.value.diagnostics
    assert caught.value.code == one.code == "A013"
    assert str(one.where) == "bad.rasm:1:5"
    assert two.code == "A043"
    assert two.where.text == "xor x, x"
    assert "^" in one.human()


def test_findings_end_at_a_thousand() -> None:
    m = Maker("f", x=F64)
    for _ in range(3_000):
        m.raw("xor", m["x"], m["x"])
    assert len(findings(program(m))) == 1000


def test_an_instruction_is_reported_once() -> None:
    """What follows from an error is not told again, and errors elsewhere are still found."""
    m = Maker("f", y=I64)
    t = m.local("t")
    for _ in range(3):
        m.op("add", m["y"], t)
    m.op("add", m["y"], m["y"])
    assert found(m) == [("A030", 0), ("A013", 3)]
    assert isinstance(m.code[0], Instr)
