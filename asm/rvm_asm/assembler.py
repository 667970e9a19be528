"""From texts to a program: read, declare, lower, verify."""

from __future__ import annotations

import gc
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rvm.faults import AssemblyError, Diagnostic, UsageError, Where
from rvm.program import Function, Program, Span
from rvm.verify import inout_slots, verify
from rvm_asm.blocks import Blocks
from rvm_asm.check import report_aliases, report_counting, report_findings
from rvm_asm.includes import MAX_BYTES, TOO_LARGE, Includes, policy_named
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.parser import parse_file
from rvm_asm.program import Declarations
from rvm_asm.scope import plain
from rvm_asm.source import SourceMap
from rvm_asm.stats import Declaration


def _build(declarations: Declarations) -> Program:
    """The verified program of all declarations; AssemblyError with everything that is wrong."""
    report = declarations.report
    emitters: dict[str, Blocks] = {}
    for name, func in declarations.functions.items():
        emitter = Blocks(declarations, func)
        if emitter.sign():
            emitters[name] = emitter
            declarations.heads[name] = emitter.function(plain(name))
            declarations.signatures[name] = tuple(
                (p.name, emitter.scope.names[p.name]) for p in func.params
            )
    for emitter in emitters.values():
        emitter.statements(emitter.func.body)
        emitter.pair_jumps(0, 0)
    whole = tuple(e.function(plain(name)) for name, e in emitters.items())
    lowered = Program((*whole, *declarations.generated), "")
    report_counting(lowered, emitters, report)
    functions: list[Function] = []
    for emitter, made in zip(emitters.values(), whole, strict=True):
        if emitter.broken:
            # What is there of it is looked at by itself; the rest of the program is still
            # checked against this one's parameters.
            report_aliases(made, emitter, report)
            made = replace(made, code=(), spans=(), registers=made.registers[: emitter.n_args])
        if declarations.positions is not None:
            made = replace(made, spans=_spans(made, declarations.positions[0]))
        functions.append(made)
    for constant in declarations.constants.definitions:
        declarations.constants.literal(constant)
    entry = _entry(declarations)
    sources = declarations.sources.sources()
    if declarations.positions is not None:
        sources = declarations.positions[1]
    program = Program((*functions, *declarations.generated), plain(entry), sources)
    if inout_slots in lowered.cache and not any(e.broken for e in emitters.values()):
        program.cache[inout_slots] = lowered.cache[inout_slots]
    if functions and len(functions) == len(declarations.functions):
        by_name = {plain(n): e for n, e in emitters.items()}
        report_findings(program, by_name, report)
    report.raise_if_failed()
    program.cache[verify] = True  # it has just been verified
    return program


def _spans(function: Function, marks: dict[int, Span]) -> tuple[Span, ...]:
    """Where the instructions stand by the position comments; none if none has one."""
    if not any(s.line in marks for s in function.spans):
        return ()
    return tuple(marks.get(s.line, Span()) for s in function.spans)


def _entry(declarations: Declarations) -> str:
    """The entry: the one named, else `main`, else the first function."""
    names = list(declarations.functions)
    word = declarations.entry
    if word is not None:
        if word.text not in names:
            declarations.report.error(
                "A045",
                f"there is no function `{word.text}`",
                word.start,
                word.end,
                hint=did_you_mean(word.text, names),
            )
        return word.text
    if not names:
        if not declarations.report.failed:
            declarations.report.error(
                "A010", "the text has no function", 0, 1, hint="`func main(x: f64)`"
            )
        return "main"
    return "main" if "main" in names else names[0]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the cycle collector: millions of live nodes, and no garbage among them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parse(text: str, name: str = "<text>") -> list[Declaration]:
    """The declarations of a text as syntax nodes; AssemblyError if it cannot be read."""
    sources = SourceMap()
    report = Reporter(sources)
    declarations, _ = parse_file(sources.add(name, text), report)
    report.raise_if_failed()
    return declarations


def assemble(
    text: str,
    name: str = "<text>",
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "none",
    expand: bool = False,
    path: Path | None = None,
) -> Program:
    """The program of a source text.

    `name` is what messages call the text, `path` where it comes from: its includes are looked
    for beside it, then in the folders of `include_path`.  `includes` says which files they may
    be: "any", those "below" these folders, or "none".  With `expand`, nested expressions
    become temporaries, one function an instruction.  AssemblyError holds all that is wrong.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(name)
    # One folder, and not the letters of its name, of which `/` would be the whole computer.
    if isinstance(include_path, (str, Path)):
        include_path = (include_path,)
    folders = tuple(Path(f) for f in include_path)
    declarations = Declarations(Includes(policy_named(includes), folders, path))
    with _no_collection():
        declarations.read(name, text, path)
        program = _build(declarations)
    if expand:
        from rvm_asm.expand import expand as expanded

        program = expanded(program)
    return program


def load(
    path: str | Path,
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "any",
    expand: bool = False,
) -> Program:
    """The program in a file; OSError if it cannot be read, UsageError U006 if it is not text."""
    path = Path(path)
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _too_large(str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        wide = data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE)
        hint = "it is UTF-16; save it as UTF-8" if wide else ""
        raise UsageError("U006", f"{path} is not UTF-8 text", hint=hint) from None
    return assemble(
        text,
        str(path),
        include_path=include_path,
        includes=includes,
        expand=expand,
        path=path,
    )


def _too_large(name: str) -> AssemblyError:
    return AssemblyError([Diagnostic("A046", TOO_LARGE, Where(name))])
