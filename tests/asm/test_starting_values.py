"""Parameters that begin as zero where a caller names no value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rvm_asm import assemble as program_of
from rvm_asm import disassemble
from tools.running import rvm as command

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import AssemblyError, InputError

TEXT = """
func f(y: f64 = 0, x: f64, a: i64[2, 3] = 0, b: bool = 0, z: c128 = 0, q: fixed = 0, s: stack[u8])
    add y, x * x
    add a[1, 2], 4
    not b
    add z, 1j
    add q, 0.25
"""


@pytest.mark.parametrize("engine", executing())
def test_they_begin_as_zero_unless_named(engine: str) -> None:
    f = rvm.assemble(TEXT).f
    out = f(x=3.0, engine=engine)
    assert (out.y, out.b, out.z, out.q, out.s) == (9.0, True, 1j, 0.25, [])
    assert out.a.tolist() == [[0, 0, 0], [0, 0, 4]] and out.a.dtype == np.int64
    assert f(x=3.0, y=1.0, engine=engine).y == 10.0
    assert not np.any((~f)(**out, engine=engine).a)


def test_what_must_be_named_still_must() -> None:
    with pytest.raises(InputError) as missing:
        rvm.assemble(TEXT).f()
    assert missing.value.code == "I001" and "`x`" in str(missing.value)


def test_machines_gradients_and_lanes_know_them() -> None:
    f = rvm.assemble(TEXT).f
    assert rvm.Machine(f.program, "f", x=2.0).run()["y"] == 4.0
    assert f.grad(loss="y", x=3.0).x == 6.0


def test_files_and_disassembled_code_keep_them() -> None:
    program = program_of(TEXT)
    assert [p.zero for p in program.function("f").params] == [True, False, *[True] * 4, False]
    assert decode(encode(program)) == program
    assert encode(program_of(disassemble(program))) == encode(program)


def test_the_command_line_needs_no_values_for_them(tmp_path: Path) -> None:
    file = tmp_path / "f.rasm"
    file.write_text(TEXT)
    assert "y  f64        9.0" in command("run", str(file), "x=3").stdout


@pytest.mark.parametrize(
    ("parameter", "code"),
    [("x: f64 = 1", "A041"), ("x: f64[n] = 0", "A063"), ("p: P = 0", "A063"), ("x: f64 =", "A002")],
)
def test_other_starting_values_are_refused(parameter: str, code: str) -> None:
    with pytest.raises(AssemblyError) as refused:
        program_of(f"record P\n    x: f64\nend\nfunc f({parameter})\n")
    assert refused.value.diagnostics[0].code == code
