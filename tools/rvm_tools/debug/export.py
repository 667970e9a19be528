"""Writing a session down: as a script that sets it up again, and as a test that replays it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

import rvm
from rvm.codec import encode
from rvm.faults import RvmError, UsageError
from rvm.transform.gradient import gradient
from rvm_tools.debug.scripts import sealed
from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Watchpoint
from rvm_tools.debug.views import named_registers
from rvm_tools.programs import write_arrays, written

_SHORT = 1000
"""The largest number of elements of arrays that are written out; others go to a file."""


def script_of(session: Session) -> str:
    """Commands that restore the edits, stops, marks, displays and place of a session.

    UsageError U037 if a state was computed by the inverse code, which no command expresses.
    """
    out: list[str] = []
    here = session.time
    for edit in session.edits:
        if edit.commands is None:
            raise UsageError(
                "U037",
                f"at t={edit.time} the session has a state that the inverse code computed",
                hint="go back before it and on from there, or `restart`",
            )
        out += [f"goto {edit.time}", *edit.commands]
    for b in session.breaks:
        condition = f" if {b.condition}" if b.condition else ""
        if b.message is not None:
            out.append(f'tp {b.target.text} "{b.message}"{condition}')
        else:
            out.append(f"{'tb' if b.temporary else 'b'} {b.target.text}{condition}")
    out += [f"disp {text}" for text in session.displays]
    for name, time in sorted(session.marks.items(), key=lambda m: (m[1] == here, m[1])):
        out += [f"goto {time}", f"mark {name}"]
    if here not in session.marks.values():
        out.append(f"goto {here}")
    at, last = here, len(session.frames) - 1
    selected = last
    for w in session.watches:
        there = here if w.awake else w.within
        out += [f"goto {there}"] * (there != at)
        out += [f"frame {w.depth}"] * (there != at or w.depth != selected) + [_watch_line(w)]
        at, selected = there, w.depth
    if at != here:
        out.append(f"goto {here}")
    elif selected != last:
        out.append(f"frame {last}")
    return sealed(f"{session.function}, written at t={here}", out)


def _watch_line(w: Watchpoint) -> str:
    condition = f" if {w.condition}" if w.condition else ""
    return f"{'rwatch' if w.reads else 'watch'} {w.text}{condition}"


def test_of(session: Session, path: Path) -> str:
    """A pytest that runs the program to this time and expects the innermost frame's values.

    Long arrays go to an `.npz` file beside it, and a program that its source does not give again
    as bytecode to an `.rbc` file.
    """
    stored: dict[str, Any] = {}
    # The inputs as results give them: whatever they were given as, of one type for each register.
    given = dict(session._machine().result)
    inputs = {name: _literal(value, f"input_{name}", stored) for name, value in given.items()}
    error = session.stop.error if session.stop.reason == "error" else None
    top = session.frames[-1]
    checks = [
        f"    assert shown(regs[{k}]) == {_shown(top.regs[k], f'value_{k}', stored)}  # {name}"
        for k, (name, _) in named_registers(top.code.function).items()
        if top.regs[k] is not None
    ]
    made, lines = _program(session, path)
    used = session.options
    options = f"tolerance={used.tolerance!r}, strict={used.strict}, bits={used.bits!r}"
    undo = ", undo=True" if session.undo else ""
    lines = [
        f'"""`{session.function}` at time {session.time}, as a debugging session found it."""',
        "",
        "from pathlib import Path",
        "",
        "import numpy as np",
        *(["import pytest"] if error is not None else []),
        "",
        "import rvm",
        "from rvm.run.machine import Machine",
        "from rvm.state import Options",
        *lines,
        *(["STORED = np.load(Path(__file__).with_suffix('.npz'))"] if stored else []),
        "",
        "",
        "def shown(value: object) -> str:",
        "    return repr(value.tolist() if isinstance(value, np.ndarray) else value)",
        "",
        "",
        f"def test_{re.sub(r'[^0-9a-zA-Z_]', '_', session.function)}_at_{session.time}() -> None:",
        "    inputs = {",
        *[f"        {name!r}: {text}," for name, text in inputs.items()],
        "    }",
        f"    options = Options({options})",
        f"    program = {made}",
        f"    machine = Machine.start(program, {session.function!r}, inputs, options{undo})",
        f"    assert machine.seek({session.time}) == {session.time}",
        f"    assert len(machine.state.frames) == {len(session.frames)}",
        f"    assert machine.state.top.code.name == {top.code.name!r}",
        f"    assert machine.state.top.pc == {top.pc}",
        "    regs = machine.state.top.regs",
        *checks,
    ]
    if error is not None:
        lines += [
            "    with pytest.raises(rvm.RvmError) as failed:",
            f"        machine.step({session.stop.direction})",
            f"    assert failed.value.code == {error.code!r}",
        ]
    if stored:
        write_arrays(str(path.with_suffix(".npz")), stored)
    return "\n".join(lines) + "\n"


def _program(session: Session, path: Path) -> tuple[str, list[str]]:
    """An expression for a session's program, and the lines that it needs above.

    It reads the source's file, if that still gives this program.
    """
    program, name = session.program, session.function
    file = Path(program.sources[0].name) if program.sources else Path()
    lines = ["", f"PROGRAM = Path({str(file.resolve())!r})"]
    with suppress(RvmError):
        library = rvm.load(file)
        if library.program == program:
            return "rvm.load(PROGRAM)", lines
        for of in filter(name.startswith, library.program):
            if gradient(library.program, of) == program:
                first = "from rvm.transform.gradient import gradient"
                return f"gradient(rvm.load(PROGRAM).program, {of!r})", [first, *lines]
        if library[name].program == program:
            return f"rvm.load(PROGRAM)[{name!r}].program", lines
    with written(str(path.with_suffix(".rbc"))) as out:
        out.write(encode(program))
    return "rvm.load(PROGRAM)", ["", "PROGRAM = Path(__file__).with_suffix('.rbc')"]


def _shown(value: Any, key: str, stored: dict[str, Any]) -> str:
    """What a test expects of a value: its text, in quotes; of a long array as one of the file."""
    if isinstance(value, np.ndarray):
        if value.size > _SHORT:
            stored[key] = value
            return f"shown(STORED[{key!r}])"
        value = value.tolist()
    return repr(repr(value))


def _literal(value: Any, key: str, stored: dict[str, Any]) -> str:
    """A value as Python text; a long array as a name in the file next to it."""
    match value:
        case np.ndarray():
            if value.size > _SHORT:
                stored[key] = value
                return f"STORED[{key!r}]"
            numbers = _literal(value.ravel().tolist(), key, stored)
            return f"np.array({numbers}, {value.dtype.name!r}).reshape({value.shape})"
        case Mapping():
            fields = (f"{k!r}: {_literal(v, f'{key}_{k}', stored)}" for k, v in value.items())
            return f"{{{', '.join(fields)}}}"
        case list():
            return f"[{', '.join(_literal(v, key, stored) for v in value)}]"
        case complex():
            return f"complex({_literal(value.real, '', {})}, {_literal(value.imag, '', {})})"
        case rvm.LogNumber():
            return f"rvm.LogNumber({_literal(value.log, '', {})})"
        case rvm.Fixed():
            return f"rvm.{value!r}"
        case float() if not isfinite(value):
            return f"float('{value}')"
    return repr(value)
