"""`@rvm.reversible` around its language: sources, closures, copies, commands, checkers.

After a change of the table, `python tests/python/test_door.py` writes rvm/library/words.pyi anew.
"""

from __future__ import annotations

import linecache
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from copy import copy, deepcopy
from importlib.metadata import entry_points
from keyword import iskeyword
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from click.testing import CliRunner
from rvm_asm import assemble
from rvm_tools.cli import cli
from sizes import wide

import rvm
from rvm import Array, f64, i64
from rvm.codec import encode
from rvm.engines import executing
from rvm.library.frontends import GROUP, ReadingOptions
from rvm.library.vocabulary import words
from rvm.types import SCALARS

COMMAND = "tests/python/test_door.py"
FACTOR = 3.0


@rvm.reversible
def scale_into(y: f64, x: f64):
    """y += 3 x"""
    y += FACTOR * x


@rvm.reversible
def leapfrog(q: Array[f64, "n"], p: Array[f64, "n"], dt: f64, steps: i64):
    for _ in range(steps):
        q += p * dt
        p -= q * dt


@rvm.reversible
def square_into(y, x):
    y += x * x


def test_it_is_what_a_function_of_a_program_is() -> None:
    text = """
func leapfrog(q: f64[n], p: f64[n], dt: f64, steps: i64)
    for _ = 0 to steps - 1
        add q, p * dt
        sub p, q * dt
    end
"""
    lib = rvm.assemble(text)
    q, p = np.array([1.0, 2.0]), np.array([0.5, 0.0])
    given = {"q": q, "p": p, "dt": 0.01, "steps": 50}
    for f in (leapfrog, ~leapfrog, leapfrog.with_options(engine="python")):
        other = ~lib.leapfrog if f.undo else lib.leapfrog
        ours = f(**{**given, "q": q.copy(), "p": p.copy()})
        theirs = other(**{**given, "q": q.copy(), "p": p.copy()})
        np.testing.assert_array_equal(ours.q, theirs.q)
    np.testing.assert_array_equal(
        leapfrog.grad(**given, loss="q[0]").p, lib.leapfrog.grad(**given, loss="q[0]").p
    )
    found = leapfrog.hessian(**given, loss="q[0]", wrt=["dt"])
    assert found["dt"]["dt"] == lib.leapfrog.hessian(**given, loss="q[0]", wrt=["dt"])["dt"]["dt"]
    m = leapfrog.machine(**given)
    assert m.seek(10) == 10 and m["q"][0] > 1
    assert m.program.sources[0].name == __file__
    np.testing.assert_array_equal(
        leapfrog.map(q=q[:, None], p=p[:, None], dt=0.01, steps=50).q,
        lib.leapfrog.map(q=q[:, None], p=p[:, None], dt=0.01, steps=50).q,
    )
    assert list(leapfrog.gradient_program) and leapfrog.parameters == ("q", "p", "dt", "steps")
    assert leapfrog.source.startswith("func leapfrog(q: f64[n]")


def test_unannotated_functions_have_derivatives() -> None:
    assert square_into.grad(y=0.0, x=3.0, loss="y").x == 6.0
    assert square_into.grad({"y": 0.0, "x": 3.0}, loss="y").x == 6.0
    assert square_into.jvp({"x": 1.0}, y=0.0, x=3.0)[1].y == 6.0
    np.testing.assert_array_equal(
        square_into.of(0.0, 1.0).map(y=0.0, x=np.array([1.0, 2.0])).y, [1.0, 4.0]
    )
    with pytest.raises(rvm.UsageError, match="U043"):
        square_into.source
    assert "add y, x * x" in square_into.source_of(1, 2)


@rvm.reversible
def fold(s, x, f):
    for i in range(len(x)):
        f(s, x[i])


@rvm.reversible
def twice(s, x, g, times=2):
    for _ in range(times):
        fold(s, x, g)


