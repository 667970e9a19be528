"""What a gradient leaves out on its way back is nothing: with it all numbers are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack.programs import smooth
from gradients import properties
from gradients.agreeing import bits
from gradients.programs import PROGRAMS, copies
from sizes import thin, wide

import rvm
from rvm.derive.named import dressed, named_duals, nested
from rvm.expr import Const
from rvm.library.handle import FunctionHandle
from rvm.program import Function, Instr, Program
from rvm.transform.duals import bar_slots
from rvm.transform.walker import FORTH
from rvm.transform.zeros import zeros
from rvm.types import BOOL
from rvm.verify import findings, inout_slots

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(p for p in EXAMPLES.glob("**/*.rasm") if p.parent.name != "include")


def complete(program: Program) -> Program:
    """A gradient program that computes what is nothing, too: its `forth` never holds."""

    def never(f: Function) -> Function:
        def kept(instr: Instr) -> Instr:
            if instr.op == "not" and f.registers[instr.args[0].reg].name.startswith(FORTH):  # type: ignore[attr-defined]
                return Instr("xor", (*instr.args, Const(False, BOOL)))
            return instr

        return replace(f, code=tuple(map(kept, f.code)))

    return Program(tuple(map(never, program.functions)), program.entry, program.sources)


def same_with_all(f: FunctionHandle, inputs: dict[str, Any]) -> bool:
    """Compare the gradient with that which leaves nothing out; whether there was anything."""
    pull = f.pullback(**copies(inputs))
    pull.seed_all(
        properties.drawn(
            named_duals(pull.function, pull.bars, pull.result.info), np.random.default_rng(5)
        )
    )
    regs = [*pull.start[: f.function.n_args], *pull.bars.values()]
    short = f.target.gradient_program
    whole = complete(short)
    found = []
    for program in (short, whole):
        top = program.function(program.entry)
        values = dressed(top, {p.name: nested(p.layout, regs) for p in top.params})
        m = rvm.Machine(program, engine="python", **properties.copied(values))
        m.run()
        found.append(bits(unsigned(m.result)))
    assert found[0] == found[1]
    return whole != short


def unsigned(value: Any) -> Any:
    """A result whose zeros have no sign: what is left out might have given them one."""
    if isinstance(value, Mapping):
        return {k: unsigned(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return value + 0.0 if value.dtype.kind in "fc" else value
    return value + 0.0 if isinstance(value, (float, complex)) else value


LINES = """
func scaled(z: f64[n], x: f64[n], a: f64)
    for i = 0 to n - 1
        add z[i], a * x[i] + x[i] ** 2
    end

func called(y: f64, x: f64[n], a: f64)      ; compute, copy, uncompute by calls
    alloc z: f64[n]
    call scaled(z, x, a)
    add y, dot(z, z)
    uncall scaled(z, x, a)
    free z

func looped(y: f64, x: f64[n], a: f64)      ; ancillas that live in a loop
    for i = 0 to n - 1
        routine r
            alloc s: f64
            for j = 0 to i
                add s, a * x[j]
                mul s, 1.5
            end
            alloc c: f64 = cos(s)
        end
        add y, c * s
        undo r
    end

func outer(y: f64, x: f64[n], a: f64)       ; an ancilla that outlives the rounds
    routine r
        alloc s: f64
        alloc u: f64 = sin(a)
        add s, u * x[0]
        swap s, u
        rot s, u, a
    end
    for i = 0 to n - 1
        add y, s * x[i]
        if s > 0.0
            add y, u ** 2
        else
            sub y, u
        end
    end
    undo r
"""
AT = {"y": 0.25, "x": np.array([0.5, -1.25, 2.0]), "a": 0.75}


@thin
@pytest.mark.parametrize("name", ("called", "looped", "outer"))
def test_what_is_left_out_is_nothing(name: str) -> None:
    f = rvm.assemble(LINES)[name]
    assert same_with_all(f, AT)
    assert rvm.check_grad(f, loss="y", **copies(AT)).ok
    forward, back = (f.hessian(loss="y", **copies(AT), method=m) for m in METHODS)
    assert np.allclose(forward["x"]["x"], back["x"]["x"], rtol=1e-9, atol=1e-9)


METHODS = ("forward-over-reverse", "taylor")


@wide
@pytest.mark.parametrize("name", ("called", "looped", "outer"))
def test_undone_and_differentiated_again(name: str) -> None:
    """Reverse over reverse, by way of the gradient program's inverse code."""
    f = rvm.assemble(LINES)[name]
    g = f.gradient_program[str(f.gradient_program.program.entry)]
    at = {**AT, "y_bar": 1.0, "x_bar": np.zeros(3), "a_bar": 0.0}
    there = g(**copies(at))
    back = (~g)(**there)
    for key, value in at.items():
        assert np.allclose(back[key], value, rtol=1e-12, atol=1e-12), key
    rows = [g.vjp({"x_bar": row}, **copies(at)).x for row in np.eye(3)]
    hessian = f.hessian(loss="y", **copies(AT), method="taylor")["x"]["x"]
    assert np.allclose(rows, hessian, rtol=1e-9, atol=1e-9)


@thin
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    text, inputs, _ = PROGRAMS[name]
    same_with_all(rvm.assemble(text).main, inputs)


@pytest.mark.deep
def test_random_programs() -> None:
    left_out = [
        same_with_all(rvm.assemble(smooth.program(seed)).main, smooth.inputs(seed))
        for seed in range(30)
    ]
    assert sum(left_out) > 15


def test_which_adjoints_are_zero() -> None:
    f = rvm.assemble(LINES).program.function("called")
    names = [r.name for r in f.registers]
    carrying = [k for k in range(len(names)) if names[k] in ("y", "x", "a", "z")]
    found = zeros(f, carrying, inout_slots(rvm.assemble(LINES).program))
    by_op = {instr.op: {names[k] for k in z} for instr, z in zip(f.code, found, strict=True)}
    assert by_op["uncall"] == {"z"} and by_op["add"] == {"z"}
    assert by_op["call"] == set() and by_op["alloc"] == set()


def test_a_call_that_no_adjoint_passes_through_is_a_plain_call() -> None:
    program = rvm.assemble(LINES)["called"].gradient_program
    code = program.program.function("called_adjoint").code
    calls = [(i.op, i.symbol) for i in code if i.op in ("call", "uncall")]
    assert calls == [
        ("uncall", "scaled_adjoint"),
        ("call", "scaled"),
        ("call", "scaled_adjoint"),
    ]


@thin
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_gradient_programs_of_examples_verify(path: Path) -> None:
    program = rvm.load(path)
    for name in program:
        if bar_slots(program.program.function(name)):
            try:
                derived = rvm.gradient(program, name)
            except rvm.faults.DefinitionError as fault:
                assert fault.code in ("D011", "D012")
                continue
            assert findings(derived) == []
