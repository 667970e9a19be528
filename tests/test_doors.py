"""Whatever is wrong with a call from Python is told by an error of the machine, with a way out."""

from __future__ import annotations

import inspect
import pickle
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import rvm
from rvm.engines import executing
from rvm.faults import AssemblyError, UsageError
from rvm.run.machine import OPTION_NAMES

TEXT = """
func f(y: f64, x: f64[n], k: i64)
    for i = 0 to n - 1
        add y, x[i] ** 2
    end

func g[T: real](y: T, x: T[n], k: i64)
    for i = 0 to n - 1
        add y, x[i] ** 2
    end
"""
PYTHON = """
def f(y: rvm.f64, x: rvm.Array[rvm.f64, "n"], k: rvm.i64):
    for i in range(len(x)):
        y += x[i] ** 2
"""
LIBRARY = rvm.assemble(TEXT)
FUNCTIONS = [LIBRARY.f, LIBRARY.g, rvm.reversible.source(PYTHON, {"rvm": rvm})]
SEEDS = {"x": np.ones(2)}
DOORS: dict[str, Callable[..., Any]] = {
    "call": lambda f, **a: f(**a),
    "grad": lambda f, **a: f.grad(loss="y", **a),
    "value_and_grad": lambda f, **a: f.value_and_grad(loss="y", **a),
    "hessian": lambda f, **a: f.hessian(loss="y", **a),
    "taylor": lambda f, **a: f.hessian(loss="y", method="taylor", **a),
    "hvp": lambda f, **a: f.hvp(SEEDS, loss="y", **a),
    "jacobian": lambda f, **a: f.jacobian(of=["y"], **a),
    "jvp": lambda f, **a: f.jvp(SEEDS, **a),
    "vjp": lambda f, **a: f.vjp({"y": 1.0}, **a),
    "pullback": lambda f, **a: f.pullback(**a),
    "machine": lambda f, **a: f.machine(**a),
    "map": lambda f, **a: f.map(**a),
    "map.grad": lambda f, **a: f.map.grad(loss="y", **a),
}
INNARDS = re.compile(r"<class|<tests|dtype\(|dtype=(?!np)|NoneType| object at 0x|array\(\[")


class Thing:
    """No number."""


WRONG: list[dict[str, Any]] = [
    {"x": "a"},
    {"x": None},
    {"x": [[1.0, 2.0], [3.0]]},
    {"y": [[1.0, 2.0], [3.0]]},
    {"y": "a"},
    {"y": Thing()},
    {"x": np.array([1j, 2j])},
    {"x": np.zeros((2, 2, 2))},
    {"k": 1.5},
    {"k": 1j},
    {"k": np.array([None, 1])},
    {"x": {1.0, 2.0}},
    {"wrong": 1},
]


def inputs() -> dict[str, Any]:
    return {"y": 0.0, "x": np.array([3.0, 4.0]), "k": 1}


def told(call: Callable[[], Any], *words: str, hinted: bool = True) -> None:
    """A call raises an error of the machine with these words, and no names of Python's insides."""
    with pytest.raises(rvm.RvmError) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert not INNARDS.search(text), text
    assert caught.value.hint or caught.value.values or not hinted, text


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=["text", "generic", "python"])
def test_wrong_inputs_are_reported_at_every_door(f: Any, door: str) -> None:
    call = DOORS[door]
    for wrong in WRONG:
        (name,) = wrong
        told(lambda wrong=wrong: call(f, **inputs() | wrong), f"`{name}`")
    for name in inputs():
        told(lambda name=name: call(f, **{k: v for k, v in inputs().items() if k != name}))


LOSS = ("grad", "value_and_grad", "hessian")


