"""An engine is one file and one row; nothing else spells out which engines there are."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rvm_tools.options import engine_option

import rvm
from rvm.engines import ENGINES, LAW, counting, engine, executing, having
from rvm.engines.reference import Reference
from rvm.registry import EngineRow
from rvm.state import State

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("rvm", "asm", "tools", "tests", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


class Steps(Reference):
    """An engine that is not shipped: the law, a tick at a time."""

    name = "steps"

    def advance(self, state: State, ticks: int) -> int:
        return super().advance(state, min(ticks, 1))


@pytest.fixture
def steps() -> Iterator[str]:
    ENGINES["steps"] = EngineRow("steps", f"{__name__}:Steps", "a tick at a time", traps=True)
    sys.modules.setdefault(__name__, sys.modules[Steps.__module__])
    yield "steps"
    del ENGINES["steps"]


TEXT = """
func f(x: f64, y: f64[n], k: i64)
    for i = 0 to k - 1
        add x, y[i % n]
        swap y[0], y[1]
    end
"""


def test_an_engine_is_a_row(steps: str) -> None:
    f = rvm.assemble(TEXT).f
    given = {"x": 1.5, "k": 5}
    want = f(**given, y=np.array([0.5, 0.25]), engine=LAW)
    got = f(**given, y=np.array([0.5, 0.25]), engine=steps)
    assert got.x == want.x and np.array_equal(got.y, want.y)
    assert (~f)(**got, engine=steps).x == 1.5
    lanes = f.map(x=np.array([1.5, 2.5]), y=np.array([0.5, 0.25]), k=5, engine=steps)
    assert lanes.x[0] == want.x
    grads = [f.grad(loss="x", **given, y=np.array([0.5, 0.25]), engine=e) for e in (LAW, steps)]
    assert grads[0].x == grads[1].x
    machine = f.machine(**given, y=np.array([0.5, 0.25]), engine=steps)
    assert machine.run()["x"] == want.x
    assert steps in executing() and steps in having("traps") and steps not in having("lanes")


def test_what_an_engine_cannot_do_is_refused_by_its_row(steps: str) -> None:
    with pytest.raises(rvm.InputError, match="native") as unchecked:
        rvm.Options(engine=steps, checks=False)
    assert unchecked.value.code == "I009"
    with pytest.raises(rvm.UsageError) as uncounted:
        counting(steps, None)  # type: ignore[arg-type]
    assert uncounted.value.code == "U016" and steps not in (uncounted.value.hint or "")


def test_messages_and_help_name_every_row(steps: str) -> None:
    with pytest.raises(rvm.UsageError) as unknown:
        engine("abacus")
    assert unknown.value.code == "U002"
    assert (unknown.value.hint or "").split(": ")[1].split(", ") == list(ENGINES)
    command = engine_option(click.command("some")(lambda engine: None))
    shown = " ".join(CliRunner().invoke(command, ["--help"]).output.replace("│", " ").split())
    assert all(f"{name} ({row.doc})" in shown for name, row in ENGINES.items())


@pytest.mark.parametrize("row", ENGINES.values(), ids=lambda row: row.name)
def test_a_row_says_what_its_engine_is(row: EngineRow) -> None:
    if row.missing():
        pytest.skip("it is not here")
    assert engine(row.name).name == row.name
    assert not row.loops or not row.chooses


def is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "Literal"


def spelled_out(path: Path) -> list[str]:
    """The literals of a source that list engines by name."""
    out: list[str] = []
    text = path.read_text(encoding="utf-8")
    if sum(f'"{name}"' in text or f"'{name}'" in text for name in ENGINES) < 2:
        return out  # as most sources, which need no parser
    nodes = list(ast.walk(ast.parse(text)))
    # Checkers want the names in the type of an option, which the test of stubs holds to the table.
    typed = {id(n.slice) for n in nodes if isinstance(n, ast.Subscript) and is_literal(n.value)}
    for node in nodes:
        parts: list[ast.expr | None] = []
        if id(node) in typed:
            continue
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = list(node.elts)
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        names = [p.value for p in parts if isinstance(p, ast.Constant)]
        if len(set(names)) > 1 and len(names) == len(parts) and set(names) <= set(ENGINES):
            out.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    return out


def test_no_other_source_lists_engines() -> None:
    assert [line for path in SOURCES for line in spelled_out(path)] == []
