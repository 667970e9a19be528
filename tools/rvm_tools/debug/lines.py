"""Where lines of a source begin in code, and the names of places to stop at.

Positions here are those of code that runs forwards in time: a function's own code where it was
called, its inverse where it is being undone.  A position begins a line if the instruction before it
belongs to another; a sequence of only come-froms and unconditional jumps begins none, because a
jump may skip it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rvm.codes.words import instead
from rvm.expr import Const
from rvm.faults import UsageError
from rvm.host.once import once
from rvm.image import Code, Image
from rvm.program import Function, Program

_LINE = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)")
_INSTRUCTION = re.compile(r"(?P<function>[^@]+)?@(?P<pc>\d+)")


TYPES = "bool|i32|i64|u8|u32|u64|fixed|f32|f64|c128|log64|stack"
_LABEL = re.compile(rf"\s*([A-Za-z_]\w*)\s*:(?!\s*(?:{TYPES})\b)")


def line_of(code: Code, pc: int) -> tuple[int, int]:
    """The source and line of an instruction; a separate line for one without a source."""
    span = code.span(pc)
    known = span.line and 0 <= span.source < len(code.image.program.sources)
    return (span.source, span.line) if known else (-1, -1 - pc)


def line_starts(code: Code) -> frozenset[int]:
    """The positions at which a line begins."""
    return once(code.compiled, line_starts, frozenset, lambda: frozenset(_starts(code)))


def _starts(code: Code) -> list[int]:
    out: list[int] = []
    previous, waiting = None, True
    for pc in range(len(code)):
        line = line_of(code, pc)
        if line != previous:
            previous, waiting = line, True
        if waiting and not _is_passed_by(code, pc):
            out.append(pc)
            waiting = False
    return out


def _is_passed_by(code: Code, pc: int) -> bool:
    instr = code.instrs[pc]
    if instr.op != "br":
        return instr.op == "cf"
    cond = instr.args[0]
    return isinstance(cond, Const) and cond.value is True


@dataclass(frozen=True, slots=True)
class StopTarget:
    """A place to stop at: a line, a function's entry, or one instruction of a function."""

    text: str
    function: str = ""
    source: int = -1
    line: int = 0
    pc: int = -1
    """An instruction of the function as written; -1 for none."""
    generic: str = ""
    """The generic function, for any types; `function` is one of its instances."""

    def positions(self, code: Code) -> frozenset[int]:
        """The positions of the target in a function's code."""
        if self.line:
            return frozenset(
                p for p in line_starts(code) if line_of(code, p) == (self.source, self.line)
            )
        if self.function != code.name and not (self.generic and self._is_made(code.name)):
            return frozenset()
        if self.pc >= 0:
            return frozenset([len(code) - 1 - self.pc if code.undo else self.pc])
        return frozenset([0])

    def _is_made(self, name: str) -> bool:
        return name.startswith(f"{self.generic}[") and name.endswith("]")


def find_target(image: Image, text: str, here: Code) -> StopTarget:
    """The stop that `text` denotes; UsageError U031 if there is none.

    A line (`12`, `file.rasm:12`), a function, a generic one for all its types, a label of the
    source, or an instruction by its index (`@7` in the function `here`, `f@7`).
    """
    program = image.program
    if text in program:
        return StopTarget(text, function=text)
    made = [n for n in program if n.startswith(f"{text}[") and n.endswith("]")]
    if made:
        return StopTarget(text, function=made[0], generic=text)
    found = _INSTRUCTION.fullmatch(text)
    if found:
        name = found["function"] or here.name
        if name in program and int(found["pc"]) < len(program.function(name).code):
            return StopTarget(f"{name}@{found['pc']}", function=name, pc=int(found["pc"]))
        raise UsageError("U031", f"there is no instruction `{text}`")
    found = _LINE.fullmatch(text)
    if found:
        source = _source(program, found["file"], here)
        return _at_line(image, source, int(found["line"]), text)
    label = _label(program, text)
    if label is not None:
        return _at_line(image, *label, text)
    hint = instead(text, program, f"functions: {', '.join(program)}")
    raise UsageError("U031", f"there is no function, label or line `{text}`", hint=hint)


def _source(program: Program, file: str | None, here: Code) -> int:
    if file is None:
        spans = [s.source for s in here.function.spans if s.line]
        return spans[0] if spans else 0
    for k, source in enumerate(program.sources):
        if source.name == file or source.name.endswith("/" + file):
            return k
    names = ", ".join(s.name for s in program.sources) or "none"
    raise UsageError("U031", f"there is no source `{file}`", hint=f"sources: {names}")


def beginnings(image: Image, source: int) -> set[int]:
    """The lines of a source at which something begins."""
    return {
        line_of(code, p)[1]
        for name in image.program
        for code in (image.code(name, False),)
        for p in line_starts(code)
        if line_of(code, p)[0] == source
    }


def _at_line(image: Image, source: int, line: int, text: str) -> StopTarget:
    """The line, or the next of the source at which something begins."""
    lines = beginnings(image, source)
    later = sorted(k for k in lines if k >= line)
    if not later:
        last = max(lines, default=0)
        raise UsageError(
            "U031",
            f"no instruction begins at line {line} or after it",
            hint=f"the last line with one is {last}" if last > 0 else "the program has no source",
        )
    return StopTarget(text, source=source, line=later[0])


def _label(program: Program, text: str) -> tuple[int, int] | None:
    """The source line of a label."""
    return labels(program).get(text)


def labels(program: Program) -> dict[str, tuple[int, int]]:
    """The labels of the sources: for each the source and line of its first occurrence."""
    found: dict[str, tuple[int, int]] = {}
    for k, source in enumerate(program.sources):
        for number, line in enumerate(source.text.split("\n"), 1):
            head = _LABEL.match(line)
            if head is not None:
                found.setdefault(head[1], (k, number))
    return found


def function_lines(function: Function) -> tuple[int, int, int] | None:
    """The source, first and last line of a function's instructions."""
    spans = [s for s in function.spans if s.line]
    if not spans:
        return None
    source = spans[0].source
    lines = [s.line for s in spans if s.source == source]
    return source, min(lines), max(lines)


def source_name(program: Program, source: int) -> str:
    """The file name of a source, without its folder."""
    return Path(program.sources[source].name).name if source < len(program.sources) else "?"
