"""A trace as a table for people: a head that sums up, a row for each opcode, line or function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, log10

from rvm.codes.words import count
from rvm_tools.runs import page_width
from rvm_tools.trace.account import CostAccount, SourceLine, Tally
from rvm_tools.trace.energy import deepest
from rvm_tools.trace.run import Trace

ARITIES = (2, 3, 10)
"""The values of k for which the head shows how deep k-ary nesting pays."""
_COMMENT = re.compile(r"\s\s+;.*$")
"""The part of a source line that is not shown."""
PREFIXES = {
    -24: "y",
    -21: "z",
    -18: "a",
    -15: "f",
    -12: "p",
    -9: "n",
    -6: "µ",
    -3: "m",
    0: "",
    3: "k",
}


def joules(energy: float) -> str:
    """An energy with three or four digits and a prefix: `2.87 zJ`, `183.7 zJ`."""
    if energy == 0:
        return "0 J"
    power = min(max(3 * floor((log10(energy) + 1e-9) / 3), -24), 3)
    scaled = energy / 10.0**power
    # Sums in another order may differ in the last bits, which must not decide a rounding.
    scaled = float(f"{scaled:.12g}")
    if scaled >= 1e6:
        return f"{scaled:.3g} {PREFIXES[power]}J"
    return f"{scaled:.{2 if scaled < 10 else 1}f} {PREFIXES[power]}J"


def written(trace: Trace, by: str) -> str:
    """The head and the table."""
    return "\n".join([*_head(trace), "", *(line.rstrip() for line in _table(trace, by))])


# ---------------------------------------------------------------- the head


def _head(trace: Trace) -> Iterator[str]:
    """A summary of the trace, in some lines."""
    tally = trace.all
    window = "" if trace.complete else f", from time {trace.first:,} to {trace.last:,}"
    stopped = ", interrupted there" if trace.interrupted else ""
    yield f"{trace.name}: {count(trace.steps, 'step')} {trace.way}{window}{stopped}"
    rows = [
        ("executed", count(tally.executed, "instruction") + _calls(tally)),
        ("work", ", ".join(f"{cls} {n:,}" for cls, n in tally.classes().items())),
        ("checks", f"{tally.checks:,}"),
        ("memory", f"at most {count(trace.peak_bytes, 'byte')}"),
        ("erased", _erased(trace)),
        ("energy", f"{joules(trace.joules(tally))} by `{trace.model.name}`{_title(trace)}"),
        ("ordinary", _ordinary(trace)),
    ]
    if trace.residue_bytes:
        rows.insert(4, ("log", f"{count(trace.residue_bytes, 'byte')} that rounding would lose"))
    rows += _xi(trace)
    for name, text in rows:
        yield f"  {name:<9} {text}"


def _title(trace: Trace) -> str:
    model = trace.model
    kelvin = f" (k T ln 2 at {model.temperature:g} K)" if model.bit is None else ""
    title = f"{model.title}, " if model.title else ""
    return f": {title}{joules(model.erasing)} a bit{kelvin}"


def _calls(tally: Tally) -> str:
    return f", {count(tally.calls, 'call')}" if tally.calls else ""


def _erased(trace: Trace) -> str:
    tally = trace.all
    why = ", ".join(f"{n:,} {cause}" for cause, n in sorted(tally.erased.items()) if n)
    return count(tally.erased_bits, "bit") + (f": {why}" if why else "")


def _ordinary(trace: Trace) -> str:
    tally, model = trace.all, trace.model
    bits = count(tally.overwritten, "bit")
    return f"{joules(model.ordinary(tally))}: the same work, {bits} overwritten and so erased"


def _xi(trace: Trace) -> Iterator[tuple[str, str]]:
    """The ratio, and how deep a nesting of compute and uncompute pays."""
    xi = trace.model.xi(trace.all)
    if xi is None:
        return
    if xi == 0:
        yield "ξ", "0 of the ordinary energy: undoing, however often, costs less than erasing"
        return
    if (deepest(xi, ARITIES[0]) or 0) <= 0:
        yield "ξ", f"{xi:.3g} of the ordinary energy: erasing costs less than undoing"
        return
    yield "ξ", f"{xi:.3g} of the ordinary energy: undoing pays while (2k-1)^n ≤ 1/ξ = {1 / xi:.3g},"
    depths = (f"n = {deepest(xi, k)} for k = {k}" for k in ARITIES)
    yield "", f"that is to {', '.join(depths)}"


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class _TableRow:
    """A row: its label, its costs (none in a heading), and the text after it."""

    label: str
    tally: Tally | None = None
    text: str = ""


def _table(trace: Trace, by: str) -> list[str]:
    if by == "function":
        return _functions(trace)
    rows = _lines(trace) if by == "line" else _opcodes(trace)
    if trace.account.left.erased_bits:
        # It belongs to no instruction.
        rows.append(_TableRow(trace.account.left_label, trace.account.left))
    return _aligned(trace, by, rows)


def _opcodes(trace: Trace) -> list[_TableRow]:
    rows = [_TableRow(op, t) for op, t in trace.account.by_opcode().items() if t.executed]
    return sorted(rows, key=lambda row: -(row.tally or Tally()).executed)


def _lines(trace: Trace) -> list[_TableRow]:
    """Numbers and texts of lines; if there are several files, each under its name."""
    account, found = trace.account, trace.account.by_line()
    several = len({line.source for line in found if line.number}) > 1
    texts = {line: _COMMENT.sub("", text_of(account, line)).expandtabs() for line in found}
    indent = min((len(t) - len(t.lstrip()) for t in texts.values() if t), default=0)
    rows, file = [], -1
    for line, tally in found.items():
        if several and line.number and line.source != file:
            file = line.source
            rows.append(_TableRow("", text=f"{account.program.sources[file].name}:"))
        label = str(line.number) if line.number else "(no source)"
        rows.append(_TableRow(label, tally, texts[line][indent:]))
    return rows


def text_of(account: CostAccount, line: SourceLine) -> str:
    """The text of a line in its source."""
    if not line.number:
        return ""
    return account.program.sources[line.source].line(line.number) or ""


def _aligned(trace: Trace, name: str, rows: Sequence[_TableRow]) -> list[str]:
    """The rows in columns; columns with nothing in them are left out."""
    every = trace.all

    def column(title: str, show: Callable[[Tally], str]) -> tuple[str, list[str]]:
        return title, ["" if r.tally is None else show(r.tally) for r in rows]

    columns = [(name, [r.label for r in rows])]
    columns.append(column("executed", lambda t: _number(t.executed)))
    columns.append(column("%", lambda t: _share(t.executed, every.executed)))
    for cls, n in every.classes().items():
        if n:
            columns.append(column(cls, partial(_of_class, cls)))
    if every.checks:
        columns.append(column("checks", lambda t: _number(t.checks)))
    if every.erased_bits:
        columns.append(column("erased", lambda t: _number(t.erased_bits)))
    if trace.joules(every):
        columns.append(column("energy", lambda t: _energy(trace, t)))
    texts = [r.text for r in rows] if name == "line" else []
    return _columns(columns, texts, name != "line")


def _functions(trace: Trace) -> list[str]:
    found = [f for f in trace.account.by_function().values() if f.total.executed]
    found.sort(key=lambda f: -f.total.executed)
    every = trace.all
    columns = [
        ("function", [f.name for f in found]),
        ("calls", [_number(f.calls) for f in found]),
        ("own", [f"{f.own.executed:,}" for f in found]),
        ("%", [_share(f.own.executed, every.executed) for f in found]),
        ("total", [f"{f.total.executed:,}" for f in found]),
        ("%", [_share(f.total.executed, every.executed) for f in found]),
    ]
    for cls, n in every.classes().items():
        if n:
            columns.append((cls, [_number(f.own.classes()[cls]) for f in found]))
    if every.erased_bits:
        columns.append(("erased", [_number(f.own.erased_bits) for f in found]))
        columns.append(("in all", [_number(f.total.erased_bits) for f in found]))
    if trace.joules(every):
        columns.append(("energy", [_energy(trace, f.own) for f in found]))
        columns.append(("in all", [_energy(trace, f.total) for f in found]))
    return _columns(columns, [], True)


def _columns(
    columns: Sequence[tuple[str, Sequence[str]]], texts: Sequence[str], left: bool
) -> list[str]:
    """Columns aligned to the right (the first to the left if `left`), texts after them."""
    widths = [max(map(len, (title, *cells))) for title, cells in columns]
    room = max(40, page_width() - sum(widths) - 2 * len(widths) - 1)
    out = []
    for k in range(-1, len(columns[0][1])):
        cells = [title if k < 0 else given[k] for title, given in columns]
        line = "  ".join(
            cell.ljust(w) if left and n == 0 else cell.rjust(w)
            for n, (cell, w) in enumerate(zip(cells, widths, strict=True))
        )
        text = texts[k] if texts and k >= 0 else ""
        if len(text) > room:
            text = text[: room - 1] + "…"
        out.append(f"{line}  {text}")
    return out


def _of_class(cls: str, tally: Tally) -> str:
    return _number(tally.classes()[cls])


def _number(n: int) -> str:
    return f"{n:,}" if n else "-"


def _share(n: int, of: int) -> str:
    return f"{100 * n / of:.1f}" if n and of else "-"


def _energy(trace: Trace, tally: Tally) -> str:
    energy = trace.joules(tally)
    return joules(energy) if energy else "-"
