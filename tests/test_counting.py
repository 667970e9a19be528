"""Counting: generated code against stepping, stepping against a walk, forwards against back."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack.programs import sound as random_programs
from hypothesis import given
from hypothesis import strategies as st
from programs.both_ways import Case, cases, refusals
from sizes import examples, wide

import rvm
from rvm.accounts.counts import Counts, sized_of
from rvm.engines import LAW, executing
from rvm.faults import RvmError, UsageError
from rvm.run.machine import Machine

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("examples/**/*.rasm"), *ROOT.glob("tests/programs/*.rasm")])
CASES = [c for f in FILES if not refusals(f) for c in cases(f)]
GENERATED = tuple(n for n in executing() if n != LAW)
"""The engines whose generated code counts."""
ENGINES = (LAW, *GENERATED)
MOST = 6_000
"""Ticks of a case that are counted."""


def random_machine(seed: int, engine: str, **options: Any) -> Machine:
    program = rvm.assemble(random_programs.program(seed), f"random{seed}")
    return Machine.start(
        program, "main", random_programs.inputs(seed), rvm.Options(engine=engine, **options)
    )


def case_machine(case: Case, engine: str, **options: Any) -> Machine:
    return Machine.start(
        case.program, case.function.name, case.inputs(), rvm.Options(engine=engine, **options)
    )


def plain(counts: Counts) -> dict[Any, Any]:
    """All counts, as they compare."""
    return {
        tuple((n.name, n.site) for n in node.path): (
            tuple(node.done),
            tuple(node.jumps),
            tuple(node.returns),
            dict(node.erased),
            {pc: dict(sizes) for pc, sizes in node.sizes.items() if sizes},
            dict(node.rounded),
        )
        for node in counts.nodes()
        if node.ticks
    }


def counted(machine: Machine, *stops: int) -> list[tuple[Any, int, Any, str]]:
    """The counts at some times and where the run ends, with the account and the error there."""
    counts, out, error = machine.count(), [], ""
    for stop in (*stops, None):
        try:
            machine.step(stop - machine.time) if stop is not None else machine.run()
        except RvmError as failure:
            error = failure.code
        out.append((plain(counts), machine.time, replace(machine.state.account), error))
        assert counts.ticks == machine.time
    return out


# ---------------------------------------------------------------- generated source = stepping


@wide
@pytest.mark.parametrize("engine", GENERATED)
def test_counters_are_equal_to_stepping(engine: str) -> None:
    @examples(40)
    @given(st.integers(0, 10**9), st.booleans(), st.lists(st.integers(0, 400), max_size=3))
    def check(seed: int, strict: bool, stops: list[int]) -> None:
        by_steps = counted(random_machine(seed, "reference", strict=strict), *sorted(stops))
        by_counters = counted(random_machine(seed, engine, strict=strict), *sorted(stops))
        assert by_counters == by_steps

    check()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("engine", "strict"),
    [(e, False) for e in GENERATED] + [("python", True)],
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_counters_are_equal_to_stepping_on_every_example(
    case: Case, engine: str, strict: bool
) -> None:
    seen = []
    for name in ("reference", engine):
        machine = case_machine(case, name, strict=strict, max_steps=MOST, output=lambda _: None)
        seen.append(counted(machine, 7, 300))
    assert seen[0] == seen[1]


@pytest.mark.deep
@pytest.mark.parametrize("engine", GENERATED)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_counting_changes_nothing(case: Case, engine: str) -> None:
    results = []
    for count in (False, True):
        machine = case_machine(case, engine, max_steps=MOST, output=lambda _: None)
        if count:
            machine.count()
        try:
            machine.run()
        except RvmError as error:
            results.append([error.code])
        else:
            results.append([])
        results[-1] += [machine.time, machine.erased_bits, repr(machine.result)]
    assert results[0] == results[1]


def troubled(seed: int) -> str:
    """A program whose generated source gives up in many places: Python's `exp` overflows."""
    rng = random.Random(seed)
    names = iter(range(1000))

    def body(depth: int, loop: str) -> list[str]:
        out = []
        for _ in range(rng.randrange(1, 4)):
            kind = rng.randrange(8 if depth < 3 else 4)
            if kind < 2:
                out.append(
                    f"add y{rng.randrange(3)}, exp(f64({loop}) * {rng.choice([1, 300, 800])})"
                )
            elif kind < 4:
                out.append("inc k")
            elif kind < 7:
                hard = f"exp(f64({loop}) * 400) > 1e10"
                out.append(f"if {rng.choice([f'{loop} % 2 == 0', f'{loop} != 1', hard])}")
                out += [f"    {line}" for line in body(depth + 1, loop)]
                if rng.random() < 0.5:
                    out.append("else")
                    out += [f"    {line}" for line in body(depth + 1, loop)]
                out.append("end")
            else:
                i = f"i{next(names)}"
                out.append(f"for {i} = 0 to {rng.randrange(3)}")
                out += [f"    {line}" for line in body(depth + 1, i)]
                out.append("end")
        return out

    lines = "\n".join(f"        {line}" for line in body(0, "i"))
    return f"func f(k: i64, y0: f64, y1: f64, y2: f64)\n    for i = 0 to 4\n{lines}\n    end\n"


