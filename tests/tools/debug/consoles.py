"""Consoles of sessions on small programs, for the tests of the debugger."""

from __future__ import annotations

from pathlib import Path

from rvm_tools.debug import Session
from rvm_tools.debug.console import Console

import rvm

CORPUS = Path(__file__).parent


LOOP = """\
func walk(x: i64, y: i64, n: i64)
    for i = 1 to n
        add x, y ^ i
        xor y, x >> 3
    end
"""


RECURSIVE = """\
func main(n: i64, out: i64)
    call fib(n, out)
    add n, 1
    uncall fib(n, out)

func fib(n: i64, out: i64)
    if n < 2, n < 2
        add out, n
    else
        alloc k: i64 = n - 1
        call fib(k, out)
        sub k, 1
        call fib(k, out)
        free k = n - 2
    end
"""


def console_of(text: str, function: str, **inputs: object) -> Console:
    return Console(Session(rvm.assemble(text, "text.rasm"), function, inputs))
