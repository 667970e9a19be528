"""The vector engine: what it vectorises agrees with the reference engine in every bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from attack.programs import loops as loops_random
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, thin, wide

import rvm
from rvm.engines import LAW
from rvm.engines.vector import dependences, plan
from rvm.engines.vector.engine import vector_of
from rvm.engines.vector.explain import explain
from rvm.image import image_of
from rvm.run.machine import Machine

N = 300
X = np.random.default_rng(1).normal(size=N)
Y = np.random.default_rng(2).normal(size=N) + 2


SHIPPED = (plan.LEAST, plan.PAYS, plan.BLOCK, dependences.LEAST_DELAY)
SHORT = (8, 0, 16, 8)
"""Pieces of a few iterations, so that short loops have several of them."""


@contextmanager
def pieces(sizes: tuple[int, int, int, int]) -> Iterator[None]:
    """Within it, pieces of loops have other sizes; code that was made before keeps its own."""
    before = plan.LEAST, plan.PAYS, plan.BLOCK, dependences.LEAST_DELAY
    plan.LEAST, plan.PAYS, plan.BLOCK, dependences.LEAST_DELAY = sizes
    yield
    plan.LEAST, plan.PAYS, plan.BLOCK, dependences.LEAST_DELAY = before


@pytest.fixture(autouse=True, scope="module")
def short_pieces() -> Iterator[None]:
    with pieces(SHORT):
        yield


@dataclass
class Watch:
    """The ticks that vectorised loops did, by the loops' names, and what escaped from them."""

    ticks: dict[str, int] = field(default_factory=dict)
    leaks: list[BaseException] = field(default_factory=list)


@contextmanager
def watched(program: rvm.Library, name: str) -> Iterator[Watch]:
    """Within it, the vectorised loops of a function are watched, both ways."""
    watch = Watch()
    undo: list[tuple[dict[str, Any], str, Any]] = []
    for way in (False, True):
        names = vector_of(image_of(program).code(name, way)).run.__globals__
        for loop in [k for k in names if k.startswith("_loop_")]:
            undo.append((names, loop, names[loop]))
            names[loop] = _watching(watch, loop + "~" * way, names[loop])
    yield watch
    for names, loop, f in undo:
        names[loop] = f


def _watching(watch: Watch, name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(n: int, *args: Any) -> Any:
        try:
            out = f(n, *args)
        except BaseException as error:
            watch.leaks.append(error)
            raise
        watch.ticks[name] = watch.ticks.get(name, 0) + n - out[1]
        return out

    return wrapper


def bits(m: Machine) -> dict[str, Any]:
    """What parameters hold, arrays as bytes."""
    return {k: v.tobytes() if isinstance(v, np.ndarray) else repr(v) for k, v in m.result.items()}


def copied(inputs: dict[str, Any]) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}


def there_and_back(program: rvm.Library, engine: str, inputs: dict[str, Any]) -> list[Any]:
    """Everything that can be seen of a run forwards, backwards and forwards again."""
    m = Machine.start(program, program.program.entry, copied(inputs), rvm.Options(engine=engine))
    seen: list[Any] = []
    try:
        for go in (m.run, m.run_back, m.run):
            go()
            seen.append((bits(m), m.time, m.erased_bits, m.state.account.live_bytes))
    except rvm.RvmError as error:
        seen.append((str(error), bits(m), m.time, m.erased_bits, m.registers().keys()))
    return seen


def agree(program: rvm.Library, inputs: dict[str, Any]) -> Watch:
    """Both engines do the same; what of it was vectorised."""
    with watched(program, program.program.entry) as watch:
        got = there_and_back(program, "vector", inputs)
    assert got == there_and_back(program, "reference", inputs)
    assert watch.leaks == []
    return watch


def vectorised(body: str, inputs: dict[str, Any], head: str = "0 to n - 1", ways: int = 2) -> None:
    """A loop with this body is vectorised (in so many directions), and does what it must."""
    watch = agree(loop(body, inputs, head), inputs)
    assert len(watch.ticks) == ways
    assert all(watch.ticks.values())


