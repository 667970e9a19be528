"""Every command's output goes to streams of any encoding, and to those that have no room."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from sizes import sample, wide
from tools.running import NORM

WIDE = """\
func f(x: f64, y: f64)
    add y, sqrt(x)
    extern both
        print "√x → {} · ░ ≤ — ö 値 🦉", y
    end
"""
RUNS = [
    ["asm", "wide.rasm", "--emit=listing"],
    ["dis", "wide.rasm"],
    ["check", "wide.rasm"],
    ["check", "値.rasm"],
    ["run", "wide.rasm", "x=4", "y=0"],
    ["run", "wide.rasm", "x=4", "y=0", "--json"],
    ["run", "wide.rasm", "値=4", "y=0"],
    ["run", "missing-🦉.rasm"],
    ["grad", "wide.rasm", "x=4", "y=0", "--loss", "y"],
    ["trace", "wide.rasm", "x=4", "y=0"],
    ["trace", "wide.rasm", "x=4", "y=0", "--json"],
    ["trace", "norm.rasm", "r=0", "y=0", "x=[3,4]", "--energy", "cmos"],
    ["debug", "wide.rasm", "x=4", "y=0", "-x", "go.rdb", "--batch"],
    ["debug", "wide.rasm", "x=4", "y=0", "-x", "go.rdb", "--json"],
    ["pebble", "30", "--pebbles", "7", "--picture"],
    ["pebble", "30", "--pebbles", "7", "--picture", "--json"],
    ["pebble", "30", "--pebbles", "7", "--plot"],
    ["explain"],
    ["explain", "R001"],
    ["explain", "ñ"],
    ["bench", "--list"],
    ["completion", "bash"],
    ["--help"],
    ["run", "--help"],
    ["--bogus-→"],
]
CODE = """
import json, sys
from rvm_tools import cli, streams
streams.prepare()
codes = []
for args in json.loads(sys.argv[1]):
    print("@#@", flush=True)
    print("@#@", file=sys.stderr, flush=True)
    try:
        cli.cli(args, prog_name="rvm")
        codes.append(0)
    except SystemExit as ended:
        codes.append(ended.code)
    sys.stdout.flush()
print("@#@", codes)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams")
    (path / "wide.rasm").write_text(WIDE, encoding="utf-8")
    (path / "値.rasm").write_text(WIDE.replace("sqrt(x)", "sqrt(値)"), encoding="utf-8")
    (path / "norm.rasm").write_text(NORM, encoding="utf-8")
    (path / "go.rdb").write_text("s\np √\nbogus 値\nend\np y\n", encoding="utf-8")
    return path


@cache
def outputs(folder: Path, encoding: str) -> tuple[list[str], list[str], list[int]]:
    """What each of RUNS puts out to both streams, and the exit codes."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(RUNS)],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        timeout=300,
    )
    # Click writes UTF-8 where a stream says that it is ASCII.
    known = "utf-8" if encoding == "ascii" else encoding
    out, err = (text.decode(known, "replace") for text in (done.stdout, done.stderr))
    assert "@#@" in out, err
    *outs, codes = out.split("@#@")[1:]
    return outs, err.split("@#@")[1:], json.loads(codes)


@wide
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_streams_that_lack_characters(encoding: str, folder: Path) -> None:
    wanted = outputs(folder, "utf-8")
    found = outputs(folder, encoding)
    assert found[2] == wanted[2]
    assert 70 not in found[2]
    for args, out, err, there, said in zip(RUNS, *found[:2], *wanted[:2], strict=True):
        assert "UnicodeEncodeError" not in err + out, args
        assert len(out.splitlines()) == len(there.splitlines()), args
        assert bool(err) == bool(said), args
        if "--json" in args:
            assert json.loads(out) == json.loads(there), args
            assert out.isascii() or encoding == "utf-8", args


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("args", [["explain", "R001"], ["asm", "wide.rasm", "-o", "/dev/full"]])
def test_no_room_for_the_output(args: list[str], folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rvm_tools", *args],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error[U012]: can't write ")
    assert "no space left" in done.stderr
    assert "Exception ignored" not in done.stderr


@sample
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("args", [["--version"], ["--help"], ["asm", "--help"], ["run", "x.rasm"]])
@pytest.mark.parametrize("err", ["/dev/full", "err.txt"])
def test_no_room_for_what_the_group_says(args: list[str], err: str, folder: Path) -> None:
    """Also where standard error is full too: then without a word, but not with success."""
    command = f"'{sys.executable}' -m rvm_tools {' '.join(args)} > /dev/full 2> {err}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, timeout=60)
    assert done.returncode == 2
    if err == "err.txt":
        said = (folder / err).read_text(encoding="utf-8")
        assert re.match(r"error\[U01[12]\]: can't (write standard output|read)", said)
        assert "Traceback" not in said and "Exception ignored" not in said


@cache
def written(folder: Path, args: str, name: str, closed: str = "") -> bytes:
    """What a command writes to a file, with some of its streams closed."""
    (folder / name).unlink(missing_ok=True)
    command = f"'{sys.executable}' -m rvm_tools {args} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return (folder / name).read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="no shell that closes streams")
@sample
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("args", "name"),
    [("run wide.rasm x=4 y=0 --out y=y.json", "y.json"), ("asm wide.rasm -o wide.rbc", "wide.rbc")],
)
def test_streams_that_are_closed(args: str, name: str, closed: str, folder: Path) -> None:
    """What is written to a file is not mixed with what was for a stream."""
    assert written(folder, args, name, closed) == written(folder, args, name)
