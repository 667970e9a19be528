"""A function that is called as what the assembler makes is refused, wherever that is made."""

from __future__ import annotations

import pytest

import rvm
from rvm.faults import AssemblyError

HEADS = """
func f(y: f64, x: f64)
    add y, x * x
func g[T: real](y: T, x: T)
    add y, x * x
func h(y: f64, x: f64)
    call f(y, x)
"""
MADE = {
    "f'": "call f'(y, x; 1, b)",
    "f~'": "call f~'(y, x; 1, b)",
    "f.": "call f.(y, x; b, 1)",
    "f'.": "call f'.(y, x, b, c; d, 1, e, k)",
    "f.map": "map f(u, v)",
    "g[f64]": "call g(y, x)",
    "h~'": "call h'(y, x; 1, b)",
}
NEEDED = {"f~' of f'": ("f~'", "call f'(y, x; 1, b)"), "f~' of h'": ("f~'", "call h'(y, x; 1, b)")}
CASES = {name: (name, call) for name, call in MADE.items()} | NEEDED


def text(name: str, call: str) -> str:
    """A text with a function of such a name, which takes what the made one takes, and a call."""
    params = {"f.map": "y: f64[n], x: f64[n]", "f'.": ", ".join(f"p{k}: f64" for k in range(8))}
    more = ", b: f64, d: f64" if name[-1:] in ("'", ".") else ""
    own = params.get(name, f"y: f64, x: f64{more}")
    first = own.partition(":")[0]
    change = f"func `{name}`({own})\n    add {first}, 1.0\n" if name else ""
    letters = ", ".join(f"{c}: f64" for c in "yxbcdek")
    return f"{HEADS}{change}func w({letters}, u: f64[n], v: f64[n])\n    {call}\n"


@pytest.mark.parametrize("case", CASES)
def test_a_name_that_is_made_may_not_be_declared(case: str) -> None:
    name, call = CASES[case]
    rvm.assemble(text("", call))
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text(name, call))
    (found,) = caught.value.diagnostics
    assert found.code == "A006" and f"`{name}` is declared, and is " in found.message


# A generic function that is not called is tried for a type, f64.
@pytest.mark.parametrize("case", sorted(set(CASES) - {"g[f64]"}))
def test_it_may_be_where_it_is_not_called(case: str) -> None:
    name, _ = CASES[case]
    assert rvm.assemble(text(name, "add y, x"))[name] is not None
