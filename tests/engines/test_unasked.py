"""Elements that nothing asks for: an array repeated no times, what is gathered from, a shape.

Every engine computes them: an index that is out of bounds, a division by zero or a number that does
not fit is an error also where the result has no elements.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sizes import part, sized

import rvm
from rvm.engines import executing, having

LENGTHS = {"n": 0, "m": 2, "p": 3}
TYPES = {"i64": np.int64, "f64": np.float64, "fixed": np.int64}


class Unasked:
    """An update with an expression over arrays, some of them empty, that may fail."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.type = self.rng.choice(tuple(TYPES))
        self.given: dict[str, tuple[str, str]] = {}
        """The type and the lengths of each parameter."""
        kind = self.rng.randrange(4)
        dims = [self.length() for _ in range((0, 1, 2, 1)[kind])]
        value = (self.scalar, self.vector, self.matrix, self.vector)[kind](*dims, deep=3)
        y = self.parameter("y", self.type, *dims)
        lines = [f"add {y}, {value}"]
        if kind == 3:
            # An ancilla with another axis, along which the value is repeated.
            axes = f"{LENGTHS[self.length()]}, {LENGTHS[dims[0]]}"
            lines = [f"alloc t: {self.type}[{axes}] = {value}"]
            lines += ["add i, 1", f"free t = {value}"]
            self.given["i"] = ("i64", "")
        head = ", ".join(f"{x}: {t}{f'[{d}]' if d else ''}" for x, (t, d) in self.given.items())
        self.text = f"func f({head})\n" + "".join(f"    {line}\n" for line in lines)

    def length(self) -> str:
        return self.rng.choice(tuple(LENGTHS))

    def parameter(self, stem: str, t: str, *dims: str) -> str:
        name = f"{stem}{len(self.given)}"
        self.given[name] = (t, ", ".join(dims))
        return name

    def inputs(self) -> dict[str, Any]:
        """Numbers of which a few are out of bounds, zero, negative or too large."""
        made: dict[str, Any] = {}
        for name, (t, dims) in self.given.items():
            shape = tuple(LENGTHS[d] for d in dims.split(", ") if d)
            wild = self.rng.random() < 0.3
            if name[0] == "k":
                values = self.rng.choices((0, 1, 7) if wild else (0, 1), k=int(np.prod(shape)))
            elif t == "f64":
                values = self.rng.choices((1.0, 2.0, 1e300 if wild else 3.0), k=int(np.prod(shape)))
            else:
                one = 1 if t == "i64" else 1 << 43
                few = (one, 2 * one, 0, -one, 1 << 62) if wild else (one, 2 * one, 3 * one)
                values = self.rng.choices(few, k=int(np.prod(shape)))
            array = np.array(values, TYPES[t]).reshape(shape)
            made[name] = array if dims else 0
        return made

    def scalar(self, deep: int) -> str:
        a = self.length()
        kind = self.rng.randrange(3)
        if kind == 0:
            return f"sum({self.vector(a, deep)})"
        if kind == 1:
            return f"sum({self.matrix(a, self.length(), deep)})"
        return f"({self.vector(a, deep)} @ {self.vector(a, deep)})"

    def vector(self, n: str, deep: int) -> str:
        if deep <= 0:
            return self.parameter("x", self.type, n)
        if self.rng.random() < 0.4:
            return self.failing(n, deep - 1)
        other, deep = self.length(), deep - 1
        kind = self.rng.randrange(7)
        if kind == 0:
            return f"({self.matrix(n, other, deep)} @ {self.vector(other, deep)})"
        if kind == 1:
            return f"({self.vector(other, deep)} @ {self.matrix(other, n, deep)})"
        if kind == 2:
            return f"gather({self.vector(other, deep)}, {self.parameter('k', 'i64', n)})"
        if kind == 3:
            return f"({self.vector(n, deep)} + {self.scalar(deep)})"
        if kind == 4:
            return f"spread_like({self.scalar(deep)}, {self.vector(n, deep)})"
        if kind == 5:
            return f"sum_like({self.matrix(other, n, deep)}, {self.vector(n, deep)})"
        return f"({self.vector(n, deep)} - {self.vector(n, deep)})"

    def failing(self, n: str, deep: int) -> str:
        """A vector that may have an error: an index, a divisor, a size."""
        a = self.vector(n, deep)
        if self.rng.random() < 0.3:
            k = self.parameter("k", "i64", n)
            if self.type == "i64":
                return f"scatter({a}, {k}, {LENGTHS[n]})"
            return f"gather({self.vector(self.length(), deep)}, {k})"
        if self.type == "f64":
            return f"f64(i64({a}))"
        operator = self.rng.choice(("//", "%", "<<") if self.type == "i64" else "*/")
        return f"({a} {operator} {self.vector(n, deep)})"

    def matrix(self, n: str, m: str, deep: int) -> str:
        if deep <= 0 or self.rng.random() < 0.3:
            return self.parameter("w", self.type, n, m)
        deep -= 1
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"outer({self.vector(n, deep)}, {self.vector(m, deep)})"
        if kind == 1:
            other = self.length()
            return f"({self.matrix(n, other, deep)} @ {self.matrix(other, m, deep)})"
        if kind == 2:
            return f"({self.matrix(n, m, deep)} + {self.vector(m, deep)})"
        return f"transpose({self.matrix(m, n, deep)})"


