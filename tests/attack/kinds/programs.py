"""Random programs of all number types: interpreting engines agree, there, back and crosswise."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rvm
from attack.cases import InputKind
from attack.programs import chains, loops, smooth, sound
from attack.reduction import LINES
from attack.runs import INTERPRETED, agree
from rvm.program import Program

_HEAD = re.compile(rb"; (?P<by>\w+) (?P<seed>\d+)(?P<flags>[ \w]*)\n")
_Write = Callable[[int], str]
TEXTS: Mapping[str, _Write] = {
    "sound": lambda seed: sound.program(seed, None),
    "loops": lambda seed: loops.RandomLoop(seed).text,
    "smooth": lambda seed: smooth.program(seed, 3),
    "chains": chains.program,
}
_INPUTS: Mapping[str, Callable[[int, int], dict[str, Any]]] = {
    "sound": lambda seed, variant: sound.inputs(seed, None, variant),
    "loops": lambda seed, variant: loops.inputs(seed + 2 * variant),
    "smooth": lambda seed, variant: smooth.inputs(seed + variant),
    "chains": lambda seed, variant: chains.inputs(seed, variant=variant),
}


@dataclass(frozen=True, slots=True)
class _Written:
    """A random program, after a line that says what wrote it, which its inputs are found by."""

    by: str
    seed: int
    flags: frozenset[str]
    program: Program

    def inputs(self, variant: int = 0) -> dict[str, Any]:
        """Inputs of the program; each variant has others."""
        return _INPUTS[self.by](self.seed, variant)


def written(by: str, seed: int, *flags: str) -> bytes:
    """The text of a random program, with that line."""
    return f"; {' '.join([by, str(seed), *flags])}\n{TEXTS[by](seed)}".encode()


def read(data: bytes) -> _Written:
    """The program of such a text, which may have been made smaller."""
    head = _HEAD.match(data)
    if head is None:
        raise rvm.UsageError("U010", "the first line says neither generator nor number")
    flags = frozenset(head["flags"].decode().split())
    return _Written(
        head["by"].decode(), int(head["seed"]), flags, rvm.assemble(data.decode()).program
    )


def make(rng: random.Random) -> bytes:
    """A program, now and then one to be run in strict mode."""
    seed = rng.randrange(10**9)
    if rng.random() < 0.15:
        return written("loops", seed)
    if rng.random() < 0.15:
        return written("chains", seed, *["strict"] * (rng.random() < 0.15))
    return written("sound", seed, *["strict"] * (rng.random() < 0.15))


def _attack(data: bytes, folder: Path) -> bool:
    """Run a program on the engines that need no compiler."""
    found = read(data)
    agree(found.program, "main", found.inputs(), INTERPRETED, strict="strict" in found.flags)
    return True


KIND = InputKind(
    "programs",
    "random programs on all interpreting engines",
    ".rasm",
    make,
    _attack,
    (LINES,),
    share=9.5,
)
