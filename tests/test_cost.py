"""What instructions cost: against counts made by hand, and shapes against NumPy's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import rvm
from rvm.accounts.cost import Cost, broadcast, shape_of
from rvm.engines.evaluate import evaluate
from rvm.expr import Apply, Const, Expr, Place
from rvm.isa import FUNCTIONS, apply
from rvm.types import F64, I64, Array, with_rank

INPUTS: dict[str, tuple[str, Any]] = {
    "y": ("f64", 0.0),
    "a": ("f64", 0.5),
    "b": ("f64", 2.0),
    "z": ("c128", 0j),
    "k": ("i64", 2),
    "c": ("bool", True),
    "g": ("log64", 3.0),
    "h": ("log64", 2.0),
    "x": ("f64[n]", np.ones(4)),
    "w": ("f64[n]", np.ones(4)),
    "A": ("f64[m, n]", np.ones((3, 4))),
    "B": ("f64[n, m]", np.ones((4, 3))),
    "v": ("f64[m]", np.ones(3)),
    "i": ("i64[p]", np.array([0, 1])),
    "s": ("stack[f64]", [1.0]),
}


def cost_of(text: str, at: int = 0) -> Cost:
    """What instruction number `at` of some lines costs when they are run."""
    header = ", ".join(f"{name}: {t}" for name, (t, _) in INPUTS.items())
    body = "".join(f"    {line}\n" for line in text.split("; "))
    program = rvm.assemble(f"keep none\nfunc f({header})\n{body}")
    values = {k: v.copy() if hasattr(v, "copy") else v for k, (_, v) in INPUTS.items()}
    machine = rvm.Machine(program, "f", **values)
    counts = machine.count()
    machine.run()
    ((n, found),) = next(counts.nodes()).costs(at)
    assert n == 1
    return found


@pytest.mark.parametrize(
    ("line", "work"),
    [
        ("add y, a", {"ADDS f64": 1}),
        ("add y, a * b + 2", {"ADDS f64": 2, "MULTS f64": 1}),
        ("add y, sin(a) * sin(a)", {"ADDS f64": 1, "MULTS f64": 1, "NLOPS f64": 1}),
        ("mul y, a", {"MULTS f64": 1}),
        ("mul g, h", {"MULTS log64": 1}),
        ("inc k", {"ADDS i64": 1}),
        ("xor k, 5", {"ADDS i64": 1}),
        ("swap y, a", {"MOVES f64": 1}),
        ("neg y", {"ADDS f64": 1}),
        # a cosine and a sine, two products and a sum for each of the two numbers
        ("rot y, a, b", {"NLOPS f64": 2, "MULTS f64": 4, "ADDS f64": 2}),
        ("cswap c, y, a", {"MOVES f64": 1}),
        ("add y, f64(k)", {"ADDS f64": 1, "MOVES i64": 1}),
        ("add y, select(a < b, a, b)", {"ADDS f64": 2, "MOVES f64": 1}),
        ("add z, z.re * 2", None),
        ("add z, complex(a, b)", {"ADDS c128": 1, "MOVES f64": 1}),
        ("add y, z.re * 2", {"ADDS f64": 1, "MULTS f64": 1}),
        # both sides of an `and`, whether or not the second is needed
        ("xor c, a > 9 and 1 / b > 0", {"ADDS bool": 2, "ADDS f64": 2, "MULTS f64": 1}),
        # arrays: every element
        ("add x, w", {"ADDS f64": 4}),
        ("add x, w * a + 1", {"ADDS f64": 8, "MULTS f64": 4}),
        ("add x[1:3], w[0:2] * a", {"ADDS f64": 2, "MULTS f64": 2}),
        ("add A, x", {"ADDS f64": 12}),
        ("add A[:, k], v", {"ADDS f64": 3}),
        ("add A[:, k + 1], v", {"ADDS f64": 3, "ADDS i64": 1}),
        ("add x[k], w[k + 1]", {"ADDS f64": 1, "ADDS i64": 1}),
        ("add y, sum(x)", {"ADDS f64": 5}),
        ("add y, sum(x * w)", {"ADDS f64": 5, "MULTS f64": 4}),
        ("add y, dot(x, w)", {"MULTS f64": 4, "ADDS f64": 5}),
        ("add x, B @ v", {"MULTS f64": 12, "ADDS f64": 12 + 4}),
        ("add v, w @ B", {"MULTS f64": 12, "ADDS f64": 12 + 3}),
        ("add A, outer(v, x)", {"MULTS f64": 12, "ADDS f64": 12}),
        ("add x, scan_left(w)", {"ADDS f64": 8}),
        ("add x[0:2], gather(w, i)", {"ADDS f64": 2, "MOVES f64": 2}),
        ("add x, scatter(w[0:2], i, k + 2) * a", {"ADDS f64": 6, "MULTS f64": 4, "ADDS i64": 1}),
        ("neg x", {"ADDS f64": 4}),
        ("swap x, w", {"MOVES f64": 4}),
        ("add k, len(x)", {"ADDS i64": 1, "MOVES i64": 1}),
        ("add k, dim(A, 0) * dim(A, 1)", {"ADDS i64": 1, "MULTS i64": 1, "MOVES i64": 2}),
        ("push y, s; pop y, s", {"MOVES f64": 1}),
    ],
)
def test_work_of_an_instruction(line: str, work: dict[str, int] | None) -> None:
    if work is None:
        with pytest.raises(rvm.AssemblyError):
            cost_of(line)
        return
    assert {" ".join(kind): n for kind, n in cost_of(line).work.items()} == work


@pytest.mark.parametrize(
    ("text", "at", "checks", "overwritten", "sent"),
    [
        ("add y, a", 0, 0, 64, 0),
        ("mul y, b", 0, 1, 64, 0),
        ("swap y, a", 0, 0, 128, 0),
        ("rot y, a, b", 0, 0, 128, 0),
        ("not c", 0, 0, 1, 0),
        ("add x, w", 0, 0, 4 * 64, 0),
        ("swap x[0:2], w[0:2]", 0, 0, 2 * 2 * 64, 0),
        # two elements that only the run can tell apart
        ("swap x[k], x[k // 2]", 0, 1, 128, 0),
        ("alloc t: f64 = a; free t = a", 0, 0, 0, 0),
        ("alloc t: f64 = a; free t = a", 1, 1, 64, 0),
        ("alloc t: c128[3, k]; free t", 0, 0, 0, 0),
        ("alloc t: c128[3, k]; free t", 1, 1, 3 * 2 * 128, 0),
        ("push y, s; pop y, s", 0, 0, 64, 0),
        ("push y, s; pop y, s", 1, 1, 64, 0),
        ("if c;     inc k; end", 0, 0, 0, 0),
        ("if c;     inc k; end", 2, 1, 1, 0),
        ('extern forward;     print "{} {}", y, x; end', 0, 0, 5 * 64, 5 * 64),
        ("extern forward;     assert c; end", 0, 1, 0, 0),
        ("extern backward;     print y; end", 0, 0, 0, 0),
    ],
)
def test_checks_and_bits(text: str, at: int, checks: int, overwritten: int, sent: int) -> None:
    found = cost_of(text, at)
    assert (found.checks, found.overwritten, found.sent) == (checks, overwritten, sent)


# ---------------------------------------------------------------- shapes


def operands() -> list[tuple[Expr, Any]]:
    """Places of each rank with values, and some numbers."""
    vector, matrix = np.ones(3), np.ones((3, 3))
    values: list[Any] = [vector, np.ones(5), matrix, np.ones((2, 3)), np.ones((3, 1)), 2.0]
    out: list[tuple[Expr, Any]] = [
        (Place(k, (), with_rank(F64, np.ndim(v))), v) for k, v in enumerate(values)
    ]
    index = np.array([0, 2, 1, 1])
    out.append((Place(len(out), (), Array(I64, 1)), index))
    out.append((Const(5, I64), 5))
    return out


def applications() -> Iterator[tuple[str, tuple[tuple[Expr, Any], ...]]]:
    for name, row in FUNCTIONS.items():
        for args in product(operands(), repeat=row.arity):
            yield name, args


def _broadcasts(small: Any, large: Any) -> bool:
    """Whether an array is one that another may have come from by broadcasting."""
    try:
        return np.broadcast_shapes(np.shape(small), np.shape(large)) == np.shape(large)
    except ValueError:
        return False


def test_every_function_has_the_shape_that_numpy_gives_it() -> None:
    regs = [v for _, v in operands()]
    seen: dict[str, int] = {}
    for name, args in applications():
        try:
            node = apply(name, *(e for e, _ in args))
            with np.errstate(all="ignore"):
                result = evaluate(node, regs)
        except Exception:  # not for these types, or of lengths that do not go together
            continue
        if name == "sum_like" and not _broadcasts(args[1][1], args[0][1]):
            continue
        if np.ndim(result):
            sizes = {e: np.shape(v) if np.ndim(v) else v for e, v in args}
            assert shape_of(node, sizes) == np.shape(result), (name, node)
            seen[name] = seen.get(name, 0) + 1
    assert len(seen) > 60
    assert {"@", "outer", "gather", "scatter", "transpose", "sum_like", "spread_like"} <= set(seen)


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 1)), ((1,), (0,)), ((4, 1, 2), (3, 1)), ((1, 1), ())]
)
def test_shapes_broadcast_as_numpys(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert broadcast(shapes) == np.broadcast_shapes(*shapes)


def test_an_expression_with_a_nested_apply_is_measured_inside() -> None:
    inner = Apply("*", (Place(0, (), Array(F64, 1)), Const(2.0, F64)), Array(F64, 1))
    assert shape_of(Apply("neg", (inner,), Array(F64, 1)), {inner.args[0]: (7,)}) == (7,)
