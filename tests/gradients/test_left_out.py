"""Calls of derivatives of which some bars are left out: `call f'(x, y; _, y_bar)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attack.programs import smooth
from gradients import properties
from gradients.agreeing import ENGINES, bits, engines_agree, near
from gradients.programs import PROGRAMS
from gradients.test_calls_of_derivatives import outer
from rvm_asm import assemble, disassemble
from rvm_asm.derivatives import carrying
from sizes import some, thin, wide

import rvm
from rvm.derive.named import named_duals
from rvm.faults import AssemblyError
from rvm.transform.derived import MARKS
from rvm.verify import inout_slots


def zeros_of(bar: Any) -> Any:
    """A bar of the same shape that is zero."""
    if isinstance(bar, dict):
        return {k: zeros_of(v) for k, v in bar.items()}
    return [zeros_of(v) for v in bar] if isinstance(bar, list) else bar * 0


def try_all(text: str, inputs: dict[str, Any], mark: str, rng: np.random.Generator) -> list[bool]:
    """Leave out each bar, and all others: whether that is done; the rest is what it was."""
    f = rvm.assemble(text).main
    head = assemble(text).function("main")
    changed = inout_slots(f.program)["main"]
    pull = f.pullback(**properties.copied(inputs))
    names = [p.name for p in carrying(head)]
    reads_only = {p.name for p in head.params if isinstance(p.layout, int)} - {
        p.name for p in head.params if isinstance(p.layout, int) and p.layout in changed
    }
    start = (
        properties.copied(inputs)
        if mark != "~'"
        else properties.copied(f(**properties.copied(inputs)))
    )
    duals = properties.drawn(named_duals(pull.function, pull.bars, pull.result.info), rng)
    done = []
    for name in names:
        for left_out in ({name}, set(names) - {name}):
            if not 0 < len(left_out) < len(names):
                continue
            try:
                made = outer(text, "main", mark, left_out)
            except AssemblyError as error:
                assert {d.code for d in error.diagnostics} == {"D016"}
                assert not left_out <= reads_only
                done.append(False)
                continue
            whole = outer(text, "main", mark)
            ends = [n for n in whole.parameters if n not in f.parameters]
            bars = {
                end: zeros_of(duals[n]) if n in left_out else duals[n]
                for n, end in zip(names, ends, strict=True)
            }
            found = made(**properties.copied(start | bars))
            wanted = whole(**properties.copied(start | bars))
            for n, end in zip(names, ends, strict=True):
                if n in left_out:
                    assert bits(found[end]) == bits(properties.copied(bars)[end]), (n, left_out)
                else:
                    assert near(found[end], wanted[end]), (mark, n, left_out)
            done.append(True)
    return done


@thin
@some
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_out_changes_nothing_else(name: str, mark: str) -> None:
    text, inputs, _ = PROGRAMS[name]
    try_all(text, inputs, mark, np.random.default_rng(3))


@pytest.mark.deep
@pytest.mark.parametrize("mark", MARKS)
def test_in_random_programs(mark: str) -> None:
    done = []
    for seed in range(2, 8):
        text, inputs = smooth.program(seed, 5), smooth.inputs(seed)
        if properties.steady(rvm.assemble(text).main, inputs):
            done += try_all(text, inputs, mark, np.random.default_rng(seed))
    assert any(done) and not all(done)


LAYERS = """
record Layer
    w: f64[n, m]
    b: f64[n]
end

func layer(y: f64[n], l: Layer, x: f64[m])
    add y, tanh(l.w @ x + l.b)

func loss(e: f64, one: Layer, two: Layer, x: f64[k], c: f64)
    with h: f64[len(one.b)]
        routine
            call layer(h, one, x)
        result
            with o: f64[len(two.b)]
                routine
                    call layer(o, two, h)
                result
                    add e, c * sum(o ** 2)
                end
            end
        end
    end

func learn(one: Layer, two: Layer, x: f64[k], c: f64, g: Layer)
    call loss'(0.0, one, two, x, c; 1, g, _, _, _)

func backwards(one: Layer, two: Layer, x: f64[k], c: f64, g: Layer)
    uncall loss'(0.0, one, two, x, c; 1, g, _, _, _)

func all(one: Layer, two: Layer, x: f64[k], c: f64, g: Layer, h: Layer, xb: f64[k], cb: f64)
    call loss'(0.0, one, two, x, c; 1, g, h, xb, cb)
