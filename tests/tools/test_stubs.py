"""Stubs say to type checkers what calls do when they run: what is right passes, else not."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from sizes import wide
from tools.running import KINDS, NORM, golden, rvm

from rvm import AssemblyError, InputError, Options, assemble, install_import_hook
from rvm.library.typed import RunOptions
from rvm.registry import ENGINES

GENERIC = """
; The sum of two,
; one of them scaled.
func axpy[T: real](y: T[n], a: T, x: T[n])
    add y, a * x

func plain(x: u8[n], self: i64, y: f64 = 0, s: stack[f64], k: i32)
    add x[0], 1

func late(y: f64 = 0, k: i32)
    inc k
"""
RIGHT = """
import numpy as np
import rvm
rvm.install_import_hook()
import generic
import kinds
import norm

x = np.array([3.0, 4.0])
out = norm.norm(r=0, y=0.0, x=x, strict=True)
length: float = (~norm.norm)(out).y
back = (~norm.norm)(0.0, np.float64(0), x=x).x.sum()
slope: float = norm.norm.grad(loss="r", wrt=["x"], r=0.0, y=0.0, x=x).x[0]
loss, slopes = norm.norm.with_options(engine="python").value_and_grad(loss="r", r=0, y=0, x=x)
seen = norm.norm.machine(r=0, y=0, x=x).run()["x"]
bits = out.info.erased_bits
a = np.zeros((2, 3), dtype=np.int64)
found = kinds.kinds(b=True, u=1, z=1j, q=1.5, g=2.0, p={"pos": 0.5, "spin": 1}, a=a, s=[1])
where: float = found.p.pos + found.z.real
generic.axpy(y=x.copy(), a=2.0, x=x)
generic.late(k=1).y
generic.late(1.0, 2).k + generic.late(y=1.0, k=2).k + generic.late(1.0, k=2).k
pulled = norm.norm.pullback(r=0, y=0, x=x)
pulled.seed("r")
there, dots = norm.norm.jvp({"x": x}, r=0, y=0, x=x)
slope = dots.r + norm.norm.vjp({"r": 1.0}, r=0, y=0, x=x).x[0]
rows = norm.norm.jacobian(of=["r"], r=0, y=0, x=x)["r"]
curves = norm.norm.hessian(loss="r", r=0, y=0, x=x, method="taylor")
slope += norm.norm.hvp({"x": x}, loss="r", r=0, y=0, x=x).x[0]
many = norm.norm.map(r=0, y=0, x=np.ones((3, 2)), block=2, on_error="return").errors
some = norm.norm.map.grad(loss="r", r=0, y=0, x=np.ones((3, 2)))
handle: rvm.FunctionHandle = norm.norm
"""
WRONG = """
import numpy as np
import generic
import kinds
import norm

x = np.array([3.0, 4.0])
short = x.astype(np.float32)
norm.nrom                                                   # wrong
norm.norm(r=0.0, y="a", x=x)                                # wrong
norm.norm(r=0.0, y=0.0, x=x, z=1)                           # wrong
norm.norm(r=0.0, y=0.0, x=x).lenght                         # wrong
norm.norm(r=0.0, y=0.0, x=short)                            # wrong
norm.norm(r=0.0, x=x)                                       # wrong
norm.norm.with_options(stirct=True)                         # wrong
norm.norm.grad(loss="r", r=0.0, y=0.0, z=x)                 # wrong
norm.norm.grad(loss="r", r=0.0, y=0.0, x=x).z               # wrong
(~norm.norm)(r=0.0, y=[], x=x)                              # wrong
generic.axpy(y=x, b=2.0, x=x)                               # wrong
generic.axpy(y=x, a="2.0", x=x)                             # wrong
generic.late(k=1.5)                                         # wrong
generic.late()                                              # wrong
generic.late(1.0)                                           # wrong
norm.norm.pullback(r=0.0, y=0.0, z=x)                       # wrong
norm.norm.pullback(r=0.0, y=0.0, x=x).sed("r")              # wrong
norm.norm.jvp({"x": x}, r=0.0, y="a", x=x)                  # wrong
norm.norm.jvp({"x": x}, r=0.0, y=0.0, x=x)[1].z             # wrong
norm.norm.vjp({"r": 1.0}, r=0.0, y=0.0, x=x, wrt=3)         # wrong
norm.norm.jacobian(off=["r"], r=0.0, y=0.0, x=x)            # wrong
norm.norm.hessian(r=0.0, y=0.0, x=x)                        # wrong
norm.norm.hvp({"x": x}, loss="r", r=0.0, y=0.0, xs=x)       # wrong
norm.norm.map(r=0.0, y=0.0, xs=x)                           # wrong
norm.norm.map.grad(loss="r", r=0.0, y=0.0, xs=x)            # wrong
norm.norm.map(r=0.0, y=0.0, x=x, blocks=2)                  # wrong
norm.norm.map(r=0.0, y=0.0, x=x, on_error="back")           # wrong
norm.norm(r=0.0, y=0.0, x=x, on_error="return")             # wrong
norm.norm.with_options(engine="natve")                      # wrong
norm.norm.with_options(bits="exact")                        # wrong
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in (("norm", NORM), ("kinds", KINDS), ("generic", GENERIC)):
        (tmp_path / f"{name}.rasm").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    return tmp_path


