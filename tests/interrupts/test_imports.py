"""Ctrl-C at any line of a look-up that imports: nothing is half made, and the next one succeeds."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sizes import part, sized, thin, wide

import rvm
from rvm.isa import FUNCTIONS, OPCODES
from rvm.numbers.support import NAMES

pytestmark = sized

PROGRAM = """
func f(x: f64, y: i64, a: f64[n])
    for i = 1 to 3
        add x, a[0] * 0.5
        add y, i
    end
    rot a[0], a[1], 0.25
"""
DEFINITIONS = """
import rvm

@rvm.opcode(inverse="unshear")
def shear(a: rvm.Mut, b: rvm.Use):
    a += 3 * b

@rvm.opcode(inverse="shear")
def unshear(a: rvm.Mut, b: rvm.Use):
    a -= 3 * b

@rvm.function
def thrice(x):
    return x + x + x
"""
DRIVER = """
import os, sys, traceback
import numpy as np

def inputs():
    return {"x": 1.0, "y": 2, "a": np.array([1.0, 2.0])}

def words():
    import rvm
    return repr([rvm.f64, rvm.rot, rvm.sin, rvm.i8, rvm.Options(), rvm.Fixed(3), len(dir(rvm))])

def module():
    import rvm
    rvm.install_import_hook()
    import program
    return repr(program.f(**inputs()))

def gradient():
    import rvm
    return repr(rvm.load(sys.path[0] + "/program.rasm").f.grad(loss="x", **inputs()))

def reversible():
    import rvm
    f = rvm.reversible.source("def f(x, n):\\n    for i in range(n):\\n        x += i * 0.5\\n")
    return repr(f(1.0, 3))

def definitions():
    import definitions, rvm
    text = "alloc t: f64 = 2\\n shear x, t\\n add x, thrice(t)\\n free t = 2\\n"
    f = rvm.assemble("func f(x: f64)\\n " + text).f
    return repr([f(1.0), f.grad(x=1.0, loss="x")])

class Injector:
    def __init__(self, at):
        self.at, self.seen = at, 0

    def trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            self.seen += 1
            if self.seen == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.trace

def attempt(look, at):
    injector = Injector(at)
    sys.settrace(injector.trace)
    try:
        look()
        came = ""
    except KeyboardInterrupt:
        came = "interrupted"
    finally:
        sys.settrace(None)
    return injector.seen, came, look(), module()

def forked(look, at):
    read, write = os.pipe()
    if not os.fork():
        try:
            told = repr(attempt(look, at))
        except BaseException:
            told = repr((0, "failed", traceback.format_exc()))
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        told = eval(pipe.read())
    os.wait()
    return told

name, seeds, OURS = sys.argv[1], sys.argv[2].split(","), tuple(sys.argv[3:])
look = globals()[name]
lines, came, *wanted = forked(look, -1)
assert not came, wanted
for seed in map(float, seeds):
    at = 1 + int(seed * lines)
    _, came, *found = forked(look, at)
    assert came != "failed" and found == wanted, (at, *found)
    print(came)
"""


@wide
@thin
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each try is a fork")
@pytest.mark.parametrize("name", ["words", "module", "gradient", "reversible", "definitions"])
def test_ctrl_c_at_any_line_of_an_import(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.rasm").write_text(PROGRAM)
    (tmp_path / "definitions.py").write_text(DEFINITIONS)
    (tmp_path / "driver.py").write_text(DRIVER)
    rng = random.Random(name)
    seeds = ",".join(str(rng.random()) for _ in range(part(60)))
    home = Path(rvm.__file__).parent.parent
    # Not in the lines of importlib: Python itself may leave a module half imported there.
    ours = [*(str(home / part) for part in ("rvm", "asm")), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "driver.py", name, seeds, *ours],
        cwd=tmp_path,
        env=os.environ | {"RVM_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "interrupted" in done.stdout


BROKEN_OFF = """
import rvm
from rvm.isa import FUNCTIONS, OPCODES
from rvm.numbers.support import name

@name
def broken_helper(): return {0}

@rvm.function(name="broken_function")
def function(x): return x + {0}

@rvm.opcode(name="broken_opcode", inverse="mended_opcode", types="int")
def opcode(a: rvm.Mut): a += {0}

{1}
@rvm.opcode(name="mended_opcode", inverse="broken_opcode", types="int")
def undo(a: rvm.Mut): a -= {0}
"""


@pytest.fixture
def _clean_tables() -> Iterator[None]:
    yield
    for table in (NAMES, FUNCTIONS, OPCODES):
        for name in [name for name in table if name.startswith(("broken_", "mended_"))]:
            del table[name]


@pytest.mark.usefixtures("_clean_tables")
def test_a_module_that_was_broken_off_defines_everything_again() -> None:
    def run(module: str, k: int, end: str = "") -> None:
        exec(compile(BROKEN_OFF.format(k, end), module, "exec"), {"__name__": module})

    for k in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            run("one", k, "raise KeyboardInterrupt")
    # What the second run defined is no partner of what the third one defines.
    run("one", 3)
    assert NAMES["broken_helper"]() == 3
    f = rvm.assemble("func f(x: i64, y: f64)\n broken_opcode x\n add y, broken_function(1.0)\n").f
    assert f(8, 0.0) == {"x": 11, "y": 4}
    assert (~f)(**f(8, 0.0)) == {"x": 8, "y": 0}
    with pytest.raises(ValueError, match="is taken"):
        run("another", 4)
    assert NAMES["broken_helper"]() == 3
