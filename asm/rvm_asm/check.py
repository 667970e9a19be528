"""The verifier's findings, shown at the operands of the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rvm.expr import Apply, Const, Expr, Place, children, places
from rvm.numbers.support import even_factor
from rvm.program import Function, Instr, Program
from rvm.transform.derived import GRADIENT
from rvm.types import elem_of
from rvm.verify import Nodes, alias_findings, findings, inout_slots
from rvm.verify.conflicts import CALLS
from rvm.verify.finding import Finding
from rvm.verify.text import shortened
from rvm_asm.blocks import Blocks
from rvm_asm.counters import changes
from rvm_asm.derivatives import Derivative
from rvm_asm.emitter import CodeEmitter
from rvm_asm.lengths import misfits
from rvm_asm.messages import Reporter
from rvm_asm.nodes import Node, Operator
from rvm_asm.recursion import endless

MAX_HINT = 160
"""The largest length of an expression repeated in a hint."""
UNITS = {"add": "-1", "sub": "1"}
"""The factor y for which `x += x*y` (or `-=`) leaves nothing of x."""


def report_findings(
    program: Program, emitters: Mapping[str, CodeEmitter], report: Reporter
) -> None:
    """Add a message for every finding in `program`; `emitters` made its functions."""

    def is_mapped(finding: Finding) -> bool:
        emitter = emitters.get(finding.function)
        return emitter is not None and emitter.func.name.text in emitter.program.mapped

    for finding in sorted(findings(program), key=is_mapped):
        if is_mapped(finding) and report.failed:
            continue  # it has been told of the function that is mapped
        emitter = emitters.get(finding.function)
        if emitter is None:
            start, end = _generated(program, finding, emitters, report)
            report.error(
                finding.code, finding.message, start, end, notes=finding.notes, hint=finding.hint
            )
        else:
            with report.within(emitter.func, emitter.instance):
                _report(finding, emitter, report)


def report_counting(
    program: Program, emitters: Mapping[str, CodeEmitter], report: Reporter
) -> None:
    """Add a message for everything in a loop's body that changes the loop's counter or bounds.

    Functions in which there is something are broken from then on.
    """
    if not any(e.counted for e in emitters.values()):
        return
    inout = inout_slots(program)
    for emitter in emitters.values():
        for c in changes(emitter.code, emitter.counted, inout):
            emitter.broken = True
            instr = emitter.code[c.pc]
            start, end = report.sources.stretch(emitter.spans[c.pc])
            at = _origins(emitter, c.pc).get(id(instr.args[c.operand]))
            if at is not None and start <= at.start < end:
                start, end = at.start, at.end
            how = "freed" if c.is_freed else "changed"
            by = f" by `{instr.symbol}`" if instr.op in CALLS else ""
            with report.within(emitter.func, emitter.instance):
                report.error(
                    "A058",
                    f"the loop's variable `{c.name}` is {how} in its body{by}",
                    start,
                    end,
                    hint="the loop itself counts it, there and back; use `while` to count "
                    "otherwise",
                )


def report_factors(emitters: Mapping[str, CodeEmitter], report: Reporter) -> None:
    """Add a message, that of a run, for every integer multiplied in place by an even constant."""
    for emitter in emitters.values():
        for pc, instr in enumerate(emitter.code):
            factor = even_product(instr)
            if factor is None:
                continue
            start, end = report.sources.stretch(emitter.spans[pc])
            at = _origins(emitter, pc).get(id(factor))
            if at is not None and start <= at.start < end:
                start, end = at.start, at.end
            fault = even_factor(factor.value)
            with report.within(emitter.func, emitter.instance):
                report.error(fault.code, fault.message, start, end, hint=fault.hint)


def even_product(instr: Instr) -> Const | None:
    """The even constant that an instruction multiplies whole numbers by in place, or divides."""
    if instr.op not in ("mul", "unmul") or not isinstance(instr.args[1], Const):
        return None
    factor, of = instr.args[1], instr.args[0].type
    if of is None or not elem_of(of).is_integer or factor.value % 2:
        return None
    return factor


def is_futile(program: Program) -> bool:
    """Whether the text of a program is refused for what any run of it would stop at."""
    return (
        next(misfits(program), None) is not None
        or next(endless(program), None) is not None
        or any(even_product(i) is not None for f in program.functions for i in f.code)
    )


def report_lengths(program: Program, emitters: Mapping[str, CodeEmitter], report: Reporter) -> None:
    """Add a message for every instruction with lengths that are known here, and do not fit."""
    for name, pc, fault in misfits(program):
        emitter = emitters.get(name)
        if emitter is not None:
            labels = () if fault.node is None else ((fault.node, ""),)
            found = Finding(fault.code, fault.message, name, pc, labels, (), fault.hint)
            with report.within(emitter.func, emitter.instance):
                _report(found, emitter, report)


def report_endless(program: Program, emitters: Mapping[str, CodeEmitter], report: Reporter) -> None:
    """Add a message for every function that calls itself on every way through it."""
    for found in endless(program):
        emitter = emitters.get(found.function)
        if emitter is None:
            continue
        itself = found.callee == found.function
        by = "itself" if itself else f"`{found.callee}`, which comes to call it again,"
        start, end = report.sources.stretch(emitter.spans[found.pc])
        with report.within(emitter.func, emitter.instance):
            report.error(
                "A079",
                f"`{found.function}` never returns: it calls {by} on every way through it",
                start,
                end,
                hint="put the call under an `if` whose condition does not hold where the recursion "
                "ends, and change what it asks for before the call",
            )


def report_decisions(program: Program, called: Mapping[str, Derivative], report: Reporter) -> None:
    """Add a warning for the first call of each gradient whose run back may take other branches."""
    if not any(d.mark == GRADIENT for d in called.values()):
        return
    from rvm.derive.decisions import decides

    for d in called.values():
        if d.mark == GRADIENT and d.of in program and decides(program, d.of):
            report.about(
                d.at,
                "A081",
                f"`{d.of}` decides by numbers that its own rounding changes: this gradient may "
                f"take another branch than `{d.of}` did, and nothing here checks that",
                hint=f"decide by numbers that `{d.of}` does not change, or by fixed-point ones; "
                "`grad` in Python and on the command line checks it",
                severity="warning",
            )


def report_shared(program: Program, emitters: Mapping[str, Blocks], report: Reporter) -> None:
    """Add a message for every argument that all elements of a `map` share, and one changes."""
    if not any(e.shared for e in emitters.values()):
        return
    inout = inout_slots(program)
    for emitter in emitters.values():
        for shared in emitter.shared:
            if shared.is_changed(inout):
                emitter.broken = True
                with report.within(emitter.func, emitter.instance):
                    report.about(
                        shared.at,
                        "A076",
                        f"`{shared.callee}` changes this, which is the same for every element",
                        hint="give it an array of as many, or use `for`",
                    )


def _generated(
    program: Program, finding: Finding, emitters: Mapping[str, CodeEmitter], report: Reporter
) -> tuple[int, int]:
    """The position of the statement that made a function; else the first function's head."""
    if finding.function in program:
        span = program.function(finding.function).span(max(finding.pc, 0))
        if span.line:
            return report.sources.stretch(span)
    first = next(iter(emitters.values()))
    return first.func.start, first.func.end


