"""The commands `rvm asm` and `rvm dis`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rvm.codec import MAGIC, decode, encode
from rvm.faults import AssemblyError, InternalError, RvmError, UsageError
from rvm.library.frontends import check_suffix, front_end, loads
from rvm.program import AnyProgram, Function, Layout, Program, Record, head_text, type_text
from rvm.verify import verify as verify_program
from rvm_tools.messages import end, show, show_error, warnings_to
from rvm_tools.options import reading_options
from rvm_tools.programs import checked, load_program, pick_function, read_bytes, read_text, written


def assemble_file(
    file: str,
    output: str | None,
    emit: str,
    verify: bool,
    folders: Sequence[str],
    functions: Sequence[str],
    error_format: str,
) -> None:
    """Assemble, and write the requested output."""
    if emit == "bin" and output is None and sys.stdout.isatty():
        raise UsageError(
            "U012",
            "bytecode is not written to a terminal",
            hint="name a file with -o, or ask for --emit=listing",
        )
    try:
        with warnings_to(partial(show, style=error_format)):
            program = checked(_assembled(file, folders))
            for name in functions:
                program, _ = pick_function(program, name)
        if emit == "strict":
            from rvm_asm import expand

            program = expand(program)
    except RvmError as error:
        if not isinstance(error, AssemblyError) and error_format == "human":
            raise
        show_error(error, error_format)
        end(error.exit_code)
    if verify:
        _check_round_trip(program)
    if emit == "bin":
        _write(output, encode(program))
    elif emit == "strict":
        from rvm_asm import disassemble

        _write(output, disassemble(program, positions=False).encode())
    elif emit == "rasm":
        _write(output, _structured(file, functions).encode())
    elif emit == "listing":
        _write(output, _listing(program).encode())
    else:
        _write(output, (json.dumps(_as_json(program), ensure_ascii=False) + "\n").encode())


def _assembled(file: str, folders: Sequence[str]) -> Program:
    """The program of a source text."""
    from rvm_asm import assemble

    from rvm_tools.options import allowed_includes

    if file.endswith(".rbc"):
        raise UsageError(
            "U011", f"{file} is bytecode already", hint="`rvm dis` shows what it holds"
        )
    front = front_end(file)
    if front is not None and not file.endswith(".rasm"):
        return load_program(file)
    name, path = ("<stdin>", None) if file == "-" else (file, Path(file))
    try:
        return assemble(
            read_text(file), name, include_path=folders, includes=allowed_includes(), path=path
        )
    except AssemblyError:
        if front is not None:
            check_suffix(Path(file))
        raise


def _structured(file: str, functions: Sequence[str]) -> str:
    """The program of a text in another language, in the assembly language."""
    write = getattr(front_end(file), "rasm", None)
    if write is None:
        raise UsageError("U011", f"{file} is in the assembly language already")
    options = reading_options()
    if functions:
        options["functions"] = functions
    return str(write(read_text(file), file, **options))


def _check_round_trip(program: Program) -> None:
    """InternalError unless the program's bytes, and its disassembly, make the same bytes again."""
    from rvm_asm import assemble, disassemble

    data = encode(program)
    again = decode(data)
    verify_program(again)
    if encode(again) != data:
        raise InternalError("C004", "the bytecode reads back as another program")
    if encode(assemble(disassemble(again))) != data:
        raise InternalError("C004", "the disassembly assembles to other bytes")


def disassemble_file(file: str, output: str | None, *, positions: bool) -> None:
    """Write a program as strict code."""
    from rvm_asm import disassemble

    if file == "-" or file.endswith(".rbc"):
        program: AnyProgram = load_program(file)
    else:
        # A file of another name may hold bytecode all the same.
        data = read_bytes(file)
        program = loads(data, file) if data.startswith(MAGIC) else load_program(file)
    _write(output, disassemble(program, positions=positions).encode())


def _write(output: str | None, data: bytes) -> None:
    with written(output or "-") as out:
        out.write(data)


# ---------------------------------------------------------------- listing and JSON


def _instruction_texts(program: Program) -> list[list[str]]:
    """For each function its instructions as strict code, labels included."""
    from rvm_asm import disassemble

    out: list[list[str]] = []
    for line in disassemble(program, positions=False).splitlines():
        first = line.split(None, 1)[0] if line.strip() else ""
        if line.startswith("func "):
            out.append([])
        elif line.startswith(" ") and first not in ("local", "extern", "end"):
            out[-1].append(line.strip())
        elif first.endswith(":"):
            out[-1].append(line.rstrip())
    return out


def _listing(program: Program) -> str:
    """Each source line that has code, with its instructions under it."""
    out: list[str] = []
    for function, texts in zip(program.functions, _instruction_texts(program), strict=True):
        out.append(f"func {function.name}({head_text(function)})")
        shown: tuple[int, int] | None = None
        for pc, text in enumerate(texts):
            span = function.span(pc)
            if 0 <= span.source < len(program.sources) and (span.source, span.line) != shown:
                shown = (span.source, span.line)
                line = program.sources[span.source].line(span.line) or ""
                out.append(f"{span.line:>6} | {line.rstrip()}")
            label, colon, rest = text.partition(":")
            if not (colon and label.isalnum()):
                label, colon, rest = "", "", text
            out.append(f"{pc:>14}  {label + colon:<6}{rest.strip()}")
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def _as_json(program: Program) -> dict[str, Any]:
    """A program as plain values: functions with parameters, registers and instructions."""
    return {
        "entry": program.entry,
        "sources": [s.name for s in program.sources],
        "functions": [
            _function_json(f, texts)
            for f, texts in zip(program.functions, _instruction_texts(program), strict=True)
        ],
    }


def _function_json(function: Function, texts: Sequence[str]) -> dict[str, Any]:
    return {
        "name": function.name,
        "params": [
            {"name": p.name, "type": _layout_json(function, p.layout)} for p in function.params
        ],
        "registers": [
            {"name": r.name, "type": type_text(function, k)}
            for k, r in enumerate(function.registers)
        ],
        "code": [
            {
                "op": instr.op,
                "text": text,
                **({"partner": instr.aux} if instr.op in ("br", "cf") else {}),
                **({"symbol": instr.symbol} if instr.symbol else {}),
                "line": function.span(pc).line,
                "column": function.span(pc).column,
            }
            for pc, (instr, text) in enumerate(zip(function.code, texts, strict=True))
        ],
    }


def _layout_json(function: Function, layout: Layout) -> Any:
    if isinstance(layout, Record):
        return {f: _layout_json(function, inner) for f, inner in layout.fields}
    return type_text(function, layout)