@wide
def test_what_runs_passes_a_type_checker_and_mistakes_do_not(here: Path) -> None:
    pytest.importorskip("mypy")
    rvm("stubs", "norm.rasm", "kinds.rasm", "generic.rasm")
    (here / "right.py").write_text(RIGHT)
    (here / "wrong.py").write_text(WRONG)
    stubs = [f"{name}.pyi" for name in ("norm", "kinds", "generic")]
    command = [sys.executable, "-m", "mypy", "--strict", "right.py", "wrong.py", *stubs]
    said = subprocess.run(command, capture_output=True, text=True, cwd=here).stdout
    found = re.findall(r"^(\S+?):(\d+): error", said, re.M)
    wrong = [n for n, line in enumerate(WRONG.splitlines(), 1) if "# wrong" in line]
    assert sorted({(file, int(line)) for file, line in found}) == [("wrong.py", n) for n in wrong]
    exec(compile(RIGHT, "right.py", "exec"), {})  # what passes runs


def test_a_stub_is_kept_to_its_program(here: Path) -> None:
    assert "norm.pyi is missing" in rvm("stubs", "--check", "norm.rasm", code=1).stderr
    rvm("stubs", "norm.rasm")
    rvm("stubs", "--check", "norm.rasm")
    golden("stubs", (here / "norm.pyi").read_text())
    (here / "norm.rasm").write_text(NORM + "\nfunc other(k: i64)\n    inc k\n")
    assert "is out of date" in rvm("stubs", "--check", "norm.rasm", code=1).stderr
    (here / "norm.pyi").write_text("norm: int\n")
    assert "left as it is" in rvm("stubs", "norm.rasm", code=2).stderr
    assert (here / "norm.pyi").read_text() == "norm: int\n"


def test_files_that_can_not_be_imported_are_refused(here: Path) -> None:
    (here / "two-words.rasm").write_text(NORM)
    assert "two_words.rasm" in rvm("stubs", "two-words.rasm", code=2).stderr
    assert "Python module" in rvm("stubs", "norm.py", code=2).stderr
    assert not list(here.glob("*.pyi"))


def test_programs_are_modules_where_there_are_none(here: Path) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("norm")
    finders = len(sys.meta_path)
    install_import_hook()
    install_import_hook()
    assert len(sys.meta_path) == finders + 1
    norm = importlib.import_module("norm")
    assert norm.norm(r=0.0, y=0.0, x=np.array([3.0, 4.0])).r == 5.0
    assert norm.__file__ == str(here / "norm.rasm") and norm.__all__ == ["norm"]
    assert importlib.import_module("generic").axpy.name == "axpy"
    (here / "bad.rasm").write_text("func f(x: f64)\n    ad x, 1\n")
    with pytest.raises(AssemblyError):
        importlib.import_module("bad")
    assert "bad" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("missing")


def test_the_options_of_calls_are_those_of_runs() -> None:
    hints = get_type_hints(RunOptions)
    assert set(hints) == set(Options.__dataclass_fields__)
    assert get_args(hints["engine"]) == tuple(ENGINES)
    for name in ("bits", "on_error"):
        for value in get_args(hints[name]):
            Options(**{name: value})
        with pytest.raises(InputError) as caught:
            Options(**{name: "other"})
        named = set(re.findall('"(.*?)"', caught.value.message))
        assert named == set(get_args(hints[name]))


@wide
def test_pyright_says_the_same(here: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    rvm("stubs", "norm.rasm", "kinds.rasm", "generic.rasm")
    (here / "wrong.py").write_text(WRONG)
    said = subprocess.run([pyright, "wrong.py"], capture_output=True, text=True, cwd=here).stdout
    found = {int(n) for n in re.findall(r"wrong\.py:(\d+):\d+ - error", said)}
    wrong = {n for n, line in enumerate(WRONG.splitlines(), 1) if "# wrong" in line}
    assert wrong <= found


def test_signatures_are_valid_and_what_they_take_is_taken() -> None:
    late = assemble(GENERIC).late
    signature = inspect.signature(late)
    assert str(signature) == "(y: f64 = 0.0, *, k: i32) -> Result"
    for args, named in (((), {"k": 1}), ((2.0,), {"k": 1}), ((), {"y": 2.0, "k": 1})):
        signature.bind(*args, **named)
        assert late(*args, **named).k == 2
    assert late(2.0, 1).k == 2
