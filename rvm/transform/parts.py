"""The parts of arrays that a piece of code changes, as far as its text shows.

They are places whose indices are constant throughout the piece, so that they can be named before
and after it.  Changes that callees make to their parameters are expressed in the caller's terms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rvm.expr import Apply, Const, Expr, Index, Part, Place, index_places, rebuild
from rvm.isa import FUNCTIONS, lower
from rvm.program import Function, Program
from rvm.stmt import Call, Stmt, When, writes
from rvm.types import Array, Scalar
from rvm.verify.pieces import closed

MOST = 4
"""The largest number of parts; an array with more changed parts is taken as a whole."""
Parts = Mapping[Place, bool]
"""Places, and whether code always reaches them."""


class ChangedParts:
    """The changes made by the functions of a program."""

    def __init__(self, program: Program, inout: Mapping[str, Collection[int]]) -> None:
        self._program = program
        self._inout = inout
        self._known: dict[tuple[str, int], Parts | None] = {}

    def of(self, f: Function, reg: int, start: int, end: int) -> Parts | None:
        """The parts of an array changed by code between two positions; None: all of it.

        Parts that the code does not always reach are elements with known indices.
        """
        if not isinstance(f.registers[reg].type, Array):
            return None
        changed, found = {reg}, dict[Place, bool]()
        at = start
        while at < end:
            behind = closed(f.code, at)
            for instr in f.code[at:behind]:
                for stmt in lower(instr):
                    changed |= {p.reg for p in writes(stmt, self._inout)}
                    for place, always in self._changed_by(stmt, reg):
                        found[place] = found.get(place, False) or (always and behind == at + 1)
            at = behind
        if not 0 < len(found) <= MOST:
            return None
        for place, always in found.items():
            named = any(isinstance(step, (Index, Part)) for step in place.path)
            moves = any(p.reg in changed for p in index_places(place))
            if not named or moves or not (always or has_a_value(place)):
                return None
        return found

    def _changed_by(self, stmt: Stmt, reg: int) -> Iterator[tuple[Place, bool]]:
        """The places in a register that a statement may change, and whether it always does."""
        match stmt:
            case When(_, body):
                for inner in body:
                    for place, _ in self._changed_by(inner, reg):
                        yield place, False
            case Call(callee, args):
                for k in self._inout[callee]:
                    arg = args[k]
                    if isinstance(arg, Place) and arg.reg == reg:
                        yield from self._changed_in(callee, k, args, arg)
            case _:
                yield from ((place, True) for place in writes(stmt) if place.reg == reg)

    def _changed_in(
        self, callee: str, k: int, args: Sequence[Expr], arg: Place
    ) -> Iterator[tuple[Place, bool]]:
        key = callee, k
        if key not in self._known:
            # A function that calls itself may change anything.
            self._known[key] = None
            self._known[key] = self._of_parameter(self._program.function(callee), k)
        parts = self._known[key]
        if parts is None:
            yield arg, True
            return
        for place, always in parts.items():
            inside = _passed(place, args)
            yield (arg, True) if inside is None else (inside, always)

    def _of_parameter(self, f: Function, k: int) -> Parts | None:
        parts = self.of(f, k, 0, len(f.code))
        if parts is None:
            return None
        own = any(p.reg >= f.n_args for place in parts for p in index_places(place))
        return None if own else parts


def _passed(place: Place, args: Sequence[Expr]) -> Place | None:
    """A place in a parameter as one of the caller's; None if it has no such text."""
    unknown = False

    def passed(node: Expr) -> Expr:
        nonlocal unknown
        inside = rebuild(node, passed)
        if not isinstance(inside, Place):
            return inside
        arg = args[inside.reg]
        if not inside.path:
            return arg
        unknown |= not isinstance(arg, Place)
        path = arg.path if isinstance(arg, Place) else ()
        return Place(getattr(arg, "reg", 0), (*path, *inside.path), inside.type)

    found = passed(place)
    return found if isinstance(found, Place) and not unknown else None


def has_a_value(place: Place) -> bool:
    """Whether finding a place can fail only as its indices may be outside of its array."""
    match place.path:
        case (Index(items),) | (Index(items), Part()):
            return isinstance(place.type, Scalar) and all(map(_is_total, items))
    return False


def _is_total(node: object) -> bool:
    match node:
        case Const() | Place(_, ()):
            return True
        case Apply(fn, args):
            row = FUNCTIONS[fn]
            total = isinstance(node.type, Scalar) and not (row.partial or row.contracts)
            return total and all(map(_is_total, args))
    return False
