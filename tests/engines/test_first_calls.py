"""Threads that call a function for the first time at once: what they need is made once."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import sample

import rvm
from rvm import image
from rvm.engines import ENGINES, python
from rvm.engines.lanes import plan as lanes_plan
from rvm.transform import programs

pytest.importorskip("llvmlite")

TEXT = """
func f(y: f64, x: f64[n], k: i64)
    for i = 0 to n - 1
        call g(y, x[i], k)
    end

func g(y: f64, x: f64, k: i64)
    for j = 1 to k
        add y, sin(x) * 0.5
    end
"""
THREADS = 8


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How often each thing is made."""
    from rvm.engines.native.compiler import compiler
    from rvm.ir import function

    counts: Counter[Any] = Counter()
    monkeypatch.setenv("RVM_CACHE_DIR", "")

    def watch(owner: Any, name: str, key: Callable[..., object]) -> None:
        before = getattr(owner, name)

        def counted(*given: Any, **more: Any) -> Any:
            counts[owner.__name__, name, key(*given)] += 1
            return before(*given, **more)

        monkeypatch.setattr(owner, name, counted)

    watch(image.Image, "__init__", lambda self, program: id(program))
    watch(image.Code, "__init__", lambda self, image, function, undo: (function.name, undo))
    watch(
        python.Compiled, "__init__", lambda self, code, strict, kind: (code.name, code.undo, kind)
    )
    watch(lanes_plan.LanePlan, "__init__", lambda self, code, params, _: (code.name, params))
    watch(programs, "gradient", lambda program, name: name)
    watch(programs, "tangent", lambda program, name: name)
    watch(function, "_planned", lambda code, *_: (code.name, code.undo, *_))
    llvm = compiler()
    compiled = llvm.compiled

    def counting(text: str) -> bytes:
        counts["llvm", text] += 1
        return compiled(text)

    monkeypatch.setattr(llvm, "compiled", counting)
    return counts


def together(call: Callable[[], Any]) -> list[Any]:
    """What each of some threads gets, which begin at once."""
    barrier = threading.Barrier(THREADS)
    found: list[Any] = []

    def work() -> None:
        barrier.wait()
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "call": lambda f, x: f(y=0.0, x=x, k=3).y,
    "inverse": lambda f, x: (~f)(y=0.0, x=x, k=3).y,
    "grad": lambda f, x: f.grad(loss="y", y=0.0, x=x, k=3).x.tolist(),
    "jvp": lambda f, x: f.jvp({"x": np.ones_like(x)}, y=0.0, x=x, k=3)[1].y,
    "map": lambda f, x: f.map(y=np.zeros(40), x=x, k=3).y.tolist(),
    "map.grad": lambda f, x: f.map.grad(loss="y", y=np.zeros(40), x=x, k=3).x.tolist(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
@sample
def test_first_calls_at_once_make_everything_once(
    made: Counter[Any], engine: str, way: str
) -> None:
    if engine == "reference" and way.startswith("map"):
        pytest.skip("lanes run one by one")
    x = np.linspace(0.0, 1.0, 9)
    f = rvm.assemble(TEXT).f.with_options(engine=engine)
    found = together(lambda: WAYS[way](f, x.copy()))
    assert not [e for e in found if isinstance(e, BaseException)]
    assert all(v == found[0] for v in found)
    programs = Counter(key[:2] for key in made)
    twice = {key: n for key, n in made.items() if n > 1 and key[0] != "Code"}
    assert not twice, twice
    codes = {key: n for key, n in made.items() if key[0] == "Code"}
    assert all(n <= programs["Image", "__init__"] for n in codes.values()), codes


def test_threads_of_a_forked_process_can_make_things() -> None:
    """The one that was making something when the process was forked is not in the child."""
    import os

    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    from rvm.host import once

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with once.making():
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        found = once.once({}, 1, int, lambda: 7)
        os._exit(found)
    done.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_machines_of_one_program_on_many_threads() -> None:
    """What one has begun to find out, another does not take for finished."""
    text = (
        "func f(x: f64[n], k: i64)\n    for r = 1 to k\n        add x[0], 0.5\n    end\n"
        + "".join(f"    add x[{i}], x[{i} + 1] * 0.5\n" for i in range(60))
    )
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(4):
            program = rvm.assemble(text)

            def run(program: Any = program) -> int:
                machine = rvm.Machine(program, "f", x=np.ones(99), k=3, engine="native")
                machine.seek(9)
                return machine.time

            assert set(together(run)) == {9}
    finally:
        sys.setswitchinterval(before)
