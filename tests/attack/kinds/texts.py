"""Mutated assembly texts: they assemble, or all that is wrong with them is said."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from rvm_asm import assemble, disassemble, expand

from attack.cases import Broken, InputKind
from attack.mutations import NUMBERS, TOKEN, tokens
from attack.programs import loops, smooth, sound
from rvm.faults import AssemblyError
from rvm.verify import verify

_SPICE = tuple(
    r"""
( ) [ ] { } ' ` # " \\ ; : , . … ... -> ** // << >= ~ @ = end else until loop undo routine for while
if from func macro pure const record include entry extern forward call uncall alloc free local br
cf push pop swap rot add true nan inf not and or as to step fixed( stack[ f64 i64 c128 .re .im .T
0 1 -1 2.5j 1e308 0x 99999999999999999999 3'u8 1'fixed(30) t#1 `x` i.end é ;@ ;! fresh drop
iterate select( sum( len( top( empty( .top .len [T:real] [T] func(T) with
replace result dim( dot( matmul gather( \0 ٣ (1.0,-0.0)'c128 const pi/0 2**9999
""".replace("\n", " ").split()
)
_SAMPLES = """\
const N = 3 + 1
pure sq(a) = a * a
record Body
    pos: f64[3]
    m: f64
end
macro step(x, y)
    add x, sq(y)
end
entry main
func main(b: Body[n], A: f64[n, n], s: stack[i64], z: c128, k: i64)
    local t: f64
    alloc t = b[0].m + A.T[0, N - N]
    step(z.re, t)
    extern forward
        print "k is {}", k
        assert k < N, "k", k
    end
    push k, s
    from k == 0
        inc k
    loop
        neg z
    until k == N
    pop k, s
    swap A[0, :], A[n - 1, :]
    free t = b[0].m + A.T[0, 0]

func jumps(x: i64, y: i64)
    br x > 0, L
    inc y
L:  cf x > 0
T:  cf y != 0, U
    inc y
U:  br y < 5, T
"""


@cache
def seeds() -> tuple[str, ...]:
    """Whole texts, and their single functions with the declarations before them."""
    texts = [_SAMPLES, _SAMPLES]
    texts += [sound.program(k, None) for k in range(40)]
    texts += [sound.program(k) for k in range(4)]
    texts += [smooth.program(k) for k in range(4)]
    texts += [loops.RandomLoop(k).text for k in range(8)]
    root = Path(__file__).resolve().parents[4]
    for folder in ("examples", "tests/asm/errors", "tests/programs"):
        found = sorted((root / folder).glob("*.rasm"))
        texts += [p.read_text(encoding="utf-8") for p in found]
    out = []
    for text in texts:
        head, *functions = re.split(r"(?m)^(?=func )", text)
        out += [text, *(head + f for f in functions)]
    return tuple(out)


@cache
def _words() -> tuple[str, ...]:
    """What tokens are replaced by: those of all texts, and others."""
    return (*_SPICE, *NUMBERS, "\n", " ", "\0", *(w for s in seeds() for w in TOKEN.findall(s)))


_SIGNS = "abxyz019 \n\t.,:;'\"`#()[]{}+-*/%@&|^~<>=!\\…é\0\r\x0c\u2028"


def _make(rng: random.Random) -> bytes:
    """A text with a few of its tokens changed; now and then one of any characters."""
    if rng.random() < 0.03:
        noise = "".join(rng.choice(_SIGNS) for _ in range(rng.randrange(400)))
        return ("func f(x: f64)\n" + noise).encode()
    text = tokens(rng, rng.choice(seeds()), _words())
    return text.replace("include", "incl").encode("utf-8", "surrogatepass")


def _attack(data: bytes, folder: Path) -> bool:
    """Assemble a text; what it gives is sound, and comes back from its own text."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        program = assemble(text)
    except AssemblyError as error:
        for d in error.diagnostics:
            if d.where.line < 1 or d.where.column < 1:
                raise Broken(f"an error {d.code} has no place") from None
        raise
    if assemble(disassemble(program)) != program:
        raise Broken("a program's own text gives another program")
    verify(expand(program))
    return True


KIND = InputKind("texts", "mutated assembly texts", ".rasm", _make, _attack, share=2.0)
