"""Stacks: adjoints wait beside the values, and the zeros that are left carry none."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import properties
from gradients.agreeing import ENGINES, agree
from sizes import first_and_another, sample, sized, thin

import rvm
from rvm.types import SCALARS

pytestmark = sized

each_engine = pytest.mark.parametrize("engine", ENGINES)
GROWS = """
func main(a: f64, e: f64, s: stack[f64])
    add e, a * a
    push a, s
    add a, e * e
    push a, s
    swap a, e
"""
ZERO_READ = """
func main(a: f64, b: f64, s: stack[f64])
    push a, s
    swap a, b
    add a, 1.5 * sin(b)             ; b is the zero that `push` left
    pop b, s
"""


@each_engine
def test_a_stack_that_grows(engine: str) -> None:
    """s becomes [s0, a, (e + a²)²], a and e become e + a² and 0."""
    f = rvm.assemble(GROWS).main.with_options(engine=engine)
    inputs = {"a": 0.5, "e": 0.75, "s": [0.25]}
    agree(f, inputs, "a")
    g = f.vjp({"s": [10.0, 1.0, 2.0]}, **inputs)
    # e + a² = 1: d(…)²/da = 2 · 2a = 2, d(…)²/de = 2
    assert (g.a, g.e, g.s) == (1.0 + 2 * 2.0, 2 * 2.0, [10.0])
    out, dots = f.jvp({"a": 1.0, "s": [3.0]}, **inputs)
    assert (out.a, out.e, out.s) == (1.0, 0.0, [0.25, 0.5, 1.0])
    assert (dots.a, dots.e, dots.s) == (1.0, 0.0, [3.0, 1.0, 2.0])
    properties.adjoints_transpose_tangents(f, inputs, np.random.default_rng(1), 1e-13)
    properties.hessians_are_symmetric(f, inputs, "a", np.random.default_rng(2), 1e-12, 1e-6)
    properties.gradients_run_back(f, inputs, np.random.default_rng(3))
    assert f.hvp({"a": 1.0, "s": [1.0]}, loss="a", **inputs) == {"a": 2.0, "e": 0.0, "s": [0.0]}


def test_derivatives_of_another_length_are_refused() -> None:
    f = rvm.assemble(GROWS).main
    inputs = {"a": 0.5, "e": 0.75, "s": [0.25]}
    with pytest.raises(rvm.InputError) as caught:
        f.vjp({"s": [1.0]}, **inputs)
    assert caught.value.code == "I004" and "shape [3]" in caught.value.message
    with pytest.raises(rvm.InputError) as caught:
        f.jvp({"s": [1.0, 0.0, 0.0]}, **inputs)
    assert caught.value.code == "I004" and "shape [1]" in caught.value.message


def test_the_zero_that_push_leaves_may_be_read() -> None:
    """Its adjoint is not zero when it is forgotten, and must not stand in the way back."""
    f = rvm.assemble(ZERO_READ).main
    inputs = {"a": 0.3, "b": 0.7, "s": [0.1]}
    rng = np.random.default_rng(4)
    for _ in range(3):
        agree(f, inputs, "a")
        properties.inverses_undo(f, inputs, rng, 1e-15)
        properties.gradients_run_back(f, inputs, rng)
        properties.hessians_are_symmetric(f, inputs, "a", rng, 1e-14, 1e-9)
    g = f.gradient_program["main_gradient"]
    there = g(**inputs, a_bar=1.0, b_bar=2.0, s_bar=[3.0])
    back = (~g)(**properties.copied(there))
    assert (back.a_bar, back.b_bar, back.s_bar) == (1.0, 2.0, [3.0])


@thin
@each_engine
def test_fixed_point_numbers_that_gained_from_floats(engine: str) -> None:
    """They come back but for the floats' rounding, which is no reason to refuse a gradient."""
    f = rvm.assemble(
        """
func main(q: fixed, x: f64)
    mul x, 3.0
    add q, fixed(x * x * 1000.0)
    div x, 3.0
    mul x, 1.1
    add q, fixed(exp(x) * 1000.0)
"""
    ).main.with_options(engine=engine)
    rng = np.random.default_rng(5)
    off = 0
    for x in rng.uniform(-2.0, 2.0, 40):
        pull = f.pullback(q=0.5, x=float(x))
        pull.seed("q")
        g = pull()
        off += float(pull.machine["q"]) != 0.5
        assert g.x == pytest.approx(18000 * x + 1100 * np.exp(1.1 * x), rel=1e-12)
    assert off, "all came back exactly, so that nothing was tested"


