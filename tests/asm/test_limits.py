"""Texts made to hurt: depth, length and multiplication end in a message, soon."""

from __future__ import annotations

import time

import pytest
from rvm_asm import assemble
from sizes import one_of, sized, thin, wide

import rvm
from rvm.faults import AssemblyError

N = 5000
HEAD = "func f(x: f64, i: i64, a: i64[n])\n"


def chain(line: str, last: str, count: int, tail: str) -> str:
    """`count` declarations that each use the next, and a function that uses the first."""
    return "\n".join(line.format(k, k + 1) for k in range(count)) + f"\n{last}\n{HEAD} {tail}\n"


HURTFUL = {
    "parentheses": (HEAD + " add i, " + "(" * N + "1" + ")" * N, "A046"),
    "left open": (HEAD + " add i, " + "(" * N, "A046"),
    "signs": (HEAD + " add i, " + "- " * N + "i", "A046"),
    "nots": (HEAD + " br " + "not " * N + "true", "A046"),
    "indices": (HEAD + " add x, " + "a[" * N + "1" + "]" * N, "A046"),
    "a long sum": (HEAD + " add i, " + "+".join(["1"] * N), "A046"),
    "powers": (HEAD + " add i, " + "**".join(["2"] * N), "A046"),
    "blocks": (HEAD + " if x > 0\n" * N + " end\n" * N, "A046"),
    "inline records": ("func f(x: " + "R{a: " * N + "f64" + "}" * N + ")\n", "A002"),
    "stacks": (HEAD + " alloc s: " + "stack[" * N + "f64", "A002"),
    "fields": (HEAD + " add x" + ".a" * N + ", 1", "A055"),
    "macros that double": (
        chain("macro m{0}\n m{1}\n m{1}\nend", "macro m40\nend", 40, "m0"),
        "A046",
    ),
    "macros in macros": (
        chain("macro m{0} y\n m{1} y\nend", "macro m500 y\n inc y\nend", 500, "m0 i"),
        "A046",
    ),
    "pure functions that double": (
        chain("pure p{0}(y) = p{1}(y) + p{1}(y)", "pure p40(y) = y", 40, "add i, p0(3)"),
        "A046",
    ),
    "pure functions in each other": (
        chain("pure p{0}(y) = p{1}(y)", "pure p400(y) = y", 400, "add i, p0(3)"),
        "A046",
    ),
    "constants in each other": (
        chain("const c{0} = c{1}", "const c4000 = 1", 4000, "add i, c0"),
        "A054",
    ),
    "constants that square": (
        chain("const c{0} = c{1} * c{1}", "const c40 = 9", 40, "add i, c0"),
        "A054",
    ),
    "records that double": (
        "\n".join(f"record R{k}\n a: R{k + 1}\n b: R{k + 1}\nend" for k in range(40))
        + "\nrecord R40\nend\nfunc f(x: R0)\n",
        "A011",
    ),
    "routines that double": (
        HEAD
        + " routine r0\n  inc i\n end\n"
        + "".join(f" routine r{k}\n  undo r{k - 1}\n  undo r{k - 1}\n end\n" for k in range(1, 40)),
        "A046",
    ),
    "a long integer": (HEAD + " add i, " + "9" * 100_000, "A041"),
    "a large exponent": (HEAD + " add x, 1e999999999999999999", "A041"),
    "a large power": ("const A = 9 ** 9 ** 9\n" + HEAD, "A054"),
    "a large shift": ("const A = 1 << 99999999999\n" + HEAD, "A054"),
    "dimensions": ("func f(x: f64[" + ", ".join(["n"] * 100) + "])\n", "A011"),
    "wrong lines": (HEAD + " foo\n" * N, "A003"),
}


@thin
@pytest.mark.parametrize("name", HURTFUL)
def test_hurtful_texts(name: str) -> None:
    text, code = HURTFUL[name]
    started = time.thread_time()
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    assert code in {d.code for d in caught.value.diagnostics}
    assert len(str(caught.value)) < 200_000
    assert time.thread_time() - started < 30


def test_long_chains_of_elseif_are_fine() -> None:
    text = (
        HEAD
        + " if i == 0\n  inc x\n"
        + "".join(f" elseif i == {k}\n  add x, {k}\n" for k in range(1, 2000))
    )
    program = assemble(text + " end\n")
    assert len(program.functions[0].code) == 2000 * 5 - 2


@wide
def test_speed_of_strict_code() -> None:
    """10,000 lines in a fraction of what 100,000 may take (a few seconds)."""
    lines = "    add a, b\n    rot a, b, 0.5\n    swap a, b\n    inc n\n" * 250
    text = "".join(f"func f{k}(a: f64, b: f64, n: i64)\n{lines}" for k in range(10))
    started = time.thread_time()
    assert sum(len(f.code) for f in assemble(text).functions) == 10_000
    assert time.thread_time() - started < 5


@sized
@pytest.mark.parametrize("term", ["y", "-y", "abs(-y)"])
def test_chains_of_operators_have_any_length(term: str) -> None:
    for n in (49, 50, 51, 95, 96, 97, 98, 99, 100, 101, 102, 400):
        for operator in one_of(("+", "*", "|"), (term, n)):
            chain = f" {operator} ".join([term] * n)
            f = rvm.assemble(f"func f(x: i64, y: i64)\n    add x, {chain}\n").f
            value = {"y": -1, "-y": 1, "abs(-y)": 1}[term]
            want = {"+": n * value, "*": value**n, "|": value}[operator]
            assert f(x=0, y=-1).x == want, (n, operator)
