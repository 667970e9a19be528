"""Values as the command line takes them: read into a parameter's type, or refused."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from rvm_tools.values import assignments, inputs_for

import rvm
from attack.cases import Broken, InputKind
from attack.mutations import NUMBERS, texts, tokens
from rvm.program import Function
from rvm.run.binding import bind

_TYPES = texts("bool i32 i64 u8 u32 u64 f32 f64 c128 fixed fixed(30) log64")
_SAMPLES = texts(
    """3 -1 0.5 1e308 inf nan true false 2+1j -0.5j (1.0,-0.0)'c128 3'u8 0.1'f32 1'fixed(30)
    -0.5'log64 [1,2.5] [[1,2],[3,4]] [] [[]] {pos:1.5,spin:2} [{pos:1,spin:2},{pos:2,spin:3}]
    zeros(3) ones(2,3) range(4) 0xff 0b101 1_000 {'pos':1,"spin":2} [1,[2,[3]]] zeros(0)"""
)
_WORDS = (
    *(*NUMBERS, *_SAMPLES, " ", "\0"),
    *texts("[ ] { } ( ) , : = ' \" j + - . @ _ 'f64 'c128 'fixed 'fixed(99) 'u8 zeros( range( pos"),
    *texts("x.pos é"),
)


@cache
def functions() -> tuple[Function, ...]:
    """A function of one parameter, called x, for every form of type."""
    texts = [f"func f(x: {t})\n    swap x, x\n" for t in _TYPES]
    texts += [f"func f(x: {t}[n])\n    swap x[0], x[0]\n" for t in _TYPES]
    texts += [f"func f(x: {t}[m, n])\n    swap x[0, 0], x[0, 0]\n" for t in ("f64", "i64", "c128")]
    texts += [f"func f(x: stack[{t}])\n    alloc t: i64\n    free t\n" for t in _TYPES]
    record = "record Body\n    pos: f64\n    spin: i64\nend\n"
    texts += [record + f"func f(x: Body{more})\n    swap x, x\n" for more in ("", "[n]")]
    return tuple(rvm.assemble(t).program.function("f") for t in texts)


def _make(rng: random.Random) -> bytes:
    """The number of a function, and words for it."""
    words = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        text = rng.choice(_SAMPLES)
        if rng.random() < 0.8:
            text = tokens(rng, text, _WORDS, 3)
        words.append(rng.choice(("x=", "x=", "x=", "x=", "x.pos=", "x.spin=", "y=", "")) + text)
    return "\n".join([str(rng.randrange(len(functions()))), *words]).encode("utf-8", "replace")


def _attack(data: bytes, folder: Path) -> bool:
    """Read the words as values, and bind them to the parameter."""
    number, *words = data.decode("utf-8", "replace").split("\n")
    function = functions()[int(number) % len(functions())]
    values = inputs_for(function, assignments(words, folder), folder)
    regs = bind(function, values, frozenset({0}))
    if len(regs) != len(function.registers):
        raise Broken("not every register has a value")
    return True


KIND = InputKind("values", "values of the command line", ".txt", _make, _attack, share=0.2)
