"""Energy models: the cost of an operation, a step and an erased bit, in joules.

`landauer`, `cmos` and `adiabatic` are built in; your own are files, see `energy_models`. Parameters
after the name change a model: `landauer:temperature=4`, `adiabatic:tau=1e-6`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, log
from typing import Any

from rvm.accounts.cost import ADDS, MOVES, MULTS, NLOPS, Kind
from rvm.types import SCALARS, Scalar
from rvm_tools.trace.account import Tally

BOLTZMANN = 1.380649e-23
"""J/K, exact since the SI of 2019 (CODATA)."""
_ROOM = 300.0
"""K."""
CLASSES = {"moves": MOVES, "adds": ADDS, "mults": MULTS, "nlops": NLOPS}
DEFAULT = "default"
LEAST, MOST = 1e-60, 1e60
"""Between these a number of a model must be, or 0: their products and ratios are finite."""
AMOUNT = f"0, or from {LEAST:g} to {MOST:g}"
_PICO = 1e-12


@dataclass(frozen=True, slots=True)
class Model:
    """The costs of operations, steps and erased bits.

    `ops` gives the joules of an operation by class and type (`default` for any other type); `step`
    those of an executed instruction; `bit` those of an erased bit, None for k T ln 2. A reversible
    run pays `scale` times `ops` and `step`, its ordinary counterpart all of them.
    """

    name: str
    title: str = ""
    source: str = ""
    temperature: float = _ROOM
    bit: float | None = None
    step: float = 0.0
    scale: float = 1.0
    ops: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def erasing(self) -> float:
        """Joules for an erased bit."""
        return BOLTZMANN * self.temperature * log(2) if self.bit is None else self.bit

    def operation(self, kind: Kind) -> float:
        """Joules for an ordinary operation."""
        costs = self.ops.get(kind.cls, {})
        return costs.get(kind.type, costs.get(DEFAULT, 0.0))

    def working(self, tally: Tally) -> float:
        """Joules that operations and instructions take on an ordinary machine."""
        work = sum(n * self.operation(kind) for kind, n in tally.work.items())
        return work + tally.executed * self.step

    def energy(self, tally: Tally) -> float:
        """Joules of a reversible run."""
        return self.scale * self.working(tally) + tally.erased_bits * self.erasing

    def ordinary(self, tally: Tally) -> float:
        """Joules of the irreversible counterpart, which erases what it overwrites."""
        return self.working(tally) + tally.overwritten * self.erasing

    def xi(self, tally: Tally) -> float | None:
        """The energy of the run by that of its counterpart; None if that takes none."""
        ordinary = self.ordinary(tally)
        return self.energy(tally) / ordinary if ordinary else None


def deepest(xi: float, k: int) -> int | None:
    """The greatest depth n of k-ary nesting with (2k-1)^n <= 1/xi; None if any depth will do.

    There undoing the work of k^n steps, in (2k-1)^n, still costs less than erasing it once.
    -1 if a single step costs more already.
    """
    if xi == 0:
        return None
    if xi > 1:
        return -1
    n = floor(log(1 / xi, 2 * k - 1))
    # A logarithm may be off by a rounding on either side.
    while (2 * k - 1) ** (n + 1) <= 1 / xi:
        n += 1
    while n > 0 and (2 * k - 1) ** n > 1 / xi:
        n -= 1
    return n


# ---------------------------------------------------------------- built-in models


def landauer() -> Model:
    """Only the physical minimum: k T ln 2 for each erased bit."""
    return Model(
        "landauer",
        "the physical minimum for erased bits",
        "R. Landauer, IBM J. Res. Dev. 5 (1961) 183; k is exact in the SI of 2019",
    )


_HOROWITZ: dict[str, dict[str, float]] = {
    ADDS: {"u8": 0.03, "i32": 0.1, "f32": 0.9},
    MULTS: {"u8": 0.2, "i32": 3.1, "f32": 3.7},
}
"""pJ at 45 nm and 0.9 V: M. Horowitz, "Computing's energy problem (and what we can do about it)",
ISSCC 2014."""
_CACHE = 10.0
"""pJ for 64 bits from a cache of 8 KB, from the same table."""
_TERMS = 10
"""Products and sums that a nonlinear function is taken to be: an assumption of ours."""


def cmos() -> Model:
    """Arithmetic in 45 nm CMOS, without fetching and decoding instructions."""
    return Model(
        "cmos",
        "arithmetic in CMOS of 45 nm at 0.9 V",
        "M. Horowitz, ISSCC 2014; wider types, moves and nonlinear functions extrapolated",
        ops={
            cls: {t.name: _PICO * of(t) for t in SCALARS.values()}
            for cls, of in (
                (MOVES, lambda t: _CACHE * t.bits / 64),
                (ADDS, _adding),
                (MULTS, _multiplying),
                (NLOPS, lambda t: _TERMS * (_adding(_real(t)) + _multiplying(_real(t)))),
            )
        },
    )


def _real(t: Scalar) -> Scalar:
    """The type in which nonlinear functions are computed."""
    return SCALARS["f64"] if t.is_log or t.is_fixed else t


def _adding(t: Scalar) -> float:
    """pJ for a sum: linear in the width."""
    if t.is_complex:
        return 2 * _adding(SCALARS["f64"])
    if t.is_float or t.is_log:
        return _HOROWITZ[ADDS]["f32"] * t.bits / 32
    return (
        _HOROWITZ[ADDS]["u8"] * t.bits / 8 if t.bits <= 8 else _HOROWITZ[ADDS]["i32"] * t.bits / 32
    )


def _multiplying(t: Scalar) -> float:
    """pJ for a product: quadratic in the width; that of logarithms is a sum."""
    if t.is_complex:
        return 4 * _multiplying(SCALARS["f64"]) + _adding(t)
    if t.is_log:
        return _adding(t)
    if t.is_float:
        return _HOROWITZ[MULTS]["f32"] * (t.bits / 32) ** 2
    return (
        _HOROWITZ[MULTS]["u8"] * (t.bits / 8) ** 2
        if t.bits <= 8
        else _HOROWITZ[MULTS]["i32"] * (t.bits / 32) ** 2
    )


def _adiabatic(tau: float = 1e-8, rc: float = 1e-11) -> Model:
    """CMOS whose nodes are charged slowly: `tau` and `rc` in seconds.

    Charging a capacitance C through a resistance R by a ramp of length tau dissipates (RC/tau) C
    V², instead of C V²/2 at once: the ratio is 2 RC/tau (Athas and others, 1994).
    """
    if not tau >= 2 * rc > 0:
        raise ValueError("tau must be at least 2 rc, and rc more than 0")
    return replace(
        cmos(),
        name="adiabatic",
        title=f"cmos switched slowly, tau = {tau:g} s, RC = {rc:g} s",
        source="W. C. Athas and others, IEEE Trans. VLSI Systems 2 (1994) 398; RC is assumed",
        scale=2 * rc / tau,
    )


MODELS: dict[str, Callable[..., Model]] = {
    "landauer": landauer,
    "cmos": cmos,
    "adiabatic": _adiabatic,
}
OWN = {"adiabatic": ("tau", "rc")}
"""Parameters that make a model; all models have those of `NUMBERS`."""
NUMBERS = ("temperature", "bit", "step", "scale")
"""Numbers of a model that may be given; none may be negative."""


def amount(value: Any) -> float | None:
    """A number that a model may have: `AMOUNT`; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number == 0 or LEAST <= number <= MOST else None
