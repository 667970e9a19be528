"""Places by name in a function's parameters: `y`, `x[2]`, `p.vel[0, 1]`, `z.re`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rvm.codes.words import count, described, instead
from rvm.expr import Const, Index, Part, Step
from rvm.faults import InputError
from rvm.program import Function, Layout, Record
from rvm.types import I64, Scalar, Stack, elem_of, rank_of

_PLACE = re.compile(r"\s*([^\[\]\s]+)\s*(?:\[\s*((?:\d+(?:\s*,\s*\d+)*)?)\s*\])?\s*(\.re|\.im)?\s*")


@dataclass(frozen=True, slots=True)
class Named:
    """A scalar place: the register, an element's indices (none for a scalar), a complex part."""

    slot: int
    index: tuple[int, ...] = ()
    part: str = ""

    @property
    def path(self) -> tuple[Step, ...]:
        """The steps from the register to the place."""
        index = (Index(tuple(Const(i, I64) for i in self.index)),) if self.index else ()
        return (*index, Part(self.part)) if self.part else index


def find_place(function: Function, text: str) -> Named:
    """The scalar place that `text` names; InputError I008 if there is none."""
    names = [p.name for p in function.params]
    if not isinstance(text, str):
        raise InputError(
            "I008", f"a place is named in a string, not by {described(text)}", hint=f'"{names[0]}"'
        )
    found = _PLACE.fullmatch(text)
    if not found:
        raise InputError(
            "I008", f"`{text}` is not a place", hint="name a parameter, or `x[2]`, `z.re`"
        )
    path, index, part = found[1], found[2], (found[3] or "")[1:]
    if not part and path.endswith((".re", ".im")) and index is None:
        path, part = path[:-3], path[-2:]
    layout = _layout(function, path)
    if isinstance(layout, Record):
        fields = ", ".join(f"`{path}.{field}`" for field, _ in layout.fields)
        raise InputError(
            "I008", f"`{path}` is a record, not a number", hint=f"name one of its fields: {fields}"
        )
    t = function.registers[layout].type
    at = tuple(map(int, index.split(","))) if index else ()
    rank = rank_of(t)
    if isinstance(t, Stack) or len(at) != rank:
        shown = "a stack" if isinstance(t, Stack) else f"an array of {count(rank, 'dimension')}"
        raise InputError(
            "I008",
            f"`{text}` is not a scalar place: `{path}` is "
            + ("a scalar" if isinstance(t, Scalar) else shown),
            hint=f"name one element: `{path}[{', '.join('0' * rank)}]`" if rank else "",
        )
    if part and not elem_of(t).is_complex:
        raise InputError("I008", f"`{path}` is not complex: it has no `.{part}`")
    return Named(layout, at, part)


def wanted(function: Function, able: Iterable[str], names: object, option: str = "wrt") -> set[str]:
    """The parameters in `able`, which have derivatives, that are named; all if `names` is None.

    A single name may be a string.  InputError I008 for a name that is not among them.
    """
    known = list(able)
    if names is None:
        return set(known)
    if not isinstance(names, Iterable):
        raise InputError(
            "I008",
            f"`{option}` is a list of parameters' names, not {described(names)}",
            hint=f"parameters with derivatives: {', '.join(known)}",
        )
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in known:
            raise InputError(
                "I008",
                f"`{name}` is not a parameter of `{function.name}` that carries derivatives",
                hint=f"those are: {', '.join(known)}",
            )
    return set(chosen)


def _layout(function: Function, path: str) -> Layout:
    """The layout that a dotted name leads to, a parameter's name first; InputError I008 if none."""
    owner, kind = function.name, "parameter"
    known: dict[str, Layout] = {p.name: p.layout for p in function.params}
    layout: Layout = 0
    for name in path.split("."):
        if name not in known:
            names = f"its {kind}s: {', '.join(known)}" if known else f"`{owner}` is not a record"
            if not known and kind == "field" and _is_complex(function, layout):
                names = f"its parts: `{owner}.re`, `{owner}.im`"
            raise InputError(
                "I008", f"`{owner}` has no {kind} `{name}`", hint=instead(name, known, names)
            )
        layout = known[name]
        owner, kind = name if kind == "parameter" else f"{owner}.{name}", "field"
        known = dict(layout.fields) if isinstance(layout, Record) else {}
    return layout


def _is_complex(function: Function, layout: Layout) -> bool:
    return isinstance(layout, int) and elem_of(function.registers[layout].type).is_complex
