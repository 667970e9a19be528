"""What an attack is: a kind of input, how one is made and tried, and the outcome."""

from __future__ import annotations

import json
import random
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from attack.reduction import BYTES, LINES, Split
from rvm.faults import InternalError, RvmError

PACKAGES = ("rvm", "rvm_asm", "rvm_janus", "rvm_tools", "rvm_dap")
"""What is attacked; an exception from elsewhere is one of the attack itself."""
ACCEPTED, REFUSED, FOUND = "accepted", "refused", "found"
KINDS = (
    "rbc",
    "texts",
    "janus",
    "plans",
    "sessions",
    "models",
    "messages",
    "values",
    "data",
    "cuts",
    "programs",
    "native",
    "lanes",
    "gradients",
    "signals",
)
"""All kinds, each in the module of its name in `attack.kinds`."""
_CPU_SECONDS = 20.0
"""What one input may take of a processor's time before it counts as one that hangs."""


class Broken(AssertionError):
    """Something that must hold does not: the rule in a few words, and what was seen."""

    def __init__(self, law: str, seen: str = "") -> None:
        super().__init__(f"{law}\n{seen}" if seen else law)
        self.law = law
        self.seen = seen


def short_loops() -> None:
    """Short loops are taken by the vector engine too, so that small programs use it."""
    from rvm.engines.vector import plan

    plan.LEAST, plan.PAYS = 2, 0


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of input.

    `make` draws one.  `attack` tries it, in a folder where it may write: it returns True if rvm
    took the input, False or any RvmError if not, and raises Broken, or anything else, on a finding.
    """

    name: str
    what: str
    suffix: str
    make: Callable[[random.Random], bytes]
    attack: Callable[[bytes, Path], bool]
    splits: Sequence[Split] = (LINES, BYTES)
    """What a finding is made smaller by, one after the other."""
    share: float = 1.0
    """Its part of the time, relative to the others."""
    seconds: float = _CPU_SECONDS
    prepare: Callable[[], None] = short_loops
    """What a process does before it tries its first inputs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an input; findings of one signature seem to have the same cause."""

    outcome: str
    signature: str = ""
    detail: str = field(default="", compare=False)


def kind(name: str) -> InputKind:
    """The kind called `name`; one of one's own is called by its module, `package.module`."""
    module = name if "." in name else f"attack.kinds.{name}"
    found: InputKind = import_module(module).KIND
    return found


def drawn(found: InputKind, seed: int, index: int) -> bytes:
    """Input number `index` of a kind: the same for the same seed."""
    return found.make(random.Random(f"{seed}:{found.name}:{index}"))


def judged(found: InputKind, data: bytes, folder: Path) -> Outcome:
    """Try an input, and say what came of it."""
    try:
        return Outcome(ACCEPTED if found.attack(data, folder) else REFUSED)
    except Broken as error:
        return Outcome(FOUND, error.law, str(error))
    except InternalError as error:
        return Outcome(FOUND, f"{error.code} {place_of(error)}", traceback.format_exc())
    except RvmError as error:
        try:
            sound(error)
        except Exception as wrong:
            law = str(wrong) if isinstance(wrong, Broken) else f"an error can't be shown: {wrong!r}"
            return Outcome(FOUND, f"{law} {place_of(wrong)}", traceback.format_exc())
        return Outcome(REFUSED)
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code == 0:
            return Outcome(ACCEPTED)
        signature = f"{type(error).__name__} {place_of(error)}"
        return Outcome(FOUND, signature, traceback.format_exc())


def place_of(error: BaseException) -> str:
    """Where an exception was raised: the innermost function that is rvm's own."""
    names = [
        f"{Path(f.filename).stem}.{f.name}"
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename.startswith(_ours())
    ]
    return f"in {names[-1]}" if names else "in the attack itself"


def sound(error: RvmError) -> None:
    """Raise Broken unless an error has codes that are explained, and can be shown in all ways."""
    if not error.diagnostics:
        raise Broken("an error shows nothing")
    for d in error.diagnostics:
        if d.code not in explained():
            raise Broken(f"the code {d.code} is not explained")
        if not (d.human() and d.short() and d.message):
            raise Broken(f"an error {d.code} has no message")
        json.dumps(d.as_json())
    str(error)


@cache
def explained() -> frozenset[str]:
    """All codes that `rvm explain` knows."""
    from rvm_tools.explanations import explanations

    return frozenset(explanations())


@cache
def _ours() -> tuple[str, ...]:
    """The folders of the packages that are attacked, which need not be imported for it."""
    specs = [find_spec(package) for package in PACKAGES]
    return tuple(str(Path(spec.origin).parent) for spec in specs if spec and spec.origin)
