"""Programs of Python functions that another process has kept: the same, or made anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python.test_random import NAMES, inputs
from python.writer import written
from rvm_asm import kept as programs
from rvm_asm.build import Build
from sizes import part, sized

import rvm
from rvm.codec import encode
from rvm.expr import Const
from rvm.host import kept
from rvm.library.generic import GenericFunction
from rvm.program import Program
from rvm.verify.matching import Matched, matched

Builds = list[Program]
Reversible = GenericFunction[...]
TEXT = """
def f(y, x):
    with rvm.ancilla(x * RATE) as t:
        y += t * t
"""


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builds]:
    """The programs that are built while a test runs; what is kept is in the test's folder."""
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    # Whoever edits rvm while its tests run does not mean these.
    monkeypatch.setattr(rvm, "BEGAN", 1 << 63)
    programs._environment.cache_clear()
    found: Builds = []
    build = Build.program

    def program(self: Build, *args: Any, **options: Any) -> Program:
        made = build(self, *args, **options)
        found.append(made)
        return made

    monkeypatch.setattr(Build, "program", program)
    yield found
    programs._environment.cache_clear()


def function(text: str = TEXT, **names: object) -> Reversible:
    """A function that nothing in this process knows yet."""
    return rvm.reversible.source(text, {**NAMES, **names})


def facts(program: Program) -> dict[str, Matched]:
    known = ((f.name, program.cache.get((matched, f.name))) for f in program.functions)
    return {name: fact for name, fact in known if isinstance(fact, Matched)}


# ---------------------------------------------------------------- what is found is what was made


@sized
def test_what_is_found_is_what_was_made(builds: Builds) -> None:
    """To the positions of instructions, the facts about frees, the text and the bits of a run."""
    known = 0
    for seed in range(part(500)):
        text, _ = written(seed)
        first, second = function(text), function(text)
        one, other = (f.of(**inputs(seed)) for f in (first, second))
        assert len(builds) == 1, text
        program, again = one.program, other.program
        assert (again.functions, again.entry) == (program.functions, program.entry)
        for f, g in zip(program.functions, again.functions, strict=True):
            assert f.spans == g.spans
        words = [(s.text, s.words) for s in program.sources]
        assert [(s.text, s.words) for s in again.sources] == words and words[0][1] is not None
        assert facts(program) == facts(again)
        known += bool(facts(again))
        outs = [f(**inputs(seed)) for f in (one, other)]
        assert repr(outs[0]) == repr(outs[1]) and outs[0].info == outs[1].info
        for name, value in outs[0].items():
            assert np.asarray(value).tobytes() == np.asarray(outs[1][name]).tobytes()
        back = [(~f)(**out) for f, out in zip((one, other), outs, strict=True)]
        assert repr(back[0]) == repr(back[1]) and back[0].info == back[1].info
        assert encode(rvm.assemble(second.origin.source(again, other.name))) == encode(again)
        builds.clear()
    assert known


