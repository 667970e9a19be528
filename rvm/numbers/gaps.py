"""Gaps: the distance from one number to another, counted in numbers of their type.

The bits of a float in numerical order, `key(b) = b ^ ((b >> 63) & (2**63 - 1))`, are integers:
those of two neighbours differ by one, and -0.0 is next to 0.0.  Gaps are differences of keys modulo
2**64, so there is one between any two numbers, which corrects a guess to the right number.  All
NaNs are one: from a NaN to a NaN the gap is 0, which leaves a number as it is, whatever its bits.
A complex number has a gap for each part.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.types import Scalar

Gaps = NDArray[np.int64]
"""Gaps of the elements of an array in their order, one after another."""
TOP, ALL = 1 << 63, 1 << 64
_LAYOUTS = {64: (Struct("<q"), Struct("<d")), 32: (Struct("<i"), Struct("<f"))}
_STORED = {64: (np.int64, np.float64), 32: (np.int32, np.float32)}
_NAN = {64: 0x7FF8 << 48, 32: 0x7FC0 << 16}


def gap(t: Scalar, guess: Any, meant: Any) -> tuple[int, ...]:
    """The gaps from a raw value to another."""
    if t.parts > 1:
        return _gap(64, guess.real, meant.real), _gap(64, guess.imag, meant.imag)
    if t.is_exact:
        return (_wrapped(int(meant) - int(guess)),)
    return (_gap(_bits(t), guess, meant),)


def moved(t: Scalar, guess: Any, gaps: tuple[int, ...]) -> Any:
    """The raw value at this gap from another."""
    if t.parts > 1:
        return complex(_moved(64, guess.real, gaps[0]), _moved(64, guess.imag, gaps[1]))
    if t.is_exact:
        found = _wrapped(int(guess) + gaps[0])
        return bool(found) if t.is_bool else found if t.is_signed else found % ALL
    return _moved(_bits(t), guess, gaps[0])


def gap_of_floats(guess: float, meant: float) -> int:
    """The gap from an f64 to another."""
    return _gap(64, guess, meant)


def float_moved(guess: float, by: int) -> float:
    """The f64 at this gap from another."""
    return _moved(64, guess, by)


def lost(t: Scalar, guess: Any, meant: Any) -> int:
    """The bits of the gaps from a number, or an array's, to another: 0 where they are equal.

    A gap has the bits of its magnitude; a zero's sign has none.
    """
    if isinstance(meant, np.ndarray):
        return _all_lost(t, np.broadcast_to(guess, meant.shape).astype(meant.dtype), meant)
    if t.parts > 1:
        return _lost(64, guess.real, meant.real) + _lost(64, guess.imag, meant.imag)
    return 0 if t.is_exact else _lost(t.bits, guess, meant)


def _lost(bits: int, guess: float, meant: float) -> int:
    return 0 if guess == meant else abs(_gap(bits, guess, meant)).bit_length()


def _all_lost(t: Scalar, guess: NDArray[Any], meant: NDArray[Any]) -> int:
    if t.is_exact:
        return 0
    off = _floats(t, guess) != _floats(t, meant)
    if not off.any():
        return 0
    # The least integer is its own absolute value: as one without a sign it is right.
    sizes = np.abs(gaps(t, guess, meant)[off]).view(np.uint64)
    # Halves, which a float holds exactly.
    high, low = sizes >> np.uint64(32), sizes & np.uint64(0xFFFFFFFF)
    above, below = (np.frexp(half.astype(np.float64))[1] for half in (high, low))
    return int(np.sum(np.where(high != 0, above + 32, below)))


def _gap(bits: int, guess: float, meant: float) -> int:
    if guess == meant and guess:
        return 0
    if guess != guess and meant != meant:
        return 0
    return _wrapped(_key(bits, meant) - _key(bits, guess))


def _moved(bits: int, guess: float, by: int) -> float:
    if not by:
        return guess
    whole, number = _LAYOUTS[bits]
    key, top = _key(bits, guess) + by, 1 << (bits - 1)
    key = (key + top) % (2 * top) - top
    found: float = number.unpack(whole.pack(key if key >= 0 else key ^ (top - 1)))[0]
    return found


def _key(bits: int, x: float) -> int:
    whole, number = _LAYOUTS[bits]
    found: int = _NAN[bits] if x != x else whole.unpack(number.pack(x))[0]
    return found if found >= 0 else found ^ ((1 << (bits - 1)) - 1)


def _wrapped(n: int) -> int:
    return (n + TOP) % ALL - TOP


def gaps(t: Scalar, guess: Any, meant: Any) -> Gaps:
    """The gaps from the elements of one array to those of another of its shape."""
    if t.is_exact:
        return _whole(meant) - _whole(guess)
    bits, (x, y) = _bits(t), (_floats(t, a) for a in (guess, meant))
    off = (x != y) | (y == 0)
    found: Gaps = np.zeros(len(x), np.int64)
    if off.any():
        x, y = x[off], y[off]
        keys = _keys(bits, y) - _keys(bits, x)
        keys[(x != x) & (y != y)] = 0
        found[off] = keys
    return found


def all_moved(t: Scalar, guess: NDArray[Any], by: Gaps) -> NDArray[Any]:
    """The array whose elements lie so far from those of another."""
    if t.is_exact:
        return (_whole(guess) + by).astype(guess.dtype).reshape(guess.shape)
    if not by.any():
        return np.array(guess)
    bits, x = _bits(t), _floats(t, guess)
    keys = (_keys(bits, x) + by).astype(_STORED[bits][0])
    found = (keys ^ ((keys >> (bits - 1)) & _most(bits))).view(_STORED[bits][1])
    return np.where(by == 0, x, found).view(guess.dtype).reshape(guess.shape)


def _bits(t: Scalar) -> int:
    """The bits in which a number, or a part of one, is held."""
    return 8 * t.row.bytes // t.row.parts


def _most(bits: int) -> int:
    return (1 << (bits - 1)) - 1


def _whole(x: Any) -> Gaps:
    found: Gaps = np.ascontiguousarray(x).reshape(-1).astype(np.int64)
    return found


def _floats(t: Scalar, x: Any) -> NDArray[Any]:
    return np.ascontiguousarray(x).reshape(-1).view(_STORED[_bits(t)][1])


def _keys(bits: int, x: NDArray[Any]) -> Gaps:
    found = np.where(x != x, _NAN[bits], x.view(_STORED[bits][0]))
    keys: Gaps = (found ^ ((found >> (bits - 1)) & _most(bits))).astype(np.int64)
    return keys
