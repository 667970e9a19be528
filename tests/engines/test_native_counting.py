"""Machine code that counts, where it is unlike other engines that do: its counters, rows, tables.

That its counts are those of stepping is tested with the others, in `test_counting`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from attack.programs import loops as loops_random
from attack.programs import sound as random_programs
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, wide

import rvm
from rvm.accounts.counts import CallWatcher, Counts
from rvm.emit.llvm.module import ModulePrinter
from rvm.engines import LAW, executing
from rvm.faults import LimitError, RvmError
from rvm.image import Code, image_of
from rvm.ir.counters import Counters, counters_of
from rvm.ir.function import plan_of
from rvm.ir.kind import Kind
from rvm.program import Program
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")


def summed(counts: Counts) -> dict[Any, Any]:
    """All counts, by call path."""
    return {
        tuple((n.name, n.site) for n in node.path): (
            node.done[:],
            node.jumps[:],
            node.returns[:],
            dict(node.erased),
            {pc: dict(sizes) for pc, sizes in node.sizes.items() if sizes},
            dict(node.rounded),
        )
        for node in counts.nodes()
        if node.ticks
    }


def counters(program: Program, name: str) -> Counters:
    code = image_of(program).code(name, False)
    return counters_of(code, plan_of(code, True, False).flow)


# ---------------------------------------------------------------- which edges are counted

MATRICES = """
func main(C: f64[m, p], A: f64[m, n], B: f64[n, p])
    for i = 0 to m - 1
        for k = 0 to n - 1
            for j = 0 to p - 1
                add C[i, j], A[i, k] * B[k, j]
            end
        end
    end
