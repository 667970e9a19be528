"""Showing derivatives: a table of values and adjoints, a labelled matrix, JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import count
from rvm.program import Function
from rvm.run.results import Result
from rvm.types import Scalar, elem_of
from rvm_tools import show
from rvm_tools.tables import aligned_blocks

if TYPE_CHECKING:
    from rvm.derive.differences import GradCheck

_DIGITS = 10
"""Digits of inexact numbers in a table; JSON and .npz files have all."""
_MATRIX_DIGITS = 7
LONG, EDGE = 12, 3
"""Arrays, and matrices in either direction, of more numbers are abbreviated to their edges."""
_GAP = "..."


def leaves(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Derivatives by dotted name, `p.vel`."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


# ---------------------------------------------------------------- the table


def table(
    function: Function,
    regs: Sequence[Any],
    adjoints: Mapping[str, Any],
    width: int = 100,
    title: str = "adjoint",
) -> list[str]:
    """Lines in columns: a parameter's name, type, value, and adjoint if requested.

    `title` is the heading of the adjoint column, if another.
    """
    known = dict(leaves(adjoints))
    rows = [
        (name, show.register_name(function.registers[slot], regs[slot]), slot)
        for name, slot in show.parameters(function)
    ]
    names = max([len("parameter"), *(len(name) for name, _, _ in rows)])
    types = max([len("type"), *(len(t) for _, t, _ in rows)])
    room = max((width - names - types - 8) // 2, 20)
    cells = [
        (
            [name],
            [t],
            _cell(
                elem_of(function.registers[slot].type),
                show.seen(function.registers[slot], regs[slot])[1],
                room,
            ),
            _cell(None, known[name], room) if name in known else ["-"],
        )
        for name, t, slot in rows
    ]
    heads = (["parameter"], ["type"], ["value"], [title])
    return [f"  {line}" for line in aligned_blocks([heads, *cells])]


def _cell(t: Scalar | None, value: Any, room: int) -> list[str]:
    """A value's lines: raw numbers of type `t`, or derivatives."""
    if isinstance(value, list):
        value = np.array(value, object)
    if not isinstance(value, np.ndarray):
        return [_number(t, value)]
    return show.array_text(value, lambda v: _number(t, v), room, LONG, EDGE).split("\n")


def _number(t: Scalar | None, raw: Any) -> str:
    """A number: in full where it is exact, else rounded to a number of digits."""
    if t is not None and (t.is_bool or t.is_integer):
        return show.number_text(t, raw)
    if t is not None and t.is_log:
        return f"{rounded(float(raw))}'log64"
    if t is not None and t.is_fixed:
        return rounded(float(show.number_text(t, raw)))
    if isinstance(raw, (complex, np.complexfloating)):
        sign = "-" if math.copysign(1, raw.imag) < 0 else "+"
        return f"{rounded(float(raw.real))}{sign}{rounded(abs(float(raw.imag)))}j"
    return rounded(float(raw))


def rounded(x: float, digits: int = _DIGITS) -> str:
    """A float with a number of significant digits, as Python writes it."""
    return repr(float(f"{x:.{digits}g}"))


# ---------------------------------------------------------------- the matrix


def blocks(
    function: Function, hessian: Mapping[str, Any]
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """The blocks of a Hessian by dotted names."""
    names = [name for name, _ in show.parameters(function) if _at(hessian, name) is not None]
    return {a: {b: np.asarray(_at(_at(hessian, a), b), np.float64) for b in names} for a in names}


def _at(found: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def labelled(
    function: Function, hessian: Mapping[str, Any]
) -> tuple[list[str], NDArray[np.float64]]:
    """The Hessian as one matrix, and the real number that each row and column belongs to."""
    types = {name: elem_of(function.registers[k].type) for name, k in show.parameters(function)}
    rows = blocks(function, hessian)
    # A block of `a` with itself has the shape of `a` twice.
    shapes = {a: row[a].shape[: row[a].ndim // 2] for a, row in rows.items()}
    labels = []
    for a, shape in shapes.items():
        for at in np.ndindex(shape):
            index, part = (at[:-1], (".re", ".im")[at[-1]]) if types[a].is_complex else (at, "")
            labels.append(a + (f"[{', '.join(map(str, index))}]" if index else "") + part)
    sizes = {a: math.prod(shape) for a, shape in shapes.items()}
    lines = [[row[b].reshape(sizes[a], sizes[b]) for b in shapes] for a, row in rows.items()]
    return labels, np.block(lines) if lines else np.zeros((0, 0))


def matrix(function: Function, hessian: Mapping[str, Any], width: int = 100) -> list[str]:
    """The Hessian's lines; further columns are continued below, very many are left out."""
    labels, numbers = labelled(function, hessian)
    if not labels:
        return ["  (no parameter that carries derivatives)"]
    shown: list[int | None] = list(range(len(labels)))
    if len(labels) > LONG:
        shown = [*shown[:EDGE], None, *shown[-EDGE:]]
    heads = [_GAP if k is None else labels[k] for k in shown]
    texts = [
        [
            _GAP if i is None or j is None else rounded(float(numbers[i, j]), _MATRIX_DIGITS)
            for j in shown
        ]
        for i in shown
    ]
    first = max(map(len, heads))
    widths = [max(len(heads[j]), *(len(row[j]) for row in texts)) for j in range(len(heads))]
    out: list[str] = []
    start = 0
    while start < len(heads):
        stop, used = start, first + 2
        while stop < len(heads) and (stop == start or used + widths[stop] + 2 <= width):
            used += widths[stop] + 2
            stop += 1
        columns = range(start, stop)
        out += [""] * (start > 0)
        out.append("  " + " " * first + "".join(f"  {heads[j]:>{widths[j]}}" for j in columns))
        for head, row in zip(heads, texts, strict=True):
            line = "".join(f"  {row[j]:>{widths[j]}}" for j in columns)
            out.append(f"  {head:<{first}}{line}")
        start = stop
    return out


# ---------------------------------------------------------------- the check


def checked(check: GradCheck) -> str:
    """A check's rows, the worst of them if there are many, and its verdict."""
    rows = check.rows
    shown, title = check, ""
    if len(rows) > LONG:
        shown = replace(check, rows=tuple(check.by_error[:LONG]))
        title = f"the {LONG} of {len(rows)} that differ most:\n"
    bad = sum(not row.agrees(check.tolerance) for row in rows)
    open_ = sum(row.agrees(check.tolerance) and not row.tells for row in rows)
    agree = "agrees" if len(rows) - open_ == 1 else "agree"
    verdict = (
        f"{bad} of {len(rows)} differ from"
        if bad
        else f"{count(len(rows) - open_, 'number')} {agree} with"
    )
    verdict += f" central differences, within {check.tolerance:g}"
    if open_:
        required = sum(row.is_required for row in rows)
        if open_ > required:
            verdict += f"\n{open_ - required} not comparable (?): ± is larger than both"
        if required:
            verdict += f"\n{required} not comparable (?): the function takes no other value there"
    return f"{title}{shown}\n{verdict}"


# ---------------------------------------------------------------- JSON


def nested_json(value: Any) -> Any:
    """Derivatives as JSON values; numbers that JSON lacks are strings, `1.0+2.0j`."""
    if isinstance(value, (Mapping, Result)):
        return {k: nested_json(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [nested_json(v) for v in value]
    return number_json(value)


def number_json(x: Any) -> Any:
    """A number if JSON has it, else a literal in a string."""
    if isinstance(x, complex):
        return str(x).strip("()")
    return float(x) if math.isfinite(x) else repr(float(x))