@pytest.mark.parametrize("f", FUNCTIONS, ids=["text", "generic", "python"])
def test_what_is_requested_is_reported(f: Any) -> None:
    for door in LOSS:
        ask = getattr(f, door)
        told(ask, f"{f.name}.{door}", 'loss="y"')
        told(lambda ask=ask: ask(0.0, np.ones(2), 1, loss="y"), "by name")
        told(lambda ask=ask: ask(3, loss="y"), "not as 3 of type int")
        told(lambda ask=ask: ask(loss="z", **inputs()), "`z`")
        told(lambda ask=ask: ask(loss="x", **inputs()), "`x[0]`")
        told(lambda ask=ask: ask(loss="x[9]", **inputs()), "`x[9]`", "[2]")
        told(lambda ask=ask: ask(loss="k", **inputs()), "`k`", "y, x")
        for odd in ("x[0 1]", "x[0,]", "x[,0]", "x[0,,1]", "x[-1]", "x[1.0]", "x[0][0]", "[0]"):
            told(lambda ask=ask, odd=odd: ask(loss=odd, **inputs()), f"`{odd}` is not a place")
        told(lambda ask=ask: ask(loss="", **inputs()))
        told(lambda ask=ask: ask(loss=None, **inputs()), "None")
        told(lambda ask=ask: ask(loss=["y"], **inputs()), "['y'] of type list")
        told(lambda ask=ask: ask(loss="y", wrt=["z"], **inputs()), "`z`", "y, x")
        told(lambda ask=ask: ask(loss="y", wrt=["k"], **inputs()), "`k`", "y, x")
        told(lambda ask=ask: ask(loss="y", wrt=3, **inputs()), "`wrt`", "y, x")
        told(lambda ask=ask: ask(loss="y", wrt=[["x"]], **inputs()), "['x']")
        ask(loss="y", wrt="x", **inputs())
    told(lambda: f.jacobian(of=3, **inputs()), "`of`", "y, x")
    told(f.map.grad, f"{f.name}.map.grad", 'loss="y"')
    told(lambda: f.hvp(SEEDS, **inputs()), "`loss`")
    many = {"y": 0.0, "x": np.ones((3, 2)), "k": 1}
    told(lambda: f.map.grad(loss="y", wrt=3, **many), "`wrt`")
    told(lambda: f.map.grad(loss=None, **many), "None")
    told(lambda: f.map(block=0, **many), "`block`", hinted=False)


@pytest.mark.parametrize("f", FUNCTIONS, ids=["text", "generic", "python"])
@pytest.mark.parametrize("door", ["jvp", "vjp", "seed_all"])
def test_wrong_directions_are_reported(f: Any, door: str) -> None:
    ask = f.pullback(**inputs()).seed_all if door == "seed_all" else getattr(f, door)
    more = {} if door == "seed_all" else inputs()
    if more:
        told(ask, f"{f.name}.{door}")
    for wrong in (3, None, "y", [1]):
        told(lambda wrong=wrong: ask(wrong, **more), "in a mapping")
    for name, value in (("z", 1.0), (3, 1.0), ("k", 1), ("x", "a"), ("x", None), ("x", 1j)):
        told(lambda name=name, value=value: ask({name: value}, **more), f"`{name}`", hinted=False)
    for value in (np.ones(3), [[1.0], 2.0], "a"):
        told(lambda value=value: ask({"x": value}, **more), "`x`", hinted=False)


OPTIONS: dict[str, list[Any]] = {
    "tolerance": ["a", -1, float("nan"), True, [1]],
    "strict": ["yes", 3, None],
    "checks": [3, None],
    "bits": ["mach", 3, None],
    "on_error": ["stp", 3, None],
    "max_steps": ["10", -1, 1.5, float("inf")],
    "max_memory": ["64M", -1, 0.5],
    "output": [3, "f.txt"],
    "callbacks": [3, None, {"a": 3}],
    "judged_later": ["x"],
}


@pytest.mark.parametrize("f", FUNCTIONS, ids=["text", "generic", "python"])
def test_wrong_options_are_reported(f: Any) -> None:
    for name, values in OPTIONS.items():
        for value in values:
            told(lambda name=name, value=value: f.with_options(**{name: value}), name, hinted=False)
            told(lambda name=name, value=value: f(**inputs(), **{name: value}), name, hinted=False)
    told(lambda: f.with_options(stirct=True), "`strict`")
    told(lambda: f(**inputs(), stirct=True), "the option `strict`")
    told(lambda: f(**inputs(), engine="nativ"), "native")
    told(lambda: f.with_options(3), "by name", 'engine="native"')
    assert f.with_options(max_steps=1e6).options.max_steps == 1_000_000


def test_wrong_fields_of_records_are_reported() -> None:
    text = "record P\n m: f64\n v: f64[2]\nend\nfunc f(p: P)\n add p.v[0], p.m\n"
    f = rvm.assemble(text).f
    p = {"m": 1.0, "v": np.zeros(2)}
    told(lambda: f.grad(loss="p", p=p), "`p.m`, `p.v`")
    told(lambda: f.vjp({"p": 3}, p=p), "m, v")
    told(lambda: f.vjp({"p": {"m": "a"}}, p=p), "`p.m`", hinted=False)


