"""R002 speaks of the statement, with the condition as it is written.

Random structured statements are executed by a walk over their trees, in both directions, which says
which condition is not as it must be.  It knows no jumps.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

import rvm
from rvm.faults import InvertibilityError

SIGNS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "!=": lambda a, b: a != b,
    "==": lambda a, b: a == b,
}
MAX_STEPS = 300


class Disagreement(Exception):
    """A condition that is not as it must be: its text, and what the message says of it."""


class TooLong(Exception):
    """A loop that does not end soon."""


@dataclass
class Cond:
    """A comparison of a variable; `k` is another number for each condition of a program."""

    name: str
    sign: str
    k: int

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.k}"

    def holds(self, v: dict[str, int]) -> bool:
        return SIGNS[self.sign](v[self.name], self.k)

    def expect(self, v: dict[str, int], wanted: bool, said: str) -> None:
        if self.holds(v) != wanted:
            raise Disagreement(str(self), said)


class Stat:
    """A statement: its lines, and what it does in either direction."""

    budget: ClassVar = [0]

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self, v: dict[str, int], back: bool) -> None:
        raise NotImplementedError


@dataclass
class Change(Stat):
    name: str
    by: int

    def lines(self) -> list[str]:
        return [f"add {self.name}, {self.by}"]

    def run(self, v: dict[str, int], back: bool) -> None:
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise TooLong
        v[self.name] += -self.by if back else self.by


@dataclass
class Block(Stat):
    body: list[Stat]

    def lines(self) -> list[str]:
        return [f"    {line}" for s in self.body for line in s.lines()]

    def run(self, v: dict[str, int], back: bool) -> None:
        for s in reversed(self.body) if back else self.body:
            s.run(v, back)


@dataclass
class If(Stat):
    arms: list[tuple[Cond, Cond | None, Block]]
    orelse: Block | None

    def lines(self) -> list[str]:
        out: list[str] = []
        for cond, post, body in self.arms:
            word = "elseif" if out else "if"
            out += [f"{word} {cond}" + (f", {post}" if post else ""), *body.lines()]
        return [*out, *(["else", *self.orelse.lines()] if self.orelse else []), "end"]

    def run(self, v: dict[str, int], back: bool) -> None:
        at = {False: [c for c, _, _ in self.arms], True: [p or c for c, p, _ in self.arms]}
        asked, checked = at[back], at[not back]
        done = next((k for k, c in enumerate(asked) if c.holds(v)), len(self.arms))
        if done < len(self.arms):
            self.arms[done][2].run(v, back)
        elif self.orelse:
            self.orelse.run(v, back)
        # Where the ways meet, the last arm's condition is looked at first.
        for k in range(min(done, len(self.arms) - 1), -1, -1):
            if k == done:
                said = "does not hold before it" if back else "taken, but … does not hold after it"
            else:
                said = "not undone, but … holds before" if back else "not taken, but … holds after"
            checked[k].expect(v, k == done, said)


@dataclass
class While(Stat):
    cond: Cond
    post: Cond
    body: Block

    def lines(self) -> list[str]:
        return [f"while {self.cond}, {self.post}", *self.body.lines(), "end"]

    def run(self, v: dict[str, int], back: bool) -> None:
        asked, checked = (self.post, self.cond) if back else (self.cond, self.post)
        outside = "holds where this `while` ends" if back else "holds before the first iteration"
        none = "makes no iteration, but … holds"
        checked.expect(v, False, outside if asked.holds(v) else none)
        inside = "does not hold before an iteration" if back else "does not hold after an iteration"
        while asked.holds(v):
            self.body.run(v, back)
            checked.expect(v, True, inside)
            Change("x", 0).run(v, back)


@dataclass
class From(Stat):
    entry: Cond
    body: Block
    again: Block | None
    until: Cond

    def lines(self) -> list[str]:
        loop = ["loop", *self.again.lines()] if self.again else []
        return [f"from {self.entry}", *self.body.lines(), *loop, f"until {self.until}"]

    def run(self, v: dict[str, int], back: bool) -> None:
        asked, checked = (self.entry, self.until) if back else (self.until, self.entry)
        end = "ends" if back else "begins"
        checked.expect(v, True, f"does not hold where this loop {end}")
        while True:
            self.body.run(v, back)
            if asked.holds(v):
                return
            if self.again:
                self.again.run(v, back)
            checked.expect(v, False, f"holds within this loop, not only where it {end}")
            Change("x", 0).run(v, back)


@dataclass
class Writer:
    """Random statements whose conditions are all different."""

    rng: random.Random
    used: set[str] = field(default_factory=set)

    def cond(self) -> Cond:
        while True:
            c = Cond(self.rng.choice("xyz"), self.rng.choice([*SIGNS]), self.rng.randint(-3, 4))
            if str(c) not in self.used:
                self.used.add(str(c))
                return c

    def block(self, depth: int) -> Block:
        return Block([self.stat(depth - 1) for _ in range(self.rng.randint(1, 2))])

    def stat(self, depth: int) -> Stat:
        rng = self.rng
        kind = rng.choice(["if", "while", "from", "change"]) if depth else "change"
        if kind == "if":
            arms = [
                (self.cond(), self.cond() if rng.random() < 0.7 else None, self.block(depth))
                for _ in range(rng.choice((1, 1, 2, 3)))
            ]
            return If(arms, self.block(depth) if rng.random() < 0.5 else None)
        if kind == "while":
            return While(self.cond(), self.cond(), self.block(depth))
        if kind == "from":
            again = self.block(depth) if rng.random() < 0.5 else None
            return From(self.cond(), self.block(depth), again, self.cond())
        return Change(rng.choice("xyz"), rng.choice((-2, -1, 1, 2)))


def told(error: InvertibilityError) -> tuple[str, str]:
    """The condition that a message speaks of, as it is quoted and as it is marked."""
    where, message = error.where, error.message
    assert where.text is not None
    marked = where.text[where.column - 1 : where.end - 1]
    assert f"`{marked}`" in message, (marked, message)
    return marked, message.replace("this arm was ", "").replace(f"`{marked}`", "…")


def test_random_statements_name_the_condition_that_disagrees() -> None:
    seen: set[tuple[bool, str]] = set()
    for seed in range(200):
        rng = random.Random(seed)
        program = Writer(rng).block(2)
        text = "\n".join(["func f(x: i64, y: i64, z: i64)", *program.lines()])
        library = rvm.assemble(text)
        f = library.f.with_options(engine="reference", max_steps=9 * MAX_STEPS)
        for back in (False, True):
            values = {name: rng.randint(-3, 4) for name in "xyz"}
            Stat.budget[0] = MAX_STEPS
            mine, expected = dict(values), None
            try:
                program.run(mine, back)
            except Disagreement as d:
                expected = d.args
            except TooLong:
                continue
            call: Any = ~f if back else f
            if expected is None:
                assert dict(call(**values)) == mine, text
                continue
            with pytest.raises(InvertibilityError) as caught:
                call(**values)
            cond, message = told(caught.value)
            said = expected[1]
            assert cond == expected[0] and said in message, (text, values, back, expected, message)
            assert caught.value.values == {cond[0]: mine[cond[0]]}
            seen.add((back, said))
    assert len(seen) == 14, sorted(seen)


PYTHON = """
import rvm

