"""A reader that waits for what never comes, and takes no time of a processor."""

from __future__ import annotations

import time
from pathlib import Path

from attack.cases import InputKind


def attack(data: bytes, folder: Path) -> bool:
    """Sleep."""
    time.sleep(1000)
    return True


NAME = "attack.planted.sleeper"
KIND = InputKind(NAME, "sleep", ".txt", lambda _: b"", attack, seconds=0.1, prepare=lambda: None)
