"""What it takes to judge a gradient: a few runs by the engine of the call, however long it is."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from attack.programs import smooth
from sizes import first_and_another, part, sample, sized, thin, wide

import rvm
from rvm.derive import estimate
from rvm.engines import ENGINES, LAW
from rvm.image import Image, image_of
from rvm.image.nudged import NudgedImage, nudged
from rvm.ir.function import plan_of
from rvm.library.handle import FunctionHandle
from rvm.program import Program
from rvm.run.raw import Run
from rvm.transform.programs import gradient_program, tangent_program

VECTORS = """
func main(x: f64[k], v: f64[k], n: i64, h: f64)
    for t = 1 to n
        add x, h / 2 * v
        sub v, h * x / (dot(x, x) + 0.01)
        add x, h / 2 * v
    end
"""
PENDULUM = """
func main(x: f64[k], v: f64[k], n: i64, h: f64)
    for t = 1 to n
        add x[0], h * v[0]
        sub v[0], h * sin(x[0])
    end
"""


@rvm.reversible
def leapfrog(x, v, n, h):
    for _ in range(n):
        x += h / 2 * v
        v -= h * x / (x @ x + 0.01)
        x += h / 2 * v


LEAPS = {
    "vectors": lambda: rvm.assemble(VECTORS).main,
    "pendulum": lambda: rvm.assemble(PENDULUM).main,
    "python": lambda: leapfrog.of(np.ones(2), np.zeros(2), 1, 0.1),
}


class Counted(Run):
    """A run that is counted."""

    ticks_of: dict[str, int]

    def __init__(self, program: Program, name: str, *args: Any, **more: Any) -> None:
        super().__init__(program, name, *args, **more)
        kind = "nudged" if isinstance(program.cache.get(Image), NudgedImage) else "plain"
        Counted.ticks_of[kind] = Counted.ticks_of.get(kind, 0) + self.ticks


@wide
@sample
@pytest.mark.parametrize("engine", ["auto", *(e for e in ("native",) if not ENGINES[e].missing())])
@pytest.mark.parametrize("leap", LEAPS)
def test_judging_takes_a_few_runs(leap: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From rest or not; where values are not back tangents decide, and no other roundings do."""
    monkeypatch.setattr(estimate, "Run", Counted)
    f = LEAPS[leap]().with_options(engine=engine)
    judged = 0
    for n in (1_000, 3_000, 4_000, 6_000, 20_000, 60_000, 200_000):
        for begins in (0.0, 0.3):
            Counted.ticks_of = {}
            at = {"x": np.array([1.0, 0.5]), "v": np.array([begins, 0.0]), "n": n, "h": 0.01}
            found = f.grad(loss="x[0]", **at)
            # Two runs forwards, and two with tangents, which do twice as much.
            assert Counted.ticks_of.keys() <= {"plain"}
            assert Counted.ticks_of.get("plain", 0) <= 6 * 7 * n + 1000
            judged += bool(Counted.ticks_of)
            tangent = f.jvp({"h": 1.0}, **at)[1].x[0]
            assert abs(found.h - tangent) <= 1e-6 * abs(tangent)
    assert judged


def apart(program: Program) -> set[tuple[str, bool, int]]:
    """The instructions of a program that machine code leaves to the reference engine."""
    image = image_of(program)
    return {
        (name, undo, pc)
        for name in program
        for undo in (False, True)
        for pc in plan_of(image.code(name, undo), True, 0).flow.apart
    }


@wide
@sized
def test_perturbed_code_is_compiled_where_other_code_is() -> None:
    functions: list[FunctionHandle] = [make() for make in LEAPS.values()]
    functions += [rvm.assemble(smooth.program(seed)).main for seed in range(part(20))]
    functions.append(rvm.assemble(PARTS).f)
    for f in functions:
        program = f.program
        for made in (gradient_program(program, f.name), tangent_program(program, f.name)):
            assert apart(nudged(made, 1, 4)) <= apart(made)


