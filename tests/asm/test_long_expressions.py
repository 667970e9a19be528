"""Chains of operators that are too long for one instruction: their parts are held in ancillas."""

from __future__ import annotations

import random
import struct
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from rvm_asm import assemble, disassemble
from sizes import thin, wide

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing

NAMES = "abcdefgh"
VALUES = {n: (-1) ** k * 1.1**k * 10.0 ** (3 * k - 9) for k, n in enumerate(NAMES)}
"""Of such sizes that another order of a sum has another value."""
HEAD = f"func f(y: f64, {', '.join(f'{n}: f64' for n in NAMES)})\n    "


def chain(size: int, signs: str = "+") -> tuple[str, list[str], list[str]]:
    """A chain of operators with its terms and signs."""
    rng = random.Random(size)
    terms = [rng.choice(NAMES) for _ in range(size)]
    between = [rng.choice(signs) for _ in terms[1:]]
    text = terms[0] + "".join(f" {s} {t}" for s, t in zip(between, terms[1:], strict=True))
    return text, terms, between


def from_left(terms: list[str], signs: list[str]) -> float:
    total = VALUES[terms[0]]
    for sign, term in zip(signs, terms[1:], strict=True):
        total += VALUES[term] if sign == "+" else -VALUES[term]
    return total


@thin
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("size", [100, 101, 1000])
def test_a_sum_is_the_one_from_left_to_right(size: int, engine: str) -> None:
    """To the bit, and back; with its gradient, which counts the terms."""
    text, terms, signs = chain(size, "+-")
    f = rvm.assemble(f"{HEAD}add y, {text}\n").f.with_options(engine=engine)
    done = f(y=0.0, **VALUES)
    assert done.y == from_left(terms, signs)
    assert (~f)(**done).y == 0.0
    times = Counter(t if s == "+" else f"-{t}" for s, t in zip(["+", *signs], terms, strict=True))
    slope = f.grad(y=0.0, **VALUES, loss="y")
    assert [slope[n] for n in NAMES] == [times[n] - times[f"-{n}"] for n in NAMES]


@wide
def test_ten_thousand_terms() -> None:
    text, terms, signs = chain(10_000)
    f = rvm.assemble(f"{HEAD}add y, {text}\n").f
    assert f(y=0.0, **VALUES).y == from_left(terms, signs)
    assert f(y=0.0, **VALUES, strict=True).y == from_left(terms, signs)


def test_bytecode_and_disassembly() -> None:
    program = assemble(f"{HEAD}add y, {chain(1000)[0]}\n")
    assert decode(encode(program)) == program
    assert encode(assemble(disassemble(program))) == encode(program)


def test_zeros_keep_their_sign() -> None:
    """As an ancilla does that is made with its value, and none to which it is added."""
    lib = rvm.assemble("func f(y: f64[n], x: f64[n])\n    sub y, " + " + ".join(["x"] * 300))
    done = lib.f(y=np.zeros(2), x=np.array([-0.0, 1.0]))
    assert [struct.pack("<d", v) for v in done.y] == [struct.pack("<d", v) for v in (0.0, -300.0)]


@thin
@pytest.mark.parametrize(
    "lines, y",
    [
        ("alloc t: f64 = {0}\nadd y, 2 * t\nfree t = {0}", 2000.0),
        ("add y, sqrt({0} + 24)", 32.0),
        ("add y, ({0}) / ({0}) + (1 - ({0}))", -998.0),
        ("call g(y, {0})", 1000.0),
        ("alloc b: bool = {1}\nadd y, choose(b, 1, 0)\nfree b = {1}", 1.0),
        ("sub y, v[i64({0}) - 1000]", -7.0),
        ("add y, f64(i64({0}) % 7)", 6.0),
        ("add v[1], {0}\nadd y, v[1]\nsub v[1], {0}", 1000.0),
    ],
)
def test_where_long_chains_may_stand(lines: str, y: float) -> None:
    chain, both = " + ".join(["x"] * 1000), " and ".join(["x > 0"] * 300)
    f = rvm.assemble(
        f"func f(y: f64, x: f64, v: f64[n])\n{lines.format(chain, both)}\n\n"
        "func g(y: f64, x: f64)\n    add y, x\n"
    ).f
    done = f(y=0.0, x=1.0, v=np.array([7.0, 0.0]))
    assert done.y == y
    assert (~f)(**done).y == 0.0


@pytest.mark.parametrize(
    "line, code",
    [
        ("add y, y + {}", "A013"),
        ("add y, {} + y", "A013"),
        ("add v[0], v[0] + {}", "A013"),
        ("add v[len(v) - 1], v[0] + {}", "A046"),  # which may be one place
        ("call g(x, {})", "A046"),
        ("add y, choose(y > 0, {}, 1)", "A046"),  # of which nothing may be computed before
        ("alloc b: bool = y > 0 and {} > 0\nfree b = y > 0 and {} > 0", "A046"),
        ("if {} > 0\nend", "A046"),
        ("add y, {}", "A040"),
    ],
)
def test_where_they_are_refused(line: str, code: str) -> None:
    term = "x" if code != "A040" else "1.5'f32"
    text = line.replace("{}", " + ".join(["x", *[term] * 999]))
    with pytest.raises(rvm.AssemblyError) as caught:
        rvm.assemble(
            f"func f(y: f64, x: f64, v: f64[n])\n{text}\n\nfunc g(y: f64, x: f64)\n    add y, x\n"
        )
    assert caught.value.code == code


def test_what_nests_otherwise_is_refused() -> None:
    for text in ("(" * 200 + "1" + ")" * 200, "x + (" * 200 + "x" + ")" * 200, "-" * 300 + "x"):
        with pytest.raises(rvm.AssemblyError, match="nests deeper than 100 levels"):
            rvm.assemble(f"func f(y: f64, x: f64)\n    add y, {text}\n")


@wide
def test_functions_in_python(tmp_path: Path) -> None:
    path = tmp_path / "long_sum.py"
    sums = " + ".join(f"x[{k % 3}]" for k in range(800))
    path.write_text(f"import rvm\n\n@rvm.reversible\ndef f(y, x):\n    y += {sums}\n")
    spec = spec_from_file_location("long_sum", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.array([1.0, 2.0, 3.0])
    assert module.f(0.0, x).y == 267 + 2 * 267 + 3 * 266
    assert list(module.f.grad(y=0.0, x=x, loss="y").x) == [267, 267, 266]


def test_janus_and_pure_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.ja"
    path.write_text(
        f"procedure main()\n  int x\n  int y\n  x += 3\n  y += {' + '.join('x' * 900)}\n"
    )
    assert rvm.load(path)["main"]()["y"] == 2700
    path = tmp_path / "a.pure"
    path.write_text(f"def f(x: f64) = {' + '.join('x' * 200)}\n")
    assert rvm.load(path).f(out=0.0, x=1.0)["out"] == 200.0
    path.write_text(f"def f(x: f64) = {' + '.join('x' * 5000)}\n")
    with pytest.raises(rvm.AssemblyError, match="deeper than 200 levels"):
        rvm.load(path)
