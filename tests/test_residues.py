"""What is left of a freed ancilla: verdicts do not depend on units, mistakes are refused, right
programs pass."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sizes import some, thin, wide

import rvm
from rvm.engines import executing
from rvm.faults import InvertibilityError, RvmError
from rvm.image import image_of
from rvm.registry import having
from rvm.run.machine import Machine

ENGINES = executing(loops=False)

RIGHT = """
func orders(x: T, y: T, out: T)
    alloc t: T
    add t, x
    add t, y
    add out, t
    sub t, x
    sub t, y
    free t

func sums(x: T[n], out: T)
    alloc t: T
    for i = 0 to n - 1
        add t, x[i]
    end
    add out, t
    for i = 0 to n - 1
        sub t, x[i]
    end
    free t

func factors(x: T, out: T)
    alloc t: T
    add t, x
    mul t, 0.3
    add t, x
    mul t, 1.7
    add out, t
    div t, 0.51
    sub t, x
    sub t, x / 0.3
    free t

func arrays(x: T[n], out: T[n])
    alloc t: T[n]
    add t, x
    add t, x * 0.3
    mul t, 0.7
    add out, t
    div t, 0.7
    sub t, x
    sub t, x * 0.3
    free t

func exchanged(x: T, y: T, z: T, out: T)
    alloc k: T = z
    swap k, z
    add z, x
    add z, y
    add out, z
    sub z, x
    sub z, y
    swap k, z
    free k = z

func arrays_exchanged(x: T[n], y: T[n], z: T[n], out: T[n])
    alloc k: T[n] = z
    swap k, z
    add z, x
    add z, y
    add out, z
    sub z, x
    sub z, y
    swap k, z
    free k = z

func elements(x: T[n], out: T)
    alloc t: T[n]
    for i = 0 to n - 1
        add t[i], x[i]
        add t[i], 0.3 * x[n - 1 - i]
    end
    add out, t[0]
    sub t, x
    for i = 0 to n - 1
        sub t[i], 0.3 * x[n - 1 - i]
    end
    free t
"""
WRONG = """
func forgotten(x: T, y: T, out: T)
    alloc t: T
    add t, x
    add t, y
    add out, t
    sub t, y
    free t

func other(x: T[n], out: T)
    alloc t: T
    for i = 0 to n - 1
        add t, x[i]
    end
    add out, t
    for i = 1 to n - 1
        sub t, x[i]
    end
    free t

func factor(x: T, out: T)
    alloc t: T
    add t, x
    mul t, 0.3
    add out, t
    div t, 0.31
    sub t, x
    free t

func array(x: T[n], out: T[n])
    alloc t: T[n]
    add t, x
    add t, x * 0.3
    add out, t
    sub t, x
    sub t, x * 0.31
    free t

func element(x: T[n], out: T)
    alloc t: T[n]
    add t, x
    add out, t[1]
    for i = 1 to n - 1
        sub t[i], x[i]
    end
    free t

func exchanged(x: T, y: T, z: T, out: T)
    alloc k: T = z
    swap k, z
    add z, x
    add z, y
    add out, z
    sub z, x
    swap k, z
    free k = z

func once_more(x: T, out: T)
    alloc t: T = x
    add t, x * 1e-3
    add out, t
    free t = x
"""
REAL = """
func turned(x: T, y: T, out: T)
    alloc a: T = x
    alloc b: T = y
    rot a, b, 0.7
    add out, a
    rot a, b, 0.4
    irot a, b, 1.1
    free b = y
    free a = x
