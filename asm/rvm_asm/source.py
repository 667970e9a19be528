"""Source texts and positions in them.

A position is one integer over all files of an assembly: each file has a base
that its offsets are added to, so that a syntax node needs no file of its own.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable
from copy import copy

from rvm.faults import Where
from rvm.program import Source, Span

_LINE_END = re.compile("\n")
_CONTINUED = re.compile(r"\\[ \t\r]*(?:;[^\n]*)?\n")
"""The end of a line that continues in the next."""


class SourceFile:
    """One text, its base in the common numbering, and where its lines start.

    `index` is its number among the texts that the program keeps, -1 if it is none of them; `words`
    are those of its language for messages.
    """

    __slots__ = ("base", "index", "name", "starts", "text", "words")

    def __init__(
        self, name: str, text: str, base: int, index: int, words: Callable[[str], str] | None = None
    ) -> None:
        self.name = name
        self.words = words
        self.text = text
        self.base = base
        self.index = index
        # A text of strangers may consist of line ends alone: eight bytes for each.
        self.starts = array("q", (base,))
        self.starts.extend(base + m.end() for m in _LINE_END.finditer(text))

    def line(self, number: int) -> str:
        """A line, counted from 1, without its end."""
        start, ends = self.starts[number - 1], self.starts[number : number + 1]
        return self.text[start - self.base : ends[0] - 1 - self.base if ends else None]


class SourceMap:
    """All files of one assembly; turns positions into file, line and column."""

    def __init__(self, words: Callable[[str], str] | None = None) -> None:
        self.words = words
        """The language's words for messages, as programs keep them."""
        self.files: list[SourceFile] = []
        self._texts: list[SourceFile] = []
        """The files that the program keeps."""
        self._bases: list[int] = []
        self._next = 0

    def copy(self) -> SourceMap:
        """One to which more is added."""
        out = copy(self)
        out.files, out._bases, out._texts = [*self.files], [*self._bases], [*self._texts]
        return out

    def add(self, name: str, text: str) -> SourceFile:
        """Enter a text (line ends as `\\n`)."""
        return self.keep(Source(name, text, self.words))

    def keep(self, source: Source) -> SourceFile:
        """Enter a text of a program, or of one whose functions are linked."""
        index = len(self._texts)
        file = self._entered(SourceFile(source.name, source.text, self._next, index, source.words))
        self._texts.append(file)
        return file

    def number_of(self, source: Source) -> int:
        """The number of a text of another program, which is entered once."""
        known = (f.index for f in self._texts if (f.name, f.text) == (source.name, source.text))
        found = next(known, None)
        return self.keep(source).index if found is None else found

    def _entered(self, file: SourceFile) -> SourceFile:
        self.files.append(file)
        self._bases.append(file.base)
        self._next += len(file.text) + 2
        return file

    def add_name(self, text: str) -> SourceFile:
        """Enter a name that a caller gives, which is none of the program's texts."""
        return self._entered(SourceFile("<name>", text, self._next, -1))

    def file(self, position: int) -> SourceFile:
        """The file that holds a position."""
        return self.files[max(0, bisect_right(self._bases, position) - 1)]

    def span(self, start: int, end: int) -> Span:
        """A stretch as file index, line and columns; cut at the end of its first line.

        None in a text that the program does not keep.
        """
        file = self.file(start)
        return Span() if file.index < 0 else self._span(file, start, end)

    def _span(self, file: SourceFile, start: int, end: int) -> Span:
        line = bisect_right(file.starts, start)
        first = file.starts[line - 1]
        stop = min(end, first + len(file.line(line)))
        return Span(file.index, line, start - first + 1, max(stop - first + 1, start - first + 2))

    def stretch(self, span: Span) -> tuple[int, int]:
        """The positions of a span."""
        start = self._texts[span.source].starts[span.line - 1] + span.column - 1
        return start, start + span.end - span.column

    def where(self, start: int, end: int) -> Where:
        """A stretch as messages show it."""
        file = self.file(start)
        at = self._span(file, start, end)
        return Where(file.name, at.line, at.column, at.end, file.line(at.line))

    def text(self, start: int, end: int) -> str:
        """The text between two positions of one file."""
        file = self.file(start)
        return file.text[start - file.base : end - file.base]

    def bracketed(self, start: int, end: int) -> tuple[int, int]:
        """An expression's stretch with the brackets around its first and last part.

        An expression in brackets begins after the first of them.  Where comments stand between it
        and its brackets some are left out.
        """
        file = self.file(start)
        text, a, b = file.text, start - file.base, end - file.base
        left = right = 0
        for sign in _CONTINUED.sub("", text[a:b]):
            if sign in "([":
                right += 1
            elif sign in ")]":
                left += not right
                right -= right > 0
        while left and a and (text[a - 1] in "([\\" or text[a - 1].isspace()):
            a -= 1
            left -= text[a] in "(["
        while right and b < len(text) and (text[b] in ")]\\" or text[b].isspace()):
            right -= text[b] in ")]"
            b += 1
        return a + file.base, b + file.base

    def expression(self, start: int, end: int) -> str | None:
        """The text of an expression, with the brackets around its first and last part.

        None where comments stand between it and its brackets.
        """
        text = " ".join(_CONTINUED.sub(" ", self.text(*self.bracketed(start, end))).split())
        return text if _balanced(text) else None

    def sources(self) -> tuple[Source, ...]:
        """The texts as a program keeps them."""
        return tuple(Source(f.name, f.text, f.words) for f in self._texts)


def _balanced(text: str) -> bool:
    """Whether each bracket of a text has its other one."""
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return False
    return depth == 0
