"""`rvm run`: forwards, backwards, there and back, and what can go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.running import KINDS, NORM, golden, rvm, rvm_json

from rvm import Machine, load
from rvm.engines import executing
from rvm.engines.reference import step

KINDS_GIVEN = (
    "b=false", "u=10", "z=1", "q=0.25", "g=2'log64", "p={pos: 1.5, spin: 2}", "a=zeros(2, 3)",
)  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "norm.rasm").write_text(NORM)
    (tmp_path / "kinds.rasm").write_text(KINDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
class TestWhatPeopleRead:
    def test_forwards(self) -> None:
        golden("run", rvm("run", "norm.rasm", "r=0", "y=0", "x=[1,2,3]").stdout)

    def test_there_and_back(self) -> None:
        out = rvm("run", "norm.rasm", "r=0", "y=0", "x=[1,2,3]", "--round-trip").stdout
        golden("run_round_trip", out)

    def test_the_way_back_over_adjoints_has_its_own_steps(self) -> None:
        text = """
func f(y: f64, x: f64)
    alloc t: f64 = sin(x)
    add y, t ** 2
    free t = sin(x)

func g(y: f64, x: f64, y_bar: f64, x_bar: f64)
    call f'(y, x; y_bar, x_bar)
"""
        Path("bars.rasm").write_text(text)
        given = {"y": 0.3, "x": 0.7, "y_bar": 1.0, "x_bar": 0.25}
        there = Machine(load("bars.rasm"), "g", **given).run()
        steps, state, back = there.time, there.state, 0
        state.turn()
        state.retreat()
        while not state.at_end:
            step(state)
            back += 1
        values = (f"{k}={v}" for k, v in given.items())
        out = rvm("run", "bars.rasm", "-f", "g", *values, "--round-trip").stdout
        assert back > steps
        assert f"g: {steps} steps forwards" in out and f"g: {back} steps backwards" in out

    def test_there_and_back_with_lost_bits(self) -> None:
        out = rvm("run", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]", "--round-trip").stdout
        golden("run_lost_bits", out)

    def test_every_kind_of_value(self) -> None:
        golden("run_kinds", rvm("run", "kinds.rasm", *KINDS_GIVEN).stdout)

    def test_long_arrays_and_matrices_are_abbreviated(self) -> None:
        Path("big.rasm").write_text("func f(x: i64[n], A: f64[m, k], s: stack[u8])\n    inc x[0]\n")
        many = "s=[" + ",".join(["7"] * 100) + "]"
        golden("run_big", rvm("run", "big.rasm", "x=range(1000)", "A=ones(30, 4)", many).stdout)


@pytest.mark.usefixtures("here")
class TestAnswers:
    def test_the_estimated_error(self) -> None:
        given = ("run", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]", "--error")
        found = rvm_json(*given)
        error = found["info"]["error"]
        assert set(error) == set(found["values"]) and 0 < error["r"] < 1e-14
        assert error["x"] == [0, 0, 0]
        assert "estimated error" in rvm(*given).stdout
        assert "error" not in rvm_json(*given[:-1])["info"]
        back = (f"{k}={v}".replace(" ", "") for k, v in found["values"].items())
        assert rvm_json("run", "norm.rasm", *back, "--back", "--error")["info"]["error"]["r"] > 0

    def test_forwards_and_backwards(self) -> None:
        there = rvm_json("run", "norm.rasm", "r=0", "y=0", "x=[3,4]")
        assert there["values"] == {"r": 5.0, "y": 25.0, "x": [3.0, 4.0]}
        assert there["direction"] == "forwards"
        back = rvm_json("run", "norm.rasm", "r=5", "y=25", "x=[3,4]", "--back")
        assert back["values"] == {"r": 0.0, "y": 0.0, "x": [3.0, 4.0]}
        assert back["direction"] == "backwards"
        assert there["steps"] == back["steps"] > 0

    @pytest.mark.parametrize("engine", executing())
    def test_engines_agree(self, engine: str) -> None:
        found = rvm_json("run", "norm.rasm", "r=0", "y=0", "x=[3,4]", "--engine", engine)
        assert found["engine"] == engine
        assert found["values"]["r"] == 5.0

    def test_round_trip_backwards_first(self) -> None:
        given = ("run", "norm.rasm", "r=5", "y=25", "x=[3,4]")
        found = rvm_json(*given, "--back", "--round-trip")
        assert found["values"]["y"] == 0.0
        assert found["back"] == found["start"] == {"r": 5.0, "y": 25.0, "x": [3.0, 4.0]}
        assert found["restored"] is True and found["lost_bits"] == {}

    def test_info_says_what_rounding_did(self) -> None:
        found = rvm_json("run", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]")
        assert set(found["info"]) == {"erased_bits", "drift", "bits"}
        assert found["info"]["erased_bits"] == found["erased_bits"]
        graded = rvm_json("grad", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]", "--loss", "r")
        assert set(graded["info"]) == {"erased_bits", "drift", "bits"}

    @pytest.mark.parametrize("command", ["run", "grad"])
    def test_bits_of_this_machine_are_reported(self, command: str) -> None:
        given = [command, "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]", "--bits=machine"]
        given += ["--loss", "r"] if command == "grad" else []
        assert rvm_json(*given)["info"]["bits"] == "machine"

    def test_strict_restores_what_tolerant_loses(self) -> None:
        given = ("run", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]", "--round-trip")
        tolerant = rvm_json(*given)
        assert tolerant["restored"] is False and tolerant["lost_bits"]["y"] > 0
        strict = rvm_json(*given, "--strict")
        assert strict["restored"] is True and strict["residue_bytes"] > 0

    def test_a_start_that_is_lost_altogether_is_an_error(self) -> None:
        given = ("run", "norm.rasm", "r=0", "y=0.1", "x=[1e17]", "--round-trip")
        found = rvm_json(*given, code=4)
        assert found["errors"][0]["code"] == "C001"
        assert found["back"]["y"] == 0.0 and found["lost_bits"]["y"] == 53
        assert "C001" in rvm(*given, code=4).stderr

    def test_json_keeps_every_bit_of_every_type(self) -> None:
        found = rvm_json("run", "kinds.rasm", *KINDS_GIVEN)["values"]
        assert found == {
            "b": True,
            "u": 4,
            "z": "2.0+2.0j",
            "q": "0.75",
            "g": "2.0'log64",
            "p": {"pos": 3.5, "spin": 2},
            "a": [[0, 7, 0], [0, 0, 0]],
            "s": [],
        }

    def test_json_is_read_back(self, here: Path) -> None:
        there = rvm("run", "kinds.rasm", *KINDS_GIVEN, "--json").stdout
        (here / "out.json").write_text(there)
        back = rvm_json("run", "kinds.rasm", "@out.json", "--back")["values"]
        assert back["q"] == "0.25" and back["p"] == {"pos": 1.5, "spin": 2} and back["u"] == 10

    def test_arrays_are_written_and_read_back(self, here: Path) -> None:
        rvm("run", "kinds.rasm", *KINDS_GIVEN, "--out", "out.npz")
        with np.load(here / "out.npz") as kept:
            assert set(kept) == {"b", "u", "z", "q", "g", "p.pos", "p.spin", "a", "s"}
            assert kept["q"] == 3 << 41 and kept["u"].dtype == np.uint8
        back = rvm_json("run", "kinds.rasm", "@out.npz", "--back")["values"]
        assert back["a"] == [[0, 0, 0], [0, 0, 0]] and back["z"] == "1.0+0.0j"

    def test_prints_of_the_program(self) -> None:
        Path("p.rasm").write_text(
            'func f(x: i64)\n    extern forward\n        print "x is {}", x\n    end\n    inc x\n'
        )
        assert rvm("run", "p.rasm", "x=4").stdout.startswith("x is 4\nf: ")
        assert rvm_json("run", "p.rasm", "x=4")["output"] == ["x is 4"]

    def test_standard_input_may_be_text_or_bytecode(self, here: Path) -> None:
        given = ("run", "-", "r=0", "y=0", "x=[3,4]")
        as_text = rvm(*given, input=NORM).stdout
        data = rvm("asm", "norm.rasm").stdout_bytes
        assert rvm(*given, input=data).stdout == as_text


@pytest.mark.usefixtures("here")
class TestErrors:
    @pytest.mark.parametrize(
        ("args", "code", "says"),
        [
            (["nrm.rasm"], 2, "did you mean `norm.rasm`?"),
            (["norm.txt"], 2, "U006"),
            (["norm.rasm", "y=0", "x=[1]"], 1, "needs a value for `r`"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "z=1"], 1, "no parameter `z`"),
            (["norm.rasm", "r=0", "y=0", "x=[[1]]"], 1, "1 dimension, not 2"),
            (["norm.rasm", "r=0", "y=one", "x=[1]"], 1, "I010"),
            (["norm.rasm", "r=0", "y=0", "x"], 2, "NAME=VALUE"),
            (["norm.rasm", "-f", "nrm"], 2, "did you mean `norm`?"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--engine=turbo"], 2, "no engine `turbo`"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--out", "o.txt"], 2, "--out o.npz"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--max-steps", "x"], 2, "not an amount"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--tolerance", "-1"], 2, "tolerance"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--max-steps", "3"], 3, "limit of 3 steps"),
            (["norm.rasm", "r=0", "y=nan", "x=[1]", "--bck"], 2, "--back"),
        ],
    )
    def test_each_has_its_exit_code_and_goes_to_standard_error(
        self, args: list[str], code: int, says: str
    ) -> None:
        result = rvm("run", *args, code=code)
        assert says in result.stderr
        assert result.stdout == ""

    def test_a_limit_on_memory(self) -> None:
        Path("room.rasm").write_text("func f(n: i64)\n    alloc t: f64[n]\n    free t\n")
        assert "R011" in rvm("run", "room.rasm", "n=1000", "--max-memory=4K", code=3).stderr
        rvm("run", "room.rasm", "n=100", "--max-memory=4K")

    def test_endless_recursion_ends_before_the_memory_does(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = "inc n\n    call f(n)\n    dec n\n"
        Path("deep.rasm").write_text(f"func f(n: i64)\n if n > 0, n > 0\n    {body} end\n")
        pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
        monkeypatch.setattr("os.sysconf", pages.__getitem__, raising=False)
        said = rvm("run", "deep.rasm", "n=1", code=3).stderr
        assert "limit = 1024000" in said and "the recursion of `f` is" in said
        Path("always.rasm").write_text("func f(n: i64)\n    inc n\n    call f(n)\n")
        assert "error[A079]" in rvm("run", "always.rasm", "n=0", code=1).stderr

    def test_a_failed_check_ends_with_4(self) -> None:
        Path("drop.rasm").write_text("func drop(x: f64)\n    if x > 1\n        sub x, 1\n    end\n")
        result = rvm("run", "drop.rasm", "x=1.2", code=4)
        assert "R002" in result.stderr and "forwards" in result.stderr

    def test_going_back_an_error_says_backwards(self) -> None:
        Path("down.rasm").write_text("func down(x: i64)\n    alloc t: i64 = x\n    free t = 2\n")
        result = rvm("run", "down.rasm", "x=3", "--back", code=4)
        assert "running backwards" in result.stderr

    def test_a_missing_input_shows_the_files_own_example(self) -> None:
        hint = "rvm run norm.rasm r=0 y=0 x=[3,4]"
        assert hint in rvm("run", "norm.rasm", code=1).stderr

    def test_json_has_errors_as_an_object(self) -> None:
        found = rvm_json("run", "norm.rasm", "r=0", code=1)
        assert [e["code"] for e in found["errors"]] == ["I001"]
        found = rvm_json("run", "norm.rasm", "r=0", "y=0", "x=[1]", "--max-steps=3", code=3)
        assert found["time"] == 3 and found["direction"] == "forwards"

    def test_stopping_shows_the_failing_instruction(self) -> None:
        given = ("run", "norm.rasm", "r=0", "y=0", "x=[3,4]", "--max-steps=6", "--on-error=stop")
        result = rvm(*given, code=3)
        golden("run_stopped", result.stdout + result.stderr)
        found = rvm_json(*given, code=3)
        assert found["stopped_in"] == "norm" and found["values"]["y"] == 9.0

    def test_a_program_with_errors_shows_all_of_them(self) -> None:
        Path("bad.rasm").write_text("func f(x: f64)\n    ad x, 1\n    add y, 2\n")
        result = rvm("run", "bad.rasm", "x=1", code=1)
        assert "A003" in result.stderr and result.stderr.count("error[") == 2


def test_amounts() -> None:
    from rvm_tools.options import BYTES, STEPS

    found: list[Any] = [STEPS("1_000"), STEPS("1e6"), STEPS("2.5e3"), STEPS("3M"), BYTES("64K")]
    assert found == [1000, 1_000_000, 2500, 3_000_000, 65536]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("import rvm\n\ndef g():\n    return 1 / 0\n\ng()\n", 4, "ZeroDivisionError"),
        ("import nowhere_at_all\n", 1, "No module named"),
        ("x = (\n", 1, "never closed"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError"),
        ("\nopen('nowhere')\n", 2, "FileNotFoundError"),
    ],
)
def test_what_a_python_file_raises_is_its_own(text: str, line: int, words: str) -> None:
    Path("own.py").write_text(text)
    result = rvm("run", "own.py", "x=1", code=2)
    assert "U049" in result.stderr and words in result.stderr and "bug" not in result.stderr
    assert f"own.py:{line}:" in result.stderr


@pytest.mark.usefixtures("here")
def test_a_file_without_a_suffix_and_a_folder_are_reported_as_such() -> None:
    Path("folder").mkdir()
    Path("some.rasm").write_text("func f(x: f64)\n inc x\n")
    Path("some").write_text("func f(x: f64)\n inc x\n")
    for file, said, hint in [
        ("folder", "folder is a folder", "known suffixes: "),
        ("some", "some has no suffix", "did you mean `some.rasm`?"),
        ("nowhere", "nowhere has no suffix", "known suffixes: "),
        ("a.weird", "no front end reads `.weird` files", "known suffixes: "),
    ]:
        result = rvm("run", file, "x=1", code=2)
        assert "error[U006]" in result.stderr and said in result.stderr and hint in result.stderr


ENTRY_FIRST = """\
func emit(out: stack[u8], v: i64)
    add v, 0