"""


def test_a_loop_without_branches_has_one_counter_on_its_way_back() -> None:
    found = counters(rvm.assemble(MATRICES).program, "main")
    by_depth: dict[int, list[int]] = {}
    for k in found.counted:
        edge = found.edges[k]
        by_depth.setdefault(found.depth(edge.start, edge.target), []).append(
            edge.start - edge.target
        )
    assert set(by_depth) == {0, 1, 2, 3}
    (innermost,) = by_depth[3]
    assert innermost >= 0, "it is counted where it goes back"


@examples(40)
@given(st.data())
def test_counts_of_all_edges_follow_from_those_of_the_counters(data: st.DataObject) -> None:
    """A walk along edges chosen at random, entered and stopped anywhere."""
    program = rvm.assemble(random_programs.program(data.draw(st.integers(0, 10**6))))
    found = counters(program.program, "main")
    ways: dict[int, list[int]] = {}
    for k, edge in enumerate(found.edges):
        ways.setdefault(edge.start, []).append(k)
    leaders = sorted(found.flow.leaders)
    seen = [0] * len(found.edges)
    entries = dict.fromkeys(leaders, 0)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(leaders))
        entries[at] += 1
        for choice in data.draw(st.lists(st.integers(0, 5), max_size=60)):
            if at not in ways:
                break
            k = ways[at][choice % len(ways[at])]
            seen[k] += 1
            at = found.edges[k].target
        entries[at] -= 1
    row = [0] * found.size
    for k, at in found.counted.items():
        row[at] = seen[k]
    assert found.solve(row, entries) == seen
    vertices, pieces = len(leaders), len(set(map(_component(found), leaders)))
    assert len(found.counted) == len(found.edges) - vertices + pieces, "no counter too many"


def _component(found: Counters) -> Any:
    """For each leader, one that stands for all that hang together with it."""
    near: dict[int, set[int]] = {v: {v} for v in found.flow.leaders}
    for edge in found.edges:
        joint = near[edge.start] | near[edge.target]
        for v in joint:
            near[v] = joint
    return lambda v: min(near[v])


def test_loops_are_vectorised_though_they_are_counted() -> None:
    from rvm.engines.native.compiler import compiler

    llvm, code = compiler(), image_of(rvm.assemble(MATRICES)).code("main", False)
    for counts in (False, True):
        kind = Kind(0, frozenset(), counts=counts)
        text = ModulePrinter(code, kind).text(llvm.triple, llvm.layout)
        assert "vector.body" in str(llvm.optimised(text)), counts


def test_ordinary_code_has_no_counters() -> None:
    code = image_of(rvm.assemble(MATRICES)).code("main", False)
    text = ModulePrinter(code, Kind(0, frozenset())).text("t", "l")
    assert "%row" not in text
    assert "%count" not in text


# ---------------------------------------------------------------- sizes


def by_engine(program: Program, name: str, **inputs: Any) -> list[Machine]:
    """Machines on two engines that are counted from the beginning on."""
    machines = []
    for engine in (LAW, "native"):
        copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
        machines.append(Machine(program, name, **copies, engine=engine))
    return machines


def test_more_sizes_than_the_table_holds() -> None:
    text = "func f(y: f64, x: f64[n])\n    for i = 0 to n - 1\n        add y, sum(x[i:])\n    end\n"
    m = Machine(rvm.assemble(text), "f", y=0.0, x=np.ones(9_000), engine="native")
    counts = m.count()
    m.run()
    (node,) = counts.nodes()
    (pc,) = (pc for pc, sizes in node.sizes.items() if len(sizes) > 1)
    assert node.sizes[pc] == {((k,),): 1 for k in range(1, 9_001)}


@wide
def test_an_instruction_with_more_arrays_than_the_table_was_made_for() -> None:
    names = [f"x{k}" for k in range(12)]
    params = ", ".join(f"{x}: f64[:]" for x in names)
    sums = " + ".join(f"sum({x})" for x in names)
    text = (
        f"func f(y: f64, {params})\n    for i = 1 to 3\n        add y, {sums}\n"
        f"        call g(y, {', '.join(names)})\n    end\n\n"
        f"func g(y: f64, {params})\n    for i = 1 to 2\n        add y, {sums}\n    end\n"
    )
    inputs = {x: np.ones(k + 1) for k, x in enumerate(names)}
    seen = []
    for m in by_engine(rvm.assemble(text).program, "f", y=0.0, **inputs):
        counts = m.count()
        m.run()
        seen.append(summed(counts))
    assert seen[0] == seen[1]


def test_sizes_of_arguments_count_at_the_call() -> None:
    text = (
        "func f(y: f64, x: f64[n])\n    for i = 1 to 3\n        call g(y, sum(x))\n    end\n\n"
        "func g(y: f64, s: f64)\n    add y, s\n"
    )
    program = rvm.assemble(text)
    for engine in executing(loops=False):
        m = Machine(program, "f", y=0.0, x=np.ones(7), engine=engine)
        counts = m.count()
        m.run()
        root = next(counts.nodes())
        call = next(pc for pc, i in enumerate(root.code.instrs) if i.op == "call")
        assert dict(root.sizes[call]) == {((7,),): 3}, engine


def test_conditions_on_arrays_count_their_sizes_at_both_ends() -> None:
    text = (
        "func f(x: f64[n], k: i64)\n    for i = 1 to 4\n        if sum(x) > 2\n            inc k\n"
        "        else\n            dec k\n        end\n    end\n"
    )
    for size in (1, 5):
        seen = []
        for m in by_engine(rvm.assemble(text).program, "f", x=np.ones(size), k=0):
            counts = m.count()
            m.run()
            seen.append(summed(counts))
        assert seen[0] == seen[1]


# ---------------------------------------------------------------- where runs stop


def test_a_failure_in_the_middle_of_a_block_is_counted_up_to_it() -> None:
    text = (
        "func f(a: i64, d: i64[n])\n    for i = 0 to n - 1\n        inc a\n        add a, 2\n"
        "        add a, 10 // d[i]\n        inc a\n    end\n"
    )
    seen: list[tuple[Any, ...]] = []
    for m in by_engine(rvm.assemble(text).program, "f", a=0, d=np.array([1, 2, 0, 4])):
        counts = m.count()
        with pytest.raises(RvmError):
            m.run()
        (node,) = counts.nodes()
        by_op = [node.done[pc] for pc, i in enumerate(node.code.instrs) if i.op in ("add", "inc")]
        assert by_op[:4] == [3, 3, 2, 2]
        seen.append((summed(counts), m.time))
        m.run_back()
        seen[-1] += (summed(counts),)
    assert seen[0] == seen[1]


CHOICES = """
func one(k: i64, m: i64, d: i64[n])
    for i = 0 to n - 1
        xor m, 3
        if d[i] == 1 and m != 7, k % 2 == 1
            inc k
        end
        if k % 2 == 1 and d[i] >= 1, k % 2 == 0
            inc k
        end
    end

func two(k: i64, m: i64, d: i64[n])
    for i = 0 to n - 1
        xor m, 3
        if d[i] == 1 or m == 9, k % 2 == 1
            inc k
            add m, k
        else
            add k, 2
        end
        if d[i] >= 1, k % 2 == 0
            dec k
        else
            sub k, 2
            inc m
        end
    end
