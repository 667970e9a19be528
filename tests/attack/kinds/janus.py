"""Mutated Janus texts: they make sound programs, or all that is wrong with them is said."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import rvm_janus
from rvm_asm import assemble

from attack.cases import Broken, InputKind
from attack.mutations import NUMBERS, TOKEN, texts, tokens
from rvm.codec import encode
from rvm.faults import AssemblyError

_SPICE = texts(
    """( ) [ ] { } , = <=> += -= ^= != <= >= && || & | ^ ! ~ * ** */ / % << >> ? : // /* */ " '
    procedure main int i8 u64 stack bool true false if then else fi from do loop until push( pop(
    local delocal call uncall skip empty( top( size( show( print( printf( nil assert iterate by to
    end ancilla constant write read error( 2147483648 99999999999999999999999 0b101 0x"""
)
_TEXTS = (
    """procedure p(int x, int a[], stack s)
    local int t = x * 3 + size(a), int u = 0
    a[t & 1] += x ** 2 - (u8) t
    if x > 2 && !empty(s) then x += top(s) else x -= 1 fi x > 2 || empty(s)
    push(t + 1, s) pop(t + 1, s)
    delocal int t = x * 3 + size(a), int u = 0
    uncall q(x, a[0])
procedure q(int x, i32 y)
    iterate int i = 0 by 2 to 8
        y ^= i  x <=> y
    end
    show(x, y) printf("%d", x)
procedure main()
    int x = 4  int a[3] = {1, 2}  stack s  u16 w
    ancilla int h = 5
    call p(x, a, s)  call q(x, h)  call q(x, h)
""",
    """x y a[4]
procedure step if x & 1 then y += a[x / 2] */ 3 fi x & 1  x += y > 2
procedure main_fwd from x = 0 do call step x += 1 loop skip until x >= 9  write a[1]
procedure main_bwd uncall main_fwd
""",
)


@cache
def seeds() -> tuple[str, ...]:
    """Texts of both dialects."""
    folder = Path(__file__).resolve().parents[4] / "examples" / "janus"
    return (*_TEXTS, *(p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.ja*"))))


@cache
def _words() -> tuple[str, ...]:
    return (*_SPICE, *NUMBERS, "\n", " ", "\0", *(w for s in seeds() for w in TOKEN.findall(s)))


def _make(rng: random.Random) -> bytes:
    """A text with a few of its tokens changed."""
    return tokens(rng, rng.choice(seeds()), _words()).encode("utf-8", "surrogatepass")


def _attack(data: bytes, folder: Path) -> bool:
    """Make a program of a text; the assembly text that it stands for gives the same bytes."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        program = rvm_janus.assemble(text)
    except AssemblyError as error:
        for d in error.diagnostics:
            if d.where.line < 1 or d.where.column < 1:
                raise Broken(f"an error {d.code} has no place") from None
        raise
    if encode(assemble(rvm_janus.rasm(text))) != encode(program):
        raise Broken("the assembly text of a Janus program gives other bytes")
    return True


KIND = InputKind("janus", "mutated Janus texts", ".ja", _make, _attack, share=1.0)
