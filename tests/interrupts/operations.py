"""Everything that can be under way when an exception comes, on data that must come out whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from rvm_tools.debug import Session

import rvm
from rvm.engines import ENGINES, LAW, having
from rvm.faults import MachineError
from rvm.run.backup import LARGE
from rvm.state import Options

TEXT = """
func plain(x: f64[n], y: i64[m], z: f64, k: i64)
    for i = 1 to k
        add x[i % len(x)], 0.1
        mul x[(i + 1) % len(x)], 1.01
        add y[i % len(y)], i
        add z, x[0]
    end
    add x, 0.3

func stacks(x: f64[n], y: i64[m], s: stack[fixed], t: stack[i64], k: i64)
    for i = 1 to k
        add x[i % len(x)], 0.1
        add y, i
        alloc a: i64 = i
        push a, t
        free a
        if i % 3 == 0
            alloc b: fixed = 0.5
            push b, s
            free b
        end
    end

func exact(y: i64[m], s: stack[i64], k: i64)
    for i = 1 to k
        alloc w: i64[3] = i
        add y[0:3], w
        call inner(y, i)
        free w = i
        alloc a: i64 = i
        push a, s
        free a
    end

func inner(y: i64[m], i: i64)
    rol y[i % len(y)], 3
    xor y[(i + 1) % len(y)], i

func model(e: f64, a: f64[n], b: f64, k: i64)
    for i = 1 to k
        add e, b * a[i % len(a)] * a[(i + 1) % len(a)]
    end

func step(after: f64[n], before: f64[n])
    add after, before * 0.9
"""
PROGRAM = rvm.assemble(TEXT)
ROUNDS = dict.fromkeys(ENGINES, 80) | {LAW: 15, "native": 4000}
"""Of a run's loop, for about a millisecond."""


class Call:
    """A call on fresh data; all other operations are kinds of it."""

    name = "call"

    def __init__(self, engine: str) -> None:
        self.engine, self.k = engine, ROUNDS[engine]
        self.start()
        self.old = self.held()
        self.go()
        self.new = self.held()

    def start(self) -> None:
        """Make fresh data, the same ones each time."""
        self.x = np.linspace(0.1, 0.9, 7)
        self.y = np.arange(5)

    @property
    def data(self) -> tuple[Any, ...]:
        """The caller's arrays and lists."""
        return self.x, self.y

    def held(self) -> tuple[Any, ...]:
        """What the data hold, to the bit."""
        return tuple(
            v.tobytes() if isinstance(v, np.ndarray) else [(type(x), x) for x in v]
            for v in self.data
        )

    def go(self) -> None:
        """Do it."""
        PROGRAM.plain(x=self.x, y=self.y, z=0.5, k=self.k, engine=self.engine)

    def check(self, raised: BaseException | None) -> None:
        """AssertionError unless the data are the old or the new ones."""
        held = self.held()
        assert held == self.new or (raised is not None and held == self.old), (self, raised)


class Back(Call):
    name = "back"

    def go(self) -> None:
        (~PROGRAM.plain)(x=self.x, y=self.y, z=0.5, k=self.k, engine=self.engine)


class Large(Call):
    """Arrays of which one is all zeros, and need not be copied to be put back."""

    name = "large"

    def start(self) -> None:
        self.x = np.linspace(0.1, 0.9, LARGE // 8)
        self.y = np.zeros(LARGE // 8, np.int64)


class Stacks(Call):
    name = "stacks"

    def start(self) -> None:
        super().start()
        self.s: list[Any] = [0.5, 1]
        self.t: list[Any] = [-3, 7]

    @property
    def data(self) -> tuple[Any, ...]:
        return self.x, self.y, self.s, self.t

    def go(self) -> None:
        out = PROGRAM.stacks(
            x=self.x, y=self.y, s=self.s, t=self.t, k=self.k // 2, engine=self.engine
        )
        assert (self.s, self.t) == (out.s, out.t)


class Run(Call):
    """A machine that is run, turned and run back: the data are the old ones afterwards."""

    name = "machine"

    def start(self) -> None:
        self.y = np.arange(5)
        self.s: list[Any] = [3]
        self.machine = rvm.Machine(
            PROGRAM, "exact", y=self.y, s=self.s, k=self.k // 2, engine=self.engine
        )

    @property
    def data(self) -> tuple[Any, ...]:
        return self.y, self.s

    def go(self) -> None:
        self.machine.run()
        self.machine.run_back()
        self.machine.seek(10)
        self.machine.seek(0)

    poisoned = 0

    def check(self, raised: BaseException | None) -> None:
        if self.machine.state.torn:
            self.poisoned += 1
            for use in (self.machine.run, self.machine.run_back, lambda: self.machine.result):
                try:
                    use()
                except MachineError as error:
                    assert error.code == "R018"
                else:
                    raise AssertionError("a machine that is torn goes on")
            return
        self.machine.run_back()
        assert self.machine.time == 0 and self.machine.result["s"] == [3]
        assert self.held() == self.old, (self, raised)


class Debug(Run):
    name = "debug"

    def start(self) -> None:
        self.y = np.arange(5)
        self.s = [3]
        inputs = {"y": self.y, "s": self.s, "k": self.k // 4}
        self.session = Session(PROGRAM, "exact", inputs, Options(engine=self.engine))
        self.machine = self.session.machine

    def go(self) -> None:
        self.session.resume()
        self.session.goto(5)
        self.session.resume(-1)


class Derivative(Call):
    """Of these the inputs stay as they are."""

    def start(self) -> None:
        self.x = np.linspace(0.1, 0.9, 7)
        self.y = np.ones(7)

    def __init__(self, engine: str) -> None:
        super().__init__(engine)
        assert self.new == self.old


class Grad(Derivative):
    name = "grad"

    def go(self) -> None:
        found = PROGRAM.model.with_options(engine=self.engine).grad(
            loss="e", e=0.0, a=self.x, b=0.5, k=self.k
        )
        assert np.isfinite(found.a).all()


class Hvp(Derivative):
    name = "hvp"

    def go(self) -> None:
        PROGRAM.model.with_options(engine=self.engine).hvp(
            {"a": self.y}, loss="e", e=0.0, a=self.x, b=0.5, k=self.k // 4
        )


class Mapped(Derivative):
    name = "map"

    def start(self) -> None:
        self.x = np.linspace(0.1, 0.9, 40)
        self.y = np.ones((40, 7))

    def go(self) -> None:
        rounds = self.k if self.engine in ("auto", *having("lanes")) else self.k // 8
        PROGRAM.model.map(e=0.0, a=self.y, b=self.x, k=rounds, engine=self.engine)


class Iterate(Derivative):
    name = "iterate"

    def go(self) -> None:
        step = PROGRAM.step.with_options(engine=self.engine)
        rvm.pebble.iterate(step, 20, pebbles=6, progress=False)(self.x)


OPERATIONS: tuple[type[Call], ...] = (
    Call,
    Back,
    Large,
    Stacks,
    Run,
    Debug,
    Grad,
    Hvp,
    Mapped,
    Iterate,
)
