"""`rvm stubs`: stubs of programs for type checkers, as `.pyi` files."""

from __future__ import annotations

import rich_click as click

from rvm_tools.options import includes_option


@click.command("stubs")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE…")
@includes_option
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with code 1 if a stub is out of date."
)
def command(files: tuple[str, ...], check: bool) -> None:
    """Write a stub beside each program, describing its functions to type checkers.

    `import leapfrog` finds leapfrog.rasm after `rvm.install_import_hook()`, and mypy and pyright
    read leapfrog.pyi for it.
    """
    from rvm_tools.stub_files import check_stubs, write_stubs

    (check_stubs if check else write_stubs)(files)
