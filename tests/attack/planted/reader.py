"""A reader that does not expect some of what it reads."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

from attack.cases import InputKind
from attack.reduction import BYTES
from rvm.faults import InputError

TRAPS = {b"<key>": KeyError("planted"), b"<code>": InputError("Z999", "a code of nobody's")}


def make(rng: random.Random) -> bytes:
    """Letters, with a trap among them now and then."""
    letters = [bytes([rng.randrange(97, 123)]) for _ in range(60)]
    roll = rng.random()
    if roll < 0.02:
        letters[rng.randrange(60)] = rng.choice([b"<key>", b"<code>", b"<memory>"])
    elif roll < 0.026:
        # Each try of these takes a process, so there is little to leave out.
        letters[5:] = [rng.choice([b"<hang>", b"<abort>"])]
    return b"".join(letters)


def attack(data: bytes, folder: Path) -> bool:
    """Read letters."""
    for word, error in TRAPS.items():
        if word in data:
            raise error
    while b"<hang>" in data:
        pass
    if b"<abort>" in data:
        os.kill(os.getpid(), signal.SIGABRT)
    if b"<memory>" in data:
        bytearray(1 << 36)
    if b"q" in data:
        raise InputError("I003", "no q")
    return True


NAME = "attack.planted.reader"
KIND = InputKind(NAME, "letters", ".txt", make, attack, (BYTES,), seconds=0.4, prepare=lambda: None)
