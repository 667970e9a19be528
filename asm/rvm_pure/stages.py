"""The stages of a definition, each a text that the same reader reads again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rvm_pure import gradient, straight, unary_text
from rvm_pure.definition import Definition
from rvm_pure.keeping import ALL, Keep
from rvm_pure.printer import definition
from rvm_pure.unary import unary

LINES: dict[str, Callable[[Definition], Definition]] = {
    "anf": straight.anf,
    "dup": straight.dup,
    "forward": straight.forward,
    "reverse": straight.reverse,
}
"""The stages of straight-line programs, whose lines may be written with words for signs."""
TERMS: dict[str, Callable[[Definition, Sequence[str] | None], Definition]] = {
    "direct": gradient.direct,
    "loops": gradient.with_value,
    "gradient": gradient.gradient,
}
"""The stages of terms over arrays, by some of the parameters."""
UNARY = ("unf", "unf-reverse")
STAGES = ("source", *LINES, *UNARY, *TERMS, "rasm")


def stage(
    d: Definition, name: str, *, prefix: bool = False, wrt: Sequence[str] = (), keep: Keep = ALL
) -> str:
    """The text of a stage of a typed definition; StageFault if it has none."""
    if name in LINES:
        return definition(LINES[name](d), block=True, prefix=prefix)
    if name in UNARY:
        return unary_text.text(replace(unary(d), is_reverse=name != "unf"))
    if name == "source":
        return definition(d)
    if name == "rasm":
        from rvm_asm.source import SourceMap
        from rvm_asm.structured import structured

        from rvm_pure.lowering import Lowering

        text = structured(Lowering(d, keep).functions(), SourceMap(), positions=False)
        return text.rstrip() + "\n"
    return definition(TERMS[name](d, wrt or None))
