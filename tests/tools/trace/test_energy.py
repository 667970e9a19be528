"""Energy models: against numbers from their sources, and files that are wrong in every way."""

from __future__ import annotations

from collections import Counter
from math import exp, floor, isfinite
from pathlib import Path

import mpmath
import pytest
from rvm_tools.trace.account import Tally
from rvm_tools.trace.energy import MODELS, Model, deepest
from rvm_tools.trace.energy_models import model
from rvm_tools.trace.table import joules

from rvm.accounts.cost import ADDS, COSTS, MOVES, MULTS, NLOPS, Kind
from rvm.faults import InputError, RvmError, UsageError
from rvm.types import SCALARS


def tally(erased: int = 0, overwritten: int = 0, executed: int = 0, **work: int) -> Tally:
    """A tally; work as `ADDS_f64=3`."""
    kinds = {Kind(*name.split("_")): n for name, n in work.items()}
    return Tally(
        executed, work=Counter(kinds), erased=Counter(freed=erased), overwritten=overwritten
    )


def test_landauers_bit_is_that_of_the_literature() -> None:
    """2.87e-21 J at 300 K; at room temperature about 0.0175 eV (20 °C)."""
    expected = mpmath.mpf("1.380649e-23") * 300 * mpmath.log(2)
    assert model("landauer").energy(tally(erased=1)) == pytest.approx(float(expected), rel=1e-15)
    assert float(expected) == pytest.approx(2.87e-21, rel=1e-3)
    electronvolt = 1.602176634e-19
    at_20 = model("landauer:temperature=293.15").erasing / electronvolt
    assert at_20 == pytest.approx(0.0175, rel=2e-3)


def test_landauer_charges_nothing_else() -> None:
    used = model("landauer")
    work = tally(0, 640, 9, ADDS_f64=7, NLOPS_f64=3)
    assert used.energy(work) == 0
    assert used.ordinary(work) == pytest.approx(640 * 2.8709788850787e-21)
    assert used.xi(work) == 0
    assert used.xi(tally()) is None


@pytest.mark.parametrize(
    ("kind", "picojoules"),
    [
        # Horowitz, ISSCC 2014, figure 1.1.9: 45 nm, 0.9 V
        (Kind(ADDS, "u8"), 0.03),
        (Kind(ADDS, "i32"), 0.1),
        (Kind(MULTS, "u8"), 0.2),
        (Kind(MULTS, "i32"), 3.1),
        (Kind(ADDS, "f32"), 0.9),
        (Kind(MULTS, "f32"), 3.7),
        (Kind(MOVES, "f64"), 10),
        # and what is extrapolated: sums with the width, products with its square
        (Kind(ADDS, "i64"), 0.2),
        (Kind(ADDS, "f64"), 1.8),
        (Kind(MULTS, "i64"), 12.4),
        (Kind(MULTS, "f64"), 14.8),
        (Kind(ADDS, "c128"), 3.6),
        (Kind(MULTS, "c128"), 4 * 14.8 + 3.6),
        (Kind(MULTS, "log64"), 1.8),
        (Kind(NLOPS, "f64"), 10 * (1.8 + 14.8)),
    ],
)
def test_cmos_is_horowitzs_table(kind: Kind, picojoules: float) -> None:
    assert model("cmos").operation(kind) == pytest.approx(picojoules * 1e-12)


def test_cmos_knows_every_type() -> None:
    for cls in COSTS:
        for name in SCALARS:
            assert model("cmos").operation(Kind(cls, name)) > 0


def test_adiabatic_energy_falls_with_the_switching_time() -> None:
    """2 RC/tau of the energy of switching at once."""
    work = tally(ADDS_f64=100)
    fast, slow = model("adiabatic:tau=1e-9,rc=1e-11"), model("adiabatic:tau=1e-7,rc=1e-11")
    at_once = model("cmos").energy(work)
    assert fast.energy(work) == pytest.approx(0.02 * at_once)
    assert slow.energy(work) == pytest.approx(fast.energy(work) / 100)
    assert fast.ordinary(work) == at_once


def test_adiabatic_energy_is_that_of_a_charged_capacity() -> None:
    """Integrated: a ramp of length tau through R onto C, against C V²/2 for a step."""
    r, c, volts, tau = 1.0, 1.0, 1.0, 1000.0

    def power(t: float) -> float:
        # The current onto C under a ramp V t/tau settles to C V/tau within RC.
        current = c * volts / tau * (1 - exp(-t / (r * c)))
        return r * current**2

    n = 200_000
    heat = sum(power((k + 0.5) * tau / n) for k in range(n)) * tau / n
    scale = model(f"adiabatic:tau={tau},rc={r * c}").scale
    assert heat / (c * volts**2 / 2) == pytest.approx(scale, rel=2e-3)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("xi", [1.0, 0.5, 1 / 3, 1 / 27, 1e-3, 1e-12, 1 / 19**4])