def loop(body: str, inputs: dict[str, Any], head: str = "0 to n - 1") -> rvm.Library:
    """A program of one loop, whose parameters are the inputs."""
    kinds = {"float64": "f64", "int64": "i64", "uint8": "u8", "complex128": "c128", "bool": "bool"}
    kinds |= {"float32": "f32"}
    params = []
    for name, v in inputs.items():
        if isinstance(v, np.ndarray):
            dims = "n" if v.ndim == 1 else "m, n"
            params.append(f"{name}: {kinds[v.dtype.name]}[{dims}]")
        else:
            t = {bool: "bool", int: "i64", float: "f64", complex: "c128"}[type(v)]
            params.append(f"{name}: {t}")
    lines = ["        " + line for line in body.strip().splitlines()]
    head = f"func main({', '.join(params)})\n    for i = {head}\n"
    return rvm.assemble(head + "\n".join(lines) + "\n    end\n")


def reason(body: str, inputs: dict[str, Any], head: str = "0 to n - 1") -> str:
    """Why a loop is declined, forwards."""
    verdict = explain(loop(body, inputs, head))[0]
    assert not verdict.vectorised
    return verdict.reason


# ---------------------------------------------------------------- random loops


@examples(120)
@given(st.integers(0, 10**6), st.sampled_from([SHIPPED, SHORT]))
def test_random_loops_agree(seed: int, sizes: tuple[int, int, int, int]) -> None:
    try:
        program = rvm.assemble(loops_random.RandomLoop(seed).text)
    except rvm.RvmError:
        return
    with pieces(sizes):
        agree(program, loops_random.inputs(seed))


@examples(30)
@given(st.integers(0, 10**6), st.data())
def test_every_time_in_a_loop_is_one_state(seed: int, data: st.DataObject) -> None:
    """A state that vectorised pieces lead to is the one that steps lead to."""
    try:
        program = rvm.assemble(loops_random.RandomLoop(seed).text)
    except rvm.RvmError:
        return
    seen = []
    times = [data.draw(st.integers(0, 250)) for _ in range(4)]
    for engine in (LAW, "vector"):
        m = Machine.start(program, "main", loops_random.inputs(seed), rvm.Options(engine=engine))
        states: list[Any] = []
        try:
            for t in times:
                m.seek(t)
                states.append((m.time, bits(m), str(m.registers()), m.erased_bits))
        except rvm.RvmError as error:
            states.append((str(error), bits(m), m.time))
        seen.append(states)
    assert seen[0] == seen[1]


@pytest.mark.soak
def test_many_random_loops() -> None:
    taken = tried = 0
    for seed in range(20_000, 24_000):
        try:
            program = rvm.assemble(loops_random.RandomLoop(seed).text)
        except rvm.RvmError:
            continue
        tried += 1
        taken += any(agree(program, loops_random.inputs(seed)).ticks.values())
    assert taken > tried / 3


# ---------------------------------------------------------------- kinds of loops


