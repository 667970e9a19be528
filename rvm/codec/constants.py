"""Constants as sixteen bytes, bit for bit: NaN, its payload and the sign of zero included."""

from __future__ import annotations

import struct
from typing import Any

from rvm.types import Scalar

WIDTH = 16
_DOUBLE = struct.Struct("<d")
_PAIR = struct.Struct("<dd")


def pack(value: Any, t: Scalar) -> bytes:
    """A raw value of type `t`; struct.error, TypeError or OverflowError if it is not one."""
    if t.parts == 2:
        return _PAIR.pack(value.real, value.imag)
    held = t.row.dtype[0]
    if held == "b":
        raw = struct.pack("<?", value)
    elif held in "iu":
        raw = value.to_bytes(8, "little", signed=t.is_signed)
    else:
        raw = _DOUBLE.pack(value)
    return bytes(raw).ljust(WIDTH, b"\0")


def unpack(raw: bytes, t: Scalar) -> Any:
    """The raw value that `pack` wrote; ValueError if the unused bytes are not zero."""
    if t.parts == 2:
        return complex(*_PAIR.unpack(raw))
    held = t.row.dtype[0]
    used = 1 if held == "b" else 8
    if any(raw[used:]):
        raise ValueError("bytes after the value")
    if held == "b":
        if raw[0] > 1:
            raise ValueError("a bool that is neither 0 nor 1")
        return bool(raw[0])
    if held in "iu":
        return int.from_bytes(raw[:8], "little", signed=t.is_signed)
    return _DOUBLE.unpack(raw[:8])[0]
