"""What structured statements become, instruction by instruction."""

from __future__ import annotations

import textwrap

import pytest
from rvm_asm import assemble, disassemble

pytestmark = pytest.mark.smoke


def strict(body: str, head: str = "func f(x: i64, y: i64, n: i64)") -> list[str]:
    """The strict code of a function's body, without its head."""
    text = f"{head}\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    lines = disassemble(assemble(text), positions=False).strip().split("\n")
    return [" ".join(line.split()) for line in lines[1:]]


def test_if() -> None:
    assert strict("if x > 0\n inc y\nend") == [
        "L1: br x <= 0, L2",
        "inc y",
        "L2: cf x <= 0, L1",
    ]


def test_if_else_with_postcondition() -> None:
    assert strict("if x > 0, y == 1\n inc y\nelse\n dec y\nend") == [
        "L1: br x <= 0, L3",
        "inc y",
        "L2: br true, L4",
        "L3: cf true, L1",
        "dec y",
        "L4: cf y == 1, L2",
    ]


def test_the_end_names_the_postcondition() -> None:
    assert strict("if x > 0\n inc y\nend y == 1") == strict("if x > 0, y == 1\n inc y\nend")
    loop = "while x > 0{}\n inc y\nend{}"
    assert strict(loop.format("", " y > 0")) == strict(loop.format(", y > 0", ""))


def test_elseif_is_nested() -> None:
    """The second condition stands after the first branch: it is not reached if the first holds."""
    nested = """
        if x > 0, y == 1
            inc y
        else
            if x < 0, y == 2
                add y, 2
            else
                add y, 3
            end
        end
        """
    chain = """
        if x > 0, y == 1
            inc y
        elseif x < 0, y == 2
            add y, 2
        else
            add y, 3
        end
        """
    assert strict(chain) == strict(nested)


def test_elseif_without_else_is_nested_too() -> None:
    nested = "if x > 0\n inc y\nelse\n if x < 0\n  dec y\n end\nend"
    assert strict("if x > 0\n inc y\nelseif x < 0\n dec y\nend") == strict(nested)


def test_while() -> None:
    assert strict("while x < 9, x != 0\n inc x\nend") == [
        "L1: br x >= 9, L4",
        "L2: cf x != 0, L3",
        "inc x",
        "L3: br x < 9, L2",
        "L4: cf x == 0, L1",
    ]


def test_from_until() -> None:
    assert strict("from x == 0\n inc x\nuntil x == 9") == [
        "L1: cf x != 0, L2",
        "inc x",
        "L2: br x != 9, L1",
    ]


def test_from_loop_until() -> None:
    assert strict("from x == 0\n inc x\nloop\n inc y\nuntil x == 9") == [
        "L1: cf x != 0, L3",
        "inc x",
        "L2: br x == 9, L4",
        "inc y",
        "L3: br true, L1",
        "L4: cf true, L2",
    ]


def test_for_with_constant_bounds() -> None:
    assert strict("for i = 1 to 4 step 2\n add x, i\nend") == [
        "alloc i.end: i64 = for_end(1, 4, 2)",
        "alloc i: i64 = 1",
        "L1: br 1 == i.end, L4",
        "L2: cf i != 1, L3",
        "add x, i",
        "add i, 2",
        "L3: br i != i.end, L2",
        "L4: cf 1 == i.end, L1",
        "free i = i.end",
        "free i.end = for_end(1, 4, 2)",
    ]


def test_for_holds_its_bounds() -> None:
    """A bound that is not a constant is kept, and compared at the end."""
    assert strict("for i = x downto y step n\nend") == [
        "alloc i.lo: i64 = x",
        "alloc i.step: i64 = n",
        "alloc i.end: i64 = for_end(i.lo, y, turned(i.step, true))",
        "alloc i: i64 = i.lo",
        "L1: br i.lo == i.end, L4",
        "L2: cf i != i.lo, L3",
        "sub i, i.step",
        "L3: br i != i.end, L2",
        "L4: cf i.lo == i.end, L1",
        "free i = i.end",
        "free i.end = for_end(i.lo, y, turned(i.step, true))",
        "free i.step = n",
        "free i.lo = x",
    ]


