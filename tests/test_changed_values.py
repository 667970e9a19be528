"""Values changed from outside during a run: ancillas that were live then are judged by what the
change has done to them, whatever rounding had done before.

The oracle computes each program in fractions: an ancilla that is not exactly zero there, when it is
freed, is off by the change.  In doubles it may be off by the rounding of numbers a thousand million
times as large, before the change or after it.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from sizes import part, thin

import rvm
from rvm.engines import executing
from rvm.faults import InvertibilityError
from rvm.run.machine import Machine

SIZES = (1e-3, 0.7, 13.0, 1e9)
FACTORS = (3.0, 0.7, 1e3, 1.1)


class Step(NamedTuple):
    """`t op factor * x[k]`, or `t op factor`."""

    op: str
    factor: float
    k: int | None = None

    def text(self) -> str:
        return f"{self.op} t, {self.factor!r}" + (f" * x[{self.k}]" if self.k is not None else "")

    def undone(self) -> Step:
        other = {"add": "sub", "sub": "add", "mul": "div", "div": "mul"}
        return self._replace(op=other[self.op])

    def done(self, t: Fraction, x: list[Fraction]) -> Fraction:
        value = Fraction(self.factor) * (1 if self.k is None else x[self.k])
        match self.op:
            case "add":
                return t + value
            case "sub":
                return t - value
            case "mul":
                return t * value
        return t / value


class Case:
    """A program that fills an ancilla and clears it, in the opposite order or nearly so, and the
    place and time of a change."""

    def __init__(self, seed: int, way: str) -> None:
        rng = random.Random(seed)
        filled = [self._drawn(rng) for _ in range(rng.randrange(2, 7))]
        cleared = [s.undone() for s in reversed(filled)]
        if rng.random() < 0.5:
            # No longer in the opposite order, so that it is not known by construction.
            k = rng.randrange(len(cleared) - 1)
            if {s.op in ("mul", "div") for s in cleared[k : k + 2]} == {False}:
                cleared[k : k + 2] = cleared[k + 1], cleared[k]
        self.steps = [*filled, *cleared]
        lines = [s.text() for s in self.steps]
        lines.insert(len(filled), "add out, t")
        if way == "on" and rng.random() < 0.3:
            # Then a way back is another than the way there, and cannot show what was.
            lines.insert(rng.randrange(len(lines) + 1), "call forget(out)")
        self.lines = lines
        body = "".join(f"    {line}\n" for line in ("alloc t: f64", *lines, "free t"))
        forget = "func forget(y: f64)\n    alloc lost: f64 = y\n    drop lost\n"
        self.text = f"func main(x: f64[4], y: f64, out: f64)\n{body}\n{forget}"
        self.x = [rng.choice(SIZES) * rng.choice([1, -1]) * rng.uniform(1, 2) for _ in range(4)]
        self.place = rng.choice(["t", "x", "x", "y", "out"])
        self.k = rng.randrange(4)
        self.by = rng.choice([0.5, -3.0, 1e3])
        self.at = rng.randrange(1, len(lines) + 1)
        """The line before which the change is, counted from the one after the making."""

    @staticmethod
    def _drawn(rng: random.Random) -> Step:
        if rng.random() < 0.25:
            return Step(rng.choice(["mul", "div"]), rng.choice([3.0, 0.7, 1.1]))
        return Step(rng.choice(["add", "sub"]), rng.choice(FACTORS), rng.randrange(4))

    def left(self, back: bool) -> Fraction:
        """What the ancilla holds, in fractions, at its free, or where its making is undone."""
        x, t = [Fraction(v) for v in self.x], Fraction(0)
        steps = {s.text(): s for s in self.steps}
        for number, line in enumerate(self.lines, 1):
            if number == self.at:
                x, t = self._changed(x, t)
                if back:
                    for earlier in reversed(self.lines[: number - 1]):
                        t = steps[earlier].undone().done(t, x) if earlier in steps else t
                    return t
            t = steps[line].done(t, x) if line in steps else t
        return t

    def _changed(self, x: list[Fraction], t: Fraction) -> tuple[list[Fraction], Fraction]:
        if self.place == "x":
            x = [*x]
            x[self.k] += Fraction(self.by)
        return x, t + (Fraction(self.by) if self.place == "t" else 0)

    def machine(self, engine: str) -> Machine:
        """A machine after the change."""
        m = Machine(
            _assembled(self.text), "main", engine=engine, x=np.array(self.x), y=0.3, out=0.1
        )
        while len(m.state.frames) > 1 or m.where.line != self.at + 2:
            m.step(1)
        if self.place == "x":
            changed = m["x"].copy()
            changed[self.k] += self.by
            m["x"] = changed
        else:
            m[self.place] += self.by
        return m


_known: dict[str, Any] = {}


def _assembled(text: str) -> Any:
    return _known.setdefault(text, rvm.assemble(text))


@thin
@pytest.mark.parametrize("way", ["on", "back"])
@pytest.mark.parametrize("engine", executing())
def test_only_what_the_change_did_is_refused(engine: str, way: str) -> None:
    verdicts = set()
    for seed in range(part(400)):
        case = Case(seed, way)
        if any(".kept" in r.name for r in _assembled(case.text).program.function("main").registers):
            # The assembler has added an ancilla of its own.
            continue
        m = case.machine(engine)
        off = case.left(back=way == "back")
        try:
            m.run_back() if way == "back" else m.run()
            passed = True
        except InvertibilityError as error:
            assert error.code == "R001", (case.text, error)
            passed = False
        assert passed == (off == 0), (seed, case.text, case.place, case.at, float(off))
        verdicts.add(passed)
    assert verdicts == {True, False}


def test_earlier_changes_are_not_forgotten_by_a_later_one() -> None:
    """Each of them is judged, and of many the states are not all kept."""
    text = "func main(x: f64)\n    alloc t: f64\n" + "".join(
        f"    {op} t, {k}.7 * x\n"
        for op, k in [*(("add", k) for k in range(20)), *(("sub", k) for k in range(20))]
    )
    program = rvm.assemble(text + "    free t\n")
    for harmful in (None, 0, 5, 11):
        m = Machine(program, "main", engine="reference", x=1e9)
        m.step(5)
        for k in range(12):
            m.step(1)
            m["t"] += 1.0 if k == harmful else 0.0
        states, state = 0, m.state
        while state.changed is not None:
            states, state = states + 1, state.changed.before
        assert states <= 8
        if harmful is None:
            m.run()
        else:
            with pytest.raises(InvertibilityError, match="R001"):
                m.run()
