"""The loops that the vector engine vectorises, and the reasons why it declines others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rvm.engines.vector.engine import vector_of
from rvm.image import Code, image_of
from rvm.program import AnyProgram, Span, program_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for a loop. `direction` is "forwards", "backwards" or "both ways"."""

    function: str
    direction: str
    span: Span
    variable: str
    """The loop's counter; "" if there is none."""
    vectorised: bool
    reason: str
    """The form of the vectorised loop, or the reason for declining it."""

    def __str__(self) -> str:
        return f"{'vectorised' if self.vectorised else 'declined'}: {self.reason}"


def explain(program: AnyProgram | Code, functions: Iterable[str] | None = None) -> list[Verdict]:
    """The verdicts on all loops of a program (or of some of its functions, or of one code).

    They are in source order; both directions of a loop share a verdict if they are alike.
    """
    if isinstance(program, Code):
        return [v for _, v in _verdicts(program)]
    program = program_of(program)
    image = image_of(program)
    out: list[Verdict] = []
    for name in program if functions is None else functions:
        groups: dict[int, list[Verdict]] = {}
        for undo in (False, True):
            for at, verdict in _verdicts(image.code(name, undo)):
                groups.setdefault(at, []).append(verdict)
        for _, (one, *others) in sorted(groups.items()):
            if [(v.vectorised, v.reason) for v in others] == [(one.vectorised, one.reason)]:
                out.append(replace(one, direction="both ways"))
            else:
                out += [one, *others]
    return out


def _verdicts(code: Code) -> list[tuple[int, Verdict]]:
    source = vector_of(code).source
    direction = "backwards" if code.undo else "forwards"
    out = []
    for cycle in sorted(source.flow.cycles, key=lambda c: c.head):
        pc = cycle.head
        plan = source.plans.get(pc)
        reason = plan.summary if plan is not None else source.declined[pc]
        variable = "" if plan is None else code.function.registers[plan.counted.var].name
        first = min(code.forward_pc(pc), code.forward_pc(cycle.back))
        verdict = Verdict(code.name, direction, code.span(pc), variable, plan is not None, reason)
        out.append((first, verdict))
    return out
