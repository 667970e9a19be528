"""rvm: a reversible virtual machine.

    lib = rvm.load("norm.rasm")         # or rvm.assemble(text)
    out = lib.norm(r=0.0, y=0.0, x=np.array([1.0, 2.0, 3.0]))
    back = (~lib.norm)(**out)

Names are imported when they are first used, so that `import rvm` is quick.
"""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Annotated as Array
    from typing import List as Stack  # noqa: UP035

    from rvm import pebble as pebble
    from rvm.faults import (
        AssemblyError,
        AssemblyWarning,
        AssertionFailed,
        BudgetError,
        BytecodeError,
        DefinitionError,
        InputError,
        InternalError,
        Interrupted,
        InvertibilityError,
        LimitError,
        MachineError,
        RvmError,
        ScheduleError,
        UsageError,
        VerifyError,
    )
    from rvm.isa.define import Mut, Use, exchange, opcode
    from rvm.isa.user import function
    from rvm.library import words
    from rvm.library.derived import check_grad, gradient, invert, tangent
    from rvm.library.frontends import assemble, load
    from rvm.library.handle import FunctionHandle, Library
    from rvm.library.import_hook import install_import_hook
    from rvm.library.lane_map import LaneErrors
    from rvm.library.pure import pure
    from rvm.library.reversible import reversible
    from rvm.library.vocabulary import record, when
    from rvm.library.words import *  # noqa: F403
    from rvm.numbers import Fixed, LogNumber
    from rvm.program import Program
    from rvm.run.machine import Machine
    from rvm.state import Options

__version__ = "0.1.0"
BEGAN = time_ns()
"""The time at which this process began to import rvm: it does not run later changes of its
files."""

_HOMES = {
    "library.derived": ("check_grad", "gradient", "invert", "tangent"),
    "library.handle": ("FunctionHandle", "Library"),
    "isa.define": ("Mut", "Use", "exchange", "opcode"),
    "library.reversible": ("reversible",),
    "library.pure": ("pure",),
    "library.vocabulary": ("Array", "Stack", "record", "when"),
    "faults": (
        "AssemblyError",
        "AssemblyWarning",
        "AssertionFailed",
        "BudgetError",
        "BytecodeError",
        "DefinitionError",
        "InputError",
        "InternalError",
        "Interrupted",
        "InvertibilityError",
        "LimitError",
        "MachineError",
        "RvmError",
        "ScheduleError",
        "UsageError",
        "VerifyError",
    ),
    "library.frontends": ("assemble", "load"),
    "library.import_hook": ("install_import_hook",),
    "run.machine": ("Machine",),
    "library.lane_map": ("LaneErrors",),
    "numbers": ("Fixed", "LogNumber"),
    "program": ("Program",),
    "state": ("Options",),
    "isa.user": ("function",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Array",
    "AssemblyError",
    "AssemblyWarning",
    "AssertionFailed",
    "BudgetError",
    "BytecodeError",
    "DefinitionError",
    "Fixed",
    "FunctionHandle",
    "InputError",
    "InternalError",
    "Interrupted",
    "InvertibilityError",
    "LaneErrors",
    "Library",
    "LimitError",
    "LogNumber",
    "Machine",
    "MachineError",
    "Mut",
    "Options",
    "Program",
    "RvmError",
    "ScheduleError",
    "Stack",
    "UsageError",
    "Use",
    "VerifyError",
    "assemble",
    "check_grad",
    "exchange",
    "function",
    "gradient",
    "install_import_hook",
    "invert",
    "load",
    "opcode",
    "pure",
    "record",
    "reversible",
    "tangent",
    "when",
]

if TYPE_CHECKING:
    __all__ += words.__all__
else:  # checkers know the names, and refuse others

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        from importlib import import_module

        if name == "pebble":
            return import_module("rvm.pebble")
        if home is not None:
            value = getattr(import_module(f"rvm.{home}"), name)
        elif name.startswith("_"):
            value = None
        else:
            # A type, an opcode or a function of the table, as a word of reversible functions.
            value = import_module("rvm.library.vocabulary").word(name)
        if value is None:
            raise AttributeError(f"module 'rvm' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    from rvm.library.vocabulary import words

    return sorted({*__all__, *words()})
