"""User-defined number types: a row of storage and kind, and a number system where needed."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import chain

from rvm.expr import Apply, Place
from rvm.faults import DefinitionError
from rvm.host.once import enter, one_by_one, taken
from rvm.isa.implementation import array_value, implementation, value
from rvm.isa.proof import UPDATES, prove_inverse
from rvm.isa.rows import FUNCTIONS, OPCODES
from rvm.isa.rules import CLASSES, offers
from rvm.isa.trials import Undecided, is_restored, starts, there_and_back
from rvm.numbers import SYSTEMS, NumberSystem, system
from rvm.types import SCALARS, TYPES, Scalar, TypeRow, integer


@one_by_one
def number_type(row: TypeRow, make: Callable[[Scalar], NumberSystem] | None = None) -> Scalar:
    """Register a number type; from then on all texts, files and engines know it.

    Without `make` it is an integer, whose row is that of `integer("u16")`.
    DefinitionError D014 if the name is taken, the row is wrong, or an update of its number system
    cannot be undone; then nothing is registered.
    """
    known = row.name in FUNCTIONS or taken(TYPES, row.name) or row.name == "stack"
    if known or not row.name.isidentifier():
        raise DefinitionError("D014", f"`{row.name}` cannot be the name of a type", hint=NAMES)
    if (row.dtype, row.llvm, row.letter) not in STORAGE:
        raise DefinitionError(
            "D014",
            f"{row.name}: no shipped type has the storage `{row.dtype}`, `{row.llvm}` and "
            f"`{row.letter}`",
            hint="known: " + ", ".join(f"{d} {llvm} {c}" for d, llvm, c in sorted(STORAGE)),
        )
    if not 0 < row.bits <= 8 * row.bytes:
        raise DefinitionError("D014", f"{row.name}: {row.bits} bits do not fit `{row.dtype}`")
    if row.derivative not in ("", row.name, *TYPES):
        raise DefinitionError("D014", f"{row.name}: there is no type `{row.derivative}`")
    if make is None and not _is_integer(row):
        raise DefinitionError(
            "D014",
            f"{row.name}: without a number system, a type is an integer of 8, 16, 32 or 64 bits",
            hint='give `number_type` the class of its number system, or `integer("u16")` alone',
        )
    forget(row.name)
    enter(TYPES, row.name, row)
    if make is not None:
        SYSTEMS[row.name] = make
    t = SCALARS[row.name] = Scalar(row.name)
    try:
        for update in sorted(system(t).updates):
            _prove_update(t, update)
        for opcode in OPCODES.values():
            if opcode.is_data and CLASSES[opcode.types](t):
                prove_inverse(opcode, OPCODES[opcode.inverse_on(t)], t)
    except BaseException:
        forget(row.name)
        raise
    return t


NAMES = "a name that no type and no function has"
STORAGE = frozenset((row.dtype, row.llvm, row.letter) for row in TYPES.values())
"""How the shipped types are stored: engines know the storage of no others."""


def _is_integer(row: TypeRow) -> bool:
    """Whether a row is that of an integer type by its name."""
    try:
        return row == integer(row.name)
    except (KeyError, ValueError):
        return False


def forget(name: str) -> None:
    """Remove a user's type from the tables, and what was derived from it."""
    for table in (TYPES, SYSTEMS, SCALARS):
        table.pop(name, None)
    for cached in (system, offers, implementation, value, array_value):
        cached.cache_clear()


def _prove_update(t: Scalar, update: str) -> None:
    """Raise DefinitionError D014 if an update is not undone by its inverse."""
    there, back = UPDATES[update]
    numbers, rng = system(t), random.Random(t.name)
    for f in (there, back):
        if numbers.code(f, (t, t)) is None:
            raise DefinitionError(
                "D014",
                f"`{update}` on {t} cannot be undone: "
                + (
                    f"`{there}` has no inverse, for {t} has no `{back}`"
                    if f == back
                    else f"{t} has no `{f}`"
                ),
                hint=f"leave `{update}` out of its updates; `{there}` may be used in expressions",
            )
    here = Place(0, (), t), Place(1, (), t)
    forth, again = ((Apply(f, here, t), here[1]) for f in (there, back))
    for start in chain(*(starts(rng, (t, t), ()) for _ in range(4))):
        if numbers.factors == "nonzero" and update == "mul" and not start[1]:
            continue
        try:
            middle, end = there_and_back(forth, again, start)
        except Undecided:
            continue
        if not is_restored(t, forth, again, start, middle, end):
            a, b = start
            raise DefinitionError(
                "D014",
                f"`{update}` on {t} cannot be undone: {a} {there} {b} is {middle[0]}, and "
                f"{middle[0]} {back} {b} is {end[0]}, not {a}",
                hint=f"leave `{update}` out of its updates; `{there}` may be used in expressions",
            )
