"""The command line of the attack, `python tests/attack`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import click

from attack.campaign import Campaign, attempt
from attack.cases import FOUND, KINDS
from attack.crew import Worker
from attack.findings import kind_of, table


@click.command()
@click.option("--minutes", type=float, default=2.0, show_default=True, help="How long to attack.")
@click.option("--inputs", type=int, help="Try this many inputs of each kind instead.")
@click.option("--seed", type=int, help="Where the inputs come from; by default the clock.")
@click.option(
    "--kinds",
    default=",".join(KINDS),
    show_default=True,
    help="What to attack with; a module with a KIND of one's own by its dotted name.",
)
@click.option("--jobs", type=int, default=os.cpu_count() or 1, help="How many processes.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder for findings.")
@click.option(
    "--reproduce",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Try the input of a finding that was saved, and show the outcome.",
)
def main(
    minutes: float,
    inputs: int | None,
    seed: int | None,
    kinds: str,
    jobs: int,
    out: Path | None,
    reproduce: Path | None,
) -> None:
    """Attack rvm with inputs of all kinds; the exit status is 1 if something was found."""
    if reproduce is not None:
        sys.exit(again(reproduce))
    names = [k.strip() for k in kinds.split(",") if k.strip()]
    unknown = [k for k in names if k not in KINDS and "." not in k]
    if unknown or not names:
        raise click.UsageError(f"no kind `{', '.join(unknown)}`; there are: {', '.join(KINDS)}")
    seed = int(time.time()) if seed is None else seed
    out = Path(tempfile.mkdtemp(prefix="rvm-findings-")) if out is None else out
    seconds = 60 * minutes if inputs is None else 1e9
    campaign = Campaign(names, seed, seconds, max(1, jobs), out, inputs, say=click.echo)
    campaign.run()
    click.echo(f"seed {seed}")
    click.echo(table(list(campaign.tallies.values())))
    for found in campaign.findings.values():
        click.echo(f"{found.count:,} x {found.kind}: {found.signature}")
    if campaign.findings:
        click.echo(f"findings are in {out}")
        sys.exit(1)


def again(path: Path) -> int:
    """Try the input of a saved finding; 1 if it still is one."""
    worker = Worker()
    try:
        verdict = attempt(worker, kind_of(path), path.read_bytes())
    finally:
        worker.close()
    click.echo(f"{verdict.outcome}: {verdict.signature}" if verdict.signature else verdict.outcome)
    if verdict.detail:
        click.echo(verdict.detail)
    return int(verdict.outcome == FOUND)


if __name__ == "__main__":
    main()