PARTS = """
func f(m: f64[4, n], i: i64, k: i64)
    add m[0], 0.3 * sum(m[1] * m[2])
    sub m[i], m[k] * amax(m[i + 1])
    add m[2:4, 0], m[0:2, 1:3] @ m[1, 0:2]
    mul m[k, 0:3], 1.5 + sum(m[k, 3:])
"""
"""What is added to a part of an array is a function of other parts."""


@sized
@thin
@pytest.mark.parametrize("undo", [False, True])
def test_perturbed_parts_of_one_array_have_the_bits_of_the_law(undo: bool) -> None:
    program = nudged(rvm.assemble(PARTS).program, 2, 4)
    for i, k in ((1, 3), (2, 0), (1, 1), (0, 1)):
        found = []
        for engine in first_and_another(list(ENGINES), (undo, i, k)):
            at = {"m": np.random.default_rng(3).normal(size=(4, 9)), "i": i, "k": k}
            start = rvm.Machine.start(program, "f", at, undo=undo)
            try:
                start.use(rvm.engines.engine(engine)).run()
            except rvm.RvmError as error:
                found.append((error.code, start.time))
            else:
                found.append(start.result.m.tolist())
        assert all(one == found[0] for one in found), (i, k)


PERTURBED = """
func f(x: f64, y: f64[n], z: c128, s: f32)
    add x, sum(y) * 0.3
    sub y, 0.1 + x
    mul z, complex(x, 0.7)
    sub s, f32(x) * f32(0.3)
    add x, z.re - 0.3
"""


