"""What an explanation of a diagnostic is."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True, slots=True)
class Explanation:
    """The long form of a diagnostic: a title, then what it means, an example and a way out."""

    title: str
    text: str


def explain(title: str, text: str) -> Explanation:
    """An explanation from an indented text."""
    return Explanation(title, dedent(text).strip())
