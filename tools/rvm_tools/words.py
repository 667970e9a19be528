"""Small points of English."""

from __future__ import annotations


def with_article(noun: str) -> str:
    """`a u8`, `an f64`: the article follows how the name is spoken."""
    first = noun[:1]
    vowel = first in "aeio" or (first == "f" and noun[1:2].isdigit())
    return f"{'an' if vowel else 'a'} {noun}"


def count(n: int, noun: str) -> str:
    """`1 step`, `1,200 steps`."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
