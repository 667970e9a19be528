"""Pages of documentation that run: their code blocks executed, the shown output compared.

| block | is |
|---|---|
| a kind of `FILES` with a name, `python NAME.py` | a file, written to the page's folder |
| `rasm` | a text that assembles |
| `console` | lines `$ rvm …`, each followed by what it prints |
| `debug ARGUMENTS` | a session of `rvm debug`: commands after their prompts, and what they print |
| `debug` | the session goes on |
| `sh`, with `text` after it | commands; what follows `&&` in the last prints the text |
| `python` with `>>>` | a session, held to its output as doctest does |
| `python`, perhaps with `text` after it | a script; the text is what it prints |

All Python blocks of a page share their names.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from rvm_tools.cli import cli

import rvm

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.S | re.M)
FILES = ("rasm", "janus", "pure", "python")
"""Kinds of blocks that are files, if they have a title."""
SILENT = ("ebnf", "text", "sh")
"""Kinds of blocks that are shown, not run (`text` and `sh` may belong together)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its info string's first word, the rest of it, its text and line."""

    kind: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    source = page.read_text(encoding="utf-8")
    out = []
    for found in FENCE.finditer(source):
        kind, _, title = found[1].partition(" ")
        line = source.count("\n", 0, found.start()) + 2
        out.append(Block(kind, title.strip(), found[2], line))
    return out


def run_page(page: Path, folder: Path) -> dict[str, int]:
    """Run every block of a page within `folder`; how many of each kind there were."""
    names: dict[str, Any] = {}
    counted: dict[str, int] = {}
    found = blocks(page)
    with contextlib.chdir(folder):
        for k, block in enumerate(found):
            after = found[k + 1] if k + 1 < len(found) else None
            shown = after.text if after is not None and after.kind == "text" else None
            try:
                _run(block, shown, names, folder)
            except AssertionError as failure:
                raise AssertionError(f"{page.name}, line {block.line}: {failure}") from None
            counted[block.kind] = counted.get(block.kind, 0) + 1
    return counted


def _run(block: Block, shown: str | None, names: dict[str, Any], folder: Path) -> None:
    match block.kind:
        case kind if kind in FILES and block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        case "rasm":
            rvm.assemble(block.text)
        case "console":
            for command, output in commands(block.text):
                same(printed(command, folder), output, command)
        case "debug":
            same(debugged(block.title, block.text, names), block.text, "the session")
        case "sh" if shown is not None:
            command = last_command(block.text)
            same(printed(command, folder), shown, command)
        case "python" if ">>> " in block.text:
            _session(block, names)
        case "python":
            same(script_output(block.text, block.line, names), shown or "", "the script's output")
        case kind:
            assert kind in SILENT, f"a block of the unknown kind `{kind}`"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    parts = re.split(r"^\$ ", text, flags=re.M)
    assert not parts[0], "a console block begins with `$ `"
    for part in parts[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command, output


def last_command(text: str) -> str:
    """What stands after the last `&&` of a block of commands."""
    return text.strip().splitlines()[-1].split("&&")[-1].strip()


SKIPPED = re.compile(r"^-     native engine +skipped: .*\n", re.M)
"""What `rvm check` says besides where there is no machine code; pages are of where there is."""


def printed(command: str, folder: Path) -> str:
    """What a command prints on both streams."""
    program, *arguments = shlex.split(command)
    assert program == "rvm", f"only `rvm` is run here, not `{program}`"
    with contextlib.chdir(folder):
        done = CliRunner(env={"NO_COLOR": "1"}).invoke(cli, arguments, prog_name="rvm")
    return SKIPPED.sub("", done.output)


PROMPT = re.compile(r"^\[t=[^\]]*\] ?(.*)$", re.M)


def debugged(arguments: str, text: str, names: dict[str, Any]) -> str:
    """What a debugger prints for the commands in `text`; the session is kept among the names."""
    from rvm_tools.debug.console import Console, OutputLine
    from rvm_tools.debug.front import DebugRequest, open_session
    from rvm_tools.debug.views import arrive

    out: list[str] = []

    def show(line: OutputLine) -> None:
        out.append(line.text)

    if arguments:
        file, *values = shlex.split(arguments)
        loss = values.pop() if "--gradient" in values else None
        values = [v for v in values if v != "--gradient"]
        names["debugger"] = Console(open_session(DebugRequest(file, values, gradient=loss)))
        names["debugger"].show = show
        arrive(names["debugger"], names["debugger"].session.stop)
    console = names["debugger"]
    console.show = show
    for command in PROMPT.findall(text):
        out.append(f"{console.prompt()}{command}")
        console.execute(command)
    return "\n".join(out) + "\n"


def _session(block: Block, names: dict[str, Any]) -> None:
    parser, report = doctest.DocTestParser(), io.StringIO()
    test = parser.get_doctest(block.text, names, "session", None, block.line)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.FAIL_FAST)
    failures = runner.run(test, out=report.write, clear_globs=False).failed
    names.update(test.globs)
    assert not failures, "\n" + report.getvalue()


def script_output(text: str, line: int, names: dict[str, Any]) -> str:
    """What a script, which stands on `line`, prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * (line - 1) + text, "<page>", "exec"), names)
    return out.getvalue()


def same(have: str, shown: str, what: str) -> None:
    """Compare outputs, trailing blanks and the last newline aside."""

    def lines(text: str) -> list[str]:
        return [line.rstrip() for line in text.rstrip().split("\n")]

    assert lines(have) == lines(shown), f"{what}\n--- prints\n{have}\n--- the page says\n{shown}"
