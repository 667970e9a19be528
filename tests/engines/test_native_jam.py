"""Rounds of loops that machine code joins: the same bits, ticks and stops as one by one."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, sample, thin, wide

import rvm
from rvm.engines import LAW
from rvm.engines.native.engine import source_of
from rvm.image import image_of
from rvm.ir.function import plan_of
from rvm.ir.jam import Jam
from rvm.ir.kind import Kind
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")


def jams(program: rvm.Library, undo: bool = False) -> list[Jam]:
    """The loops whose rounds are joined."""
    code = image_of(program).code("main", undo)
    loops = plan_of(code, True, False).loops
    return [jam for loop in loops.values() for jam in loop.jams.values()]


def printed(program: rvm.Library) -> bool:
    """Whether there is a loop in the text for LLVM whose rounds are joined."""
    text = source_of(image_of(program).code("main", False), Kind(0, frozenset()))
    return "joined" in text


def ended(engine: str, program: rvm.Library, undo: bool, stop: int | None, inputs: Any) -> Any:
    """Registers and time at the end, or at a stop on the way, or at an error."""
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    m = Machine.start(program, "main", copies, rvm.Options(engine=engine), undo=undo)
    error = ""
    try:
        m.run() if stop is None else m.seek(stop)
    except rvm.RvmError as found:
        error = str(found)
    values = [v.tobytes() if isinstance(v, np.ndarray) else v for v in m.state.top.regs]
    return values, m.time, m.state.top.pc, error


def same(program: rvm.Library, undo: bool = False, stop: int | None = None, **inputs: Any) -> Any:
    """Where both engines come to, which is the same place with the same bits."""
    one, two = (ended(e, program, undo, stop, inputs) for e in (LAW, "native"))
    assert one == two
    return two


def matrices(m: int, n: int, p: int, dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(m + 10 * n + 100 * p)
    shapes = {"C": (m, p), "A": (m, n), "B": (n, p)}
    return {k: (100 * rng.normal(size=shape)).astype(dtype) for k, shape in shapes.items()}


LOOPS = {"i": "for i = 0 to m - 1", "j": "for j = p - 1 downto 0", "k": "for k = 0 to n - 1"}


def product(order: str, t: str, loops: dict[str, str] = LOOPS) -> rvm.Library:
    head = "\n".join(" " * (4 + 4 * d) + loops[v] for d, v in enumerate(order))
    ends = "\n".join(" " * (12 - 4 * d) + "end" for d in range(3))
    return rvm.assemble(
        f"func main(C: {t}[m, p], A: {t}[m, n], B: {t}[n, p])\n{head}\n"
        f"                add C[i, j], A[i, k] * B[k, j]\n{ends}\n"
    )


@thin
@pytest.mark.parametrize("order", ["".join(o) for o in permutations("ijk")])
@pytest.mark.parametrize("t", ["f64", "i32", "fixed"])
@sample
def test_products_of_matrices_in_all_orders(order: str, t: str) -> None:
    program = product(order, t)
    assert len(jams(program)) == len(jams(program, undo=True)) > 0
    assert printed(program) or t == "fixed"
    dtype = {"f64": np.float64, "i32": np.int32, "fixed": np.int64}[t]
    for m, n, p in ((5, 9, 6), (4, 8, 4), (3, 3, 3), (1, 1, 1), (0, 4, 4), (4, 0, 4), (4, 4, 0)):
        inputs = matrices(m, n, p, dtype)
        same(program, **inputs)
        same(program, undo=True, **inputs)


@wide
def test_a_third_loop_is_joined_if_each_round_of_it_reaches_elements_of_its_own() -> None:
    def found(body: str, outer: str = "for i = 0 to m - 1") -> set[int]:
        program = rvm.assemble(
            f"""
            func main(y: f64[p], z: f64[m], A: f64[m, n], B: f64[n, p])
                {outer}
                    for k = 0 to n - 1
                        for j = 0 to p - 1
                            {body}
                        end
                    end
                end
            """
        )
        rng = np.random.default_rng(4)
        for m, n, p in ((5, 6, 7), (1, 9, 3), (2, 1, 1)):
            shapes: dict[str, Any] = {"y": p, "z": m, "A": (m, n), "B": (n, p)}
            inputs: dict[str, Any] = {k: rng.normal(size=shape) for k, shape in shapes.items()}
            same(program, **inputs)
        return {len(jam.loops) for jam in jams(program)}

    assert found("add A[i, k], B[k, j] * y[j]") == {2, 3}
    assert found("add z[i], A[i, k] * B[k, j]") == set(), "a sum over all of k and j is one chain"
    assert found("add y[j], A[i, k] * B[k, j]") == {2}
    assert found("add A[i, k], B[k, j]\n add y[j], B[k, j]") == {2}
    assert found("sub A[i, k], B[k, j]", "for i = m - 1 downto 0 step 2") == {2, 3}


@wide
@examples(60)
@given(st.integers(0, 11), st.integers(0, 11), st.integers(0, 11), st.floats(0, 1), st.booleans())
def test_stops_on_the_way(m: int, n: int, p: int, part: float, undo: bool) -> None:
    program = product("ikj", "f64")
    inputs = matrices(m, n, p, np.float64)
    time = same(program, undo=undo, **inputs)[1]
    same(program, undo=undo, stop=int(part * time), **inputs)


@thin
@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("for i = m - 1 downto 1", "for j = 0 to n - 1"),
        ("for i = 1 to m - 1 step 3", "for j = 1 to n - 2 step 2"),
        ("for i = m - 2 downto 0 step 2", "for j = n - 1 downto 0 step 3"),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        "add y[j], a[i, j]",
        "add z[i], a[i, j] * y[j]",
        "sub z[i], a[i, j] * y[j]\n add y[j], a[i, 0] * a[0, j]",
        "xor b[j], i * 3 + j",
        "add a[i, j], y[j] * z[i]\n add z[i], y[j]",
    ],
)
@sample
def test_steps_and_bodies(outer: str, inner: str, body: str) -> None:
    program = rvm.assemble(
        f"""
        func main(y: f64[n], z: f64[m], a: f64[m, n], b: i64[n])
            {outer}
                {inner}
                    {body}
                end
            end
        """
    )
    assert jams(program)
    assert printed(program)
    rng = np.random.default_rng(1)
    for m, n in ((12, 9), (7, 4), (2, 3), (9, 1), (1, 7)):
        inputs: dict[str, Any] = {
            "y": rng.normal(size=n),
            "z": rng.normal(size=m),
            "a": rng.normal(size=(m, n)),
            "b": rng.integers(-9, 9, n),
        }
        for undo in (False, True):
            time = same(program, undo=undo, **inputs)[1]
            same(program, undo=undo, stop=time // 2, **inputs)


@thin
@pytest.mark.parametrize(
    "body",
    [
        "add y[j], y[j - 1] * a[i, j]",
        "add y[i + j], a[i, j]",
        "add y[2], a[i, j]",
        "add s, a[i, j]",
        "add y[j], a[i, j]\n add z[j], y[j - 1]",
        "add y[b[j]], a[i, j]",
        "mul y[j], a[i, j]",
        "if a[i, j] > 0\n add y[j], a[i, j]\n end",
        "add a[i, j], y[0]",
    ],
)
def test_loops_that_are_not_joined(body: str) -> None:
    """Elements that rounds share otherwise, and what may fail; the last would gain nothing."""
    program = rvm.assemble(
        f"""
        func main(s: f64, y: f64[k], z: f64[k], a: f64[m, n], b: i64[k])
            for i = 0 to m - 1
                for j = 1 to n - 1
                    {body}
                end
            end
        """
    )
    assert not printed(program)
    rng = np.random.default_rng(2)
    inputs: dict[str, Any] = {
        "s": 0.0,
        "y": rng.normal(size=20),
        "z": rng.normal(size=20),
        "a": rng.normal(size=(9, 8)),
        "b": rng.integers(0, 20, 20),
    }
    same(program, **inputs)


def test_bounds_that_follow_the_outer_loop_are_not_joined() -> None:
    program = product("ikj", "f64", LOOPS | {"j": "for j = 0 to min(p - 1, 3)"})
    same(program, **matrices(6, 7, 5, np.float64))
    program = product("kij", "f64", LOOPS | {"j": "for j = 0 to i"})
    assert not jams(program)
    same(program, **matrices(6, 7, 6, np.float64))


def test_an_index_that_is_outside_in_the_last_round_fails_there() -> None:
    program = rvm.assemble(
        """
        func main(y: f64[n], a: f64[m, n])
            for i = 0 to m
                for j = 0 to n - 1
                    add y[j], a[i, j]
                end
            end
        """
    )
    assert jams(program)
    *_, time, _, error = same(program, y=np.ones(3), a=np.ones((8, 3)))
    assert "a[i, j]" in error
    assert time > 8 * 3 * 2


def test_what_is_freed_must_be_what_is_held() -> None:
    """Code that nobody's assembler makes: a bound is freed with another value."""
    program = rvm.assemble(
        """
        func main(y: f64[n], m: i64)
            alloc i: i64
            while i != m, i != 0
                alloc e: i64 = for_end(0, n - 1, 1)
                alloc j: i64
                if 0 != e, 0 != e
                    while j != e, j != 0
                        add y[j], f64(i)
                        inc j
                    end
                end
                free j = e
                free e = for_end(0, n - 1, 1)
                inc i
            end
            free i = m
        """
    )
    same(program, y=np.zeros(5), m=9)


