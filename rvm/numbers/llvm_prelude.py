"""Functions in LLVM's assembly language that the code of number systems calls.

`definitions` gives the texts of those that a module needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rvm.leaf.llvm import PREFIX
from rvm.leaf.llvm import definitions as written
from rvm.numbers import llvm_exact, llvm_inexact
from rvm.numbers.elementary import text


def _named(text: str) -> tuple[str, str]:
    found = re.search(r"@(\w+)\(", text)
    assert found is not None
    body = text.strip().replace(") {", ") nounwind willreturn memory(none) {", 1)
    return found[1], f"define internal {body}\n"


HELPERS = dict(map(_named, (*llvm_exact.HELPERS, *llvm_inexact.HELPERS)))
"""Whole definitions by the functions' names."""


def definitions(names: Iterable[str]) -> tuple[str, frozenset[str]]:
    """The functions of these names and those that they call; the symbols that they all call."""
    texts: dict[str, str] = {}
    symbols: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        if name.startswith(PREFIX):
            texts |= written(text(name.removeprefix(PREFIX)))
            continue
        texts[name] = HELPERS[name]
        for called in re.findall(r"@(rvm_\w+)", HELPERS[name]):
            if called in HELPERS or called.startswith(PREFIX):
                waiting.append(called)
            else:
                symbols.add(called)
    return "\n".join(texts[name] for name in sorted(texts)), frozenset(symbols)
