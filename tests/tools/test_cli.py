"""The command line as a whole: help, exit codes, other commands, and faults of our own."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import rich_click as click
from rvm_tools.cli import GROUP, cli
from tools.running import rvm, rvm_json

import rvm as machine

COMMANDS = cli.list_commands(click.Context(cli))


def test_commands_of_other_packages_are_installed_as_declared() -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    wanted = declared["project"]["entry-points"][GROUP]
    installed = {point.name: point.value for point in entry_points(group=GROUP)}
    assert installed.items() >= wanted.items(), (
        f"the installation is older than pyproject.toml: "
        f"pip --python {sys.executable} install --no-deps -e ."
    )
    assert wanted.keys() <= set(COMMANDS)


def test_help_names_every_command() -> None:
    out = rvm("--help").stdout
    for name in COMMANDS:
        assert f" {name} " in out
        assert "Usage:" in rvm(name, "--help").stdout
        assert "Usage:" in rvm(name, "-h").stdout


def test_version() -> None:
    assert rvm("--version").stdout == f"rvm, version {machine.__version__}\n"


def test_an_unknown_command_gets_a_suggestion() -> None:
    assert "Did you mean `check`?" in rvm("chek", code=2).stderr
    assert "There are: asm, dis," in rvm("frobnicate", code=2).stderr


def test_every_option_has_a_help_text() -> None:
    ctx = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(ctx, name)
        assert command is not None and command.help
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, (name, param.name)


def test_explain() -> None:
    out = rvm("explain", "A013").stdout
    assert out.startswith("A013: the destination is also read\n\n") and "add x, x * y" in out
    assert rvm("explain", "[a013]").stdout == rvm("explain", "A013").stdout
    found = rvm_json("explain", "R002")
    assert found["code"] == "R002" and found["title"] and found["text"]


def test_explain_lists_all_codes() -> None:
    lines = rvm("explain").stdout.splitlines()
    codes = [line.split()[0] for line in lines]
    assert codes == sorted(codes) and {"A001", "A013", "B001", "C001", "I010", "R001"} < set(codes)
    assert list(rvm_json("explain")) == codes


def test_explain_of_no_code() -> None:
    assert "near it: A001, A002" in rvm("explain", "A0", code=2).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    assert "_RVM_COMPLETE" in rvm("completion", shell).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rvm ch", "plain,check"),
        ("rvm da", "plain,dap"),
        ("rvm explain A01", "plain,A013"),
        ("rvm bench le", "plain,leapfrog"),
        ("rvm run --engine ref", "plain,reference"),
        ("rvm run --on-error ", "plain,stop"),
    ],
)
def test_completion(words: str, expected: str) -> None:
    count = len(words.split()) - (0 if words.endswith(" ") else 1)
    result = rvm(
        env={"_RVM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    )
    assert expected in result.stdout.splitlines()


def test_an_internal_error_ends_with_70(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: object) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("rvm_tools.runs.run", broken)
    monkeypatch.delenv("RVM_TRACEBACK", raising=False)
    result = rvm("run", "x.rasm", code=70)
    assert "ZeroDivisionError: a slip" in result.stderr
    assert "Traceback" not in result.stderr and "report" in result.stderr
    monkeypatch.setenv("RVM_TRACEBACK", "1")
    assert "Traceback" in rvm("run", "x.rasm", code=70).stderr


def test_an_interrupt_outside_of_a_run_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rvm_tools.runs.run", interrupted)
    result = rvm("run", "x.rasm", code=130)
    assert result.stderr == "interrupted\n" and result.stdout == ""


def test_bench_of_an_unknown_workload_or_engine() -> None:
    assert "did you mean `matmul`?" in rvm("bench", "matmull", code=2).stderr
    assert "U002" in rvm("bench", "loop", "--engine=turbo", code=2).stderr


def test_bench_list_as_json() -> None:
    assert set(json.loads(rvm("bench", "--list", "--json").stdout)) >= {"loop", "xtea", "matmul"}
