"""Generic functions from Python, on the command line and in the debugger."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_tools.debug.session import Session
from tools.running import rvm as command
from tools.running import rvm_json

import rvm
from rvm.codec import decode, encode
from rvm.faults import AssemblyError, RvmError, UsageError

TEXT = """
record P[T: real]
    a: T
    s: T[2]
end
func axpy[T: real](y: T[n], a: T, x: T[n])
    add y, a * x
func square[T: number](y: T, x: T)
    with t = x * x
        add y, t
    end
func total[T: number[…]](y: T, x: T[n])
    for i = 0 to n - 1
        add y, x[i]
    end
func on[T: real](p: P[T], y: T)
    add p.a, y * p.s[1]
func heap[T: number](s: stack[T], x: T)
    push x, s
func fold[T: number](s: T, x: T[n], f: func(T, T))
    for i = 0 to n - 1
        call f(s, x[i])
    end
func main(a: f64, b: f32, n: i64)
    call square(a, 2)
    call square(b, 3)
    call square(n, 4)
"""
LIB = rvm.assemble(TEXT)
F4 = np.float32


def of(name: str, **values: Any) -> str:
    """The function for these arguments."""
    return LIB[name].of(**values).name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "values", "made"),
    [
        ("axpy", {"y": np.zeros(2), "a": 1, "x": np.zeros(2)}, "axpy[f64]"),
        ("axpy", {"y": np.zeros(2, F4), "a": 1, "x": np.zeros(2, F4)}, "axpy[f32]"),
        ("axpy", {"y": np.zeros(2, F4), "a": np.float64(1), "x": np.zeros(2, F4)}, "axpy[f32]"),
        ("square", {"y": 0, "x": 3}, "square[i64]"),
        ("square", {"y": 0, "x": 3.5}, "square[f64]"),
        ("square", {"y": 0.5, "x": 3}, "square[f64]"),
        ("square", {"y": 0, "x": 2j}, "square[c128]"),
        ("square", {"y": 0, "x": np.uint8(3)}, "square[u8]"),
        ("total", {"y": 0, "x": np.zeros(3, np.int32)}, "total[i32]"),
        ("total", {"y": np.zeros(2), "x": np.zeros((3, 2))}, "total[f64[:]]"),
        ("on", {"p": {"a": 0, "s": np.zeros(2, F4)}, "y": 1}, "on[f32]"),
        ("on", {"p": {"a": 0, "s": np.zeros(2)}, "y": 1}, "on[f64]"),
        ("heap", {"s": [1, 2], "x": 0}, "heap[i64]"),
        ("heap", {"s": [1.5], "x": 0}, "heap[f64]"),
    ],
)
def test_types_follow_from_values(name: str, values: dict[str, Any], made: str) -> None:
    assert of(name, **values) == made
    LIB[name](**values)


def test_what_does_not_follow() -> None:
    with pytest.raises(AssemblyError, match="`T` is f64 by `y`, and f32 by `x`"):
        LIB.axpy(y=np.zeros(2), a=1, x=np.zeros(2, F4))
    with pytest.raises(AssemblyError, match="takes T: real, and `T` is i64 by"):
        LIB.axpy(y=np.zeros(2, np.int64), a=1, x=np.zeros(2, np.int64))
    with pytest.raises(AssemblyError, match="`f` of `fold` cannot be inferred"):
        LIB.fold(s=0, x=np.zeros(2))
    with pytest.raises(RvmError, match="needs a value for `x`"):
        LIB.axpy(y=np.zeros(2), a=1)
    with pytest.raises(UsageError) as caught:
        LIB.axpy.gradient_program  # noqa: B018
    assert caught.value.code == "U043"
    for name in ("axpy[i64]", "axpy[f64, f64]", "axpy[", "axpy[zz]", "fold[f64, on]"):
        with pytest.raises(AssemblyError):
            LIB[name]
    for name in ("axpz", "axpz[f64]", "main[f64]"):
        with pytest.raises(UsageError, match="has no function"):
            LIB[name]


def test_all_that_functions_have() -> None:
    f = LIB.square
    assert f(0, 3.0).y == 9 and (~f)(9, 3.0).y == 0 and (~~f)(y=1.0, x=2).y == 5
    assert f.grad(loss="y", y=0, x=3.0).x == 6
    assert f.grad({"y": 0, "x": 3.0}, loss="y").x == 6
    assert f.vjp({"y": 2.0}, {"y": 0.0, "x": 3.0}).x == 12
    assert f.jvp({"x": 1.0}, {"y": 0.0, "x": 3.0})[1].y == 6
    assert f.hessian(loss="y", y=0.0, x=3.0).x.x == 2
    assert f.jacobian(y=0.0, x=3.0).y.x == 6
    assert rvm.check_grad(f, loss="y", y=0.0, x=3.0).ok
    assert f.machine(y=0, x=3).run()["y"] == 9
    assert f.with_options(engine="reference")(0, 2).y == 4
    xs = np.arange(4.0)
    assert f.map(y=0.0, x=xs).y.tolist() == [0, 1, 4, 9]
    assert f.map.grad(loss="y", y=0.0, x=xs.astype(F4)).x.tolist() == [0, 2, 4, 6]
    assert rvm.Machine(LIB, "square[u8]", y=0, x=3).run()["y"] == 9
    assert rvm.Machine(LIB, "square", y=0.0, x=1.5).run()["y"] == 2.25
    made = LIB["square[f32]"].gradient_program
    assert "square[f32]_adjoint" in made
    assert repr(f) == "<generic function square(y, x)>" and repr(~f).count("~") == 1


def test_a_function_is_made_once() -> None:
    one, two = LIB["square[ fixed ( 30 ) ]"], LIB["square[fixed(30)]"]
    assert one.program is two.program and one.name == "square[fixed(30)]"
    assert LIB["square[f64]"].program is LIB.program  # main calls it
    assert LIB["square[fixed]"].name == LIB["square[fixed(43)]"].name == "square[fixed]"


def test_a_library_says_what_it_has() -> None:
    assert LIB.generics == ("axpy", "square", "total", "on", "heap", "fold")
    assert [*LIB] == ["main", "square[f64]", "square[f32]", "square[i64]"]
    assert "axpy" in LIB and "axpy" in dir(LIB) and "axpy[f64]" not in LIB
    more = LIB.having("axpy[f32]", "fold[f64, square]")
    assert {"main", "axpy[f32]", "fold[f64, square[f64]]"} < {*more}
    assert {"axpy[f32]", "axpy[u8]"} - {*more.having("axpy[f64]")} == {"axpy[u8]"}
    with pytest.raises(UsageError):
        LIB.having("nothing")


def test_files_hold_functions_for_types() -> None:
    more = LIB.having("axpy[f32]")
    read = rvm.Library(decode(encode(more)))
    assert read == more and not read.generics
    assert read["axpy[f32]"](np.ones(1, F4), 2, np.ones(1, F4)).y == [3]
    assert [*pickle.loads(pickle.dumps(more))] == [*more]


def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "g.rasm"
    path.write_text(TEXT + ";! run axpy[f32](y=[1, 2], a=2, x=[1, 1]) -> y=[3, 4]\n"
                    ";! run square(y=0, x=1.5) -> y=2.25\n", encoding="utf-8")  # fmt: skip
    np.save(tmp_path / "x.npy", np.ones(2, F4))
    file = str(path)
    fixed = command("run", file, "-f", "axpy[fixed(30)]", "y=[1]", "a=2", "x=[1]").stdout
    assert fixed.startswith("axpy[fixed(30)]: ")
    for values, name in (
        (("y=0", "x=3"), "square[i64]"),
        (("y=0", "x=2.5"), "square[f64]"),
        (("y=0", "x=2j"), "square[c128]"),
        (("y=1'u8", "x=2"), "square[u8]"),
    ):
        assert command("run", file, "-f", "square", *values).stdout.startswith(f"{name}: ")
    values = ("y=[0,0]", "a=2", f"x=@{tmp_path / 'x.npy'}")
    assert command("run", file, "-f", "axpy", *values).stdout.startswith("axpy[f32]: ")
    assert command("grad", file, "-f", "square", "y=0", "x=1.5", "--loss", "y").stdout
    assert command("trace", file, "-f", "square[u8]", "y=0", "x=3").stdout.startswith("square[u8]")
    checks = rvm_json("check", file)["checks"]
    assert sum(c["what"].startswith("line ") for c in checks) == 2
    assert "did you mean `axpy`" in command("run", file, "-f", "axpi", code=2).stderr
    out = tmp_path / "g.rbc"
    command("asm", file, "-f", "axpy[f32]", "-o", str(out), "--verify")
    assert "axpy[f32]" in rvm.load(out)
    assert "axpy[f32]" not in rvm.load(path)


def test_values_choose_the_types_of_a_generic_entry(tmp_path: Path) -> None:
    path = tmp_path / "g.rasm"
    path.write_text("func main[T: number](y: T, x: T)\n    add y, x\n")
    assert command("run", str(path), "y=1", "x=2").stdout.startswith("main[i64]")
    assert command("run", str(path), "y=1", "x=2.5").stdout.startswith("main[f64]")
    assert rvm.Machine(rvm.load(path), y=1, x=2j).run()["y"] == 1 + 2j
    path.write_text("entry main[f32]\n" + path.read_text())
    assert command("run", str(path), "y=1", "x=2").stdout.startswith("main[f32]")


@pytest.mark.parametrize("place", ["10", "square", "square[f32]"])
def test_breakpoints_in_generic_text(place: str) -> None:
    session = Session(LIB.program, "main", {"a": 0.0, "b": 0.0, "n": 0})
    session.break_at(place)
    met = []
    session.resume()
    while not session.machine.finished:
        met.append(session.machine.state.top.code.name)
        session.resume()
    every = ["square[f64]", "square[f32]", "square[i64]"]
    assert met == ([place] if place in every else every)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_generic_functions_are_pickled(protocol: int) -> None:
    lib = pickle.loads(pickle.dumps(LIB, protocol))
    assert lib == LIB and lib.generics == LIB.generics
    assert set(lib.having("axpy[f32]")) == set(LIB.having("axpy[f32]"))
    given = {"y": np.ones(2), "a": 2, "x": np.ones(2)}
    for made in (LIB.axpy, ~LIB.axpy, LIB.axpy.with_options(engine="reference")):
        again = pickle.loads(pickle.dumps(made, protocol))
        assert np.array_equal(again(**given).y, made(**given).y)
