"""The command line as processes: start-up, terminals, pipes, Ctrl-C."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sizes import thin, wide
from tools.running import NORM, interrupted, process

from rvm.engines import executing, having

SUM = "func main(s: i64, n: i64)\n    for i = 0 to n - 1\n        add s, i\n    end\n"
SAYING = '    extern both\n        print "under way"\n    end\n'
SAID = SUM.replace(")\n", f")\n{SAYING}", 1) + SAYING
posix = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "norm.rasm").write_text(NORM)
    (tmp_path / "sum.rasm").write_text(SUM)
    return tmp_path


@thin
@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"], ["bench", "-h"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys\n"
        "from rvm_tools.cli import cli\n"
        f"cli({args!r}, prog_name='rvm', standalone_mode=False)\n"
        "heavy = {'numpy', 'rich.traceback', 'rich.progress', 'rvm.run.machine', 'rvm.isa',"
        " 'rvm_asm', 'pygments', 'asyncio'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@wide
def test_results_and_messages_are_apart(folder: Path) -> None:
    fine = process("run", "norm.rasm", "r=0", "y=0", "x=[3,4]", cwd=folder)
    assert (fine.returncode, fine.stderr) == (0, "")
    wrong = process("run", "norm.rasm", "r=0", cwd=folder)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "\x1b" not in wrong.stderr


def test_the_entry_point_is_installed() -> None:
    script = Path(sys.executable).parent / "rvm"
    if not script.exists():
        pytest.skip("the package is not installed with its scripts")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("rvm, version ")


@posix
def test_a_closed_pipe_is_not_an_error(folder: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "rvm_tools", "explain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout is not None and run.stderr is not None
    run.stdout.close()
    assert run.wait(timeout=60) == 0
    assert run.stderr.read() == b""
    run.stderr.close()


@thin
@posix
@pytest.mark.parametrize("engine", [n for n in executing() if n not in having("compiles")])
@pytest.mark.parametrize("way", ["forwards", "backwards"])
def test_ctrl_c_stops_between_two_instructions(folder: Path, engine: str, way: str) -> None:
    n = 10**9
    given = ["s=0"] if way == "forwards" else [f"s={n * (n - 1) // 2}", "--back"]
    (folder / "said.rasm").write_text(SAID)
    words = ["run", "said.rasm", f"n={n}", "--engine", engine, *given]
    code, out, err = interrupted(*words, cwd=folder)
    assert (code, out) == (130, "")
    assert "error[R016]: interrupted" in err and f"running {way} in `main`" in err


@wide
@posix
def test_on_a_terminal(folder: Path) -> None:
    """No binary is put out, errors are coloured, and a long run shows how far it is."""
    code, out = on_terminal(["asm", "norm.rasm"], folder)
    assert code == 2 and b"U012" in out and b"\x1b[" in out and b"\x00" not in out
    code, out = on_terminal(["asm", "norm.rasm"], folder, NO_COLOR="1")
    assert code == 2 and b"U012" in out and b"\x1b[31m" not in out
    code, out = on_terminal(
        ["run", "sum.rasm", "s=0", "n=20_000_000", "--engine", "python"], folder
    )
    assert code == 0 and b"forwards" in out and b" M/s" in out


def on_terminal(args: list[str], folder: Path, **environment: str) -> tuple[int, bytes]:
    """Run a command with a terminal for its input and output: exit code, what was written."""
    import pty

    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "rvm_tools", *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    out = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if not ready:
            continue
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    os.close(ours)
    return run.wait(timeout=60), out
