"""Mutated energy models: read, or refused with a place."""

from __future__ import annotations

import random
from pathlib import Path

from rvm_tools.trace.energy_models import model

from attack.cases import InputKind
from attack.mutations import NUMBERS, flipped, tokens

SAMPLE = """\
title = "my device"
source = 'a "paper"'
temperature = 300.0
bit = 2.9e-21
step = 0.0
scale = 1.0

[adds]
default = 1e-13
f64 = 1.8e-12
i64 = 1

[mults]
default = 4e-12
c128 = 1.5e-11

[moves]
default = 0.0
[nlops]
f64 = 2e-11
"""
_WORDS = (
    *NUMBERS,
    *("[", "]", "=", '"', "'", '"""', "\n", ".", "{", "}", "\\u0000", "\0", "é", "true", "bit"),
    *(
        "fixed",
        "log64",
        "adds",
        "title",
        "1979-05-27",
        "[[",
        "]]",
        "#",
        "\\",
        "step",
        "temperature",
    ),
)


def _make(rng: random.Random) -> bytes:
    """A model with a few tokens, now and then bytes, changed."""
    text = tokens(rng, SAMPLE, _WORDS).encode("utf-8", "replace")
    return flipped(rng, text) if rng.random() < 0.15 else text


def _attack(data: bytes, folder: Path) -> bool:
    """Read a model as `--energy` does."""
    path = folder / "model.toml"
    path.write_bytes(data)
    found = model(str(path))
    repr(found)
    return True


KIND = InputKind("models", "mutated energy models", ".toml", _make, _attack, share=0.2)
