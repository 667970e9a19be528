"""Gradients of long runs are not refused for rounding, and mistakes in them still are."""

from __future__ import annotations

import pytest
from rvm_asm import disassemble

import rvm
from rvm.image import image_of
from rvm.transform.programs import gradient_program, in_values

PENDULUM = """
func pendulum(q: f64, p: f64, n: i64, h: f64)
    for i = 1 to n
        sub p, h * sin(q)
        add q, h * p
    end

func energy(e: f64, q: f64, p: f64, n: i64, h: f64)
    alloc x: f64
    alloc v: f64
    add x, q
    add v, p
    call pendulum(x, v, n, h)
    add e, v ** 2 / 2 - cos(x)
    uncall pendulum(x, v, n, h)
    sub v, p
    sub x, q
    free v
    free x

entry energy
"""
AT = {"e": 0.0, "q": 1.0, "p": 0.25, "h": 0.01}


def test_ancillas_that_calls_and_adjoints_undo_are_matched() -> None:
    """So no sizes of theirs are kept but of those that say whether values have come back; in
    gradients of gradients neither."""
    leapfrog = rvm.load("examples/leapfrog.rasm").program
    for program, entry in (leapfrog, "main"), (rvm.assemble(PENDULUM).program, "energy"):
        for _ in range(2):
            program = gradient_program(program, entry)
            entry = program.entry
            for f in program.functions:
                sizes = image_of(program).sizes(f)[0]
                assert set(sizes) == sizes.returning


@pytest.mark.parametrize("n", [2_000, 10_000, 100_000])
def test_long_runs_are_differentiated(n: int) -> None:
    """And agree with the tangent, which only runs forwards."""
    energy = rvm.assemble(PENDULUM).energy.with_options(engine="native")
    found = energy.grad(loss="e", n=n, **AT)
    tangent = energy.jvp({"q": 1.0}, n=n, **AT)[1]["e"]
    assert found.q == pytest.approx(tangent, rel=1e-6)


def test_a_text_of_a_gradient_is_seen_to_undo_its_function() -> None:
    made = gradient_program(rvm.assemble(PENDULUM).program, "energy")
    text = disassemble(made)
    again = rvm.assemble(text).program
    want = {"energy_adjoint": ("energy", True), "pendulum_adjoint": ("pendulum", True)}
    for program in again, made:
        assert {name: d[:2] for name, d in in_values(program).items()} == want
    wrong = "sub   p, h * sin(q) * 1.0000001"
    other = text.replace("sub   p, h * sin(q) ", wrong)
    assert other != text
    assert in_values(rvm.assemble(other).program) == {}


@pytest.mark.parametrize("n", [10, 10_000])
def test_what_is_not_the_adjoint_is_not_taken_for_it(n: int) -> None:
    """An adjoint that undoes another function than the one that was called."""
    made = gradient_program(rvm.assemble(PENDULUM).program, "energy")
    text = disassemble(made)
    there, back = text.split("func pendulum_adjoint", 1)
    body, rest = back.split("\nfunc ", 1)
    changed = body.replace("h * p", "h * p * 1.0001", 1)
    assert changed != body
    library = rvm.assemble(f"{there}func pendulum_adjoint{changed}\nfunc {rest}")
    with pytest.raises(rvm.RvmError) as caught:
        library.energy_gradient(n=n, e_bar=1.0, q_bar=0.0, p_bar=0.0, h_bar=0.0, **AT)
    assert caught.value.code in ("R001", "R017")
