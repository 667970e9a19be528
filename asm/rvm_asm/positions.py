"""Position comments, which keep a disassembled text tied to the source it was made from.

`;@ 12:5-20` at the end of a line says that its instruction is in line 12 of the first source,
columns 5 to 20 (exclusive); `;@ 1:12:5-20` in the second.  `;@ none` says that no position is
known.  `;@ source "name"` begins a source's text, whose lines follow as `;| …`.  Texts that contain
such comments are positioned by them instead of in themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from rvm.program import Source, Span

NONE = ";@ none"
_MARK = re.compile(r";@ (?:(-)|(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})-(\d{1,9}))$")
_SOURCE = re.compile(r';@ source (".*")$')


def mark(span: Span) -> str:
    """The comment for an instruction's position."""
    if span == Span():
        return ";@ -"
    source = f"{span.source}:" if span.source else ""
    return f";@ {source}{span.line}:{span.column}-{span.end}"


def source_lines(sources: Iterable[Source]) -> list[str]:
    """The comments that hold the source texts."""
    out: list[str] = []
    for source in sources:
        out.append(f";@ source {json.dumps(source.name)}")
        for line in source.text.split("\n"):
            plain = line.isprintable() or line.replace("\t", "").isprintable()
            out.append(f";| {line}" if plain else f';" {json.dumps(line)}')
    return out


def read_positions(text: str) -> tuple[dict[int, Span], tuple[Source, ...]] | None:
    """The positions by line of `text`, and the sources; None if it holds none."""
    if ";@" not in text:
        return None
    spans: dict[int, Span] = {}
    sources: list[tuple[str, list[str]]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        found = _MARK.search(line)
        if found:
            empty, source, *rest = found.groups()
            if empty:
                spans[number] = Span()
            else:
                at, column, end = map(int, rest)
                spans[number] = Span(int(source or 0), at, column, end)
        elif line.startswith(";@"):
            head = _SOURCE.match(line)
            name = _string(head[1]) if head else None
            if name is not None:
                sources.append((name, []))
        elif sources and line.startswith(";| "):
            sources[-1][1].append(line[3:])
        elif sources and line.startswith(';" '):
            sources[-1][1].append(_string(line[3:]) or "")
    if not spans and not sources and NONE not in lines:
        return None
    return spans, tuple(Source(name, "\n".join(kept)) for name, kept in sources)


def _string(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
