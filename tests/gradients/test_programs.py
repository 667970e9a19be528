"""Programs of every kind: their gradients by differences, and what holds of every gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import rvm_asm
from gradients import properties
from gradients.agreeing import agree
from gradients.programs import PROGRAMS
from sizes import sized, some, thin

import rvm
from rvm.library.handle import FunctionHandle
from rvm.verify import findings

pytestmark = sized

each = pytest.mark.parametrize("name", PROGRAMS)
COARSE = ("fixed", "single precision and conversions")
"""Programs whose numbers are coarser than doubles."""


def case(name: str) -> tuple[FunctionHandle, dict[str, Any], str]:
    text, inputs, loss = PROGRAMS[name]
    return rvm.assemble(text).main, inputs, loss


@thin
@each
@some
def test_differences_and_engines(name: str) -> None:
    agree(*case(name))


@thin
@each
@some
def test_strict_code_has_the_same_gradient(name: str) -> None:
    """Nested expressions, taken to pieces and put into ancillas, give the same derivatives."""
    f, inputs, loss = case(name)
    g = rvm.Library(rvm_asm.assemble(PROGRAMS[name][0], expand=True)).main
    near = 1e-5 if name in COARSE else 1e-11
    assert properties.distance(f.grad(loss=loss, **inputs), g.grad(loss=loss, **inputs)) <= near


@thin
@each
@some
def test_adjoints_are_tangents_transposed(name: str) -> None:
    f, inputs, _ = case(name)
    near = 1e-5 if name in COARSE else 1e-12
    properties.adjoints_transpose_tangents(f, inputs, np.random.default_rng(1), near)


@each
@some
def test_the_gradient_of_the_inverse_is_the_inverse(name: str) -> None:
    f, inputs, _ = case(name)
    near = 1e-5 if name in COARSE else 1e-9
    properties.inverses_undo(f, inputs, np.random.default_rng(2), near)


@thin
@each
@some
def test_gradients_run_back(name: str) -> None:
    f, inputs, _ = case(name)
    properties.gradients_run_back(f, inputs, np.random.default_rng(3))


@thin
@each
@some
def test_hessians(name: str) -> None:
    f, inputs, loss = case(name)
    near, rough = (1e-4, 1e-1) if name in COARSE else (1e-11, 1e-6)
    properties.hessians_are_symmetric(f, inputs, loss, np.random.default_rng(4), near, rough)


@thin
@each
@some
def test_derived_programs_are_programs(name: str) -> None:
    """They verify, come back from their texts, and are differentiated again."""
    f = case(name)[0]
    for program in (f.gradient_program, rvm.tangent(f.program, "main")):
        assert findings(program) == []
        assert rvm_asm.assemble(rvm_asm.disassemble(program)) == program
        again = rvm.gradient(program)
        assert findings(again) == []
        assert rvm_asm.assemble(rvm_asm.disassemble(again)) == again
        assert findings(rvm.invert(program)) == []
