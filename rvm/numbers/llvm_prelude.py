"""Functions in LLVM's assembly language that the code of number systems calls.

`definitions` gives the texts of those that a module needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HELPERS: dict[str, str] = {}
"""The functions' bodies by their names, from the word `define` on."""


def _enter(text: str) -> None:
    found = re.search(r"@(\w+)\(", text)
    assert found is not None
    HELPERS[found[1]] = f"define internal {text.strip()}\n"


def definitions(names: Iterable[str]) -> tuple[str, frozenset[str]]:
    """The functions of these names and those that they call; the symbols that they all call."""
    texts: dict[str, str] = {}
    symbols: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        texts[name] = HELPERS[name]
        for called in re.findall(r"@(rvm_\w+)", HELPERS[name]):
            if called in HELPERS:
                waiting.append(called)
            else:
                symbols.add(called)
    return "\n".join(texts[name] for name in sorted(texts)), frozenset(symbols)


_enter("""
i64 @rvm_integer_power(i64 %x, i64 %n) {
entry:
  br label %loop
loop:
  %base = phi i64 [ %x, %entry ], [ %squared, %loop ]
  %rest = phi i64 [ %n, %entry ], [ %half, %loop ]
  %power = phi i64 [ 1, %entry ], [ %next, %loop ]
  %bit = trunc i64 %rest to i1
  %more = mul i64 %power, %base
  %next = select i1 %bit, i64 %more, i64 %power
  %squared = mul i64 %base, %base
  %half = lshr i64 %rest, 1
  %done = icmp eq i64 %half, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %next
}
""")