"""
TURNED_WRONG = REAL.replace("irot a, b, 1.1", "irot a, b, 1.2")
SCALES = {"f64": 300, "c128": 300, "f32": 30}


def programs() -> Iterator[tuple[rvm.Library, str, str, bool]]:
    for t in SCALES:
        real = "" if t == "c128" else REAL
        wrong = "" if t == "c128" else TURNED_WRONG
        for text, fine in ((RIGHT + real, True), (WRONG + wrong, False)):
            library = rvm.assemble(text.replace("T", t))
            for name in library:
                yield library, name, t, fine


def inputs(library: rvm.Library, name: str, t: str, seed: int, k: int) -> dict[str, Any]:
    """Random inputs times 2 ** k."""
    rng = np.random.default_rng(seed)
    dtype = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}[t]

    def draw(n: int) -> Any:
        x = rng.normal(size=n) * 2.0 ** rng.uniform(-3, 3, n)
        if t == "c128":
            x = x + 1j * rng.normal(size=n)
        return (x.astype(dtype) * dtype(2.0**k)).astype(dtype)

    function = library.program.function(name)
    out: dict[str, Any] = {}
    for p in function.params:
        text = rvm.program.type_text(function, p.layout)  # type: ignore[arg-type]
        x = draw(7)
        out[p.name] = x if "[" in text else x[0].item()
    return out


def verdict(library: rvm.Library, name: str, engine: str, given: dict[str, Any]) -> str:
    given = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
    try:
        library[name](engine=engine, **given)
    except InvertibilityError as error:
        return error.code
    return "passes"


@wide
@pytest.mark.parametrize("engine", ENGINES)
@some
def test_verdicts_do_not_depend_on_units(engine: str) -> None:
    for library, name, t, fine in programs():
        far = SCALES[t]
        for seed in range(3):
            found = {
                k: verdict(library, name, engine, inputs(library, name, t, seed, k))
                for k in (-far, -far // 3, -1, 0, 1, far // 2, far)
            }
            assert set(found.values()) == {"passes" if fine else "R001"}, (name, t, seed, found)


def test_logarithms_have_no_unit_either() -> None:
    text = """
func right(x: log64, y: log64)
    alloc t: log64 = x
    mul t, y
    mul t, x
    div t, y
    div t, x
    free t = x

func wrong(x: log64, y: log64)
    alloc t: log64 = x
    mul t, y
    mul t, x
    div t, y
    free t = x

func right_arrays(x: log64[n], y: log64)
    alloc t: log64[n] = x
    mul t, x
    mul t[1], y
    mul t, x
    div t[1], y
    for i = 0 to n - 1
        div t[i], x[i]
        div t[i], x[i]
    end
    free t = x

func wrong_arrays(x: log64[n], y: log64)
    alloc t: log64[n] = x
    mul t, x
    mul t[1], y
    for i = 1 to n - 1
        div t[i], x[i]
    end
    div t[1], y
    free t = x
"""
    library = rvm.assemble(text)
    rng = np.random.default_rng(8)
    for k in range(-300, 301, 50):
        x, y = (rvm.LogNumber(v * 2.0**k) for v in (0.3, 1.1))
        for engine in ENGINES:
            assert verdict(library, "right", engine, {"x": x, "y": y}) == "passes"
            assert verdict(library, "wrong", engine, {"x": x, "y": y}) == "R001"
            # Raw values of a log64 are logarithms.
            given = {"x": rng.normal(size=5) * 2.0**k, "y": y}
            assert verdict(library, "right_arrays", engine, given) == "passes"
            assert verdict(library, "wrong_arrays", engine, given) == "R001"


FORGOTTEN = """
func f(m: f64, y: f64)
    alloc t: f64
    add t, m * 2.0
    add y, t
    free t

func g(x: f64, out: f64)
    alloc t: f64 = x
    add t, 1.0
    add out, t
    free t = x
"""


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_a_forgotten_undo_is_refused_however_small_the_numbers(engine: str) -> None:
    library = rvm.assemble(FORGOTTEN)
    for m in (1e-10, 1.6e-19, 1e-300, 1.0, 1e300):
        assert verdict(library, "f", engine, {"m": m, "y": 0.0}) == "R001"
    assert verdict(library, "g", engine, {"x": 1e9, "out": 0.0}) == "R001"


DENORMALS = """
func wrong(m: T, y: T)
    alloc t: T
    add t, m * 2
    add y, t
    free t

func right(m: T, y: T, a: T)
    alloc t: T
    add t, m
    mul t, a
    add y, t
    alloc u: T = a
    div t, u
    free u = a
    sub t, m
    free t
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("t", ["f64", "f32", "c128"])
def test_denormals_are_judged_by_their_own_gaps(engine: str, t: str) -> None:
    """Every run ends: a difference of a gap or two is rounding, larger ones are mistakes."""
    gap = 2.0**-149 if t == "f32" else 2.0**-1074
    program = rvm.assemble(DENORMALS.replace("T", t))
    for many in (3, 1000, 1 << 20):
        with pytest.raises(InvertibilityError, match="freed with a wrong value"):
            program.wrong(m=many * gap, y=0, engine=engine)
    for many in (1, 3, 1000, (1 << 20) + 1):
        result = program.right(m=many * gap, y=0, a=0.3, engine=engine)
        assert abs(result["y"] - 0.3 * many * gap) <= gap
        assert (result.info.erased_bits > 0) == (result.info.drift > 0)
        assert result.info.drift <= 1


