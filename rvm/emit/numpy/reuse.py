"""Variables and memory used again: lines of straight code as values die in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count

from rvm.emit.numpy.ufuncs import KEYWORD

NAME = re.compile(r"\b_v\d+\b")
"""What values over lanes are called."""


def reused(lines: Sequence[str], results: Mapping[str, str]) -> list[str]:
    """The lines with other variables: one that is used for the last time is free again.

    `results` are the dtypes of values that ufuncs make for all lanes.  Where one of these goes into
    such a function for the last time, the result takes its memory; unless another line has seen it,
    which may have made a view of it.
    """
    found = [list(dict.fromkeys(NAME.findall(line))) for line in lines]
    last = {name: k for k, names in enumerate(found) for name in names}
    sets = [_sets(line, names) for line, names in zip(lines, found, strict=True)]
    seen = {n for k, names in enumerate(found) if sets[k] not in results for n in names}
    place: dict[str, int] = {}
    free: list[int] = []
    fresh, out = count(), []
    for k, (line, name, names) in enumerate(zip(lines, sets, found, strict=True)):
        ends = [n for n in names if last[n] == k and n in place]
        fits = (n for n in ends if n not in seen and results.get(n) == results.get(name, ""))
        taken = next(fits, "")
        free += [place[n] for n in ends if n != taken]
        if name and name not in place:
            place[name] = place[taken] if taken else free.pop() if free else next(fresh)
            if last[name] == k:
                free.append(place[name])
        text = NAME.sub(lambda m: f"_v{place[m.group()]}", line)
        if taken:
            keyword = "out=" if text.split(" = ")[1].startswith(KEYWORD) else ""
            text = f"{text[:-1]}, {keyword}_v{place[taken]})"
        out.append(text)
    return out


def _sets(line: str, names: Sequence[str]) -> str:
    """The variable that a line gives a value, if it is one of these."""
    return names[0] if names and line.lstrip().startswith(f"{names[0]} = ") else ""
