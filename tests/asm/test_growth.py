"""What assembling takes grows as the text does: counted in calls, which no other load changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from rvm_asm import assemble
from sizes import thin
from work import calls

from rvm.faults import AssemblyError

HEAD = "func f(x: f64, i: i64, a: i64[n])\n"


def lines(form: str, size: int, head: str = HEAD) -> str:
    """As many lines as fill the size, numbered where the form says so."""
    return head + "".join(form.format(k) for k in range(size // len(form)))


TEXTS: dict[str, Callable[[int], str]] = {
    "a long expression": lambda n: HEAD + " add i, 1" + " + i * 3" * (n // 8) + "\n",
    "a long index": lambda n: HEAD + " add i, a[" + "i + " * (n // 4) + "1]\n",
    "many arguments": lambda n: HEAD + " call f(" + "x, " * (n // 3) + "x)\n",
    "many parameters": lambda n: lines("x{}: f64, ", n, "func f(") + "y: f64)\n inc y\n",
    "wrong signs": lambda n: HEAD + " add x, " + "$ " * (n // 2) + "\n",
    "a long name": lambda n: HEAD + " add x, " + "y" * n + "\n",
    "a long comment": lambda n: HEAD + " inc x ;" + "c" * n + "\n",
    "tabs": lambda n: HEAD + "\t" * n + "add x, y\n",
    "blank lines": lambda n: "\n" * n + HEAD + " inc x\n",
    "continued lines": lambda n: HEAD + " add i, 1" + " \\\n + i" * (n // 8) + "\n",
    "open brackets": lambda n: HEAD + " add x, " + "(" * n,
    "instructions": lambda n: lines(" add x, 1.5\n", n),
    "exchanges": lambda n: lines(" swap a[i], a[i + 1]\n", n),
    "functions": lambda n: lines("func g{}(x: f64)\n add x, 1\n", n, ""),
    "functions that call": lambda n: lines("func g{0}(x: f64)\n call f(x, 1, x)\n", n),
    "ancillas": lambda n: lines(" alloc t{0}: f64\n free t{0}\n", n),
    "ancillas never freed": lambda n: lines(" alloc t{}: f64\n", n),
    "ancillas not live": lambda n: lines(" local t{0}: f64\n add t{0}, 1\n", n),
    "ifs": lambda n: lines(" if i > 3\n inc x\n end i > 3\n", n),
    "fors": lambda n: lines(" for k{} = 0 to i\n inc x\n end\n", n),
    "arms": lambda n: lines(" elseif i == {}\n inc x\n", n, HEAD + " if i == 0\n") + " end\n",
    "routines": lambda n: lines(" routine r{0}\n inc i\n end\n undo r{0}\n", n),
    "macros": lambda n: lines("macro m{} y\n inc y\nend\n", n, "") + HEAD + " inc x\n",
    "uses of a macro": lambda n: lines(" m x\n", n, "macro m y\n inc y\nend\n" + HEAD),
    "constants": lambda n: lines("const c{} = 3\n", n, "") + HEAD + " inc x\n",
    "records": lambda n: lines("record R{}\n a: f64\nend\n", n, "") + HEAD + " inc x\n",
    "labels without partners": lambda n: lines("l{0}: cf i == 1, m{0}\n", n),
    "labels that stand twice": lambda n: lines("l: inc i\n", n),
    "unknown names": lambda n: lines(" add x, z{}\n", n),
    "unknown instructions": lambda n: lines(" op{} x\n", n),
    "unknown functions": lambda n: lines(" call g{}(x)\n", n),
    "aliases": lambda n: lines(" add x, x + {}\n", n),
    "aliases on one line": lambda n: HEAD + " add x, x" + " + x" * (min(n, 9000) // 4) + "\n",
    "functions that stand twice": lambda n: lines("func f(x: f64)\n", n, ""),
    "position comments": lambda n: lines(" add x, 1 ;@ 1:2-3\n", n),
    "includes": lambda n: lines('include "x{}"\n', n, ""),
}


def assembled(text: str) -> None:
    """Assemble a text, and show what is wrong with it."""
    try:
        assemble(text)
    except AssemblyError as error:
        str(error)


@thin
@pytest.mark.parametrize("name", TEXTS)
def test_growth(name: str) -> None:
    assembled(TEXTS[name](300))  # what is made once
    small, large = (calls(lambda n=n: assembled(TEXTS[name](n))) for n in (1_500, 9_000))
    assert large < 7.5 * small + 15_000, (small, large)


LITTLE = (
    "blank lines",
    "continued lines of nothing",
    "a long comment",
    "comments",
    "tabs",
    "a long name",
    "a long string",
    "escapes",
)
"""Texts with little in them, however long they are."""


@thin
@pytest.mark.skipif(sys.platform != "linux", reason="Linux says what the peak was")
@pytest.mark.parametrize("name", LITTLE)
def test_memory_is_in_proportion_to_what_a_text_says(name: str) -> None:
    """The regular expressions' own stacks are not traced: those are measured by the process."""
    make = TEXTS.get(name) or {
        "continued lines of nothing": lambda n: "\\\n" * (n // 2),
        "comments": lambda n: "; c\n" * (n // 4),
        "a long string": lambda n: HEAD + ' print "' + "s" * n + '"\n',
        "escapes": lambda n: HEAD + ' print "' + "\\n" * (n // 2) + '"\n',
    }.__getitem__(name)
    done = subprocess.run(
        [sys.executable, "-c", PEAK], input=make(2_000_000), capture_output=True, text=True
    )
    assert done.stderr == ""
    assert int(done.stdout) < 100 * 2_000_000 // 1024


PEAK = """
import sys
from rvm_asm import assemble
from rvm.faults import AssemblyError
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
text = sys.stdin.read()
assemble("func f(x: i64)")
before = peak()
try:
    assemble(text)
except AssemblyError as error:
    str(error)
print(peak() - before)
"""
