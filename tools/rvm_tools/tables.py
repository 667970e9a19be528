"""Rows of text as aligned columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The rows as lines, the first `left` columns aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def aligned_blocks(rows: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    """Rows of cells that have several lines each, as lines aligned to the left."""
    lines = [line for row in rows for line in zip_longest(*row, fillvalue="")]
    return aligned(lines, left=len(lines[0]))
