"""Writing a session down: as a script that sets it up again, and as a test that replays it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rvm.faults import UsageError
from rvm_tools.debug.scripts import sealed
from rvm_tools.debug.session import Session
from rvm_tools.debug.stops import Watchpoint
from rvm_tools.debug.views import named_registers
from rvm_tools.programs import write_arrays

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
    depth = len(session.frames) - 1
    for w in session.watches:
        if not w.awake:
            continue
        up = depth - w.depth
        out += [f"up {up}"] if up else []
        out.append(_watch_line(w))
        out += [f"down {up}"] if up else []
    return sealed(f"{session.function}, written at t={here}", out)


def _watch_line(w: Watchpoint) -> str:
    condition = f" if {w.condition}" if w.condition else ""
    return f"{'rwatch' if w.reads else 'watch'} {w.text}{condition}"


def test_of(session: Session, path: Path) -> str:
    """A pytest that runs the program to this time and expects the innermost frame's values.

    Long arrays go to an `.npz` file beside it.
    """
    stored: dict[str, Any] = {}
    source = session.program.sources[0].name if session.program.sources else ""
    file = Path(source)
    if not file.is_file():
        file = Path("program.rasm")
    inputs = {
        name: _literal(value, f"input_{name}", stored) for name, value in session.inputs.items()
    }
    error = session.stop.error if session.stop.reason == "error" else None
    top = session.frames[-1]
    checks = []
    for k, (name, _) in named_registers(top.code.function).items():
        value = top.regs[k]
        if value is None:
            continue
        text = _literal(value, f"value_{k}", stored)
        equal = (
            f"np.array_equal(regs[{k}], {text}, equal_nan=True)"
            if isinstance(value, np.ndarray) and value.dtype.kind in "fc"
            else f"np.array_equal(regs[{k}], {text})"
        )
        plain = not isinstance(value, (np.ndarray, float, complex))
        checks.append(
            f"    assert regs[{k}] == {text}  # {name}"
            if plain
            else f"    assert {equal}  # {name}"
        )
    options = f"tolerance={session.options.tolerance!r}, strict={session.options.strict}"
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
        "",
        f"PROGRAM = Path({str(file.resolve())!r})",
        *(["STORED = np.load(Path(__file__).with_suffix('.npz'))"] if stored else []),
        "",
        "",
        f"def test_{re.sub(r'[^0-9a-zA-Z_]', '_', session.function)}_at_{session.time}() -> None:",
        "    inputs = {",
        *[f"        {name!r}: {text}," for name, text in inputs.items()],
        "    }",
        f"    options = Options({options})",
        "    program = rvm.load(PROGRAM)",
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


def _literal(value: Any, key: str, stored: dict[str, Any]) -> str:
    """A value as Python text; a long array as a name in the file next to it."""
    if isinstance(value, np.ndarray):
        if value.size > _SHORT:
            stored[key] = value
            return f"STORED[{key!r}]"
        shape = f".reshape({value.shape})" if value.ndim != 1 else ""
        return f"np.array({_numbers(value.ravel().tolist())}, np.{value.dtype.name}){shape}"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{k!r}: {_literal(v, f'{key}_{k}', stored)}" for k, v in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(_literal(v, key, stored) for v in value)}]"
    return _numbers(value)


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    return repr(value.item() if isinstance(value, np.generic) else value)
