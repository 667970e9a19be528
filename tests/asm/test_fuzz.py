"""Mutated texts: the assembler accepts them or says what is wrong; nothing else ever happens."""

from __future__ import annotations

import random
import re
import time
from functools import cache
from pathlib import Path

import pytest
from rvm_asm import assemble, disassemble, expand
from sizes import part, sized, thin

from rvm.faults import AssemblyError
from rvm.verify import verify

ROOT = Path(__file__).resolve().parents[2]
CI_TEXTS = 8000
SOAK_TEXTS = 100_000
TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
SPICE = tuple(
    r"""
( ) [ ] { } ' ` # " \\ ; : , . … ... -> ** // << >= ~ @ = end else until loop undo routine for while
if from func macro pure const record include entry extern forward call uncall alloc free local br
cf push pop swap rot add true nan inf not and or as to step fixed( stack[ f64 i64 c128 .re .im .T
0 1 -1 2.5j 1e308 0x 99999999999999999999 3'u8 1'fixed(30) t#1 `x` i.end é ;@ ;! fresh drop
""".replace("\n", " ").split()
)


@cache
def seeds() -> tuple[str, ...]:
    """Whole examples, their single functions with the declarations before, and bad texts."""
    out = []
    for path in sorted((ROOT / "examples").glob("*.rasm")):
        text = path.read_text(encoding="utf-8")
        out.append(text)
        head, *functions = re.split(r"(?m)^(?=func )", text)
        out += [head + f for f in functions] + functions
    errors = Path(__file__).parent / "errors"
    out += [p.read_text(encoding="utf-8") for p in sorted(errors.glob("*.rasm"))]
    return tuple(out)


@cache
def words() -> tuple[str, ...]:
    return (*SPICE, "\n", " ", "\0", *(w for s in seeds() for w in TOKEN.findall(s)))


def mutated(rng: random.Random) -> str:
    """A seed with a few of its tokens lost, replaced, inserted, moved or repeated."""
    tokens = TOKEN.findall(rng.choice(seeds()))
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        k = rng.randrange(len(tokens) + 1)
        far = min(len(tokens), k + rng.randrange(1, 30))
        match rng.randrange(6):
            case 0:
                del tokens[k : k + 1]
            case 1:
                tokens[k : k + 1] = [rng.choice(words())]
            case 2:
                tokens.insert(k, rng.choice(words()))
            case 3:
                del tokens[k:far]
            case 4:
                at = rng.randrange(len(tokens) + 1)
                tokens[at:at] = tokens[k:far]
            case _:
                tokens[k : k + 1] = [c for t in tokens[k : k + 1] for c in (t[::-1], " ")]
        tokens = tokens or ["\n"]
    return "".join(tokens)


def hold(text: str) -> bool:
    """Whether the text assembles; if it does, what it gives is sound and comes back from text."""
    try:
        program = assemble(text)
    except AssemblyError as error:
        assert error.diagnostics
        for d in error.diagnostics:
            assert re.fullmatch(r"[ABP]\d{3}", d.code) and d.message
            assert d.where.line >= 1 and d.where.column >= 1
            assert d.human() and d.short() and d.as_json()
        return False
    assert assemble(disassemble(program)) == program
    strict = expand(program)
    verify(strict)
    return True


def soak(first: int, count: int) -> None:
    accepted = 0
    for seed in range(first, first + count):
        text = mutated(random.Random(seed))
        started = time.thread_time()
        try:
            accepted += hold(text)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{text}")
            raise
        assert time.thread_time() - started < 20, seed
    assert count // 50 < accepted < count  # both ways are taken


@thin
@pytest.mark.parametrize("k", range(8))
@sized
def test_mutated_texts(k: int) -> None:
    soak(k * CI_TEXTS // 8, part(CI_TEXTS // 8))


@pytest.mark.soak
@pytest.mark.parametrize("k", range(8))
def test_many_mutated_texts(k: int) -> None:
    soak(1_000_000 + k * SOAK_TEXTS // 8, SOAK_TEXTS // 8)


@pytest.mark.parametrize("seed", range(60))
def test_random_characters(seed: int) -> None:
    rng = random.Random(seed)
    signs = "abxyz019 \n\t.,:;'\"`#()[]{}+-*/%@&|^~<>=!\\…é\0\r\x0c\u2028"
    text = "func f(x: f64)\n" + "".join(rng.choice(signs) for _ in range(rng.randrange(400)))
    hold(text)
