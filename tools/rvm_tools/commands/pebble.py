"""`rvm pebble`: plans of what to hold and what to recompute, on chains of steps and on graphs."""

from __future__ import annotations

from typing import Any

import rich_click as click
from click.shell_completion import CompletionItem

from rvm_tools.options import BYTES, STEPS, OneOf, includes_option

GOALS = ("persist", "visit", "erase", "gradient")
click.rich_click.OPTION_GROUPS["rvm pebble"] = [
    {"name": "Budget, one of", "options": ["--pebbles", "--time", "--bytes", "--energy"]},
    {
        "name": "A chain, and its terms",
        "options": [
            *("--steps", "--goal", "--strategy", "--state-bytes", "--step-energy"),
            *("--temperature", "--price", "--erasures", "--no-overwrite", "--radix", "--disk"),
            *("--write", "--read", "--in-place", "--costs", "--sizes", "--blocks"),
        ],
    },
    {
        "name": "A file",
        "options": [
            "--includes",
            "--function",
            "--step",
            "--number",
            "--step-in-place",
            "--time-limit",
            "--rounds",
            "--seed",
        ],
    },
    {
        "name": "What comes out",
        "options": [
            *("--compare", "--plot", "--picture", "--out", "--actions", "--check", "--save"),
            *("--emit", "--json", "--help"),
        ],
    },
]


