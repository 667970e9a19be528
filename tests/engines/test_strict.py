"""Strict mode: every bit is back, on every engine, and the log holds what is lost and no more."""

from __future__ import annotations

import itertools
import pickle
import random
from typing import Any

import numpy as np
import pytest
from attack.programs import sound as random_programs
from hypothesis import given
from hypothesis import strategies as st
from rvm_tools.trace.energy_models import model
from rvm_tools.trace.run import counted
from sizes import examples, sample, thin, wide

import rvm
from rvm.engines import engine, executing
from rvm.faults import InvertibilityError, LimitError
from rvm.isa import OPCODES
from rvm.isa.rules import CLASSES
from rvm.run.machine import Machine
from rvm.types import C128, F64

PROGRAM = rvm.assemble("""
func leapfrog(x: f64, v: f64, n: i64)
    for i = 1 to n
        add x, v * 0.01
        sub v, sin(x) * 0.01
    end

func turns(x: f64, y: f64, n: i64)
    for i = 1 to n
        rot x, y, 0.1
    end

func factors(x: f64, n: i64)
    for i = 1 to n
        mul x, 1.1
        div x, 1.3
    end

func half(x: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
    end

func tenth(x: f64, v: f64, n: i64)
    for i = 1 to n
        mul x, 0.1
        add x, v
        rot v, x, 0.3
    end

func element(x: f64[m], n: i64)
    for i = 1 to n
        add x[3], x[4] * 0.1
    end

func whole(x: f64[m], n: i64)
    for i = 1 to n
        add x, 0.1
    end

func absorbing(y: f64, x: f64)
    add y, x

func everything(x: f64, z: c128, l: log64, s: f32, a: f32[m], k: i64, t: stack[f64], w: c128[m])
    routine r
        alloc u: f64 = f64(k) + 0.1
        alloc c: f64 = 0.7
        rot u, c, 0.3
        mul u, 0.3
    end
    add x, u
    mul z, complex(1.5 - f64(k) * 0.1, 0.3)
    add w, z
    hadamard w[0].re, x
    mul l, log64(1.7)
    div l, log64(3.7)
    add s, 0.1
    div s, 1.7
    mul a, s
    add a[1], f32(1e-9)
    if k > 0
        add x, 1.0 / 3.0
    else
        div x, 3.0
    end
    fresh d: f64
    add d, x * 1e-3
    drop d
    alloc e: f64 = x * 1.1
    add e, 1e9
    sub e, 1e9
    free e = x * 1.1
    push x, t
    add x, 0.7
    call inner(x, z.im)
    undo r

func inner(p: f64, q: f64)
    add p, 0.1
    sub p, q / 7.0
""")
MOST = {"leapfrog": 2.1, "turns": 3.2, "factors": 2.1, "half": 2.1, "tenth": 4.5}
"""The most bits for an update, over 3,000 rounds."""


def bits(m: Machine) -> str:
    """All values as text that tells every bit but those of NaNs."""
    rows = [v.tolist() if isinstance(v, np.ndarray) else v for v in m.state.frames[0].regs]
    return repr(rows)


def some(name: str) -> dict[str, Any]:
    """Inputs of a function."""
    rng = np.random.default_rng(3)
    given = {"x": 1.0, "v": 0.5, "y": 0.25, "n": 3000}
    arrays = {"x": rng.normal(size=100), "n": 20}
    given = arrays if name in ("element", "whole") else given
    return {p.name: given[p.name] for p in PROGRAM.program.function(name).params}


@pytest.mark.parametrize("way", executing())
@pytest.mark.parametrize("name", MOST)
@sample
def test_an_update_takes_few_bits(name: str, way: str) -> None:
    m = Machine(PROGRAM, name, engine=way, strict=True, **some(name))
    before = bits(m)
    m.run()
    log = m.state.residue
    assert log is not None
    assert log.bits / 6000 <= MOST[name]
    assert m.residue_bytes <= log.bits / 8 + 24
    m.run_back()
    assert (bits(m), m.residue_bytes) == (before, 0)


@pytest.mark.parametrize("way", executing())
def test_elements_have_gaps_of_their_own(way: str) -> None:
    for name, most in (("element", 20 * 6), ("whole", 20 * 220)):
        m = Machine(PROGRAM, name, engine=way, strict=True, **some(name))
        before = bits(m)
        m.run()
        assert m.state.residue is not None and m.state.residue.bits <= most
        m.run_back()
        assert bits(m) == before


