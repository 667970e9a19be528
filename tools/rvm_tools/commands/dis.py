"""`rvm dis`: bytecode as strict code that assembles to the same bytes."""

from __future__ import annotations

import rich_click as click

from rvm_tools.options import file_argument


@click.command("dis")
@file_argument
@click.option("-o", "--output", type=click.Path(), metavar="FILE.rasm", help="Where to write.")
@click.option(
    "--no-positions",
    is_flag=True,
    help="Leave out the `;@` comments that keep the source; the code stays the same.",
)
def command(file: str, output: str | None, no_positions: bool) -> None:
    """Disassemble a program; the output assembles to the same bytes."""
    from rvm_tools.assembly import disassemble_file

    disassemble_file(file, output, positions=not no_positions)
