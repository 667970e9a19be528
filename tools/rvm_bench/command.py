"""`rvm bench`: how fast each engine is compared with C, NumPy, Python and other libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rich_click as click
from click.shell_completion import CompletionItem
from rvm_tools.options import OneOf
from rvm_tools.streams import json_text

from rvm.codes.words import instead


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rvm_bench.workloads import EVERY

    found = {w.name: w.doc for w in EVERY.values()} | {"fronts": _FRONTS}
    return [CompletionItem(n, help=doc) for n, doc in found.items() if n.startswith(incomplete)]


_FRONTS = "all workloads of the front ends"


@contextmanager
def _progress() -> Iterator[Callable[[str], object]]:
    """A line on standard error that names the present measurement, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    yield lambda text: click.echo(f"\r\x1b[K{text}", err=True, nl=False)
    click.echo("\r\x1b[K", err=True, nl=False)


def _one_thread() -> None:
    """Limit libraries' linear algebra to one thread, like the engines; before importing NumPy."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@click.command("bench")
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...", shell_complete=_names)
@click.option("--list", "show_list", is_flag=True, help="List the workloads.")
@click.option("--full", is_flag=True, help="All workloads, memory, first calls, growth, lanes.")
@click.option(
    "--engine", "engines", multiple=True, metavar="NAME", help="Only this engine; by default all."
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=OneOf(["forward", "back", "gradient", "hessian"]),
    help="Only this task; by default all.",
)
@click.option("--no-peers", is_flag=True, help="Only the engines.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Turns of each contestant (5; 7 with --full).",
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0.0),
    default=1.0,
    metavar="X",
    help="The largest size, as a share of each workload's own (1).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    workloads: tuple[str, ...],
    show_list: bool,
    full: bool,
    engines: tuple[str, ...],
    tasks: tuple[str, ...],
    no_peers: bool,
    repeat: int | None,
    scale: float,
    as_json: bool,
) -> None:
    """Measure the engines against C, NumPy, plain Python, and the libraries that are installed.

    Contestants are checked against each other, then timed in turns.  What takes long is timed on
    fewer steps: the column `size` says so.  `rvm bench fronts` is for functions in Python, pure
    functions and Janus.
    """

    _one_thread()
    from rvm.engines import engine
    from rvm.faults import UsageError
    from rvm_bench import report
    from rvm_bench.contest import TASKS
    from rvm_bench.engines import engine_names
    from rvm_bench.run import BenchPlan, default, run
    from rvm_bench.workloads import EVERY

    known = {w.name: w.doc for w in EVERY.values()}
    if show_list:
        if as_json:
            click.echo(json_text(known))
        else:
            click.echo("\n".join(f"{n:<17} {doc}" for n, doc in known.items()))
        return
    known["fronts"] = _FRONTS
    for name in workloads:
        if name not in known:
            hint = instead(name, known, f"there are: {', '.join(known)}")
            raise UsageError("U013", f"there is no workload `{name}`", hint=hint)
    plan = BenchPlan(
        default(workloads, full),
        tuple(engine(n).name for n in engines) or engine_names(),
        tasks or TASKS,
        turns=repeat or (7 if full else 5),
        limit=0.08 if full else 0.02,
        scale=scale,
        peers=not no_peers,
        slow=full,
        extras=full,
    )
    with _progress() as progress:
        data = run(plan, progress)
    click.echo(json_text(data) if as_json else report.tables(data))
