"""Loops that undo what loops did: of what is seen copies are kept, and nothing else is taken so."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import rvm_pure
from rvm_asm.disassemble import disassemble
from sizes import thin

import rvm
from rvm.transform.changes import Changes

FUNCTIONS = """
func half(x: f64)
    mul x, 0.5
    add x, 0.3

func scale(x: f64, k: i64)
    mul x, 0.5
    add x, f64(k)
"""
PAIRS = {
    "calls and uncalls": ("for i = 1 to n: call half(x)", "for i = 1 to n: uncall half(x)"),
    "another variable": ("for i = 1 to n: call half(x)", "for k = 1 to n: uncall half(x)"),
    "the other way": ("for i = 1 to n: call half(x)", "for i = n to 1 step -1: uncall half(x)"),
    "by number": (
        "for i = 1 to n: call scale(x, i)",
        "for k = n to 1 step -1: uncall scale(x, k)",
    ),
    "uncalls first": ("for i = 1 to n: uncall half(x)", "for i = n to 1 step -1: call half(x)"),
    "elements": ("for i = 0 to n - 1: call half(z[i])", "for k = 0 to n - 1: uncall half(z[k])"),
    "elements the other way": (
        "for i = n - 1 to 0 step -1: call scale(z[i], i)",
        "for k = 0 to n - 1: uncall scale(z[k], k)",
    ),
    "updates": ("for i = 1 to n: mul x, 0.5", "for i = 1 to n: div x, 0.5"),
    "updates by number": (
        "for i = 1 to n: mul x, 0.5; add x, f64(i)",
        "for i = n to 1 step -1: sub x, f64(i); div x, 0.5",
    ),
    "a map": ("map half(z)", "unmap half(z)"),
}
OTHERS = {
    "fewer numbers": ("for i = 1 to n: call half(x)", "for i = 2 to n: uncall half(x)"),
    "in the same order": ("for i = 1 to n: call scale(x, i)", "for i = 1 to n: uncall scale(x, i)"),
    "other numbers": (
        "for i = 1 to n: call scale(x, i)",
        "for k = n to 1 step -1: uncall scale(x, k + 1)",
    ),
    "a bound that has changed": (
        "for i = 1 to n: call half(x)",
        "add n, 1; for i = 1 to n: uncall half(x)",
    ),
    "what is not the inverse": ("for i = 1 to n: call half(x)", "for i = 1 to n: call half(x)"),
    "a neighbour": (
        "for i = 1 to n - 1: add z[i], 0.5 * z[i - 1]",
        "for i = 1 to n - 1: sub z[i], 0.5 * z[i - 1]",
    ),
    "one element": ("for i = 1 to n: call scale(z[0], i)", "for i = 1 to n: uncall scale(z[0], i)"),
}


def lines(text: str) -> str:
    """`for i = a to b: this; that` as lines."""
    out = []
    for stat in text.split("; for"):
        head, colon, body = stat.partition(": ")
        if not colon:
            out += head.split("; ")
            continue
        head = head if head.startswith("for") else f"for{head}"
        out += [head, *(f"    {line}" for line in body.split("; ")), "end"]
    return "".join(f"    {line}\n" for line in out)


def assembled(there: str, back: str) -> Any:
    return rvm.assemble(
        FUNCTIONS + "\nfunc f(y: f64, x: f64, z: f64[m], n: i64)\n"
        f"{lines(there)}    add y, x + sum(z)\n{lines(back)}    add y, x\n"
    )


def keeps(program: Any) -> bool:
    return ".kept" in disassemble(program, positions=False)


@thin
@pytest.mark.parametrize("pair", PAIRS)
def test_what_a_loop_brings_back_is_what_it_was(pair: str) -> None:
    """In runs both ways, for every number of iterations, and with its gradient."""
    lib = assembled(*PAIRS[pair])
    assert keeps(lib)
    for n in (0, 1, 60):
        z = np.linspace(1.0, 2.0, n)
        at = {"y": 0.0, "x": 1.1, "z": z.copy(), "n": n}
        out = lib.f(**at)
        assert out.x == 1.1 and np.array_equal(out.z, z) and out.n == n
        back = (~lib.f)(**out)
        assert back.x == 1.1 and np.array_equal(back.z, z) and abs(back.y) < 1e-13
    at = {"y": 0.0, "x": 1.1, "z": np.linspace(1.0, 2.0, 3), "n": 3}
    gradient, exact = lib.f.grad(at, loss="y"), lib.f.jvp({"x": 1.0}, at)[1].y
    assert gradient.x == pytest.approx(exact, rel=1e-13)


@thin
@pytest.mark.parametrize("pair", OTHERS)
def test_loops_that_only_look_alike_are_not_inverses(pair: str) -> None:
    """Nothing is copied, and an ancilla that such a loop leaves is not freed."""
    assert not keeps(assembled(*OTHERS[pair]))
    there, back = (t.replace("x)", "t)").replace("x,", "t,") for t in OTHERS[pair])
    made, freed = "alloc t: f64 = 1.0", "free t = 1.0"
    if "z[" in there:
        there, back = (t.replace("z[", "t[") for t in OTHERS[pair])
        made, freed = "alloc t: f64[3] = 1.0", "free t = 1.0"
    f = rvm.assemble(
        f"{FUNCTIONS}\nfunc f(n: i64)\n    {made}\n{lines(there)}{lines(back)}    {freed}\n"
    ).f
    with pytest.raises(rvm.RvmError) as caught:
        f(n=3)
    assert caught.value.code == "R001"


def copies(program: Any) -> list[str]:
    """The registers of which copies are made, one for each place where that is done."""
    f = program.program.function("f")
    made = (f.registers[i.args[0].reg].name for i in f.code if i.op == "alloc")
    return sorted(name.split(".")[0] for name in made if ".kept" in name)


@thin
@pytest.mark.parametrize(("outer", "inner"), [*pairwise([*PAIRS, "elements"])])
def test_what_is_undone_in_several_loops_is_copied_once(outer: str, inner: str) -> None:
    """Loops that go on undoing are no use of it: if nothing else follows, there is no copy."""
    there = lines(PAIRS[outer][0]) + lines(PAIRS[inner][0])
    back = lines(PAIRS[inner][1]) + lines(PAIRS[outer][1])
    head, read = (
        f"{FUNCTIONS}\nfunc f(y: f64, x: f64, z: f64[m], n: i64)\n",
        "    add y, x + sum(z)\n",
    )
    z = np.linspace(1.0, 2.0, 20)
    want = rvm.assemble(head + there + read).f(y=0.0, x=1.1, z=z.copy(), n=20).y
    used = rvm.assemble(head + there + read + back + "    add y, x\n")
    assert copies(used) == sorted({"z" if "z" in PAIRS[k][0] else "x" for k in (outer, inner)})
    out = used.f(y=0.0, x=1.1, z=z.copy(), n=20)
    assert (out.x, out.y) == (1.1, want + 1.1) and np.array_equal(out.z, z)
    head = head.replace(" x:", " a:").replace(" z:", " b:")
    made = "    alloc x: f64 = a\n    alloc z: f64[m] = b\n"
    ended = rvm.assemble(head + made + there + read + back + "    free z = b\n    free x = a\n")
    assert copies(ended) == [] and ended.f(y=0.0, a=1.1, b=z, n=20).y == want


def test_states_of_pure_functions_are_not_copied() -> None:
    """They are exchanged with new values in loops, and undone before they end."""
    f = rvm_pure.functions(
        "def f(u: f64[n], c: f64, k: i64) = "
        "sum(loop u = u for i < k do map (j. u[j] + c * (u[n - 1 - j] - u[j])) (iota n))"
    )["f"]
    assert "swap" in disassemble(f.program) and not keeps(f.program)


UPDATES = ("add x, 3", "sub x, i", "xor x, n", "neg x", "rol x, 1", "add z[i], 5", "neg z[i]",
           "add z[i], i", "xor z[i], z[0]", "add x, z[i]", "add z[0], x", "xor z[i], x",
           "swap z[i], z[0]", "add z[i + 1], z[i]", "swap x, z[i]")  # fmt: skip
BACK = {"add": "sub", "sub": "add", "rol": "ror"}
HEADS = ("for i = 1 to n", "for i = n to 1 step -1", "for i = 1 to n - 1", "for i = 2 to n",
         "for i = n to 2 step -1", "for i = 1 to n step 2", "for i = 1 to m")  # fmt: skip


def undone(line: str) -> str:
    op, _, rest = line.partition(" ")
    return f"{BACK.get(op, op)} {rest}"


@pytest.mark.parametrize("many", [50, pytest.param(800, marks=pytest.mark.deep)])
def test_what_is_taken_to_be_restored_is(many: int) -> None:
    """Random loops over whole numbers, which lose nothing, and those that may undo them."""
    rng, seen = random.Random(many), 0
    for _ in range(many):
        body = [rng.choice(UPDATES) for _ in range(rng.randint(1, 2))]
        back = [undone(line) for line in reversed(body)]
        if rng.random() < 0.2:
            back[0] = rng.choice(UPDATES)
        first = rng.choice(HEADS)
        second = first if rng.random() < 0.4 else rng.choice(HEADS)
        program = rvm.assemble(
            "func f(x: i64, z: i64[k], n: i64, m: i64)\n"
            + lines(f"{first}: {'; '.join(body)}")
            + lines(f"{second}: {'; '.join(back)}")
        )
        changes = Changes(program.program)
        names = [r.name for r in program.program.function("f").registers[:2]]
        back_again = [names[k] for k in changes.restored("f") if k < 2]
        seen += {line.split()[1].partition("[")[0].rstrip(",") for line in body} <= {*back_again}
        for n in (0, 1, 2, 5):
            z = np.array([7, -2, 5, 11, 3, 8, 1])
            try:
                out = program.f(x=4, z=z.copy(), n=n, m=n)
            except rvm.RvmError:
                continue
            assert "x" not in back_again or out.x == 4, (first, second, body, back, n)
            assert "z" not in back_again or np.array_equal(out.z, z), (first, second, body, back, n)
    assert seen > many / 10
