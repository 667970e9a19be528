"""LLVM's optimisations can leave a module ill-formed, at which code generation aborts the process.

Known of LLVM 22: `SROA: Fix tree merge IRBuilder insert point`, llvm-project, pull request 189680.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from sizes import wide

pytest.importorskip("llvmlite")
MERGED = """
define void @run(ptr noalias %in, ptr noalias %out) {{
entry:
  %a = alloca [64 x double], align 8
  %p1 = getelementptr double, ptr %in, i64 1
  %x0 = load double, ptr %in, align 8
  %x1 = load double, ptr %p1, align 8
  %a1 = getelementptr double, ptr %a, i64 1
  %a2 = getelementptr double, ptr %a, i64 2
  %a3 = getelementptr double, ptr %a, i64 3
  %y0 = fmul double %x0, %x0
  %y1 = fmul double %x1, %x1
  store double %y0, ptr {first}, align 8
  store double %y1, ptr {second}, align 8
  %z0 = fmul double %y0, %x0
  %z1 = fmul double %y1, %x1
  store double %z0, ptr {third}, align 8
  store double %z1, ptr {fourth}, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr double, ptr %a, i64 %i
  %to = getelementptr double, ptr %out, i64 %i
  %v = load double, ptr %from, align 8
  %w = fmul double %v, 3.0
  store double %w, ptr %to, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 4
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  ret void
}}
!0 = distinct !{{!0, !1, !2}}
!1 = !{{!"llvm.loop.unroll.disable"}}
!2 = !{{!"llvm.loop.vectorize.width", i32 4}}
"""
"""Two pairs of elements are stored, the second pair computed of the first, and loaded together."""


@pytest.mark.parametrize("places", ["a a1 a2 a3", "a2 a3 a a1"])
def test_arrays_stored_in_pieces_in_any_order(places: str) -> None:
    from rvm.engines.native.compiler import compiler

    names = ("first", "second", "third", "fourth")
    given = dict(zip(names, (f"%{p}" for p in places.split()), strict=True))
    module = compiler().optimised(MERGED.format(**given))
    module.verify()
    assert "<2 x double>" in str(module) or "<4 x double>" in str(module)


ERROR = """
import sys
import numpy as np
import rvm

def tried(text, **at):
    f = rvm.assemble(text).f
    for loss in ("y[1]", "c"):
        native, plain = (
            f.grad(loss=loss, engine=engine, **at) for engine in ("native", "python")
        )
        for a, b in ((native, plain), (native.info.error, plain.info.error)):
            for k in b:
                assert np.allclose(a[k], b[k], rtol=1e-9, atol=1e-12), (text, loss, k, a, b)

for seed in map(int, sys.argv[2:]):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    lines = rng.choice(sys.argv[1].split(";"), int(rng.integers(1, 4)), replace=False)
    head = f"func f(b: f64, c: f64, x: f64[{n}], y: f64[{n}], m: f64[{n}, {n}])"
    text = "\\n    ".join([head, *lines])
    x, m = rng.uniform(0.5, 2, n), rng.uniform(-1, 1, (n, n))
    tried(text, b=-0.3, c=1.0, x=x, y=np.zeros(n), m=m)
"""
LINES = (
    "add c, b + amax(x)",
    "add c, sum(x * x)",
    "add y, outer(x, x) @ x",
    "add y, m @ x",
    "add y, x @ m",
    "add c, x @ (m @ x)",
    "add m, outer(x, x)",
    "add c, max(b - x[2], sigmoid(b))",
    "add y, (m @ m) @ x",
    "add y, x * sum(x)",
    "add c, prod(x)",
)
STRANGE = """
import numpy as np
import rvm
f = rvm.assemble('''
func f(a: f64, b: f64, c: f64, x: f64[4], y: f64[4])
    add c, b + amax(x)
    add y, outer(x, x) @ x
    routine r0
        mul a, 1.5
    end
    add c, max(b - x[2], sigmoid(b))
    undo r0
''').f
x = np.array([2.0, 11.5, 0.7, 1.0])
at = dict(a=3.0, b=-0.3, c=-23.0, x=x, y=np.zeros(4))
g = f.grad(loss="y[3]", engine="native", **at)
# y[3] = x[3] (x . x)
want = 2 * x[3] * x
want[3] += x @ x
assert np.all(np.abs(g.x - want) <= g.info.error.x) and g.info.error.x.max() < 1e-11, g
"""
"""A program of which the run back with perturbed rounding was such a module."""


def child(script: str, *arguments: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "RVM_CACHE_DIR": ""},
    )
    assert ran.returncode == 0, f"exit {ran.returncode}\n{ran.stdout}\n{ran.stderr[-3000:]}"


@wide
def test_a_program_whose_estimate_was_ill_formed() -> None:
    child(STRANGE)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, 40, 4))
def test_estimates_of_random_programs_on_small_arrays(first: int) -> None:
    child(ERROR, ";".join(LINES), *map(str, range(first, first + 4)))
