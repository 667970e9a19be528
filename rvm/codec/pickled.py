"""Pickling of programs: as bytecode, with the modules that define their opcodes and functions.

Generic functions are no bytecode, nor are a language's words for messages: what their front end
keeps of them is pickled beside it.

Importing this module registers it with `pickle`.  A program that is unpickled repeatedly, as by
pool workers for every task, is one object with one cache: code compiled for the first task serves
the others.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from rvm.codec.decode import decode
from rvm.codec.encode import encode
from rvm.expr import Apply, walk
from rvm.host.once import once
from rvm.isa import FUNCTIONS, OPCODES
from rvm.program import Program

KEPT = 16
"""The number of recently unpickled programs that are remembered."""

Reduced = tuple[Callable[..., Program], tuple[Any, ...]]


def reduced(program: Program) -> Reduced:
    """The pickled form of a program. BytecodeError B018 if it cannot be stored as bytecode."""

    def made() -> tuple[Any, ...]:
        kept = program.generics, tuple(s.words for s in program.sources)
        is_plain = kept[0] is None and not any(kept[1])
        return encode(program), definers(program), b"" if is_plain else pickle.dumps(kept)

    return revived, once(program.cache, reduced, tuple, made)


@lru_cache(maxsize=KEPT)
def revived(data: bytes, modules: tuple[str, ...], kept: bytes = b"") -> Program:
    """Unpickle a program, after importing the modules that define its opcodes and functions.

    BytecodeError B012, B013 if an opcode or a function is still unknown.
    """
    for module in modules:
        try:
            import_module(module)
        except ImportError:
            # The decoder names what is missing.
            continue
    program = decode(data)
    if not kept:
        return program
    generics, words = pickle.loads(kept)
    sources = tuple(replace(s, words=w) for s, w in zip(program.sources, words, strict=True))
    return replace(program, generics=generics, sources=sources)


def definers(program: Program) -> tuple[str, ...]:
    """The modules of users that define opcodes or functions of a program."""
    found: set[str] = set()
    for f in program.functions:
        for instr in f.code:
            found.add(OPCODES[instr.op].module)
            for arg in instr.args:
                found.update(FUNCTIONS[n.fn].module for n in walk(arg) if isinstance(n, Apply))
    return tuple(sorted(found - {""}))


copyreg.pickle(Program, reduced)
