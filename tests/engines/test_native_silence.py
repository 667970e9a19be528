"""LLVM prints nothing on a user's standard error, whatever it is given to compile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from programs.both_ways import load
from sizes import wide

from rvm.emit.llvm.module import ModulePrinter
from rvm.emit.llvm.printer import PACES
from rvm.faults import RvmError
from rvm.image import Code, image_of
from rvm.ir.kind import Kind
from rvm.transform.programs import gradient_program

pytest.importorskip("llvmlite")
TOP = Path(__file__).parents[2]
EXAMPLES = sorted(
    path
    for folder in ("examples", "tests/programs", "tools/rvm_bench/work")
    for path in (TOP / folder).rglob("*.rasm")
)
JACOBIAN = TOP / "examples" / "derivatives" / "jacobian.rasm"
ENDLESS = """
define void @run(ptr %p) {{
entry:
  br label %head
head:
  %x = load volatile i64, ptr %p
  %found = icmp eq i64 %x, 0
  br i1 %found, label %out, label %more
more:
  store volatile i64 1, ptr %p
  br label %head, !llvm.loop !0
out:
  ret void
}}
!0 = distinct !{{!0, {}}}
"""
"""A loop of which nobody knows how often it is gone round."""


def module(code: Code, strict: int = 0) -> str:
    from rvm.engines.native.compiler import compiler

    llvm = compiler()
    return ModulePrinter(code, Kind(0, frozenset(), strict=strict)).text(llvm.triple, llvm.layout)


def codes(path: Path) -> Iterator[Code]:
    """All functions of a file, there and back, and their gradients."""
    try:
        program = load(path).program
    except RvmError:  # a file to be included, or one that must be refused
        return
    for f in program.functions:
        yield from (image_of(program).code(f.name, undo) for undo in (False, True))
        try:
            made = gradient_program(program, f.name)
        except RvmError:
            continue
        yield image_of(made).code(made.entry, False)


def said(capfd: pytest.CaptureFixture[str], *texts: str) -> str:
    """What LLVM prints while it compiles some modules."""
    from rvm.engines.native.compiler import compiler

    capfd.readouterr()
    for text in texts:
        compiler().optimised(text)
    return "".join(capfd.readouterr())


@pytest.mark.parametrize("pace", PACES)
def test_what_a_loop_is_to_become_is_not_an_order(
    pace: str, capfd: pytest.CaptureFixture[str]
) -> None:
    notes = ", ".join(f"!{{!{note.format(2)}}}" for note in PACES[pace])
    assert said(capfd, ENDLESS.format(notes)) == ""


@wide
def test_nor_where_a_loop_keeps_a_log(capfd: pytest.CaptureFixture[str]) -> None:
    code = image_of(load(JACOBIAN).program).code("jacobian", True)
    assert said(capfd, module(code, strict=-1)) == ""


@pytest.mark.deep
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_programs_and_gradients_compile_in_silence(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of those whose loops are given a pace: LLVM says nothing of others."""
    texts = [text for code in codes(path) if "!llvm.loop" in (text := module(code))]
    assert said(capfd, *texts) == ""
