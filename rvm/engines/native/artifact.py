"""The result of compiling, as data stored in a file: machine code, and the data needed to run it.

A file has a line of JSON, followed by the machine code as bytes. Named tuples are used since they
are created faster than dataclasses, and this module is imported for every first call.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from rvm.engines.native.elf import Block
from rvm.types import Array, RegisterType, Scalar, Stack, elem_of, rank_of

STACK = -1
"""Stands for the rank of a stack."""


class Sketch(NamedTuple):
    """The facts about a function that a launch needs, so that its code is not required.

    `whole` are the registers of its own statements on whole arrays; `deep` says that functions
    which it calls have such statements too. `recurs` says that it is recursive.
    `fills` are the array parameters that a run fills if they begin as zeros, see `rvm.ir.fills`.
    """

    types: tuple[RegisterType, ...]
    n_args: int
    whole: frozenset[int] = frozenset()
    deep: bool = False
    recurs: bool = False
    fills: frozenset[int] = frozenset()


class Artifact(NamedTuple):
    """Machine code: a linked block, or else a whole object file for LLVM's linker.

    `symbols` are the C library functions that it calls, by our names; `codes` the functions, with
    their directions (True: undone), to which stopped frames refer by number.
    """

    code: Block | bytes
    symbols: tuple[str, ...]
    codes: tuple[tuple[str, bool], ...]
    sketch: Sketch
    seconds: float

    def encoded(self) -> bytes:
        """The bytes of a file."""
        sketch = self.sketch
        head: dict[str, Any] = {
            "symbols": self.symbols,
            "codes": self.codes,
            "types": [_type_row(t) for t in sketch.types],
            "args": sketch.n_args,
            "whole": sorted(sketch.whole),
            "deep": sketch.deep,
            "recurs": sketch.recurs,
            "fills": sorted(sketch.fills),
            "seconds": self.seconds,
        }
        data = self.code
        if isinstance(data, Block):
            head |= {"entry": data.entry, "table": data.table, "words": data.words}
            data = data.data
        return json.dumps(head).encode() + b"\n" + data


def decoded(raw: bytes) -> Artifact | None:
    """The artifact in a file's bytes; None if they are not an artifact."""
    line, _, data = raw.partition(b"\n")
    try:
        head = json.loads(line)
        sketch = Sketch(
            tuple(_type(*row) for row in head["types"]),
            head["args"],
            frozenset(head["whole"]),
            head["deep"],
            head["recurs"],
            frozenset(head["fills"]),
        )
        code: Block | bytes = data
        if "words" in head:
            code = Block(data, head["entry"], head["table"], tuple(head["words"]))
        codes = tuple((name, undo) for name, undo in head["codes"])
        return Artifact(code, tuple(head["symbols"]), codes, sketch, float(head["seconds"]))
    except (ValueError, KeyError, TypeError):
        return None


def _type_row(t: RegisterType) -> tuple[str, int, int]:
    elem = elem_of(t)
    return elem.name, elem.frac, STACK if isinstance(t, Stack) else rank_of(t)


def _type(name: str, frac: int, rank: int) -> RegisterType:
    elem = Scalar(name, frac)
    if rank == STACK:
        return Stack(elem)
    return Array(elem, rank) if rank else elem
