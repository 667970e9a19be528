"""Running the command line within the tests, and programs for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rich_click as click
from click.testing import CliRunner, Result
from rvm_tools.cli import cli

GOLDEN = Path(__file__).parent / "golden"


def _commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, (*path, name))


COMMANDS = dict(_commands(cli))
"""All commands, by the words that call them."""

NORM = """\
;! run norm(r=0, y=0, x=[3, 4]) -> r=5, y=25
func norm(r: f64, y: f64, x: f64[n])
    for i = 0 to n - 1
        add y, x[i] ** 2
    end
    add r, sqrt(y)
"""
KINDS = """\
record Body
    pos: f64
    spin: i64
end

func kinds(b: bool, u: u8, z: c128, q: fixed, g: log64, p: Body, a: i64[m, n], s: stack[i64])
    not b
    add u, 250
    add z, 1 + 2j
    add q, 0.5
    add p.pos, f64(p.spin)
    add a[0, 1], 7
"""


def rvm(*args: str, code: int = 0, **options: Any) -> Result:
    """Run a command in this process; the exit code must be `code`."""
    result = CliRunner().invoke(cli, [*args], prog_name="rvm", **options)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def rvm_json(*args: str, code: int = 0) -> Any:
    """Run a command with --json: one object on standard output, and nothing on standard error."""
    result = rvm(*args, "--json", code=code)
    assert result.stderr == ""
    return json.loads(result.stdout)


def process(
    *args: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rvm_tools", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def golden(name: str, text: str) -> None:
    """Compare with a kept output; RVM_GOLDEN=1 in the environment keeps the new one."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("RVM_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "RVM_GOLDEN=1 would keep the new output"


def interrupted(*args: str, cwd: Path) -> tuple[int, str, str]:
    """Ctrl-C for a command that says "under way": exit code, what it wrote after that, messages.

    The program itself says so, with an effect, as imports may take any time on a busy machine.
    """
    run = subprocess.Popen(
        [sys.executable, "-m", "rvm_tools", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "under way\n"
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    return run.returncode, out, err
