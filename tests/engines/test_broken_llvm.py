"""An llvmlite that is installed and cannot be loaded: what does not ask for it goes on without."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from rvm_tools.checks import CheckRequest

import rvm
from rvm.engines import auto, executing
from rvm.engines.native import compiler, host
from rvm.faults import UsageError

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
"""


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("way", ["call", "map", "gradient", "machine"])
def test_auto_goes_on_without_machine_code(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "WARM", 100)
    # A text of its own, so that no machine code of it has been kept.
    f = rvm.assemble(TEXT.format(number=0.3 + len(way) / 7)).f
    x = np.arange(1.0, 40.0)

    def made(engine: str) -> list[object]:
        g = f.with_options(engine=engine)
        if way == "machine":
            m = g.machine(y=0.0, x=x, k=50)
            m.run()
            return [m["y"]]
        if way == "map":
            return [*g.map(y=np.zeros(3), x=x, k=50).y]
        if way == "gradient":
            return [*g.grad(y=0.0, x=x, k=50, loss="y").x]
        return [g(y=0.0, x=x, k=50).y for _ in range(3)]

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
