"""Variables and memory used again: lines of straight code as values die in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

from rvm.emit.numpy.ufuncs import KEYWORD, UFUNC

NAME = re.compile(r"\b_v\d+\b")
"""The prefix of values over lanes."""


def reused(lines: Sequence[str], results: Mapping[str, str]) -> list[str]:
    """The lines with other variables: one that is used for the last time is free again.

    `results` are values that ufuncs make for all lanes, and what those have in common whose memory
    is alike.  The memory of one that is used for the last time takes a later result; unless a line
    has seen it that calls no ufunc, and may have made a view of it.
    """
    found = [list(dict.fromkeys(NAME.findall(line))) for line in lines]
    last = {name: k for k, names in enumerate(found) for name in names}
    sets = [_sets(line, names) for line, names in zip(lines, found, strict=True)]
    others = (k for k, line in enumerate(lines) if sets[k] not in results and not _calls(line))
    seen = {name for k in others for name in found[k]}
    place: dict[str, int] = {}
    free: dict[str, list[int]] = defaultdict(list)
    """Free variables, by kind of memory."""
    fresh, out = count(), []
    for k, (line, name, names) in enumerate(zip(lines, sets, found, strict=True)):
        for end in names:
            if last[end] == k and end in place:
                free["" if end in seen else results.get(end, "")].append(place[end])
        memory = results.get(name, "")
        taken = name and name not in place and bool(free[memory])
        if name and name not in place:
            place[name] = (free[memory] if taken else free[""] or [next(fresh)]).pop()
            if last[name] == k:
                free[""].append(place[name])
        text = NAME.sub(lambda m: f"_v{place[m.group()]}", line)
        if taken and memory:
            keyword = "out=" if text.split(" = ")[1].startswith(KEYWORD) else ""
            text = f"{text[:-1]}, {keyword}_v{place[name]})"
        out.append(text)
    return out


def _calls(line: str) -> bool:
    """Whether a line only calls a ufunc."""
    return line.lstrip().startswith(UFUNC)


def _sets(line: str, names: Sequence[str]) -> str:
    """The variable that a line assigns, if it is one of these."""
    return names[0] if names and line.lstrip().startswith(f"{names[0]} = ") else ""
