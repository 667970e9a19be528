"""The type that a `free` or `drop` repeats is that of its register, lengths included."""

from __future__ import annotations

import pytest
from rvm_asm import assemble

from rvm.faults import AssemblyError

TEXT = """record V
    a: f64
    b: f64
end
record W
    a: f64
    b: f64
end
macro done y, n
    free y: f64[n]
end
func f(x: f64[n], y: f64[m], k: i64)
    alloc t: {}
    {}
"""
SAME = (
    ("f64", "free t: f64"),
    ("f64[n]", "free t: f64[n]"),
    ("f64[n]", "free t: f64[:]"),
    ("f64[n + 1]", "free t: f64[1 + n]"),
    ("f64[2, k]", "free t: f64[2, k]"),
    ("f64[n]", "done t, n"),
    ("V", "free t: V"),
    ("V[n]", "free t: V[n]"),
    ("stack[f64]", "free t: stack[f64]"),
    ("fixed(43)", "free t: fixed"),
)
OTHER = (
    ("f64", "free t: i64"),
    ("f64", "free t: f32 = 0"),
    ("f64", "drop t: c128"),
    ("f64", "free t: V"),
    ("f64", "free t: f64[n]"),
    ("f64[n]", "free t: f64"),
    ("f64[n]", "free t: f64[m]"),
    ("f64[n]", "free t: f64[n + 1]"),
    ("f64[n]", "free t: i64[:]"),
    ("f64[n]", "done t, m"),
    ("f64[2, n]", "free t: f64[n, 2]"),
    ("f64[2, n]", "free t: f64[2]"),
    ("V", "free t: W"),
    ("V", "free t: f64"),
    ("V", "free t: V[2]"),
    ("V[n]", "free t: V[m]"),
    ("stack[f64]", "free t: stack[i64]"),
    ("stack[f64]", "free t: f64"),
    ("fixed(3)", "free t: fixed"),
)


@pytest.mark.parametrize(("made", "end"), SAME)
def test_the_same_type_is_accepted(made: str, end: str) -> None:
    assemble(TEXT.format(made, end))


@pytest.mark.parametrize(("made", "end"), OTHER)
def test_another_type_is_refused(made: str, end: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(TEXT.format(made, end))
    (found,) = caught.value.diagnostics
    assert (found.code, "free t" in found.hint or "free y" in found.hint) == ("A040", True)


def test_records_nest_deeply_but_not_in_themselves() -> None:
    def chain(depth: int, last: str) -> str:
        records = [f"record R{k}\n a: R{k + 1}\nend\n" for k in range(depth)]
        return "".join(records) + f"record R{depth}\n a: {last}\nend\nfunc f(x: R0)\n inc x"

    for depth in (1, 32, 33, 34, 98):
        assemble(chain(depth, "f64") + ".a" * (depth + 1))
    for depth, last, says in (
        (101, "f64", "deeper than 100 levels"),
        (3, "R1", "`R1` contains itself"),
        (40, "R40", "`R40` contains itself"),
    ):
        with pytest.raises(AssemblyError) as caught:
            assemble(chain(depth, last))
        assert [d.code for d in caught.value.diagnostics] == ["A011"]
        assert says in caught.value.diagnostics[0].message
