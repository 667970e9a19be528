"""`rvm trace`: its tables as they are read, and its numbers against other ways of getting them."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_tools.trace.account import CostAccount
from rvm_tools.trace.energy_models import model
from rvm_tools.trace.run import Trace, TraceRequest, counted, differentiating, traced
from rvm_tools.trace.slices import Slices
from tools.running import NORM, golden, rvm, rvm_json

import rvm as machine_package
from rvm.accounts.counts import Counts
from rvm.engines import ENGINES, auto
from rvm.faults import Interrupted
from rvm.run.machine import Machine
from rvm.state import Options

ROOT = Path(__file__).parents[3]
LEAKY = """\
func leak(x: f64, y: f64, s: stack[i64], k: i64)
    alloc t: f64 = x
    add t, y            ; rounds
    sub t, y
    free t = x          ; a residue of one number
    extern forward
        print "{} {}", x, k
    end
    push k, s           ; what stands on it is left there
    call twice(k)

func twice(k: i64)
    for i = 1 to 2
        inc k
    end
"""


CALLING = """\
func f(k: i64, n: i64)
    for i = 1 to n
        call g(k, n)
    end

func g(k: i64, n: i64)
    if n > 0
        inc k
    end
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "norm.rasm").write_text(NORM, encoding="utf-8")
    (tmp_path / "leak.rasm").write_text(LEAKY, encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


LEAK = ("leak.rasm", "x=0.1", "y=1e5", "s=[5]", "k=7")


def test_table_by_line() -> None:
    golden("trace_line", rvm("trace", "norm.rasm", "r=0", "y=0", "x=[3,4]").stdout)


def test_table_by_opcode() -> None:
    result = rvm("trace", "norm.rasm", "r=0", "y=0", "x=[3,4]", "--by=opcode", "--energy=cmos")
    golden("trace_opcode", result.stdout)


def test_table_by_function() -> None:
    result = rvm("trace", *LEAK, "--by=function")
    golden("trace_function", result.stdout)


def test_table_of_a_gradient() -> None:
    values = ["r=0", "y=0", "x=[3,4]"]
    result = rvm("trace", "norm.rasm", *values, "--gradient=r", "--energy=adiabatic:tau=1e-6")
    golden("trace_gradient", result.stdout)


def test_table_of_a_program_in_several_files() -> None:
    values = ["before=0", "after=0", "steps=1"]
    golden("trace_files", rvm("trace", "examples/leapfrog.rasm", *values).stdout)


def test_csv_by_line() -> None:
    golden("trace_csv", rvm("trace", *LEAK, "--format=csv").stdout)


# ---------------------------------------------------------------- numbers


def test_what_is_erased_and_where() -> None:
    """64 bits of a residue, two numbers printed, one number more on the stack than before.

    Of x = 0.1 the sum with 1e5 leaves 0.10000000000582077, which is 419,430 numbers off.
    """
    assert round((0.1 + 1e5 - 1e5 - 0.1) / 2**-56).bit_length() == 19
    answer = rvm("trace", *LEAK, "--json")
    assert answer.stderr == "0.1 7\n"
    found = json.loads(answer.stdout)
    assert found["erased"] == {
        "freed": 64,
        "left on stacks": 64,
        "rounded away": 19,
        "sent out": 128,
    }
    assert found["erased_bits"] == 275
    assert found["joules"] == pytest.approx(275 * 2.8709788850787e-21)
    by_line = {row["line"]: row["erased_bits"] for row in found["lines"] if row["erased_bits"]}
    assert by_line == {3: 19, 5: 64, 7: 128}
    kept = rvm_json_of("trace", *LEAK, "--keep-stacks")
    assert kept["erased_bits"] == 211


def rvm_json_of(*args: str) -> Any:
    return json.loads(rvm(*args, "--json").stdout)


def test_backwards_nothing_is_printed_and_the_stack_is_emptied() -> None:
    found = rvm_json_of("trace", "leak.rasm", "--back", "x=0.1", "y=1e5", "s=[5,7]", "k=2")
    assert found["direction"] == "backwards" and found["function"] == "~leak"
    assert found["erased"] == {"freed": 64, "rounded away": 19}


def test_all_tables_have_the_same_total() -> None:
    found = rvm_json_of("trace", "examples/petersen.rasm", "y=0", f"x={np.eye(10)[:, :2].tolist()}")
    for rows in (found["opcodes"], found["lines"], [f["own"] for f in found["functions"]]):
        for key in ("executed", "ticks", "calls", "checks", "overwritten_bits"):
            assert sum(row[key] for row in rows) == found[key]
        for cls, n in found["work"].items():
            assert sum(row["work"][cls] for row in rows) == n
    assert found["ticks"] == found["steps"]
    (outermost,) = [f for f in found["functions"] if f["entered"] == 0]
    assert outermost["total"]["executed"] == found["executed"]
    assert sum(f["entered"] for f in found["functions"]) == found["calls"]


def test_the_json_of_an_opcode_is_what_the_machine_did() -> None:
    found = rvm_json_of("trace", "norm.rasm", "r=0", "y=0", "x=[3,4]")
    by_op = {row["opcode"]: row for row in found["opcodes"]}
    # two squares and a root; the loop's variable is made, counted twice and given up
    assert by_op["add"]["executed"] == 2 + 2 + 1
    assert by_op["add"]["work"] == {"MOVES": 0, "ADDS": 5, "MULTS": 2, "NLOPS": 1}
    assert by_op["add"]["overwritten_bits"] == 5 * 64
    assert found["work_by_type"]["NLOPS"] == {"f64": 1}
    machine = Machine(machine_package.load("norm.rasm"), r=0.0, y=0.0, x=np.array([3.0, 4.0]))
    assert machine.run().time == found["steps"] == found["to"]


def test_engines_agree_on_everything() -> None:
    for file, *values in (
        LEAK,
        ("examples/qr.rasm", "Q=zeros(2,2)", "R=zeros(2,2)", "A=[[3,1],[4,2]]"),
    ):
        one, *others = (rvm_json_of("trace", file, *values, f"--engine={e}") for e in ENGINES)
        assert [o.pop("engine") for o in (one, *others)] == list(ENGINES)
        assert others == [one] * len(others)


def test_a_run_and_its_reverse_are_mirror_images() -> None:
    values = ("out=0", "n=9")
    there = rvm_json_of("trace", "examples/fibonacci.rasm", "-f", "rrfib", *values)
    back = rvm_json_of("trace", "examples/fibonacci.rasm", "-f", "rrfib", "out=55", "n=9", "--back")
    for key in ("steps", "executed", "calls", "work", "overwritten_bits", "peak_bytes"):
        assert there[key] == back[key], key
    assert [(r["line"], r["executed"], r["work"]) for r in there["lines"]] == [
        (r["line"], r["executed"], r["work"]) for r in back["lines"]
    ]


# ---------------------------------------------------------------- windows


def test_windows_add_up_to_the_run() -> None:
    values = ("n=0", "x=100")
    whole = rvm_json_of("trace", "examples/fibonacci.rasm", "-f", "fib_at_least", *values)
    end = whole["steps"]
    cuts = [0, 1, 17, end // 2, end]
    parts = [
        rvm_json_of(
            "trace", "examples/fibonacci.rasm", "-f", "fib_at_least", *values,
            f"--from={a}", f"--to={b}",
        )
        for a, b in pairwise(cuts)
    ]  # fmt: skip
    assert [p["steps"] for p in parts] == [b - a for a, b in pairwise(cuts)]
    for key in ("ticks", "calls"):
        assert sum(p[key] for p in parts) == whole[key]
    for line in whole["lines"]:
        seen = [r["executed"] for p in parts for r in p["lines"] if r["line"] == line["line"]]
        assert sum(seen) == line["executed"]
    assert not any(p["complete"] for p in parts) and whole["complete"]


def test_memory_is_the_most_within_the_window() -> None:
    (Path("big.rasm")).write_text(
        "func f(n: i64)\n    alloc a: f64[1000]\n    free a\n    inc n\n    inc n\n",
        encoding="utf-8",
    )
    assert rvm_json("trace", "big.rasm", "n=0")["peak_bytes"] == 8000 + 8
    assert rvm_json("trace", "big.rasm", "n=0", "--from=2")["peak_bytes"] == 8


def test_windows_that_there_are_not() -> None:
    assert "before the window begins" in rvm("trace", *LEAK, "--from=1e6", code=1).stderr
    assert "window ends" in rvm("trace", *LEAK, "--from=5", "--to=3", code=2).stderr
    error = rvm("trace", *LEAK, "--from=1e6", "--json", code=1)
    assert json.loads(error.stdout)["errors"][0]["code"] == "I031"


# ---------------------------------------------------------------- gradients


def test_a_gradient_is_traced_with_the_run_before_it() -> None:
    """Its steps are those of the gradient program, its lines those of the function."""
    program = machine_package.load("norm.rasm")
    handle = program.norm
    machine = differentiating(handle, "r", {"r": 0.0, "y": 0.0, "x": np.array([3.0, 4.0])})
    trace = counted(machine, model("landauer"))
    # d sqrt(x·x) / dx = x / |x|
    assert machine["x_bar"] == pytest.approx([0.6, 0.8])
    assert {f.name for f in trace.account.by_function().values()} == {
        "norm_gradient", "norm", "norm_adjoint",
    }  # fmt: skip
    numbers = {line.number for line in trace.account.by_line()}
    assert numbers == {0, 3, 4, 6}
    found = rvm_json("trace", "norm.rasm", "r=0", "y=0", "x=[3,4]", "--gradient=r")
    assert found["steps"] == machine.time


def test_the_gradient_of_an_inverse() -> None:
    found = rvm_json("trace", "norm.rasm", "r=5", "y=25", "x=[3,4]", "--gradient=y", "--back")
    assert found["function"] == "norm_gradient"
    assert rvm("trace", "norm.rasm", "r=0", "y=0", "x=[3]", "--gradient=q", code=1).stderr


# ---------------------------------------------------------------- odds and ends


def test_csv_has_the_rows_of_each_table() -> None:
    for by, key in (("opcode", "opcodes"), ("line", "lines"), ("function", "functions")):
        text = rvm("trace", *LEAK, f"--by={by}", "--format=csv", "--keep-stacks").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        found = rvm_json_of("trace", *LEAK, "--keep-stacks")
        assert len(rows) == len(found[key])
        assert sum(int(r["executed"]) for r in rows) == found["executed"]
        assert sum(float(r["joules"]) for r in rows) == pytest.approx(found["joules"])


def test_a_failing_run() -> None:
    Path("bad.rasm").write_text("func f(k: i64)\n    alloc t: i64 = k\n    inc t\n    free t = k\n")
    assert "R001" in rvm("trace", "bad.rasm", "k=1", code=4).stderr


def test_the_engine_is_explained() -> None:
    said = rvm("trace", "norm.rasm", "--explain-engine").stdout
    assert said.startswith("norm: python, then native\n  because ")
    assert rvm_json_of("trace", "norm.rasm", "--explain-engine", "--engine=native") == {
        "function": "norm",
        "first": "native",
        "then": "native",
        "reasons": ["it was asked for"],
        "not compiled": [],
    }


def test_without_llvm_a_trace_goes_on_with_loops_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("spin.rasm").write_text(SPIN.replace("rol s, 1", "xor s, 1"))
    with monkeypatch.context() as without:
        without.setattr(auto, "native_is_there", lambda: False)
        said = rvm("trace", "spin.rasm", "--explain-engine").stdout
        assert said.startswith("f: python, then vector\n")
        found = rvm_json_of("trace", "spin.rasm", "s=0", "n=100000")
    assert found == rvm_json_of("trace", "spin.rasm", "s=0", "n=100000")


SPIN = """\
func f(s: u64, n: i64)
    for i = 1 to n
        add s, u64(i)
        rol s, 1
    end
"""


@pytest.mark.parametrize("form", ["table", "json"])
def test_ctrl_c_prints_the_account_of_what_ran(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("spin.rasm").write_text(SPIN)
    stop = 1_234_567

    def interrupted(machine: Machine) -> Machine:
        machine.step(stop)
        raise Interrupted("R016", "interrupted", time=machine.time)

    monkeypatch.setattr(Machine, "run", interrupted)
    done = rvm("trace", "spin.rasm", "s=0", "n=1000000", f"--format={form}", code=130)
    assert "R016" in done.stderr and "exact" in done.stderr
    if form == "table":
        assert done.stdout.startswith(
            "f: 1,234,567 steps forwards, from time 0 to 1,234,567, interrupted there\n"
        )
        return
    found = json.loads(done.stdout)
    assert (found["steps"], found["ticks"]) == (stop, stop)
    assert found["interrupted"] and not found["complete"]
    whole = rvm_json_of("trace", "spin.rasm", "s=0", "n=1000000", f"--to={stop}")
    assert not whole.pop("interrupted") and found.pop("interrupted")
    assert whole == found


def test_missing_inputs_are_shown_as_a_command() -> None:
    error = rvm("trace", "norm.rasm", code=1).stderr
    assert "I001" in error and "rvm trace norm.rasm r=0 y=0 x=[3,4]" in error


def test_a_program_without_source(tmp_path: Path) -> None:
    rvm("asm", "norm.rasm", "-o", "norm.rbc")
    Path("norm.rasm").unlink()
    found = rvm("trace", "norm.rbc", "r=0", "y=0", "x=[3,4]").stdout
    assert "add" in rvm("trace", "norm.rbc", "r=0", "y=0", "x=[3,4]", "--by=opcode").stdout
    assert "steps forwards" in found


def test_long_runs_keep_few_slices() -> None:
    program = machine_package.assemble(CALLING)
    machine = Machine(program, "f", k=0, n=3000)
    slices = Slices([machine.state.top.code], 0, most=100)
    counts = machine.count(Counts(slices))
    machine.run()
    slices.close(machine.time, counts.entered)
    assert slices.calls == 3001 and slices.left_out == 3001 - len(slices.kept)
    assert len(slices.kept) <= 101
    assert slices.kept[0].name == "f" and slices.kept[0].ticks == machine.time
    assert all(s.ticks >= slices.least for s in slices.kept)


def test_an_account_holds_no_more_after_a_long_run_than_after_a_short_one() -> None:
    program = machine_package.assemble(CALLING)

    def nodes(n: int) -> int:
        machine = Machine.start(program, "f", {"k": 0, "n": n}, Options())
        trace: Trace = counted(machine, model("landauer"))
        account: CostAccount = trace.account
        return len(account.nodes)

    assert nodes(3) == nodes(300) == 2


def test_requests_are_made_by_hand_too() -> None:
    trace = traced(TraceRequest("norm.rasm", ("r=0", "y=0", "x=[3,4]"), energy="cmos"))
    assert trace.complete and trace.joules(trace.all) > 0
