"""Exceptions by which generated code reports that lanes cannot continue together."""

from __future__ import annotations

from typing import Any

from rvm.engines.support import Trouble


class Failing(Trouble):
    """Some lanes are at fault: `lanes` is a mask of them.  No state was changed."""

    def __init__(self, lanes: Any) -> None:
        super().__init__()
        self.lanes = lanes


class Varied(Trouble):
    """A value that must be one is not: `values` holds it for each lane.  Nothing has changed."""

    def __init__(self, values: Any) -> None:
        super().__init__()
        self.values = values


class Ragged(Exception):
    """Lanes hold arrays of different lengths in one register, which cannot be stored together."""
