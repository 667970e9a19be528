"""Strict mode on opcodes of several statements: undone, every bit is back."""

from __future__ import annotations

import numpy as np
import pytest

import rvm
from rvm.engines import executing
from rvm.isa.user import apply

pytestmark = pytest.mark.usefixtures("clean_tables")


@pytest.mark.parametrize("engine", executing())
def test_an_opcode_whose_inverse_writes_in_another_order(engine: str) -> None:
    """What `coil` logs is found again by `uncoil`, which changes q before p."""

    @rvm.opcode(inverse="uncoil", types="inexact")
    def coil(p: rvm.Mut, q: rvm.Mut, c: rvm.Use) -> None:
        """Two updates, the second if c is positive."""
        p += q * q
        with rvm.when(c > 0):
            q += apply("sin", p)

    @rvm.opcode(inverse="coil", types="inexact")
    def uncoil(p: rvm.Mut, q: rvm.Mut, c: rvm.Use) -> None:
        """Undo `coil`."""
        with rvm.when(c > 0):
            q -= apply("sin", p)
        p -= q * q

    rng = np.random.default_rng(6)
    for op in ("coil", "uncoil"):
        program = rvm.assemble(f"func main(p: f64, q: f64, c: f64)\n    {op} p, q, c\n")
        logged = 0
        for p, q, c in rng.normal(size=(50, 3)):
            m = rvm.Machine(program, engine=engine, strict=True, p=p, q=q, c=c)
            m.run()
            logged += m.residue_bytes > 0
            m.run_back()
            assert (m["p"], m["q"], m.residue_bytes) == (p, q, 0)
        assert logged, "nothing was rounded"
