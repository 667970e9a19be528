"""Traces for other tools: held to the rules of the formats, and to the trace's own numbers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tools.running import rvm

EXAMPLES = Path(__file__).parents[3] / "examples"
TEXT = """\
func main(a: i64, x: f64, s: stack[i64], n: i64)
    call left(a, n)
    for i = 1 to 2
        call right(a, x)
    end
    push n, s

func left(a: i64, n: i64)
    if n > 0
        alloc m: i64 = n - 1
        call left(a, m)
        call leaf(a)
        free m = n - 1
    end

func right(a: i64, x: f64)
    call leaf(a)
    uncall leaf(a)
    alloc t: f64 = x
    add t, 1e5
    sub t, 1e5
    free t = x

func leaf(a: i64)
    inc a
"""
RUN = ("main.rasm", "a=0", "x=0.1", "s=[]", "n=4")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.rasm").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def written(form: str, *more: str) -> str:
    return rvm("trace", *RUN, f"--format={form}", *more).stdout


def whole(*more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written("json", *more))
    return found


# ---------------------------------------------------------------- callgrind


class Profile:
    """A callgrind file, read by the rules of its manual."""

    def __init__(self, text: str) -> None:
        self.own: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.lines: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.calls: dict[tuple[str, str], int] = defaultdict(int)
        self.inside: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        self.totals: list[int] = []
        function, callee = "", None
        for line in text.splitlines():
            if found := re.fullmatch(r"(\d+)((?: \d+)+)", line):
                costs = [int(c) for c in found[2].split()]
                if callee is None:
                    self._add(self.own[function], costs)
                    self._add(self.lines[int(found[1])], costs)
                else:
                    self._add(self.inside[function, callee], costs)
                callee = None
            elif line.startswith("fn="):
                function = line[3:]
            elif line.startswith("cfn="):
                to = line[4:]
            elif line.startswith("calls="):
                callee = to
                self.calls[function, callee] += int(line[6:].split()[0])
            elif line.startswith("events:"):
                self.events = line.split()[1:]
            elif line.startswith("totals:"):
                self.totals = [int(c) for c in line.split()[1:]]
            else:
                assert re.match(r"$|#|\w+:|c?f[il]=", line), line

    @staticmethod
    def _add(to: list[int], costs: list[int]) -> None:
        assert len(costs) == 3
        for k, c in enumerate(costs):
            to[k] += c


def test_callgrind_has_the_traces_numbers() -> None:
    found, profile = whole(), Profile(written("callgrind"))
    assert profile.events == ["Ir", "Erased", "EnergyzJ"]
    assert profile.totals[:2] == [found["executed"], found["erased_bits"]]
    assert profile.totals[2] == pytest.approx(found["joules"] / 1e-21, abs=len(found["lines"]))
    for f in found["functions"]:
        own = profile.own[f["function"]]
        assert own[:2] == [f["own"]["executed"], f["own"]["erased_bits"]]
    for line in found["lines"]:
        assert profile.lines[line["line"]][0] == line["executed"]


def test_callgrind_has_calls_with_all_that_they_cost() -> None:
    found, profile = whole(), Profile(written("callgrind"))
    assert profile.calls == {
        ("(start)", "main"): 1,
        ("main", "left"): 1,
        ("left", "left"): 4,
        ("left", "leaf"): 4,
        ("main", "right"): 2,
        ("right", "leaf"): 2,
        ("right", "~leaf"): 2,
    }
    by_name = {f["function"]: f for f in found["functions"]}
    for (_, to), inside in profile.inside.items():
        assert inside[0] <= by_name[to]["total"]["executed"]
    for name in by_name:
        # What is counted inside calls of it, those of recursion aside, is all of a function.
        inside = [c for (who, to), c in profile.inside.items() if to == name and who != name]
        assert sum(c[0] for c in inside) == by_name[name]["total"]["executed"]
        assert sum(c[1] for c in inside) == by_name[name]["total"]["erased_bits"]
    assert profile.inside["left", "left"] == [0, 0, 0]


@pytest.mark.skipif(not shutil.which("callgrind_annotate"), reason="valgrind is not installed")
def test_callgrind_annotate_reads_it() -> None:
    Path("callgrind.out").write_text(written("callgrind"), encoding="utf-8")
    done = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--tree=both", "callgrind.out"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = whole()
    assert done.stderr == ""
    said = done.stdout.replace(",", "")
    assert re.search(rf"^ *{found['executed']} \(100\.0%\) +{found['erased_bits']} ", said, re.M)
    assert re.search(r"\* +main\.rasm:main", said) and "Ir Erased EnergyzJ" in said


# ---------------------------------------------------------------- stacks


def folded() -> dict[str, int]:
    return {
        k: int(n)
        for k, _, n in (line.rpartition(" ") for line in written("folded").split("\n") if line)
    }


def test_folded_stacks_add_up_to_the_steps() -> None:
    found = whole()
    stacks = folded()
    assert sum(stacks.values()) == found["steps"]
    assert set(stacks) == {
        "main",
        "main;left",
        "main;left;leaf",
        "main;right",
        "main;right;leaf",
        "main;right;~leaf",
    }
    assert stacks["main;left;leaf"] == 4 and stacks["main;right;~leaf"] == 2


def test_speedscope_keeps_to_its_schema() -> None:
    """The required members, their types, and what the viewer relies on beyond them."""
    file = json.loads(written("speedscope", "--energy=cmos"))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) <= {"$schema", "name", "exporter", "activeProfileIndex", "shared", "profiles"}
    frames = file["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str)
        assert set(frame) <= {"name", "file", "line", "col"}
    assert [p["name"] for p in file["profiles"]] == ["steps", "erased bits", "energy in zJ"]
    for profile in file["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] == "none"
        assert set(profile) == {
            "type", "name", "unit", "startValue", "endValue", "samples", "weights",
        }  # fmt: skip
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert all(0 <= k < len(frames) for sample in profile["samples"] for k in sample)
        assert all(w > 0 for w in profile["weights"])
        span = profile["endValue"] - profile["startValue"]
        assert span == pytest.approx(sum(profile["weights"]))
    found = whole("--energy=cmos")
    ends = [p["endValue"] for p in file["profiles"]]
    assert ends[:2] == [found["steps"], found["erased_bits"]]
    assert ends[2] == pytest.approx(found["joules"] / 1e-21)


# ---------------------------------------------------------------- time


def test_perfetto_has_nested_slices_for_all_calls() -> None:
    file = json.loads(written("perfetto"))
    slices = [e for e in file["traceEvents"] if e["ph"] == "X"]
    found = whole()
    assert all({"name", "ts", "dur", "pid", "tid", "cat"} <= set(e) for e in slices)
    assert len(slices) == found["calls"] + 1 and file["otherData"]["calls left out"] == 0
    assert (slices[0]["name"], slices[0]["ts"], slices[0]["dur"]) == ("main", 0, found["steps"])
    under_way: list[dict[str, Any]] = []
    for e in slices:
        while under_way and e["ts"] >= under_way[-1]["ts"] + under_way[-1]["dur"]:
            under_way.pop()
        if under_way:
            outer = under_way[-1]
            assert outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"]
        under_way.append(e)


def test_perfetto_slices_of_a_leaf_last_its_steps() -> None:
    """A call's own two ticks, and one instruction."""
    slices = [e for e in json.loads(written("perfetto"))["traceEvents"] if e["ph"] == "X"]
    assert {e["dur"] for e in slices if e["name"] in ("leaf", "~leaf")} == {3}


def test_a_window_begins_inside_calls() -> None:
    text = written("perfetto", "--from=10", "--to=20")
    slices = [e for e in json.loads(text)["traceEvents"] if e["ph"] == "X"]
    assert {(e["name"], e["ts"]) for e in slices[:2]} == {("main", 10), ("left", 10)}
    assert all(e["ts"] >= 10 and e["ts"] + e["dur"] <= 20 for e in slices)
