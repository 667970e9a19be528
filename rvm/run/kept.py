"""The log that a strict call leaves in its result, by which the inverse restores every bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from rvm.faults import InvertibilityError
from rvm.image import Code
from rvm.numbers.residue import Residue, Snapshot, size_of
from rvm.program import Program
from rvm.run.machine import Machine


@dataclass(frozen=True, slots=True, repr=False)
class Kept:
    """The log of a call, with a digest of its final values."""

    program: Program
    name: str
    undo: bool
    """Whether the call was of the function's inverse."""
    log: Snapshot
    seal: bytes

    def __repr__(self) -> str:
        return f"<strict log of {'~' * self.undo}{self.name}, {size_of(self.log):,} bytes>"

    @classmethod
    def of(cls, machine: Machine) -> Kept:
        """The log of a finished machine."""
        state = machine.state
        assert state.residue is not None
        code = state.frames[0].code
        sealed = seal(state.frames[0].regs[: code.function.n_args])
        return cls(machine.program, code.name, code.undo, state.residue.snapshot(), sealed)

    def is_taken_back_by(self, program: Program, code: Code) -> bool:
        """Whether a code is the inverse of the one that was called."""
        if (self.name, self.undo) != (code.name, not code.undo):
            return False
        return self.program is program or self.program == program

    def hand_to(self, machine: Machine) -> None:
        """Let a machine at its start go back by the log.

        InvertibilityError R019 if its code is not the inverse of the call, or its values differ.
        """
        frame = machine.state.frames[0]
        code = frame.code
        if not self.is_taken_back_by(machine.program, code):
            raise refused(f"it is that of a call of `{'~' * self.undo}{self.name}`")
        if seal(frame.regs[: code.function.n_args]) != self.seal:
            raise refused("the values are not those left by the call: some have changed since")
        machine.state.take_back(Residue().hold(self.log), marked=False)


def refused(note: str) -> InvertibilityError:
    """The error for a result that cannot be undone bit for bit."""
    return InvertibilityError(
        "R019",
        "the result cannot be taken back by a strict log",
        notes=(note,),
        hint="`(~f)(**result)` runs back from the values as they are, as far as rounding allows",
    )


def seal(regs: Sequence[Any]) -> bytes:
    """A digest of parameters' raw values; it distinguishes all bits except those of single NaNs."""
    told = [(v.dtype.str, v.shape) if isinstance(v, np.ndarray) else v for v in regs]
    found = blake2b(repr(told).encode(), digest_size=16)
    for v in regs:
        if isinstance(v, np.ndarray):
            found.update(v.tobytes())
    return found.digest()
