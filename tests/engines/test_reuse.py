"""Variables and memory used again: lines of NumPy calls do what they did before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rvm.emit.numpy.reuse import NAME, reused
from rvm.engines.vector.support import VECTOR_SUPPORT

W = 5
INPUTS = {f"a{k}": np.random.default_rng(k).normal(size=W) for k in range(4)}
UFUNCS = ("n_add", "n_multiply", "n_subtract", "n_maximum", "n_minimum")
OTHERS = ("spread({0}, 5)", "{0}[::-1]", "{0}[2:]", "{0}.copy()", "own({0}, 5)", "inside({1}, 9)")


def straight(seed: int) -> tuple[list[str], dict[str, str]]:
    """Random lines, whose results are stored in `out` here and there, and what ufuncs make."""
    rng = random.Random(seed)
    lines: list[str] = []
    results: dict[str, str] = {}
    whole = [*INPUTS]
    for k in range(rng.randrange(3, 40)):
        one, two, name = rng.choice(whole), rng.choice(whole[-6:]), f"_v{k + 1}"
        kind = rng.random()
        if kind < 0.65:
            lines.append(f"{name} = {rng.choice(UFUNCS)}({one}, {two})")
            results[name] = "d"
        elif kind < 0.75:
            lines.append(f"{name} = n_less({one}, {two})")
            results[name] = "?"
            lines.append(f"out.append({name}.copy())")
            continue
        elif kind < 0.9:
            form = rng.choice(OTHERS[:-1])
            lines.append(f"{name} = {form.format(one)}")
            if "[2:]" in form:
                lines.append(f"out.append({name}.sum())")
                continue
        else:
            lines.append(f"out.append({two}.copy())")
            continue
        whole.append(name)
    return [*lines, f"out.append({whole[-1]}.copy())"], results


def done(lines: list[str]) -> list[bytes]:
    out: list[np.ndarray] = []
    exec(
        "\n".join(lines), {**VECTOR_SUPPORT, **{k: v.copy() for k, v in INPUTS.items()}, "out": out}
    )
    return [np.asarray(v).tobytes() for v in out]


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_lines_do_the_same_with_fewer_variables(first: int) -> None:
    for seed in range(first, first + 50):
        lines, results = straight(seed)
        made = reused(lines, results)
        assert done(made) == done(lines)
        assert len(made) == len(lines)
        assert len(variables(made)) <= len(variables(lines))


def variables(lines: list[str]) -> set[str]:
    return {name for line in lines for name in NAME.findall(line)}


def test_a_chain_takes_the_memory_of_one_value() -> None:
    chain = [f"_v{k + 1} = n_add({f'_v{k}' if k else 'a0'}, a1)" for k in range(9)]
    made = reused([*chain, "out.append(_v9)"], {f"_v{k}": "d" for k in range(10)})
    assert made[0] == "_v0 = n_add(a0, a1)"
    assert made[1:] == ["_v0 = n_add(_v0, a1, _v0)"] * 8 + ["out.append(_v0)"]


def test_what_a_view_was_made_of_keeps_its_memory() -> None:
    lines = ["_v1 = n_add(a0, a1)", "_v2 = spread(_v1, 5)", "_v3 = n_add(_v1, a2)", "f(_v2, _v3)"]
    assert "_v0)" not in reused(lines, {"_v1": "d", "_v3": "d"})[2].split(", ")[-1]
