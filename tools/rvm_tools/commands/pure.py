"""`rvm pure`: the stages of a pure definition, from its term to its derivatives."""

from __future__ import annotations

import rich_click as click


@click.command("pure")
@click.argument("file", type=click.Path(allow_dash=True), metavar="FILE.pure")
@click.option("-f", "--function", metavar="FUNC", help="The definition; by default all of them.")
@click.option(
    "--stage",
    metavar="NAME",
    default="source",
    help="The stage to print; `source` is the text itself.",
)
@click.option(
    "--wrt",
    metavar="X,Y",
    default="",
    help="What to differentiate by; by default all that there is.",
)
@click.option("--prefix", is_flag=True, help="Words for signs, as in `mul (x, y)`.")
@click.option(
    "--cost", metavar="N=100,…", help="What definition and gradient cost at these lengths."
)
@click.option("--explain", is_flag=True, help="What becomes of each let in the reversible program.")
def command(
    file: str,
    function: str | None,
    stage: str,
    wrt: str,
    prefix: bool,
    cost: str | None,
    explain: bool,
) -> None:
    """Print a stage of the definitions in FILE.

    Each stage is a text that is read again as the definition that it shows.
    """
    from rvm_tools.pure import chosen, show_cost, show_stage

    names = [n for n in wrt.split(",") if n]
    if explain:
        for f in chosen(file, function):
            click.echo(f.explain())
    elif cost is not None:
        show_cost(file, function, names, cost)
    else:
        show_stage(file, function, stage, names, prefix)
