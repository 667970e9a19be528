"""The verifier: everything that can be known to be unsound is refused before a run.

`findings` collects, `verify` refuses.  A program without findings has operands of sound types,
jumps that are matched pairs within one function, every ancilla live where it is used and freed on
every path to the end, calls whose arguments fit, and no instruction whose destination is certainly
also read.  Properties that only a run can know (`x[i]` against `x[j]`, lengths, conditions) are
checked there; `rvm.verify.conflicts` lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rvm.faults import Diagnostic, VerifyError, Where
from rvm.program import AnyProgram, Function, Program, program_of
from rvm.verify.calls import inout_slots
from rvm.verify.conflicts import written_operands
from rvm.verify.finding import Finding
from rvm.verify.flow import liveness, successors
from rvm.verify.function import alias_findings, function_findings
from rvm.verify.nodes import Nodes
from rvm.verify.tables import program_findings, table_findings

__all__ = [
    "Finding",
    "Nodes",
    "alias_findings",
    "diagnostic",
    "findings",
    "inout_slots",
    "liveness",
    "successors",
    "verify",
    "written_operands",
]

MAX_FINDINGS = 1000
"""The largest number of findings for a program; further ones rarely add information."""


def findings(program: AnyProgram) -> list[Finding]:
    """Every reason to refuse `program`, in the order of its code (at most MAX_FINDINGS)."""
    program = program_of(program)
    nodes = {id(f): Nodes(f.registers) for f in program.functions}
    broken = list(islice(program_findings(program), MAX_FINDINGS))
    for f in program.functions:
        broken.extend(islice(table_findings(f, nodes[id(f)]), MAX_FINDINGS - len(broken)))
    if broken:
        return broken
    inout = inout_slots(program)
    functions = {f.name: (f, f.n_args) for f in program.functions}
    out: list[Finding] = []
    for f in program.functions:
        room = MAX_FINDINGS - len(out)
        out.extend(function_findings(f, nodes[id(f)], functions, inout, room))
        if len(out) >= MAX_FINDINGS:
            break
    return out[:MAX_FINDINGS]


def verify(program: AnyProgram) -> None:
    """VerifyError, with a diagnostic for every finding, unless the program is sound.

    A program that has passed is not looked at again.
    """
    program = program_of(program)
    if program.cache.get(verify):
        return
    found = findings(program)
    if found:
        raise VerifyError([diagnostic(f, program) for f in found])
    program.cache[verify] = True


def diagnostic(finding: Finding, program: Program) -> Diagnostic:
    """A finding as a message that points to the source line, if known."""
    function = _function(program.functions, finding.function)
    where = Where(function=finding.function, pc=finding.pc)
    if function is not None:
        where = where_of(program, function, finding.pc)
    return Diagnostic(finding.code, finding.message, where, notes=finding.notes, hint=finding.hint)


def where_of(program: Program, function: Function, pc: int) -> Where:
    """The place of an instruction, in its source text if the program holds that."""
    span = function.span(pc)
    if not span.line:
        return Where(function=function.name, pc=pc)
    known = 0 <= span.source < len(program.sources)
    source = program.sources[span.source] if known else None
    return Where(
        source.name if source else "<source>",
        span.line,
        span.column,
        span.end,
        source.line(span.line) if source else None,
        function.name,
        pc,
    )


def _function(functions: Sequence[Function], name: str) -> Function | None:
    return next((f for f in functions if f.name == name), None)
