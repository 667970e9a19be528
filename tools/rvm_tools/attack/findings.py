"""Findings in a folder, with how to see them again; the table of what was tried."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rvm.host.write import write_bytes
from rvm_tools.attack.cases import kind

NIGHT = 10 * 3600 * 2
"""The seconds of two processors in a night of ten hours."""


@dataclass(slots=True)
class Finding:
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


def save(found: Finding, out: Path) -> Path:
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
        f"see it again: python -m rvm_tools.attack --reproduce {path.name}",
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


class Row(Protocol):
    """What the table shows of a kind."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def found(self) -> int: ...
    @property
    def cpu(self) -> float: ...


def table(rows: Iterable[Row]) -> str:
    """What was tried, by kind; rates are by the time of one processor."""
    head = ("kind", "inputs", "accepted", "refused", "findings", "per second", "in a night")
    cells: list[tuple[str, ...]] = [head]
    for row in rows:
        rate = row.inputs / row.cpu if row.cpu else 0.0
        share = NIGHT * row.inputs / sum_cpu if (sum_cpu := _total(rows)) else 0.0
        numbers = (row.inputs, row.accepted, row.refused, row.found)
        cells.append((row.name, *(f"{n:,}" for n in numbers), f"{rate:,.0f}", f"{share:,.0f}"))
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _total(rows: Iterable[Row]) -> float:
    return sum(row.cpu for row in rows)