"""


@examples(40)
@given(
    st.sampled_from(["one", "two"]),
    st.lists(st.integers(0, 2), max_size=12),
    st.lists(st.integers(0, 120), max_size=2),
    st.integers(0, 1),
)
def test_choices_are_counted_by_the_way_they_go(
    name: str, d: list[int], stops: list[int], k: int
) -> None:
    """Also where the come-from after them fails, which some lists lead to."""
    program = rvm.assemble(CHOICES)
    seen: list[list[Any]] = []
    for m in by_engine(program.program, name, k=k, m=7, d=np.array(d, dtype=np.int64)):
        counts = m.count()
        seen.append([])
        for stop in (*sorted(stops), None):
            try:
                m.run() if stop is None else m.step(stop - m.time)
            except RvmError as error:
                seen[-1].append(error.code)
            seen[-1].append((m.time, summed(counts)))
        m.run_back()
        seen[-1].append(summed(counts))
    assert seen[0] == seen[1]


JOINED = """
func main(y: f64[n], z: f64[m], a: f64[m, n], k: i64)
    for i = m - 2 downto 0 step 2
        for j = 0 to n - 1
            add y[j], a[i, j]
        end
    end
    for i = 1 to m - 1
        for j = n - 1 downto 0 step 3
            add z[i], a[i, j] * y[j]
            add y[j], a[i, 0]
        end
    end
    for i = 0 to m - 1
        inc k
        for j = 0 to n - 1
            for l = 0 to m - 1
                add a[l, j], z[i]
            end
        end
    end
"""


@wide
@examples(30)
@given(st.integers(1, 11), st.integers(1, 11), st.lists(st.floats(0, 1), max_size=2), st.booleans())
def test_rounds_joined_are_counted_as_if_they_were_not(
    m: int, n: int, parts: list[float], undo: bool
) -> None:
    program = rvm.assemble(JOINED)
    loops = plan_of(image_of(program).code("main", undo), True, False).loops
    assert any(loop.jams for loop in loops.values())

    def start(engine: str) -> Machine:
        inputs = {"y": np.ones(n), "z": np.ones(m), "a": np.ones((m, n)), "k": 5}
        return Machine.start(program, "main", inputs, rvm.Options(engine=engine), undo=undo)

    length = start("python").run().time
    seen: list[list[Any]] = []
    for engine in (LAW, "native"):
        machine = start(engine)
        counts = machine.count()
        seen.append([])
        for part in (*sorted(parts), 1):
            machine.step(int(part * length) - machine.time)
            seen[-1].append((machine.time, summed(counts)))
        back = machine.count()
        machine.run_back()
        seen[-1].append(summed(back))
    assert seen[0] == seen[1]


@examples(20)
@given(st.integers(0, 10**6), st.integers(0, 250), st.booleans())
def test_random_loops_are_counted_as_by_stepping(seed: int, stop: int, undo: bool) -> None:
    """Also up to where one leaves an array or can't be undone."""
    try:
        program = rvm.assemble(loops_random.RandomLoop(seed).text)
    except RvmError:
        return
    seen: list[list[Any]] = []
    for engine in (LAW, "native"):
        options = rvm.Options(engine=engine)
        m = Machine.start(program, "main", loops_random.inputs(seed), options, undo=undo)
        seen.append([])
        counts = m.count()
        for go in (lambda m: m.step(stop), Machine.run, Machine.run_back):
            try:
                go(m)
            except RvmError as error:
                seen[-1].append(error.code)
            seen[-1].append((m.time, summed(counts)))
    assert seen[0] == seen[1]


@examples(8)
@given(seed=st.integers(0, 10**9), stop=st.integers(0, 2000))
def test_strict_runs_are_counted_as_by_stepping(seed: int, stop: int) -> None:
    program = rvm.assemble(random_programs.program(seed, None))
    inputs = random_programs.inputs(seed, None)
    seen: list[list[Any]] = []
    for m in by_engine(program.program, "main", **inputs, strict=True):
        seen.append([])
        counts = m.count()
        for go in (lambda m: m.step(stop), Machine.run, Machine.run_back):
            try:
                go(m)
            except RvmError as error:
                seen[-1].append(error.code)
            seen[-1].append((m.time, m.residue_bytes, summed(counts)))
        assert m.residue_bytes == m.time == 0
    assert seen[0] == seen[1]


@wide
def test_deep_recursion_is_one_node() -> None:
    program = rvm.assemble(
        """
        func down(s: i64, n: i64)
            if n > 0
                sub n, 1
                call down(s, n)
                add n, 1
                add s, n
            end
        """
    )
    m = Machine(program, "down", s=0, n=100_000, engine="native")
    counts = m.count()
    m.step(200_001)
    assert counts.ticks == 200_001
    m.run()
    assert counts.ticks == m.time
    (node,) = counts.nodes()
    assert counts.entered == 100_000
    assert sum(node.returns) == 100_000


CALLS = """
func main(a: i64, n: i64)
    for i = 1 to n
        call work(a, i)
    end

func work(a: i64, i: i64)
    for j = 1 to i % 7 + 1
        add a, i * j
        if j % 3 == 0
            call leaf(a)
        end
    end

func leaf(a: i64)
    xor a, 5
    xor a, 9
"""