@rvm.reversible
def arm(x: int):
    if x > 3:
        x -= 4

@rvm.reversible
def elif_arm(x: int):
    if x > 9:
        x += 1
    elif (x > 3) and (x < 8):
        x -= 4

@rvm.reversible
def both(x: int):
    if rvm.when(x > 3, x > 4):
        x -= 4

@rvm.reversible
def many(x: int):
    while rvm.loop(x > 3, x < 100):
        x -= 1
"""


def refused(call: Callable[[], object]) -> rvm.RvmError:
    with pytest.raises(InvertibilityError) as caught:
        call()
    assert caught.value.code == "R002"
    return caught.value


def test_python_s_own_words(tmp_path: Any) -> None:
    file = tmp_path / "own.py"
    file.write_text(PYTHON)
    own = rvm.load(file)
    error = refused(lambda: own.arm(x=5))
    assert error.message == "this block was run, but `x > 3` does not hold after it"
    assert error.hint == (
        "give the condition that holds exactly after this block: `if rvm.when(x > 3, …):`"
    )
    assert error.notes == ("line 7 changes `x`",) and error.values == {"x": 1}
    error = refused(lambda: own.elif_arm(x=5))
    assert "`(x > 3) and (x < 8)` does not hold" in error.message
    assert error.where.line == 13
    error = refused(lambda: own.both(x=5))
    assert "`x > 4` does not hold" in error.message and "when" not in error.hint
    error = refused(lambda: own.many(x=5))
    assert error.message == "`x < 100` holds before the first iteration of this `while`"


def test_janus_s_own_words(tmp_path: Any) -> None:
    file = tmp_path / "own.janus"
    file.write_text(
        "procedure main()\n  int x\n  x += 4\n  if x = 4 && !(x = 5) then\n    x += 1\n  fi x = 4\n"
    )
    error = refused(lambda: rvm.load(file).main())
    assert error.message == "this branch was taken, but `x = 4` does not hold after it"
    assert error.where.line == 6 and error.notes == ("line 5 changes `x`",)


def test_jumps_that_are_written_as_such_are_branches_and_come_froms() -> None:
    text = "func f(x: i64)\n    a: br x > 0, b\n    add x, 1\n    b: cf x > {}, a\n"
    error = refused(lambda: rvm.assemble(text.format(5)).f(x=3))
    assert "`x > 0`" in error.message and "come-from, `x > 5`" in error.message
    assert error.values == {"x": 3} and error.where.line == 4
    error = refused(lambda: rvm.assemble(text.format(0)).f(x=0))
    assert error.message == "fallen into a come-from whose condition `x > 0` holds"
    assert error.values == {"x": 1}


def test_a_condition_whose_text_is_in_brackets_or_of_several_lines() -> None:
    text = (
        "func f(x: i64, y: i64)\n    if ((x) > 3) and \\\n   (y > 2)\n        sub x, 4\n    end\n"
    )
    error = refused(lambda: rvm.assemble(text).f(x=4, y=3))
    assert error.values == {"x": 0, "y": 3} or error.values == {"x": 0}
    assert "((x) > 3) and" in error.message


def test_bytecode_without_its_source_says_what_there_is() -> None:
    from dataclasses import replace

    program = rvm.assemble("func f(x: i64)\n    if x > 3\n        sub x, 4\n    end\n").program
    bare = replace(program, sources=())
    error = refused(lambda: rvm.Library(bare).f(x=4))
    assert error.message == "fallen into a come-from whose condition `x <= 3` holds"
