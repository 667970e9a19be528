"""Texts may begin with a byte order mark, as some editors and spreadsheets write it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from objects.samples import BENCH
from rvm_asm import highlight
from rvm_tools import files
from rvm_tools.debug.scripts import read_script
from rvm_tools.literals import File
from rvm_tools.programs import read_text
from rvm_tools.trace import energy_models
from tools.running import rvm as command

import rvm
from rvm import pebble

TEXT = 'include "more.rasm"\nfunc f(x: f64)\n    bump x\n'
MORE = "macro bump a\n    add a, 1\nend\n"
MARKS = {"none": "", "utf-8": "\ufeff"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "a.csv": (
        "a,b\n1,2.5\n3,4\n",
        lambda p: [*files.read_value(File(f"{p}:a"), Path(), "x").cells()],
    ),
    "b.csv": ("1,2\n3,4\n", lambda p: [*files.read_value(File(p), Path(), "x").cells()]),
    "a.json": ('{"x": [1, 2]}', lambda p: files.read_value(File(p), Path(), "x")),
    "all.json": ('{"x": [1, 2]}', lambda p: files.read_all(File(p), Path())),
    "a.bench": (BENCH, lambda p: pebble.load_circuit(p)),
    "b.bench": (BENCH, lambda p: pebble.parse_circuit(read_text(p), p)),
    "a.toml": ('title = "mine"\n', lambda p: energy_models.read(p)),
    "a.rdb": ("goto 3\np x\n", lambda p: read_script(p)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_byte_order_mark_is_not_part_of_a_text(name: str, folder: Path) -> None:
    text, read = READERS[name]
    found = []
    for mark in MARKS.values():
        Path(name).write_text(mark + text, encoding="utf-8")
        found.append(read(name))
    one, two = found
    assert np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two


def test_programs(folder: Path) -> None:
    (folder / "more.rasm").write_text("\ufeff" + MORE, encoding="utf-8")
    file = folder / "p.rasm"
    file.write_text("\ufeff" + TEXT.replace("\n", "\r\n"), encoding="utf-8", newline="")
    assert rvm.load(file).f(x=1.0).x == 2.0
    assert rvm.assemble("\ufefffunc f(x: f64)\n    add x, 1\n").f(x=1.0).x == 2.0
    ran = command("run", "p.rasm", "x=1", "--json")
    assert json.loads(ran.stdout)["values"] == {"x": 2.0}
    assert command("check", "p.rasm").exit_code == 0
    piped = "\ufefffunc f(x: f64)\n    add x, 1\n"
    assert "f64  2.0" in command("run", "-", "x=1", input=piped.encode()).stdout
    command("asm", "p.rasm", "-o", "p.rbc")
    assert "bump" in command("dis", "p.rbc").stdout


def test_places_of_messages_do_not_move(folder: Path) -> None:
    for mark in MARKS.values():
        with pytest.raises(rvm.AssemblyError) as error:
            rvm.assemble(mark + "funk f(x: f64)\n    add x, 1\n")
        assert (error.value.where.line, error.value.where.column) == (1, 1)


def test_texts_in_other_codes_are_refused_with_a_hint(folder: Path) -> None:
    (folder / "p.rasm").write_text(MORE, encoding="utf-16")
    said = command("run", "p.rasm", code=2).stderr
    assert "error[U006]" in said and "is not UTF-8 text" in said
    assert "save it as UTF-8" in said


def test_colours(folder: Path) -> None:
    tokens = list(highlight.RasmLexer().get_tokens("\ufeff" + MORE))
    assert tokens == list(highlight.RasmLexer().get_tokens(MORE))
