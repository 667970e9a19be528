"""Messages in the words of Janus."""

from __future__ import annotations

from rvm_asm.messages import Reporter, Words

_WORDS = (
    (
        r"accumulate into a fresh ancilla: +alloc \w+: \w+ / (?:add|sub|xor) (\w+), (.*)",
        r"`local int \1 = \2` holds the value meanwhile",
    ),
    (
        r"pass a copy for (`\w+`): alloc it, add the value, call, and uncompute the copy",
        r"pass a copy for \1: `local int t = …`, and after the call `delocal int t = …`",
    ),
    (r"copy the index first: +alloc \w+: \w+ / add (\w+), (.*)", r"copy it: `local int \1 = \2`"),
    (r"`func \w+\(x: f64\)`", "`procedure main()`"),
    (r"copy it into an ancilla, and use that", "use a copy: `local int t = …`"),
)
"""Phrases in the assembler's messages about its statements, and their form for Janus."""


class JanusReporter(Reporter):
    """A reporter whose messages speak of Janus."""

    words = Words(_WORDS)
