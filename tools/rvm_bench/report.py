"""The tables that `rvm bench` prints of a run's data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvm_tools.tables import aligned

_Data = Mapping[str, Any]
_HEAD = ("", "size", "time", "a unit", "ratio", "spread", "instructions/s")


def tables(data: _Data) -> str:
    """All that was measured, as aligned text."""
    parts = [_heading(data)]
    parts += [_contest_table(c) for c in data["contests"]]
    parts += [part for part in _extra_tables(data) if part]
    return "\n\n".join(parts)


def _heading(data: _Data) -> str:
    """The machine and the versions of a measurement."""
    m = data["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items())
    return "\n".join(
        [
            f"{m['cpu']}, {m['cores']} cores, {m['system']}; {data['date']}",
            f"Python {m['python']}, {versions}",
            f"C: {m['compiler'] or 'no compiler, so left out'}",
            "Medians of alternating runs; ratios are for a unit of work, with their quartiles.",
        ]
    )


def _contest_table(contest: _Data) -> str:
    """One task of one workload."""
    rows = [_contest_row(e) for e in contest["entries"]]
    title = f"{contest['workload']}, {contest['task']}: {contest['doc']}"
    head = list(_HEAD)
    head[3] = f"a {contest['unit']}"
    head[4] = f"÷ {contest['base']}"
    lines = [title, *aligned([head, *rows])]
    lines += [f"  left out: {name} ({why})" for name, why in contest["left_out"].items()]
    return "\n".join(lines)


def _contest_row(entry: _Data) -> list[str]:
    """A contestant's cells."""
    middle, low, high = entry.get("ratio", (None, None, None))
    rate = entry.get("instructions_per_second")
    return [
        f"  {entry['name']}",
        f"{entry['size']:,}",
        seconds(entry["seconds"]),
        seconds(entry["unit_ns"] / 1e9),
        "" if middle is None else times(middle),
        "" if middle is None or middle == low == high else f"{times(low)} … {times(high)}",
        "" if rate is None else f"{rate / 1e6:,.1f} M",
    ]


def _extra_tables(data: _Data) -> list[str]:
    """First calls, memory, growth, lanes, as far as they were measured."""
    parts = []
    if first := data.get("first_call"):
        rows = [["first calls: gradient of leapfrog", "load", "first call", "second"]]
        rows += [
            [f"  {how}", *(seconds(first[how][k]) for k in ("load", "first", "second"))]
            for how in ("compiled", "cached")
        ]
        parts.append("\n".join(aligned(rows)))
    if found := data.get("memory"):
        rows = [["memory: gradient of leapfrog", "steps", "peak grows by", "a step"]]
        rows += [
            [f"  {m['peer']}", f"{m['size']:,}", size(m["bytes"]), f"{m['bytes'] / m['size']:,.1f}"]
            for m in found
        ]
        parts.append("\n".join(aligned(rows)))
    if found := data.get("growth"):
        rows = [["growth: gradient of leapfrog", "steps", "time", "a step", "peak grows by"]]
        rows += [
            [
                f"  {g['peer']}",
                f"{g['size']:,}",
                seconds(g["seconds"]),
                seconds(g["step_ns"] / 1e9),
                size(g["bytes"]),
            ]
            for g in found
        ]
        parts.append("\n".join(aligned(rows)))
    if found := data.get("lanes"):
        rows = [
            ["lanes: leapfrog by f.map", "an instruction and lane", "gradient, a step and lane"]
        ]
        rows += [
            [f"  {n['lanes']:,}", f"{n['forward_ns']:.2f} ns", f"{n['gradient_step_ns']:.0f} ns"]
            for n in found
        ]
        parts.append("\n".join(aligned(rows)))
    return parts


def seconds(value: float) -> str:
    """A time in the unit that suits it, with three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 0.9995:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value * 1e9)} ns"


def times(ratio: float) -> str:
    """A ratio with three digits or so."""
    return f"×{_digits(ratio)}"


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


def size(count: int) -> str:
    """Bytes in the unit that suits them."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count} B"
