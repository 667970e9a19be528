"""Small mutations of texts, bytes and JSON values, as kinds of attack need them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


def texts(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


NUMBERS = texts(
    """0 1 -1 2 3 7 -0 -0.0 0.5 1e308 -1e308 1e-320 5e-324 1e309 inf -inf nan 255 256 2147483648
    9223372036854775807 -9223372036854775808 9223372036854775808 18446744073709551616
    99999999999999999999 1e999999999 1e-999999999 0x 0b 1_0 1__0 00 .5 5. 1e 1e+ +1 ٣"""
)
"""Numbers as texts: the edges of types, and what is almost one."""


def _cut(rng: random.Random, items: list[Any], others: Sequence[Any], count: int) -> list[Any]:
    """Items of which a few were lost, replaced, inserted, moved or repeated."""
    for _ in range(count):
        k = rng.randrange(len(items) + 1)
        far = min(len(items), k + rng.randrange(1, 30))
        match rng.randrange(6):
            case 0:
                del items[k : k + 1]
            case 1:
                items[k : k + 1] = [rng.choice(others)]
            case 2:
                items.insert(k, rng.choice(others))
            case 3:
                del items[k:far]
            case 4:
                at = rng.randrange(len(items) + 1)
                items[at:at] = items[k:far]
            case _:
                at = rng.randrange(len(items) + 1)
                items[k : k + 1], items[at : at + 1] = items[at : at + 1], items[k : k + 1]
    return items


def tokens(rng: random.Random, text: str, words: Sequence[str], most: int = 6) -> str:
    """A text with a few of its tokens changed; `words` is what else may stand there."""
    found = TOKEN.findall(text)
    count = min(most, rng.choice((1, 1, 2, 3, 6)))
    return "".join(_cut(rng, found, words, count))


def flipped(rng: random.Random, data: bytes) -> bytes:
    """Bytes of which a few were changed, lost or repeated, or that end too early."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        k = rng.randrange(len(out) + 1)
        match rng.randrange(5):
            case 0:
                out[k : k + 1] = bytes([rng.randrange(256)])
            case 1:
                if k < len(out):
                    out[k] ^= 1 << rng.randrange(8)
            case 2:
                del out[k : k + rng.randrange(1, 9)]
            case 3:
                out[k:k] = out[k : k + rng.randrange(1, 9)]
            case _:
                if rng.random() < 0.3:
                    del out[k:]
                else:
                    out[k : k + 1] = bytes([rng.choice((0, 1, 127, 128, 255))])
    return bytes(out)


EDGES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.0, 1e308, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30),
    *(float("inf"), float("-inf"), float("nan"), "", "x", "nan", "é", "\0", "\ud7ff"),
    *([], {}, [1], {"a": 1}, [[]], [None]),
)
"""Values of JSON, as Python reads it."""


def bent(rng: random.Random, value: Any, edges: Sequence[Any] = EDGES) -> Any:
    """A JSON value with something in it changed, lost, repeated or put in."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        out = dict(value)
        name = rng.choice(list(out))
        roll = rng.random()
        if roll < 0.75:
            out[name] = bent(rng, out[name], edges)
        elif roll < 0.85:
            del out[name]
        else:
            out[rng.choice(["x", "", name + "s", "kind"])] = out[name]
        return out
    if isinstance(value, list) and value and rng.random() < 0.85:
        items = list(value)
        k = rng.randrange(len(items))
        roll = rng.random()
        if roll < 0.75:
            items[k] = bent(rng, items[k], edges)
        elif roll < 0.85:
            del items[k]
        else:
            items[k:k] = items[k : k + 1] * rng.randint(1, 3)
        return items
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((value + 1, value - 1, -value, value * 2))
    if isinstance(value, str) and rng.random() < 0.5:
        return tokens(rng, value, (*NUMBERS, "x", "'", '"', "{", "}"))
    return rng.choice(edges)