@wide
def test_ctrl_c_leaves_an_exact_account() -> None:
    program = rvm.assemble(CALLS)
    m = Machine(program, "main", a=0, n=10**9, engine="native")
    counts = m.count()

    def press() -> None:
        while m.time < 1000:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(rvm.Interrupted):
            m.run()
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert 1000 <= m.time == counts.ticks
    root, frame = next(counts.nodes()), m.state.frames[0]
    (call,) = root.children
    i = frame.regs[next(k for k, r in enumerate(root.code.function.registers) if r.name == "i")]
    assert root.done[call] in (i - 1, i), "a call in each round"
    again = m.count()
    m.seek(0)
    assert again.ticks == counts.ticks
    assert m.result["a"] == 0


@pytest.mark.parametrize("limit", [1, 17, 1234])
def test_a_limit_on_steps_is_met_to_the_tick(limit: int) -> None:
    seen = []
    for engine in (LAW, "native"):
        m = Machine(rvm.assemble(CALLS), "main", a=0, n=10**6, engine=engine, max_steps=limit)
        counts = m.count()
        with pytest.raises(LimitError):
            m.run()
        assert m.time == counts.ticks == limit
        seen.append(summed(counts))
    assert seen[0] == seen[1]


def test_a_second_count_begins_anew() -> None:
    m = Machine(rvm.assemble(CALLS), "main", a=0, n=300, engine="native")
    first = m.count()
    m.step(1000)
    second = m.count()
    m.step(500)
    third = m.count(second)
    m.step(250)
    assert third is second
    assert (first.ticks, second.ticks) == (1000, 750)


# ---------------------------------------------------------------- calls, one by one


class Told(CallWatcher):
    """Writes down the calls of at least some ticks, in the order of their ends."""

    def __init__(self, least: int = 0) -> None:
        self.least = least
        self.seen: list[tuple[str, int, int]] = []
        self.under_way: list[tuple[str, int]] = []

    def enter(self, code: Code, time: int) -> None:
        self.under_way.append((f"{'~' * code.undo}{code.name}", time))

    def leave(self, time: int) -> None:
        name, begin = self.under_way.pop()
        self._keep(name, begin, time)

    def called(self, code: Code, entered: int, left: int) -> None:
        self._keep(f"{'~' * code.undo}{code.name}", entered, left)

    def _keep(self, name: str, begin: int, end: int) -> None:
        if end - begin + 1 >= self.least:
            self.seen.append((name, begin, end))
            # As one who wants fewer as they become more.
            self.least = max(self.least, len(self.seen) // 8)


@wide
@examples(15)
@given(st.integers(0, 10**9), st.lists(st.integers(0, 400), max_size=3), st.integers(0, 20))
def test_calls_are_reported_as_by_stepping(seed: int, stops: list[int], least: int) -> None:
    program = rvm.assemble(random_programs.program(seed))
    seen = []
    for engine in executing(loops=False):
        options = rvm.Options(engine=engine)
        m = Machine.start(program, "main", random_programs.inputs(seed), options)
        told = Told(least)
        m.count(Counts(told))
        for stop in sorted(stops):
            m.step(stop - m.time)
        m.run()
        seen.append((told.seen, told.under_way))
    assert seen[0] == seen[1] == seen[2]


def test_more_calls_than_the_log_holds() -> None:
    m = Machine(rvm.assemble(CALLS), "main", a=0, n=20_000, engine="native")
    told = Told()
    told._keep = lambda *call: told.seen.append(call)  # type: ignore[method-assign]
    counts = m.count(Counts(told))
    m.run()
    assert len(told.seen) == counts.entered > 20_000
    assert told.seen == sorted(told.seen, key=lambda call: call[2])
    assert told.seen[-1][2] < m.time


def test_what_a_watcher_raises_comes_out_where_the_run_stands() -> None:
    class Full(CallWatcher):
        def called(self, code: Code, entered: int, left: int) -> None:
            if entered > 100_000:
                raise ValueError("enough")

    m = Machine(rvm.assemble(CALLS), "main", a=0, n=10**6, engine="native")
    m.count(Counts(Full()))
    with pytest.raises(ValueError, match="enough"):
        m.run()
    assert m.time > 100_000
    counts = m.count()
    m.run_back()
    assert (m.time, m.result["a"]) == (0, 0)
    assert counts.ticks > 100_000


# ---------------------------------------------------------------- auto


def test_auto_counts_in_machine_code_when_a_run_lasts() -> None:
    program = rvm.assemble(CALLS)
    m = Machine(program, "main", a=0, n=20_000)
    counts = m.count()
    m.run()
    assert image_of(program).heat["main"] >= 100_000, "it began with generated Python"
    assert any(node.pending for node in counts.nodes()), "and went on in machine code"
    other = Machine(rvm.assemble(CALLS), "main", a=0, n=20_000, engine="python")
    expected = other.count()
    other.run()
    assert summed(counts) == summed(expected)
