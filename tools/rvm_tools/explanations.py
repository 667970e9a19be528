"""The diagnostics of all that is installed: the machine, its front ends and its commands."""

from __future__ import annotations

from importlib.metadata import entry_points

from rvm.codes import Explanation
from rvm.codes import explanations as of_package

GROUPS = ("rvm.frontends", "rvm.commands")
"""The entry points of packages that may report something."""


def explanations() -> dict[str, Explanation]:
    """Every diagnostic's explanation by its code, in their order."""
    points = [p for group in GROUPS for p in entry_points(group=group)]
    packages = dict.fromkeys(["rvm", "rvm_tools", *(p.module.partition(".")[0] for p in points)])
    found = {code: text for name in packages for code, text in of_package(name).items()}
    return dict(sorted(found.items()))