func compress(out: stack[u8], text: u8[n])
    add text[0], 0
func search(at: i64, text: u8[n])
    add at, 0
func generic[T: real](z: T)
    add z, 0
"""


def test_names_of_values_that_a_function_lacks_which_was_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.rasm").write_text(ENTRY_FIRST)
    note = "`emit` is the entry, which is run if no function is named"
    for words, named in {
        ("text=text:ab",): "-f compress names",
        ("text=text:ab", "at=1"): "-f search names",
        ("z=1",): "-f generic names",
        ("text=text:ab", "z=1"): "",
    }.items():
        (error,) = rvm_json("run", "f.rasm", *words, code=1)["errors"]
        assert (error["code"], error["notes"]) == ("I002", [note])
        assert error["help"].startswith(named or "it takes out: stack[u8], v: i64")
    (error,) = rvm_json("run", "f.rasm", code=1)["errors"]
    assert (error["code"], error["notes"]) == ("I001", [note])
    assert "-f" not in error["help"]
    (error,) = rvm_json("run", "f.rasm", "-f", "search", "v=1", code=1)["errors"]
    assert (error["code"], error["notes"]) == ("I002", [])
    Path("g.rasm").write_text("func only(x: i64)\n    inc x\n")
    (error,) = rvm_json("run", "g.rasm", "y=1", code=1)["errors"]
    assert (error["code"], error["notes"]) == ("I002", [])