def test_functions_are_arguments() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert fold(0.0, x, square_into).s == 14.0
    assert fold(0.0, x, ~square_into).s == (~fold)(0.0, x, f=square_into).s == -14.0
    assert twice(0.0, x, square_into).s == 28.0 and twice(0.0, x, square_into, times=1).s == 14.0
    assert fold(np.int32(0), x.astype(np.int32), square_into).s == 14  # of other types
    np.testing.assert_array_equal(fold.grad(s=0.0, x=x, f=square_into, loss="s").x, 2 * x)
    assert fold.of(0.0, x, square_into).parameters == ("s", "x")
    assert fold.machine(s=0.0, x=x, f=square_into).run()["s"] == 14.0
    assert "call `square_into" in fold.source_of(0.0, x, square_into)

    @rvm.reversible
    def both(s, t, x):
        fold(s, x, square_into)
        fold(t, x, f=~scale_into)

    text = """
func both(s: f64, t: f64, x: f64[n])
    call fold(s, x, square_into)
    call fold(t, x, scale_out)

func fold(s: f64, x: f64[n], f: func(f64, f64))
    for i = 0 to n - 1
        call f(s, x[i])
    end

func square_into(y: f64, x: f64)
    add y, x * x

func scale_out(y: f64, x: f64)
    sub y, 3 * x
"""
    ours, theirs = both(0.0, 0.0, x), rvm.assemble(text).both(s=0.0, t=0.0, x=x)
    assert (ours.s, ours.t) == (theirs.s, theirs.t) == (14.0, -18.0)
    with pytest.raises(rvm.AssemblyError, match="`f` is called, and was given no function"):
        fold(0.0, x, 3)


@rvm.reversible
def axpy(y: f64, a: f64, x: f64):
    y += a * x


@rvm.reversible
def squared(y: f64, w: Array[f64, "k"], x: Array[f64, "k"]):
    y += (w @ x) ** 2


def test_maps_and_derivatives_are_called() -> None:
    @rvm.reversible
    def there(v: Array[f64, "n"], w: Array[f64, "n"]):
        rvm.map(axpy, v, 2, w)

    @rvm.reversible
    def back(v: Array[f64, "n"], w: Array[f64, "n"]):
        rvm.map(~axpy, v, a=2, x=w)

    w = np.array([1.0, 2.0])
    np.testing.assert_array_equal(there(np.ones(2), w).v, [3, 5])
    np.testing.assert_array_equal(back(np.ones(2), w).v, [-1, -3])

    @rvm.reversible
    def slopes(w: Array[f64, "k"], x: Array[f64, "n", "k"], g: Array[f64, "k"]):
        rvm.map(rvm.gradient_of(squared), 0.0, w, x, bars=(1, g, None))

    @rvm.reversible
    def along(w: Array[f64, "k"], x: Array[f64, "k"], d: Array[f64, "k"], r: f64, s: f64):
        rvm.tangent_of(squared)(r, w, x, dots=(s, d, None))

    @rvm.reversible
    def opposite(w: Array[f64, "k"], x: Array[f64, "k"], g: Array[f64, "k"], y: f64):
        rvm.adjoint_of(squared)(y, w, x, bars=[1, g, None])
        (~rvm.adjoint_of(squared))(y, w, x, bars=[1, g, None])
        (~rvm.gradient_of(squared))(y, w=w, x=x, bars=(1, g, None))

    rows = np.arange(6.0).reshape(3, 2)
    want = sum(2 * (w @ r) * r for r in rows)
    np.testing.assert_allclose(slopes(w, rows, np.zeros(2)).g, want)
    np.testing.assert_allclose((~slopes)(w, rows, want.copy()).g, 0)
    row, product = rows[1].copy(), w @ rows[1]
    np.testing.assert_allclose(along(w, row, np.ones(2), 0.0, 0.0).s, 2 * product * 5)
    np.testing.assert_allclose(opposite(w, row, np.zeros(2), product**2).g, -2 * product * row)
    for line, message in WRONG_CALLS.items():
        wrong = rvm.reversible.source(f"def wrong(y, x):\n    {line}\n", dict(globals()))
        with pytest.raises(rvm.AssemblyError, match=message):
            wrong(0.0, 1.0)


WRONG_CALLS = {
    "rvm.gradient_of(axpy)(y, 2, x)": "takes `bars=`",
    "rvm.gradient_of(~axpy)(y, 2, x, bars=(1, y))": "takes a reversible function",
    "rvm.gradient_of(y)(y, 2, x, bars=(1, y))": "takes a reversible function",
    "rvm.map(y, x)": "`y` is not a reversible function",
    "rvm.map()": "takes a function and arguments",
    "rvm.gradient_of(axpy)": "gradient_of",
}


def test_blocks_that_are_undone_may_share_a_name() -> None:
    @rvm.reversible
    def twice(y: f64, x: f64):
        with rvm.compute() as r:
            t: f64 = x**2
        y += t
        r.undo()
        with rvm.compute() as r:
            x += 1
            with rvm.compute() as r2:
                t: f64 = x
            y += t
            r2.undo()
        y += 10 * x
        r.undo()

    out = twice(0.0, 3.0)  # 9, and 4 more inside of the block, which its undo takes away; 10 * 4
    assert (out.y, out.x) == (49.0, 3.0)
    back = (~twice)(**twice(0.5, 3.0))
    assert (back.y, back.x) == (0.5, 3.0)