def report_aliases(function: Function, emitter: CodeEmitter, report: Reporter) -> None:
    """Add messages for instructions of an unfinished function that are wrong by themselves."""
    for finding in alias_findings(function, Nodes(function.registers)):
        _report(finding, emitter, report)


def _report(finding: Finding, emitter: CodeEmitter, report: Reporter) -> None:
    labels: list[tuple[int, int, str]] = []
    if finding.pc < 0:
        start, end = emitter.func.start, emitter.func.end
    else:
        origins = _origins(emitter, finding.pc)
        start, end = report.sources.stretch(emitter.spans[finding.pc])
        for node, text in finding.labels:
            at = origins.get(id(node))
            if at is not None:
                labels.append((at.start, at.end, text))
    if not labels and finding.code == "A030" and finding.pc >= 0:
        at = _named(finding, emitter)
        if at is not None:
            labels.append((at.start, at.end, ""))
    label = ""
    if labels:
        start, end, label = labels.pop(0)
    report.error(
        finding.code,
        finding.message,
        start,
        end,
        label=label,
        also=labels,
        notes=(*_notes(finding, emitter), *_reason(finding, emitter, report)),
        hint=_hint(finding, emitter, report),
    )


def _named(finding: Finding, emitter: CodeEmitter) -> Node | None:
    """The first place of the instruction whose register the message names."""
    name = finding.message.split("`")[1]
    origins = _origins(emitter, finding.pc)
    for arg in emitter.code[finding.pc].args:
        for place in places(arg):
            if emitter.registers.list[place.reg].name == name and id(place) in origins:
                return origins[id(place)]
    return None


