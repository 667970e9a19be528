"""`rvm check`: static checks, `;! run` lines both ways, generated inputs."""

from __future__ import annotations

import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from rvm_tools.directives import directives
from rvm_tools.generate import inputs
from rvm_tools.show import literal_text, parameters
from rvm_tools.values import assignments, inputs_for
from sizes import wide
from tools.running import KINDS, NORM, golden, rvm, rvm_json

from rvm import assemble
from rvm.engines import executing
from rvm.faults import InputError
from rvm.run.binding import bind

MANY = """\
;! run up(x=1) -> x=3
;! run up(x=1) -> x=4
;! run halve(x=1.5) -> x=0.75
;! run drop(x=2.5) -> x=1.5
;! run drop(x=1.2) fails R002
;! run drop(x=2.5) fails R002
;! run tenth(x=0, n=10) -> x=1.0 within 1e-12
;! run tenth(x=0,
;!           n=3)
func up(x: i64)
    add x, 2

func halve(x: f64)
    div x, 2

func drop(x: f64)
    if x > 1
        sub x, 1
    end

func tenth(x: f64, n: i64)
    for i = 1 to n
        add x, 0.1
    end

func product(A: i64[m, k], B: i64[k, n], C: i64[m, n])
    add C, A @ B

func element(x: i64[n], i: i64)
    add x[i], 5
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "norm.rasm").write_text(NORM)
    (tmp_path / "many.rasm").write_text(MANY)
    return tmp_path


def verdicts(*args: str, code: int = 0) -> dict[str, str]:
    return {c["what"]: c["verdict"] for c in rvm_json("check", *args, code=code)["checks"]}


def test_the_report() -> None:
    result = rvm("check", "many.rasm", code=1)
    golden("check", re.sub(r"[\d,]+ bytes", "… bytes", result.stdout))
    golden("check_errors", result.stderr)


def test_every_directive_has_its_verdict() -> None:
    found = verdicts("many.rasm", code=1)
    failing = [k for k, verdict in enumerate(found.values()) if verdict != "ok"]
    assert failing == [2, 6] and len(found) == 11

    assert "product: generated inputs" in found and "element: generated inputs" in found


def test_one_function() -> None:
    found = verdicts("many.rasm", "-f", "drop", code=1)
    assert len(found) == 4 and not any("up(" in what for what in found)


def test_given_values() -> None:
    found = rvm_json("check", "many.rasm", "-f", "element", "x=[1,2]", "i=1")
    assert found["ok"] and found["checks"][-1]["what"] == "element: given values"
    failed = rvm_json("check", "many.rasm", "-f", "element", "x=[1,2]", "i=2", code=3)
    assert failed["checks"][-1]["errors"][0]["code"] == "R003"


def test_strict_reports_the_log_and_loses_nothing() -> None:
    given = ("check", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]")
    assert rvm_json(*given)["checks"][-1]["lost_bits"]["y"] > 0
    strict = rvm_json(*given, "--strict")["checks"][-1]
    assert strict["lost_bits"] == {} and strict["residue_bytes"] > 0
    assert "bytes in the residue log" in strict["say"]


def test_what_does_not_come_back_fails_with_4() -> None:
    found = rvm_json("check", "norm.rasm", "r=0", "y=0.1", "x=[1e17]", code=4)
    assert [e["code"] for e in found["checks"][-1]["errors"]] == ["C001"]


def test_erased_bits_are_named() -> None:
    Path("free.rasm").write_text(
        "func f(x: f64)\n    alloc t: f64 = x\n    add t, 0.1\n    sub t, 0.1\n    free t = x\n"
    )
    row = rvm_json("check", "free.rasm", "x=0.3")["checks"][-1]
    assert row["erased_bits"] == 64 and "64 bits erased" in row["say"]


def test_generated_inputs_that_end_early_come_back_too() -> None:
    Path("deep.rasm").write_text("func f(x: i64[n], i: i64)\n    inc i\n    add x[i + 100], 1\n")
    row = rvm_json("check", "deep.rasm")["checks"][-1]
    assert row["verdict"] == "?" and "ended early by R003 (4); none came to its end" in row["say"]


def test_a_check_of_which_one_run_ends_is_no_question() -> None:
    Path("some.rasm").write_text(
        "func f(x: i64, n: i64)\n    for i = 1 to n\n        add x, i\n    end\n"
    )
    row = rvm_json("check", "some.rasm", "--max-steps=100", "--runs=8")["checks"][-1]
    assert row["verdict"] == "ok" and "turned back" in row["say"] and "none" not in row["say"]


def test_generated_inputs_of_square_matrices() -> None:
    Path("square.rasm").write_text("func f(A: f64[n, n], B: f64[n, n + 1])\n    add A, 1\n")
    row = rvm_json("check", "square.rasm")["checks"][-1]
    assert row["verdict"] == "ok" and "4 runs" in row["say"]


@wide
def test_functions_of_included_files_are_checked_where_they_are_called() -> None:
    text = "func mine(x: i64[n])\n    call bit_reverse(x)\n"
    Path("mine.rasm").write_text('include "std/permutations.rasm"\n' + text)
    rows = rvm_json("check", "mine.rasm")["checks"]
    assert [r["what"].split(":")[0] for r in rows] == ["bytecode", "mine"]
    Path("all.rasm").write_text('include "mine.rasm"\n')
    assert len(rvm_json("check", "all.rasm")["checks"]) > 2
    rows = rvm_json("check", "mine.rasm", "-f", "bit_reverse[i64]")["checks"]
    assert [r["what"].split(":")[0] for r in rows] == ["bytecode", "bit_reverse[i64]"]


def test_long_runs_turn_round() -> None:
    Path("long.rasm").write_text(
        "func f(x: i64)\n    alloc n: i64\n    while n >= 0, n > 0\n        inc n\n    end\n"
        "    free n = -1\n"
    )
    row = rvm_json("check", "long.rasm", "--max-steps=1000", "--runs=2")["checks"][-1]
    assert "2 turned back after 1,000 steps; none came to its end" in row["say"]
    assert row["verdict"] == "?"


def test_runs_of_the_same_seed_are_the_same() -> None:
    assert rvm("check", "many.rasm", "--seed=3", code=1).stdout == (
        rvm("check", "many.rasm", "--seed=3", code=1).stdout
    )


def test_files_that_must_be_refused() -> None:
    Path("bad.rasm").write_text(";! fails A013\nfunc f(x: f64)\n    add x, x\n")
    assert verdicts("bad.rasm") == {"fails A013": "ok"}
    Path("good.rasm").write_text(";! fails A013\nfunc f(x: f64)\n    add x, 1\n")
    found = rvm_json("check", "good.rasm", code=1)
    assert found["checks"][0]["errors"][0]["code"] == "C003"


def test_a_program_with_errors_is_refused() -> None:
    Path("bad.rasm").write_text("func f(x: f64)\n    add x, x\n")
    assert "A013" in rvm("check", "bad.rasm", code=1).stderr


def test_bytecode_and_standard_input() -> None:
    rvm("asm", "norm.rasm", "-o", "norm.rbc")
    assert "generated inputs" in rvm("check", "norm.rbc").stdout
    assert ";! run" not in rvm("check", "-", input=NORM).stdout
    assert "line 1: run norm" in rvm("check", "-", input=NORM).stdout


def test_callbacks_are_not_needed() -> None:
    Path("call.rasm").write_text(
        "func f(x: i64)\n    extern both\n        callback watch, x\n    end\n    inc x\n"
    )
    assert rvm_json("check", "call.rasm")["ok"]


def test_directives_are_read() -> None:
    found = directives(
        ";! run f(p.x=1, p.y=[2, 3], q={a: 1}) -> q={a: 2} within 1e-3\n"
        "; no directive\n"
        "   ;! run g() fails R001, R002\n"
        ";! fails A013 A014\n"
    )
    assert [d.line for d in found] == [1, 3, 4]
    assert found[0].inputs == {"p": {"x": 1, "y": [2, 3]}, "q": {"a": 1}}
    assert found[0].expected == {"q": {"a": 2}} and found[0].within == 1e-3
    assert found[0].words == ("p.x=1", "p.y=[2, 3]", "q={a: 1}")
    assert found[1].function == "g" and found[1].codes == ("R001", "R002")
    assert not found[2].is_run and found[2].codes == ("A013", "A014")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("run", 7),
        ("runs f()", 4),
        ("run f(x)", 11),
        ("run f(x=)", 12),
        ("run f(x=1) -> ", 18),
        ("run f(x=1) fails", 20),
        ("fails A13", 14),
    ],
)
def test_a_directive_that_cannot_be_read_says_where(text: str, column: int) -> None:
    with pytest.raises(InputError) as caught:
        directives(f"func f()\n;! {text}\n", "a.rasm")
    where = caught.value.where
    assert (caught.value.code, where.source, where.line) == ("I010", "a.rasm", 2)
    assert abs(where.column - column) <= 1


def test_engines_that_differ_are_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from rvm_tools import checks
    from rvm_tools.trial import Trial

    true = checks.attempt

    def slips(*args: Any, engine: str, **options: Any) -> Trial:
        trial = true(*args, engine=engine, **options)
        trial.steps += engine == "python"
        return trial

    monkeypatch.setattr(checks, "attempt", slips)
    found = rvm_json("check", "norm.rasm", code=70)
    assert [e["code"] for e in found["checks"][1]["errors"]] == ["C005"]


def test_runs_of_directives_are_not_cut_short() -> None:
    Path("long.rasm").write_text(
        ";! run f(s=0, n=1000) -> s=1000\n"
        "func f(s: i64, n: i64)\n    for i = 1 to n\n        inc s\n    end\n"
    )
    assert rvm_json("check", "long.rasm", "--max-steps=10")["ok"]


def test_without_llvm_the_other_engines_are_checked(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    from rvm.engines.native import host

    monkeypatch.setattr(host, "find_spec", lambda name: None)
    host._lack.cache_clear()
    host.library.cache_clear()
    request.addfinalizer(host._lack.cache_clear)
    assert "native engine" in rvm("check", "norm.rasm").stdout
    found = rvm_json("check", "norm.rasm")
    assert found["ok"]
    assert found["engines"] == [n for n in executing() if n != "native"]
    assert list(found["skipped"]) == ["native"]
    asked = rvm("check", "norm.rasm", "--engine", "native", code=2)
    assert "error[U002]" in asked.stderr


@wide
def test_engines_may_differ_in_bits_of_this_machine(here: Path) -> None:
    (here / "wide.rasm").write_text(
        "func wide(y: f64, x: f64[n], a: f64[n, n])\n"
        "    for i = 0 to n - 1\n        add y, sum(exp(x)) * atan(x[i]) + dot(a @ x, x)\n    end\n"
    )
    values = [f"{k / 7 - 5}" for k in range(60)]
    given = ["wide", "y=0", f"x=[{','.join(values)}]", "a=ones(60, 60)"]
    found = [
        rvm_json("run", "wide.rasm", *given[1:], f"--engine={e}", "--bits=machine")["values"]["y"]
        for e in executing()
        if e == "native" or e == "python"
    ]
    assert len(set(found)) == len(found), "the case is one where engines differ"
    checked = rvm_json("check", "wide.rasm", *given[1:], "--bits=machine")
    assert checked["ok"] and checked["checks"][-1]["verdict"] == "ok"


LOST = """\
;! run undone(y=0, x=1.1, n=60)
;! run undone(y=0, x=1.1, n=4)
;! run kept(y=0, x=1.1, n=60)
;! run singles(y=0, x=1, n=20)
func half(x: f64)
    mul x, 0.5
    add x, 0.3

