"""Random sessions of the debugger on random programs, compared with the truth at each command."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
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
from tools.debug.truth import Held, TooLong, Truth, bits, put

import rvm
from rvm.image import image_of
from rvm.numbers import system
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import Options, State
from rvm.types import Array, Scalar, Stack, elem_of

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
KINDS = ("exact", "sound", "types", "smooth", "gradient", "growing", "adjoints")


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


class Walk:
    """One session, its console, and the truth; `step` makes a random command and compares."""

    def __init__(self, case: Case, rng: random.Random, folder: Path) -> None:
        self.case, self.rng, self.folder = case, rng, folder
        self.truth = case.truth()
        self.console = Console(case.session())
        self.done: list[str] = []
        self.stops: dict[int, tuple[str, int]] = {}
        """Breakpoints by number: function and instruction as written."""
        self.watched: dict[int, int] = {}
        """Watchpoints by number: a register of the outermost frame."""
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
        # What is known of the sizes of values is not restored by a way back over their ends.
        own = not session._travel.past.exact
        shown = session.erased, [Held.of(f).shown(own) for f in session.frames]
        true = truth.moments[time].shown(own)
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

    def changed(self, t: int) -> bool:
        """Whether the tick that led to a time changed a watched place."""
        if not 0 < t <= self.truth.last:
            return False
        now = self.truth.before.get(t, self.truth.moments[t])
        was = self.truth.moments[t - 1]
        return any(
            bits(now.frames[0].regs[k]) != bits(was.frames[0].regs[k])
            for k in self.watched.values()
        )

    def stops_at(self, t: int, way: int) -> bool:
        return self.at_break(t) or self.changed(t if way > 0 else t + 1)

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
        elif choice < 0.9:
            self.stop()
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
        index: Any = None
        if isinstance(register.type, Array):
            shape = regs[k].shape
            if 0 in shape:
                return
            index = tuple(rng.randrange(n) for n in shape)
            name += f"[{', '.join(map(str, index))}]"
        text = rng.choice(texts_for(t))
        raw = raw_of(t, text)
        time = self.time
        if depth < len(session.frames) - 1:
            self.run(f"frame {depth}")
        answer = self.run(f"set {name} = {text}")

        def change(state: State) -> bool:
            return put(state.frames, depth, k, index, raw)

        if self.truth.edit(time, change) != (answer.error is None):
            self.fail("an edit is refused, or it is not", answer.error)
        if self.session.depth != depth:
            self.fail("another frame is selected")
        self.session.select(len(self.session.frames) - 1)

    def inverse(self) -> None:
        time = self.time
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
        if f"t={self.time}  " not in answer.text:
            self.fail("the text has another time", answer.text)

    def stop(self) -> None:
        rng = self.rng
        if self.stops and rng.random() < 0.4:
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

    def revisit(self) -> None:
        self.run(self.rng.choice(["back", "forward"]))

    def look_back(self) -> None:
        session = self.session
        function = session.frame.code.function
        names = [
            name
            for k, (name, r) in named_registers(function).items()
            if session.frame.regs[k] is not None
            and "'" not in name
            and not isinstance(r.type, Stack)
        ]
        if names:
            word = self.rng.choice(["last", "next", "origin"])
            self.run(f"{word} {self.rng.choice(names)}")
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

    def restart(self) -> None:
        self.run("restart")
        self.truth = self.case.truth()
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
        out.append(f"erased {shown[0]} instead of {true[0]}")
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


def walk(kind: str, seed: int, commands: int, folder: Path) -> int:
    """A random session of some commands; the number of those it made.

    It ends before if its run becomes long; programs that fail at once have none.
    """
    rng = random.Random(f"{kind} {seed}")
    try:
        case = Case(kind, rng, folder)
        made = Walk(case, rng, folder)
    except (TooLong, rvm.RvmError):
        return 0
    with suppress(TooLong):
        for _ in range(commands):
            made.step()
    return len(made.done)