def test_the_break_even_depth_by_trying(k: int, xi: float) -> None:
    n = 0
    while (2 * k - 1) ** (n + 1) <= 1 / xi:
        n += 1
    assert deepest(xi, k) == n


def test_no_depth_pays_above_one_and_every_one_at_zero() -> None:
    assert deepest(1.5, 2) == -1
    assert deepest(0.0, 2) is None


# ---------------------------------------------------------------- names and files


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cmoss", "did you mean `cmos`"),
        ("steam", "models: landauer, cmos, adiabatic"),
        ("landauer:tau=1", "parameters: temperature, bit, step, scale"),
        ("cmos:step=-1", "the number 0, or from 1e-60 to 1e+60"),
        ("cmos:step=fast", "the number 0, or from 1e-60 to 1e+60"),
        ("cmos:step=nan", "the number 0, or from 1e-60 to 1e+60"),
        ("landauer:step=1e308", "or from 1e-60 to 1e+60"),
        ("landauer:scale=1e-320", "or from 1e-60 to 1e+60"),
        ("adiabatic:tau=1e-12,rc=1e-12", "at least 2 rc"),
        ("adiabatic:rc=0", "more than 0"),
    ],
)
def test_models_that_there_are_not(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        model(text)
    assert caught.value.code == "U039" and says in str(caught.value)


@pytest.mark.parametrize("step", ["0", "1e-60", "1e60"])
@pytest.mark.parametrize("scale", ["0", "1e-60", "1e60"])
@pytest.mark.parametrize("bit", ["0", "1e-60", "1e60"])
def test_the_least_and_greatest_numbers_have_finite_sums(step: str, scale: str, bit: str) -> None:
    run = tally(erased=2, executed=3)
    used = model(f"landauer:step={step},scale={scale},bit={bit}")
    assert isfinite(used.energy(run)) and isfinite(used.ordinary(run))
    xi = used.xi(run)
    assert xi is None or isfinite(xi)
    assert not xi or deepest(xi, 2) == (-1 if xi > 1 else floor(mpmath.log(1 / mpmath.mpf(xi), 3)))
    assert len(joules(used.energy(run))) < 12


def test_parameters_change_a_model() -> None:
    used = model("cmos:step=70e-12,bit=1e-18")
    assert used.energy(tally(erased=2, executed=3)) == pytest.approx(3 * 70e-12 + 2e-18)
    assert set(MODELS) == {"landauer", "cmos", "adiabatic"}


GOOD = """\
title = "valves"
source = "measured"
bit = 1e-6
step = 0.5
scale = 0.25

[adds]
default = 1.0
f64 = 3.0

[nlops]
f64 = 100
"""


def written(folder: Path, text: str) -> str:
    path = folder / "valves.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_user_defined_model(tmp_path: Path) -> None:
    used = model(written(tmp_path, GOOD))
    assert used == Model(
        "valves",
        "valves",
        "measured",
        bit=1e-6,
        step=0.5,
        scale=0.25,
        ops={ADDS: {"default": 1.0, "f64": 3.0}, NLOPS: {"f64": 100.0}},
    )
    work = tally(1, 10, 4, ADDS_f64=2, ADDS_i64=1, NLOPS_f64=1, NLOPS_f32=9, MOVES_f64=5)
    assert used.working(work) == 4 * 0.5 + 2 * 3 + 1 + 100
    assert used.energy(work) == pytest.approx(109 / 4 + 1e-6)
    assert used.ordinary(work) == pytest.approx(109 + 1e-5)
    assert model(written(tmp_path, GOOD) + ":step=0").energy(tally(executed=9)) == 0
    assert model(written(tmp_path, "")) == Model("valves")


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("title = 3\n", (1, 1), "`title` is a text"),
        ("step = 1\nbit = -1\n", (2, 1), "`bit` is a number"),
        ('bit = "1"\n', (1, 1), "`bit` is a number"),
        ("bit = true\n", (1, 1), "`bit` is a number"),
        ("bit = inf\n", (1, 1), "`bit` is a number"),
        ("colour = 1\n", (1, 1), "there is no `colour`"),
        ("[add]\nf64 = 1\n", (1, 2), "did you mean `adds`"),
        ("[adds]\nf64 = 1\nf65 = 1\n", (3, 1), "did you mean `f64`"),
        ("[moves]\nf64 = 1\n[adds]\n  f64 = 'x'\n", (4, 3), "`f64` is a number"),
        ("adds = 3\n", (1, 1), "`adds` is a table"),
        ("step = \n", (1, 8), "invalid value"),
        ("step 1\n", (1, 6), "expected '='"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, text: str, place: tuple[int, int], says: str) -> None:
    with pytest.raises(InputError) as caught:
        model(written(tmp_path, text))
    error = caught.value
    assert error.code == "I030" and says in str(error)
    assert (error.where.line, error.where.column) == place
    assert error.where.source.endswith("valves.toml")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(RvmError, match="no such file"):
        model("nowhere.toml")
