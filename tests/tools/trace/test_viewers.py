"""Traces as speedscope reads them, by its own importer and schema from npm; with `--npm` only."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools.running import rvm, rvm_json

PACKAGES = ("speedscope@1.25.0", "ajv@8.17.1")
SCRIPT = Path(__file__).with_name("viewer.js")
PROGRAM = """\
func main(x: f64, n: i64)
    for i = 1 to n
        call left(x)
        call right(x)
        call left(x)
    end

func left(x: f64)
    alloc t: f64 = x
    add t, 1e5
    sub t, 1e5
    free t = x

func right(x: f64)
    call leaf(x)
    uncall leaf(x)

func leaf(x: f64)
    add x, 0.1
"""
FORMATS = {
    "speedscope": ("out.speedscope.json", "Importing as speedscope json file"),
    "folded": ("out.folded.txt", "Importing as collapsed stack format"),
    "perfetto": ("out.json", "Importing as Trace Event Format profile"),
    "callgrind": ("callgrind.out", "Importing as Callgrind profile"),
}
"""For each format a file's name and what speedscope then says that it is."""


@pytest.mark.npm
def test_speedscope_reads_four_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main.rasm").write_text(PROGRAM)
    values = ("main.rasm", "x=0.3", "n=50")
    whole = rvm_json("trace", *values)
    steps = {f["function"]: [f["own"]["ticks"], f["total"]["ticks"]] for f in whole["functions"]}
    for form, (name, _) in FORMATS.items():
        Path(name).write_text(rvm("trace", *values, f"--format={form}").stdout)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), *PACKAGES],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        ["node", str(SCRIPT), *(f"{form}={name}" for form, (name, _) in FORMATS.items())],
        capture_output=True,
        text=True,
        env={**os.environ, "NODE_PATH": str(tmp_path / "node_modules")},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    for form, (_, said) in FORMATS.items():
        assert found[form]["read"] == said
    assert found["speedscope"]["schema"] is True

    profiles = {p["name"]: p for p in found["speedscope"]["profiles"]}
    assert profiles["steps"]["frames"] == steps
    assert profiles["erased bits"]["total"] == whole["erased_bits"] > 0
    assert profiles["energy in zJ"]["total"] == pytest.approx(whole["joules"] / 1e-21)
    (stacks,) = found["folded"]["profiles"]
    assert stacks["frames"] == steps
    # There a call has the two steps that enter and leave it, which are its caller's in accounts.
    (slices,) = found["perfetto"]["profiles"]
    calls = {f["function"]: f["entered"] for f in whole["functions"]}
    assert slices["total"] == whole["steps"]
    assert {name: total for name, (_, total) in slices["frames"].items()} == {
        name: total + 2 * calls[name] for name, (_, total) in steps.items()
    }
    executed = next(p for p in found["callgrind"]["profiles"] if p["name"].endswith("Ir"))
    assert executed["total"] == whole["executed"]
    for f in whole["functions"]:
        assert executed["frames"][f["function"]][0] == f["own"]["executed"]
