"""The intermediate representation: what is made of statements, and what is refused."""

from __future__ import annotations

import pytest
from ir.nodes_text import text_of

import rvm
from rvm.image import Code, image_of
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.builder import checked
from rvm.ir.flow import Flow
from rvm.ir.kind import Kind
from rvm.ir.node import I64, Node, Var, constant


def code_of(text: str) -> Code:
    return image_of(rvm.assemble(text).program).code("main", False)


def block(text: str, label: str, behind: str) -> str:
    """The operations of a block, as text."""
    shown = text_of(code_of(text))
    return shown[shown.index(f"{label}:") : shown.index(f"{behind}:")]


def test_a_check_stands_before_what_is_stored() -> None:
    found = block("func main(a: i64[n], i: i64, k: i64)\n    add a[i], k // i\n", "b0_0", "out4")
    operations = [line.split("(")[0].split()[-1] for line in found.splitlines()[1:]]
    assert operations.index("bound") < operations.index("store")
    assert operations.count("trouble") == 2, "the ticks, and a divisor of zero"
    assert max(k for k, o in enumerate(operations) if o in ("trouble", "bound")) < (
        operations.index("store")
    )


def test_an_if_within_an_instruction_is_structured() -> None:
    assert block("func main(c: bool, x: i64, y: i64)\n    cswap c, x, y\n", "b0_0", "b0_1") == WANT


WANT = """\
b0_0:
  %16 = get(): i64 ticks0
  %17 = lt(%16, 1): bit
  trouble(%17) spent3
  %18 = get(): bit r0_4
  if(%18)
    %19 = get(): i64 r1_5
    %20 = get(): i64 r2_6
    set(%20) r1_5
    set(%19) r2_6
  %21 = get(): i64 ticks0
  %22 = wsub(%21, 1): i64
  set(%22) ticks0
  jump() b0_1
"""


def test_trouble_behind_a_change_is_refused() -> None:
    value = constant(1, I64)
    change = Node("set", "", (value,), Var(I64, "r0_1"))
    trouble = Node("trouble", "", (constant(True, "bit"),), "out")
    checked([trouble, change])
    for items in (
        [change, trouble],
        [change, Node("if", "", (), ([trouble], [], False))],
        [Node("if", "", (), ([], [change], False)), trouble],
        [Node("loop", "", (value,), (None, [trouble, change]))],
    ):
        with pytest.raises(AssertionError, match="after a change"):
            checked(items)


def test_what_has_no_trouble_at_any_index_is_not_asked_before() -> None:
    code = code_of("func main(x: f64[n], y: f64[n])\n    add x, y * 2.0\n")
    b = FunctionBuilder("main", code, Kind(0, frozenset()), Flow(code, (), ()))
    b.everywhere([b.i64(3)], lambda at: b.do("store", constant(0.5, "f64"), *at, aux=(0, 0)))
    assert [node.op for node in b.items] == ["loop"]
