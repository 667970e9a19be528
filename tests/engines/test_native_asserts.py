"""Assertions in machine code: tested where they stand, told by the engine that is the law."""

from __future__ import annotations

import numpy as np
import pytest

import rvm
from rvm.engines import ENGINES, LAW, having
from rvm.engines.auto import is_all_compiled
from rvm.faults import MachineError, RvmError
from rvm.image import image_of

pytest.importorskip("llvmlite")

TEXT = """
func f(s: f64, x: f64[n], most: f64)
    for i = 0 to n - 1
        extern forward
            assert x[i] < most, "too large", x[i], i
        end
        add s, x[i]
        extern backward
            assert s > -1e9
            print "never on the way there"
        end
    end
    extern both
        assert sum(x) < 1e300 and n >= 0
    end
"""


def test_a_loop_with_assertions_is_compiled_whole() -> None:
    image = image_of(rvm.assemble(TEXT))
    from rvm.ir.function import plan_of

    assert not plan_of(image.code("f", False), True, False).flow.apart
    assert len(plan_of(image.code("f", True), True, False).flow.apart) == 1, "the print"
    without = TEXT.replace('            print "never on the way there"\n', "")
    assert is_all_compiled(image_of(rvm.assemble(without)), "f")


@pytest.mark.parametrize("at", [0, 1, 500, 998, 999])
def test_assertions_fail_alike_on_every_engine(at: int) -> None:
    program = rvm.assemble(TEXT)
    seen = []
    for engine in ENGINES:
        x = np.linspace(0.0, 1.0, 1_000)
        x[at] = 5.0
        with pytest.raises(MachineError) as caught:
            program.f(s=0.0, x=x, most=2.0, engine=engine)
        error = caught.value
        seen.append((error.code, error.message, error.time, str(error.where), repr(error.values)))
        assert x[at] == 5.0
    assert len(set(seen)) == 1, seen
    assert seen[0][0] == "R013" and "too large" in seen[0][1]


def test_they_hold_there_and_back() -> None:
    program = rvm.assemble(TEXT.replace('            print "never on the way there"\n', ""))
    x = np.linspace(0.0, 1.0, 300)
    for engine in ENGINES:
        f = program.f.with_options(engine=engine)
        out = f(s=0.0, x=x, most=2.0)
        assert (~f)(**out).s == pytest.approx(0.0, abs=1e-12)
        with pytest.raises(RvmError) as caught:
            (~f)(s=-1e10, x=x, most=2.0)
        assert caught.value.code == "R013"


def test_lanes_with_assertions_are_those_of_single_runs() -> None:
    program = rvm.assemble(TEXT.replace('            print "never on the way there"\n', ""))
    x = np.linspace(0.0, 1.0, 40 * 30).reshape(40, 30).copy()
    x[7, 12] = 9.0
    x[31, 0] = 9.0
    single = [program.f(s=0.0, x=row.copy(), most=10.0).s for row in x]
    for engine in ("auto", *having("lanes")):
        found = program.f.map(s=0.0, x=x, most=5.0, engine=engine, on_error="return")
        assert sorted(found.errors) == [7, 31]
        assert all(e.code == "R013" for e in found.errors.values())
        for lane in set(range(40)) - {7, 31}:
            assert found.s[lane] == single[lane]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_assertion_shows_is_asked_for_where_it_fails(engine: str) -> None:
    """An index beyond the array is no matter as long as the assertion holds."""
    program = rvm.assemble(
        "func f(y: i64, x: i64[n], k: i64)\n    extern forward\n"
        '        assert y < 3, "large", x[k]\n    end\n    add y, 1\n'
    )
    x = np.arange(4)
    assert program.f(y=2, x=x, k=99, engine=engine).y == 3
    with pytest.raises(RvmError) as caught:
        program.f(y=3, x=x, k=2, engine=engine)
    assert caught.value.code == "R013"


def test_they_are_compiled_without_checks_too() -> None:
    program = rvm.assemble(TEXT)
    with pytest.raises(MachineError):
        program.f(s=0.0, x=np.full(3, 7.0), most=2.0, engine="native", checks=False)


def test_counts_are_those_of_single_steps() -> None:
    program = rvm.assemble(TEXT)
    x = np.linspace(0.0, 1.0, 50)
    counted = []
    for engine in (LAW, "native"):
        machine = rvm.Machine(program, "f", s=0.0, x=x.copy(), most=2.0, engine=engine)
        counts = machine.count()
        machine.run()
        counted.append((machine.time, str(counts.total()) if hasattr(counts, "total") else ""))
    assert counted[0] == counted[1]