"""
"""Two layers, of which the weights of the first are learned."""


def layers() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    one, two = ({"w": rng.normal(size=s), "b": rng.normal(size=s[0])} for s in ((3, 3), (3, 3)))
    return {"one": one, "two": two, "x": rng.normal(size=3), "c": 0.7}


@wide
def test_a_record_is_left_out_whole_and_calls_leave_out_what_they_pass_on() -> None:
    library = rvm.assemble(LAYERS)
    at = layers()
    zeros = zeros_of(at)
    whole = library["all"](**at, g=zeros["one"], h=zeros["two"], xb=zeros["x"], cb=0.0)
    ends = {}
    for engine in ENGINES:
        f = library.learn.with_options(engine=engine)
        ends[engine] = f(**properties.copied(at), g=zeros_of(at["one"]))
        back = library.backwards.with_options(engine=engine)(**properties.copied(ends[engine]))
        assert all(np.max(np.abs(back.g[k])) < 1e-15 for k in "wb")
    engines_agree(ends)
    assert bits(ends[ENGINES[0]].g) == bits(whole.g)
    # No bar of what is left out is computed, neither here nor in what is called.
    made = library.program.function("layer~'(y, l.w, l.b)")
    assert [r.name for r in made.registers[: made.n_args]][-3:] == ["y_bar", "l.w_bar", "l.b_bar"]
    text = disassemble(library.program)
    assert assemble(text) == library.program


def test_nothing_is_erased_for_it() -> None:
    text = """
func f(y: f64, x: f64, k: f64)
    add y, sin(k * x)
func main(x: f64, k: f64, g: f64)
    call f'(0.0, x, k; 1, g, _)
"""
    found = rvm.assemble(text).main(x=0.5, k=2.0, g=0.0)
    assert found.g == pytest.approx(2 * np.cos(1.0)) and found.info.erased_bits == 0


def test_a_place_may_still_be_called_so() -> None:
    text = """
func f(y: f64, x: f64)
    add y, x ** 2
func main(x: f64, `_`: f64)
    call f'(0.0, x; 1, `_`)
"""
    assert dict(rvm.assemble(text).main(x=3.0, _=1.0)) == {"x": 3.0, "_": 7.0}


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("call f'(y, x, k; _, _)", "A080", "all bars are left out"),
        ("call f.(y, x, k; _)", "A080", "`f` has 2 real parameters, in order y: f64, x: f64"),
        ("call one'(x; 1, _)", "A080", "`one` has one real parameter"),
        ("call moved'(y, x; _, 1)", "D016", "the bar of `y` can't be left out"),
        ("call f(y, _, k)", "A005", "nothing here is called `_`"),
        ("call f'(y, x, _; 1, x)", "A005", "nothing here is called `_`"),
    ],
)
def test_what_is_wrong_is_said(statement: str, code: str, words: str) -> None:
    text = f"""
func f(y: f64, x: f64, k: i64)
    add y, x ** k
func one(x: f64)
    mul x, 2
func moved(y: f64, x: f64)
    add y, x
    add x, y ** 2
func main(y: f64, x: f64, k: i64)
    {statement}
"""
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    (found,) = caught.value.diagnostics
    assert found.code == code and words in found.human()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("moved'(y, x; _, b)", ["the bar of `y`"]),
        ("moved.(y, x; _, b)", ["the dot of `y`"]),
        ("square'.(y, x, a, b; _, 1.0, _, c)", ["the dot of `y`"]),
        ("square'.(y, x, a, b; c, 1.0, _, _)", []),
        ("square'.(y, x, a, b; _, _, _, c)", ["the dot of `y`"]),
        ("swapped.(y, x; _, c)", ["the dot of `y`"]),
        ("scaled'(y, x, a; _, _, 1.0)", ["the bar of `y`", "the bar of `x`"]),
        ("moved'.(y, x, a, b; c, 1.0, _, d)", ["the dot of the bar of `y`"]),
        ("map moved'(z, u; _, w)", ["the bar of `y`"]),
    ],
)
def test_what_is_in_the_way_is_reported_at_its_own_place(call: str, named: list[str]) -> None:
    """With a place in the place of each that is named, and of no other, it assembles."""
    call = call if call.startswith("map") else f"call {call}"
    text = """
func square(y: f64, x: f64)
    add y, x ** 2
func moved(y: f64, x: f64)
    add y, x
    add x, y ** 2
func swapped(y: f64, x: f64)
    swap x, y
func scaled(y: f64, x: f64, a: f64)
    mul y, x
    mul x, y
    add a, x
func main(y: f64, x: f64, a: f64, b: f64, c: f64, d: f64, e: f64, h: f64, \\
          z: f64[n], w: f64[n], v: f64[n], u: f64[n])
"""
    places = iter("v" if call.startswith("map") else "eh")
    if named:
        with pytest.raises(AssemblyError) as caught:
            assemble(f"{text}    {call}\n")
        assert [d.message for d in caught.value.diagnostics] == [
            f"{what} can't be left out: others follow from it" for what in named
        ]
        for d in reversed(caught.value.diagnostics):
            at = d.where.column - 5
            assert d.code == "D016" and call[at] == "_"
            call = call[:at] + next(places) + call[at + 1 :]
    assemble(f"{text}    {call}\n")
