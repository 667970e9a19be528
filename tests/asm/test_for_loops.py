"""`for` loops count by themselves: what would change what they count by is refused."""

from __future__ import annotations

import random
from collections import Counter
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from rvm_asm import assemble
from sizes import wide

import rvm
from rvm.engines import LAW, executing, having
from rvm.expr import Place
from rvm.faults import AssemblyError, BudgetError, RvmError
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.types import I64
from rvm.verify import findings

ENGINES = tuple(n for n in executing() if n not in having("compiles"))
LIBRARY = """
record Pair
    a: i64
    b: i64
end
macro bump y
    inc y
end
macro renew y
    free y = 3
    alloc y = 3
end
func later(y: i64)
    call bumped(y)
func bumped(y: i64)
    inc y
func field(p: Pair)
    inc p.b
func gain(y: i64, v: i64)
    add y, v
func looped(y: i64)
    for i = 1 to 2
        call later(y)
    end
func deep(y: i64, k: i64)
    if k > 0
        call deep(y, k - 1)
        inc y
    end
"""
ROUTINES = """
    alloc i: i64
    routine r
        inc i
    end
    undo r
    routine s
        call bumped(i)
    end
    undo s
    free i
"""
WAYS = (
    "inc i", "sub i, 2", "swap i, x", "exch x, i", "cswap x > 3, i, x", "push i, s", "pop i, s",
    "rol i, 1", "xor i, x", "not i", "neg i", "bump i", "renew i", "undo r", "undo s",
    "call bumped(i)", "uncall bumped(i)", "call later(i)", "call looped(i)", "call deep(i, 2)",
    "call gain(i, 1)", "uncall gain(i, x)", "iterate gain(i, x) times 3 with bennett = 2",
    "for j = i to 3\n inc i\n end", "local i: i64\n for i = 0 to 3\n inc x\n end",
    "if x > 3\n call later(i)\n end", "alloc i.end: i64\n free i.end",
    "free i = 3\n alloc i: i64 = 3", "drop i\n fresh i: i64", "routine q\n call bumped(i)\n end",
)  # fmt: skip
FINE = (
    "add x, i", "call gain(x, i)", "call gain(x, i + 1)", "call bumped(x)", "bump x", "push x, s",
    "swap x, y", "swap a[i & 3], x", "for j = i to 3\n inc x\n end", "undo t", "alloc k: i64 = i\n"
    "call bumped(k)\n free k = i + 1", "call deep(x, i & 3)", "call field(p)", "local j: i64",
)  # fmt: skip
TOUCHED = ("i", "i", "i", "x", "y", "p.a", "a[1]", "i.end", "i.lo", "i.step")


def loop(body: str, head: str = "for i = x & 3 to n step 1 + (n & 1)", before: str = "") -> str:
    """A program with a loop of this body."""
    return (
        f"{LIBRARY}func main(n: i64, x: i64, y: i64, p: Pair, a: i64[4], s: stack[i64])\n"
        f"    routine t\n inc y\n end\n{before}{head}\n{body}\nend\n"
    )


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_change_a_loops_variable_is_refused(way: str) -> None:
    before = ROUTINES if way.startswith("undo") else ""
    with pytest.raises(AssemblyError) as caught:
        assemble(loop(way, before=before))
    codes = {d.code for d in caught.value.diagnostics}
    assert codes in ({"A058"}, {"A058", "A013"}), caught.value
    shown = str(caught.value)
    assert "the loop's variable `i" in shown and "main" not in shown


@pytest.mark.parametrize("way", FINE)
def test_what_only_reads_it_is_not(way: str) -> None:
    assemble(loop(way))


def test_the_message_names_the_call() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(loop("call later(i)"))
    (found,) = caught.value.diagnostics
    assert found.message == "the loop's variable `i` is changed in its body by `later`"
    assert found.where.text is not None
    assert found.where.text[found.where.column - 1 : found.where.end - 1] == "i"


def random_body(rng: random.Random, depth: int = 0) -> str:
    """A few statements, most of them what a body may do, one or another with a place put in."""
    out = []
    for _ in range(rng.randint(1, 4)):
        roll = rng.random()
        if roll < 0.15 and depth < 2:
            var = rng.choice(("j", "k", "i"))
            out.append(f"for {var} = {rng.choice(('0', 'i & 1', 'x & 1'))} to {rng.randint(0, 2)}")
            out += [random_body(rng, depth + 1), "end"]
        elif roll < 0.25 and depth < 2:
            out += ["if n > 1", random_body(rng, depth + 1), "end"]
        else:
            line = rng.choice(FINE if rng.random() < 0.8 else WAYS)
            if rng.random() < 0.3:
                word = rng.choice(("x", "y", "i"))
                line = line.replace(word + ",", rng.choice(TOUCHED) + ",", 1)
                line = line.replace(f"({word}", f"({rng.choice(TOUCHED)}", 1)
            out.append(line)
    return "\n".join(out)


