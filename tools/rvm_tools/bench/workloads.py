"""The workloads by name."""

from __future__ import annotations

from rvm_tools.bench.calls import CALL, EXP
from rvm_tools.bench.dense import GIVENS, MATMUL, QR
from rvm_tools.bench.fields import BODIES, STRING
from rvm_tools.bench.integers import FIB, XTEA
from rvm_tools.bench.logarithms import CLOG
from rvm_tools.bench.loops import LEAPFROG, LOOP
from rvm_tools.bench.models import BUNDLE, GMM, PETERSEN
from rvm_tools.bench.sparse import MATVEC, SPARSE_DOT

WORKLOADS = {
    w.name: w
    for w in (
        *(LOOP, LEAPFROG, BODIES, STRING, MATMUL, MATVEC, SPARSE_DOT, GIVENS, QR, CLOG),
        *(GMM, BUNDLE, PETERSEN, EXP, FIB, XTEA, CALL),
    )
}