def ends(seed: int) -> str:
    """Run one on every engine, which must agree; how it ended."""
    made = Unasked(seed)
    f, given = rvm.assemble(made.text).f, made.inputs()
    seen = []
    for engine in executing():
        mine = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
        try:
            found = f(engine=engine, **mine)
            shown = {k: np.asarray(getattr(v, "raw", v)).tolist() for k, v in found.items()}
            seen.append(repr(shown))
        except rvm.RvmError as error:
            seen.append(f"error {error.code} {error}")
    for engine in having("lanes") if seed % 4 == 0 else ():
        types = {k: TYPES[t] for k, (t, _) in made.given.items()}
        lanes = {k: np.array([v, v], types[k]) for k, v in given.items()}
        try:
            found = f.map(engine=engine, **lanes)
            shown = {k: np.asarray(getattr(v, "raw", v)) for k, v in found.items()}
            each = {k: v[0] if v.ndim > np.ndim(given[k]) else v for k, v in shown.items()}
            seen.append(repr({k: v.tolist() for k, v in each.items()}))
        except rvm.RvmError as error:
            seen.append(f"error {error.code} {error}")
    assert len({one[:10] if one.startswith("error") else one for one in seen}) == 1, (
        seed,
        made.text,
        given,
        seen,
    )
    return seen[0].split()[1] if seen[0].startswith("error") else "end"


@sized
def test_engines_agree_on_elements_that_nothing_asks_for() -> None:
    ended = Counter(ends(seed) for seed in range(part(400)))
    assert ended["end"] > 2 and len(ended) > 2, ended


SURE = {
    "y: f64[n], W: f64[n, p], x: f64[q], k: i64[p]; add y, W @ gather(x, k)": "R003",
    "y: f64[n], V: f64[p, n], x: f64[q], k: i64[p]; add y, gather(x, k) @ V": "R003",
    "y: i64[p], a: i64[q], b: i64[q], k: i64[p]; add y, gather(a // b, k)": "R005",
    "y: i64[n, q], a: i64[q], b: i64[q]; add y, a % b": "R005",
    "y: i64[n, q], x: i64[n], a: i64[q], b: i64[q]; add y, outer(x, a % b)": "R005",
    "y: i64, a: i64[q], b: i64[q]; add y, sum(spread_like(3, a // b))": "R005",
}


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("case", SURE)
def test_what_fails_unasked(case: str, engine: str) -> None:
    parameters, _, line = case.partition("; ")
    lengths = {"n": 0, "p": 3, "q": 4}
    given: dict[str, Any] = {}
    for name, t, dims in re.findall(r"(\w): (\w+)(?:\[(.*?)\])?", parameters):
        shape = tuple(lengths[d] for d in dims.split(", ") if d)
        values = np.full(shape, {"k": 9, "b": 0}.get(name, 1), TYPES[t])
        given[name] = values if shape else 1
    if "gather(a" in line:
        given["b"][:] = (1, 1, 1, 0)
        given["k"][:] = 0
    with pytest.raises(rvm.MachineError) as caught:
        rvm.assemble(f"func f({parameters})\n    {line}\n").f(engine=engine, **given)
    assert caught.value.code == SURE[case]
