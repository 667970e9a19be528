"""A record of inputs and results, made once, which every engine on every machine must give again.

`python tests/engines/record.py` makes `record.json` anew, after a change of what is right. Run as
`python tests/engines/record.py ENGINE …` it prints what differs from the record, line by line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rvm
from rvm.registry import LAW

RECORD = Path(__file__).with_suffix(".json")
LENGTH = 37
"""Elements: several of a processor's vectors, and some over."""
WIDE = "x + y; x - y; x * y; x / y; x // y; x % y; sqrt(abs(x)); min(x, y); abs(x) ** y"
WIDE += "; x ** 3; atan2(x, y); hypot(x, y); versor(x, y); leg(x / 9)"
FUNCTIONS = (
    "exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp2 log2 log10 log1p"
    " expm1 cbrt erf erfc sigmoid softplus sech lgamma digamma"
)
NEEDS = {"asin": "x / 9", "acos": "x / 9", "atanh": "x / 9", "acosh": "abs(x) + 1"}
NEEDS |= {"lgamma": "abs(x) + 1", "digamma": "abs(x) + 1"}
NEEDS |= dict.fromkeys(("log", "log2", "log10", "log1p"), "abs(x)")
COMPLEX = "x + y; x - y; x * y; x / y; x ** y; x ** 3; square(x); conj(x); abs(x) * y"
COMPLEX_FUNCTIONS = (
    "exp log sin cos tan asin acos atan sinh cosh tanh sech sqrt leg log2 log1p expm1"
)
REDUCTIONS = "sum(x); dot(x, y); prod(x / 4); x @ y; sum(a); sum(a @ x); sum(x @ a.T)"


def formulas(t: str) -> list[tuple[str, str]]:
    """What is computed of a type, and the type of its result."""
    complex_ones = t == "c128"
    one = [(f.strip(), f"{t}[n]") for f in (COMPLEX if complex_ones else WIDE).split(";")]
    needs = {} if complex_ones else NEEDS
    functions = COMPLEX_FUNCTIONS if complex_ones else FUNCTIONS
    one += [(f"{f}({needs.get(f, 'x')})", f"{t}[n]") for f in functions.split()]
    return one + [(f.strip(), t) for f in REDUCTIONS.split(";")]


def text(t: str) -> str:
    """A function with an instruction for each formula."""
    made = formulas(t)
    results = ", ".join(f"r{k}: {kind}" for k, (_, kind) in enumerate(made))
    lines = [f"    add r{k}, {formula}" for k, (formula, _) in enumerate(made)]
    return f"func f({results}, x: {t}[n], y: {t}[n], a: {t}[m, n])\n" + "\n".join(lines) + "\n"


TYPES = {"f64": np.float64, "f32": np.float32, "fixed": np.int64, "c128": np.complex128}


def words(values: Any) -> str:
    """Numbers as the hexadecimal digits of their bits, all NaNs as one."""
    x: NDArray[Any] = np.atleast_1d(np.asarray(values)).copy()
    if x.dtype.kind in "fc":
        parts = x.view(x.real.dtype)
        parts[np.isnan(parts)] = np.nan
    return x.astype(x.dtype.newbyteorder(">")).tobytes().hex()


def array(digits: str, dtype: Any) -> NDArray[Any]:
    """Numbers of their digits."""
    x = np.frombuffer(bytes.fromhex(digits), np.dtype(dtype).newbyteorder(">"))
    return x.astype(dtype)


def results(t: str, engine: str, x: NDArray[Any], y: NDArray[Any]) -> dict[str, str]:
    """What an engine computes, by formula."""
    dtype = TYPES[t]
    zeros = {
        f"r{k}": np.zeros(LENGTH, dtype) if kind != t else 0
        for k, (_, kind) in enumerate(formulas(t))
    }
    f = rvm.assemble(text(t)).f
    found = f(engine=engine, **zeros, x=x, y=y, a=np.array([x, y, x[::-1]]))
    made = {}
    for k, (formula, _) in enumerate(formulas(t)):
        value = found[f"r{k}"]
        raw = value.raw if isinstance(value, rvm.Fixed) else value
        made[formula] = words(np.asarray(raw, dtype))
    return made


def inputs(t: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers between -3 and 3, of floats of all sizes."""
    rng = np.random.default_rng(len(t))
    x, y = rng.uniform(-3, 3, (2, LENGTH))
    if t == "fixed":
        return tuple(np.round(v * 2.0**43).astype(np.int64) for v in (x, y))
    if t == "c128":
        x, y = x + 1j * y[::-1], y - 0.5j * x
    x[::5] *= 10.0 ** rng.integers(-12, 2, len(x[::5]))
    return x.astype(TYPES[t]), y.astype(TYPES[t])


def make() -> None:
    """Write the record."""
    made = {}
    for t in TYPES:
        x, y = inputs(t)
        made[t] = {"x": words(x), "y": words(y), "results": results(t, LAW, x, y)}
    RECORD.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


def differences(engine: str) -> list[str]:
    """The formulas of which an engine gives something else than what is recorded."""
    out = []
    for t, held in json.loads(RECORD.read_text("utf-8")).items():
        found = results(t, engine, array(held["x"], TYPES[t]), array(held["y"], TYPES[t]))
        out += [f"{engine}: {f} of {t}" for f, w in held["results"].items() if found[f] != w]
    return out


if __name__ == "__main__":
    if len(sys.argv) == 1:
        make()
    for name in sys.argv[1:]:
        print("\n".join(differences(name)))
