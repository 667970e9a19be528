"""An llvmlite that is installed and cannot be loaded: what does not ask for it goes on without."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from rvm_tools.checks import CheckRequest
from sizes import thin

import rvm
import rvm.pebble
from rvm.engines import auto, executing
from rvm.engines.native import compiler, host
from rvm.faults import UsageError
from rvm.pebble.bridge.runs import functions

pytest.importorskip("llvmlite")


@pytest.fixture(params=["import", "use"])
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "import":
        monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    else:
        import llvmlite.binding as llvm

        def fails() -> None:
            raise OSError("libLLVM cannot be opened")

        monkeypatch.setattr(llvm, "initialize_native_target", fails)
    monkeypatch.setattr(host.Llvm, "works", False)
    monkeypatch.setattr(host.Llvm, "error", None)
    compiler.compiler.cache_clear()
    yield
    compiler.compiler.cache_clear()


TEXT = """
func f(y: f64, x: f64[n], k: i64)
    for j = 1 to k
        for i = 0 to n - 1
            add y, x[i] * {number}
        end
    end

func step(b: f64[n], a: f64[n])
    for i = 0 to n - 1
        add b[i], cos(a[i]) * {number}
    end
"""
X = np.arange(1.0, 40.0)
AT: dict[str, Any] = {"y": 0.0, "x": X, "k": 50}
ALONG: dict[str, Any] = {"x": np.ones(39)}
Ways = dict[str, Callable[[rvm.FunctionHandle, rvm.FunctionHandle], Any]]


def on_a_machine(f: rvm.FunctionHandle, back: bool = False) -> Any:
    m = f.machine(**AT)
    m.run()
    if back:
        m.run_back()
    return m["y"], m.time


def chain(step: rvm.FunctionHandle, **terms: Any) -> Any:
    return rvm.pebble.iterate(step, 40, pebbles=8, progress=False, **terms)


WAYS: Ways = {
    "call": lambda f, _: [f(**AT) for _ in range(3)],
    "inverse": lambda f, _: [(~f)(**AT) for _ in range(3)],
    "strict": lambda f, _: [f.with_options(strict=True)(**AT) for _ in range(3)],
    "map": lambda f, _: f.map(y=np.zeros(3), x=X, k=50),
    "machine": lambda f, _: on_a_machine(f),
    "machine there and back": lambda f, _: on_a_machine(f, True),
    "grad": lambda f, _: [f.grad(**AT, loss="y") for _ in range(3)],
    "grad with its error": lambda f, _: f.grad(**AT, loss="y").info.error,
    "value_and_grad": lambda f, _: f.value_and_grad(**AT, loss="y"),
    "vjp": lambda f, _: f.vjp({"y": 2.0}, **AT),
    "jvp": lambda f, _: f.jvp(ALONG, **AT),
    "jacobian": lambda f, _: f.jacobian(**AT),
    "hessian": lambda f, _: f.hessian(**AT, loss="y"),
    "taylor": lambda f, _: f.hessian(**AT, loss="y", method="taylor"),
    "hvp": lambda f, _: f.hvp(ALONG, **AT, loss="y"),
    "chain": lambda _, step: chain(step).reach(X).state,
    "chain backwards": lambda _, step: list(chain(step).back(X)),
    "adjoint of a chain": lambda _, step: chain(step).gradient(X, seed=X),
}


def as_text(found: Any) -> str:
    with np.printoptions(threshold=10_000, floatmode="unique"):
        return repr(found)


@thin(2)
@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("way", WAYS)
def test_auto_goes_on_without_machine_code(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (auto, functions):
        monkeypatch.setattr(module, "WARM", 100)
    # A text of its own, so that no machine code of it has been kept.
    lib = rvm.assemble(TEXT.format(number=0.3 + len(way) / 7))

    def made(engine: str) -> str:
        return as_text(WAYS[way](*(h.with_options(engine=engine) for h in (lib.f, lib.step))))

    assert made("auto") == made("python")
    assert not auto.native_is_there()
    with pytest.raises(UsageError, match="cannot be loaded"):
        made("native")


@pytest.mark.usefixtures("broken")
def test_a_check_leaves_the_engine_out() -> None:
    request = CheckRequest.__new__(CheckRequest)
    object.__setattr__(request, "engines", ())
    assert list(request.skipped) == ["native"]
    assert request.every_engine == tuple(n for n in executing() if n != "native")