@pytest.mark.deep
@examples(60)
@given(st.integers(0, 10**9), st.lists(st.integers(0, 600), max_size=2))
def test_what_generated_source_gives_up_is_counted_once(seed: int, stops: list[int]) -> None:
    program = rvm.assemble(troubled(seed))
    seen = []
    for engine in ENGINES:
        inputs = {"k": 0, "y0": 0.0, "y1": 0.0, "y2": 0.0}
        machine = Machine.start(program, "f", inputs, rvm.Options(engine=engine))
        seen.append(counted(machine, *sorted(stops)))
    assert seen == seen[:1] * len(ENGINES)


@pytest.mark.soak
def test_many_random_programs_are_counted_alike() -> None:
    rng = random.Random(20261121)
    for _ in range(1500):
        seed, strict = rng.randrange(10**9), rng.random() < 0.3
        one, *others = (counted(random_machine(seed, e, strict=strict)) for e in ENGINES)
        assert others == [one] * len(others), seed


# ---------------------------------------------------------------- stepping = a walk


@examples(25)
@given(st.integers(0, 10**9))
def test_stepping_counts_what_a_walk_sees(seed: int) -> None:
    """Positions between ticks are all that this looks at."""
    machine = random_machine(seed, "reference")
    seen: Counter[tuple[str, int]] = Counter()
    while not machine.finished:
        frame, depth = machine.state.top, len(machine.state.frames)
        code, pc, name = frame.code, frame.pc, "~" * frame.code.undo + frame.code.name
        machine.step()
        if pc == len(code):
            continue
        seen[name, pc] += 1
        if len(machine.state.frames) == depth and frame.pc != pc + 1:
            seen[name, code.instrs[pc].aux] += 1
    other = random_machine(seed, "python")
    counts = other.count()
    other.run()
    have: Counter[tuple[str, int]] = Counter()
    for node in counts.nodes():
        for pc in range(len(node.code)):
            have[node.name, pc] += node.executed(pc)
    assert +have == +seen


# ---------------------------------------------------------------- windows, both directions


@pytest.mark.deep
@examples(25)
@given(st.integers(0, 10**9), st.integers(0, 300), st.integers(0, 300))
def test_windows_add_up(seed: int, a: int, b: int) -> None:
    whole = random_machine(seed, "python")
    counts = whole.count()
    whole.run()
    first, last = sorted((a, b))
    total: Counter[Any] = Counter()
    for lo, hi in ((0, first), (first, last), (last, None)):
        machine = random_machine(seed, "python")
        machine.seek(lo)
        part = machine.count()
        if hi is None:
            machine.run()
        else:
            machine.seek(max(hi, machine.time))
        total += by_position(part)
    assert total == by_position(counts)


