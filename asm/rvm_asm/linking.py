"""Functions of other programs, which are linked to a program with all that they call."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from rvm.program import Program
from rvm.transform.derived import MARKS
from rvm.verify.conflicts import CALLS
from rvm_asm.maps import declared
from rvm_asm.names import plain, quoted
from rvm_asm.nodes import Word
from rvm_asm.program import Declarations
from rvm_asm.stats import Func


def link(declarations: Declarations, program: Program, name: str, taken: Container[str]) -> str:
    """Enter a function of a verified program, and those that it calls; its name here.

    They have names that are not `taken`, nor declared; the texts of the program are kept.
    """
    _, known = declarations.linked.setdefault(id(program), (program, {}))
    found: list[str] = []
    todo = [name]
    while todo:
        one = todo.pop()
        if one not in known:
            known[one] = _unused(one, declarations, taken)
            found.append(one)
            todo += [i.symbol for i in program.function(one).code if i.op in CALLS]
    texts = [declarations.sources.number_of(source) for source in program.sources]
    for one in found:
        f = program.function(one)
        code = (replace(i, symbol=plain(known[i.symbol])) if i.op in CALLS else i for i in f.code)
        spans = (s._replace(source=texts[s.source]) if s.source >= 0 else s for s in f.spans)
        made = replace(f, name=plain(known[one]), code=tuple(code), spans=tuple(spans))
        at = declarations.sources.add_name(one)
        start, end = at.base, at.base + len(one)
        params = [declared(p.name, p.layout, made, start, end) for p in made.params]
        word = Word(known[one], start, end)
        declarations.enter(Func(word, [], params, [], start, end, linked=made), set())
    return known[name]


def _unused(name: str, declarations: Declarations, taken: Container[str]) -> str:
    """A name that means nothing else, and is not that of a derivative."""
    free, k = quoted(name), 1
    while free in taken or declarations.is_declared(free) or plain(free).endswith(tuple(MARKS)):
        k += 1
        free = quoted(f"{name} ({k})")
    return free
