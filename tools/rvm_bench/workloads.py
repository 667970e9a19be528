"""The workloads by name."""

from __future__ import annotations

from rvm_bench.calls import CALL, EXP
from rvm_bench.dense import GIVENS, MATMUL, QR
from rvm_bench.fields import BODIES, STRING
from rvm_bench.fronts import FRONTS
from rvm_bench.integers import FIB, XTEA
from rvm_bench.logarithms import CLOG
from rvm_bench.loops import LEAPFROG, LOOP
from rvm_bench.models import BUNDLE, GMM, JACOBIAN, PETERSEN
from rvm_bench.sparse import MATVEC, SPARSE_DOT

WORKLOADS = {
    w.name: w
    for w in (
        *(LOOP, LEAPFROG, BODIES, STRING, MATMUL, MATVEC, SPARSE_DOT, GIVENS, QR, CLOG),
        *(GMM, BUNDLE, JACOBIAN, PETERSEN, EXP, FIB, XTEA, CALL),
    )
}
EVERY = WORKLOADS | FRONTS

__all__ = ["EVERY", "FRONTS", "WORKLOADS"]
