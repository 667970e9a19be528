"""Machine code computes once what calls have in common: of which loops, from which arrays."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from sizes import some

import rvm
from rvm.emit.llvm.module import ModulePrinter
from rvm.engines import executing
from rvm.engines.native.compiler import MOST_TURNS
from rvm.image import Code, image_of
from rvm.ir.function import plan_of
from rvm.ir.kind import Kind
from rvm.ir.short import LONG, MOST, short
from rvm.ir.steady import steady

pytest.importorskip("llvmlite")
ENGINES = executing(loops=False)
JACOBIAN = Path(__file__).parents[2] / "examples" / "derivatives" / "jacobian.rasm"
STRAIGHT = "func f(y: f64, x: f64)\n    add y, sin(x)\n"
LOOPS = """
func g(y: f64, x: f64[n])
    for i = 0 to n - 1
        add y, x[i]
    end
"""


def code_of(text: str, name: str, undo: bool = False) -> Code:
    return image_of(rvm.assemble(text)).code(name, undo)


def written_out(text: str, name: str, undo: bool = False) -> int:
    code = code_of(text, name, undo)
    return len(short(code, plan_of(code, True, 0).flow))


def with_loop(line: str, body: str) -> str:
    head = f"{STRAIGHT}{LOOPS}\nfunc main(y: f64, x: f64[n], m: i64)\n"
    return f"{head}    {line}\n        {body}\n    end\n"


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "for k = 0 to 1",
        f"for k = 1 to {MOST}",
        "for k = 3 downto 1",
        "for k = 0 to 7 step 2",
        "for k = -5 to -4",
    ],
)
def test_loops_of_a_few_calls_are_written_out(line: str, undo: bool) -> None:
    assert written_out(with_loop(line, "call f(y, x[0])"), "main", undo) == 1


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize(
    ("line", "body"),
    [
        (f"for k = 0 to {MOST}", "call f(y, x[0])"),  # one too many
        ("for k = 0 to 0", "call f(y, x[0])"),  # nothing to share
        ("for k = 0 to m", "call f(y, x[0])"),  # who knows how many
        ("for k = 0 to 1", "add y, x[k]"),  # LLVM decides
        ("for k = 0 to 1", "call g(y, x)"),  # loops in what it calls
    ],
)
def test_others_are_not(line: str, body: str, undo: bool) -> None:
    assert written_out(with_loop(line, body), "main", undo) == 0


def test_nor_are_long_ones() -> None:
    lines = "    add y, sin(x)\n" * (LONG // 2)
    loop = "    for k = 0 to 1\n        call f(y, x)\n    end\n"
    text = f"func f(y: f64, x: f64)\n{lines}\nfunc main(y: f64, x: f64)\n{loop}"
    assert written_out(text, "main") == 0


def root_of(code: Code) -> str:
    """A code's root as LLVM has it after its optimisations."""
    from rvm.engines.native.compiler import compiler

    llvm = compiler()
    text = ModulePrinter(code, Kind(0, frozenset())).text(llvm.triple, llvm.layout)
    return str(llvm.optimised(text)).split("\ndefine ")[1]


def turns_in(root: str) -> tuple[int, int]:
    """How often sine and cosine of an angle are called, and how often they are in line."""
    return root.count("@rvm_turn("), root.count(" fptosi double ")


def test_rows_of_a_jacobian_share_what_they_can() -> None:
    root = root_of(image_of(rvm.load(JACOBIAN).program).code("jacobian", False))
    # Two gradients at one point: one square root, and one sine and cosine.
    assert turns_in(root) == (0, 1)
    assert len(re.findall(r"call .*@llvm.sqrt", root)) == 1


@pytest.mark.parametrize("angles", [1, MOST_TURNS, MOST_TURNS + 1])
def test_sine_and_cosine_of_a_few_angles_are_in_line(angles: int) -> None:
    lines = (f"    add y, sin(x[{k}]) * cos(x[{k}])\n" for k in range(angles))
    code = code_of("func f(y: f64, x: f64[n])\n" + "".join(lines), "f")
    assert turns_in(root_of(code)) == ((0, angles) if angles <= MOST_TURNS else (angles, 0))


CALLED = """
func f(y: f64, x: f64[n])
    add y, x[0]

func g(y: f64, a: f64[n], b: f64[n])
    call f(y, a)
    {}

func own(y: f64, a: f64[n])
    alloc t: f64[n] = a
    call f(y, t)
    free t = a
"""


@pytest.mark.parametrize(
    ("line", "name", "in_f", "in_main"),
    [
        ("call f(y, b)", "g", {1}, {1, 2}),
        ("add b[0], y", "g", {1}, {1}),
        ("call f(b[0], a)", "g", {1}, {1}),
        ("add a[0], y", "g", set(), {2}),  # f's is one that its caller changes
        ("add b[0], 1.0\n    call f(y, b)", "g", set(), {1}),  # one of two is changed
        ("call f(y, b)", "own", set(), {1}),  # an ancilla comes and goes
    ],
)
def test_arrays_are_steady_that_no_one_changes(
    line: str, name: str, in_f: set[int], in_main: set[int]
) -> None:
    found = steady(code_of(CALLED.format(line), name))
    assert (found["f"], found[name]) == (in_f, in_main)


def random_program(rng: random.Random) -> str:
    """Functions that call those before them, on arrays that some of them change."""
    texts = []
    for k in range(4):
        lines = []
        for _ in range(rng.randint(2, 5)):
            y, x = rng.sample("abc", 2)
            i, j = rng.randrange(2), rng.randrange(2)
            lines.append(f"add {y}[{i}], {rng.randint(1, 3)} * {x}[{j}]")
            if k:
                three = ", ".join(rng.sample("abc", 3))
                call = f"call f{rng.randrange(k)}({three})"
                n = rng.randint(1, MOST)
                lines += (
                    [f"for k = 1 to {n}", f"    {call}", "end"] if rng.random() < 0.5 else [call]
                )
        if rng.random() < 0.5:
            # So that one of them never changes.
            lines = [x for x in lines if not x.startswith("add c")]
        texts.append(
            f"func f{k}(a: i64[2], b: i64[2], c: i64[2])\n" + "".join(f"    {x}\n" for x in lines)
        )
    return "\n".join(texts)


@pytest.mark.parametrize("seed", range(12))
@some
def test_random_calls_agree(seed: int) -> None:
    program = rvm.assemble(random_program(random.Random(seed)))
    found = []
    for engine in ENGINES:
        values = {name: np.arange(2) + 3 * k for k, name in enumerate("abc")}
        f = program["f3"].with_options(engine=engine)
        found.append([v.tolist() for v in f(**values).values()])
        back = (~f)(**values)
        assert [v.tolist() for v in back.values()] == [[0, 1], [3, 4], [6, 7]]
    assert all(x == found[0] for x in found)
