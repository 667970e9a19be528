"""Machine code leaves out comparisons that cannot fail, and makes every one that can."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import LAW, executing
from rvm.faults import RvmError
from rvm.image import image_of
from rvm.ir.certain import certain
from rvm.ir.loop_facts import turns
from rvm.leaf.python import on_numbers
from rvm.numbers.elementary import text
from rvm.stmt import Free

pytest.importorskip("llvmlite")
ENGINES = executing(loops=False)
SURE = """
func straight(y: f64, x: f64)
    alloc t: f64 = sin(x)
    add y, t
    free t = sin(x)

func looped(y: f64, x: f64[n])
    for i = 0 to n - 1
        alloc t: f64 = x[i] * x[i]
        if t > 1.0
            add y, t
        end
        free t = x[i] * x[i]
    end

func whole(y: f64, x: f64[n])
    alloc t: f64[n] = x / 3.0
    add y, sum(t)
    free t = x / 3.0

func longer(y: f64[n], x: f64[n])            ; what has its lengths has changed
    alloc t: f64[n] = x / 3.0
    add y, t
    free t = x / 3.0

func held(y: f64, x: f64[n])                ; freed as the same in other words
    alloc t: f64[n] = exp(x) / (1.0 + exp(x))
    alloc u: f64[n] = exp(x)
    alloc v: f64[n] = 1.0 + u
    add y, sum(t)
    free t = u / v
    free v = 1.0 + u
    free u = exp(x)

func there(y: f64, x: f64[n])               ; made and undone bit by bit
    routine
        alloc s: f64[n]
        for i = 0 to n - 1
            alloc t: f64 = x[i] / 3.0
            swap t, s[i]
            free t
        end
    result
        add y, sum(s)
    end
"""
UNSURE = """
func changed(y: f64, x: f64)                ; what it was made of has changed
    alloc t: f64 = x
    add x, y
    free t = x

func written(y: f64, x: f64)                ; it has changed itself
    alloc t: f64 = x
    add t, y
    free t = x

func other(y: f64, x: f64)                  ; freed as something else
    alloc t: f64 = x / 0.0
    free t = x / -0.0

func sometimes(y: f64, x: f64)              ; changed on one of two ways
    alloc t: f64 = x
    if y > 1.0
        add t, 1.0
    end
    free t = x

func put(z: f64, y: f64)
    add z, y

func called(y: f64, x: f64)                 ; changed by a call
    alloc t: f64 = x
    call put(t, y)
    free t = x

func round(y: f64, x: f64)                  ; changed in a later round
    alloc t: f64 = x
    for i = 1 to 3
        add t, y
    end
    free t = x

func element(y: f64, x: f64[n])             ; an element of what it was made of
    alloc t: f64[n] = x
    add x[n - 1], y
    free t = x

func part(y: f64, x: f64)                   ; what holds a part of it has changed
    alloc u: f64 = sqrt(x)
    alloc t: f64 = 1.0 + sqrt(x)
    add u, y
    free t = 1.0 + u
    sub u, y
    free u = sqrt(x)

func earlier(y: f64, x: f64)                ; the part was held before what it is made of changed
    alloc u: f64 = sqrt(x)
    add x, y
    alloc t: f64 = 1.0 + sqrt(x)
    free t = 1.0 + u
    sub x, y
    free u = sqrt(x)

func remade(y: f64, x: f64, m: i64)         ; the length of an array that is made again
    alloc u: f64[m]
    alloc t: i64 = len(u)
    free u
    add m, 1
    alloc u
    free t = len(u)
    free u
    sub m, 1

func lengths(y: f64, x: f64, m: i64)        ; undone bit by bit, with other lengths
    alloc s: f64[m]
    alloc t: f64 = x
    swap t, s[0]
    free t
    add m, 1
    alloc t
    swap t, s[0]
    free t = x
    free s
    sub m, 1