@wide
def test_gradients_of_nests() -> None:
    """Three statements in a round, one of them a sum: against NumPy's products."""
    program = product("ikj", "f64")
    inputs = matrices(6, 7, 5, np.float64)
    seed = np.random.default_rng(3).normal(size=(6, 5))
    f = program["main"].with_options(engine="native")
    found = f.vjp({"C": seed}, dict(inputs), wrt=("A", "B"))
    assert np.allclose(found["A"], seed @ inputs["B"].T, rtol=1e-13)
    assert np.allclose(found["B"], inputs["A"].T @ seed, rtol=1e-13)


@wide
@pytest.mark.parametrize("undo", [False, True])
def test_three_loops_joined_are_counted_as_by_stepping(undo: bool) -> None:
    program = product("ikj", "f64")
    assert {len(jam.loops) for jam in jams(program, undo)} == {2, 3}
    for m, n, p in ((5, 9, 6), (4, 8, 4), (1, 5, 2), (3, 0, 4), (2, 1, 1)):
        seen = []
        for engine in (LAW, "native"):
            inputs = matrices(m, n, p, np.float64)
            machine = Machine.start(program, "main", inputs, rvm.Options(engine=engine), undo=undo)
            counts = machine.count()
            machine.run()
            seen.append([(node.done[:], node.jumps[:]) for node in counts.nodes()])
        assert seen[0] == seen[1], (m, n, p)