@thin
@pytest.mark.parametrize(
    "body",
    [
        "add y[i], 2*x[i]",
        "add y[i], exp(x[i])*sin(x[i])",
        "mul y[i], x[i]*x[i] + 1",
        "swap x[i], y[i]",
        "rot x[i], y[i], 0.5",
        "add s, x[i]\nsub s, y[i]*x[i]",
        "mul s, 1 + x[i]/1000\nmul s, 1.001",
        "div s, 1 + x[i]/1000",
        "add s, x[i]\nadd y[i], s",
        "add y[i], s\nadd s, x[i]",
        "swap s, x[i]",
        "add y[i], f64(i)*s",
        "add x[2], y[i]",
        "alloc t: f64 = x[i]*x[i]\nadd y[i], t\nadd s, t\nfree t = x[i]*x[i]",
        "alloc t: f64\nadd t, x[i]\nadd y[i], t*t\nsub t, x[i]\nfree t",
        "fresh t: f64\nadd t, x[i]\nadd y[i], t\ndrop t",
        "if x[i] > 0\nadd y[i], x[i]\nadd s, y[i]\nend",
        "if x[i] > 0\nadd y[i], x[i]\nelse\nsub y[i], log(1 - x[i])\nsub s, 1\nend",
        "if i > 0 and x[i - 1] > 0\nadd y[i - 1], x[i - 1]\nend",
        "if x[i] > 0\nif x[i] > 1\nadd y[i], x[i]\nend\nneg y[i]\nend",
        "cswap i % 3 == 0, x[i], y[i]",
        "neg y[i]\ninc y[i]",
    ],
)
def test_floats(body: str) -> None:
    vectorised(body, {"x": X, "y": Y, "s": 0.25})


CHANGES = ("add b[i], a[i]", "neg b[i]", "xor b[i], 5", "swap b[i], c[i]")
SHAPES = (
    "if x[i] > 0\n{0}\nend\nif a[i] % 2 == 0\n{1}\nend",
    "if x[i] > 0\n{0}\nelse\n{1}\nend\nif a[i] % 2 == 0\n{0}\nelse\n{1}\nend",
    "if x[i] > 0\n{0}\nif a[i] % 2 == 0\n{1}\nend\nif a[i] > 3\n{0}\nend\nend\n{1}",
    "if x[i] > 0\nif a[i] % 2 == 0\n{0}\nend\nelse\n{1}\nend\nif x[i] > 1\n{0}\nend",
)


@thin
@pytest.mark.parametrize("shape", SHAPES)
def test_what_several_choices_change(shape: str) -> None:
    """Each finds what those before have left, in the lanes that both take."""
    for first, second in product(CHANGES, repeat=2):
        inputs = {"x": X, "a": np.arange(N) % 7, "b": np.arange(N), "c": np.arange(N)}
        vectorised(shape.format(first, second), inputs)


