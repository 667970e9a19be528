"""The long explanations of diagnostics, in Markdown, in a folder `codes` of each package.

A section is a diagnostic: `## A013: its title`, then its meaning, an example and a remedy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_SECTION = re.compile(r"^## (\w+): (.+)\n", re.M)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The long form of a diagnostic: a title, its meaning, an example and a remedy."""

    title: str
    text: str


def explanations(package: str) -> dict[str, Explanation]:
    """The explanations that a package brings along by their codes; the package is not imported."""
    spec = find_spec(package)
    found: dict[str, Explanation] = {}
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder, "codes").glob("*.md")):
            _, *parts = _SECTION.split(path.read_text(encoding="utf-8"))
            for code, title, text in zip(*[iter(parts)] * 3, strict=True):
                found[code] = Explanation(title, text.strip("\n"))
    return found
