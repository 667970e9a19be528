"""Warnings about blocks that change the condition under which they run."""

from __future__ import annotations

import warnings
from bisect import bisect
from itertools import accumulate
from pathlib import Path

import pytest
from sizes import thin, wide

import rvm
from rvm.faults import AssemblyWarning, Diagnostic

ROOT = Path(__file__).parents[2]
CHANGES = [f"{op} x, {d}" for op in ("add", "sub") for d in range(-3, 4)]
CHANGES += ["inc x", "dec x", "neg x", "add x, 2\nadd x, -3", "add x, 2\nsub x, 2", "not x"]
COMPARED = [f"x {sign} {c}" for sign in ("==", "!=", "<", "<=", ">", ">=") for c in (-2, 0, 3)]
COMPARED += ["not (x < 3)", "2 >= x", "x > -2 and x < 5", "x < -1 or x > 2"]
SMALL = range(-7, 8)
UNTOLD = {"not x"}
"""The change of all bits at once, of which nothing is said."""


def warned(text: str) -> tuple[rvm.Library, list[Diagnostic]]:
    """The library of a text, and the warnings about it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lib = rvm.assemble(text)
    return lib, [w.message.diagnostic for w in found if isinstance(w.message, AssemblyWarning)]


@thin
@pytest.mark.parametrize("orelse", [False, True], ids=["if", "else"])
@pytest.mark.parametrize("cond", COMPARED)
def test_warnings_are_where_some_number_fails(cond: str, orelse: bool) -> None:
    """Where a warning is, a small number at least ends the run; where none is, none does."""
    arm = "else\n" if orelse else ""
    blocks = [f"func f{k}(x: i64)\nif {cond}\n{arm}{c}\nend\n" for k, c in enumerate(CHANGES)]
    lib, found = warned("".join(blocks))
    assert {d.code for d in found} <= {"A077"}
    starts = list(accumulate([b.count("\n") for b in blocks], initial=1))
    told = {CHANGES[bisect(starts, d.where.line) - 1] for d in found}
    fails = {c for k, c in enumerate(CHANGES) if any(is_refused(lib[f"f{k}"], x) for x in SMALL)}
    either = " and " if orelse else " or "
    if either in cond:
        assert told == set()  # one of two may hold: nothing is said
    else:
        assert told == fails - UNTOLD


def is_refused(f: rvm.FunctionHandle, x: int) -> bool:
    """Whether the run ends since a condition does not say where it came from."""
    try:
        f(x)
    except rvm.InvertibilityError:
        return True
    return False


@pytest.mark.parametrize(
    "cond, change, is_told",
    [
        ("b", "not b", True),
        ("not b", "xor b, x > 3", True),
        ("b", "xor b, false", False),
        ("x >= y", "sub x, y", True),
        ("x >= y", "add x, y", False),
        ("x > 0", "sub x, y", False),
        ("x == y", "add x, z", True),
        ("x == y", "inc x\ninc y", False),
        ("x < y", "swap x, y", True),
        ("x == y", "swap x, y", False),
        ("x < z", "swap x, y", False),
        ("x > 3", "if y == 2\ndec x\nend", False),
        ("x > 3", "routine r\nsub x, y\nend\nadd z, x\nundo r", False),
        ("x > 3", "sub y, x", False),
        ("x > 3", "call g(x)", False),
        ("v[0] > v[1]", "swap v[0], v[1]", True),
        ("v[x] > v[y]", "swap v[x], v[y]", True),
        ("v[x] == 1", "inc x\ninc v[x]", False),
        ("v[x] == 1", "inc v[y]", False),
        ("v[x] == 1", "inc v[x]", True),
        ("x > 3 and b", "not b", True),
        ("r > 0.5", "sub r, 0.25", True),
        ("r > 0.5", "mul r, 2", False),
        ("c == 1j", "add c, 1", True),
        ("x > 3, x > 2", "dec x", False),
        ("x > 3, x > 3", "dec x", False),
    ],
)
def test_what_is_reported(cond: str, change: str, is_told: bool) -> None:
    text = f"""