"""


def unsure(program: rvm.Program, name: str) -> list[str]:
    """The freed ancillas whose values are compared."""
    code = image_of(program).code(name, undo=False)
    left = certain(code)
    found = [s for pc in range(len(code)) for s in code.stmts(pc) if isinstance(s, Free)]
    assert left <= {id(s) for s in found}
    names = code.function.registers
    compared = [names[s.reg.reg].name for s in found if id(s) not in left]
    return [name for name in compared if name not in ("i", "i.end")]


@pytest.mark.parametrize("name", sorted(rvm.assemble(SURE)))
def test_what_is_certain(name: str) -> None:
    program = rvm.assemble(SURE)
    # A zero that comes out of an array is compared.
    assert unsure(program.program, name) == (["t"] if name == "there" else [])
    x: Any = 1.25 if name == "straight" else np.array([0.5, -1.25, math.inf, math.nan])
    y: Any = np.full(4, 0.5) if name == "longer" else 0.5
    runs = [program[name].with_options(engine=e) for e in ENGINES]
    found = [dict(run(y=np.copy(y)[()], x=np.copy(x)[()])) for run in runs]
    for other in found[1:]:
        assert np.array_equal(other["y"], found[0]["y"], equal_nan=True)


@thin
@pytest.mark.parametrize("name", sorted(set(rvm.assemble(UNSURE)) - {"put"}))
def test_what_is_not_certain_is_compared(name: str) -> None:
    program = rvm.assemble(UNSURE)
    assert "t" in unsure(program.program, name)
    x: Any = np.array([1.0, 2.0]) if name == "element" else 2.0
    messages = []
    for engine in ENGINES:
        more = {"m": 2} if name in ("lengths", "remade") else {}
        m = rvm.Machine(program, name, engine=engine, y=3.0, x=np.copy(x)[()], **more)
        with pytest.raises(RvmError) as caught:
            m.run()
        messages.append((str(caught.value), m.time))
    assert messages[0] == messages[1] == messages[2]


KEPT = """
func kept(y: f64, x: f64[n])            ; what was exchanged comes back bit by bit
    routine
        alloc s: f64[3, n]
        for i = 0 to n - 1
            alloc v: f64 = x[i]
            swap v, s[0, i]
            free v
        end
        for k = 0 to 1
            for i = 0 to n - 1
                alloc v: f64 = s[k, i] * s[k, i] - x[n - 1 - i]
                swap v, s[k + 1, i]
                free v
            end
        end
    result
        add y, sum(s[2])
    end

func summed(y: f64, x: f64[n])          ; what was added does so only if it is finite
    routine
        alloc s: f64[n]
        add s, x
    result
        add y, sum(s)
    end

func between(y: f64, x: f64[n])         ; what it is made of has changed
    alloc s: f64
    alloc v: f64 = x[0]
    swap v, s
    free v
    add x[0], y
    alloc v
    swap v, s
    free v = x[0]
    free s

func twice(y: f64, x: f64[n])           ; it holds something already
    routine
        alloc s: f64
        for i = 0 to 1
            alloc v: f64 = x[i]
            swap v, s
            free v
        end
    result
        add y, s
    end
"""


@sample
@thin(2)
@pytest.mark.parametrize("name", ["kept", "summed", "between", "twice"])
@pytest.mark.parametrize(
    "x", [[0.5, -1.25, 3.0], [math.inf, 1.0, 2.0], [-0.0, math.nan, 0.0], [-0.0, -0.0, 1.0]]
)
def test_engines_agree_on_what_comes_back_bit_by_bit(name: str, x: list[float]) -> None:
    """With infinities too, which addition and subtraction do not bring back."""
    f = rvm.assemble(KEPT)[name]
    found: list[tuple[Any, ...]] = []
    for engine in ENGINES:
        m = f.with_options(engine=engine).machine(y=3.0, x=np.array(x))
        try:
            m.run()
            adjoint = f.grad(y=3.0, x=np.array(x), loss="y", engine=engine).x
            found.append((m.time, m["y"], m.info.erased_bits, adjoint.tolist()))
        except RvmError as error:
            found.append((m.time, str(error)))
    assert repr(found[0]) == repr(found[1]) == repr(found[2])


def test_states_are_undone_wherever_a_run_stops() -> None:
    f, given = rvm.assemble(KEPT).kept, {"y": 0.5, "x": np.array([0.5, -1.25, 3.0])}
    law, native = (f.with_options(engine=e).machine(**given) for e in (LAW, "native"))
    while law.go(7):
        native.go(7)
        for mine, its in zip(law.state.top.regs, native.state.top.regs, strict=True):
            np.testing.assert_array_equal(mine, its)
    assert native.finished and native["y"] == law["y"]


def test_what_was_changed_on_the_way_is_compared_when_the_run_goes_on() -> None:
    program = rvm.assemble(SURE)
    for engine in ENGINES:
        m = rvm.Machine(program, "straight", engine=engine, y=0.5, x=1.25)
        m.seek(2)
        m["x"] = 1.5
        with pytest.raises(RvmError, match="t"):
            m.run()


ANGLES = [
    *(0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.0**-1022, 1e-9, 0.785, 1e22),
    *(math.pi, -math.pi / 2, 1.7976931348623157e308, -1.7976931348623157e308, 105414350.0),
]
TURN = """
func main(c: f64[n], s: f64[n], x: f64[n])
    for i = 0 to n - 1
        alloc t: f64 = cos(x[i])
        add c[i], t
        add s[i], sin(x[i])
        free t = cos(x[i])
    end