SQUARES = """
func squares(x: T[n], y: T)
    routine norm
        alloc s: T
        for i = 0 to n - 1
            add s, x[i] * x[i]
        end
    end
    add y, s
    undo norm
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("t", "n", "size"), [("f32", 10, 1.0), ("f64", 100, 1e4)])
def test_sums_of_squares_pass(engine: str, t: str, n: int, size: float) -> None:
    library = rvm.assemble(SQUARES.replace("T", t))
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = (rng.normal(size=n) * size).astype(np.float32 if t == "f32" else np.float64)
        assert verdict(library, "squares", engine, {"x": x, "y": 0.0}) == "passes"


MATCHED = """
func put(t: f64, x: f64)
    add t, x * 3.0

func all(x: f64, y: f64[n], out: f64, s: stack[f64])
    routine made
        alloc t: f64 = x * 2.0
        alloc u: f64
        call put(u, x)
        if u > 0.0
            add t, u
        else
            sub t, u
        end
        for i = 0 to n - 1
            add t, y[i] * u
            swap t, u
        end
    end
    add out, t
    push t, s
    pop t, s
    undo made

func changed(x: f64, out: f64)
    alloc t: f64
    add t, x
    add out, t
    add x, 1e-3
    sub t, x
    free t

func out_of_order(x: f64, y: f64, out: f64)
    alloc t: f64
    add t, x
    mul t, y
    add out, t
    sub t, x
    div t, y
    free t
"""


def test_what_is_undone_by_construction_is_known() -> None:
    image = image_of(rvm.assemble(MATCHED))
    for undo in (False, True):
        assert not image.code("all", undo).sizes
        assert image.code("changed", undo).sizes
        assert image.code("out_of_order", undo).sizes
    library = rvm.assemble(MATCHED)
    for x in (1e-250, 0.3, 1e200):
        for engine in ENGINES:
            given = {"x": x, "y": np.array([0.3, 1.7, 1e-3]), "out": 0.0, "s": []}
            assert verdict(library, "all", engine, given) == "passes"
            wrong = {"x": x, "out": 0.0}
            if x < 1e10:
                assert verdict(library, "changed", engine, wrong) == "R001"
            assert verdict(library, "out_of_order", engine, {**wrong, "y": 0.7}) == "R001"


def test_a_residue_that_is_not_finite_is_refused() -> None:
    library = rvm.assemble(
        "func f(x: f64, y: f64)\n    alloc t: f64 = y\n    add t, x\n    sub t, x\n    free t = y\n"
    )
    for engine in ENGINES:
        assert verdict(library, "f", engine, {"x": math.inf, "y": 1.0}) == "R001"
        assert verdict(library, "f", engine, {"x": 1.0, "y": math.nan}) == "passes"
        assert verdict(library, "f", engine, {"x": 1e16, "y": 1.0}) == "passes"


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_what_nothing_is_left_of_is_lost(engine: str) -> None:
    """Beside 1e16 nothing of 0.3 is left to be seen."""
    text = """
func lost(x: f64, y: f64, z: f64)
    alloc t: f64 = x
    add t, y
    add t, z
    sub t, y
    sub t, z
    free t = x
"""
    with pytest.raises(InvertibilityError, match="lost") as caught:
        rvm.assemble(text).lost(x=0.3, y=1e16, z=3.0, engine=engine)
    assert caught.value.code == "R001"


CANCELS = """
func f(x: f64, out: f64)
    alloc t: f64 = exp(x)
    alloc u: f64 = log(t)
    add out, u
    free t = exp(u)
    free u = x
