"""Programs end as the interpreter jana ends them, 32 bits wide, and come back.

`agreed.txt` holds programs that use every construct of that dialect, and what jana printed.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import rvm_janus
from sizes import thin

import rvm
from rvm.engines import executing
from rvm.faults import AssemblyError, RvmError
from rvm.library.handle import Library


def _agreed() -> dict[str, tuple[str, list[str]]]:
    text = (Path(__file__).parent / "agreed.txt").read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, rest = part.split("\n", 1)
        program, printed = rest.split("-- \n")
        found[name] = program, printed.strip().splitlines()
    return found


AGREED = _agreed()


@thin
@pytest.mark.parametrize("name", AGREED)
def test_what_is_printed_is_what_jana_prints(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    text, printed = AGREED[name]
    lib = Library(rvm_janus.assemble(text, "p.ja"))
    for engine in executing():
        f = lib.main.with_options(engine=engine)
        out = f()
        regs = [out[p.name] for p in lib.program.function("main").params]
        held = [np.asarray(v) if isinstance(v, np.ndarray) else v for v in regs]
        lines = capfd.readouterr().out.splitlines()
        lines += rvm_janus.store(lib.program.function("main"), held)
        assert lines == printed, engine
        back = dict((~f)(**out)).values()
        assert all(v == [] if isinstance(v, list) else not np.any(v) for v in back)
        capfd.readouterr()


STOPPED = {
    "a value that is changed": (
        "procedure p(int n)\n  n += 1\nprocedure main()\n  int x = 1\n  call p(x + 3)\n",
        "R001",
        5,
    ),
    "a value that is read from what changes": (
        "procedure p(int a, int b)\n  a += b + 9\nprocedure main()\n  int x\n  call p(x, x + 1)\n",
        "R001",
        5,
    ),
    "a procedure that there is not": (
        "procedure main()\n  int x\n  if x = 0 then\n    call q(x)\n  fi x = 0\n",
        "R013",
        4,
    ),
    "an arm that does nothing": (
        "procedure main()\n  int x\n  if x = 1 then\n    skip\n  fi x = 0\n",
        "R002",
        5,
    ),
}


@pytest.mark.parametrize("name", STOPPED)
@pytest.mark.filterwarnings("ignore:.*there is no procedure")
def test_what_stops_jana_stops_here(name: str) -> None:
    text, code, line = STOPPED[name]
    with pytest.raises(RvmError) as failed:
        Library(rvm_janus.assemble(text, "p.ja")).main()
    assert (failed.value.code, failed.value.where.line) == (code, line)
    assert "while" not in failed.value.message


REFUSED = {
    "procedure main()\n  int a[0]\n  skip\n": ("A040", 2),
    "procedure main()\n  int a[-2]\n  skip\n": ("A040", 2),
    "procedure main()\n  int x\n  x <=> x\n": ("A013", 3),
    "procedure p(int a, int a)\n  skip\nprocedure main()\n  skip\n": ("A006", 1),
    "procedure p()\n  skip\nprocedure p()\n  skip\nprocedure main()\n  skip\n": ("A006", 3),
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_jana_refuses_is_refused(text: str) -> None:
    code, line = REFUSED[text]
    with pytest.raises(AssemblyError) as failed:
        rvm_janus.assemble(text, "p.ja")
    assert [(d.code, d.where.line) for d in failed.value.diagnostics] == [(code, line)]


def test_a_missing_procedure_is_reported_even_where_no_run_comes() -> None:
    text = STOPPED["a procedure that there is not"][0].replace("int x\n", "int x = 2\n")
    with pytest.warns(rvm.AssemblyWarning, match="there is no procedure `q`"):
        program = rvm_janus.assemble(text, "p.ja")
    assert Library(program).main().x == 2
