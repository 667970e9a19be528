"""Lines of Python and C are told what stands for them here."""

from __future__ import annotations

import pytest
from rvm_asm import assemble

from rvm.faults import AssemblyError, Diagnostic

HEAD = "func f(x: i64, y: i64, a: i64[n], p: f64)\n"
SAID = {
    "x += y": ("`x += y` is `add x, y`", ""),
    "x *= 2 * y": ("`x *= 2 * y` is `mul x, 2 * y`", ""),
    "a[y + 1] ^= len(a)": ("`a[y + 1] ^= len(a)` is `xor a[y + 1], len(a)`", ""),
    "x //= 2": ("`x //= …` forgets what `x` was", "`add t, x // 2`"),
    "x = y + 1": ("`x = …` forgets what `x` was", "`add x, y + 1` where `x` is 0"),
    "x++": ("`x++` is `inc x`", ""),
    "x, y = y, x": ("exchanged by `swap`", "`swap x, y`"),
    "let t = 3": ("is an ancilla", "`alloc t = 3`"),
    "let t: i64 = x + 1": ("is an ancilla", "`alloc t: i64 = x + 1`"),
    "int t = 0": ("is an ancilla", "`alloc t: i64 = 0`"),
    "int t": ("is an ancilla", "`alloc t: i64`"),
    "for i in range(n)\nend": ("its first and its last value", "`for i = 0 to n - 1`"),
    "for i in range(2, len(a)):\nend": ("first and its last", "`for i = 2 to len(a) - 1`"),
    "for i in range(10)\nend": ("first and its last", "`for i = 0 to 9`"),
    "for (int k = 0; k < n; k++)\nend": ("first and its last", "`for k = 0 to n - 1`"),
    "return x": ("the results of a function are its parameters", "`add out, …`"),
    "break": ("a loop can be left only where its condition is tested", "`while p, q`"),
    "if x > 3\nelif x > 2\nend": ("an `elseif`", "`elseif condition`"),
    "if x > 3 && y > 2\nend": ("`&&` is `and`", "`a and b`"),
    "if x > 3 || y > 2\nend": ("`||` is `or`", "`a or b`"),
    "if x > 3:\nend": ("a block begins without `:`", "`end` closes"),
    "if x = 3\nend": ("`=` compares nothing", "`x == …`"),
    "add x, y / 2": ("`/` does not take a value of type i64", "`//` rounds down"),
    "swap(x, y)": ("operands have no brackets", "`swap x, y`"),
    "f(x, y, a, p)": ("run by `call`", "`call f(x, y, a, p)`"),
    "add x y": ("separated by commas", "`add x, y`"),
    "add x, 1 if y > 0 else 2": ("a choice", "`select(condition, a, b)`"),
    "add x, a.length": ("no field `length`", "`len(a)`"),
    "add p, True": ("nothing here is called `True`", "`true`"),
    "// a comment": ("a comment starts with `;`", ""),
}


def said(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(AssemblyError) as caught:
        assemble(HEAD + text + "\n")
    return caught.value.diagnostics


@pytest.mark.parametrize("line", SAID)
def test_a_line_of_another_language_is_refused_with_its_counterpart(line: str) -> None:
    (found,) = said(line)
    message, hint = SAID[line]
    assert message in found.message and hint in found.hint, found.human()
    assert found.where.line in (2, 3)


def test_what_is_said_instead_is_read() -> None:
    """The instruction that a message names makes a program, in place of the line."""
    tried = 0
    for line in SAID:
        (found,) = said(line)
        instead = found.message.split("` is `")[-1].rstrip("`") if "` is `" in found.message else ""
        for word in ("alloc", "for", "swap", "add t", "add x", "call"):
            if found.hint.startswith(f"`{word}"):
                instead = found.hint[1:].split("`")[0]
        first = instead.split(" ")[0]
        if "…" in instead or first not in ("add", "mul", "xor", "inc", "swap", "alloc", "for"):
            continue
        tried += 1
        more = {"for": "\nend", "alloc": "\nadd t, 0\n"}.get(first, "")
        before = "alloc t: i64\n" if instead.startswith("add t") else ""
        try:
            assemble(f"{HEAD}{before}{instead}{more}\n")
        except AssemblyError as error:
            codes = {d.code for d in error.diagnostics}
            # What is still wrong is what is not undone yet, or a type that only the caller knows.
            assert codes <= {"A031", "A033", "A032", "A036", "A035"}, (line, instead, str(error))
    assert tried >= 12


CALLED = "func g[T: real](y: T, x: T)\n add y, x * x\nfunc f(y: f64, x: f64, b: f64, a: f64[n])\n "


@pytest.mark.parametrize("call", ["g(y, x; 1, b)", "g[f64](y, a[0]; (1 + 2), b)  ; sum (x)"])
@pytest.mark.parametrize("word", ["call", "uncall", "map", "unmap", "iterate"])
def test_bars_of_a_call_without_a_mark(word: str, call: str) -> None:
    """The message names the function, and the call that it shows is read."""
    with pytest.raises(AssemblyError) as caught:
        assemble(f"{CALLED}{word} {call}\n")
    (found,) = caught.value.diagnostics
    assert found.code == "A002" and "`g` has no mark" in found.message
    instead = found.hint.split(": `")[1].split("` is")[0]
    assert instead == f"{word} {call}".replace("iterate", "call").replace(
        "(y", "'(y", 1
    ).removesuffix("  ; sum (x)")
    if "map" not in word:
        assemble(f"{CALLED}{instead}\n")


@pytest.mark.parametrize("line", ["call g(y, x ; twice", "add x, (y ; (no call)", "call g(y x; 1)"])
def test_a_comment_in_brackets_that_is_one(line: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(f"{CALLED}{line}\n")
    assert "mark" not in caught.value.message


def test_a_line_before_a_declaration_is_not_taken_for_its_own() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("func f(x: i64)\n inc x\nfunc g[](y: f64)\n")
    assert "type parameter" in caught.value.message


def test_twenty_errors_are_shown_and_the_others_counted() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("func f(x: i64)\n" + "".join(f" add x, y{k}\n" for k in range(57)))
    assert len(caught.value.diagnostics) == 57
    text = str(caught.value)
    assert text.count("error[A005]") == 20 and text.endswith("and 37 more")


@pytest.mark.parametrize("line", ["x.f({0})", "x.append({)", "x.f(}{)", "x.f({y})", "{}.f(1)"])
def test_braces_in_what_is_shown_are_not_places_of_a_template(line: str) -> None:
    for text in (f"func f(x: f64)\n    {line}\n", f"func {line}\n"):
        with pytest.raises(AssemblyError):
            assemble(text)
