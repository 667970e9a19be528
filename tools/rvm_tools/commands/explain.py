"""`rvm explain`: the long form of a diagnostic."""

from __future__ import annotations

import rich_click as click
from click.shell_completion import CompletionItem

from rvm_tools.streams import json_text


def _codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rvm_tools.explanations import explanations

    return [
        CompletionItem(code, help=found.title)
        for code, found in explanations().items()
        if code.startswith(incomplete.upper())
    ]


@click.command("explain")
@click.argument("code", required=False, shell_complete=_codes)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(code: str | None, as_json: bool) -> None:
    """Explain a diagnostic by its code, such as A013; without one, list all of them."""
    from difflib import get_close_matches

    from rvm.faults import UsageError
    from rvm_tools.explanations import explanations

    known = explanations()
    if code is None:
        if as_json:
            click.echo(json_text({c: e.title for c, e in known.items()}))
        else:
            click.echo("\n".join(f"{c}  {e.title}" for c, e in known.items()))
        return
    code = code.upper().strip("[]")
    found = known.get(code)
    if found is None:
        near = [c for c in known if c.startswith(code)][:5]
        near = near or get_close_matches(code[:40], known, 3)
        raise UsageError(
            "U013",
            f"there is no diagnostic `{code[:40]}`",
            hint=f"near it: {', '.join(near)}" if near else "`rvm explain` lists them all",
        )
    if as_json:
        click.echo(json_text({"code": code, "title": found.title, "text": found.text}))
        return
    click.echo(f"{code}: {found.title}\n\n{found.text}")