"""


def test_a_residue_larger_than_allowed_is_tried_before_it_is_refused() -> None:
    library = rvm.assemble(CANCELS)
    for x in (0.3, 20.5, 300.7, 1e-9):
        for engine in ENGINES:
            assert verdict(library, "f", engine, {"x": x, "out": 0.0}) == "passes", x


def test_a_tolerance_is_in_parts_of_how_large_a_place_has_been() -> None:
    library = rvm.assemble(FORGOTTEN)
    for engine in ENGINES:
        for x in (1e-9, 1.0, 1e9):
            given = {"m": x / 2, "y": 0.0}
            assert library.f(engine=engine, tolerance=1.0, **given).y == x
            with pytest.raises(InvertibilityError):
                library.f(engine=engine, tolerance=0.9, **given)
        assert library.g(engine=engine, x=1e9, out=0.0, tolerance=1e-8).out == 1e9 + 1
        with pytest.raises(InvertibilityError):
            library.g(engine=engine, x=1e9, out=0.0, tolerance=1e-10)
        orders = rvm.assemble(RIGHT.replace("T", "f64")).orders
        assert orders(engine=engine, x=0.1, y=0.2, out=0.0).out == 0.1 + 0.2
        with pytest.raises(InvertibilityError):
            orders(engine=engine, x=0.1, y=0.2, out=0.0, tolerance=0)


def test_what_was_changed_from_outside_is_not_known_by_construction() -> None:
    text = "func f(x: f64)\n    alloc t: f64\n    add t, x\n    nop\n    sub t, x\n    free t\n"
    library = rvm.assemble(text.replace("    nop\n", "    add x, 0.0\n    sub x, 0.0\n"))
    for engine in ENGINES:
        m = Machine(library, "f", engine=engine, x=1.0)
        m.seek(3)
        m["t"] = 1.5
        with pytest.raises(RvmError, match="t"):
            m.run()


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_lanes_are_judged_each_by_itself(engine: str) -> None:
    right = rvm.assemble(RIGHT.replace("T", "f64"))
    wrong = rvm.assemble(WRONG.replace("T", "f64"))
    x = np.array([1e-200, 0.1, 1e200])
    out = right.orders.map(x=x, y=x * 7, out=np.zeros(3), engine=engine)
    assert np.array_equal(out["out"], x + x * 7)
    with pytest.raises(RvmError):
        wrong.forgotten.map(x=x, y=x * 7, out=np.zeros(3), engine=engine)


def test_frees_of_the_large_examples_are_matched() -> None:
    """Leapfrog, bodies and a mixture of Gaussians pay nothing for the bookkeeping of sizes."""
    for name in ("leapfrog", "gradients/gmm"):
        program = rvm.load(f"examples/{name}.rasm").program
        image = image_of(program)
        assert not any(image.sizes(f)[0] for f in program.functions), name


RESTORED = """
func leaves(y: f64[2], x: f64)
    add y, 0.1 * x
    add y, 1e4 * x
func passes(y: f64[2], x: f64)
    call leaves(y, x)
    uncall leaves(y, x)
func deeper(y: f64[2], x: f64, n: i64)
    if n > 0
        call deeper(y, x, n - 1)
    end
    call passes(y, x)
func gains(y: f64[2], x: f64, n: i64)
    if n > 0
        call gains(y, x, n - 1)
    else
        add y, x
    end
func main(x: f64, b: f64, c: f64[2])
    alloc y: f64[2]
    call passes(y, x)
    call leaves'(y, x; c, b)
    free y
func recursive(x: f64)
    alloc y: f64[2]
    call deeper(y, x, 3)
    free y
"""


@pytest.mark.parametrize("engine", executing())
@some
def test_what_a_callee_restores_by_construction_is_known_to_the_caller(engine: str) -> None:
    library = rvm.assemble(RESTORED)
    image = image_of(library.program)
    assert {n: image.restored(n) for n in library} == {
        "leaves": {1},
        "passes": {0, 1},
        "deeper": {0, 1, 2},
        "gains": {1, 2},
        "main": {0, 2},
        "recursive": {0},
        "leaves'": {0, 1, 2},
        "leaves~'": {1, 2},
    }
    # So no size of `y` is kept, by which what is left of it would be judged.
    assert image.sizes(library.program.function("main"))[0] == {}
    for x in (1.0, 1e-3, 7.3):
        assert library["main"].with_options(engine=engine)(
            x=x, b=0.0, c=np.array([1.0, 2.0])
        ).b == pytest.approx(3 * 10000.1)


@wide
def test_drift_is_the_same_bits_on_every_engine() -> None:
    """And in lanes: complex numbers too, single ones and arrays."""
    for library, name, t, fine in programs():
        if not fine:
            continue
        many = [inputs(library, name, t, seed, 0) for seed in range(12)]
        found = {
            engine: [
                library[name](engine=engine, **{k: np.copy(v)[()] for k, v in given.items()})
                for given in many
            ]
            for engine in executing()
        }
        drifts = {engine: [out.info.drift for out in outs] for engine, outs in found.items()}
        assert max(drifts["reference"]) > 0
        assert all(d == drifts["reference"] for d in drifts.values()), (name, t, drifts)
        dtype = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}[t]
        rows = {k: np.stack([given[k] for given in many]).astype(dtype) for k in many[0]}
        for engine in having("lanes"):
            run = library[name].map(engine=engine, **rows)
            assert run.info.drift == max(drifts["reference"]), (name, t, engine)


HANDED_ON = {
    "swap": "    swap p, b\n    free p\n    add b, e",
    "push": "    push p, s\n    free p\n    add s.top, e",
    "element": "    swap p, v[1]\n    free p\n    add v[1], e",
    "part": "    exch p, z.im\n    free p\n    add z.im, e",
}


@thin
@pytest.mark.parametrize("how", HANDED_ON)
def test_what_is_handed_on_may_have_been_rounded_before_it_is_handed_back(how: str) -> None:
    """A run of the inverse alone begins with what rounding has left: it is not refused for that."""
    f = rvm.assemble(f"""