func double(x: f64)
    sub x, 0.3
    div x, 0.5

func halves(x: f64, n: i64)
    for i = 1 to n
        call half(x)
    end

func undone(y: f64, x: f64, n: i64)
    for i = 1 to n
        call half(x)
    end
    add y, x
    for k = 1 to n
        call double(x)
    end

func kept(y: f64, x: f64, n: i64)
    call halves(x, n)
    add y, x
    uncall halves(x, n)

func singles(y: f32, x: f32, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
    end
    add y, 1.0 / (x - 0.6000005)
"""


@wide
def test_results_that_have_lost_their_digits_are_reported() -> None:
    """With the inputs, and of strict mode only what it can do."""
    Path("lost.rasm").write_text(LOST)
    checks = rvm_json("check", "lost.rasm", "--runs", "0", code=4)["checks"][1:]
    assert [[w["code"] for w in c["warnings"]] for c in checks] == [["C006"], [], [], ["C006"]]
    told = checks[0]["warnings"][0]
    assert told["message"].startswith("`x` has lost its digits to rounding: it is 128.6")
    assert told["values"] == {"y": 0.0, "x": 1.1, "n": 60} and told["line"] == 1
    assert "digits lost: x" in checks[0]["say"] and "strict mode does not" in told["help"]
    # Back at the start it is in strict mode, at the end the same is lost.
    [failed] = checks[0]["errors"]
    assert failed["code"] == "C001" and "`x` had lost its digits" in failed["help"]
    strict = rvm_json("check", "lost.rasm", "--runs", "0", "--strict")["checks"][1:]
    assert [len(c["warnings"]) for c in strict] == [1, 0, 0, 1] and not strict[0]["errors"]
    shown = rvm("check", "lost.rasm", "--runs", "0", "--strict").stderr
    assert shown.startswith("warning[C006]: `x` has lost its digits")
    given = ("lost.rasm", "-f", "undone", "y=0", "x=1.1", "n=60", "--round-trip")
    assert "had lost its digits" in rvm("run", *given, code=4).stderr
    few = ("run", "lost.rasm", "-f", "halves", "x=1.1", "n=30", "--round-trip")
    assert "floats come back exactly with --strict" in rvm(*few, code=4).stderr


def test_inputs_that_fail_are_shown_as_run_takes_them(tmp_path: Path) -> None:
    """What is shown fails when it is pasted.  Where rounding is to blame, it is a warning."""
    (tmp_path / "drift.rasm").write_text(
        "func drift(x: f64[n], y: f64)\n"
        "    for i = 0 to n - 1\n        add x[i], y * 1e12\n        mul x[i], 3.3\n    end\n"
    )
    said = rvm("check", str(tmp_path / "drift.rasm"))
    assert re.search(r"^\?  *drift: generated inputs .* [1-4] beyond the tol", said.stdout, re.M)
    assert "warning[C001]: `x` did not come back" in said.stderr
    found = re.search(r"on these inputs: (.*)", said.stdout + said.stderr)
    assert found is not None and "with --strict they come back" in said.stdout + said.stderr
    words = shlex.split(found[1])[1:]
    rvm(*words, code=4)
    rvm(*words, "--strict")


def test_inputs_of_every_kind_are_written_as_they_are_read() -> None:
    program = assemble(KINDS).program
    function = program.functions[0]
    for seed in range(20):
        values = inputs(function, random.Random(seed), easy=seed % 2 == 0)
        regs = bind(function, values, frozenset())
        words = [
            f"{name}={literal_text(function.registers[k].type, regs[k])}"
            for name, k in parameters(function)
        ]
        again = bind(
            function, inputs_for(function, assignments(words, Path()), Path()), frozenset()
        )
        assert [literal_text(function.registers[k].type, again[k]) for k in range(len(words))] == [
            literal_text(function.registers[k].type, regs[k]) for k in range(len(words))
        ], words


def test_warnings_about_the_text_are_not_failures() -> None:
    """In the report's row of the bytecode, and of other commands on standard error."""
    Path("low.rasm").write_text("func f(x: i64)\n    if x > 3\n        dec x\n    end\n")
    row = rvm_json("check", "low.rasm")["checks"][0]
    assert row["verdict"] == "ok" and [w["code"] for w in row["warnings"]] == ["A077"]
    shown = rvm("check", "low.rasm").stderr
    assert shown.startswith("warning[A077]: `dec x` can make `x > 3` false")
    assert rvm("run", "low.rasm", "x=9").stderr == shown
    assert rvm("debug", "low.rasm", "x=9", "--batch", input="quit\n").stderr == shown


def test_what_runs_without_values_is_run_so_first(tmp_path: Path) -> None:
    """On random variables these programs rarely come to their ends, on their own they do."""
    file = tmp_path / "count.ja"
    file.write_text("procedure main()\n  int i\n  int n = 7\n  from i = 0 do i += 1 until i = n\n")
    out = rvm("check", str(file)).stdout
    assert "main: zeros and generated inputs" in out and "none came to its end" not in out
    file.write_text("procedure main()\n  int i\n  from i = 0 do i += 1 until i = 7\n  i -= 7\n")
    assert re.search(r"^ok +main: zeros", rvm("check", str(file)).stdout, re.MULTILINE)