def test_an_error_inside_is_not_taken_for_a_wrong_call() -> None:
    def fails(*values: Any) -> None:
        raise TypeError("inside")

    f = rvm.assemble("func f(y: f64)\n extern both\n  callback h, y\n end\n add y, 1.0\n")
    with pytest.raises(TypeError, match="inside"):
        f.f.grad(loss="y", y=1.0, callbacks={"h": fails})


def test_a_misspelt_function_is_reported() -> None:
    told(lambda: rvm.assemble("func length(y: f64)\n add y, 1\n")["lenght"], "`length`")


def misspelt(word: str) -> str:
    """A word with its last two letters exchanged."""
    return word[:-2] + word[:-3:-1] if word[-1] != word[-2] else word[:-1]


@pytest.mark.parametrize("f", FUNCTIONS, ids=["text", "generic", "python"])
@pytest.mark.parametrize("door", DOORS)
def test_misspelt_names_are_reported(f: Any, door: str) -> None:
    """Options of runs, a door's own words, and parameters, at every door."""
    call = DOORS[door]
    for option in OPTION_NAMES:
        told(lambda option=option: call(f, **inputs(), **{misspelt(option): 1}), f"`{option}`?")
    method = getattr(f, door, None)
    words = inspect.signature(method).parameters.values() if method is not None else ()
    for p in words:
        if p.kind is p.KEYWORD_ONLY and len(p.name) > 2 and p.default is not p.empty:
            told(lambda p=p: call(f, **inputs(), **{misspelt(p.name): 1}), f"`{p.name}`?")


def test_misspelt_values_are_reported() -> None:
    f = LIBRARY.f
    many = {"y": np.zeros(3), "x": np.ones((3, 2)), "k": 1}
    calls: dict[str, Callable[[str], Any]] = {
        "native": lambda w: f(**inputs(), engine=w),
        "stated": lambda w: f(**inputs(), bits=w),
        "machine": lambda w: f(**inputs(), bits=w),
        "stop": lambda w: f(**inputs(), on_error=w),
        "return": lambda w: f.map(**many, on_error=w),
        "taylor": lambda w: f.hessian(**inputs(), loss="y", method=w),
        "below": lambda w: rvm.assemble(TEXT, includes=w),
    }
    for word, call in calls.items():
        told(lambda call=call, word=word: call(misspelt(word)), f"did you mean `{word}`?")
    told(lambda: f.grad(los="y", **inputs()), "did you mean `loss`?")
    told(lambda: f.hvp(SEEDS, los="y", **inputs()), "did you mean `loss`?")
    named = rvm.assemble("func length(y: f64)\n add y, 1\n")
    for make in (rvm.gradient, rvm.tangent):
        told(lambda make=make: make(named, "lenght"), "did you mean `length`?")


TEXTS = {
    ".rasm": "func main(x: i64)\n    add x, 1\n",
    ".ja": "procedure main()\n    int x\n    x += 1\n",
    ".pure": "def double(x: f64) = 2 * x\n",
    ".py": "import rvm\n\n@rvm.reversible\ndef main(x: rvm.i64):\n    x += 1\n",
}


