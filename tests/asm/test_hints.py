"""Hints that repeat an expression repeat the whole of it, or close what they cut."""

from __future__ import annotations

import random

import pytest
from rvm_asm import assemble

import rvm
from rvm.faults import AssemblyError, Diagnostic, Label, Where
from rvm.verify.text import shortened

HEAD = "func f(x: f64, y: f64, z: f64, a: f64[n], b: i64[n])\n "


def wrong(line: str) -> Diagnostic:
    with pytest.raises(AssemblyError) as caught:
        assemble(HEAD + line + "\n")
    (found,) = caught.value.diagnostics
    assert found.code == "A013"
    return found


def balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return False
    return depth == 0


def random_value(rng: random.Random, depth: int = 0) -> str:
    """An expression in x, with brackets where they need not be."""
    if depth > 3 or rng.random() < 0.2:
        out = rng.choice(("x", "y", "z", "2", "a[b[0]]", "a[(b[1] + 1)]", "1.5"))
    else:
        inner = [random_value(rng, depth + 1) for _ in range(2)]
        form = rng.choice(("{} + {}", "{}*{}", "{} - {}", "max({}, {})", "-{}", "sin({})", "{}/{}"))
        out = form.format(*inner)
    if rng.random() < 0.4:
        space = rng.choice(("", " ", " \\\n "))
        out = f"({space}{out}{space})"
    return out


def test_the_value_in_a_hint_is_that_of_the_source() -> None:
    """Put in its place, it makes the instruction that the hint speaks of."""
    tried = 0
    for seed in range(400):
        value = random_value(random.Random(seed))
        if "x" not in value.replace("max", ""):
            continue
        found = wrong(f"add x, {value}")
        _, _, said = found.hint.partition("add t, ")
        for note in found.notes:
            assert balanced(note), (value, note)
        assert balanced(said), (value, said)
        if "…" not in said:
            tried += 1
            text = f"{HEAD}alloc t: f64\n add t, {{}}\n free t = z\n"
            one, two = (assemble(text.format(v)).functions[0].code for v in (said, value))
            assert one == two, (value, said)
    assert tried > 150


def test_long_values_are_cut_with_their_brackets_closed() -> None:
    found = wrong("add x, (y + (" + "(x + y) * (sin(z) + 1) + " * 30 + "1))")
    assert "…)" in found.hint and balanced(found.hint) and len(found.hint) < 300
    for k in range(10, 70):
        assert balanced(shortened("f(a[i], (b + [c])) * " * 9, k))


def test_a_very_long_line_is_shown_around_what_is_wrong() -> None:
    for before, after in ((0, 10**6), (10**6, 0), (700, 700), (10**6, 10**6), (5, 100)):
        text = "a" * before + "WRONG" + "b" * after
        where = Where("f", 1, before + 1, before + 6, text)
        far = Label(1, before + after + 4, before + after + 5, "far")
        for labels in ((), (Label(1, before + 1, before + 6, "here"),), (far,)):
            shown = Diagnostic("A001", "m", where, labels=labels).human().split("\n")
            line, marks = shown[3], shown[4]
            assert len(line) < 200
            if not labels or labels[0] is not far:
                assert line[marks.index("^") : marks.rindex("^") + 1] == "WRONG"


def test_a_condition_of_literals_in_a_choice() -> None:
    for t in ("i32", "u8", "f64", "c128", "log64"):
        for c in ("not true", "true and false", "not (1 < 2)", "false or not true", "true"):
            assemble(
                f"func g(b: bool, x: {t}, y: {t})\n alloc t: {t} = select({c}, x, y)\n"
                f" free t = select({c}, x, y)\n"
            )
    library = rvm.assemble("func f(x: i32)\n add x, select(not true, 1'i32, 2'i32)\n")
    assert library.f(x=0).x == 2