def by_position(counts: Counts) -> Counter[Any]:
    out: Counter[Any] = Counter()
    for path, (done, jumps, returns, _, sizes) in plain(counts).items():
        for kind, row in (("done", done), ("jump", jumps), ("return", returns)):
            out.update({(path, kind, pc): n for pc, n in enumerate(row)})
        for pc, found in sizes.items():
            out.update({(path, pc, key): n for key, n in found.items()})
    return +out


@pytest.mark.deep
@examples(40)
@given(st.integers(0, 10**9), st.sampled_from(ENGINES))
def test_a_run_and_its_reverse_are_mirror_images(seed: int, engine: str) -> None:
    machine = random_machine(seed, engine, strict=True)
    there = machine.count()
    machine.run()
    back = machine.count()
    machine.run_back()
    assert machine.time == 0 and there.ticks == back.ticks
    assert executed(there, mirror=False) == executed(back, mirror=True)
    one, two = work(there), work(back)
    assert one == two


def executed(counts: Counts, mirror: bool) -> dict[Any, int]:
    """Executed instructions by where they stand as written, and the way that their code runs."""
    out: Counter[Any] = Counter()
    for node in counts.nodes():
        code = node.code
        for pc in range(len(code)):
            out[code.name, code.undo != mirror, code.forward_pc(pc)] += node.executed(pc)
    return dict(+out)


def work(counts: Counts) -> tuple[dict[Any, int], int]:
    """All operations, and the bits that an ordinary machine would have overwritten."""
    out: Counter[Any] = Counter()
    bits = 0
    for node in counts.nodes():
        for pc in range(len(node.code)):
            for n, cost in node.costs(pc):
                bits += n * cost.overwritten
                for kind, k in cost.work.items():
                    out[kind] += n * k
    return dict(+out), bits


def test_a_machine_that_turns_while_it_counts() -> None:
    for engine in ENGINES:
        machine = random_machine(11, engine, strict=True)
        counts = machine.count()
        machine.step(40)
        machine.step(-25)
        machine.step(10)
        assert counts.ticks == 75
        assert {root.name for root in counts.roots} == {"main", "~main"}


# ---------------------------------------------------------------- known numbers

RECURSIVE = """\
func fib(a: i64, b: i64, n: i64)
    if n == 0, a == b
        inc a
        inc b
    else
        dec n
        call fib(a, b, n)
        add a, b
        swap a, b
    end
    call bump(a)
    uncall bump(a)

func bump(a: i64)
    inc a
"""


def test_recursion_leads_back_to_its_own_node() -> None:
    machine = rvm.Machine(rvm.assemble(RECURSIVE), "fib", a=0, b=0, n=10)
    counts = machine.count()
    machine.run()
    nodes = list(counts.nodes())
    assert [n.name for n in nodes] == ["fib", "bump", "~bump"]
    fib, bump, undo = nodes
    by_op = {i.op: k for k, i in enumerate(fib.code.instrs)}
    assert fib.done[by_op["swap"]] == 10 and fib.executed(by_op["dec"]) == 10
    assert sum(fib.done[pc] for pc, i in enumerate(fib.code.instrs) if i.symbol == "fib") == 10
    assert bump.ticks == undo.ticks == 11
    assert fib.children[by_op["uncall"]] is undo
    assert counts.ticks == machine.time


def test_residues_are_counted_where_they_are_freed() -> None:
    text = (
        "func f(x: f64, y: f64)\n    alloc t: f64 = x\n    add t, y\n    sub t, y\n    free t = x\n"
    )
    for engine in ENGINES:
        machine = rvm.Machine(rvm.assemble(text), "f", x=0.1, y=1e5, engine=engine)
        counts = machine.count()
        machine.run()
        assert machine.erased_bits == 64
        assert dict(next(counts.nodes()).erased) == {3: 64}


