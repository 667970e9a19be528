"""`rvm pure`: the stages of a pure definition, from its term to its derivatives."""

from __future__ import annotations

import rich_click as click

from rvm_tools.options import BYTES


@click.command("pure")
@click.argument("file", type=click.Path(allow_dash=True), metavar="FILE.pure")
@click.option("-f", "--function", metavar="FUNC", help="The definition; by default all of them.")
@click.option(
    "--stage",
    metavar="NAME",
    default="source",
    help="The stage to print: source, anf, dup, forward, reverse, unf, unf-reverse, direct, loops, "
    "gradient, rasm.",
)
@click.option(
    "--wrt", metavar="X,Y", default="", help="The variables of differentiation; by default all."
)
@click.option("--prefix", is_flag=True, help="Print operators as words, as in `mul (x, y)`.")
@click.option(
    "--cost", metavar="N=100,…", help="Print the costs of definition and gradient at these lengths."
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print how each let is implemented in the reversible program, and its size in bytes.",
)
@click.option(
    "--pebbles",
    type=click.IntRange(1),
    metavar="S",
    help="The number of states that a loop holds at a time, besides the first and the last.",
)
@click.option("--memory", type=BYTES, metavar="B", help="The memory limit for its states: 1MB.")
@click.option(
    "--in-place",
    is_flag=True,
    help="Also update floats in place; because of rounding this cannot be undone to the bit.",
)
def command(
    file: str,
    function: str | None,
    stage: str,
    wrt: str,
    prefix: bool,
    cost: str | None,
    explain: bool,
    pebbles: int | None,
    memory: int | None,
    in_place: bool,
) -> None:
    """Print a stage of the definitions in FILE.

    Each stage is a text that is read again as the definition that it shows. A loop keeps all its
    states in the stage `rasm`, unless there is a budget for them.
    """
    from rvm_tools.pure import chosen, show_cost

    names = [n for n in wrt.split(",") if n]
    keep = {"pebbles": pebbles, "memory": memory, "in_place": in_place}
    found = [f.keeping(**keep) for f in chosen(file, function)]
    if explain:
        for f in found:
            click.echo(f.explain())
    elif cost is not None:
        show_cost(found, names, cost)
    else:
        shown = [f.stage(stage, prefix=prefix, wrt=names) for f in found]
        click.echo("\n".join(shown), nl=False)
