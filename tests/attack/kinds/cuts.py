"""Files that end too early, at every byte: a file with a checksum is refused, none does harm."""

from __future__ import annotations

import random
from pathlib import Path

from attack.cases import Broken, InputKind
from attack.kinds import data as numbers
from attack.kinds import models, plans, rbc, texts
from attack.reduction import LINES
from rvm.faults import RvmError

_READERS = {m.KIND.name: m.KIND for m in (rbc, plans, numbers, models, texts)}
_WHOLE = ("rbc", "plans")
"""Files of which no shorter one is a file too."""


def _make(rng: random.Random) -> bytes:
    """What reads the file and where it is cut, in a line, then the file."""
    name = rng.choice(("rbc", "rbc", "plans", "data", "data", "models", "texts"))
    if name == "rbc":
        body = rng.choice(rbc.bases())
    elif name == "plans":
        body = rng.choice(plans.bases())
    elif name == "data":
        base = rng.choice(numbers.arrays())
        suffix = "npy" if base.startswith(b"\x93") else "npz"
        body = f".{suffix} {rng.randrange(12)} \n".encode() + base
    elif name == "models":
        body = models.SAMPLE.encode()
    else:
        body = rng.choice(texts.seeds()).encode()
    first = body.index(b"\n") + 1 if name == "data" else 0
    return f"{name} {rng.randrange(first, len(body))}\n".encode() + body


def _attack(data: bytes, folder: Path) -> bool:
    """Read a file that was cut; its reader's own laws hold as well."""
    head, _, body = data.partition(b"\n")
    name, at = head.decode().split(" ")
    try:
        taken = bool(_READERS[name].attack(body[: int(at)], folder))
    except RvmError:
        return False
    if name in _WHOLE:
        raise Broken(f"a file of {name} that was cut is accepted", f"at byte {at} of {len(body)}")
    return taken


KIND = InputKind("cuts", "files that end too early", ".bin", _make, _attack, (LINES,), share=0.2)
