"""Findings in a folder, with how to reproduce them; the table of what was tried."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rvm_tools.tables import aligned

from attack.cases import kind
from rvm.host.write import write_bytes

_NIGHT = 10 * 3600 * 2
"""The seconds of two processors in a night of ten hours."""


@dataclass(slots=True)
class FoundInput:
    """An input that broke a law; of several with one signature the first, and how many came."""

    kind: str
    seed: int
    index: int
    signature: str
    detail: str
    data: bytes
    count: int = 1
    again: bool | None = None
    """Whether it was seen again when tried alone; None if that was not tried yet."""


def save(found: FoundInput, out: Path) -> Path:
    """Write a finding's input and its report; the input's path."""
    out.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"\W+", "-", found.signature)[:70].strip("-")
    path = out / f"{found.kind}-{slug}{kind(found.kind).suffix}"
    write_bytes(path, found.data)
    alone = {True: "yes", False: "no", None: "not tried"}[found.again]
    lines = [
        f"finding: {found.signature}",
        f"kind: {found.kind}, seed {found.seed}, input {found.index}",
        f"seen again alone: {alone}",
        f"see it again: python tests/attack --reproduce {path.name}",
        "",
        found.detail,
        "",
    ]
    report = path.with_name(path.name + ".txt")
    write_bytes(report, "\n".join(lines).encode(errors="backslashreplace"))
    return path


def kind_of(path: Path) -> str:
    """The kind of input that a saved finding is, from its name."""
    return path.name.partition("-")[0]


@dataclass(slots=True)
class KindTally:
    """What was tried of a kind; `cpu` is the time of processors, in seconds."""

    name: str
    next: int = 0
    accepted: int = 0
    refused: int = 0
    found: int = 0
    cpu: float = 0.0
    rate: float = 20.0
    """Inputs a second, for the size of the next batch."""

    @property
    def inputs(self) -> int:
        return self.accepted + self.refused + self.found


def table(rows: Sequence[KindTally]) -> str:
    """What was tried, by kind; rates are by the time of one processor."""
    spent = sum(row.cpu for row in rows)
    head = ("kind", "inputs", "accepted", "refused", "findings", "per second", "in a night")
    cells: list[tuple[str, ...]] = [head]
    for row in rows:
        rate = row.inputs / row.cpu if row.cpu else 0.0
        share = _NIGHT * row.inputs / spent if spent else 0.0
        numbers = (row.inputs, row.accepted, row.refused, row.found)
        cells.append((row.name, *(f"{n:,}" for n in numbers), f"{rate:,.0f}", f"{share:,.0f}"))
    return "\n".join(aligned(cells))
