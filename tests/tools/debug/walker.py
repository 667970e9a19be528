"""Random sessions of the debugger on random programs, compared with the truth at each command."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attack.programs import smooth, sound
from rvm_tools.debug import Session
from rvm_tools.debug.console import Answer, Console
from rvm_tools.debug.front import gradient_of
from rvm_tools.debug.lines import line_starts
from rvm_tools.debug.texts import raw_text
from rvm_tools.debug.views import named_registers
from tools.debug.truth import Held, Moment, TooLong, Truth, put

import rvm
from rvm.expr import Const, Index, Part, Place
from rvm.image import image_of
from rvm.numbers import system
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import Options, State
from rvm.types import F64, I64, Array, Scalar, Stack, elem_of

GROWING = """
func main(y: f64, x: f32[n], s: stack[f64], w: log64, z: c128, k: i64)
    for i = 1 to k
        add y, 1e10 * f64(i)
        mul y, 1.7
        call deep(x, y)
        mul w, log64(1.01)
        mul z, 0.9 + 0.3j
        if i % 5 == 0
            alloc a: f64 = 0.1
            push a, s
            free a
            alloc lost: f64 = y
            drop lost
        end
        sub y, 3.0
    end

func deep(x: f32[n], y: f64)
    add x[0], 1e8
    mul x, 0.37
    add x[1], x[0] * f32(1e-7)
    sub y, 0.125
"""
"""A program whose floats contract and grow, and which drops values."""
ADJOINTS = """
func main(x: f64[n], v: f64[n], y: f64, c: i64, k: i64)
    for i = 1 to k
        call bowl'(0.0, x, c; -0.1, v)
        add x, v * 0.5
        mul v, 0.9
        call bowl(y, x, c)
        if i % 2 == 0
            uncall bowl'(0.0, x, c; 0.3, v)
            call far(x[0], v[1], c)
        end
        routine inside
            alloc t: f64 = y * 0.7
            call far(t, x[1], c)
        end
        add v[0], t
        undo inside
    end

func bowl(e: f64, x: f64[n], c: i64)
    for i = 0 to n - 1
        alloc t: f64 = x[i] * x[i]
        mul t, 0.3
        add t, 1000.0 * f64(c)
        add e, t * 0.001
        sub t, 1000.0 * f64(c)
        div t, 0.3
        free t = x[i] * x[i]
    end

func far(a: f64, b: f64, c: i64)
    add a, b * 0.1
    while c < 7, c != 0
        mul b, 1.5
        add c, 1
    end
    sub c, 7
"""
"""A program with adjoints, undone routines and calls, and ancillas that rounding changes."""
NAMES = """
func main(x: i64[n], y: i64[n], s: stack[i64], t: i64, b: bool, k: i64)
    for i = 1 to k
        swap x[0:2], y[1:3]
        call step(x[i % n], t, i)
        call turn(x[1:n], y[0], b)
        push x[2], s
        call sort(x, 1)
        swap x, y
        call local(y, i, b)
        if i % 2 == 0
            swap x[i % n], t
            uncall step(y[i % n], x[(i + 1) % n], i)
        end
    end

func local(y: i64[n], i: i64, b: bool)
    alloc z: i64[n] = y
    call step(z[i % n], y[0], i)
    swap z, y
    call turn(y, z[1], b)
    uncall turn(y, z[1], b)
    swap z, y
    uncall step(z[i % n], y[0], i)
    free z = y
    add y[1], y[0]

func step(p: i64, q: i64, i: i64)
    add p, i * 3
    cswap i % 2 == 1, p, q
    call deeper(q, p)
    sub q, i // 2
    add q, 0

func deeper(q: i64, p: i64)
    swap p, q
    xor q, 1

func turn(v: i64[n], z: i64, b: bool)
    call step(v[n - 1], v[0], 2)
    call deeper(z, v[0])
    not b
    call halves(v[0:n:2], v[1])

func halves(v: i64[m], w: i64)
    add w, v[m - 1]
    call deeper(v[0], w)

func sort(x: i64[n], m: i64)
    if m < n, m < n
        call deeper(x[m - 1], x[m])
        alloc h: i64 = m + 1
        call sort(x[0:n - 1], h)
        free h = m + 1
        call step(x[m], x[0], m)
    end
