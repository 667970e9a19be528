"""Generated Python: what it does itself, and the parts of numbers that it stores whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rvm
from rvm.engines import python
from rvm.state import State

SEARCH = """
func main(a: i64[n], x: i64, at: i64)
    while a[at] != x, at != 0
        add at, 1
    end
"""


def test_a_condition_on_elements_is_for_generated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped: list[str] = []

    def step(state: State) -> None:
        frame = state.top
        stepped.append(frame.code.instrs[frame.pc].op)
        rvm_step(state)

    rvm_step = python.step
    monkeypatch.setattr(python, "step", step)
    a = np.arange(100, dtype=np.int64)
    found = rvm.assemble(SEARCH).main.with_options(engine="python")(a=a, x=70, at=0)
    assert found["at"] == 70
    assert not stepped


PARTS = (
    "mul z[i], x\n    div z[j], exp(x)",
    "add z[i].im, x.re * 2.0\n    add z[0].re, z[1].im",
    "swap z[i].re, z[j].im",
    "swap z[i].im, x.re",
    "swap x.re, x.im",
    "swap z[i], z[j]",
    "rot z[i], z[j], x.re",
    "add m[1:, i].re, z[1:].im",
    "add m[1:, i][0].im, z[2].re",
)


@pytest.mark.parametrize("body", PARTS)
@pytest.mark.parametrize("at", [(0, 1), (2, 0), (2, 3)])
def test_parts_of_complex_numbers(body: str, at: tuple[int, int]) -> None:
    text = f"func main(x: c128, z: c128[3], m: c128[3, 3], i: i64, j: i64)\n    {body}\n"
    rng = np.random.default_rng(5)

    def run(engine: str) -> Any:
        given = {"x": 1.5 - 2.5j, "z": z.copy(), "m": m.copy(), "i": at[0], "j": at[1]}
        try:
            found = rvm.assemble(text).main.with_options(engine=engine)(**given)
        except rvm.RvmError as error:
            return error.code, given["z"].tobytes(), given["m"].tobytes()
        return [repr(found[k]) for k in ("x", "z", "m")]

    z, m = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in (3, (3, 3)))
    assert run("python") == run("reference")