def _notes(finding: Finding, emitter: CodeEmitter) -> Sequence[str]:
    """The finding's notes, with lines where it counts instructions."""

    def line(found: re.Match[str]) -> str:
        pc = int(found[1])
        known = pc < len(emitter.spans)
        return f"line {emitter.spans[pc].line}" if known else "the end of the function"

    return [re.sub(r"\binstruction (\d+)", line, note) for note in finding.notes]


def _hint(finding: Finding, emitter: CodeEmitter, report: Reporter) -> str:
    """The finding's help, with the value as the source writes it, or the routine to undo."""
    if finding.code == "A032":
        for name, block in emitter.scope.routines.items():
            if block.start <= finding.pc < block.stop and not block.is_undone:
                return f"`undo {name}` after the last use: the routine `{name}` is never undone"
    found = re.match("(.* / add \\w+, )", finding.hint)
    if finding.code != "A013" or finding.pc < 0 or found is None:
        return finding.hint
    value = emitter.code[finding.pc].args[-1]
    at = _origins(emitter, finding.pc).get(id(value))
    text = None if at is None else report.sources.expression(at.start, at.end)
    return finding.hint if text is None else f"{found[1]}{shortened(text, MAX_HINT)}"


def _origins(emitter: CodeEmitter, pc: int) -> dict[int, Node]:
    """The syntax of every node of an instruction, by identity of the node."""
    made = emitter.syntax()
    out: dict[int, Node] = {}
    templates = emitter.templates[pc]
    for k, arg in enumerate(emitter.code[pc].args):
        _match(arg, templates[k] if k < len(templates) else arg, made, out)
    return out


def _match(node: Expr, template: Expr, made: Mapping[int, Node], out: dict[int, Node]) -> None:
    """Walk a typed operand along with its template, which has its shape unless negated."""
    stack = [(node, template)]
    while stack:
        n, t = stack.pop()
        at = made.get(id(n)) or made.get(id(t))
        if at is not None:
            out[id(n)] = at
        inner, beside = list(children(n)), list(children(t))
        if (
            isinstance(n, Apply)
            and not (isinstance(t, Apply) and t.fn == n.fn and len(beside) == len(inner))
        ) or len(inner) != len(beside):
            beside = inner
        stack.extend(zip(inner, beside, strict=True))


def _reason(finding: Finding, emitter: CodeEmitter, report: Reporter) -> Sequence[str]:
    """For `add x, x * y`: the value of y for which nothing of x is left."""
    if finding.code != "A013" or finding.pc < 0:
        return ()
    instr = emitter.code[finding.pc]
    if instr.op not in UNITS or len(instr.args) != 2:
        return ()
    dst, value = instr.args
    if not (isinstance(dst, Place) and isinstance(value, Apply) and value.fn == "*"):
        return ()
    other = [a for a in value.args if a != dst]
    origins = _origins(emitter, finding.pc)
    at, factor = origins.get(id(dst)), origins.get(id(other[0])) if len(other) == 1 else None
    if at is None or factor is None:
        return ()
    x = report.sources.expression(at.start, at.end)
    y = report.sources.expression(factor.start, factor.end)
    if x is None or y is None or len(x) + len(y) > MAX_HINT:
        return ()
    inner = f"({y})" if isinstance(factor, Operator) else y
    sign = "+" if instr.op == "add" else "-"
    a, b = (x, inner) if value.args[0] == dst else (inner, x)
    return (f"`{x} {sign}= {a}*{b}` cannot be undone when {y} = {UNITS[instr.op]}",)