def test_numbers_of_types_that_python_has_not_choose_a_functions_types() -> None:
    """`Fixed` and `LogNumber` that one function returns can be passed to the next, and back."""

    @rvm.reversible
    def add_square(y, x):
        y += x * x

    @rvm.reversible
    def scale(y, x):
        y *= x

    @rvm.reversible
    def take(y, s):
        rvm.pop(y, s)

    for bits in (43, 20, 0):
        x, zero = rvm.Fixed(3 << bits, bits), rvm.Fixed(0, bits)
        out = add_square(zero, x)
        assert (out.y, type(out.y), out.y.frac) == (9, rvm.Fixed, bits)
        assert (~add_square)(**out).y == 0
        assert take(zero, [x, out.y]).y == 9
        assert add_square.grad(y=zero, x=x, loss="y").x == 6
    assert scale(rvm.LogNumber(2.5), rvm.LogNumber(0.5)).y.log == 3.0
    with pytest.raises(
        TypeError, match=r"raw number, the number times 2\*\*43 as an int, not of 0.5"
    ):
        rvm.Fixed(0.5)  # type: ignore[arg-type]


def test_strict_results_go_back_by_their_log() -> None:
    out = scale_into.with_options(strict=True)(0.1, 0.7)
    back = (~scale_into)(out)
    assert (back.y, back.x) == (0.1, 0.7)


# ---------------------------------------------------------------- what it sees outside


def test_closures_are_constants_and_are_checked_again() -> None:
    k = 2.0

    @rvm.reversible
    def add_k(y: f64):
        y += k * FACTOR

    assert add_k(1.0).y == 7.0
    k = 5.0
    assert add_k(1.0).y == 16.0
    first = add_k.program
    assert add_k.program is first

    def adder(by: float) -> Any:
        @rvm.reversible
        def add(y: f64):
            y += by

        return add

    assert adder(1.0)(0.0).y == 1.0 and adder(2.0)(0.0).y == 2.0


def test_functions_that_are_called_may_be_replaced(monkeypatch: Any) -> None:
    @rvm.reversible
    def calls(y: f64, x: f64):
        scale_into(y, x)

    assert calls(0.0, 1.0).y == 3.0
    assert calls.program is not scale_into.program
    other = rvm.reversible.source("def scale_into(y: f64, x: f64):\n    y -= x\n", {"f64": f64})
    monkeypatch.setitem(globals(), "scale_into", other)
    assert calls(0.0, 1.0).y == -1.0


# ---------------------------------------------------------------- where sources are


def test_a_text_is_a_source() -> None:
    f = rvm.reversible.source(
        "def f(x):\n    x += K\n\ndef g(x):\n    f(x)\n    x -= 1\n", {"K": 4}
    )
    with pytest.raises(rvm.AssemblyError, match="ordinary function"):
        f(1)
    text = "import rvm\n@rvm.reversible\ndef f(x):\n    x += K\n\ndef g(x):\n    f(x)\n    x -= 1\n"
    assert rvm.reversible.source(text, {"K": 4})(1).x == 4
    with pytest.raises(rvm.UsageError, match="no function"):
        rvm.reversible.source("x = 1\n")


def test_what_has_no_source_says_so() -> None:
    names: dict[str, Any] = {"rvm": rvm}
    exec("@rvm.reversible\ndef f(x):\n    x += 1\n", names)
    with pytest.raises(rvm.UsageError, match=r"U048.*source"):
        names["f"](1)
    with pytest.raises(rvm.UsageError, match="lambda"):
        rvm.reversible(lambda x: None)(1)
    with pytest.raises(rvm.UsageError, match="takes a function"):
        rvm.reversible(3)  # type: ignore[call-overload]
    assert "def f" in str(names["f"].origin.function) or names["f"].__name__ == "f"


def test_cells_of_a_notebook_are_sources() -> None:
    """As IPython does: a cell's text is in `linecache` under a name of its own."""
    names: dict[str, Any] = {"rvm": rvm, "__name__": "__main__"}
    for k, by in enumerate((1, 10)):
        text = f"@rvm.reversible\ndef cell(x):\n    x += {by}\n"
        name = f"<ipython-input-{k}-abc>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), names)
        assert names["cell"](0).x == by


