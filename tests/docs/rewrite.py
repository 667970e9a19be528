"""Rewrites the outputs that pages show by running them: `python tests/docs/rewrite.py PAGE …`.

What a page shows is then what is printed, right or wrong: read the difference.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.pages import FENCE, FILES, ROOT, commands, debugged, last_command, printed, script_output


def rewritten(source: str, folder: Path) -> str:
    """The page with its outputs as they are."""
    names: dict[str, Any] = {}
    out, position, pending = [], 0, None
    for found in FENCE.finditer(source):
        kind, _, title = found[1].partition(" ")
        text = found[2]
        if kind == "text" and pending is not None:
            text = pending.rstrip("\n") + "\n"
        pending = None
        if kind in FILES and title:
            (folder / title).write_text(text, encoding="utf-8")
        elif kind == "console":
            shown = [f"$ {c}\n{trimmed(printed(c, folder))}" for c, _ in commands(text)]
            text = "".join(shown)
        elif kind == "debug":
            text = trimmed(debugged(title, text, names))
        elif kind == "sh" and last_command(text).startswith("rvm "):
            pending = printed(last_command(text), folder)
        elif kind == "python" and ">>> " in text:
            text = session(text, names)
        elif kind == "python":
            pending = script_output(text, 1, names)
        out += [source[position : found.start()], f"```{found[1]}\n{text}```"]
        position = found.end()
    return "".join([*out, source[position:]])


def trimmed(output: str) -> str:
    """Lines without trailing blanks; none for no output."""
    return "".join(f"{line.rstrip()}\n" for line in output.rstrip().split("\n") if output.strip())


def session(text: str, names: dict[str, Any]) -> str:
    """A doctest session with its outputs."""
    out = []
    for k, example in enumerate(doctest.DocTestParser().get_examples(text)):
        first, *more = example.source.rstrip("\n").split("\n")
        out += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
        buffer = io.StringIO()
        try:
            with contextlib.redirect_stdout(buffer):
                # As doctest has it: functions are read where they stand.
                name, lines = f"<doctest session[{k}]>", example.source.splitlines(keepends=True)
                linecache.cache[name] = len(example.source), None, lines, name
                code = compile(example.source, name, "single", dont_inherit=True)
                exec(code, names)
        except Exception as error:
            last = "".join(traceback.format_exception_only(error))
            buffer.write(f"Traceback (most recent call last):\n    ...\n{last}")
        out += buffer.getvalue().rstrip("\n").split("\n") if buffer.getvalue() else []
    return "\n".join(out) + "\n"


def main() -> None:
    """Rewrite the pages that the command line names."""
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
            Path("examples").symlink_to(ROOT / "examples")
            text = rewritten(page.read_text(encoding="utf-8"), Path(name))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