def test_undo_inverts_and_reverses() -> None:
    body = """
        routine r
            alloc t: i64 = 3
            if t > 2
                add t, y
                rol t, 5
            end
        end
        add x, t
        undo r
        """
    assert strict(body) == [
        "alloc t: i64 = 3",
        "L1: br t <= 2, L2",
        "add t, y",
        "rol t, 5",
        "L2: cf t <= 2, L1",
        "add x, t",
        "L3: br t <= 2, L4",
        "ror t, 5",
        "sub t, y",
        "L4: cf t <= 2, L3",
        "free t = 3",
    ]


def test_undo_of_a_routine_that_undoes_another() -> None:
    body = "routine a\n inc x\nend\nroutine b\n inc y\n undo a\nend\nundo b"
    assert strict(body) == ["inc x", "inc y", "dec x", "inc x", "dec y"]


def test_effects_keep_their_direction_through_undo() -> None:
    body = 'routine r\n extern forward\n  print "x {}", x\n end\nend\nundo r'
    assert strict(body) == [
        "extern forward", 'print "x {}", x', "end",
        "extern backward", 'print "x {}", x', "end",
    ]  # fmt: skip


def test_conditions_of_floats_are_negated_with_not() -> None:
    """A NaN is neither below nor above."""
    head = "func f(x: f64, y: i64)"
    assert strict("if x > 0\n inc y\nend", head)[0] == "L1: br not x > 0.0, L2"
    assert strict("if x == 0\n inc y\nend", head)[0] == "L1: br x != 0.0, L2"
    assert strict("if not (x > 0)\n inc y\nend", head)[0] == "L1: br x > 0.0, L2"


JUMPS = """
    br n == 0, out
top: cf x != 0, again
    inc x
again: br x != n, top
out: cf n == 0, {}
"""


@pytest.mark.parametrize("partner", ["…", "...", "first"])
def test_jumps_that_are_written(partner: str) -> None:
    text = JUMPS.format(partner)
    if partner == "first":
        text = text.replace("    br n == 0, out", "first: br n == 0, out")
    assert strict(text) == [
        "L1: br n == 0, L4",
        "L2: cf x != 0, L3",
        "inc x",
        "L3: br x != n, L2",
        "L4: cf n == 0, L1",
    ]


def test_the_partner_may_be_left_out() -> None:
    assert strict(JUMPS.format("…")) == strict(JUMPS.format("…").replace(", …", ""))


def test_a_name_allocated_again_is_the_same_register() -> None:
    program = assemble(
        "func f()\n alloc t: i64\n free t\n alloc t: i64\n free t\n alloc t\n free t"
    )
    assert [r.name for r in program.functions[0].registers] == ["t"]
    program = assemble("func f()\n alloc t: i64\n free t\n alloc t: f64\n free t")
    assert [(r.name, str(r.type)) for r in program.functions[0].registers] == [
        ("t", "i64"), ("t", "f64"),
    ]  # fmt: skip


def test_lengths_of_parameters() -> None:
    program = assemble("func f(A: f64[m, n], x: f64[n], y: f64[2 * m, 3], z: f64[:])\n inc A")
    function = program.functions[0]
    assert [tuple(d) for d in function.dims] == [("m", 0, 0), ("n", 0, 1)]
    dims = [r.dims for r in function.registers]
    assert dims[0] == (None, None) and dims[3] == (None,)
    text = disassemble(program, positions=False).split("\n")[0]
    assert text == "func f(A: f64[m, n], x: f64[n], y: f64[2 * m, 3], z: f64[:])"


def test_the_entry() -> None:
    two = "func a()\nfunc b()\n"
    assert assemble(two).entry == "a"
    assert assemble(two + "func main()\n").entry == "main"
    assert assemble("entry b\n" + two + "func main()\n").entry == "b"
