"""`rvm bench`: how fast each engine is beside plain Python doing the same work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rich_click as click
from click.shell_completion import CompletionItem


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rvm_tools.bench.workloads import WORKLOADS

    return [
        CompletionItem(w.name, help=w.doc)
        for w in WORKLOADS.values()
        if w.name.startswith(incomplete)
    ]


@contextmanager
def _bar(length: int) -> Iterator[Callable[[], object]]:
    """A progress bar where standard error is a terminal; what is given advances it by one."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=length, label="measuring", file=sys.stderr) as bar:
        yield lambda: bar.update(1)


@click.command("bench")
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...", shell_complete=_names)
@click.option("--list", "show_list", is_flag=True, help="List the workloads.")
@click.option(
    "--engine", "engines", multiple=True, metavar="NAME", help="Only this engine; by default all."
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=5, metavar="N", help="Timed runs of each (5)."
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0.001),
    default=1.0,
    metavar="X",
    help="How much each has to do (1).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    workloads: tuple[str, ...],
    show_list: bool,
    engines: tuple[str, ...],
    repeat: int,
    scale: float,
    as_json: bool,
) -> None:
    """Measure instructions per second of each engine beside plain Python.

    Runs alternate between the contestants; medians are shown with their spread.
    """
    import json
    from difflib import get_close_matches

    from rvm.engines import NAMES, engine
    from rvm.faults import UsageError
    from rvm_tools.bench import report
    from rvm_tools.bench.measure import measure
    from rvm_tools.bench.workloads import WORKLOADS

    if show_list:
        if as_json:
            click.echo(json.dumps({w.name: w.doc for w in WORKLOADS.values()}, ensure_ascii=False))
        else:
            click.echo("\n".join(f"{w.name:<9} {w.doc}" for w in WORKLOADS.values()))
        return
    for name in workloads:
        if name not in WORKLOADS:
            near = get_close_matches(name, WORKLOADS, 1)
            raise UsageError(
                "U013",
                f"there is no workload `{name}`",
                hint=f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(WORKLOADS)}",
            )
    names = [engine(n).name for n in engines] or [n for n in NAMES if n != "auto"]
    chosen = workloads or tuple(WORKLOADS)
    with _bar(len(chosen) * (repeat + 1) * len(names)) as advance:
        found = [measure(WORKLOADS[n], names, repeat, scale, advance) for n in chosen]
    if as_json:
        click.echo(json.dumps(report.as_json(found, names)))
    else:
        click.echo(report.table(found, names))