def _strategies(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from rvm.pebble.graphs.plan import STRATEGIES as OF_GRAPHS
    from rvm.pebble.terms import STRATEGIES

    names = dict.fromkeys(["optimal", *STRATEGIES, *OF_GRAPHS])
    return [CompletionItem(n) for n in names if n.startswith(incomplete)]


def _number(value: str) -> float:
    """A number of at least 0, perhaps with a unit as in `10M`; `inf` for any."""
    try:
        number = float(value)
    except ValueError:
        number = STEPS(value)
    if not number >= 0:
        raise click.BadParameter(f"{value!r} is not a number of 0 or more.")
    return number


def _options(f: Any) -> Any:
    for option in reversed(
        (
            click.option(
                "--pebbles",
                type=STEPS,
                metavar="S",
                help="The largest number of states held at a time.",
            ),
            click.option("--time", type=_number, metavar="T", help="The largest number of moves."),
            click.option(
                "--bytes",
                type=BYTES,
                metavar="B",
                help="The largest amount of memory, such as 2GB.",
            ),
            click.option(
                "--energy", type=_number, metavar="J", help="The largest energy in joules."
            ),
            click.option("--steps", type=STEPS, metavar="N", help="The length of the chain."),
            click.option(
                "--goal",
                type=OneOf(GOALS),
                help="The end of the schedule: only the result is held (persist, the "
                "default), the result is reached (visit), nothing is held (erase), or all "
                "adjoints are computed (gradient).",
            ),
            click.option(
                "--strategy",
                metavar="NAME",
                shell_complete=_strategies,
                help="The optimum for the given terms (the default), or a strategy by name.",
            ),
            click.option(
                "--state-bytes", type=BYTES, metavar="B", help="The size of a state: 40MB."
            ),
            click.option(
                "--step-energy", type=float, metavar="J", help="The energy of a step in joules."
            ),
            click.option(
                "--temperature", type=float, metavar="K", help="The temperature in kelvins (300)."
            ),
            click.option(
                "--price", type=_number, metavar="X", help="The price of an erased state, in moves."
            ),
            click.option(
                "--erasures", type=STEPS, metavar="E", help="The largest number of erased states."
            ),
            click.option("--no-overwrite", is_flag=True, help="No step overwrites its state."),
            click.option("--radix", type=int, metavar="K", help="Pieces of Bennett's recursion."),
            click.option("--disk", type=_number, metavar="N", help="States on disk, or inf."),
            click.option(
                "--write", type=_number, metavar="X", help="The price of a write, in moves (1)."
            ),
            click.option(
                "--read", type=_number, metavar="X", help="The price of a read, in moves (1)."
            ),
            click.option(
                "--in-place", metavar="STEPS", help="Steps that are undone in place: 2,3,7-9."
            ),
            click.option(
                "--costs", metavar="LIST", help="The cost of each step or node: 1,2,1 or @FILE."
            ),
            click.option(
                "--sizes", metavar="LIST", help="The size of each state or node: 8,16,8 or @FILE."
            ),
            click.option(
                "--blocks", type=STEPS, metavar="N", help="Finest pieces of priced plans."
            ),
            click.option(
                "-f", "--function", metavar="FUNC", help="The function to take as a graph."
            ),
            click.option("--step", metavar="FUNC", help="The function for a step of a chain."),
            click.option(
                "--number", metavar="NAME", help="Its parameter for the number of the step."
            ),
            click.option(
                "--step-in-place", metavar="FUNC", help="The function for a step in place."
            ),
            click.option(
                "--time-limit",
                type=float,
                metavar="SEC",
                help="The time limit of a search in seconds; Ctrl-C ends it.",
            ),
            click.option(
                "--rounds",
                type=STEPS,
                metavar="N",
                help="The number of changes that a search tries.",
            ),
            click.option("--seed", type=int, metavar="N", help="Another search (0)."),
            click.option(
                "--compare/--no-compare",
                default=None,
                help="Show a table of other strategies at the same budget; the default if "
                "nothing else is requested.",
            ),
            click.option("--plot", is_flag=True, help="Memory against time, over all budgets."),
            click.option("--picture", is_flag=True, help="Nodes by time."),
            click.option(
                "--out", type=click.Path(), metavar="FILE.svg", help="The file for the picture."
            ),
            click.option("--actions", is_flag=True, help="List the schedule."),
            click.option("--check", is_flag=True, help="Check the schedule against the rules."),
            click.option(
                "--save", type=click.Path(), metavar="FILE.npz", help="Save the plan in a file."
            ),
            click.option(
                "--emit", type=click.Path(), metavar="FILE", help="Write a program: .rasm or .rbc."
            ),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object only."),
        )
    ):
        f = option(f)
    return f


@click.command("pebble")
@includes_option
@click.argument("file", required=False, type=click.Path(allow_dash=True), metavar="[FILE]")
@_options
def command(**given: Any) -> None:
    """Plan which states to hold in memory and which to recompute.

    A chain of N steps is planned within a number of pebbles (states that are held), bytes, moves
    (steps done and undone) or joules.  FILE is a plan that was saved (.npz), a circuit (.bench) or
    a straight-line function (.rasm, .rbc), whose graph is planned.

    rvm pebble --steps 1e6 --pebbles 40

    rvm pebble --steps 1000 --bytes 2GB --state-bytes 40MB --goal gradient --price 8 --plot

    rvm pebble adder.bench --pebbles 14 --picture

    rvm pebble diffusion.rasm --step step --steps 1000 --pebbles 12 --emit fast.rbc
    """
    from rvm_tools.pebble.answers import answer

    _usage(given)
    answer(given)


def _usage(given: dict[str, Any]) -> None:
    """Refuse options that do not go together."""
    if given["file"] is None and given["steps"] is None:
        raise click.UsageError("What is to be planned?  Say --steps N, or name a FILE.")
    if given["file"] is not None and given["steps"] is not None and given["step"] is None:
        raise click.UsageError("--steps goes with a FILE only if --step names its function.")
    if given["step"] is not None and (given["file"] is None or given["steps"] is None):
        raise click.UsageError("--step needs the program's FILE, and --steps N.")
    for name in ("number", "step_in_place"):
        if given[name] is not None and given["step"] is None:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --step.")
    if given["out"] is not None and given["plot"] == given["picture"]:
        raise click.UsageError("--out takes one picture: --plot or --picture.")
    if given["emit"] is not None and given["file"] is None:
        raise click.UsageError("--emit needs the program's FILE, and --step for a chain.")
