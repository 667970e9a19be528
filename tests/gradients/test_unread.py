"""Gradients that only go back: of which functions, and that they are those of runs there and back.

The other engines go there and back; machine code must give their bits, their errors, and the inputs
as they were.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from gradients.agreeing import bits
from sizes import sample, thin

import rvm
from rvm.derive.direct_gradient import ThereAndBack
from rvm.engines import LAW, executing
from rvm.expr import Place
from rvm.image import image_of
from rvm.program import Function
from rvm.transform.forth import forwards
from rvm.transform.unread import unread
from rvm.types import Array
from rvm.verify import inout_slots

ROUTINE = """
func main(y: f64[n], x: f64[n], k: i64[n])
    alloc top: f64 = amax(x)
    routine
        alloc e: f64[n]
        add e, exp(x - top)
    result
        alloc s: f64 = sum(e)
        add y, e / s
        free s = sum(e)
    end
    free top = amax(x)
"""
LOOP = """
func main(y: f64, x: f64[n], k: i64[n])
    for i = 0 to n - 1
        alloc t: f64 = sin(x[i])
        add y, t * x[k[i]]
        sub y, t
        free t = sin(x[i])
    end
"""
STATES = """
func main(y: f64, x: f64[n], k: i64[n])
    routine
        alloc s: f64[n + 1]
        for i = 0 to n - 1
            alloc v: f64 = s[i] + x[i] * x[i]
            swap v, s[i + 1]
            free v
        end
    result
        add y, s[n] * s[n]
    end
