"""A trace as a table for people: a head that sums up, a row for each opcode, line or function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10

from rvm_tools.running import page_width
from rvm_tools.trace.account import Account, Line, Tally
from rvm_tools.trace.energy import deepest
from rvm_tools.trace.tracing import Trace
from rvm_tools.words import count

ARITIES = (2, 3, 10)
"""The k of the k-ary nestings for which the head says how deep they pay."""
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
    """An energy with three digits and a prefix: `2.87 zJ`."""
    if energy == 0:
        return "0 J"
    power = min(max(3 * floor((log10(energy) + 1e-9) / 3), -24), 3)
    scaled = energy / 10.0**power
    digits = max(0, 2 - floor(log10(scaled) + 1e-9)) if scaled >= 1 else 3
    return f"{scaled:.{digits}f} {PREFIXES[power]}J"


def written(trace: Trace, by: str) -> str:
    """The head and the table."""
    return "\n".join([*head(trace), "", *(line.rstrip() for line in _table(trace, by))])


# ---------------------------------------------------------------- the head


def head(trace: Trace) -> Iterator[str]:
    """What the trace came to, in some lines."""
    tally = trace.all
    window = "" if trace.complete else f", from time {trace.first:,} to {trace.last:,}"
    yield f"{trace.name}: {count(trace.steps, 'step')} {trace.way}{window}"
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
    rows += [("ξ", text) for text in _xi(trace)]
    for name, text in rows:
        yield f"  {name:<9} {text}"


def _title(trace: Trace) -> str:
    model = trace.model
    kelvin = f" at {model.temperature:g} K" if model.bit is None else ""
    return f": {model.title}{kelvin}" if model.title else ""


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


def _xi(trace: Trace) -> Iterator[str]:
    """The ratio, and how deep a nesting of compute and uncompute pays."""
    xi = trace.model.xi(trace.all)
    if xi is None:
        return
    if xi == 0:
        yield "0 of the ordinary energy: undoing, however often, costs less than erasing"
        return
    if (deepest(xi, ARITIES[0]) or 0) <= 0:
        yield f"{xi:.3g} of the ordinary energy: erasing costs less than undoing"
        return
    depths = ", ".join(f"n = {deepest(xi, k)} for k = {k}" for k in ARITIES)
    yield f"{xi:.3g} of the ordinary energy: undoing pays while (2k-1)^n ≤ {1 / xi:.3g}; {depths}"


# ---------------------------------------------------------------- the table


def _table(trace: Trace, by: str) -> list[str]:
    match by:
        case "opcode":
            rows = [(op, "", t) for op, t in trace.account.by_opcode().items() if t.executed]
            rows.sort(key=lambda row: (-row[2].executed, row[0]))
            return _aligned(trace, "opcode", [*rows, *_left(trace)])
        case "line":
            found = list(_lines(trace))
            return _aligned(trace, "line", [*found, *_left(trace)])
        case _:
            return _functions(trace)


def _left(trace: Trace) -> list[tuple[str, str, Tally]]:
    """A row for what is left on stacks, which belongs to no instruction."""
    left = trace.account.left
    return [("(left on stacks)", "", left)] if left.erased_bits else []


def _lines(trace: Trace) -> Iterator[tuple[str, str, Tally]]:
    account = trace.account
    found = account.by_line()
    sources = {line.source for line in found if line.number}
    for line, tally in found.items():
        yield place(account, line, len(sources) > 1), text_of(account, line), tally


def place(account: Account, line: Line, with_file: bool = True) -> str:
    """A line's number, behind its file's name if that is wanted."""
    if not line.number:
        return "(no source)"
    name = account.program.sources[line.source].name
    return f"{name}:{line.number}" if with_file else str(line.number)


def text_of(account: Account, line: Line) -> str:
    """A line's text as it stands in its source."""
    if not line.number:
        return ""
    return account.program.sources[line.source].line(line.number) or ""


def _aligned(trace: Trace, name: str, rows: Sequence[tuple[str, str, Tally]]) -> list[str]:
    """The rows in columns; columns with nothing in them are left out."""
    every = trace.all
    columns = [(name, [label for label, _, _ in rows])]
    tallies = [t for _, _, t in rows]
    columns.append(("executed", [f"{t.executed:,}" for t in tallies]))
    columns.append(("%", [_share(t.executed, every.executed) for t in tallies]))
    for cls, n in every.classes().items():
        if n:
            columns.append((cls, [_number(t.classes()[cls]) for t in tallies]))
    if every.checks:
        columns.append(("checks", [_number(t.checks) for t in tallies]))
    if every.erased_bits:
        columns.append(("erased", [_number(t.erased_bits) for t in tallies]))
    if trace.joules(every):
        columns.append(("energy", [_energy(trace, t) for t in tallies]))
    left = name != "line"
    texts = [text for _, text, _ in rows] if name == "line" else []
    return _columns(columns, texts, left)


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
    """Columns aligned to the right (the first to the left if `left`), texts behind them."""
    widths = [max(map(len, (title, *cells))) for title, cells in columns]
    room = max(20, page_width() - sum(widths) - 2 * len(widths) - 1)
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


def _number(n: int) -> str:
    return f"{n:,}" if n else "-"


def _share(n: int, of: int) -> str:
    return f"{100 * n / of:.1f}" if n and of else "-"


def _energy(trace: Trace, tally: Tally) -> str:
    energy = trace.joules(tally)
    return joules(energy) if energy else "-"
