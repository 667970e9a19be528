"""What is made of a program, its machine code among it, goes with the program."""

from __future__ import annotations

import ctypes
import gc
import random
import signal
import sys
from collections import Counter
from mmap import mmap
from threading import Thread

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import executing
from rvm.image import Code, Image
from rvm.program import Program
from rvm.run.machine import Machine

TEXT = """
func f(y: f64, x: f64[n], k: i64)
    for i = 1 to k
        add y, x[i % len(x)] * SOME.5
        mul y, 1.0 + sin(x[i % len(x)]) ** 2
    end
"""
KINDS = (Program, Image, Code, Machine, mmap)


def use(some: int, engine: str) -> None:
    """Make a program, run it there and back, and drop it."""
    f = rvm.assemble(TEXT.replace("SOME", str(some))).f.with_options(engine=engine)
    x = np.ones(3)
    (~f)(**f(y=0.5, x=x, k=9))
    f.grad(loss="y", y=0.5, x=x, k=9)


def live() -> Counter[type]:
    """How many objects of some kinds there are."""
    gc.collect()
    return Counter(t for t in map(type, gc.get_objects()) if t in KINDS)


@thin
@pytest.mark.skipif(sys.platform != "linux", reason="the timer is that of Linux")
@pytest.mark.parametrize("engine", executing())
def test_nothing_is_kept_of_a_dropped_program(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever threads have run it, and if Ctrl-C has stopped it."""
    monkeypatch.setenv("RVM_CACHE_DIR", "")
    use(0, engine)
    before, rng = live(), random.Random(engine)
    threads = [Thread(target=use, args=(k, engine)) for k in (1, 2)]
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for thread in threads:
            thread.start()
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.1))
            use(3, engine)
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, handler)
        for thread in threads:
            thread.join()
    assert live() == before


class Used(ctypes.Structure):
    """What glibc tells of its memory; only `bytes`, which are in use, are looked at."""

    _fields_ = [*((f"f{k}", ctypes.c_size_t) for k in range(7)), ("bytes", ctypes.c_size_t)] + [
        (f"f{k}", ctypes.c_size_t) for k in (8, 9)
    ]


@pytest.mark.skipif("native" not in executing(), reason="there is no LLVM")
def test_llvm_gives_its_memory_back() -> None:
    """Kept pass managers took 140 KB for each compilation of a small function."""
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None:
        pytest.skip("the C library does not tell how much memory is in use")
    tell.restype = Used
    from rvm.engines.native.compiler import compiler

    body = "\n".join(f"  %v{k + 1} = fadd double %v{k}, {k + 1}.5" for k in range(300))
    text = f"define double @f(double %v0) {{\n{body}\n  ret double %v300\n}}\n"
    for _ in range(2):
        compiler().compiled(text)
    before, times = tell().bytes, 12
    for _ in range(times):
        compiler().compiled(text)
    assert tell().bytes - before < 16_000 * times
