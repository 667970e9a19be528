"""Runs of one program on several engines, there and back, and the laws that they must keep."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attack.cases import Broken, sound
from rvm.engines import LAW, engine, executing, having
from rvm.faults import InternalError, RvmError
from rvm.image import image_of
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import Options

INTERPRETED = tuple(n for n in executing() if n not in having("compiles"))
"""Engines that begin at once, without a compiler."""
LIMITS: Mapping[str, Any] = {"max_steps": 3_000, "max_memory": 1_000_000}
_EFFECTS = frozenset({"print", "assert", "callback"})


@dataclass(frozen=True, slots=True)
class _Trip:
    """A run there and back: how each way ended, what registers held, times, bits erased."""

    there: tuple[Any, ...]
    middle: tuple[Any, ...]
    back: tuple[Any, ...]
    end: tuple[Any, ...]


def _trip(
    program: Program,
    name: str,
    inputs: Mapping[str, Any],
    way: str,
    home: str,
    undo: bool = False,
    **options: Any,
) -> _Trip:
    """A function on an engine, then back to where it began on an engine, maybe another."""
    made = Options(engine=way, output=_nowhere, **{**LIMITS, **options})
    machine = Machine.start(program, name, copied(inputs), made, undo=undo)
    there = _ended(machine.run)
    middle = _picture(machine)
    if home != way:
        machine.use(engine(home))
    return _Trip(there, middle, _ended(machine.run_back), _picture(machine))


def _nowhere(line: str) -> None:
    """Where lines that programs print go."""


def _ended(run: Callable[[], object]) -> tuple[Any, ...]:
    """How a run ended: with nothing, or with an error."""
    try:
        run()
    except InternalError:
        raise
    except RvmError as error:
        sound(error)
        where = error.where
        return (error.code, error.message, where.function, where.pc, error.time, error.direction)
    return ()


def _picture(machine: Machine) -> tuple[Any, ...]:
    """A machine's time, account, and all frames with their registers, bit for bit."""
    state = machine.state
    frames = tuple(
        (f.code.name, f.code.undo, f.pc, tuple(bits(r) for r in f.regs)) for f in state.frames
    )
    return machine.time, machine.erased_bits, machine.residue_bytes, frames


def bits(value: Any) -> Any:
    """A value as what can be compared; all NaNs are one, and zeros have their signs."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fc":
            value = _one_nan(value)
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((k, bits(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(bits(v) for v in value)
    return (type(value).__name__, repr(value)) if value is not None else None


def _one_nan(array: Any) -> Any:
    if array.dtype.kind == "c":
        parts = np.ascontiguousarray(array).view(array.real.dtype)
        return np.where(np.isnan(parts), math.nan, parts)
    return np.where(np.isnan(array), array.dtype.type(math.nan), array)


def copied(value: Any) -> Any:
    """A copy of inputs, deep enough that a run does not touch the original."""
    return copy.deepcopy(value)


def _silent(program: Program, name: str) -> bool:
    """Whether a function has no effects, which may differ by direction."""
    return not any(
        i.op in _EFFECTS
        for f in image_of(program).reachable(name)
        for i in program.function(f).code
    )


def agree(
    program: Program,
    name: str,
    inputs: Mapping[str, Any],
    engines: Sequence[str] = INTERPRETED,
    *,
    crosswise: bool = True,
    undo: bool = False,
    **options: Any,
) -> None:
    """Raise Broken unless engines agree on a function, there, back and crosswise.

    What is exact comes back to its start, bit for bit, whatever happened on the way; so does all
    else in strict mode.
    """
    wanted = _trip(program, name, inputs, LAW, LAW, undo, **options)
    _comes_back(program, name, inputs, wanted, undo, **options)
    others = [(e, e) for e in engines if e != LAW]
    if crosswise:
        others += [(others[-1][0], LAW), (LAW, others[0][0])]
    for way, home in others:
        found = _trip(program, name, inputs, way, home, undo, **options)
        if found != wanted:
            both = way if way == home else f"{way}, back on {home}"
            raise Broken(f"{both} is not {LAW}: {difference(wanted, found)}", _apart(wanted, found))


def _comes_back(
    program: Program, name: str, inputs: Mapping[str, Any], run: _Trip, undo: bool, **options: Any
) -> None:
    """Raise Broken unless a run that loses nothing has come back to its start."""
    exact = image_of(program).is_exact(name) or options.get("strict", False)
    if not exact or not _silent(program, name):
        return
    if run.back:
        raise Broken(f"what ran there does not run back: {run.back[0]}", repr(run.back))
    made = Options(engine=LAW, **{**LIMITS, **options})
    start = _picture(Machine.start(program, name, copied(inputs), made, undo=undo))
    time, _, residue, frames = run.end
    # The inverse code of the start stands at its end.
    begun = [regs for *_, regs in start[3]]
    ended = [regs for *_, regs in frames]
    if time or residue or begun != ended:
        raise Broken("running back does not restore the start", _apart(start, run.end))


def difference(one: _Trip, two: _Trip) -> str:
    """Where two runs differ first, in a word."""
    if one.there != two.there:
        return f"ends with {_code(one.there)}, {_code(two.there)}"
    if one.middle != two.middle:
        return _which(one.middle, two.middle)
    if one.back != two.back:
        return f"back ends with {_code(one.back)}, {_code(two.back)}"
    return f"back: {_which(one.end, two.end)}"


def _code(end: tuple[Any, ...]) -> str:
    return end[0] if end else "nothing"


def _which(one: tuple[Any, ...], two: tuple[Any, ...]) -> str:
    words = ("time", "erased bits", "residue", "registers")
    return next(w for w, a, b in zip(words, one, two, strict=True) if a != b)


def _apart(one: Any, two: Any) -> str:
    """The innermost parts in which two values differ, each with the way to it."""
    out: list[str] = []

    def compare(a: Any, b: Any, way: str) -> None:
        if isinstance(a, _Trip) and isinstance(b, _Trip):
            for name in ("there", "middle", "back", "end"):
                compare(getattr(a, name), getattr(b, name), name)
        elif isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
            for k, (x, y) in enumerate(zip(a, b, strict=True)):
                compare(x, y, f"{way}.{k}")
        elif a != b:
            out.append(f"{way}: {a!r} is wanted, not {b!r}"[:400])

    compare(one, two, "")
    return "\n".join(out[:12])
