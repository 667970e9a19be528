"""The packages import in one direction only: read from their sources, not from a run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = [
    (
        "rvm.types",
        "rvm.faults",
        "rvm.once",
        "rvm.signals",
        "rvm.blocks",
        "rvm.archives",
        "rvm.writing",
        "rvm.codes",
    ),
    ("rvm.expr",),
    ("rvm.leaf",),
    ("rvm.stmt", "rvm.numbers"),
    ("rvm.rounding",),
    ("rvm.program",),
    ("rvm.isa",),
    ("rvm.transform", "rvm.codec", "rvm.verify", "rvm.user", "rvm.places", "rvm.cost"),
    ("rvm.derived",),
    ("rvm.image",),
    ("rvm.state", "rvm.counting"),
    ("rvm.probes",),
    ("rvm.emit",),
    ("rvm.engines", "rvm.binding"),
    ("rvm.machine",),
    ("rvm.probes.events",),
    ("rvm.lanes",),
    ("rvm.direct",),
    ("rvm.returning",),
    ("rvm.gradients",),
    ("rvm.direct_gradient",),
    ("rvm.taylor", "rvm.sweep"),
    ("rvm.directions",),
    ("rvm.hessians",),
    ("rvm.mapping", "rvm.lanes_gradient"),
    ("rvm.calling",),
    ("rvm.pebble",),
    ("rvm.differences",),
    ("rvm.frontends", "rvm.interop"),
    ("rvm",),
]
"""From the ground up: a module imports only its own layer and those before it."""


def modules(folder: str, package: str) -> list[tuple[str, Path]]:
    base = ROOT / folder
    out = []
    for path in sorted((base / package).rglob("*.py")):
        parts = path.relative_to(base).with_suffix("").parts
        out.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return out


def imported(path: Path) -> set[str]:
    """Every module that a file imports, those under TYPE_CHECKING aside."""
    tree = ast.parse(path.read_text())
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped.update(ast.walk(node))
    out = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            out |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            out.add(node.module or "")
    return out


def layer(module: str) -> int:
    """The number of a module's layer; the longest matching name decides."""
    best = max(
        (
            (len(name), k)
            for k, names in enumerate(LAYERS)
            for name in names
            if module == name or (name != "rvm" and module.startswith(name + "."))
        ),
        default=None,
    )
    assert best is not None, f"{module} belongs to no layer"
    return best[1]


@pytest.mark.parametrize(("module", "path"), modules(".", "rvm"), ids=lambda v: str(v))
def test_layers_of_the_machine(module: str, path: Path) -> None:
    own = layer(module)
    for name in imported(path):
        if name == "rvm" or name.startswith("rvm."):
            assert layer(name) <= own, f"{module} imports {name}, which stands above it"
        assert not name.startswith(("rvm_asm", "rvm_tools")), f"{module} imports {name}"


@pytest.mark.parametrize(("module", "path"), modules("asm", "rvm_asm"), ids=lambda v: str(v))
def test_the_assembler_uses_no_engine(module: str, path: Path) -> None:
    for name in imported(path):
        assert not name.startswith(("rvm.engines", "rvm.machine", "rvm.state", "rvm_tools")), name