def test_dropped_values_are_counted_where_they_are_dropped() -> None:
    program = rvm.assemble(
        "func f(y: f64, x: f64)\n    alloc t: f64 = x\n    add y, t * x\n    free t = x\n"
    )
    gradient = program.f.gradient_program
    for engine in ENGINES:
        names = {p.name: 0.5 for p in gradient.program.function(gradient.program.entry).params}
        machine = rvm.Machine(gradient, gradient.program.entry, engine=engine, **names)
        counts = machine.count()
        machine.run()
        where = [
            (node.code.instrs[pc], bits)
            for node in counts.nodes()
            for pc, bits in node.erased.items()
        ]
        assert {instr.op for instr, _ in where} == {"drop"}
        # The adjoint of `t`, and whether it has gained anything.
        assert sorted(bits for _, bits in where) == [1, 64]
        assert machine.erased_bits == 65


def test_sizes_are_those_of_each_passing() -> None:
    text = (
        "func f(x: f64[n], y: f64)\n"
        "    for i = 0 to len(x) - 1\n        add y, sum(x[i:])\n    end\n"
    )
    for engine in ENGINES:
        machine = rvm.Machine(rvm.assemble(text), "f", x=np.ones(5), y=0.0, engine=engine)
        counts = machine.count()
        machine.run()
        node = next(counts.nodes())
        (pc,) = [
            k for k, i in enumerate(node.code.instrs) if i.op == "add" and sized_of(node.code).of[k]
        ]
        assert dict(node.sizes[pc]) == {((k,),): 1 for k in (5, 4, 3, 2, 1)}


SIZES = """\
func f(x: f64[n], A: f64[n, n], k: i64, y: f64)
    for i = 0 to n - 1
        add y, sum(x[i:])               ; another length each time
        add y, sum(A[i, :])             ; always n, wherever the row is
        add y, sum(x[0:len(x) - 1])     ; follows from n
        alloc t: f64[i + 1] = 1.0       ; made anew with another length
        for j = 1 to 3
            add y, sum(t)
        end
        add y, sum(x[0:dim(x[i:], 0)])  ; a length that depends on i inside
        free t = 1.0
    end
    call g(x[0:2], y)
    call g(x, y)
    call g(A[1, :], y)

func g(x: f64[n], y: f64)
    for j = 1 to 2
        add y, sum(x)
    end
"""


def test_sizes_that_change_and_sizes_that_stay() -> None:
    counts = []
    for engine in ENGINES:
        machine = rvm.Machine(
            rvm.assemble(SIZES), "f", x=np.ones(4), A=np.ones((4, 4)), k=0, y=0.0, engine=engine
        )
        counted_sizes = machine.count()
        machine.run()
        counts.append(plain(counted_sizes))
    assert counts == counts[:1] * len(ENGINES)
    ((path, root), *called) = counts[1].items()
    assert path == (("f", -1),)
    sums = list(root[4].values())
    rising = [((k,),) for k in range(1, 5)]
    assert dict.fromkeys(rising, 1) in sums, "x[i:]"
    assert {((4,),): 4} in sums, "A[i, :]"
    assert {((3,),): 4} in sums, "x[0:len(x) - 1]"
    assert dict.fromkeys(rising, 3) in sums, "t"
    lengths = [next(iter(row[4].values())) for _, row in called]
    assert lengths == [{((2,),): 2}, {((4,),): 2}, {((4,),): 2}]


def test_ordinary_source_has_no_counters() -> None:
    from rvm.engines.python import source_of
    from rvm.image import image_of

    code = image_of(rvm.assemble(SIZES)).code("f", False)
    machine = rvm.Machine(
        code.image.program, "f", x=np.ones(4), A=np.ones((4, 4)), k=0, y=0.0, engine="python"
    )
    machine.count()
    machine.run()
    assert not {"row", "pass_on"} & set(re.findall(r"\w+", source_of(code)))


def test_engines_that_do_not_count_are_refused() -> None:
    from rvm.engines import counting

    with pytest.raises(UsageError, match="does not count"):
        counting("abacus", Counts())
