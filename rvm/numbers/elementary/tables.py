"""Constants of elementary functions, from `tables.txt`: names, and the words of their values.

`tests/elementary_tables.py` makes that file.
"""

from __future__ import annotations

import struct
from pathlib import Path

from rvm.leaf.ops import F64, I64
from rvm.leaf.trace import Table

_PARTS = Path(__file__).with_suffix(".txt").read_text(encoding="ascii").split("\n\n")
_WORDS = {
    name: bytes.fromhex("".join(digits)) for name, *digits in (part.split() for part in _PARTS)
}


def _numbers(name: str) -> tuple[float, ...]:
    return struct.unpack(f">{len(_WORDS[name]) // 8}d", _WORDS[name])


def _floats(name: str) -> Table:
    return Table(name.lower(), F64, _numbers(name))


def _matrix(name: str, count: int) -> tuple[Table, ...]:
    """So many tables of one length."""
    values = _numbers(name)
    size = len(values) // count
    return tuple(
        Table(f"{name.lower()}_{k}", F64, values[k * size : (k + 1) * size]) for k in range(count)
    )


def _integers(name: str) -> Table:
    words = _WORDS[name]
    return Table(name.lower(), I64, struct.unpack(f">{len(words) // 8}q", words))


EXP_TAIL = _floats("EXP_TAIL")
EXP_BITS = _integers("EXP_BITS")
(STEPS_PER_LN2,) = _numbers("STEPS_PER_LN2")
LN2_STEP = _numbers("LN2_STEP")
LOG2_E = _numbers("LOG2_E")
LOG10_E = _numbers("LOG10_E")
LOG10_2 = _numbers("LOG10_2")
LN2 = _numbers("LN2")
LN2_PAIR = _numbers("LN2_PAIR")
LN10_PAIR = _numbers("LN10_PAIR")
EXP_POLY = _numbers("EXP_POLY")
EXP_LONG_POLY = _numbers("EXP_LONG_POLY")
LOG_INVERSE = _floats("LOG_INVERSE")
LOG_HIGH = _floats("LOG_HIGH")
LOG_LOW = _floats("LOG_LOW")
LOG_POLY = _numbers("LOG_POLY")
HALF_PI = _numbers("HALF_PI")
HALF_PI_PAIR = _numbers("HALF_PI_PAIR")
PI_PAIR = _numbers("PI_PAIR")
(TWO_OVER_PI,) = _numbers("TWO_OVER_PI")
SIN_POLY = _numbers("SIN_POLY")
COS_POLY = _numbers("COS_POLY")
TWO_OVER_PI_BITS = _integers("TWO_OVER_PI_BITS")
ATAN_HIGH = _floats("ATAN_HIGH")
ATAN_LOW = _floats("ATAN_LOW")
ATAN_POLY = _numbers("ATAN_POLY")
ERF_HIGH = _floats("ERF_HIGH")
ERF_LOW = _floats("ERF_LOW")
(TWO_OVER_ROOT_PI,) = _numbers("TWO_OVER_ROOT_PI")
ERF_SLOPE = _numbers("ERF_SLOPE")
ERF_POLY = _numbers("ERF_POLY")
ERFC_SERIES = _numbers("ERFC_SERIES")
ERFC_RANGE = _numbers("ERFC_RANGE")
GAMMA_HIGH = _floats("GAMMA_HIGH")
GAMMA_LOW = _floats("GAMMA_LOW")
GAMMA_POLY = _matrix("GAMMA_POLY", 17)
DIGAMMA_HIGH = _floats("DIGAMMA_HIGH")
DIGAMMA_LOW = _floats("DIGAMMA_LOW")
DIGAMMA_POLY = _matrix("DIGAMMA_POLY", 17)
DIGAMMA_ROOT = _numbers("DIGAMMA_ROOT")
LOG_PI_PAIR = _numbers("LOG_PI_PAIR")
STIRLING_PAIR = _numbers("STIRLING_PAIR")
STIRLING_TAIL = _numbers("STIRLING_TAIL")
DIGAMMA_TAIL = _numbers("DIGAMMA_TAIL")
FACTORIALS = _floats("FACTORIALS")
HURWITZ_TAIL = _matrix("HURWITZ_TAIL", 12)
