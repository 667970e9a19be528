"""Collecting what is wrong with a text: every message goes through one `Reporter`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from rvm.faults import AssemblyError, Diagnostic, Label
from rvm_asm.source import SourceMap

_MAX_ERRORS = 200
"""The most messages of an assembly; what would follow is rarely worth reading."""


MAX_MESSAGE = 300
"""The longest message; longer ones quote a literal of endless digits."""


class Reporter:
    """The diagnostics of one assembly, in the order in which they were found."""

    def __init__(self, sources: SourceMap) -> None:
        self.sources = sources
        self.found: list[Diagnostic] = []
        self.context: list[tuple[str, int, int]] = []
        """The macros being expanded: name and the position of the use, outermost first."""
        self._seen: set[tuple[str, int, str]] = set()

    @property
    def failed(self) -> bool:
        return bool(self.found)

    def error(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        *,
        label: str = "",
        also: Iterable[tuple[int, int, str]] = (),
        notes: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        """Add a message about a stretch; `also` are further stretches with a text each.

        The same message about the same stretch is kept once.  With the last one that is kept the
        assembly ends: AssemblyError.
        """
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE - 1]}…"
        key = (code, start, message)
        if key in self._seen:
            return
        self._seen.add(key)
        where = self.sources.where(start, end)
        labels = [Label(where.line, where.column, where.end, label)]
        lines: dict[int, str] = {}
        more = list(notes)
        for a, b, text in also:
            other = self.sources.where(a, b)
            if other.source == where.source:
                labels.append(Label(other.line, other.column, other.end, text))
                lines[other.line] = other.text or ""
            else:
                more.append(f"{text}: {other}")
        for name, a, b in reversed(self.context):
            more.append(f"in the expansion of `{name}` at {self.sources.where(a, b)}")
        self.found.append(
            Diagnostic(
                code,
                message,
                where,
                labels=tuple(labels),
                notes=tuple(more),
                hint=hint,
                lines=lines,
            )
        )
        if len(self.found) >= _MAX_ERRORS:
            self.raise_if_failed()

    def raise_if_failed(self) -> None:
        """AssemblyError with everything found, sorted by place; nothing where all is well."""
        if self.found:
            order = {f.name: k for k, f in enumerate(self.sources.files)}
            raise AssemblyError(
                sorted(
                    self.found,
                    key=lambda d: (order.get(d.where.source, -1), d.where.line, d.where.column),
                )
            )


_MAX_NEAR = 400
"""Names that are compared with one that nothing has: comparing takes microseconds each."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known name, or nothing."""
    likely = [k for k in known if abs(len(k) - len(name)) <= 3 and k.isidentifier()]
    if len(likely) > _MAX_NEAR:
        likely = [k for k in likely if k[0] == name[:1]][:_MAX_NEAR]
    near = get_close_matches(name, likely, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""
