"""Damaged files of numbers (`.npy`, `.npz`, `.csv`, `.json`), as `x=@file` reads them."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from pathlib import Path

import numpy as np
from rvm_tools.values import assignments, inputs_for

from attack.cases import InputKind
from attack.kinds.values import functions
from attack.mutations import NUMBERS, bent, flipped, tokens
from attack.reduction import BYTES, LINES
from rvm.run.binding import bind

_WORDS = (*NUMBERS, ",", "\n", '"', "#", " ", "\t", "x", "nan", "\0", "é", "\ufeff", ";", "\r")
_JSON = (
    {"x": [1, 2.5, "inf"]},
    {"x": {"pos": 1, "spin": 2}},
    {"values": {"x": [[1, 2], [3, 4]]}},
    {"x": "2+1j"},
    [1, 2, 3],
    {"x": [{"pos": 1.5, "spin": 2}]},
    {"x": True, "y": 3},
)
_TABLE = "x,y\n1,2.5\n3,-4e3\n0.1,nan\n"


@cache
def arrays() -> tuple[bytes, ...]:
    """Sound `.npy` and `.npz` files."""
    out = []
    samples = [np.arange(4), np.ones((2, 3)), np.array(3.5), np.zeros(0), np.array([1 + 2j])]
    samples += [np.array([1, 2], "u1"), np.array([1.5], ">f8"), np.array([True]), np.array(["a"])]
    for sample in samples:
        file = io.BytesIO()
        np.save(file, sample)
        out.append(file.getvalue())
        for save in (np.savez, np.savez_compressed):
            file = io.BytesIO()
            save(file, x=sample, y=np.arange(2))
            out.append(file.getvalue())
    return tuple(out)


def _make(rng: random.Random) -> bytes:
    """The file's suffix and the number of a function in a line, then the file."""
    roll = rng.random()
    number = rng.randrange(len(functions()))
    if roll < 0.5:
        base = rng.choice(arrays())
        suffix = ".npy" if base.startswith(b"\x93") else ".npz"
        data = flipped(rng, base)
        if suffix == ".npy" and rng.random() < 0.5:
            data = _header(rng, base)
    elif roll < 0.75:
        suffix, data = ".json", _json(rng)
    else:
        suffix, data = ".csv", tokens(rng, _TABLE, _WORDS).encode("utf-8", "replace")
    whole = "!" if rng.random() < 0.2 else ""
    return f"{suffix} {number} {whole}\n".encode() + data


def _header(rng: random.Random, base: bytes) -> bytes:
    """The array's description, which is a text, changed, and its length mended."""
    size = int.from_bytes(base[8:10], "little")
    words = (*NUMBERS, "'", "{", "}", "(", ")", ",", ":", "descr", "True", "<f8", "|O", "O", "|V3")
    text = tokens(rng, base[10 : 10 + size].decode("latin1"), words).encode("utf-8", "replace")
    return base[:8] + len(text).to_bytes(2, "little") + text + base[10 + size :]


def _json(rng: random.Random) -> bytes:
    text = json.dumps(bent(rng, rng.choice(_JSON)))
    if rng.random() < 0.5:
        text = tokens(rng, text, _WORDS)
    return text.encode("utf-8", "replace")


def _attack(data: bytes, folder: Path) -> bool:
    """Read a parameter from the file, or all parameters."""
    head, _, body = data.partition(b"\n")
    suffix, number, whole = head.decode().split(" ")
    (folder / f"file{suffix}").write_bytes(body)
    function = functions()[int(number) % len(functions())]
    word = f"@file{suffix}" if whole else f"x=@file{suffix}"
    values = inputs_for(function, assignments([word], folder), folder)
    bind(function, values, frozenset({0}))
    return True


KIND = InputKind(
    "data", "damaged files of numbers", ".bin", _make, _attack, (LINES, BYTES), share=0.3
)
