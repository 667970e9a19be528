"""Collecting the errors in a text: every message goes through one `Reporter`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol
from warnings import warn_explicit

from rvm.faults import AssemblyError, AssemblyWarning, Diagnostic, Label, Where
from rvm_asm.source import SourceMap

if TYPE_CHECKING:
    from rvm_asm.stats import Func

_MAX_INSTANCES = 8
"""The largest number of types listed in a message about a generic function."""
_MAX_INSTANCE = 80
"""The longest text for the values of type parameters."""
_MAX_ERRORS = 200
"""The largest number of messages of an assembly; later ones are rarely useful."""


MAX_MESSAGE = 300
"""The longest message; longer ones quote a literal of endless digits."""


class Words:
    """The wording of messages about statements, and its replacement in a front end.

    Pairs of a pattern and a text, or a function of the match, which are applied in order.
    """

    def __init__(self, pairs: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]]) -> None:
        self._pairs = [(re.compile(pattern), text) for pattern, text in pairs]

    def __call__(self, text: str) -> str:
        for pattern, instead in self._pairs:
            text = pattern.sub(instead, text)
        return text


class Placed(Protocol):
    """A syntax node, which has a stretch of the source."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


class Reporter:
    """The diagnostics of one assembly, in the order in which they were found."""

    words: Callable[[str], str] | None = None
    """The front end's words: a function of its module; None for those of the assembly language."""

    def __init__(self, sources: SourceMap) -> None:
        self.sources = sources
        self.found: list[Diagnostic] = []
        self.context: list[tuple[str, int, int]] = []
        """The macros being expanded: name and the position of the use, outermost first."""
        self._seen: set[tuple[str, int, str]] = set()
        self._owner = 0
        self._instance = ""
        self._generic: dict[tuple[str, int, int], tuple[int, list[str]]] = {}
        """Messages about generic functions: the index of each, and the parameters concerned."""
        self.warned: set[tuple[str, Where]] = set()
        """The warnings that have been given, by code and place."""

    @property
    def failed(self) -> bool:
        return any(d.severity == "error" for d in self.found)

    def about(self, node: Placed, code: str, message: str, **more: Any) -> None:
        """Add a message about a node."""
        self.error(code, message, node.start, node.end, **more)

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
        severity: str = "error",
    ) -> None:
        """Add a message about a stretch; `also` are further stretches with a text each.

        The same message about the same stretch is kept once.  With the last one that is kept the
        assembly ends if there is an error among them: AssemblyError.  With "warning" as its
        `severity` a message is not an error.
        """
        if severity != "error" and len(self.found) >= _MAX_ERRORS:
            return
        words = self.words or str
        message, hint = words(message), words(hint)
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE - 1]}…"
        if self._repeated(code, start, message):
            return
        where = self.sources.where(start, end)
        labels = [Label(where.line, where.column, where.end, label)]
        lines: dict[int, str] = {}
        more = [words(n) for n in notes]
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
                severity=severity,
                lines=lines,
            )
        )
        if len(self.found) >= _MAX_ERRORS:
            self.raise_if_failed()

    @contextmanager
    def within(self, func: Func, instance: str) -> Iterator[None]:
        """Within it, a function is checked for values of its type parameters (`T = f64`)."""
        before = self._owner, self._instance
        context, self.context = self.context, []
        self._owner, self._instance = func.start, instance
        try:
            yield
        finally:
            self._owner, self._instance = before
            self.context = context

    def _repeated(self, code: str, start: int, message: str) -> bool:
        """Whether it has been reported; for a generic function, with any type parameters."""
        known = None
        if self._instance:
            place = (code, start, self._owner)
            known = self._generic.setdefault(place, (len(self.found), []))
            if self._instance not in known[1]:
                known[1].append(self._instance)
                if known[0] < len(self.found):
                    return True
        key = (code, start, message)
        told = key in self._seen
        self._seen.add(key)
        return told

    def _complete(self) -> list[Diagnostic]:
        """All messages; those about generic functions say for which types they are."""
        out = list(self.found)
        for at, instances in self._generic.values():
            if at < len(out):
                out[at] = replace(out[at], notes=(*out[at].notes, _instances_text(instances)))
        return out

    def raise_if_failed(self) -> None:
        """AssemblyError with everything found, sorted by place; nothing without an error."""
        if self.failed:
            order = {f.name: k for k, f in enumerate(self.sources.files)}
            raise AssemblyError(
                sorted(
                    self._complete(),
                    key=lambda d: (order.get(d.where.source, -1), d.where.line, d.where.column),
                )
            )

    def give_warnings(self) -> None:
        """Give the warnings that have not been given yet to Python's `warnings`."""
        for d in self._complete():
            key = d.code, d.where
            if d.severity == "warning" and key not in self.warned:
                self.warned.add(key)
                warn_explicit(AssemblyWarning(d), None, d.where.source, d.where.line)


def _instances_text(instances: Sequence[str]) -> str:
    """The type parameters that a message concerns, `for T = f32, f64`."""
    instances = [i if len(i) <= _MAX_INSTANCE else f"{i[: _MAX_INSTANCE - 1]}…" for i in instances]
    heads, values = zip(*(i.split(" = ", 1) for i in instances), strict=True)
    shown = instances[:_MAX_INSTANCES]
    while len(shown) > 1 and len("; ".join(shown)) > MAX_MESSAGE:
        shown = shown[:-1]
    text = "; ".join(shown)
    if len(set(heads)) == 1 and not any("," in v for v in values):
        text = f"{heads[0]} = {', '.join(values[:_MAX_INSTANCES])}"
    return f"for {text}{', …' if len(instances) > len(shown) else ''}"


_MAX_NEAR = 400
"""Names that are compared with one that nothing has: comparing takes microseconds each."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known name, or nothing."""
    likely = [k for k in known if abs(len(k) - len(name)) <= 3 and k.isidentifier()]
    if len(likely) > _MAX_NEAR:
        likely = [k for k in likely if k[0] == name[:1]][:_MAX_NEAR]
    near = get_close_matches(name, likely, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""
