"""`rvm asm`: a source text as bytecode, strict code, a listing or JSON."""

from __future__ import annotations

import rich_click as click

from rvm_tools.options import OneOf, file_argument


@click.command("asm")
@file_argument
@click.option("-o", "--output", type=click.Path(), metavar="FILE.rbc", help="Where to write.")
@click.option(
    "--emit",
    type=OneOf(["bin", "rasm", "strict", "listing", "json"]),
    default="bin",
    help="Bytecode (the default); code with one function an instruction; "
    "instructions beside the source; or the program as JSON.",
)
@click.option(
    "--verify", is_flag=True, help="Check that the written file reads back as the same program."
)
@click.option(
    "-I",
    "--include",
    "folders",
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help="Where included files are looked for as well.",
)
@click.option(
    "-f",
    "--function",
    "functions",
    multiple=True,
    metavar="FUNC",
    help="A generic function for types that the program is to have, too: 'axpy[f32]'.",
)
@click.option(
    "--error-format",
    type=OneOf(["human", "short", "json"]),
    default="human",
    help="How errors are put out.",
)
def command(
    file: str,
    output: str | None,
    emit: str,
    verify: bool,
    folders: tuple[str, ...],
    functions: tuple[str, ...],
    error_format: str,
) -> None:
    """Assemble a source text.

    Without -o the result goes to standard output; bytecode only where that is not a terminal.
    """
    from rvm_tools.assembly import assemble_file

    assemble_file(file, output, emit, verify, folders, functions, error_format)