def started(program: Program, rng: random.Random, engine: str, max_steps: int) -> Machine:
    """A machine before a run on small numbers."""
    values = {"n": rng.randint(0, 5), "x": rng.randint(0, 9), "y": 1, "p": {"a": 1, "b": 2}}
    values |= {"a": np.arange(4), "s": [4, 5, 6]}
    options = rvm.Options(engine=engine, max_steps=max_steps)
    return Machine.start(program, "main", values, options)


def accepted_loops(seeds: range) -> Counter[str]:
    """Assemble random loops; those accepted end, and come back where they end without an error."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        head = rng.choice(
            ("for i = 0 to 3", "for i = x & 3 to n", "for i = n downto 0", "for i = 5 to n step 2")
        )
        text = loop(random_body(rng), head, before=ROUTINES)
        try:
            program = assemble(text)
        except AssemblyError:
            seen["refused"] += 1
            continue
        seen["accepted"] += 1
        m = started(program, rng, "auto", 100_000)
        first = deepcopy(m.state.top.regs)
        try:
            m.run()
            seen["ended"] += 1
        except BudgetError as error:
            raise AssertionError(f"this does not end:\n{text}") from error
        except RvmError as error:
            seen[error.code] += 1
        m.run_back()
        assert repr(m.state.top.regs) == repr(first), text
    return seen


@wide
def test_loops_that_are_accepted_end_and_come_back() -> None:
    seen = accepted_loops(range(250))
    assert seen["accepted"] > 60 and seen["ended"] > 40 and seen["refused"] > 60, seen


@pytest.mark.soak
def test_many_loops_that_are_accepted_end_and_come_back() -> None:
    print(accepted_loops(range(1000, 21000)))


def retargeted(rng: random.Random, program: Program) -> Program:
    """The program with some operand of `main` put on a register that a loop counts by."""
    main = program.function("main")
    counting = [k for k, r in enumerate(main.registers) if r.name.split(".")[0] in ("i", "j", "k")]
    code = list(main.code)
    pc = rng.randrange(len(code))
    at = [k for k, a in enumerate(code[pc].args) if isinstance(a, Place) and a.type == I64]
    if at:
        args = list(code[pc].args)
        args[rng.choice(at)] = Place(rng.choice(counting), (), I64)
        code[pc] = replace(code[pc], args=tuple(args))
    made = [replace(f, code=tuple(code)) if f.name == "main" else f for f in program.functions]
    return Program(tuple(made), "main")


def outcome(program: Program, seed: int, engine: str) -> tuple[object, ...]:
    """How a short run ends, there and back."""
    m = started(program, random.Random(seed), engine, 2_000)
    out: list[object] = []
    for go in (m.run, m.run_back):
        try:
            go()
            out.append("end")
        except RvmError as error:
            out += [error.code, error.where.function, error.where.pc]
        out += [m.time, repr([f.regs for f in m.state.frames])]
    return tuple(out)


def hostile_loops(seeds: range) -> Counter[str]:
    """Bytecode has no `for`: what changes the variable of one is accepted, and engines agree."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        body = "\n".join(rng.choice(FINE) for _ in range(rng.randint(1, 3)))
        head = rng.choice(("for i = 0 to 5", "for i = 0 to 40 step 3", "for i = n downto -3"))
        sound = assemble(loop(body, head))
        program = next((p for _ in range(20) if not findings(p := retargeted(rng, sound))), sound)
        engines = executing() if seed % 10 == 0 else ENGINES
        results = {engine: outcome(program, seed, engine) for engine in engines}
        assert all(r == results[LAW] for r in results.values()), (seed, results)
        seen[str(results[LAW][0])] += 1
    return seen


@wide
def test_loops_of_hostile_bytecode_run_alike_on_all_engines() -> None:
    seen = hostile_loops(range(80))
    assert seen["end"] < 75 and len(seen) > 2, seen


@pytest.mark.soak
def test_many_loops_of_hostile_bytecode() -> None:
    print(hostile_loops(range(1000, 6000)))
