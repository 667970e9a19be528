"""Programs that call derivatives of their functions, against those taken from outside."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attack.programs import smooth
from gradients import properties
from gradients.agreeing import ENGINES, bits, engines_agree
from rvm_asm import assemble, disassemble
from rvm_asm.derivatives import carrying
from sizes import first_and_another, part, sized, wide

import rvm
from rvm.codec import decode, encode
from rvm.derive.named import named_duals
from rvm.library.handle import FunctionHandle
from rvm.program import Function, Program
from rvm.transform.derived import MARKS, head


def outer(text: str, name: str, mark: str, left_out: Collection[str] = ()) -> FunctionHandle:
    """A function that does nothing but call what a mark makes of another.

    It takes all bars, but passes none for the parameters `left_out`.
    """
    f = assemble(text).function(name)
    made = head(f, mark)
    first = disassemble(Program((made,), made.name), positions=False).splitlines()[-1]
    own, more = made.params[: len(f.params)], made.params[len(f.params) :]
    a = ", ".join(p.name for p in own)
    bars = zip(carrying(f), more, strict=True)
    b = ", ".join("_" if p.name in left_out else bar.name for p, bar in bars)
    call = f"    call {name}{mark}({a}; {b})"
    return rvm.assemble(f"{text}\n{first.replace(f'`{made.name}`', 'outer')}\n{call}\n")["outer"]


def renamed(f: Function, names: Mapping[str, str]) -> Function:
    """A function with others' names in place of its own and of those that it calls."""
    code = tuple(replace(i, symbol=names.get(i.symbol, i.symbol)) for i in f.code)
    return replace(f, name=names.get(f.name, f.name), code=code, spans=())


@sized
def test_they_are_those_of_a_gradient_program() -> None:
    """On random programs, instruction by instruction, but for the names."""
    for seed in range(part(20)):
        text = smooth.program(seed)
        program = assemble(text)
        for mark, wanted in (
            ("'", rvm.gradient(program, "main").program),
            (".", rvm.tangent(program, "main").program),
        ):
            found = outer(text, "main", mark).program
            end = {"'": "~'", ".": "."}[mark]
            names = {f"{n}{end}": f"{n}_{MARKS[end].word}" for n in program}
            names["main'"] = "main_gradient"
            have = {names.get(f.name, f.name): renamed(f, names) for f in found.functions}
            for f in wanted.functions:
                if f.name == "main_gradient":
                    # Within a run it keeps copies of what main changes, by which it is judged.
                    calls = [[i for i in g.code if i.op == "call"] for g in (f, have[f.name])]
                    assert calls[0] == calls[1] and len(calls[0]) == 2
                    continue
                assert have[f.name] == replace(f, spans=()), (seed, f.name)


def of_seed(seed: int, mark: str) -> tuple[FunctionHandle, dict[str, Any], Any]:
    """A random program with a function that calls a derivative of it, and arguments."""
    rng = np.random.default_rng(seed)
    text = smooth.program(seed)
    f, inputs = rvm.assemble(text).main, smooth.inputs(seed)
    if not properties.steady(f, inputs):
        return of_seed(seed + 1000, mark)
    pull = f.pullback(**inputs)
    bars = properties.drawn(named_duals(pull.function, pull.bars, pull.result.info), rng)
    made = outer(text, "main", mark)
    names = made.parameters[len(f.parameters) :]
    at = properties.copied(inputs) if mark != "~'" else properties.copied(f(**inputs))
    return made, at | dict(zip(names, bars.values(), strict=True)), rng


@wide
@pytest.mark.parametrize("mark", MARKS)
@sized
def test_engines_agree_and_come_back(mark: str) -> None:
    for seed in range(part(4)):
        f, inputs, _ = of_seed(seed, mark)
        ends = {}
        for engine in first_and_another(ENGINES, (seed, mark)):
            m = rvm.Machine(
                f.program, f.name, engine=engine, strict=True, **properties.copied(inputs)
            )
            begun = bits(m.result)
            m.run()
            ends[engine] = properties.copied(m.result)
            m.run_back()
            assert bits(m.result) == begun, (seed, engine)
        engines_agree(ends)


@wide
@pytest.mark.parametrize("mark", MARKS)
@sized
def test_their_texts_and_bytecode_are_the_same_programs(mark: str) -> None:
    for seed in range(part(12)):
        program = outer(smooth.program(seed), "main", mark).program
        assert assemble(disassemble(program)) == program
        assert decode(encode(program)) == program


@wide
@pytest.mark.parametrize("mark", MARKS)
@sized
def test_derivatives_of_functions_that_call_them(mark: str) -> None:
    """Second derivatives, by tangents and by differences."""
    for seed in range(part(4)):
        f, inputs, rng = of_seed(seed, mark)
        properties.adjoints_transpose_tangents(f, inputs, rng, 1e-9)
        properties.differences_agree(f, inputs, rng, 1e-5)


@pytest.mark.parametrize(
    ("t", "line", "is_told"),
    [("f64", "x >= 3.0", True), ("f64", "w >= 3.0", False), ("fixed", "x >= 3.0", False)],
)
def test_gradients_that_may_take_another_branch_are_told(t: str, line: str, is_told: bool) -> None:
    text = f"""
func f(y: f64, x: {t}, w: {t}, a: f64, b: f64)
    if {line}
        add y, a
    else
        add y, b
    end
    add x, 1.1

func main(x: {t}, w: {t}, a: f64, b: f64, xb: f64, wb: f64, ab: f64, bb: f64)
    call f'(0.0, x, w, a, b; 1.0, xb, wb, ab, bb)
"""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        rvm.assemble(text)
    told = [w.message for w in found if isinstance(w.message, rvm.AssemblyWarning)]
    codes = [w.diagnostic.code for w in told]
    assert codes == ["A081"] * is_told
