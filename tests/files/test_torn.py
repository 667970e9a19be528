"""Files that were cut or damaged are refused: an error with a code, never another answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from objects.samples import DAG, PROGRAM, seen
from rvm_tools import files
from rvm_tools.debug import Session
from rvm_tools.debug.export import script_of
from rvm_tools.debug.scripts import read_script
from rvm_tools.literals import File
from rvm_tools.programs import write_arrays
from sizes import thin
from tools.running import rvm as command

import rvm
from rvm import pebble
from rvm.codec import encode
from rvm.host.write import write_bytes, write_text

Read = Callable[[Path], Any]


def bytecode(path: Path) -> Read:
    write_bytes(path, encode(rvm.assemble("func f(x: i64)\n    add x, 1\n")))
    return rvm.load


def plan(path: Path) -> Read:
    pebble.plan(60, pebbles=7, goal="gradient").save(path)
    return lambda p: seen(pebble.load(p))


def plan_of_a_graph(path: Path) -> Read:
    pebble.plan_dag(DAG, pebbles=4).save(path)
    return pebble.load


def script(path: Path) -> Read:
    session = Session(PROGRAM, "work", {"x": np.arange(4.0), "y": 0.25, "n": 3, "s": [7]})
    session.goto(20)
    session.watch("v[0]")
    session.marks["here"] = 12
    write_text(path, script_of(session))
    return lambda p: read_script(str(p))


def results(path: Path) -> Read:
    arrays = {"x": np.arange(5.0), "n": np.array(3), "m": np.eye(3, dtype=np.complex128)}
    write_arrays(str(path), arrays)
    return lambda p: {k: seen(v.array) for k, v in files.read_all(File(str(p)), Path()).items()}


KINDS: dict[str, Callable[[Path], Read]] = {
    "program.rbc": bytecode,
    "plan.npz": plan,
    "graph.npz": plan_of_a_graph,
    "session.rdb": script,
    "results.npz": results,
}


def outcome(read: Read, path: Path) -> Any:
    """What is read, or the code of the error; another exception fails the test."""
    try:
        return read(path)
    except rvm.RvmError as error:
        assert error.code
        assert error.exit_code in (1, 2)
        return None


def replaced(path: Path, data: bytes) -> None:
    """Write a file anew: some disks wait for one that is cut to nothing and filled again."""
    path.unlink()
    path.write_bytes(data)


@thin
@pytest.mark.parametrize("name", KINDS)
def test_a_file_cut_at_every_byte_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    read = KINDS[name](path)
    data, whole = path.read_bytes(), read(path)
    assert whole
    for length in range(len(data)):
        replaced(path, data[:length])
        found = outcome(read, path)
        if name == "session.rdb" and length == len(data) - 1:
            assert found == whole, "only the end of the last line is missing"
        else:
            assert found is None, length


@thin
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_byte_is_found_or_means_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    read = KINDS[name](path)
    data, whole = path.read_bytes(), read(path)
    rng = random.Random(name)
    for at in range(len(data)):
        other = bytearray(data)
        other[at] ^= 1 << rng.randrange(8)
        replaced(path, other)
        found = outcome(read, path)
        assert found is None or found == whole, at


@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_an_array_cut_at_every_byte_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones(shape))
    data = path.read_bytes()
    for length in range(len(data)):
        replaced(path, data[:length])
        with pytest.raises(rvm.InputError) as error:
            files.read_value(File(str(path)), Path(), "x")
        assert error.value.code == "I011"


def test_commands_end_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uses = {
        "program.rbc": ["check", "program.rbc"],
        "plan.npz": ["pebble", "plan.npz"],
        "session.rdb": ["debug", "p.rasm", "y=1", "a=2", "-x", "session.rdb", "--batch"],
        "results.npz": ["run", "p.rasm", "@results.npz"],
    }
    Path("p.rasm").write_text("func scale(y: f64, a: f64)\n    mul y, a\n")
    for name, args in uses.items():
        KINDS[name](Path(name))
        data = Path(name).read_bytes()
        for length in (0, 1, len(data) // 2, len(data) - 2):
            Path(name).write_bytes(data[:length])
            code = 1 if name in ("program.rbc", "plan.npz", "results.npz") else 2
            ran = command(*args, code=code)
            assert ran.stderr.startswith("error[")


def test_a_saved_script_may_be_changed_without_its_seal(tmp_path: Path) -> None:
    path = tmp_path / "session.rdb"
    read = script(path)
    commands = read(path)
    path.write_text(path.read_text().replace("goto 20", "goto 21"))
    with pytest.raises(rvm.UsageError) as error:
        read(path)
    assert error.value.code == "U044"
    path.write_text("\n".join(path.read_text().splitlines()[1:-1]))
    assert read(path) == [c.replace("goto 20", "goto 21") for c in commands]
    path.write_text("# nothing\n")
    with pytest.raises(rvm.UsageError):
        read(path)


def test_line_ends_may_change(tmp_path: Path) -> None:
    path = tmp_path / "session.rdb"
    commands = script(path)(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_script(str(path)) == commands