"""
DIVIDED = """
func main(y: f64, x: f64[n], k: i64[n])
    for i = 0 to n - 1
        add y, x[i] * f64(12 // k[i])
        add y, f64(12 // k[i])
    end
"""
LOOKED_UP = """
func main(y: f64, x: f64[n], k: i64[n])
    add y, sum(x)
    add y, f64(k[k[0]])
"""
TAKEN = """
func main(y: f64[n], x: f64[n], k: i64[n])
    add y, x * prod(x)
    if k[0] > 0
        sub y[k[0]], x[0]
    end
"""
EITHER = """
func main(y: f64, z: c128, x: f64[n], k: i64[n])
    add z, complex(sum(x), x[0])
    add y, x[0]
    add z, complex(0.0, sum(x * x))
"""
AROUND = """
func main(y: f64, x: f64[n], k: i64[n])
    routine
        alloc e: f64[n]
        for i = 0 to n - 1
            alloc v: f64 = exp(x[i])
            swap v, e[i]
            free v
        end
    result
        for j = 0 to n - 1
            routine
                alloc t: f64
                alloc w: f64 = e[j] * x[0]
                swap w, t
                free w
            result
                if k[j] > 0
                    add y, t * t
                else
                    sub y, e[k[j]]
                end
            end
        end
    end
"""
INSIDE = """
func main(y: f64, x: f64[n], k: i64[n])
    routine
        alloc s: f64[n]
        for i = 0 to n - 1
            routine
                alloc t: f64[n]
                for j = 0 to n - 1
                    alloc v: f64 = sin(x[j]) * x[k[i]]
                    swap v, t[j]
                    free v
                end
            result
                alloc w: f64 = sum(t)
                swap w, s[i]
                free w
            end
        end
    result
        add y, s @ s
    end
"""
TOGETHER = """
func main(y: f64, x: f64[n], k: i64[n])
    routine
        alloc a: f64[n]
        alloc b: f64[n]
        add a, tanh(x)
        add b, tanh(a) * x[k[0]]
    result
        add y, b @ b
    end
"""
ABLE = {
    "routine": ROUTINE,
    "loop": LOOP,
    "states": STATES,
    "divided": DIVIDED,
    "looked up": LOOKED_UP,
    "taken": TAKEN,
    "either": EITHER,
    "around": AROUND,
    "inside": INSIDE,
    "together": TOGETHER,
}
HEAD = "func main(y: f64, x: f64[n], k: i64[n])\n"
UNABLE = {
    "a result is read": "add y, x[0]\nalloc t: f64 = y\nfree t = y",
    "a result is read for an index": "alloc t: f64 = x[i64(y)]\nfree t = x[i64(y)]\nadd y, x[0]",
    "a result is multiplied": "mul y, x[0]",
    "a result is exchanged": "swap y, x[0]",
    "rounding is left": "alloc t: f64\nadd t, x[0]\nadd t, x[1]\nsub t, x[1]\nsub t, x[0]\nfree t",
    "another order": "alloc t: f64 = x[0]\nadd t, x[1]\nadd y, t\nsub t, x[0]\nfree t = x[1]",
    "a loop adds to what is kept": "alloc t: f64\nalloc v: f64 = x[0]\nswap v, t\nfree v\n"
    "for i = 0 to n - 1\nadd t, x[i]\nend\nadd y, t\nfor i = n - 1 to 0\nsub t, x[i]\nend\n"
    "alloc v: f64\nswap v, t\nfree v = x[0]\nfree t",
    "what is kept is undone in a loop": "alloc t: f64\nalloc v: f64 = x[0]\nswap v, t\nfree v\n"
    "add y, t\nfor i = 0 to 0\nalloc v: f64\nswap v, t\nfree v = x[i]\nend\nfree t",
    "another value": "alloc t: f64 = x[0] + x[1]\nadd y, t\nfree t = x[1] + x[0]",
    "a parameter changes meanwhile": "neg x\nadd y, x[0]\nneg x",
    "it says something": 'extern forward\nprint "here"\nend\nadd y, x[0]',
    "it asserts": "extern both\nassert x[0] > 0.0\nend\nadd y, x[0]",
    "it forgets": "fresh t: f64\nadd y, x[0]\ndrop t",
    "a whole number is added to": "add k[0], 1\nadd y, x[0]",
}
INPUTS = {
    "numbers": ([0.5, -1.25, 3.0], [1, 2, 0]),
    "infinite": ([math.inf, 1.0, 2.0], [1, 2, 0]),
    "large": ([800.0, 1e200, 1e300], [1, 2, 0]),
    "no numbers": ([math.nan, 1.0, -0.0], [1, 2, 0]),
    "zeros": ([0.0, -0.0, 0.0], [1, 1, 1]),
    "outside": ([0.5, -1.25, 3.0], [2, 3, 7]),
    "divided by zero": ([0.5, -1.25, 3.0], [1, 0, 2]),
    "one": ([2.5], [0]),
    "none": ([], []),
}


@cache
def loaded(text: str) -> Any:
    return rvm.assemble(text)["main"]


@pytest.mark.parametrize("name", ABLE)
def test_functions_that_add_to_results_need_no_run_forwards(name: str) -> None:
    f = loaded(ABLE[name])
    changed = inout_slots(f.program)["main"]
    assert unread(f.program, "main") == changed


@pytest.mark.parametrize("name", UNABLE)
def test_others_do(name: str) -> None:
    f = loaded(HEAD + UNABLE[name])
    assert unread(f.program, "main") is None


def results(f: Any, begun: float, values: dict[str, Any]) -> dict[str, Any]:
    """Results to add to, of the parameters that are not given."""
    n = len(values["x"])
    kinds = {
        "y": np.full(n, begun)
        if isinstance(f.program.function("main").registers[0].type, Array)
        else begun,
        "z": complex(begun),
    }
    return {k: v for k, v in kinds.items() if k in f.parameters}


def outcome(f: Any, engine: str, begun: float, values: dict[str, Any], **options: Any) -> Any:
    """The adjoints and what the run says of itself, or the error; with seeds, and by loss."""
    g = f.with_options(engine=engine, **options)
    given = {**results(f, begun, values), **values}
    kept = {k: np.copy(v) for k, v in given.items()}
    seeds = {k: np.full(np.shape(v), 1.5) if np.ndim(v) else 1.5 for k, v in given.items()}
    seeds = {k: seeds[k] for k in ("y", "z") if k in given}
    loss = "y" if np.ndim(given["y"]) == 0 else "y[0]"
    out: list[Any] = []
    for run in (
        lambda: g.vjp(seeds, given),
        lambda: g.vjp(seeds, given, wrt=["x"]),
        lambda: g.grad(given, loss=loss),
        lambda: g.value_and_grad(given, loss=loss),
    ):
        try:
            made = run()
            value, found = made if isinstance(made, tuple) else (0.0, made)
            out.append((bits(found), found.info.erased_bits, found.info.drift, bits({"": value})))
        except rvm.RvmError as error:
            out.append((error.code, str(error)))
    assert all(np.array_equal(kept[k], v, equal_nan=True) for k, v in given.items())
    return out


@sample
@thin(16)
@pytest.mark.parametrize(
    ("begun", "options"),
    [
        (0.0, {}),
        (0.1, {}),
        (1e300, {}),
        (math.inf, {"tolerance": 1e-3}),
        (0.1, {"tolerance": 0.0}),
    ],
    ids=str,
)
@pytest.mark.parametrize("values", INPUTS)
@pytest.mark.parametrize("name", ABLE)
def test_they_have_the_gradients_and_errors_of_runs_there_and_back(
    name: str, values: str, begun: float, options: dict[str, Any]
) -> None:
    f = loaded(ABLE[name])
    x, k = INPUTS[values]
    given = {"x": np.array(x), "k": np.array(k, np.int64)}
    want = outcome(f, "python", begun, given, **options)
    assert outcome(f, "native", begun, given, **options) == want


def test_machine_code_goes_back_only() -> None:
    f = rvm.assemble(ROUTINE)["main"].with_options(engine="native")
    n = {"y": np.zeros(3), "x": np.arange(3.0), "k": np.zeros(3, np.int64)}
    f.vjp({"y": np.ones(3)}, n)
    f.value_and_grad(n, loss="y[0]")
    code = image_of(f.program).code("main", False)
    runs = {key[1]: run for key, run in code.compiled.items() if key[:1] == (ThereAndBack,)}
    assert runs[""].launch.code.name == "main_adjoint"
    assert runs["y[0]"]._run.launch.code.name == "main_gradient_value"


@pytest.mark.parametrize(
    ("body", "way"),
    {
        "once": ("add y, x @ x", "main_adjoint"),
        "taken away": ("sub y, x @ x", "main_adjoint"),
        "in a branch": ("if k[0] == 0\nadd y, x @ x\nend", "main_adjoint"),
        "twice": ("add y, x @ x\nadd y, sum(x)", "main_gradient_value"),
        "in a loop": ("for i = 0 to k[1]\nadd y, x[i % n] * x[i % n]\nend", "main_gradient_value"),
        "behind a loop": (
            "alloc t: i64\nfor i = 0 to k[1]\nadd t, i\nend\nadd y, f64(t) * sum(x)\n"
            "for i = 0 to k[1]\nsub t, i\nend\nfree t",
            "main_adjoint",
        ),
    }.values(),
)
def test_a_value_that_is_added_at_once_needs_no_run_forwards(body: str, way: str) -> None:
    f = loaded(HEAD + body)
    given = {"y": 0.1, "x": np.array([0.3, -1e-3, 7.0]), "k": np.array([0, 2, 0])}
    found = [
        f.with_options(engine=engine).value_and_grad(given, loss="y") for engine in (LAW, "native")
    ]
    assert found[0][0] == found[1][0] == f(**given).y
    assert bits(found[0][1]) == bits(found[1][1])
    code = image_of(f.program).code("main", False)
    keys = [key for key in code.compiled if isinstance(key, tuple)]
    runs = [code.compiled[key] for key in keys if key[:2] == (ThereAndBack, "y")]
    assert [r._run.launch.code.name for r in runs] == [way]


@thin(16)
@pytest.mark.parametrize("name", ABLE)
def test_what_is_not_for_machine_code_is_done_elsewhere(name: str) -> None:
    """A run that stops on its way goes on with copies of what it leaves alone."""
    text = ABLE[name].rstrip() + "\n    add y, sum(prod_others_1(x, x))\n"
    f = loaded(text)
    given = {"x": np.array([0.5, 1.25, -2.0]), "k": np.array([1, 2, 0])}
    assert outcome(f, "native", 0.5, given) == outcome(f, "reference", 0.5, given)


def filled(first: str) -> Any:
    """A function whose adjoint begins with what is given, and goes on with a loop."""
    loop = "for i = 0 to k[0]\nadd y, 1e-3 * x[i % n] * x[i % n]\nend\n"
    return loaded(HEAD + loop + first)


@thin(3)
@sample
@pytest.mark.parametrize(
    "first",
    {
        "all of it": "add y, x @ x",
        "a number": "add y, sum(x)",
        "taken away": "sub y, sum(x) * 0.5",
        "negative zeros": "add y, sum(-0.0 * x)",
        "a part": "add y, x[0] * x[0]",
        "looked up": "add y, f64(k[k[1]])\nadd y, sum(x)",
    }.values(),
)
@pytest.mark.parametrize("turns", [0, 10, 3_000_000])
@pytest.mark.parametrize("at", [0, 9])
def test_what_adjoints_begin_with_need_not_be_there(first: str, turns: int, at: int) -> None:
    """However far machine code comes: at once, out of ticks, to an index that is outside."""
    f, x = filled(first), np.linspace(-1.0, 2.0, 5)
    given = {"x": x, "k": np.array([turns, at, 0, 0, 0])}
    try:
        pulled = f.with_options(engine="native").pullback(y=0.5, **given)
        pulled.seed_all({"y": 1.5})
        want: Any = bits(pulled())
    except rvm.RvmError as error:
        want = str(error)
    found = outcome(f, "native", 0.5, given)[0]
    assert want in (found[0], found[1])


def test_adjoints_share_no_memory_with_what_is_held() -> None:
    f = loaded("func main(y: f64[n], x: f64[n])\nadd y, x * x").with_options(engine="native")
    n, kept = 40_000, []
    for k in range(4):
        given = {"y": np.zeros(n), "x": np.full(n, 1.0 + k)}
        seeds = {"y": np.full(n, 0.5)}
        found = f.vjp(seeds, given, wrt=("x",)), f.vjp(seeds, given)
        kept += [r.x[7:] for r in found] + [found[1].y.reshape(2, -1)]
        assert (seeds["y"] == 0.5).all()
        assert not np.shares_memory(seeds["y"], found[1].y)
    assert [v.max() for v in kept] == [v.min() for v in kept]
    assert [v.max() for v in kept] == [v for k in range(4) for v in (1.0 + k, 1.0 + k, 0.5)]
    addresses = {v.ctypes.data for v in kept}
    del kept, found
    again = f.vjp(seeds, given, wrt=("x",)).x
    assert again.ctypes.data + 7 * 8 in addresses or again.ctypes.data in addresses


def test_seeds_of_what_is_filled_are_kept() -> None:
    f = filled("add y, x @ x")
    given = {"y": 0.0, "x": np.linspace(-1.0, 2.0, 5), "k": np.zeros(5, np.int64)}
    found = []
    for engine in (LAW, "native"):
        g = f.with_options(engine=engine)
        out = [g.vjp({"y": 1.0, "x": np.arange(5.0)}, given), g.vjp({"x": np.arange(5.0)}, given)]
        found.append([bits(r) for r in (*out, g.grad(given, loss="x[2]"))])
    assert found[0] == found[1]


def test_adjoints_that_hold_nothing_yet_are_not_exchanged() -> None:
    """Values are exchanged on both ways, and adjoints only where they carry something."""
    adjoint = rvm.assemble(STATES)["main"].gradient_program.program.function("main_adjoint")
    names = [r.name for r in adjoint.registers]

    def exchanged(f: Function) -> list[str]:
        swaps = (i for i in f.code if i.op == "swap")
        return [names[a.reg] for i in swaps for a in i.args[:1] if isinstance(a, Place)]

    assert exchanged(adjoint) == ["v", "v_bar", "v", "v_bar"]
    assert exchanged(forwards(adjoint)) == ["v", "v", "v_bar"]


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("way", ["read-only", "the same array", "an overlap"])
def test_arguments_that_a_call_would_refuse_are_refused(engine: str, way: str) -> None:
    """Also where a gradient leaves the run forwards out, which would change them."""
    f = rvm.assemble("func f(y: f64[n], x: f64[n])\n    add y, x * x\n").f.with_options(
        engine=engine
    )
    whole = np.array([1.0, 2.0, 3.0])
    y, x = whole[:2], whole[:2] if way == "the same array" else whole[1:]
    if way == "read-only":
        y = np.zeros(2)
        y.flags.writeable = False
    code = "I006" if way == "read-only" else "I007"
    calls = (
        lambda: f.grad(loss="y[0]", y=y, x=x),
        lambda: f.value_and_grad(loss="y[0]", y=y, x=x),
        lambda: f.vjp({"y": np.ones(2)}, y=y, x=x),
    )
    for call in calls:
        with pytest.raises(rvm.RvmError) as caught:
            call()
        assert caught.value.code == code
