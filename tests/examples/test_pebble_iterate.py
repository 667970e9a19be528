"""The examples of `iterate` against other sources: matrices, differences, links by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sizes import thin

import rvm

EXAMPLES = Path(__file__).parents[2] / "examples"
C = 0.04 * 0.01 / (np.pi / 100) ** 2


def ring(n: int) -> np.ndarray:
    """One step of diffusion as a matrix."""
    eye = np.eye(n)
    return eye + C * (np.roll(eye, 1, 0) - 2 * eye + np.roll(eye, -1, 0))


@thin
@pytest.mark.parametrize("name", ["along", "until"])
def test_the_gradient_of_diffusion_is_the_transposed_map(name: str) -> None:
    program = rvm.load(EXAMPLES / "ring_diffusion.rasm")
    x, seed = np.linspace(0, 1, 12) ** 2, np.cos(np.arange(12.0))
    steps = {"steps": 100} if name == "until" else {}
    f = program[name]
    power = np.linalg.matrix_power(ring(12), 100)
    np.testing.assert_allclose(f(y=np.zeros(12), x=x.copy(), **steps).y, power @ x, rtol=1e-12)
    bars = f.vjp({"y": seed}, y=np.zeros(12), x=x.copy(), **steps)
    np.testing.assert_allclose(bars.x, power.T @ seed, rtol=1e-9, atol=1e-13)


def test_the_gradient_of_waves_against_differences() -> None:
    program = rvm.load(EXAMPLES / "wave.rasm")
    rng = np.random.default_rng(1)
    u, v, seed = rng.standard_normal((3, 16))
    zero = {"u": np.zeros(16), "v": np.zeros(16)}
    bars = program.around.vjp(
        {"y": {"u": seed, "v": zero["v"]}}, y=zero, x={"u": u.copy(), "v": v.copy()}
    )

    def loss(at: int, h: float) -> float:
        moved = u.copy()
        moved[at] += h
        y = {"u": np.zeros(16), "v": np.zeros(16)}
        return float(program.around(y=y, x={"u": moved, "v": v.copy()}).y["u"] @ seed)

    for at in (0, 9):
        difference = (loss(at, 1e-4) - loss(at, -1e-4)) / 2e-4
        assert bars.x["u"][at] == pytest.approx(difference, rel=1e-7, abs=1e-9)


def test_a_password_leads_to_the_last_link() -> None:
    program = rvm.load(EXAMPLES / "hash_chain.rasm")
    word = program.password(link=0, seed=99, used=7).link
    for k in range(94, 101):
        word = program.hash(y=0, x=word, k=k).y
    assert word == program.main(last=0, seed=99).last