def test_another_process_finds_it(tmp_path: Path) -> None:
    """Whatever order its sets have."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import sys, rvm\n"
        "from rvm import Array, f64\n"
        "from rvm_asm.build import Build\n"
        "made, build = [], Build.program\n"
        "Build.program = lambda self: made.append(1) or build(self)\n"
        "@rvm.record\nclass Body:\n    pos: Array[f64, 2]\n    mass: f64\n"
        "@rvm.reversible\ndef g(y, x):\n    y += 3 * x\n"
        "@rvm.reversible\ndef f(b: Body, y, s, k=2):\n"
        "    with rvm.compute() as r:\n        t: f64 = 2 * b.mass\n    g(y, t)\n    r.undo()\n"
        "    for i in range(k):\n        g(~g, y) if False else g(y, b.pos[i])\n".replace(
            "g(~g, y) if False else ", ""
        )
        + "    rvm.push(y, s)\n    rvm.pop(y, s)\n"
        "import numpy as np\n"
        "print(f(Body(np.ones(2), 4.0), 1.0, [1.5]).y, len(made))\n"
    )
    said = []
    for seed in ("1", "2"):
        environ = {**os.environ, "RVM_CACHE_DIR": str(tmp_path / "kept"), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, str(file)], env=environ, capture_output=True, text=True
        )
        assert not done.stderr, done.stderr
        said.append(done.stdout.split())
    assert said == [["31.0", "1"], ["31.0", "0"]]


# ---------------------------------------------------------------- what it depends on


@pytest.mark.parametrize(
    "other",
    [
        function(TEXT, RATE=0.25),
        function(TEXT.replace("t * t", "t * t * t")),
        function("# a line further down\n" + TEXT),
        function(TEXT.replace("(y, x)", "(y, z)").replace("x * RATE", "z * RATE")),
        function(TEXT.replace("(y, x)", "(y, x: f64)")),
    ],
)
def test_other_functions_are_built(builds: Builds, other: Reversible) -> None:
    function()(0.0, 2.0)
    assert len(builds) == 1
    other(0.0, 2.0)
    assert len(builds) == 2
    assert builds[0] != builds[1] or builds[0].functions[0].spans != builds[1].functions[0].spans


def test_types_of_arguments_are_told_apart(builds: Builds) -> None:
    f = function("def f(y, x):\n    y += x\n")
    g = function("def f(y, x):\n    y += x\n")
    for given in ((1, 2), (1.0, 2.0), (np.zeros(2), np.ones(2)), (np.float32(1), np.float32(2))):
        count = len(builds)
        one, other = f(*given), g(*given)
        assert len(builds) == count + 1
        assert type(one.y) is type(other.y) and np.array_equal(one.y, other.y)


def test_called_functions_and_records_are_looked_at(builds: Builds) -> None:
    text = "def f(y: f64, x: f64):\n    g(y, x)\n"
    found = []
    for by in ("2", "3", "2"):
        g = function(f"def g(y: f64, x: f64):\n    y += {by} * x\n")
        found.append(function(text, g=g)(0.0, 1.0).y)
    assert found == [2.0, 3.0, 2.0] and len(builds) == 2
    lib = "func h(y: f64, x: f64)\n    add y, x * {}\n"
    for by in ("2", "3", "2"):
        h = rvm.assemble(lib.format(by)).h
        found.append(function("def f(y: f64, x: f64):\n    h(y, x)\n", h=h)(0.0, 1.0).y)
    assert found[3:] == [2.0, 3.0, 2.0]


def test_warnings_are_given_each_time(builds: Builds) -> None:
    text = "def f(x: i64):\n    if x > 3:\n        x -= 4\n"
    for _ in range(2):
        with pytest.warns(rvm.AssemblyWarning, match="A077"):
            function(text).program
    assert len(builds) == 2


def test_errors_are_reported_each_time(builds: Builds, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(rvm.AssemblyError, match="A013"):
            function("def f(x: f64):\n    x += x\n").program
    assert not builds and not list(tmp_path.iterdir())


@pytest.mark.usefixtures("clean_tables")
def test_where_users_define_functions_nothing_is_kept(builds: Builds, tmp_path: Path) -> None:
    @rvm.function(name="bent")
    def bent(x):  # type: ignore[no-untyped-def]
        "A parabola."
        return x * x

    for _ in range(2):
        assert function()(0.0, 2.0).y == 2.25
    assert len(builds) == 2 and not list(tmp_path.iterdir())


def test_without_a_folder_or_with_newer_sources_nothing_is_kept(
    builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVM_CACHE_DIR", "")
    function().of(0.0, 1.0)
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(rvm, "BEGAN", 1)
    programs._environment.cache_clear()
    function().of(0.0, 1.0)
    assert len(builds) == 2 and not list(tmp_path.iterdir())


# ---------------------------------------------------------------- damaged and hostile files


def planted(builds: Builds, tmp_path: Path) -> tuple[Path, bytes]:
    function().of(0.0, 2.0)
    builds.clear()
    (file,) = tmp_path.iterdir()
    return file, file.read_bytes()[kept.DIGEST :]


def test_damaged_files_are_ignored(builds: Builds, tmp_path: Path) -> None:
    file, _ = planted(builds, tmp_path)
    sound = file.read_bytes()
    rng = np.random.default_rng(3)
    for k in rng.integers(0, len(sound), 12):
        file.write_bytes(sound[:k] + bytes([sound[k] ^ 1]) + sound[k + 1 :])
        assert function()(0.0, 2.0).y == 2.25
    file.write_bytes(sound[: len(sound) // 2])
    assert function()(0.0, 2.0).y == 2.25
    assert len(builds) == 13


def test_a_file_of_ours_is_verified(builds: Builds, tmp_path: Path) -> None:
    """Whatever is in it, under a hash that is right."""
    file, body = planted(builds, tmp_path)
    (program,) = (function().of(0.0, 2.0).program,)
    assert not builds
    f = program.functions[0]
    leak = replace(program, functions=(replace(f, code=f.code[:-1], spans=f.spans[:-1]),))
    typed = replace(f.code[1], args=(f.code[1].args[0], Const(1, rvm.types.I64)))
    wrong = replace(program, functions=(replace(f, code=(f.code[0], typed, f.code[2])),))
    planted_bodies = [b"", b"\xff" * 40, body[:-1] + b"x"]
    for bad in (leak, wrong):
        bare = encode(replace(bad, sources=()))
        planted_bodies.append(len(bare).to_bytes(8, "little") + bare)
    size = int.from_bytes(body[:8], "little")
    planted_bodies += [
        body[: 8 + size] + text for text in (b"0;0;", b"9;2;", b"0;2", b"0;-1;", b"\xff")
    ]
    for k, bad_body in enumerate(planted_bodies):
        kept.keep(file.name, bad_body)
        assert kept.found(file.name) == bad_body
        assert function()(0.0, 2.0).y == 2.25
        assert len(builds) == k + 1


def test_it_stays_small(builds: Builds, tmp_path: Path) -> None:
    """The text, which may be long, is not in it."""
    function(TEXT + "#" * 100_000).of(0.0, 2.0)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 4_000
