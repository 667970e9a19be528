"""Mutated scripts of debugger commands: each command does something, or says what is wrong."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rvm_tools.debug.console import Console, load_commands
from rvm_tools.debug.session import Session

import rvm
from attack.cases import Broken, InputKind, sound
from attack.mutations import NUMBERS, tokens
from attack.reduction import BYTES, LINES
from rvm.program import Program
from rvm.state import Options

TEXT = """\
record Body
    pos: f64
    spin: i64
end

func main(a: i64[n], k: i64, p: Body, z: c128, s: stack[i64], b: bool)
    for i = 0 to n - 1
        add a[i], k * i
        if a[i] > 3
            call twist(p, k)
            push a[i], s
            pop a[i], s
        end
    end
    extern both
        print "k is {}", k
    end
    add z.re, p.pos
    not b

func twist(q: Body, k: i64)
    alloc t: f64 = q.pos * 2.0
    add q.spin, k
    if k > 0
        call twist(q, k - 1)
    end
    free t = q.pos * 2.0
"""
_INPUTS: dict[str, Any] = {
    "a": np.array([1, 2, 3, 4]),
    "k": 2,
    "p": {"pos": 1.5, "spin": 2},
    "z": 1 + 2j,
    "s": [7],
    "b": True,
}
_COMMANDS = """\
s
rs
n 3
rn
si 5
rsi
fin
rfin
c
rc
goto 20
goto 50%
+3
-4
end
start
b 8 if a[i] > 3
b twist
tb 9
tp 9 "k is {k}"
watch a[2]
watch p.spin if k == 1
rwatch k
del 1
disable 1
enable 1
info regs
info b
info frames
info pairs
info energy
last a[1]
next p.spin
origin a[3]
p a[1] + k
p p
p z.re * 2
p sqrt(p.pos)
p s
x a
x s
disp k
undisp k
bt
up
down
frame 0
l
l twist
dis
dis twist
inverse
set k = 3
set a[1] = 7
set p.pos = nan
mark here
goto @here
erased
energy
prof start end
restart
help
help origin
q
""".splitlines()
_FILES = re.compile(r"\b(sa|so|exp)", re.I)
"""Commands that name files are left out: their names are mutated too."""


@cache
def _program() -> Program:
    return rvm.assemble(TEXT, "session.rasm").program


@cache
def _words() -> tuple[str, ...]:
    """What stands in commands."""
    names = [n for n in load_commands() if not _FILES.match(n)]
    signs = "a k p.pos p.spin z s b i t q twist main if a[ ] [ ( ) \" ' { } @here % , + - * == = #"
    return (*NUMBERS, *names, *signs.split(), "\0", "é", "7:3", "10**9", "1e6", "nan")


def _make(rng: random.Random) -> bytes:
    """Ten or twenty commands, some of them damaged."""
    lines = []
    for _ in range(rng.randrange(3, 16)):
        line = rng.choice(_COMMANDS)
        lines.append(tokens(rng, line, _words(), 3) if rng.random() < 0.5 else line)
    text = "\n".join(k for k in "\n".join(lines).split("\n") if not _FILES.search(k))
    return text.encode("utf-8", "replace")


def _attack(data: bytes, folder: Path) -> bool:
    """Run a script; after it the session still comes to its start and its end."""
    options = Options(max_steps=3_000, max_memory=1_000_000)
    session = Session(_program(), "main", _INPUTS, options, say=lambda line: None)
    console = Console(session)
    done = False
    for line in data.decode("utf-8", "replace").splitlines():
        if console.finished or _FILES.search(line):
            continue
        answer = console.execute(line)
        answer.as_json()
        console.prompt()
        if answer.error is not None:
            sound(answer.error)
        else:
            done = True
    if session.diverged is None:
        session.goto(0)
        if session.time != 0:
            raise Broken("a session does not come back to its start")
        fresh = Session(_program(), "main", _INPUTS, options, say=lambda line: None)
        if repr(session.machine.result) != repr(fresh.machine.result):
            raise Broken("a session's start is another one than it was")
    return done


KIND = InputKind(
    "sessions", "mutated scripts of the debugger", ".rdb", _make, _attack, (LINES, BYTES), share=0.6
)
