"""Damaged bytecode: refused, or a program that all engines run alike and that runs back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import rvm
from attack.arguments import arguments
from attack.cases import Broken, InputKind
from attack.programs import blind, sound
from attack.reduction import BYTES, Split
from attack.runs import agree
from attack.surgery import join, mutated, tables
from rvm.codec import decode, encode
from rvm.codec.layout import BY_TAG, TABLES
from rvm.program import Function, Program
from rvm.transform import invert
from rvm.verify import findings, inout_slots, liveness


@cache
def bases() -> tuple[bytes, ...]:
    """Sound files, made of programs of every opcode and of texts."""
    made = [encode(blind.random_program(k, 2 + k % 4)) for k in range(24)]
    made += [encode(rvm.assemble(sound.program(k, None))) for k in range(24)]
    return tuple(made)


def _make(rng: random.Random) -> bytes:
    """A file near a sound one."""
    return mutated(rng, rng.choice(bases()), rng.choice(bases()))


def _attack(data: bytes, folder: Path) -> bool:
    """Read a file; verify, invert and run what it holds."""
    program = decode(data)
    again = encode(program)
    if decode(again) != program or encode(decode(again)) != again:
        raise Broken("a program is not what it is when written and read again")
    if findings(program):
        return False
    if findings(invert(program)):
        raise Broken("the inverse of a sound program is not sound")
    if invert(invert(program)) != program:
        raise Broken("the inverse of the inverse is another program")
    inout_slots(program)
    for f in program.functions:
        if liveness(f).live(len(f.code)) != frozenset(f.param_slots):
            raise Broken("what lives at a function's end is not what it was given")
    for name in list(program)[:3]:
        for wild in (False, True):
            _run(program, name, wild)
    return True


def _run(program: Program, name: str, wild: bool) -> None:
    """Run a function on interpreting engines; arguments that it can't take are an outcome too."""
    values = arguments(program.function(name), random.Random(name), wild)
    try:
        agree(program, name, values, crosswise=not wild)
    except (rvm.InputError, rvm.LimitError):
        return


def _records(data: bytes) -> Sequence[tuple[str, bytes]]:
    found = tables(data)
    out = []
    for table in TABLES:
        tag = table.tag.decode()
        size = BY_TAG[tag].record.size
        out += [(tag, found[tag][k : k + size]) for k in range(0, len(found[tag]), size)]
    return out


def _file(data: bytes, parts: Sequence[tuple[str, bytes]]) -> bytes:
    contents = {t.tag.decode(): b"" for t in TABLES}
    for tag, record in parts:
        contents[tag] += record
    return join(contents)


def _instructions(data: bytes) -> Sequence[tuple[int, int]]:
    """Every instruction by the numbers of its function and its own."""
    program = decode(data)
    return [(f, pc) for f, found in enumerate(program.functions) for pc in range(len(found.code))]


def _program(data: bytes, parts: Sequence[tuple[int, int]]) -> bytes:
    """The program of some of its instructions; jumps whose partner is gone go too."""
    program = decode(data)
    kept: dict[int, list[int]] = {}
    for number_of, pc in parts:
        kept.setdefault(number_of, []).append(pc)
    made: list[Function] = []
    for k, f in enumerate(program.functions):
        here = set(kept.get(k, []))
        jumps = {pc for pc in here if f.code[pc].op in ("br", "cf")}
        stay = [pc for pc in sorted(here) if pc not in jumps or f.code[pc].aux in here]
        number = {pc: n for n, pc in enumerate(stay)}
        code = tuple(
            replace(f.code[pc], aux=number[f.code[pc].aux]) if pc in jumps else f.code[pc]
            for pc in stay
        )
        made.append(replace(f, code=code, spans=()))
    return encode(replace(program, functions=tuple(made), sources=()))


def _functions(data: bytes) -> Sequence[str]:
    return list(decode(data))


def _fewer(data: bytes, parts: Sequence[str]) -> bytes:
    program = decode(data)
    entry = program.entry if program.entry in parts else parts[0]
    kept = tuple(f for f in program.functions if f.name in parts)
    return encode(replace(program, functions=kept, entry=entry))


_SPLITS = (
    Split(_functions, _fewer),
    Split(_instructions, _program),
    Split(_records, _file),
    BYTES,
)

KIND = InputKind(
    "rbc",
    "damaged bytecode, its checksums mended, run on all interpreting engines",
    ".rbc",
    _make,
    _attack,
    _SPLITS,
    share=3.0,
)
