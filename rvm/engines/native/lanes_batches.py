"""Batches of lanes in machine code: first in groups as vectors, then the rest one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rvm.engines.native import lanes_wide
from rvm.engines.native.lanes import Batch, Block
from rvm.engines.native.lanes_wide import WideBlock, WideRoot, wide_root
from rvm.ir.context import WIDTH
from rvm.state import Options

BLOCK = 16_384
"""The number of lanes for which there are slots at a time."""


def run_batch(batch: Batch, options: Options, block: int | None) -> NDArray[np.bool_]:
    """Run a batch; return a mask of the lanes that have not finished."""
    aside = np.ones(batch.size, bool)
    width = block or BLOCK
    wide = None
    if min(batch.size, width) >= lanes_wide.GROUPS_ENOUGH * WIDTH:
        wide = wide_root(batch, options.checks)
    for lo in range(0, batch.size, width):
        hi = min(lo + width, batch.size)
        _run_block(batch, lo, hi, wide, options, aside)
    return aside


def _run_block(
    batch: Batch,
    lo: int,
    hi: int,
    wide: WideRoot | None,
    options: Options,
    aside: NDArray[np.bool_],
) -> None:
    first = lo
    if wide is not None and not wide.parts:
        # Whether lanes go together is seen from the first of them.
        if not wide.tried:
            first = min(hi, lo + lanes_wide.GROUPS_ENOUGH * WIDTH)
            _run_wide(batch, lo, first, wide, options, aside)
        if first < hi and not wide.parts:
            _run_wide(batch, first, hi, wide, options, aside)
            first = hi
    if first < hi:
        Block(batch, first, hi).run(options, aside[first:hi])


def _run_wide(
    batch: Batch, lo: int, hi: int, wide: WideRoot, options: Options, aside: NDArray[np.bool_]
) -> None:
    left = WideBlock(batch, lo, hi, wide).run(options, aside[lo:hi])
    lanes = lo + np.flatnonzero(left)
    if len(lanes):
        part = batch.part(lanes)
        found = np.ones(len(lanes), bool)
        Block(part, 0, len(lanes)).run(options, found)
        batch.take(part, lanes)
        aside[lanes] = found