"""


def test_sine_and_cosine_of_one_angle_have_the_bits_of_each() -> None:
    program = rvm.assemble(TURN)
    code = image_of(program).code("main", undo=False)
    assert len(turns(code)) == 1
    rng = random.Random(1)
    angles = [*ANGLES, *(rng.uniform(-10, 10) for _ in range(20_000))]
    angles += [rng.choice((-1, 1)) * 2 ** rng.uniform(-60, 1020) for _ in range(20_000)]
    angles += [math.nextafter(k * math.pi / 4, rng.choice((0, math.inf))) for k in range(10_000)]
    x = np.array(angles)
    out = program.main.with_options(engine="native")(c=np.zeros(len(x)), s=np.zeros(len(x)), x=x)
    for found, f in ((out.c, on_numbers(text("cos"))), (out.s, on_numbers(text("sin")))):
        want = np.array([f(a) if math.isfinite(a) else math.nan for a in angles]) + 0.0
        assert np.array_equal(
            (found + 0.0).view(np.int64)[np.isfinite(x)], want.view(np.int64)[np.isfinite(x)]
        )
        assert np.isnan(found[~np.isfinite(x)]).all()


UNCOMPUTED = """
func powers(y: f64, x: f64, n: i64)         ; each power is freed with what the next one gives
    routine
        alloc p: f64 = 1
        for i = 1 to n
            alloc q: f64 = p * x / 3.0
            swap p, q
            free q = p * 3.0 / x
        end
    result
        add y, p
    end

func rounds(y: f64, x: f64, n: i64)         ; what is freed was made with another value before
    routine
        alloc s: f64[n]
        alloc t: f64 = x
        for i = 0 to n - 1
            alloc v: f64 = t
            swap v, s[i]
            free v
            free t = x
            alloc t = x / 49.0 * 49.0
        end
        free t = x / 49.0 * 49.0
    result
        add y, s[n - 1]
    end

func branches(y: f64, x: f64, n: i64)
    routine
        alloc s: f64[n]
        alloc t: f64 = x
        if n > 2
            free t = x
            alloc t = x / 49.0 * 49.0
        else
            free t = x
            alloc t = x
        end
        alloc v: f64 = t
        swap v, s[0]
        free v
        free t = x
    result
        add y, s[0]
    end
"""


@pytest.mark.parametrize("name", ["powers", "rounds", "branches"])
@pytest.mark.parametrize("x", [1.6, 0.7, -2.3, 1.0])
def test_what_is_freed_within_rounding_is_not_undone_bit_by_bit(name: str, x: float) -> None:
    f = rvm.assemble(UNCOMPUTED)[name]
    erased = {engine: f(y=0.0, x=x, n=30, engine=engine).info.erased_bits for engine in ENGINES}
    assert set(erased.values()) == {erased["reference"]}
    assert (erased["reference"] > 0) == (name == "powers" or x / 49.0 * 49.0 != x)