@pytest.mark.parametrize("t", [np.uint64, np.int64, np.uint8, np.int32, np.float32])
def test_sums_into_scattered_elements_near_the_limits(t: type) -> None:
    """One that is added as a number takes no way through floats."""
    info = np.iinfo(t) if np.issubdtype(t, np.integer) else np.finfo(t)
    w = np.array([info.max, info.max // 2 + 2, info.min + 2], t)
    k = np.arange(30) % 7 % 3
    names = {np.uint64: "u64", np.int64: "i64", np.uint8: "u8", np.int32: "i32", np.float32: "f32"}
    program = rvm.assemble(f"""func main(w: {names[t]}[m], k: i64[n], one: {names[t]})
    for i = 0 to n - 1
        add w[k[i]], one
        sub w[k[i]], 3
    end
""")
    assert all(agree(program, {"w": w, "k": k, "one": 1}).ticks.values())


def test_every_bit_of_a_sum_in_order() -> None:
    """The sum is that of a loop in Python, not the pairwise one of `np.sum`."""
    s = 0.0
    for v in X.tolist():
        s += v
    program = loop("add s, x[i]", {"x": X, "s": 0.0})
    assert program.main(x=X.copy(), s=0.0, engine="vector").s == s
    assert s != np.sum(X)


@thin
@pytest.mark.parametrize(
    "body",
    [
        "sub y[i], x[i - 1] - 2.0*x[i] + x[i + 1]",
        "add s, x[i]*y[i]\nadd y[i], f64(i)",
        "add s, x[i]\nsub s, y[i]\nmul t, 1.0 + x[i]*1e-3",
        "add y[i - 1], x[i]\nsub y[i], 2.0*x[i]\nadd y[i + 1], x[i]\nadd s, x[i]*x[i]",
        "if x[i] > 0.0\n    add y[i], x[i]*f64(i)\nend\nadd s, x[i]",
    ],
)
def test_loops_that_count_down(body: str) -> None:
    """They go upwards in memory where that is the same, and sums keep the iterations' order."""
    inputs = {"x": X, "y": Y, "s": 0.25, "t": 1.5}
    vectorised(body, inputs, head="n - 2 to 1 step -1")
    vectorised(body, inputs, head="n - 2 to 1 step -3")


def test_every_bit_of_a_sum_counted_down() -> None:
    down = up = 0.25
    for v in X.tolist()[::-1]:
        down += v
    for v in X.tolist():
        up += v
    program = loop("add s, x[i]", {"x": X, "s": 0.0}, head="n - 1 to 0 step -1")
    assert program.main(x=X.copy(), s=0.25, engine="vector").s == down != up


def test_integers_wrap() -> None:
    a = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, N)
    u = np.random.default_rng(4).integers(0, 256, N).astype(np.uint8)
    body = "add a[i], b[i]*b[i] - i\nadd t, a[i]\nxor u[i], u8(b[i] >> 3)\nxor v, b[i]"
    vectorised(body, {"a": a, "b": a[::-1].copy(), "u": u, "t": 5, "v": 1})


def test_gathers_and_scatters() -> None:
    rng = np.random.default_rng(5)
    idx = rng.integers(0, N, N)
    vectorised("add y[i], x[idx[i]]", {"x": X, "y": Y, "idx": idx})
    vectorised("add y[idx[i]], x[i]", {"x": X, "y": Y, "idx": idx})
    vectorised("add a[idx[i]], i\nsub a[idx[i]], idx[i]", {"a": idx[::-1].copy(), "idx": idx})
    body = "if x[i] > 0\nadd y[idx[i]], x[i]\nend"
    vectorised(body, {"x": X, "y": Y, "idx": idx})
    twice = reason("add y[idx[i]], x[i]\nsub y[idx[i]], 1", {"x": X, "y": Y, "idx": idx})
    assert twice == "`y[idx[i]]` is changed twice in an iteration"
    vectorised("swap y[idx[i]], x[i]", {"x": X, "y": Y, "idx": rng.permutation(N)})


def test_scattered_elements_are_read_and_others_changed() -> None:
    """As in a wavelet: the odd elements change, from the even ones."""
    body = "add x[i], x[select(i + 1 < n, i + 1, i - 1)] + x[i - 1]"
    vectorised(body, {"x": X}, "1 to n - 1 step 2")
    even = 2 * np.random.default_rng(7).integers(0, N // 2, N // 2)
    idx = np.repeat(even, 2)
    vectorised("add x[2*i + 1], x[idx[i]]", {"x": X, "idx": idx}, "0 to n // 2 - 1")
    vectorised("add x[idx[i]], x[2*i + 1]", {"x": X, "idx": idx}, "0 to n // 2 - 1")
    inputs = {"x": X, "idx": np.full(N, 250)}
    watch = agree(loop("add x[i + 1], x[idx[i]]", inputs, "0 to n - 2"), inputs)
    assert 200 < watch.ticks["_loop_3"] < 3 * 250
    assert "_loop_3~" not in watch.ticks or watch.ticks["_loop_3~"] < 3 * 60
    matrix = np.random.default_rng(8).normal(size=(3, N))
    vectorised("add A[r, i], A[q, idx[i]]", {"A": matrix, "idx": idx, "r": 0, "q": 2})


def test_an_index_that_changes_in_the_body() -> None:
    body = "alloc j: i64 = i\nadd y[i], x[j % 7]\nadd j, 3\nadd y[i], x[j % 7]\nfree j = i + 3"
    vectorised(body, {"x": X, "y": Y})
    body = "if x[i] > 0\n" + body.replace("free j", "neg y[i]\nfree j") + "\nend"
    vectorised(body, {"x": X, "y": Y})


@pytest.mark.parametrize("step", ["1", "a[i]", "a[i] - 1"])
def test_an_index_that_is_a_running_sum(step: str) -> None:
    inputs = {"a": np.arange(N) % 3, "seen": np.arange(N), "y": Y, "k": 0}
    vectorised(f"add k, {step}\nadd seen[k % n], i\nsub y[k // 2 % n], f64(i)", inputs)


@pytest.mark.parametrize("body", ["swap y[idx[i]], x[i]", "neg y[idx[i]]", "mul y[idx[i]], 2"])
def test_indices_that_repeat_are_found(body: str) -> None:
    idx = np.arange(N)
    idx[40] = 35
    inputs = {"x": X, "y": Y, "idx": idx}
    watch = agree(loop(body, inputs), inputs)
    assert 0 < watch.ticks["_loop_3"] < 3 * N


def test_a_choice_that_no_iteration_takes_is_not_checked() -> None:
    """Its conditions, which no iteration changes, need not hold."""
    body = "add y[i], x[i]\nif k > 5\nadd s, x[i]\nend k > 5"
    vectorised(body, {"x": X, "y": Y, "s": 0.5, "k": 3})
    vectorised(body, {"x": X, "y": Y, "s": 0.5, "k": 7})


def test_functions_at_their_edges() -> None:
    x = np.where(np.arange(N) % 90 == 17, [0.0, -1.0, 1e3] * (N // 3), np.abs(X) + 0.1)
    vectorised("add y[i], log(x[i]) + exp(x[i])\nadd s, x[i] ** x[i]", {"x": x, "y": Y, "s": 0.0})


@wide
def test_long_bodies() -> None:
    """Thousands of instructions, each of which goes on from the one before."""
    vectorised("mul y[i], 1.01\nadd y[i], x[i]\n" * 550, {"x": X[:9], "y": Y[:9]})
    body = "\n".join(f"add y[i + {k}], x[i]" for k in range(300))
    assert "more than 200 elements" in reason(body, {"x": X, "y": Y})


def test_matrices() -> None:
    matrix = np.random.default_rng(6).normal(size=(4, N))
    vectorised("add A[2, i], A[1, n - 1 - i]", {"A": matrix})
    vectorised("add A[r, i], A[q, i]", {"A": matrix, "r": 1, "q": 3})
    vectorised("add s, A[3, i]*A.T[i, 1]", {"A": matrix, "s": 0.0})
    square = np.random.default_rng(6).normal(size=(N, N))
    vectorised("add B[i, i], B[i, 0]", {"B": square}, "1 to n - 1")


def test_complex_numbers() -> None:
    z = X + 1j * Y
    vectorised("add z[i], w[i]*w[i]\nadd s, z[i]", {"z": z, "w": z[::-1].copy(), "s": 1j})
    vectorised("rot z[i].re, z[i].im, 0.25\nadd s, z[i].im", {"z": z, "s": 0.5})
    assert "`z[i]` and `z[i].re`" in reason("conj z[i]\nadd z[i].re, 1", {"z": z})


def test_steps_and_directions() -> None:
    for head in (
        "0 to n - 1 step 3",
        "n - 1 downto 0",
        "n - 2 downto 1 step 2",
        "k to n - 1 step k",
    ):
        vectorised("add y[i], x[n - 1 - i]\nadd s, y[i]", {"x": X, "y": Y, "s": 0.0, "k": 2}, head)


# ---------------------------------------------------------------- dependences


def test_a_loop_that_reads_ahead_is_vectorised_one_way() -> None:
    """Backwards it reads what the iteration before has changed: there it is a recurrence."""
    vectorised("add x[i], x[i + 1]", {"x": X}, "0 to n - 2", ways=1)
    verdicts = explain(loop("add x[i], x[i + 1]", {"x": X}, "0 to n - 2"))
    assert [(v.direction, v.vectorised) for v in verdicts] == [
        ("forwards", True),
        ("backwards", False),
    ]


def test_prefix_sums() -> None:
    vectorised("add x[i], x[i - 1]", {"x": X}, "1 to n - 1")
    vectorised("add x[i], y[i]\nadd z[i], x[i - 1]", {"x": X, "y": Y, "z": X + 1}, "1 to n - 1")


@wide
def test_sums_into_neighbours_are_made_in_order() -> None:
    """As a stencil's adjoint makes them: each element gets its terms in the iterations' order."""
    body = "add y[i - 1], x[i]\nadd y[i], x[i]*3\nsub y[i + 2], x[i]\nadd y[i - 1], 0.1"
    for head in ("1 to n - 3", "n - 3 downto 1", "1 to n - 3 step 2", "k to n - 3 step k"):
        ways = 2 if "k" not in head else 0
        watch = agree(loop(body, {"x": X, "y": Y, "k": 1}, head), {"x": X, "y": Y, "k": 1})
        assert sum(map(bool, watch.ticks.values())) == ways
    body = "if x[i] > 0\nadd y[i - 1], x[i]\nelse\nsub y[i - 1], 2\nend\nadd y[i], x[i]"
    vectorised(body, {"x": X, "y": Y}, "1 to n - 1")


def test_pieces_end_before_what_they_read_was_written() -> None:
    vectorised("add x[i], x[i - 20]", {"x": X}, "20 to n - 1")
    vectorised("add x[i], x[i - d]\nsub x[i - d], 1", {"x": X, "d": 30}, "30 to n - 1")


def test_what_only_the_run_can_tell_apart() -> None:
    """An offset too short for a piece: the loop goes on in ordinary code."""
    for d in (0, 1, 5, 8, 17, 100):
        inputs = {"x": X, "y": Y, "d": d}
        watch = agree(loop("add x[i + d], y[i]\nadd x[i], 1", inputs, "0 to n - 101"), inputs)
        assert bool(watch.ticks.get("_loop_3")) == (d >= 8)


def test_halves_and_reversals() -> None:
    vectorised("swap x[i], x[n - 1 - i]", {"x": X}, "0 to n // 2 - 1")
    vectorised("swap x[2*i], x[2*i + 1]", {"x": X}, "0 to n // 2 - 1")
    vectorised("add x[i], x[i + n // 2]", {"x": X}, "0 to n // 2 - 1")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "swap x[i], x[i + 1]",
            "`x[i]` changes what an iteration 1 before has changed as `x[i + 1]`",
        ),
        ("add x[i], x[i - 3]", "`x[i - 3]` reads what an iteration 3 before"),
        ("sub x[i], x[i - 1]", "an iteration goes on from `x[i - 1]`"),
        ("add s, s2*x[i]\nadd s2, s", "an iteration goes on from `s2` and `s`"),
        ("add x[i64(y[i])], x[i64(y[i]) + i]", "`x[i64(y[i]) + i]` may be `x[i64(y[i])]` of"),
        ("add s, sum(x)", None),
        ("add x[0:2], y[i]", "it changes `x` and uses more of it than an element"),
        ("push x[i], k", "iterations share the stack `k`"),
        ("alloc t: f64[2] = x[i]\nfree t = x[i]", "`t` is an array or a stack"),
        ("for j = 0 to 1\nadd x[i], y[j]\nend", "it holds another loop"),
        ("extern forward\nprint x[i]\nend", "it holds `print`"),
    ],
)
def test_reasons(body: str, why: str | None) -> None:
    text = "func main(x: f64[n], y: f64[n], s: f64, s2: f64, k: stack[f64])\n"
    text += "    for i = 3 to n - 2\n" + body + "\n    end\n"
    verdict = next(v for v in explain(rvm.assemble(text)) if v.span.line == 2)
    assert verdict.vectorised == (why is None)
    assert why is None or why in verdict.reason


@pytest.mark.parametrize(
    ("begin", "test", "count", "stop", "last"),
    [
        (1, "k < n, k > 1", "inc k", "end", "n"),
        (1, "n > k, 1 < k", "inc k", "end", "n"),
        (0, "k <= n - 3, k > 0", "add k, 3", "end", "n"),
        (299, "k >= 0, k <= 298", "dec k", "end", "-1"),
        (299, "k > 5, k != 299", "sub k, 6", "end", "5"),
        (0, "not (k >= n), not (k == 0)", "inc k", "end", "n"),
    ],
)
def test_other_loops_that_count(begin: int, test: str, count: str, stop: str, last: str) -> None:
    """The conditions of a `while` may be any comparisons with bounds."""
    text = f"""
func main(x: f64[n], y: f64[n])
    alloc k: i64 = {begin}
    while {test}
        add x[k], y[n - 1 - k]
        {count}
    {stop}
    free k = {last}
"""
    watch = agree(rvm.assemble(text), {"x": X, "y": Y})
    assert sorted(map(bool, watch.ticks.values())) == [True, True]


def test_a_loop_that_lands_wrongly() -> None:
    text = """
func main(x: f64[n])
    alloc k: i64
    while k < n, k > 0 and k != 150
        inc x[k]
        inc k
    end
    free k = n
func other(x: f64[n])
    alloc k: i64 = 3
    while k < n, k > 7
        inc x[k]
        inc k
    end
    free k = n
"""
    program = rvm.assemble(text)
    (one, two) = (explain(program, [name])[0] for name in ("main", "other"))
    assert not one.vectorised and "do not compare what it counts" in one.reason
    assert two.vectorised
    for name in ("main", "other"):
        seen = []
        for engine in (LAW, "vector"):
            m = Machine(program, name, x=X.copy(), engine=engine)
            with pytest.raises(rvm.RvmError) as caught:
                m.run()
            seen.append((str(caught.value), m.time, bits(m)))
        assert seen[0] == seen[1]


def test_what_does_not_count() -> None:
    text = """
func main(x: f64[n], s: f64)
    while s < 1000, s > 1
        mul s, 2
        inc x[0]
    end
"""
    (verdict,) = explain(rvm.assemble(text))
    assert not verdict.vectorised and "do not compare what it counts" in verdict.reason


# ---------------------------------------------------------------- trouble


def failing(body: str, inputs: dict[str, Any], code: str, head: str = "0 to n - 1") -> None:
    """A loop fails on both engines at the same place and time, after vectorised pieces."""
    program = loop(body, inputs, head)
    watch = agree(program, inputs)
    assert watch.ticks["_loop_3"] > 0
    with pytest.raises(rvm.RvmError) as caught:
        program.main(**copied(inputs), engine="vector")
    assert caught.value.code == code


def test_the_failing_iteration_is_found() -> None:
    a = np.arange(N)
    failing("add a[i], 100 // (i - 201)", {"a": a}, "R005")
    failing("add y[i], x[i + 100]", {"x": X, "y": Y}, "R003")
    failing("add y[i], x[b[i]]", {"x": X, "y": Y, "b": np.where(a == 150, N, a)}, "R003")
    failing("mul y[i], x[i]", {"x": np.where(a == 177, 0.0, 1 + X * X), "y": Y}, "R007")
    failing(
        "alloc t: f64 = x[i]\nadd t, y[i]\nfree t = x[i]", {"x": X, "y": (a > 99) * 1.0}, "R001"
    )
    failing("if a[i] > 0\nneg a[i]\nend a[i] < 0 and i != 90", {"a": a + 1}, "R002")
    failing("add a[i], i64(x[i])", {"a": a, "x": np.where(a == 80, 1e30, X)}, "R009")


def test_a_failing_call_leaves_the_arguments_alone() -> None:
    x, y = X.copy(), Y.copy()
    program = loop("add y[i], x[i + 100]", {"x": X, "y": Y})
    with pytest.raises(rvm.RvmError):
        program.main(x=x, y=y, engine="vector")
    assert x.tobytes() == X.tobytes()
    assert y.tobytes() == Y.tobytes()


def test_residues_are_counted() -> None:
    body = "alloc t: f64\nadd t, x[i]\nadd t, 3.3\nsub t, x[i]\nsub t, 3.3\nfree t"
    program = loop(body, {"x": X})
    seen = {}
    for engine in (LAW, "vector"):
        m = Machine(program, x=X.copy(), engine=engine)
        m.run()
        seen[engine] = m.erased_bits
    assert seen["reference"] == seen["vector"] > 0


def test_a_nan_passes_for_a_nan() -> None:
    x = np.where(np.arange(N) % 40 == 7, np.nan, X)
    body = "alloc t: f64 = x[i]\nadd t, 3.3\nadd y[i], t\nsub t, 3.3\nfree t = x[i]"
    vectorised(body, {"x": x, "y": Y})


def test_limits_end_a_loop_exactly() -> None:
    program = loop("add y[i], x[i]", {"x": X, "y": Y})
    m = Machine(program, x=X.copy(), y=Y.copy(), engine="vector", max_steps=500)
    with pytest.raises(rvm.RvmError, match="500 steps"):
        m.run()
    assert m.time == 500
    slow = Machine(program, x=X.copy(), y=Y.copy(), engine="reference")
    slow.step(500)
    assert bits(m) == bits(slow)


def test_strict_mode_restores_every_bit() -> None:
    inputs = {"x": X, "y": Y, "a": np.arange(N), "s": 0.5}
    program = loop("add y[i], x[i]\nadd s, y[i]\nxor a[i], i*i", inputs)
    m = Machine(program, **copied(inputs), engine="vector", strict=True)
    start = bits(m)
    m.run().run_back()
    assert bits(m) == start


def test_strict_mode_logs_what_is_dropped() -> None:
    inputs = {"a": np.arange(N), "b": np.arange(N) % 7}
    program = loop("fresh t: i64\nadd t, a[i]\nadd b[i], t\ndrop t", inputs)
    m = Machine(program, **copied(inputs), engine="vector", strict=True)
    start = bits(m)
    m.run()
    # The numbers are small, but for some they are too large for 4 bits.
    assert 0 < m.residue_bytes < 8 * (N - 1) * 1.2
    m.run_back()
    assert bits(m) == start and m.residue_bytes == 0


@examples(25)
@given(st.integers(0, 10**6))
def test_random_loops_in_strict_mode(seed: int) -> None:
    try:
        program = rvm.assemble(loops_random.RandomLoop(seed).text)
    except rvm.RvmError:
        return
    seen = []
    for engine in (LAW, "vector"):
        options = rvm.Options(engine=engine, strict=True)
        m = Machine.start(program, "main", loops_random.inputs(seed), options)
        start = bits(m)
        try:
            m.run()
            seen.append((bits(m), m.time, m.residue_bytes))
            m.run_back()
            assert bits(m) == start
        except rvm.RvmError as error:
            seen.append((str(error), bits(m), m.time))
    assert seen[0] == seen[1]


def test_gradients_run_through_it() -> None:
    text = """
    func loss(l: f64, x: f64[n], w: f64[n])
        for i = 1 to n - 1
            alloc t: f64 = x[i]*w[i] - x[i - 1]
            add l, t*t + sin(t)
            free t = x[i]*w[i] - x[i - 1]
        end
"""
    program = rvm.assemble(text)
    inputs = {"l": 0.0, "x": X, "w": Y}
    grads = {
        engine: program.loss.with_options(engine=engine).grad(**copied(inputs), loss="l")
        for engine in (LAW, "vector")
    }
    for name in ("x", "w"):
        assert grads["vector"][name].tobytes() == grads["reference"][name].tobytes()
    t = X[1:] * Y[1:] - X[:-1]
    by_t = 2 * t + np.cos(t)
    want = np.zeros(N)
    want[1:] += by_t * Y[1:]
    want[:-1] -= by_t
    np.testing.assert_allclose(grads["vector"]["x"], want, rtol=1e-12)