"""
"""A program whose places are changed under many names."""
PARTS = """
func main(z: c128, w: c128[n], x: f64[n], y: f64, k: i64)
    for i = 1 to k
        call grow(z.re, w[i % n].im, i)
        call turn(w[0], z)
        call turn(z, w[1])
        call grow(x[i % n], y, i)
        call all(w, x[::-1])
        swap w[0].re, w[1].im
        swap x[0], z.im
    end

func grow(a: f64, b: f64, i: i64)
    add a, b * 0.3
    if i % 2 == 0
        call grow(b, a, i - 1)
    end
    mul b, 1.1

func turn(a: c128, b: c128)
    add a, b * 0.5j
    call grow(a.im, b.re, 2)
    swap a, b

func all(w: c128[m], x: f64[m])
    for i = 0 to m - 1
        alloc t: c128 = 0.5 + 1j
        call grow(t.re, x[i], i)
        call grow(w[i].re, t.im, i)
        uncall grow(t.re, x[i], i)
        drop t
    end
"""
"""The same with parts of complex numbers, and rounding."""
KINDS = (
    "exact",
    "sound",
    "types",
    "smooth",
    "gradient",
    "growing",
    "adjoints",
    "names",
    "parts",
)


class Mismatch(AssertionError):
    """A session shows something else than was."""


class Case:
    """A random program with inputs, and options of a session."""

    def __init__(self, kind: str, rng: random.Random, folder: Path) -> None:
        seed = rng.randrange(100_000)
        self.kind = kind
        self.text, inputs = _drawn(kind, seed, rng)
        self.file = folder / "program.rasm"
        self.file.write_text(self.text)
        library = rvm.load(self.file)
        self.program: Program = library.program
        self.function = "main"
        self.inputs: dict[str, Any] = inputs
        if kind == "gradient":
            loss = rng.choice(["x0", "u[1]", "p.m"])
            self.program, self.inputs = gradient_of(
                self.program, self.program.function("main"), inputs, loss
            )
            self.function = self.program.entry
        self.undo = kind != "gradient" and rng.random() < 0.2
        self.options = Options(strict=rng.random() < 0.15)
        if self.undo:
            made = Machine.start(self.program, self.function, self.inputs, self.options)
            made.run()
            self.inputs = dict(made.result)

    def session(self) -> Session:
        return Session(
            self.program,
            self.function,
            self.inputs,
            self.options,
            undo=self.undo,
            say=lambda line: None,
            keyframes=1 << 20,
        )

    def truth(self) -> Truth:
        return Truth(self.program, self.function, self.inputs, self.options, self.undo)


def _drawn(kind: str, seed: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    if kind == "exact":
        while True:
            types = ("i64", *rng.sample(["u8", "fixed", "i32", "bool", "u64"], 2))
            try:
                text = sound.program(seed, types)
            except KeyError:
                # It needs a real number.
                seed += 1
                continue
            return text, _inputs_of(text, seed)
    if kind == "sound":
        return sound.program(seed), sound.inputs(seed)
    if kind == "types":
        return sound.program(seed, None), sound.inputs(seed, None)
    if kind in ("smooth", "gradient"):
        return smooth.program(seed, 4), smooth.inputs(seed)
    if kind == "adjoints":
        return ADJOINTS, {
            "x": np.array([rng.uniform(-2, 2) for _ in range(3)]),
            "v": np.array([rng.uniform(-2, 2) for _ in range(3)]),
            "y": 0.1,
            "c": 0,
            "k": 1 + seed % 4,
        }
    if kind == "names":
        whole = {"x": np.array([rng.randrange(9) for _ in range(4)]), "t": rng.randrange(9)}
        return NAMES, {**whole, "y": np.arange(4), "s": [3, 1], "b": False, "k": 1 + seed % 3}
    if kind == "parts":
        return PARTS, {
            "z": 0.3 + 0.1j,
            "w": np.array([0.5, 1j, 0.1 + 0.7j]),
            "x": np.array([rng.uniform(-2, 2) for _ in range(3)]),
            "y": 0.1,
            "k": 1 + seed % 3,
        }
    return GROWING, {
        "y": 0.3,
        "x": np.array([0.1, 0.2, 3e-5], np.float32),
        "s": [0.7],
        "w": 1.5,
        "z": 0.1 + 0.7j,
        "k": 1 + seed % 12,
    }


def _inputs_of(text: str, seed: int) -> dict[str, Any]:
    """Small whole numbers for all parameters of `main`."""
    rng = random.Random(seed)
    function = rvm.assemble(text).program.function("main")
    out: dict[str, Any] = {}
    for p in function.params:
        if not isinstance(p.layout, int):
            out[p.name] = {f: _number(rng, function.registers[k].type) for f, k in p.layout.fields}
            continue
        t = function.registers[p.layout].type
        if isinstance(t, Stack):
            out[p.name] = [_number(rng, t.elem) for _ in range(3)]
        elif isinstance(t, Array):
            sys = system(t.elem)
            out[p.name] = np.array(
                [sys.from_python(_number(rng, t.elem)) for _ in range(4)], sys.dtype
            )
        else:
            out[p.name] = _number(rng, t)
    return out


def _number(rng: random.Random, t: Any) -> Any:
    return rng.random() < 0.5 if t.is_bool else rng.randrange(0, 100)


TEXTS = {
    "float": ["0.25", "-1.5", "1000.0", "0.0", "3.0"],
    "int": ["0", "1", "3", "7", "-5"],
    "unsigned": ["0", "1", "3", "7", "200"],
    "bool": ["true", "false"],
}


def texts_for(t: Scalar) -> list[str]:
    if t.is_bool:
        return TEXTS["bool"]
    if t.is_integer:
        return TEXTS["unsigned" if str(t).startswith("u") else "int"]
    if t.is_log:
        return ["0.25'log64", "2.0'log64"]
    if t.is_complex:
        return ["0.25 + 0.5j", "2.0 - 1.0j"]
    return TEXTS["float"]


def raw_of(t: Scalar, text: str) -> Any:
    sys = system(t)
    if t.is_bool:
        return sys.from_python(text == "true")
    if t.is_integer:
        return sys.from_python(int(text))
    if t.is_log:
        return float(text.partition("'")[0])
    if t.is_complex:
        return sys.from_python(complex(text.replace(" ", "")))
    return sys.from_python(float(text))


@dataclass(frozen=True, slots=True)
class Watched:
    """A place of one call, the first that is called `call` in the recorded states."""

    call: int
    reg: int
    index: Any = None
    part: str = ""

    def value(self, moment: Moment) -> Any:
        """Its value; None where it is not live, `GONE` where the call is not active."""
        frame = next((f for f in moment.frames if f.call == self.call), None)
        if frame is None:
            return GONE
        held = frame.regs[self.reg]
        if held is None:
            return None
        if self.index is not None:
            held = held[self.index]
        return getattr(held, self.part) if self.part else held


GONE = "gone"


def same(a: Any, b: Any) -> bool:
    """Whether two values of a place are equal numbers; NaN equals itself."""
    if a is None or b is None or a is GONE or b is GONE:
        return a is b
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.all((np.asarray(a) == b) | ((np.asarray(a) != a) & (np.asarray(b) != b))))


class Walk:
    """One session, its console, and the truth; `step` makes a random command and compares."""

    def __init__(self, case: Case, rng: random.Random, folder: Path) -> None:
        self.case, self.rng, self.folder = case, rng, folder
        self.truth = case.truth()
        self.console = Console(case.session())
        self.done: list[str] = []
        self.stops: dict[int, tuple[str, int]] = {}
        """Breakpoints by number: function and instruction as written."""
        self.watched: dict[int, Watched] = {}
        """Watchpoints by number."""
        self.compare()

    @property
    def session(self) -> Session:
        return self.console.session

    @property
    def time(self) -> int:
        return self.session.time

    def run(self, text: str) -> Answer:
        self.done.append(text)
        return self.console.execute(text)

    def fail(self, what: str, *more: Any) -> None:
        raise Mismatch(f"{what}: {more} after {self.done}")

    # ------------------------------------------------------------ comparing

    def compare(self) -> None:
        """The state, the counters and the marks that the session shows."""
        session, truth = self.session, self.truth
        time = session.time
        if not 0 <= time <= truth.last:
            self.fail("time out of range", time, truth.last)
        shown = Moment.of(session.machine.state).shown()
        true = truth.moments[time].shown()
        if shown != true:
            self.fail("another state", time, difference(session, shown, true))
        if session.machine.direction != 1:
            self.fail("direction")
        if session.stop.time != time:
            self.fail("the stop's time", session.stop.time, time)
        if [e.time for e in session.edits] != [e.time for e in truth.edits]:
            self.fail("edits", session.edits, truth.edits)
        first = truth.edits[0].time if truth.edits else None
        if session.diverged != first:
            self.fail("diverged", session.diverged, first)
        if session.length not in (None, truth.last if truth.error is None else None):
            self.fail("length", session.length, truth.last)
        prompt = self.console.prompt()
        found = re.match(r"\[t=(-?\d+)", prompt)
        if not found or int(found[1]) != time:
            self.fail("prompt", prompt)
        computed = any(e.computed and e.time <= time for e in truth.edits)
        edited = bool(truth.edits) and not computed
        if (" computed " in prompt, " edited " in prompt) != (computed, edited):
            self.fail("mark", prompt)
        function = session.frame.code.function
        names = named_registers(function)
        live = [k for k in names if session.frame.regs[k] is not None and "'" not in names[k][0]]
        if live:
            k = self.rng.choice(live)
            name, register = names[k]
            twins = [j for j in live if names[j][0] == name]
            if not isinstance(register.type, Stack) and len(twins) == 1:
                said = self.console.execute(f"p {name}").text
                self.console.last = ""
                held = truth.moments[time].top.regs[k]
                wanted = f"{name} = {raw_text(register.type, held, 80 - len(name) - 3)}"
                if " ".join(said.split()) != " ".join(wanted.split()):
                    self.fail("printed", said, wanted)

    def arrived(self, text: str, answer: Answer, want: int, reason: str = "") -> None:
        """That a command led where it must."""
        if answer.error is not None:
            self.fail("refused", text, answer.error)
        if self.time != want:
            self.fail("another place", text, self.time, want, self.session.stop)
        if reason and self.session.stop.reason != reason:
            self.fail("another reason", self.session.stop.reason, reason)
        if self.session.stop.reason == "error":
            error, mine = self.session.stop.error, self.truth.error
            if mine is None or error is None or (error.code, error.time) != (mine.code, mine.time):
                self.fail("another error", error, mine)
        if f"t={want}  " not in answer.text:
            self.fail("the text has another time", answer.text)

    # ------------------------------------------------------------ the truth of journeys

    def top(self, t: int) -> Held:
        return self.truth.moments[t].top

    def code(self, f: Held) -> Any:
        return image_of(self.case.program).code(f.name, f.undo)

    def at_break(self, t: int) -> bool:
        f = self.top(t)
        code = self.code(f)
        for name, pc in self.stops.values():
            if f.name == name and f.pc == (len(code) - 1 - pc if f.undo else pc):
                return True
        return False

    def changed(self, w: Watched, t: int, way: int) -> bool:
        """Whether a watched place has another value at a time than a tick ago in the direction, or
        an edit in between has changed it; or its call has ended."""
        if not 0 <= t - way <= self.truth.last:
            return False
        late = max(t, t - way)
        old = w.value(self.truth.moments[t - way])
        new = w.value(self.truth.moments[t])
        if old is GONE:
            return False
        between = self.truth.before.get(late)
        if between is not None and late and new is not GONE:
            return not same(old, w.value(between)) or not same(w.value(between), new)
        return not same(old, new)

    def stops_at(self, t: int, way: int) -> bool:
        return self.at_break(t) or any(self.changed(w, t, way) for w in self.watched.values())

    def line(self, t: int) -> bool:
        f = self.top(t)
        return f.pc in line_starts(self.code(f))

    def seek(self, t: int, way: int, there: Callable[[int], bool]) -> int:
        """The next time at which something holds, or the end."""
        edge = self.truth.last if way > 0 else 0
        while t != edge:
            t += way
            if there(t):
                return t
        return edge

    def journey(self, word: str, count: int, way: int) -> int:
        t = self.time
        if word == "si":
            goal = t + way * count
            return self.seek(t, way, lambda k: k == goal or self.stops_at(k, way))
        if word == "c":
            for _ in range(count):
                t = self.seek(t, way, lambda k: self.stops_at(k, way))
            return t
        for _ in range(count):
            frames = self.truth.moments[t].frames
            calls = [f.call for f in frames]

            def there(k: int, calls: list[int] = calls) -> bool:
                top, depth = self.top(k), len(self.truth.moments[k].frames)
                if word == "fin":
                    return depth == len(calls) - 1 and top.call in calls
                return self.line(k) and (word == "s" or top.call in calls)

            t = self.seek(t, way, lambda k, there=there: there(k) or self.stops_at(k, way))
            if self.stops_at(t, way):
                break
        return t

    # ------------------------------------------------------------ commands

    def step(self) -> None:
        """A random command."""
        choice = self.rng.random()
        if choice < 0.5:
            self.travel()
        elif choice < 0.62:
            self.goto()
        elif choice < 0.76:
            self.set()
        elif choice < 0.84:
            self.inverse()
        elif choice < 0.86:
            self.stop()
        elif choice < 0.9:
            self.watch()
        elif choice < 0.92:
            self.revisit()
        elif choice < 0.94:
            self.look_back()
        elif choice < 0.97:
            self.save()
        elif choice < 0.98:
            self.restart()
        else:
            self.export()
        self.compare()

    def travel(self) -> None:
        word = self.rng.choice(["si", "s", "n", "fin", "c"])
        way = self.rng.choice([1, -1])
        count = 1 if self.rng.random() < 0.5 else self.rng.randrange(1, 12)
        want = self.journey(word, count if word != "fin" else 1, way)
        text = ("r" if way < 0 else "") + word
        if count > 1 and word != "fin":
            text += f" {count}"
        answer = self.run(text)
        self.arrived(text, answer, want)

    def goto(self) -> None:
        last = self.truth.last
        kind = self.rng.randrange(5)
        t = self.rng.randrange(last + 1)
        text, want = f"goto {t}", t
        if kind == 1:
            text, want = "start", 0
        elif kind == 2:
            text, want = "end", last
        elif kind == 3:
            n = self.rng.randrange(1, 30)
            text, want = f"-{n}", max(0, self.time - n)
        elif kind == 4:
            n = self.rng.randrange(1, 30)
            text, want = f"+{n}", min(last, self.time + n)
        self.arrived(text, self.run(text), want)

    def set(self) -> None:
        session, rng = self.session, self.rng
        depth = len(session.frames) - 1
        if depth and rng.random() < 0.4:
            depth = rng.randrange(depth)
        function, regs = session.frames[depth].code.function, session.frames[depth].regs
        names = named_registers(function)
        live = [
            k
            for k, (name, r) in names.items()
            if regs[k] is not None
            and "'" not in name
            and not isinstance(r.type, Stack)
            and sum(n == name and regs[j] is not None for j, (n, _) in names.items()) == 1
        ]
        if not live:
            return
        k = rng.choice(live)
        name, register = names[k]
        t = elem_of(register.type)
        path: list[Index | Part] = []
        if isinstance(register.type, Array):
            shape = regs[k].shape
            if 0 in shape:
                return
            index = [rng.randrange(n) for n in shape]
            name += f"[{', '.join(map(str, index))}]"
            path.append(Index(tuple(Const(i, I64) for i in index)))
        if t.is_complex and rng.random() < 0.5:
            part = rng.choice(["re", "im"])
            name += f".{part}"
            path.append(Part(part))
            t = F64
        place = Place(k, tuple(path), t)
        text = rng.choice(texts_for(t))
        raw = raw_of(t, text)
        time = self.time
        if depth < len(session.frames) - 1:
            self.run(f"frame {depth}")
        answer = self.run(f"set {name} = {text}")

        def change(state: State) -> bool:
            return put(state.frames, depth, place, raw)

        if self.truth.edit(time, change) != (answer.error is None):
            self.fail("an edit is refused, or it is not", answer.error)
        elif answer.error is None:
            self.forget()
        if self.session.depth != depth:
            self.fail("another frame is selected")
        self.session.select(len(self.session.frames) - 1)

    def inverse(self) -> None:
        time = self.time
        active = {f.call for f in self.truth.moments[time].frames}
        count = self.rng.choice([None, 1, 2, 5, 20])
        text = "back --inverse" + (f" {count}" if count else "")
        self.truth.compute_back(time, count)
        answer = self.run(text)
        if answer.error is not None:
            self.fail("refused", answer.error)
        error, mine = self.session.stop.error, self.truth.failed
        if (error and (error.code, error.time)) != (mine and (mine.code, mine.time)):
            self.fail("another error", error, mine)
        if "computed" not in answer.text:
            self.fail("not marked", answer.text)
        # A call that the inverse code has entered again is another one.
        again = {f.call for f in self.truth.moments[self.time].frames} - active
        self.watched = {n: w for n, w in self.watched.items() if w.call not in again}
        self.forget()
        if f"t={self.time}  " not in answer.text:
            self.fail("the text has another time", answer.text)

    def forget(self) -> None:
        """Watchpoints of calls that begin after an edit are gone."""
        begun = {f.call for m in self.truth.moments[: self.time + 1] for f in m.frames}
        self.watched = {n: w for n, w in self.watched.items() if w.call in begun}
        found = [w.number for w in self.session.watches]
        if found != sorted(self.watched):
            self.fail("other watchpoints", found, self.watched)

    def stop(self) -> None:
        rng = self.rng
        if (self.stops or self.watched) and rng.random() < 0.4:
            number = rng.choice([*self.stops, *self.watched])
            self.run(f"del {number}")
            self.stops.pop(number, None)
            self.watched.pop(number, None)
            return
        program = self.case.program
        name = rng.choice([f.name for f in program.functions])
        pc = rng.randrange(len(program.function(name).code) or 1)
        answer = self.run(f"b {name}@{pc}")
        if answer.error is not None:
            return
        self.stops[self.session.breaks[-1].number] = name, pc

    def drawn(self) -> tuple[int, str, Watched] | None:
        """A random live place of a frame, not always the innermost: its depth, text and meaning."""
        session, rng = self.session, self.rng
        depth = len(session.frames) - 1
        if depth and rng.random() < 0.6:
            depth = rng.randrange(depth)
        frame = session.frames[depth]
        names = named_registers(frame.code.function)
        live = [
            k
            for k, (name, _) in names.items()
            if frame.regs[k] is not None
            and "'" not in name
            and sum(n == name and frame.regs[j] is not None for j, (n, _) in names.items()) == 1
        ]
        if not live:
            return None
        k = rng.choice(live)
        text, register = names[k]
        index: Any = None
        part = ""
        whole = isinstance(register.type, Stack)
        if isinstance(register.type, Array):
            shape = frame.regs[k].shape
            kind = rng.random()
            if kind < 0.7 and 0 not in shape:
                index = tuple(rng.randrange(n) for n in shape)
                text += f"[{', '.join(map(str, index))}]"
            elif kind < 0.85 and len(shape) == 1:
                low = rng.randrange(shape[0] + 1)
                index = slice(low, rng.randrange(low, shape[0] + 1))
                text += f"[{index.start}:{index.stop}]"
        if not whole and elem_of(register.type).is_complex and rng.random() < 0.6:
            part = rng.choice(["real", "imag"])
            text += "." + part[:2]
        call = self.truth.moments[self.time].frames[depth].call
        return depth, text, Watched(call, k, index, part)

    def watch(self) -> None:
        drawn = self.drawn()
        if drawn is None:
            return
        depth, text, watched = drawn
        self.session.select(depth)
        answer = self.run(f"watch {text}")
        self.session.select(len(self.session.frames) - 1)
        if answer.error is not None:
            self.fail("a watch is refused", answer.error)
        self.watched[self.session.watches[-1].number] = watched

    def revisit(self) -> None:
        self.run(self.rng.choice(["back", "forward"]))

    def look_back(self) -> None:
        session = self.session
        drawn = self.drawn()
        if drawn is None:
            return
        depth, text, watched = drawn
        word = self.rng.choice(["last", "next", "origin"])
        way = 1 if word == "next" else -1
        want = self.seek(self.time, way, lambda t: self.changed(watched, t, way))
        session.select(depth)
        answer = self.run(f"{word} {text}")
        if answer.error is not None:
            self.fail("refused", answer.error)
        if word != "origin" and self.time != want:
            self.fail("another place", word, text, self.time, want)
        session.select(len(session.frames) - 1)

    def save(self) -> None:
        file = self.folder / "session.rdb"
        answer = self.run(f"save {file}")
        refused = answer.error is not None
        if refused != (self.truth.computed is not None):
            self.fail("save", answer.error)
        if refused:
            return
        time = self.time
        self.console = Console(self.case.session())
        self.done.append("# loaded")
        found = self.console.execute(f"source {file}")
        if found.error is not None:
            self.fail("the saved session is refused", found.error, file.read_text())
        if self.time != time:
            self.fail("the saved session is elsewhere", self.time, time, file.read_text())
        olds = list(self.stops.values())
        self.stops = {b.number: olds[k] for k, b in enumerate(self.session.breaks)}
        kept = list(self.watched.values())
        if len(self.session.watches) != len(kept):
            self.fail("saved watchpoints", len(kept), self.session.watches)
        self.watched = {w.number: kept[k] for k, w in enumerate(self.session.watches)}

    def restart(self) -> None:
        self.run("restart")
        edits, moments = self.truth.edits, self.truth.moments
        self.truth = self.case.truth()
        if edits:
            before = moments[: edits[0].time + 1]
            begun = {f.call for m in before for f in m.frames}
            self.watched = {n: w for n, w in self.watched.items() if w.call in begun}
        found = [w.number for w in self.session.watches]
        if found != sorted(self.watched):
            self.fail("other watchpoints", found, self.watched)
        if self.time:
            self.fail("restart")

    def export(self) -> None:
        file = self.folder / "test_exported.py"
        answer = self.run(f"export-test {file}")
        refused = answer.error is not None
        if refused != bool(self.truth.edits):
            self.fail("export", answer.error)
        if refused:
            return
        space: dict[str, Any] = {"__file__": str(file)}
        text = file.read_text()
        exec(compile(text, str(file), "exec"), space)
        found = [f for name, f in space.items() if name.startswith("test_")]
        if len(found) != 1:
            self.fail("no test", text)
        try:
            found[0]()
        except Exception as error:
            self.fail("the exported test fails", repr(error), text[-1500:])


def difference(session: Session, shown: Any, true: Any) -> str:
    out = []
    if shown[0] != true[0]:
        out.append(f"erased and logged {shown[0]} instead of {true[0]}")
    if len(shown[1]) != len(true[1]):
        out.append(f"{len(shown[1])} frames instead of {len(true[1])}")
    for depth, (a, b) in enumerate(zip(shown[1], true[1], strict=False)):
        if a[:3] != b[:3]:
            out.append(f"frame {depth} is {a[:3]} instead of {b[:3]}")
        function = session.program.function(a[0])
        code = image_of(session.program).code(function.name, a[1])
        registers = code.function.registers
        if len(a[3]) < len(registers):
            registers = tuple(r for r in registers if not r.is_own)
        for r, x, y in zip(registers, a[3], b[3], strict=False):
            if x != y:
                out.append(f"frame {depth} {r.name} {x} instead of {y}")
    return "; ".join(out)


def walk(kind: str, seed: int, commands: int, folder: Path, watches: int = 0) -> int:
    """A random session of some commands; the number of those it made.

    It begins by watching places at random times.  It ends before if its run becomes long; programs
    that fail at once have none.
    """
    rng = random.Random(f"{kind} {seed}")
    try:
        case = Case(kind, rng, folder)
        made = Walk(case, rng, folder)
    except (TooLong, rvm.RvmError):
        return 0
    with suppress(TooLong):
        for _ in range(watches):
            made.goto()
            made.watch()
        for _ in range(commands):
            made.step()
    return len(made.done)