@pytest.mark.parametrize("suffix", TEXTS)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_with_the_suffix_of_another_language_is_reported(
    kind: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_text(TEXTS[kind])
    if kind == suffix:
        assert rvm.load(path)
        return
    with pytest.raises(UsageError, match=f"reads like a `{kind}` file, not like a `{suffix}` one"):
        rvm.load(path)


def test_wrong_texts_of_the_suffix_are_reported_by_its_front_end(tmp_path: Path) -> None:
    path = tmp_path / "text.rasm"
    path.write_text("procedure main()\nfunc main(x: i64)\n    ad x, 1\n")
    with pytest.raises(AssemblyError):
        rvm.load(path)


def test_front_ends_are_those_of_the_folders_that_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come with a folder that a running program adds, too, and no longer."""
    path = tmp_path / "text.own"
    path.write_text("x")
    with pytest.raises(UsageError, match="no front end reads"):
        rvm.load(path)
    about = tmp_path / "own-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[rvm.frontends]\nown = own_front_end:load\n")
    (tmp_path / "own_front_end.py").write_text(
        "import rvm\n\n\n"
        "def load(path, **more):\n"
        "    return rvm.assemble('func own(x: i64)\\n    inc x\\n').program\n"
    )
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        assert rvm.load(path).own(x=1).x == 2
    with pytest.raises(UsageError, match="no front end reads"):
        rvm.load(path)


@pytest.mark.parametrize("f", FUNCTIONS, ids=["text", "generic", "python"])
def test_wrong_calls_of_a_pullback_are_reported(f: Any) -> None:
    for name in ("seed", "loss", "value", "seed_all"):
        method = getattr(f.pullback(**inputs()), name)
        told(method, f"`pullback.{name}` needs", f"pullback.{name}(")
        told(lambda method=method: method({"y": 1.0}, wrong=1), "takes no `wrong`")
        told(lambda method=method: method(1, 2, 3))
    pull = f.pullback(**inputs())
    told(lambda: pull.seed(los="y"), "did you mean `loss`?")
    told(lambda: pull.seed(3), "not by 3 of type int")
    pull.seed(loss="y")
    told(lambda: pull(wtr=["x"]), "`pullback` takes no `wtr`", "did you mean `wrt`?")
    told(lambda: pull(wrt=3), "`wrt`")
    assert list(pull(["x"]).x) == [6.0, 8.0]
    told(pull, "has gone back already")


def test_wrong_times_and_programs_are_reported() -> None:
    m = LIBRARY.f.machine(**inputs())
    for call in (m.step, m.seek):
        for wrong in ("a", None, 1.5, Thing()):
            told(lambda call=call, wrong=wrong: call(wrong), "a whole number, not", hinted=False)
    assert m.seek(np.int64(3)) == 3 and m.step(np.int32(-1)) == 1
    for wrong in (None, 3, Thing()):
        told(lambda wrong=wrong: rvm.assemble(wrong), "a program is a text, not", "rvm.load")
        told(lambda wrong=wrong: rvm.load(wrong), "a file has a path, not", "rvm.assemble")
        if wrong is not None:  # which is the entry
            told(lambda wrong=wrong: LIBRARY[wrong], "no function")
        with pytest.raises(TypeError, match="expected a program or a library, not") as caught:
            rvm.Machine(wrong)
        assert not INNARDS.search(str(caught.value))


ODD = [
    array("i", [1, 2]),
    array("d"),
    memoryview(b"abc"),
    memoryview(array("d", [0.5])),
    bytearray(2),
]


class Silent:
    """A value that has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Willing:
    """A value that has every attribute."""

    def __getattr__(self, name: str) -> int:
        return 5


class Tensor:
    """An array of a library that names its attributes like NumPy, and means others."""

    ndim, dtype, shape = 1, "float64", (3,)

    def size(self) -> int:
        return 3

    def tolist(self) -> list[float]:
        return [0.0, 0.5, 1.0]

    def item(self) -> float:
        raise RuntimeError("of three numbers none is the item")


FOREIGN = [Silent(), Willing(), Tensor(), Mock(), [Silent()], {"v": Tensor()}, {Mock()}]


@pytest.mark.parametrize("value", FOREIGN, ids=lambda v: type(v).__name__)
def test_values_of_other_libraries_are_refused_in_words(value: Any) -> None:
    for declared in ("i32", "f64", "c128", "bool", "fixed", "log64", "stack[i64]", "f64[2]", "P"):
        if declared == "P" and isinstance(value, Willing):
            continue  # It has the field.
        record = "record P\n    v: f64\nend\n" if declared == "P" else ""
        f = rvm.assemble(f"{record}func f(x: {declared})\n").f
        for call in (f, f.machine):
            with pytest.raises(rvm.RvmError) as caught:
                call(x=value)
            for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
                assert str(error)
                assert error.diagnostics[0].as_json()


@pytest.mark.parametrize("value", ODD, ids=lambda v: f"{type(v).__name__} of {len(v)}")
def test_buffers_that_are_no_numbers_are_refused_in_words(value: Any) -> None:
    types = ("i32", "f64", "c128", "fixed", "log64", "bool")
    for declared in (*types, "stack[i64]"):
        f = rvm.assemble(f"func f(x: {declared})\n").f
        for call in (f, f.machine):
            with pytest.raises(rvm.InputError):
                call(x=value)


def test_an_engine_is_named_or_given() -> None:
    f = rvm.assemble("func f(x: i64, n: i64)\n    for i = 1 to n\n        add x, i\n    end\n").f
    for name in ("reference", "python", "vector", *executing()):
        m = f.machine(x=0, n=9)
        assert m.step() and m.use(name).run()["x"] == 45
    with pytest.raises(rvm.UsageError) as raised:
        f.machine(x=0, n=9).use("fast")
    assert raised.value.code == "U002"
