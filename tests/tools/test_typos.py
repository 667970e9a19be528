"""Options, their words and commands with two letters exchanged: the message names the right one."""

from __future__ import annotations

import re

import pytest
import rich_click as click
from sizes import thin
from tools.running import COMMANDS, rvm

SHORT = 4
"""Words of so few letters have too many neighbours."""


def misspelt(word: str) -> str:
    return word[:-2] + word[:-3:-1] if word[-1] != word[-2] else word[:-1]


def told(*args: str) -> str:
    """What is said of a wrong use, on one line and without the box around it."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", rvm(*args, code=2).stderr).split())


@thin
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_options_and_their_words(path: tuple[str, ...]) -> None:
    for p in COMMANDS[path].params:
        long = [o for o in p.opts if o.startswith("--") and len(o) > SHORT + 2]
        for option in long:
            value = "" if isinstance(p, click.Option) and p.is_flag else "=1"
            said = told(*path, misspelt(option) + value)
            assert "Did you mean" in said and option in said, said
        for word in p.type.choices if isinstance(p.type, click.Choice) else ():
            if len(word) >= SHORT:
                before = f"{p.opts[-1]}=" if isinstance(p, click.Option) else ""
                assert f"Did you mean '{word}'?" in told(*path, before + misspelt(word))


@pytest.mark.parametrize("path", [p for p, c in COMMANDS.items() if isinstance(c, click.Group)])
def test_commands(path: tuple[str, ...]) -> None:
    group = COMMANDS[path]
    assert isinstance(group, click.Group)
    for name in group.list_commands(click.Context(group)):
        if len(name) >= SHORT:
            said = told(*path, misspelt(name))
            assert "did you mean" in said.lower() and name in said, said
