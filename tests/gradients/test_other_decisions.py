"""Decisions by numbers that the run back makes otherwise, by what is not an update of them.

Each program is run at numbers around a kink, and adds a number afterwards that rounds them.  What
is not refused must have the derivative that a tangent has, which runs forwards only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rvm
from rvm.derive.decisions import decides
from rvm.engines import executing
from rvm.isa.user import apply

HEAD = "func f(y: f64, x: f64, w: f64, h: f64)\n"
PROGRAMS = {
    "a name used again between the halves": """
        routine r
            alloc p: f64
            with t = x
                add p, t
            end
        end
        with t = 0.0
            swap t, w
            add y, p * abs(t - 0.7)
            swap t, w
        end
        undo r
        add w, h""",
    "pushed": """
        alloc s: stack[f64]
        add y, x * abs(w - 0.7)
        push w, s
        add s.top, h
        sub s.top, h
        pop w, s
        free s
        add w, h""",
    "converted": "if fixed(w) > 0.7\nadd y, x * w\nelse\nadd y, x * 0.7\nend\nadd w, h",
    "a kink of a converted number": "add y, x * f64(abs(fixed(w) - 0.7))\nadd w, h",
    "an argument is a value": "add y, x * abs(w - 0.7)\ncall g(h - 7.0, w)",
    "a length": "alloc t: f64[i64(w + 0.3) + 1] = 1.0\nadd y, x * sum(t) * (w - 0.7)\n"
    "free t = 1.0\nadd w, h",
}
CALLED = "\nfunc g(t: f64, q: f64)\n    swap t, q\n"


def judged(source: str, **more: Any) -> None:
    """Gradients at numbers next to a kink are those of tangents, or refused."""
    f = rvm.assemble(source).f
    assert decides(f.program, "f")
    given, right = 0, 0
    for k in range(-6, 3):
        for h in (7.7, 1.1, 0.3):
            at = {"y": 1.0, "x": 1.5, "w": 0.7 + k * 2.0**-53, "h": h, **more}
            for engine in executing(loops=False):
                with_engine = f.with_options(engine=engine)
                try:
                    slopes = [with_engine.jvp({n: 1.0}, at)[1].y for n in ("x", "w", "h")]
                except rvm.RvmError:
                    continue  # Forwards, it is wrong for these numbers.
                given += 1
                try:
                    found = with_engine.grad(at, loss="y")
                except rvm.RvmError as error:
                    assert error.code in ("R017", "R001")
                    continue
                right += 1
                assert [found.x, found.w, found.h] == pytest.approx(slopes, rel=1e-6, abs=1e-6)
    assert given and right


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_right_or_refused(name: str) -> None:
    judged(HEAD + PROGRAMS[name].strip() + "\n" + CALLED)


@pytest.mark.usefixtures("clean_tables")
def test_opcodes_of_users_decide() -> None:
    @rvm.opcode(inverse="bent_down", types="float")
    def bent_up(y: rvm.Mut, v: rvm.Use) -> None:
        """y += |v|"""
        y += apply("abs", v)

    @rvm.opcode(inverse="bent_up", types="float")
    def bent_down(y: rvm.Mut, v: rvm.Use) -> None:
        """y -= |v|"""
        y -= apply("abs", v)

    judged(HEAD + "bent_up y, x * (w - 0.7)\nadd w, h\n")


def test_code_around_an_exchange_is_not_undone() -> None:
    """The instructions are the same from either end, but the middle is done once only."""
    f = rvm.assemble(
        "func f(y: f64, w: f64, q: f64)\n    alloc t: f64 = w\n    alloc u: f64 = q\n"
        "    add y, t\n    swap t, u\n    free u = q\n    free t = w\n"
    ).f
    for engine in executing():
        g = f.with_options(engine=engine)
        assert g(y=0.0, w=2.0, q=2.0).y == 2.0
        with pytest.raises(rvm.InvertibilityError, match="R001"):
            g(y=0.0, w=1.0, q=2.0)
    arrays = rvm.assemble(
        "func f(w: i64[n], q: i64[n])\n    alloc t: i64[n] = w\n    alloc u: i64[n] = q\n"
        "    swap t, u\n    free u = q\n    free t = w\n"
    ).f
    with pytest.raises(rvm.InvertibilityError, match="R001"):
        arrays(w=np.array([1]), q=np.array([2]))
