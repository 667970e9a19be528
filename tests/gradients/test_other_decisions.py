"""Decisions by numbers that the run back makes otherwise, by what is not an update of them.

Each program is run at numbers around a kink, and adds a number afterwards that rounds them.  What
is not refused must have the derivative that a tangent has, which runs forwards only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sizes import one_of, sized, thin

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
    "freed as another number": "alloc t: f64 = w\nadd y, x * abs(t - 0.7)\nfree t = (w + h) - h",
    "freed as a constant": "alloc t: f64 = w\nadd y, x * abs(t - 0.7)\nfree t = 0.7",
    "operands moved": "alloc t: f64 = w + x + h\nswap w, h\nadd y, x * abs(t - x - 8.4)\n"
    "free t = w + x + h\nadd x, h",
    "exchanged with an ancilla": "add y, x * abs(w - 0.7)\nalloc t: f64 = (w + h) - h\nswap t, w\n"
    "free t = w",
    "an argument is a value": "add y, x * abs(w - 0.7)\ncall g(h - 7.0, w)",
    "a length": "alloc t: f64[i64(w + 0.3) + 1] = 1.0\nadd y, x * sum(t) * (w - 0.7)\n"
    "free t = 1.0\nadd w, h",
}
CALLED = """
func g(t: f64, q: f64)
    swap t, q

func undone(y: f64, x: f64, w: f64, h: f64)
    uncall f(y, x, w, h)
"""


def judged(source: str, **more: Any) -> None:
    """Gradients at numbers next to a kink are those of tangents, or refused."""
    library = rvm.assemble(source)
    judged_on(one_of(executing(loops=False), source), library.f, **more)
    if "undone" in library:
        judged_on(["python"], ~library.undone, **more)


def judged_on(engines: Sequence[str], f: rvm.FunctionHandle, **more: Any) -> None:
    assert decides(f.program, f.name, f.name == "undone")
    given, right = 0, 0
    for k in range(-6, 3):
        for h in (7.7, 1.1, 0.3):
            at = {"y": 1.0, "x": 1.5, "w": 0.7 + k * 2.0**-53, "h": h, **more}
            for engine in engines:
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


@sized
@thin(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_right_or_refused(name: str) -> None:
    judged(HEAD + PROGRAMS[name].strip() + "\n" + CALLED)


@pytest.mark.parametrize(
    ("t", "k", "loss"), [("f64", 3.0, "t * (t - 1.5)"), ("i64", 3, "x * f64(t)")]
)
def test_a_dropped_number_is_not_there_on_the_way_back(t: str, k: float, loss: str) -> None:
    f = rvm.assemble(
        f"func f(y: f64, x: f64, k: {t})\n    local t: {t}\n    fresh t\n    add t, k\n"
        f"    add y, {loss}\n    sub t, k\n    add t, k\n    drop t\n"
    ).f
    given = {"y": 1.0, "x": 1.5, "k": k}
    f.jvp({"x": 1.0}, given)
    with pytest.raises(rvm.InvertibilityError, match="R017"):
        f.grad(given, loss="y")


@sized
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
