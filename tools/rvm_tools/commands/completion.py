"""`rvm completion`: the script that gives a shell completion for `rvm`."""

from __future__ import annotations

import rich_click as click

from rvm_tools.options import OneOf

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=OneOf(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell's completion script.

    For bash, put `eval "$(rvm completion bash)"` into ~/.bashrc; for zsh the same with zsh into
    ~/.zshrc; for fish, `rvm completion fish | source` into config.fish.
    """
    from click.shell_completion import get_completion_class

    root = ctx.find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "rvm", "_RVM_COMPLETE").source())