def mixed(seed: int) -> dict[str, Any]:
    """Inputs of `everything`."""
    rng = np.random.default_rng(seed)
    x, s = rng.normal(size=2) * 10.0 ** rng.integers(-9, 9)
    a = rng.normal(size=5).astype(np.float32)
    w = rng.normal(size=5) + 1j * rng.normal(size=5)
    a[0], w[1], k = np.inf, np.nan + 1j, int(rng.integers(0, 2))
    z = complex(*rng.normal(size=2))
    l = rvm.LogNumber(float(rng.normal()))  # noqa: E741
    s = float(np.float32(s))
    return {"x": float(x), "z": z, "l": l, "s": s, "a": a, "k": k, "t": [], "w": w}


def copies(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs with memory of their own."""
    return {k: v.copy() if hasattr(v, "copy") else v for k, v in inputs.items()}


@thin
@pytest.mark.parametrize("seed", range(6))
def test_all_that_loses_bits_is_undone_on_another_engine(seed: int) -> None:
    inputs, want = mixed(seed), ()
    for there in executing():
        for back in executing():
            for chunk in (None, 1, 7):
                m = Machine(PROGRAM, "everything", engine=there, strict=True, **copies(inputs))
                before, size = bits(m), m.state.account.live_bytes
                while not m.finished:
                    m.step(chunk) if chunk else m.run()
                found = (bits(m), m.residue_bytes, m.time, m.erased_bits)
                want = want or found
                assert found == want
                m = pickle.loads(pickle.dumps(m)).use(engine(back))
                assert m.state.account.live_bytes >= m.residue_bytes
                while m.time:
                    m.step(-chunk) if chunk else m.run_back()
                assert (bits(m), m.residue_bytes) == (before, 0)
                assert m.state.account.live_bytes == size


@wide
@examples(25)
@given(st.integers(0, 10**9))
def test_random_programs_there_on_one_engine_and_back_on_another(seed: int) -> None:
    rng = random.Random(seed)
    program = rvm.assemble(random_programs.program(seed))
    options = rvm.Options(engine=rng.choice(executing()), strict=True)
    m = Machine.start(program, "main", random_programs.inputs(seed), options)
    before = bits(m)
    while not m.finished:
        m.use(engine(rng.choice(executing()))).step(rng.choice((1, 13, 500)))
    middle = rng.randrange(m.time + 1)
    m.use(engine(rng.choice(executing()))).seek(middle)
    m.use(engine(rng.choice(executing()))).run()
    while m.time:
        m.use(engine(rng.choice(executing()))).step(-rng.choice((1, 13, 500)))
    assert (bits(m), m.residue_bytes) == (before, 0)


@thin
@pytest.mark.parametrize("way", executing())
def test_the_log_is_within_the_memory_limit(way: str) -> None:
    options = {"engine": way, "strict": True, "max_memory": 2000}
    m = Machine(PROGRAM, "turns", x=1.0, y=0.5, n=10**6, **options)
    before = bits(m)
    with pytest.raises(LimitError, match=r"R011.*strict log"):
        m.run()
    assert 1800 < m.state.account.peak_bytes <= 2000
    assert m.residue_bytes < 2000
    m.run_back()
    assert (bits(m), m.residue_bytes) == (before, 0)
    with pytest.raises(LimitError, match="R011"):
        m.run()
    reference = Machine(
        PROGRAM, "turns", x=1.0, y=0.5, n=10**6, **options | {"engine": "reference"}
    )
    with pytest.raises(LimitError, match="R011"):
        reference.run()
    assert (m.time, bits(m)) == (reference.time, bits(reference))


@pytest.mark.parametrize("way", executing())
def test_a_way_back_that_is_another_one_is_refused(way: str) -> None:
    for n in (5, 15):
        m = Machine(PROGRAM, "half", engine=way, strict=True, x=1.0, n=10).run()
        m["n"] = n
        if n < 10:
            # What is changed from outside leads elsewhere; but there the log must not give out.
            m.run_back()
            continue
        with pytest.raises(InvertibilityError, match="R019"):
            m.run_back()


def test_what_is_left_in_the_log_counts_as_erased() -> None:
    m = Machine(PROGRAM, "absorbing", y=0.3, x=1e16, strict=True)
    trace = counted(m, model("landauer"))
    assert m.state.residue is not None
    assert trace.all.erased_bits == m.state.residue.bits == 70
    assert trace.account.left_label == "(left in the strict log)"
    kept = counted(
        Machine(PROGRAM, "absorbing", y=0.3, x=1e16, strict=True),
        model("landauer"),
        keep_stacks=True,
    )
    assert kept.all.erased_bits == 0


CALLS = rvm.assemble("""
func big(y: f64, x: f64[n], s: stack[f64])
    add y, sum(x) * 1e16
    mul x, 0.1
    add x, 0.3
    push y, s

func other(y: f64, x: f64[n], s: stack[f64])
    add y, 1.0
""")


def arguments() -> dict[str, Any]:
    return {"y": 0.1, "x": np.array([0.1, -0.0, 5e-324]), "s": [0.25]}


def test_a_result_is_taken_back_to_the_bit() -> None:
    big = CALLS.big.with_options(strict=True)
    given_, inputs = arguments(), arguments()
    out = big(**inputs)
    assert out.x is inputs["x"]
    back = (~big)(out)
    assert back.x is inputs["x"] and back.x.tobytes() == given_["x"].tobytes()
    assert (back.y, back.s) == (0.1, [0.25])
    assert back.info.log is None
    # The same where the call was strict and the handle is not, and from a pickle.
    out = pickle.loads(pickle.dumps(CALLS.big(**arguments(), strict=True)))
    assert repr(out.info.log).startswith("<strict log of big, ")
    back = (~CALLS.big)(out)
    assert (back.y, back.x.tobytes()) == (0.1, given_["x"].tobytes())
    assert (~CALLS.big)(**big(**arguments())).y != 0.1, "an ordinary call has no log"
    # Backwards first, and forwards by its log.
    start = dict(big(**arguments()))
    before = {k: v.copy() if hasattr(v, "copy") else v for k, v in start.items()}
    found = big((~big)(**start))
    assert found.y == before["y"] and found.x.tobytes() == before["x"].tobytes()


def test_a_result_without_a_log_is_its_values_by_name() -> None:
    for back in (~CALLS.big, (~CALLS.big).with_options(strict=True)):
        one, two = CALLS.big(**arguments()), CALLS.big(**arguments())
        by_name = back(**two)
        bare = back(one)
        assert bare.keys() == by_name.keys()
        assert bare.x.tobytes() == by_name.x.tobytes() == one.x.tobytes()
        assert bare.s == by_name.s


def test_a_result_that_was_changed_is_refused() -> None:
    big = CALLS.big.with_options(strict=True)
    for change in (
        lambda out: out.x.__setitem__(0, 7.0),
        lambda out: out.s.append(1.0),
        lambda out: out.x.__setitem__(1, -out.x[1]),
    ):
        out = big(**arguments())
        change(out)
        held = out.x.copy()
        with pytest.raises(InvertibilityError, match=r"R019[\s\S]*changed since"):
            (~big)(out)
        assert out.x.tobytes() == held.tobytes()
    out = big(**arguments())
    for wrong in (big, ~CALLS.other, CALLS.other):
        with pytest.raises(InvertibilityError, match="R019"):
            wrong(out)
    (~big)(out)
    with pytest.raises(InvertibilityError, match="R019"):
        (~big)(out)


PLACES = ["a", "z.re", "-w[1].im", "2.0 * x[::-1][1]", "s.top", "-q.top.im"]
COMPLEX = ["z", "-w[1]", "q.top"]
PARAMETERS = (
    "c: bool, a: f64, t: f64, x: f64[3], z: c128, w: c128[2], s: stack[f64], q: stack[c128]"
)


def over_places() -> rvm.Library:
    """Every opcode that changes floats, over all kinds of places, and some pairs of them."""
    lines = []
    for row in OPCODES.values():
        if not row.is_data:
            continue
        for t, places in ((F64, PLACES), (C128, COMPLEX)):
            if not CLASSES[row.types](t):
                continue
            for k in range(len(places)):
                some = itertools.islice(itertools.cycle(places), k, None)
                read = {"T": "1.7", "angle": "t", "bool": "c"}
                given = (next(some) if o.mode == "mut" else read[o.kind] for o in row.operands)
                lines.append(f"{row.name} {', '.join(given)}")
    functions = (
        f"func f{k}({PARAMETERS})\n    " + "\n    ".join(lines[k : k + 10])
        for k in range(0, len(lines), 10)
    )
    return rvm.assemble("\n".join(functions))


@thin
@pytest.mark.parametrize("way", executing())
def test_whatever_is_changed_comes_back_wherever_it_is(way: str) -> None:
    rng, lib = np.random.default_rng(5), over_places()
    for name in lib:
        f = lib[name].with_options(engine=way, strict=True)
        w = rng.normal(size=2) + 1j * rng.normal(size=2)
        given_ = {"a": 0.3, "t": rng.normal(), "x": rng.normal(size=3), "z": 0.7 - 0.1j, "w": w}
        given_ |= {"c": True, "s": [0.1, 0.7], "q": [0.3 + 0.9j]}
        before = pickle.loads(pickle.dumps(given_))
        back = (~f)(f(**given_))
        assert pickle.dumps({n: back[n] for n in before}) == pickle.dumps(before), name
