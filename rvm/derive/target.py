"""The target of derivatives: a function of a program in one direction, and its runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rvm.program import Function, Program
from rvm.state import Options
from rvm.transform.programs import gradient_program, inverse


@dataclass(frozen=True, slots=True)
class Target:
    """A function of a program, or with `undo` its inverse, and the options of its runs."""

    program: Program
    name: str
    undo: bool = False
    options: Options = field(default_factory=Options)

    @property
    def function(self) -> Function:
        """The function's code and registers."""
        return self.program.function(self.name)

    def upright(self) -> Target:
        """The same function as one that runs forwards: an inverse, of the inverse program."""
        if not self.undo:
            return self
        return replace(self, program=inverse(self.program), undo=False)

    @property
    def gradient_program(self) -> Program:
        """The program that `rvm.transform.gradient` makes of the function."""
        upright = self.upright()
        return gradient_program(upright.program, upright.name)
