"""Every example does what its `;! run` lines say, on every engine and both ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rvm_asm
from programs.both_ways import (
    ENGINES,
    MODES,
    Case,
    agree,
    cases,
    from_the_end,
    load,
    run,
    transaction,
)
from rvm_tools.values import inputs_for
from sizes import sample, sized, some, thin

import rvm
from rvm.codec import decode, encode
from rvm.transform.duals import bar_slots

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted((*EXAMPLES.glob("*.rasm"), *EXAMPLES.glob("nilang/*.rasm")))
CASES = [c for f in FILES for c in cases(f)]
ENDING = [c for c in CASES if not c.directive.codes]
FAILING = [c for c in CASES if c.directive.codes]


@thin
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
@sample
@sized
def test_runs_both_ways_on_engines_that_agree(case: Case, mode: str) -> None:
    agree(case, mode)


@thin
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


@thin
@pytest.mark.parametrize("case", CASES, ids=str)
@some
def test_strict_code_does_the_same(case: Case) -> None:
    run(Case(case.path, case.directive, strict=True), "python", "tolerant")


@thin
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_disassembles_to_what_assembles_to_the_same_bytes(path: Path) -> None:
    data = encode(load(path))
    assert encode(decode(data)) == data
    assert encode(rvm.assemble(rvm_asm.disassemble(load(path)))) == data


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_example_tells_its_idea_and_source_and_runs_its_entry(path: Path) -> None:
    idea, blank, *more = path.read_text(encoding="utf-8").splitlines()
    assert idea.startswith("; ") and idea.endswith("."), idea
    assert blank == ";"
    assert any(line.startswith(("; Source: ", "; Sources: ")) for line in more)
    assert any(c.directive.function == load(path).program.entry for c in cases(path))


def test_the_table_of_examples_names_every_example() -> None:
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in FILES:
        assert f"[`{path.name}`]({path.relative_to(EXAMPLES).as_posix()})" in table, path.name


@thin
@pytest.mark.parametrize("case", ENDING, ids=str)
@some
def test_results_have_digits(case: Case) -> None:
    """With perturbed rounding too, the run comes to an end, at nearly the same numbers."""
    f = case.program[case.function.name]
    if not bar_slots(f.function):
        return  # It has whole numbers only.
    inputs = inputs_for(f.function, case.directive.inputs, case.path.parent)
    for error in f(**inputs, error=True).info.error.values():
        assert np.all(np.asarray(error) < 1e-3)