func f(x: f64, e: f64, b: f64, v: f64[2], z: c128, s: stack[f64])
    alloc p: f64 = x
{HANDED_ON[how]}
""").f
    rng = random.Random(1)
    for k in range(60):
        unit = 2.0 ** rng.randint(-300, 300)
        given = {"x": unit * rng.uniform(-2, 2), "e": unit * rng.uniform(-9, 9)}
        rest = {"b": 0.0, "v": np.zeros(2), "z": 0j, "s": []}
        out = f(**given, **rest)
        back = (~f)(**out)
        assert (back.x, back.e) == (given["x"], given["e"]), k
        # A number that is off by more than it can have been rounded is refused still.
        wrong = {**f(**given, **{**rest, "v": np.zeros(2), "s": []}), "x": given["x"] * (1 + 1e-9)}
        with pytest.raises(InvertibilityError, match="`p` does not have"):
            (~f)(**wrong)


NANS = list(itertools.product([math.nan, 0.0, -0.0, 1.0], repeat=2))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_complex_number_that_is_not_one_is_reported_by_each_part_where_every_bit_counts(
    engine: str,
) -> None:
    lib = rvm.assemble("""
func number(x: c128, y: c128)
    alloc t: c128 = x
    free t = y

func array(x: c128[n], y: c128[n])
    alloc t: c128[n] = x
    free t = y
""")
    for have, want in itertools.product(NANS, NANS):
        alike = [str(p) == str(q) for p, q in zip(have, want, strict=True)]
        x, y = complex(*have), complex(*want)
        for f, given in (
            (lib.number, {"x": x, "y": y}),
            (lib.array, {"x": np.array([1j, x]), "y": np.array([1j, y])}),
        ):
            try:
                f.with_options(engine=engine, tolerance=0)(**given)
                assert all(alike), (have, want)
            except InvertibilityError:
                assert not all(alike), (have, want)


# ------------------------------------------------------------------ values changed from outside

CHANGED = """
func main(x: f64[n], v: f64[n], y: f64, k: i64)
    for i = 1 to k
        call bowl'(0.0, x; -0.1, v)
        call bowl(y, x)
        uncall bowl'(0.0, x; 0.3, v)
    end

func bowl(e: f64, x: f64[n])
    alloc t: f64 = 0.0
    add t, sin(x[0])
    add t, 3.0 * x[1]
    add t, sin(x[1])
    add e, t * t
    sub t, sin(x[1])
    sub t, 3.0 * x[1]
    sub t, sin(x[0])
    free t = 0.0
"""


_assembled = cache(rvm.assemble)


def _changed(engine: str, time: int) -> rvm.Machine:
    x, v = np.array([0.3, -1.1, 0.7]), np.array([0.1, 0.2, 0.9])
    made = rvm.Machine(_assembled(CHANGED), x=x, v=v, y=0.1, k=3, engine=engine)
    made.step(time)
    return made


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_values_changed_from_outside_cast_no_doubt_on_later_ancillas(engine: str) -> None:
    for there in (False, True):
        m = _changed(engine, 0)
        if there:
            m.run()
        m["y"] += 0.25
        for _ in range(2):
            assert m.run()["y"] != 0.1
            assert m.run_back().time == 0


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_live_when_values_were_changed_is_judged(engine: str) -> None:
    found = []
    for time, back in itertools.product(range(3, 60, 5), (False, True)):
        m = _changed(engine, time)
        if "t" in m.registers():
            m["t"] += 1e-9
            with pytest.raises(RvmError) as caught:
                m.run_back() if back else m.run()
            found.append(caught.value.code)
    assert len(found) >= 6 and {*found} <= {"R001", "R017"}
