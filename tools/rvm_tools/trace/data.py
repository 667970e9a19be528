"""A trace as data: a JSON object with all of it, or the rows of one table as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from rvm_tools.streams import json_text
from rvm_tools.trace.account import SourceLine, Tally
from rvm_tools.trace.energy import deepest
from rvm_tools.trace.run import Trace
from rvm_tools.trace.table import ARITIES, text_of


def as_json(trace: Trace) -> str:
    """One object; see `docs/energy.md` for the meaning of its members."""
    return json_text(_as_object(trace))


def _as_object(trace: Trace) -> dict[str, Any]:
    """A trace as JSON holds it."""
    every, model, account = trace.all, trace.model, trace.account
    xi = model.xi(every)
    return {
        "function": trace.name,
        "direction": trace.way,
        "engine": trace.engine,
        "from": trace.first,
        "to": trace.last,
        "complete": trace.complete,
        "interrupted": trace.interrupted is not None,
        "steps": trace.steps,
        **_tally(trace, every),
        "work_by_type": _by_type(every),
        "erased": dict(sorted(every.erased.items())),
        "peak_bytes": trace.peak_bytes,
        "residue_bytes": trace.residue_bytes,
        "model": {
            "name": model.name,
            "title": model.title,
            "source": model.source,
            "joules_per_erased_bit": model.erasing,
            "joules_per_step": model.step,
            "scale": model.scale,
        },
        "ordinary_joules": model.ordinary(every),
        "xi": xi,
        "deepest": {} if xi is None else {str(k): deepest(xi, k) for k in ARITIES},
        "opcodes": [
            {"opcode": op, **_tally(trace, t)}
            for op, t in account.by_opcode().items()
            if t.executed
        ],
        "lines": [
            {**_place(trace, line), **_tally(trace, t)} for line, t in account.by_line().items()
        ],
        "functions": [
            {
                "function": f.name,
                "entered": f.calls,
                "own": _tally(trace, f.own),
                "total": _tally(trace, f.total),
            }
            for f in account.by_function().values()
        ],
    }


def _tally(trace: Trace, tally: Tally) -> dict[str, Any]:
    return {
        "executed": tally.executed,
        "ticks": tally.ticks,
        "calls": tally.calls,
        "checks": tally.checks,
        "work": tally.classes(),
        "erased_bits": tally.erased_bits,
        "overwritten_bits": tally.overwritten,
        "joules": trace.joules(tally),
    }


def _by_type(tally: Tally) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for kind, n in sorted(tally.work.items()):
        out.setdefault(kind.cls, {})[kind.type] = n
    return out


def _place(trace: Trace, line: SourceLine) -> dict[str, Any]:
    sources = trace.account.program.sources
    return {
        "file": sources[line.source].name if line.number else None,
        "line": line.number or None,
        "text": text_of(trace.account, line),
    }


# ---------------------------------------------------------------- CSV


def as_csv(trace: Trace, by: str) -> str:
    """A header and a row for each opcode, line or function; energies in joules."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows = list(_rows(trace, by))
    names = {"opcode": ["opcode"], "line": ["file", "line"], "function": ["function", "entered"]}[
        by
    ]
    fields = ["executed", "ticks", "calls", "checks", "MOVES", "ADDS", "MULTS", "NLOPS"]
    fields += ["erased_bits", "overwritten_bits", "joules"]
    more = [f"total_{f}" for f in fields] if by == "function" else []
    last = ["text"] if by == "line" else []
    writer.writerow([*names, *fields, *more, *last])
    for keys, tallies, text in rows:
        cells = [c for t in tallies for c in _flat(trace, t)]
        writer.writerow([*keys, *cells, *([text] if last else [])])
    return out.getvalue().rstrip("\n")


def _rows(trace: Trace, by: str) -> Iterator[tuple[list[Any], list[Tally], str]]:
    account = trace.account
    left = account.left
    match by:
        case "opcode":
            for op, tally in account.by_opcode().items():
                if tally.executed:
                    yield [op], [tally], ""
            if left.erased_bits:
                yield [account.left_label], [left], ""
        case "line":
            for line, tally in account.by_line().items():
                at = _place(trace, line)
                yield [at["file"] or "", at["line"] or ""], [tally], at["text"]
            if left.erased_bits:
                yield [account.left_label, ""], [left], ""
        case _:
            for f in account.by_function().values():
                yield [f.name, f.calls], [f.own, f.total], ""


def _flat(trace: Trace, tally: Tally) -> list[Any]:
    flat = _tally(trace, tally)
    return [
        v
        for k, v in flat.items()
        if k != "work"
        for v in ([v, *flat["work"].values()] if k == "checks" else [v])
    ]
