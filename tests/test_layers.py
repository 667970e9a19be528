"""The packages import in one direction only: read from their sources, not from a run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYERS = [
    tuple(name if name == "rvm" else f"rvm.{name}" for name in line.split())
    for line in re.search(
        r"## Layers.*?```text\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.S
    )[1].splitlines()  # type: ignore[index]
]
"""From the ground up: a module imports only its own layer and those before it."""


@cache
def modules(folder: str, package: str) -> list[tuple[str, Path]]:
    base = ROOT / folder
    out = []
    for path in sorted((base / package).rglob("*.py")):
        parts = path.relative_to(base).with_suffix("").parts
        out.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return out


@cache
def imported(path: Path) -> set[str]:
    """Every module that a file imports, for types or late or by its name as a text."""
    out = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names):
                out |= {a.name for a in names}
            case ast.ImportFrom(module, names, level):
                assert level == 0, f"{path} has a relative import"
                whole = {f"{module}.{a.name}" for a in names}
                out |= (whole & MODULES) or {module or ""}
            case ast.Call(ast.Name("import_module"), [ast.Constant(str(name)), *_]):
                out.add(name)
    return out


PACKAGES = {
    "rvm": ".",
    **dict.fromkeys(("rvm_asm", "rvm_python", "rvm_pure", "rvm_janus"), "asm"),
    **dict.fromkeys(("rvm_tools", "rvm_bench", "rvm_dap"), "tools"),
}
MODULES = {name for p, folder in PACKAGES.items() for name, _ in modules(folder, p)}


def room(module: str) -> str:
    """The folder of `rvm` that a module is in, or the module if it is in none."""
    return ".".join(module.split(".")[:2])


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


def test_there_are_few_layers_and_few_modules_in_no_room() -> None:
    assert len(LAYERS) <= 10
    assert len(list((ROOT / "rvm").glob("*.py"))) <= 8


def test_layers_of_the_machine() -> None:
    for module, path in modules(".", "rvm"):
        own = layer(module)
        for name in imported(path):
            if name == "rvm" or name.startswith("rvm."):
                assert layer(name) <= own, f"{module} imports {name}, which stands above it"
            assert not name.startswith(("rvm_asm", "rvm_tools")), f"{module} imports {name}"


def test_no_circle_goes_through_two_rooms() -> None:
    """Imports for types count; `rvm` alone names what stands above it, as that is what it gives."""
    uses: dict[str, set[str]] = {}
    for module, path in modules(".", "rvm"):
        found = uses.setdefault(room(module), set())
        found |= {room(name) for name in imported(path) if name.split(".")[0] == "rvm"}
        found.discard(room(module))
    del uses["rvm"]
    assert not circles(uses)


def test_no_module_is_in_a_circle() -> None:
    """Neither of imports for types nor of late ones; `rvm` names what stands above it."""
    uses = {
        module: imported(path) - {module, "rvm"}
        for package, folder in PACKAGES.items()
        for module, path in modules(folder, package)
    }
    assert len(uses) > 500
    assert circles(uses) == LEFT


LEFT = [
    "rvm.emit.numpy.places",
    "rvm.emit.numpy.values",
    "rvm.engines.lanes.engine",
    "rvm.engines.lanes.recovery",
    "rvm.engines.vector.elements",
    "rvm.engines.vector.items",
    "rvm.engines.vector.printer",
    "rvm.engines.vector.results",
    "rvm.ir.arrays",
    "rvm.ir.elements",
    "rvm.ir.extremes",
    "rvm.ir.function",
    "rvm.ir.hoist",
    "rvm.ir.statements",
    "rvm.ir.sums",
    "rvm.ir.values",
    "rvm.leaf.ops",
    "rvm.leaf.trace",
    "rvm.library.generic",
    "rvm.library.handle",
    "rvm.library.lane_map",
]
"""Modules that are in circles still: the list must only shrink."""


def circles(uses: dict[str, set[str]]) -> list[str]:
    """What stands in a circle of uses: it uses itself, directly or through others."""
    left = {name: needed & uses.keys() for name, needed in uses.items()}
    while ends := {n for n in left if not left[n] or all(n not in used for used in left.values())}:
        left = {name: needed - ends for name, needed in left.items() if name not in ends}

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        ahead = [name]
        while ahead:
            new = left[ahead.pop()] - found
            found |= new
            ahead += new
        return found

    return sorted(name for name in left if name in reached(name))


SCHEDULES = [
    (module, path)
    for module, path in modules(".", "rvm")
    if module.startswith("rvm.pebble.") and not module.startswith("rvm.pebble.bridge")
]
"""What `rvm.pebble` has beside its face and the bridge to the machine."""


def test_schedules_know_nothing_of_the_machine() -> None:
    known = ("rvm.faults", "rvm.host.archives", "rvm.host.read", "rvm.host.write")
    for module, path in SCHEDULES:
        for name in imported(path):
            own = name.startswith("rvm.pebble.") and not name.startswith("rvm.pebble.bridge")
            assert own or name in known or name.split(".")[0] != "rvm", f"{module} imports {name}"


def test_schedules_are_planned_without_the_machine() -> None:
    """In a package `rvm` that has nothing in it, and a package `rvm.pebble` without its face."""
    done = subprocess.run([sys.executable, "-c", ALONE, str(ROOT)], capture_output=True, text=True)
    assert done.stderr == ""
    assert "rvm.pebble.planner" in done.stdout and "rvm.program" not in done.stdout
    assert not {"rvm.expr", "rvm.isa", "rvm.engines", "llvmlite"} & set(done.stdout.split())


ALONE = """
import sys, types
for name, folder in (("rvm", "rvm"), ("rvm.pebble", "rvm/pebble")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [f"{sys.argv[1]}/{folder}"]
from rvm.pebble.planner import plan
from rvm.pebble.graphs.plan import plan_dag
from rvm.pebble.graphs.dag import chain
import rvm.pebble.checkpointing, rvm.pebble.storage, rvm.pebble.graphs.sat, rvm.pebble.graphs.trace
found = plan(40, pebbles=7)
assert found.check().moves == found.cost.moves and found.picture(80, 20)
assert plan_dag(chain(9), pebbles=5).cost.moves == 25
print(*sys.modules)
"""


TOOLS = [m for p in ("rvm_tools", "rvm_bench", "rvm_dap") for m in modules("tools", p)]


def test_separate_packages_are_needed_by_no_other() -> None:
    """Benchmarks and the debug adapter stand on the tools, which find them as entry points."""
    for module, path in TOOLS:
        others = {"rvm_bench", "rvm_dap", "attack"} - {module.split(".")[0]}
        for name in imported(path):
            assert name.split(".")[0] not in others, f"{module} imports {name}"


def test_the_assembler_uses_no_engine() -> None:
    above = ("rvm.engines", "rvm.run.machine", "rvm.state", "rvm_tools")
    for module, path in modules("asm", "rvm_asm"):
        for name in imported(path):
            assert not name.startswith(above), f"{module} imports {name}"
