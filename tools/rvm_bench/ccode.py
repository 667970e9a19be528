"""Peers in C: compiled by the system's compiler into a folder that is gone afterwards."""

from __future__ import annotations

import atexit
import ctypes
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rvm_bench.contest import (
    FORWARD,
    GRADIENT,
    WORK,
    Fresh,
    Go,
    Make,
    Peer,
    Read,
    Values,
    compiler,
    copied,
)

FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno")
"""No fast-math and no fused multiply-add: the arithmetic of the machine."""
FUSED = "-ffp-contract=fast"
"""Additional compiler options for a contestant that may fuse operations."""
Packed = tuple[Sequence[Any], Callable[[], Values]]
"""A C function's arguments, and a function that reads the results from them after the call."""
Pack = Callable[[dict[str, Any]], Packed]


@cache
def _library(name: str, *flags: str) -> ctypes.CDLL:
    """The compiled `name.c`."""
    out = _folder() / f"{name}{''.join(flags)}.so"
    command = [str(compiler()), *FLAGS, *flags, "-shared", "-fPIC", "-o", str(out)]
    subprocess.run([*command, str(WORK / f"{name}.c"), "-lm"], check=True, capture_output=True)
    return ctypes.CDLL(str(out))


@cache
def _folder() -> Path:
    folder = TemporaryDirectory(prefix="rvm-bench-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def c(source: str, function: str, pack: Pack, *flags: str) -> Make:
    """A contestant that calls a C function; `pack` gets inputs that it may change."""

    def make(values: Values) -> Fresh:
        call = getattr(_library(source, *flags), function)
        call.restype = None

        def fresh() -> tuple[Go, Read]:
            arguments, read = pack(copied(values))
            given = [_argument(a) for a in arguments]
            return lambda: call(*given), lambda _: read()

        return fresh

    return make


def packed(arguments: str, results: str) -> Pack:
    """Arguments by name, `#x` for the length of x; numbers among the results are cells."""

    def pack(v: dict[str, Any]) -> Packed:
        held = {k: v[k] if np.ndim(v[k]) else cell(v[k]) for k in results.split()}
        given = [len(v[k[1:]]) if k[0] == "#" else held.get(k, v.get(k)) for k in arguments.split()]
        return given, lambda: {k: a if np.ndim(v[k]) else a[0] for k, a in held.items()}

    return pack


def c_peers(
    source: str,
    pack: Pack,
    wrt: tuple[str, ...] = (),
    seeds: Callable[[Values], Values] | None = None,
    back: Pack | None = None,
) -> tuple[Peer, ...]:
    """C forwards, and as a gradient: after the same arguments, `seeds` and then bars of zeros.

    The seed of an input that changes is its bar.  `back` packs values with a different layout.
    """

    def with_bars(v: dict[str, Any]) -> Packed:
        bars: dict[str, Any] = {} if seeds is None else dict(seeds(v))
        for k in wrt:
            bars.setdefault(k, np.zeros_like(v[k]) if np.ndim(v[k]) else cell())
        found = {k: bars[k] for k in wrt}
        return (*pack(v)[0], *bars.values()), lambda: {
            k: bar if np.ndim(v[k]) else bar[0] for k, bar in found.items()
        }

    peers = [Peer("C", FORWARD, c(source, "forward", pack), "cc")]
    if wrt or back is not None:
        peers.append(Peer("C", GRADIENT, c(source, "gradient", back or with_bars), "cc"))
    return tuple(peers)


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        pointer = value.ctypes.data_as(ctypes.c_void_p)
        pointer.array = value  # type: ignore[attr-defined]   # keeps the memory
        return pointer
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_double(value)


def cell(value: float = 0.0) -> Any:
    """A number that C may change."""
    return np.array([value])
