"""Each function in the table of NumPy's names does what NumPy does, in both readers of Python."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sizes import some

import rvm
from rvm.faults import RvmError
from rvm.isa import FUNCTIONS
from rvm.isa.numpy_names import UFUNCS

VALUES = [(0.75, 0.5), (1.5, 0.5), (29, -5), (3, 50), (-(2**63), 7), (True, False)]
VALUES += [(0.5 - 2j, 1.5 + 0.25j)]
ARRAYS = (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, -1.0], [2.0, 0.25]]))
TYPES = {float: "f64", int: "i64", bool: "bool", complex: "c128", np.ndarray: "f64[m, m]"}


def compared(name: str, run: Callable[..., Any]) -> None:
    """Compare with NumPy, on all numbers for which both have the function."""
    f, seen = getattr(np, name), 0
    for values in VALUES if f.signature is None else [ARRAYS]:
        args = values[: f.nin]
        with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError, RvmError):
            wanted = f(*args)
            if np.all(np.isfinite(wanted)):
                found = run(wanted, *args)
                np.testing.assert_allclose(found, wanted, rtol=1e-14, err_msg=f"{args}")
                seen += 1
    assert seen, f"no numbers are for np.{name}"


def zero(value: Any) -> Any:
    return np.zeros_like(value) if np.ndim(value) else np.zeros_like(value).item()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function for each name, by name: `f_add` changes a number, `b_add` a truth value."""
    path: Path = tmp_path_factory.mktemp("names") / "numpy_names_written.py"
    lines = ["import numpy as np", "import rvm"]
    for name in UFUNCS:
        args = ", ".join("xy"[: getattr(np, name).nin])
        for kind, sign in (("f", "+"), ("b", "^")):
            lines += ["@rvm.reversible", f"def {kind}_{name}(out, {args}):"]
            lines += [f"    out {sign}= np.{name}({args})"]
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", UFUNCS)
def test_what_numpy_names_is_the_function_of_the_table(name: str, written: Any) -> None:
    assert UFUNCS[name] in FUNCTIONS

    def run(wanted: Any, *args: Any) -> Any:
        kind = "b" if np.asarray(wanted).dtype == bool else "f"
        return getattr(written, f"{kind}_{name}")(zero(wanted), *args).out

    compared(name, run)


@some
@pytest.mark.parametrize("name", UFUNCS)
def test_and_so_it_is_where_numpy_is_traced(name: str) -> None:
    f = getattr(np, name)

    def run(wanted: Any, *args: Any) -> Any:
        types = {n: TYPES[type(a)] for n, a in zip("xy", args, strict=False)}
        return rvm.pure((lambda x: f(x)) if len(args) == 1 else (lambda x, y: f(x, y)), **types)(
            *args
        )

    compared(name, run)


REAL = """
math.pow(k, n); math.pow(k, 2); math.pow(3, n); math.fabs(k); math.floor(x); floor(x); m.floor(-x)
"""


@pytest.mark.parametrize("text", REAL.strip().split("; "))
def test_functions_of_math_are_pythons_of_whole_numbers_too(text: str) -> None:
    """Times a whole number, which would wrap if the value were one."""
    names = {"rvm": rvm, "math": math, "m": math, "floor": math.floor}
    source = f"def f(y: rvm.f64, k: rvm.i64, n: rvm.i64, x: rvm.f64):\n    y += {text} * 4\n"
    f = rvm.reversible.source(source, names)
    for k, n, x in ((2**62 + 1, 3, 2.5), (-7, 2, -2.5), (3, 50, 1e15)):
        assert f(0.0, k, n, x).y == float(eval(text, names, {"k": k, "n": n, "x": x}) * 4)
