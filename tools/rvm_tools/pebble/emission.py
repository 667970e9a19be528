"""`rvm pebble FILE --emit OUT`: plans written as programs."""

from __future__ import annotations

from pathlib import Path

from rvm.codec import encode
from rvm.faults import UsageError
from rvm.library.handle import Library
from rvm.pebble import DagPlan, Plan
from rvm_tools.pebble.request import PebbleRequest
from rvm_tools.programs import load_program, pick_function, read_text, written


def emitted(request: PebbleRequest, plan: Plan | DagPlan) -> str:
    """Write the program that executes a plan; return the message about it."""
    assert request.emit is not None
    program = _program(request, plan)
    path = Path(request.emit)
    if path.suffix not in (".rasm", ".rbc"):
        raise UsageError("U012", f"a program goes to a .rasm or .rbc file, and not to {path}")
    if path.suffix == ".rbc":
        data = encode(program)
    else:
        from rvm_asm import disassemble

        data = disassemble(program, positions=False).encode()
    with written(request.emit) as out:
        out.write(data)
    entry = program.program.function(program.program.entry)
    instructions = len(entry.code)
    return f"func {entry.name}, {instructions:,} instructions"


def _program(request: PebbleRequest, plan: Plan | DagPlan) -> Library:
    if isinstance(plan, DagPlan):
        from rvm.pebble.bridge.circuits import emit_circuit
        from rvm.pebble.bridge.graphs import emit_dag
        from rvm.pebble.graphs.bench import parse_circuit

        assert request.file is not None
        if Path(request.file).suffix == ".bench":
            return emit_circuit(plan, parse_circuit(read_text(request.file), request.file))
        if Path(request.file).suffix in (".rasm", ".rbc", "") or request.file == "-":
            program, function = pick_function(load_program(request.file), request.function)
            return emit_dag(plan, program, function.name)
    elif request.file is not None and request.step is not None:
        from rvm.pebble.bridge.emission import emit

        program, step = pick_function(load_program(request.file), request.step)
        return emit(plan, program, step.name, number=request.number, in_place=request.step_in_place)
    raise UsageError(
        "P001",
        "a plan is emitted for the program or the circuit that it is of",
        hint="rvm pebble FILE.rasm --step NAME --steps N --pebbles S --emit OUT.rbc",
    )