NESTED = '''
import rvm

class Home:
    def make(self):
        def inner():
            """An odd docstring
that is not indented."""
            @rvm.reversible
            def f(x: rvm.f64):
                "tête-à-tête"
                x += 1; x -= "é" and 0.5
            return f
        return inner()
'''


def test_functions_are_found_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "nested_home.py").write_text(NESTED.replace('"é" and 0.5', "é"))
    sys.path.insert(0, str(tmp_path))
    try:
        import nested_home  # type: ignore[import-not-found]

        with pytest.raises(rvm.AssemblyError) as caught:
            nested_home.Home().make()(1.0)
    finally:
        sys.path.remove(str(tmp_path))
    where = caught.value.diagnostics[0].where
    assert (where.line, where.text[where.column - 1 : where.end - 1]) == (12, "é")


def test_a_file_that_has_changed_since(tmp_path: Path) -> None:
    file = tmp_path / "changing_file.py"
    file.write_text("import rvm\n\n@rvm.reversible\ndef f(x, y):\n    x += 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import changing_file  # type: ignore[import-not-found]

        file.write_text("import rvm\n\n\n\n@rvm.reversible\ndef f(x, y):\n    x += 2\n")
        with pytest.raises(rvm.UsageError, match="changed"):
            changing_file.f(1, 2)
    finally:
        sys.path.remove(str(tmp_path))


def test_methods_and_stars_are_refused() -> None:
    class Thing:
        @rvm.reversible
        def f(self, x):
            x += 1

        @rvm.reversible
        def g(*xs):
            pass

    with pytest.raises(rvm.AssemblyError, match="a method is not a reversible function"):
        Thing.f(1, 2)
    with pytest.raises(rvm.AssemblyError, match=r"`\*xs` is not a place"):
        Thing.g()


# ---------------------------------------------------------------- copies


def test_functions_are_pickled_by_name_as_functions_are() -> None:
    for f in (scale_into, ~scale_into, square_into, scale_into.with_options(strict=True)):
        again = pickle.loads(pickle.dumps(f))
        assert again(1.0, 2.0) == f(1.0, 2.0) and again.options == f.options
        assert copy(f)(1.0, 2.0) == deepcopy(f)(1.0, 2.0) == f(1.0, 2.0)
    of = pickle.loads(pickle.dumps(square_into.of(1.0, 2.0)))
    assert of(1.0, 2.0) == square_into(1.0, 2.0)


SCRIPT = """
import rvm
from concurrent.futures import ProcessPoolExecutor
from rvm import f64

@rvm.reversible
def double(y: f64, x: f64):
    y += 2 * x

if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        print(list(r.y for r in pool.map(double, [0.0, 1.0], [3.0, 4.0])))
"""


def test_a_script_runs_and_its_functions_go_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "s.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("[6.0, 9.0]\n", "")


# ---------------------------------------------------------------- the command line

FILE = """
# ;! run double(y=0, x=3) -> y=6
import rvm
from helping_module import HALF
from rvm import f64

@rvm.reversible
def double(y: f64, x: f64):
    y += 2 * x

@rvm.reversible
def pair(a, b):
    a += b
    double(a, HALF)

if __name__ == "__main__":
    raise SystemExit("not run as a script")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    (tmp_path / "prog.py").write_text(FILE)
    (tmp_path / "helping_module.py").write_text("HALF = 0.5\n")
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "bad.py").write_text(FILE.replace("a += b", "a //= b"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("run prog.py y=0 x=3", "y  f64  6.0"),
        ("run prog.py y=6 x=3 --back", "y  f64  0.0"),
        ("run prog.py -f pair a=1.5 b=2.5", "a  f64  5.0"),
        ("grad prog.py y=0 x=3 --loss y", "x          f64   3.0    2.0"),
        ("trace prog.py y=0 x=3", "y += 2 * x"),
        ("check prog.py", "run double(y=0, x=3) -> y=6"),
        ("dis prog.py", "add   y, 2.0 * x"),
        ("asm prog.py --emit=rasm", "func double(y: f64, x: f64)\n    add y, 2 * x"),
        ("asm prog.py --emit=rasm -f 'pair[f64, f64]'", "call double(a, 0.5)"),
        ("run none.py", "U047"),
        ("run bad.py y=0 x=3", "bad.py:13:5"),
    ],
)
def test_commands(folder: Path, command: str, says: str) -> None:
    import shlex

    found = CliRunner(env={"NO_COLOR": "1"}).invoke(cli, shlex.split(command)).output
    assert " ".join(says.split()) in " ".join(found.split()), found


def test_the_printed_program_has_the_same_bytes(folder: Path) -> None:
    import rvm_python

    program = rvm.load("prog.py").having("pair[f64, f64]")
    text = rvm_python.rasm(Path("prog.py").read_text(), "prog.py", functions=["pair[f64, f64]"])
    assert encode(assemble(text)) == encode(program)


def test_the_debugger_steps_through_python(folder: Path) -> None:
    from rvm_tools.debug.console import Console
    from rvm_tools.debug.front import DebugRequest, open_session

    console = Console(open_session(DebugRequest("prog.py", ["a=1.5", "b=2.5"], function="pair")))
    out: list[str] = []
    console.show = lambda line: out.append(line.text)
    for command in ("step", "step", "back"):
        console.execute(command)
    assert any("double(a, HALF)" in line for line in out) and any("prog.py:14" in o for o in out)


@pytest.mark.parametrize("engine", executing())
def test_texts_of_assertions_are_filled(engine: str) -> None:
    @rvm.reversible
    def f(t: i64, v: Array[i64, 2]):
        assert t > 7, f"t is {t} now, v is {v}"

    with pytest.raises(rvm.MachineError) as caught:
        f(5, np.array([1, 2]), engine=engine)
    assert (caught.value.message, caught.value.values) == ("t is 5 now, v is [1 2]", {})
    text = "func g(t: i64)\n extern both\n  assert t > 7, {}\n end\n"
    for written, said, left in (
        ('"t is {} now", t', "t is 5 now", {}),
        ('"t is {}, not {}", t, 8, t + 1', "t is 5, not 8", {"value 3": 6}),
        ('"too small", t', "too small", {"value 1": 5}),
        ('"{} and {{}}", t', "5 and {}", {}),
        ('""', "an assertion does not hold", {}),
    ):
        with pytest.raises(rvm.MachineError) as caught:
            rvm.assemble(text.replace("{}", written, 1)).g(5, engine=engine)
        assert (caught.value.message, caught.value.values) == (said, left)


def test_names_that_a_result_lacks_are_reported_with_those_that_it_has() -> None:
    out = scale_into(1.0, 2.0)
    for error, ask in ((AttributeError, lambda: out.z), (KeyError, lambda: out["z"])):
        with pytest.raises(error, match="the result has no `z`: it has `y`, `x`"):
            ask()
    assert out.get("z") is None and "z" not in out and not hasattr(out, "z")


def test_lengths_in_messages_are_those_that_are_declared() -> None:
    text = "func f(x: i64[m], t: i64[2 * (m + 1), m - 1, 3])\n add t, 1\n"
    shown = r"an i64\[2 \* \(m \+ 1\), m - 1, 3\]"
    with pytest.raises(rvm.InputError, match=f"{shown}: its length on axis 1 must be 2, not 5"):
        rvm.assemble(text).f(x=np.zeros(3, int), t=np.zeros((8, 5, 3), int))
    with pytest.raises(rvm.InputError, match=shown):
        rvm.assemble(text).f(x=np.zeros(3, int), t=1.5)


def test_characters_are_numbers() -> None:
    @rvm.reversible
    def f(x: rvm.u8):
        x += ord("a")

    assert f(1).x == 98


# ---------------------------------------------------------------- checkers

TYPED = """
import numpy as np
import numpy.typing as npt
import rvm
from rvm import Array, Stack, f64, i64


@rvm.record
class Body:
    pos: Array[f64, 2]
    mass: f64


@rvm.reversible
def f(x: Array[f64, "n"], y: f64, s: Stack[i64], b: Body) -> None:
    with rvm.ancilla(x[0] * 2) as t, rvm.ancilla(f64, len(x), 3) as u, rvm.ancilla(like=x) as v:
        y += t + u[0, 0] + v[0] + f64(len(x)) + rvm.f64(i64(3)) + rvm.softplus(y)
    with rvm.compute() as r:
        y += 1
    r.undo()
    if rvm.when(y == 0, y > 1):
        rvm.rot(x[0], x[1], y)
    while rvm.loop(y > 0, y < 3):
        rvm.push(y, s)


a: npt.NDArray[np.float64] = np.zeros(3)
print(f(a, 1.0, [1], Body(a, 1.0)).y)
(~f)(a, 1.0, [1], Body(a, 1.0))
f.grad(x=a, y=1.0, s=[1], b=Body(a, 1.0), loss="y")
"""
WRONG = """
f(a, 1.0)                                               # wrong
f(a, 1.0, [1], Body(a, 1.0), z=2)                       # wrong
f(a, 1.0, [1], Body(a, 1.0)).machines                   # accepted: it may be a result's name
rvm.lod("f.rasm")                                       # wrong
rvm.u9(3)                                               # wrong
rvm.load("f.rasm", include="any")                       # wrong
rvm.load("f.rasm", includes="any", expand=True)
"""


def wrong_lines(said: str) -> list[int]:
    """The lines of `wrong.py` behind those of TYPED that a checker finds an error in."""
    found = {int(n) for n in re.findall(r"wrong\.py:(\d+):.*error", said)}
    return sorted(n - TYPED.count("\n") for n in found)


MISTAKES = [n for n, line in enumerate(WRONG.splitlines(), 1) if "# wrong" in line]


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    (tmp_path / "typed.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(TYPED + WRONG)
    root = Path(rvm.__file__).parents[1]
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {root}\n")
    return tmp_path


@wide
def test_mypy_knows_what_functions_take(typed: Path) -> None:
    api = pytest.importorskip("mypy.api")
    flags = ["--config-file", str(typed / "mypy.ini"), "--follow-imports=silent"]
    flags += ["--cache-dir", str(typed.parent / "mypy-cache")]
    out, _, status = api.run([*flags, str(typed / "typed.py")])
    assert status == 0, out
    out, _, status = api.run([*flags, str(typed / "wrong.py")])
    assert status == 1 and 'arguments "s", "b"' in out and 'argument "z"' in out
    assert wrong_lines(out) == MISTAKES


@wide
def test_pyright_knows_what_functions_take(typed: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    done = subprocess.run([pyright, "typed.py"], capture_output=True, text=True, cwd=typed)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([pyright, "wrong.py"], capture_output=True, text=True, cwd=typed)
    assert wrong_lines(done.stdout) == MISTAKES, done.stdout


def test_the_options_of_front_ends_are_those_that_checkers_know() -> None:
    fronts = [point.load() for point in entry_points(group=GROUP)]
    known = {n: p for f in fronts for n, p in get_type_hints(f).items()}
    common = {"path", "include_path", "includes", "return"}
    assert {n: t for n, t in known.items() if n not in common} == get_type_hints(ReadingOptions)


STUB = Path(rvm.__file__).parent / "library" / "words.pyi"


def words_stub() -> str:
    """What type checkers know of the words of reversible functions; the table has more of them."""
    names = sorted({n for n in words() if not iskeyword(n)} - {*rvm.__all__})
    # A variable with the type Any is not a type to pyright, and an alias of Any cannot be called.
    types = [f"{n} = _any.{n}" for n in names if n in SCALARS]
    rest = [f"{n}: Any" for n in names if n not in SCALARS]
    head = f'"""The words of reversible functions, for type checkers: {COMMAND} writes this."""'
    exported = ["__all__ = [  # noqa: RUF022", *(f'    "{n}",' for n in names), "]"]
    lines = [head, "", "from typing import Any", "", *exported, "", "_any: Any", *types, *rest, ""]
    return "\n".join(lines)


def test_checkers_know_the_words_of_the_table() -> None:
    assert STUB.read_text(encoding="utf-8") == words_stub(), f"{COMMAND} writes it anew"


def test_lengths_in_annotations_hold() -> None:
    @rvm.reversible
    def outer(A: Array[f64, "m", "2 * m"], x: Array[f64, "m"], y: rvm.f64["m"]):
        A[0, :2] += x[:2] + y[:2]

    x = np.ones(2)
    outer(np.zeros((2, 4)), x, x.copy())
    with pytest.raises(rvm.InputError, match="I004"):
        outer(np.zeros((2, 3)), x, x.copy())


def test_texts_are_read_as_utf_8() -> None:
    text = textwrap.dedent(
        """
        def θ_step(θ, ω):
            θ += 2 * ω  # "θ̇"
        """
    )
    out = rvm.reversible.source(text)(1.0, 2.0)
    assert out["θ"] == 5.0


if __name__ == "__main__":
    STUB.write_text(words_stub(), encoding="utf-8")


class Holder:
    @rvm.reversible
    def moved(self, x: i64):
        x += 1


def test_parameters_that_are_refused_are_not_missed_in_the_body() -> None:
    with pytest.raises(rvm.AssemblyError) as caught:
        Holder().moved(1)
    (found,) = caught.value.diagnostics
    assert found.message == "a method is not a reversible function"