func f(x: i64, y: i64, z: i64, b: bool, v: i64[n], r: f64, c: c128)
    if {cond}
        {change}
    end

func g(x: i64)
    dec x
"""
    assert [d.code for d in warned(text)[1]] == ["A077"] * is_told


def test_arms_are_held_to_their_own_conditions() -> None:
    """As long as none names another: numbers that earlier arms take do not get there."""
    text = """func f(x: i64)
    if x == 1
        add x, 5
    elseif x > 5
        sub x, 4
    elseif x == 4, x == 1
        sub x, 3
    elseif x > 3
        dec x
    else
        inc x
    end
"""
    _, found = warned(text)
    assert [(d.where.line, d.message) for d in found] == [
        (3, "`add x, 5` can make `x == 1` false, which must hold after the block too"),
        (5, "`sub x, 4` can make `x > 5` false, which must hold after the block too"),
    ]


def test_a_generic_function_is_warned_of_once() -> None:
    text = "func f[T: real](x: T)\n    if x > 3\n        sub x, 1\n    end\n"
    lib, found = warned(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lib.f(5)["x"] == 4 and lib.f(5.0)["x"] == 4.0
    assert len(found) == 1


def test_a_warning_stands_beside_errors() -> None:
    with pytest.raises(rvm.AssemblyError) as caught:
        rvm.assemble("func f(x: i64)\n    if x > 3\n        dec x\n    end\n    add x, x\n")
    found = caught.value.diagnostics
    assert [(d.severity, d.code) for d in found] == [("warning", "A077"), ("error", "A013")]
    assert caught.value.code == "A013"


def test_it_is_a_warning_of_python(tmp_path: Path) -> None:
    """With the file and the line, in Python's own words, and filters decide what becomes of it."""
    path = tmp_path / "low.rasm"
    path.write_text("func f(x: i64)\n    if x > 3\n        dec x\n    end\n")
    with pytest.warns(rvm.AssemblyWarning, match=r"can make `x > 3` false.* \[A077\]; ") as found:
        rvm.load(path)
    assert (found[0].filename, found[0].lineno) == (str(path), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rvm.AssemblyWarning)
        with pytest.raises(rvm.AssemblyWarning):
            rvm.load(path)


def test_errors_in_python_functions_are_in_terms_of_python() -> None:
    @rvm.reversible
    def lower(x):
        if x > 3:
            x -= 1

    with pytest.warns(rvm.AssemblyWarning, match=r"`if rvm\.when\(x > 3, …\):`") as found:
        lower(9)
    assert found[0].filename == __file__


@wide
def test_texts_that_are_right_are_not_warned_of() -> None:
    """All examples, programs and texts of the library but one, which is there to fail."""
    told = set()
    for folder in ("examples", "tests/programs", "asm/rvm_asm/std"):
        for path in sorted((ROOT / folder).glob("*.rasm")):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                try:
                    rvm.load(path)
                except rvm.AssemblyError:
                    continue  # `;! fails`
            told |= {path.name for w in found if isinstance(w.message, AssemblyWarning)}
    assert told == {"if_changed.rasm"}


@pytest.mark.parametrize(
    "line, hidden",
    [
        ("inc x; inc x;", "inc x"),
        ("add x, 1; add y, x + 2; inc x", "add y, x + 2"),
        ("inc x ;; swap x, y", "swap x, y"),
        ("at: inc x; call g(x)", "call g(x)"),
        ("add x, 1;", ""),
        ("add x, 1 ; add the rest", ""),
        ("add x, 1 ; add z, 1", ""),
        ("add x, y ; swap x", ""),
        ("add x, 1 ; x += 1", ""),
        ("add x, i64(';') ; inc it", ""),
        ("; inc x", ""),
    ],
)
def test_instructions_behind_semicolons(line: str, hidden: str) -> None:
    _, found = warned(f"func f(x: i64, y: i64)\n    {line}\n\nfunc g(x: i64)\n    inc x\n")
    assert [d.code for d in found] == ["A078"] * bool(hidden)
    for d in found:
        assert f"`{hidden}` is not executed" in d.message
        assert (d.where.text or "")[d.where.column - 1 : d.where.end - 1] == hidden
