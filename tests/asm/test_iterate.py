"""`iterate`: what it becomes, where that stands, and that all tools take it like any other code."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import Any

import numpy as np
import pytest
from rvm_asm import assemble, iterations
from rvm_asm.disassemble import disassemble
from sizes import sample, thin

import rvm
from rvm.codec import encode
from rvm.engines import ENGINES
from rvm.faults import AssemblyError, InvertibilityError, RvmError
from rvm.pebble import plan
from rvm.pebble.bridge.emission.recursion import LONGEST, sampled_splits
from rvm.pebble.chains.knill import Convex, line

STEP = """
func step(y: i64[n], x: i64[n], k: i64, c: i64)
    add y, x * 6364136223846793005 + c
    xor y, (x >> 17) ^ k
"""


def plain(x: np.ndarray, c: int, numbers: range) -> np.ndarray:
    """The states in a loop, each in the place of the one before."""
    x = x.copy()
    with np.errstate(over="ignore"):
        for k in numbers:
            x = (x * 6364136223846793005 + c) ^ ((x >> 17) ^ k)
    return x


POLICIES = ["pebbles = 9", "bennett = 4", "max_moves = 250", "memory = 900, state_bytes = 100"]


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
@sample
@sample
def test_values_are_those_of_a_loop(policy: str, engine: str) -> None:
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64)\n"
        f"    iterate step(y, x, k, c) for k = 5 to 94 with {policy}\n"
    )
    x = np.arange(3) * 1_000_003
    main = program.main.with_options(engine=engine)
    y = np.zeros(3, dtype=np.int64)
    result = main(y=y, x=x.copy(), c=7)
    np.testing.assert_array_equal(result.y, plain(x, 7, range(5, 95)))
    np.testing.assert_array_equal(result.x, x)
    assert not (~main)(y=result.y, x=result.x, c=7).y.any()


def test_erase_adds_to_what_is_there() -> None:
    program = rvm.assemble(
        f"const N = 40\n{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64)\n"
        "    iterate step(y, x, 3, c) times N // 2 with pebbles = 6, goal = erase\n"
    )
    x = np.arange(3)
    result = program.main(y=np.array([10, 20, 30]), x=x.copy(), c=7)
    expected = x
    for _ in range(20):
        expected = plain(expected, 7, range(3, 4))
    np.testing.assert_array_equal(result.y, expected + np.array([10, 20, 30]))


@thin
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 100])
def test_a_length_that_only_the_run_knows(steps: int) -> None:
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64, m: i64)\n"
        "    iterate step(y, x, k, c) for k = 2 to m with bennett = 4\n"
    )
    x = np.arange(1, 4)
    result = program.main(y=np.zeros(3, dtype=np.int64), x=x.copy(), c=7, m=steps + 1)
    np.testing.assert_array_equal(result.y, plain(x, 7, range(2, steps + 2)))
    assert not (~program.main)(**dict(result.items())).y.any()


@thin
@pytest.mark.parametrize("goal", ["persist", "erase"])
@pytest.mark.parametrize("policy", ["pebbles = 7", "bennett = 3", "memory = 160, state_bytes = 20"])
@sample
@sample
def test_any_length_and_direction(policy: str, goal: str) -> None:
    """Constant and told by the run, up and down, and none, which adds x to y."""
    first = 1000 if goal == "erase" else 0
    counts = (0, 1, 2, 8, 30)

    def function(name: str, numbers: str, more: str = "") -> str:
        head = f"func {name}(y: i64[n], x: i64[n], c: i64{more})"
        return (
            f"{head}\n    iterate step(y, x, k, c) for k = {numbers} with {policy}, goal = {goal}"
        )

    lines = [function(f"up_{n}", f"5 to {4 + n}") for n in counts]
    lines += [function(f"down_{n}", f"40 downto {41 - n}") for n in counts]
    lines.append(function("to_m", "5 to m", ", m: i64"))
    lines.append(function("downto_m", "40 downto m", ", m: i64"))
    program = rvm.assemble("\n".join([STEP, *lines]))
    x = np.arange(1, 4) * 1_000_003
    y = np.full(3, first)
    for steps in counts:
        up, down = range(5, 5 + steps), range(40, 40 - steps, -1)
        for name, numbers, more in (
            (f"up_{steps}", up, {}),
            (f"down_{steps}", down, {}),
            ("to_m", up, {"m": 4 + steps}),
            ("downto_m", down, {"m": 41 - steps}),
        ):
            f = program[name].with_options(engine="python")
            result = f(y=y.copy(), x=x.copy(), c=7, **more)
            np.testing.assert_array_equal(result.y, first + plain(x, 7, numbers))
            np.testing.assert_array_equal((~f)(**dict(result.items())).y, y)


def states_and_calls(steps: int, policy: str) -> tuple[int, int]:
    """The most states that a run holds beside x and y, and how often the step is done or undone."""
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64, m: i64)\n"
        f"    iterate step(y, x, k, c) for k = 1 to m with {policy}\n"
    )
    x = np.arange(3000)
    machine = rvm.Machine(program, y=np.zeros(3000, dtype=np.int64), x=x.copy(), c=7, m=steps)
    base = machine.state.account.live_bytes
    counts = machine.count()
    machine.run()
    np.testing.assert_array_equal(machine.result["y"], plain(x, 7, range(1, steps + 1)))
    calls = sum(
        node.done[pc]
        for node in counts.nodes()
        for pc, instr in enumerate(node.code.instrs)
        if instr.op in ("call", "uncall") and instr.symbol == "step"
    )
    return (machine.state.account.peak_bytes - base) // 24000, calls


@thin
@pytest.mark.parametrize(("steps", "pebbles"), [(9, 5), (100, 8), (128, 8), (100, 20), (333, 12)])
def test_pebbles_of_a_length_that_only_the_run_knows(steps: int, pebbles: int) -> None:
    """So many states besides y at most, and hardly more moves than if the length were known."""
    states, calls = states_and_calls(steps, f"pebbles = {pebbles}")
    assert states == pebbles
    best = plan(steps, pebbles=pebbles).cost.moves
    assert best <= calls <= 1.02 * best


@pytest.mark.parametrize("goal", ["persist", "erase"])
def test_splits_for_any_length_are_feasible_and_nearly_the_best(goal: str) -> None:
    visits = goal == "erase"
    for s in (1, 2, 3, 4, 5, 6, 9, 12, 20, 128):
        most = min(LONGEST, 2**s - 1 if visits else 2 ** (s - 1))
        persist = sampled_splits(most, s, False)
        visit = sampled_splits(most, s, True) if visits else []
        table = line(most)

        @cache
        def cost(n: int, s: int, visits: bool, tables: Any = (persist, visit)) -> int:
            if n <= s:
                return n if visits else 2 * n - 1
            assert s > 1
            less = s if visits else s - 1
            m = min(less, n - s + 1)
            if n > s + less * (less - 1) // 2:
                at = bisect_right(tables[visits], (s, n, n)) - 1
                found, after = (
                    tables[visits][at],
                    tables[visits][min(at + 1, len(tables[visits]) - 1)],
                )
                m = found.m + (n - found.n) * (after.m - found.m) // max(after.n - found.n, 1)
            total = cost(m, s, False) + cost(n - m, s - 1, visits)
            return total if visits else total + cost(m, s - 1, False)

        for n in sorted({1, most, most - 1, *(round(most ** (k / 40)) for k in range(41))}):
            if n > 0:
                best = table.visit(n, s) if visits else table.persist(n, s)
                assert best <= cost(n, s, visits) <= (1.2 if s == 128 else 1.04) * best


HEAD = "func step(y: i64, x: i64)\n add y, x\nfunc f(y: i64, x: i64, m: i64)\n"
BUDGETS = ["pebbles = {0} + 1", "pebbles = 2 * {0}", "pebbles = 1000", "max_moves = 5 << {0}"]


@thin
@pytest.mark.parametrize("budget", BUDGETS)
def test_planning_is_bounded_for_any_number_of_steps(
    budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = 0

    def counted(method: Any) -> Any:
        def call(*args: Any) -> Any:
            nonlocal work
            work += 1
            return method(*args)

        return call

    for name in ("grow", "split", "__call__"):
        monkeypatch.setattr(Convex, name, counted(getattr(Convex, name)))
    for bits in (9, 20, 25, 40, 62):
        work = 0
        text = f" iterate step(y, x) times (1 << {bits}) - 1 with {budget.format(bits)}\n"
        try:
            made = assemble(HEAD + text)
            assert sum(len(f.code) for f in made.functions) <= iterations.MOST_CODE + 100
        except AssemblyError as error:
            assert {d.code for d in error.diagnostics} == {"A070"} and bits > 24
            assert all(d.hint for d in error.diagnostics)
        assert work < (200_000 if bits < 25 else 1), (bits, budget)


@pytest.mark.parametrize("line", ["m with pebbles = 40", "90000 + {0} with pebbles = 18 + {0} % 9"])
def test_all_plans_of_a_text_are_bounded(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations, "MOST_CODE", 12_000)
    text = HEAD + "".join(f" iterate step(y, x) times {line.format(k)}\n" for k in range(12))
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    assert {d.code for d in caught.value.diagnostics} == {"A070"}
    assert caught.value.diagnostics[-1].where.line == 15


def test_bennett_is_not_limited() -> None:
    assemble(HEAD + " iterate step(y, x) times 1 << 60 with bennett = 3\n")


def test_too_many_steps_for_so_many_states() -> None:
    program = rvm.assemble(
        "func step(y: i64, x: i64)\n    add y, x + 1\n"
        "func main(y: i64, x: i64, m: i64)\n    iterate step(y, x) times m with pebbles = 4\n"
    )
    assert program.main(y=0, x=1, m=8).y == 9
    with pytest.raises(RvmError) as caught:
        program.main(y=0, x=1, m=9)
    assert caught.value.code == "R013" and "0 to 8 times" in caught.value.message


def test_fewer_than_no_steps() -> None:
    program = rvm.assemble(
        "func step(y: i64, x: i64)\n    add y, x + 1\n"
        "func main(y: i64, x: i64, m: i64)\n    iterate step(y, x) times m with bennett = 3\n"
    )
    with pytest.raises(RvmError) as caught:
        program.main(y=0, x=1, m=-1)
    assert caught.value.code == "R013"
    assert caught.value.where.line == 4


def test_errors_and_positions_are_those_of_the_statement() -> None:
    """A step that leaves x changed: the ancilla that it came from is not what it was."""
    text = (
        "func step(y: i64, x: i64)\n    add y, x + 1\n    xor x, y\n"
        "func main(y: i64, x: i64)\n    iterate step(y, x) times 20 with pebbles = 7\n"
    )
    program = rvm.assemble(text)
    made = [f for f in program.program.functions if f.name.startswith("step.times_20")]
    assert {(s.line, s.column, s.end) for f in made for s in f.spans} == {(5, 5, 49)}
    with pytest.raises(InvertibilityError) as caught:
        program.main(y=0, x=1)
    assert caught.value.where.line == 5
    assert caught.value.where.function.startswith("step.times_20")


@pytest.mark.parametrize("policy", POLICIES)
def test_disassembled_code_is_the_same(policy: str) -> None:
    program = rvm.assemble(
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64)\n"
        f"    iterate step(y, x, k, c) for k = 5 to 94 with {policy}\n"
    )
    again = rvm.assemble(disassemble(program))
    assert encode(again) == encode(program)


def test_strict_code_does_the_same() -> None:
    text = (
        f"{STEP}\nfunc main(y: i64[n], x: i64[n], c: i64, m: i64)\n"
        "    alloc t: i64[n]\n"
        "    routine there\n"
        "        iterate step(t, x, k, c) for k = 0 to 24 with pebbles = 7\n"
        "    end\n"
        "    iterate step(y, t, k, c) for k = 25 to m with bennett = 3\n"
        "    undo there\n"
        "    free t\n"
    )
    x = np.arange(3)
    for expand in (False, True):
        program = rvm.Library(assemble(text, expand=expand))
        result = program.main(y=np.zeros(3, dtype=np.int64), x=x.copy(), c=7, m=59)
        np.testing.assert_array_equal(result.y, plain(x, 7, range(60)))


def test_macros_and_records() -> None:
    program = rvm.assemble(
        """
        record Wave
            u: f64[8]
            v: f64[8]
        end
        func step(y: Wave, x: Wave, dt: f64)
            for i = 0 to 7
                add y.v[i], x.v[i] + dt * (x.u[(i + 1) % 8] - 2 * x.u[i] + x.u[(i - 1) % 8])
                add y.u[i], x.u[i] + dt * x.v[i]
            end
        macro far y, x, dt, s
            iterate step(y, x, dt) times 30 with pebbles = s
        end
        func main(y: Wave, x: Wave, dt: f64)
            far y, x, dt, 6
        func other(y: Wave, x: Wave, dt: f64)
            far y, x, dt, 2 * 15
        """
    )
    x = {"u": np.linspace(0, 1, 8), "v": np.zeros(8)}
    found = program.main(y={"u": np.zeros(8), "v": np.zeros(8)}, x=x, dt=0.1)
    other = program.other(y={"u": np.zeros(8), "v": np.zeros(8)}, x=x, dt=0.1)
    u, v = x["u"].copy(), x["v"].copy()
    for _ in range(30):
        u, v = u + 0.1 * v, v + 0.1 * (np.roll(u, -1) - 2 * u + np.roll(u, 1))
    np.testing.assert_allclose(found.y["u"], u, rtol=1e-12)
    np.testing.assert_allclose(found.y["v"], v, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(other.y["u"], found.y["u"])
    assert len({f.name for f in program.program.functions if f.name.count(".") < 2}) == 5
