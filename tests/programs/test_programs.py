"""The programs beside this file do what their `;!` lines say, on every engine and both ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from programs.both_ways import (
    ENGINES,
    MODES,
    Case,
    agree,
    cases,
    from_the_end,
    load,
    refusals,
    run,
    transaction,
)
from rvm_asm.expand import expand
from sizes import sample, sized

import rvm

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.rasm"))
SOUND = [f for f in FILES if not refusals(f)]
REFUSED = [f for f in FILES if refusals(f)]
CASES = [c for f in SOUND for c in cases(f)]
ENDING = [c for c in CASES if not c.directive.codes]
FAILING = [c for c in CASES if c.directive.codes]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
@sample
@sized
def test_runs_both_ways_on_engines_that_agree(case: Case, mode: str) -> None:
    agree(case, mode)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_strict_code_does_the_same(case: Case) -> None:
    strict = replace(case, strict=True)
    program = strict.program.program
    assert expand(program).functions == program.functions
    run(strict, "python", "tolerant")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", ENDING, ids=str)
@sample
def test_the_inverse_takes_the_result_to_the_inputs(case: Case, engine: str) -> None:
    from_the_end(case, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", FAILING, ids=str)
@sample
def test_a_failing_call_leaves_the_inputs_as_they_were(case: Case, engine: str) -> None:
    transaction(case, engine)


@pytest.mark.parametrize("path", REFUSED, ids=lambda p: p.stem)
def test_unsound_programs_are_refused(path: Path) -> None:
    with pytest.raises(rvm.AssemblyError) as caught:
        rvm.load(str(path))
    assert {d.code for d in caught.value.diagnostics} == set(refusals(path))


def test_every_program_says_what_it_does() -> None:
    assert len(SOUND) > 10 and len(REFUSED) > 3
    for path in SOUND:
        program = load(path)
        told = {c.directive.function for c in cases(path)}
        called = {
            i.symbol for f in program.program.functions for i in f.code if i.op.endswith("call")
        }
        assert set(program) <= told | called, path.stem
