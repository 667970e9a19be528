"""Random programs on every engine of the registry, machine code among them."""

from __future__ import annotations

from pathlib import Path

from attack.cases import InputKind
from attack.kinds.programs import make, read
from attack.reduction import LINES
from attack.runs import agree
from rvm.engines import executing

_ENGINES = executing()
"""`auto` is one of the others, or one after another, which going crosswise tries."""


def _attack(data: bytes, folder: Path) -> bool:
    """Run a program on all engines, there and back, and there on one and back on another."""
    found = read(data)
    agree(found.program, "main", found.inputs(), _ENGINES, strict="strict" in found.flags)
    return True


KIND = InputKind(
    "native", "random programs on all engines", ".rasm", make, _attack, (LINES,), share=7.0
)