@thin(2)
@pytest.mark.parametrize("steps", [1, 4])
def test_all_seeds_have_one_machine_code_and_the_bits_of_the_law(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM compiles it once, also where nothing is kept on disk."""
    pytest.importorskip("llvmlite")
    from rvm.engines.native.compiler import Compiler

    monkeypatch.setenv("RVM_CACHE_DIR", "")
    texts, compiled = list[str](), Compiler.compiled

    def counted(self: Compiler, text: str) -> bytes:
        texts.append(text)
        return compiled(self, text)

    monkeypatch.setattr(Compiler, "compiled", counted)
    program = rvm.assemble(PERTURBED).program
    ends = set()
    for seed in range(1, 4):
        found, other = [], nudged(program, seed, steps)
        for engine in (LAW, "python", "native"):
            at = {"x": 0.3, "y": np.linspace(0, 1, 70), "z": 1 + 2j, "s": 0.4}
            m = rvm.Machine(other, "f", **at, engine=engine).run()
            found.append(repr([np.asarray(v).tolist() for v in m.result.values()]))
        assert found[0] == found[1] == found[2]
        ends.add(found[0])
    assert len(ends) == 3 and len(texts) == 1


def test_perturbed_code_is_as_warm_as_other_code() -> None:
    program = rvm.assemble(VECTORS).program
    other = nudged(program, 2)
    image_of(program).heat["main"] += 1_000
    assert image_of(other).heat["main"] == 1_000


# ---------------------------------------------------------------- what is judged

LOSES = """
func f(s: f64, t: f64, a: f64, b: f64, c: f64, big: f64, x: f64)
    add s, c * a + x * x
    add t, b * b * x
    sub a, big
"""
"""What is added to s needs the a that the last line loses; of the inputs that are only read the
adjoint of c is wrong for it."""


@thin(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_judge_a_gradient_by_the_same_adjoints(engine: str) -> None:
    """By those asked for and of what changes: a wrong one that nobody sees does not count."""
    f = rvm.assemble(LOSES).f.with_options(engine=engine)
    for (wrt, way), want in judged_by_the_law().items():
        assert [judged(f, wrt, way) for _ in range(2)] == [want] * 2, (wrt, way)
    assert judged(f, ("x",), "grad")[0] == {"x": 4.0}
    assert judged(f, ("c",), "grad") == judged(f, None, "grad") == "R017"
    assert judged(f, ("x",), "c") == "R017"


def judged(f: FunctionHandle, wrt: Any, way: str) -> Any:
    """The adjoints of `LOSES` with their errors, or the code of the refusal."""
    inputs = {"s": 0.0, "t": 0.0, "a": 1.0, "b": 2.0, "c": 3.0, "big": 1e20, "x": 2.0}
    try:
        if way == "pullback":
            pull = f.pullback(inputs)
            pull.seed("s")
            found = pull(wrt)
        elif way == "grad":
            found = f.grad(inputs, loss="s", wrt=wrt)
        else:
            found = f.vjp({"s": 1.0, way: 0.5}, inputs, wrt=wrt)
        return dict(found), dict(found.info.error)
    except rvm.RvmError as error:
        return error.code


@cache
def judged_by_the_law() -> dict[tuple[Any, str], Any]:
    f = rvm.assemble(LOSES).f.with_options(engine=LAW)
    parts = (None, (), ("x",), "x", ("c",), ("x", "c"), ("a",), ("b", "s"))
    ways = ("grad", "pullback", "t", "c", "x")
    return {(wrt, way): judged(f, wrt, way) for wrt, way in product(parts, ways)}


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_judge_a_gradient_by_the_adjoints_that_single_calls_do(engine: str) -> None:
    """Adjoints and errors lane by lane, and the verdict on each: of some the second is refused."""
    f = rvm.assemble(LOSES).f.with_options(engine=engine)
    big, x = np.array([0.0, 1e20, 3.0]), np.array([2.0, -1.5, 0.1])
    inputs = {"s": 0.0, "t": 0.0, "a": 1.0, "b": 2.0, "c": 3.0}
    refused = []
    for loss, wrt in product(("s", "t"), (None, [], ["x"], "x", ["c"], ["x", "c"], ["a", "big"])):
        given = inputs | {"big": big, "x": x}
        lanes = f.map.grad(**given, loss=loss, wrt=wrt, on_error="return")
        for k in range(len(x)):
            given |= {"big": big[k], "x": x[k]}
            try:
                alone = f.grad(given, loss=loss, wrt=wrt)
            except rvm.RvmError as error:
                assert lanes.errors[k].code == error.code
                refused.append((loss, wrt))
                continue
            assert k not in lanes.errors and alone.keys() == lanes.info.error.keys()
            for name in alone.keys() & {"big", "x"}:
                assert lanes[name][k] == alone[name], (loss, wrt, name)
                assert lanes.info.error[name][k] == alone.info.error[name], (loss, wrt, name)
    assert refused == [("s", None), ("s", ["c"]), ("s", ["x", "c"])]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("engine", ENGINES)
def test_sizes_of_all_powers_are_judged_without_a_warning(engine: str) -> None:
    f = rvm.assemble("func f(y: f64, a: f64, c: f64, x: f64)\n    sub a, c\n    add y, x * x\n").f
    for power in (*range(20, 309, 24), 300, 305, 307, 308):
        found = f.grad(y=0.0, a=1.0, c=10.0**power, x=2.0, loss="y", engine=engine)
        assert dict(found) == {"y": 1.0, "a": 0.0, "c": 0.0, "x": 4.0}


@pytest.mark.parametrize(
    ("line", "z"), [("exp(z)", 800.0), ("1.0 / z", 0.0), ("log(z)", 0.0), ("expm1(z)", 800 + 1j)]
)
def test_advice_for_infinities_is_none_against_contraction(line: str, z: Any) -> None:
    t, part = ("c128", ".re") if isinstance(z, complex) else ("f64", "")
    f = rvm.assemble(f"func f(y: {t}, z: {t})\n    add y, {line}\n").f
    with pytest.raises(rvm.InvertibilityError, match="`y` did not return") as caught:
        f.grad(y=z * 0, z=z, loss=f"y{part}")
    hint = caught.value.hint
    assert "became infinite or NaN" in hint and "jvp" in hint and "tolerance" not in hint
    f.jvp({"z": 1.0}, y=z * 0, z=z)