@thin
@pytest.mark.parametrize("t", sorted(SCALARS))
def test_a_stack_of_a_functions_own_has_derivatives_of_every_order(t: str) -> None:
    """As the same function without the stack has them."""
    top = {"c128": "s.top.re", "bool": "select(s.top, 1.0, 0.0)"}.get(t, "f64(s.top)")
    lib = rvm.assemble(f"""
func f(y: f64, x: f64, k: {t})
    with s: stack[{t}]
        push k, s
        add y, x ** 3 * {top}
        pop k, s
    end

func without(y: f64, x: f64, k: {t})
    add y, x ** 3 * {top.replace("s.top", "k")}
""")
    inputs = {"y": 0.5, "x": 1.5, "k": t == "bool" or 1}
    for method in "forward-over-reverse", "taylor":
        found, meant = (
            lib[name].hessian(loss="y", method=method, **inputs) for name in ("f", "without")
        )
        assert str(found) == str(meant) and found.x.x == 6 * 1.5
    both = (lib[name].jvp({"x": 1.0}, **inputs) for name in ("f", "without"))
    assert len(set(map(str, both))) == 1
    assert lib.f.hvp({"x": 1.0}, loss="y", **inputs).x == 6 * 1.5


ELEMENTS = {
    "numbers": ("f64", "add e, x * x", "add y, e * e", lambda x: (4 * x**3, 12 * x**2)),
    "arrays": (
        "f64[2]",
        "add e[0], x * x\nadd e[1], x",
        "add y, e[0] * e[1]",
        lambda x: (3 * x**2, 6 * x),
    ),
    "records": (
        "Pair",
        "add e.a, x * x\nadd e.b, x",
        "add y, e.a * e.b",
        lambda x: (3 * x**2, 6 * x),
    ),
}
"""The type of a stack's elements, how one is filled and used, and what comes of it."""
WAYS = {
    "uncall": "alloc s: stack[T]\ncall fill(s, x)\ncall total(y, s)\nuncall fill(s, x)\nfree s",
    "undo": "routine r\nalloc s: stack[T]\ncall fill(s, x)\nend\ncall total(y, s)\nundo r",
    "further down": "alloc s: stack[T]\ncall twice(s, x)\ncall total(y, s)\nuncall twice(s, x)\n"
    "free s",
}
FILLED = """
record Pair
    a: f64
    b: f64
end
func fill(s: stack[T], x: f64)
    alloc e: T
    FILL
    push e, s
    free e
func twice(s: stack[T], x: f64)
    call fill(s, x)
    call fill(s, x)
func total(y: f64, s: stack[T])
    alloc e: T
    pop e, s
    USE
    push e, s
    free e
func main(y: f64, x: f64)
    WAY
"""


@sized
@thin(2)
@sample
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("elements", ELEMENTS)
def test_stacks_that_calls_fill_have_adjoints_as_deep(elements: str, way: str) -> None:
    t, fill, use, derivatives = ELEMENTS[elements]
    text = FILLED.replace("FILL", fill).replace("USE", use).replace("WAY", WAYS[way])
    f = rvm.assemble(text.replace("[T]", f"[{t}]").replace("e: T", f"e: {t}")).main
    first, second = derivatives(3.0)
    for engine in first_and_another(ENGINES, (elements, way)):
        g = f.with_options(engine=engine)
        assert g.grad(y=0.0, x=3.0, loss="y").x == pytest.approx(first)
        assert g.hessian(y=0.0, x=3.0, loss="y")["x"]["x"] == pytest.approx(second)
        lanes = g.map.grad(y=np.zeros(2), x=np.array([3.0, 1.5]), loss="y").x
        assert lanes == pytest.approx([first, derivatives(1.5)[0]])
    machine = rvm.Machine(f.gradient_program, y=0.5, x=3.0, y_bar=1.0, x_bar=0.25)
    assert machine.run()["x_bar"] == pytest.approx(0.25 + first)
    found = machine.run_back().registers()
    assert found == pytest.approx({"y": 0.5, "x": 3.0, "y_bar": 1.0, "x_bar": 0.25})
