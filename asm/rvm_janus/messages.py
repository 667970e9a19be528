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
    (r"there is no function `", "there is no procedure `"),
    (r"the text has no function", "the text has no procedure"),
    (
        r"`push x, s` moves x to it, `pop x, s` takes",
        "`push(x, s)` moves x to it, `pop(x, s)` takes",
    ),
    (r"^`([\w']+)` is freed with a wrong value", r"`\1` ends with a wrong value"),
    (r"^(`[^`]+`) is freed with a wrong value", r"\1 has a wrong value here"),
    (r"^(the stack `[^`]+`) is freed while", r"\1 ends while"),
    (
        "uncompute it before the free, by undoing the code that computed its value",
        "undo its changes first, or give `delocal` the value that it has there",
    ),
    (
        "undo that change before the free, or make it after the free",
        "undo that change before the end, or make it after the end",
    ),
    (r"\b(this|the) arm\b", r"\1 branch"),
    ("that the instruction uses", "that the statement uses"),
)
"""Phrases in the assembler's messages about its statements, and their form for Janus."""


_INPUT = "a program has no input: it begins with the values of main's variables, `x=3`"
_LOOP = "`from … do … loop … until …`, or `iterate int i = a to b … end`"
ELSEWHERE = {
    "read": _INPUT,
    "scanf": _INPUT,
    "write": "`print`, `printf` and `show` print",
    "for": _LOOP,
    "while": _LOOP,
    "switch": "`if … then … else … fi …`",
    "struct": "there are no records; each field is a variable or an array",
    "void": "a procedure is `procedure name(int x)`, without braces and semicolons",
    "#": "there is no preprocessor; write numbers, and all procedures in one file",
    "external": "procedures in C cannot be called",
    "delocal": "`skip` is a statement that does nothing",
    "fi": "`skip` is a statement that does nothing",
    "until": "`skip` is a statement that does nothing",
    "end": "an `if` ends in `fi CONDITION`, a loop in `until CONDITION`; `end` ends an `iterate`",
}
"""Words and signs of other dialects, or out of place, and what is written here."""


_in_words = Words(_WORDS)


def words(text: str) -> str:
    """A message in the words of Janus."""
    return _in_words(text)


class JanusReporter(Reporter):
    """A reporter whose messages speak of Janus."""

    words = staticmethod(words)
