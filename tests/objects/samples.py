"""Objects of every public class, before and after they were used, and what can be seen of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

import rvm
from rvm import pebble
from rvm.accounts.counts import Counts
from rvm.engines import executing
from rvm.faults import CollectedError, Diagnostic, Where
from rvm.library.lane_map import LaneMap, LaneResult
from rvm.library.vocabulary import Array, Stack, word
from rvm.run.results import Result

TEXT = """
func scale(y: f64, a: f64)
    mul y, a

func inner(v: f64[:], s: stack[i64])
    for i = 0 to len(v) - 1
        alloc t: i64 = 3
        add v[i], 1.0
        push t, s
        free t
    end

func work(x: f64[:], y: f64, n: i64, s: stack[i64])
    for k = 1 to n
        call inner(x[1:3], s)
        call scale(y, 1.5)
        add y, x[1] + sin(x[2])
    end

func recip(y: f64, x: f64)
    add y, 1.0
    mul y, x
"""
PROGRAM = rvm.assemble(TEXT)


def work_inputs() -> dict[str, Any]:
    return {"x": np.arange(4.0), "y": 0.25, "n": 3, "s": [7]}


def failing() -> rvm.RvmError:
    """An error of a run, with all its parts."""
    try:
        PROGRAM.recip(y=1.0, x=0.0)
    except rvm.RvmError as error:
        return error
    raise AssertionError


def lane_errors() -> rvm.LaneErrors:
    try:
        PROGRAM.recip.map(y=np.ones(3), x=np.array([1.0, 0.0, 2.0]))
    except rvm.LaneErrors as error:
        return error
    raise AssertionError


def functions() -> Iterator[Any]:
    fresh = rvm.assemble(TEXT).work
    yield fresh
    fresh(**work_inputs())
    fresh.grad(loss="y", wrt=["y"], **work_inputs())
    fresh.with_options(engine="native")(**work_inputs())
    yield fresh
    yield ~fresh
    yield fresh.with_options(engine="reference", max_steps=10_000)
    yield fresh.upright()


def machines() -> Iterator[Any]:
    fresh = PROGRAM.work.machine(**work_inputs())
    yield fresh
    for time in range(0, 60, 5):
        going = PROGRAM.work.machine(**work_inputs())
        going.step(time)
        yield going
    counted = PROGRAM.work.machine(**work_inputs())
    counted.count()
    counted.step(40)
    yield counted
    yield PROGRAM.work.machine(**work_inputs(), strict=True).run()


def counts() -> Iterator[Any]:
    for engine in executing(loops=False):
        machine = PROGRAM.work.machine(**work_inputs(), engine=engine)
        found = machine.count()
        yield found
        machine.run()
        yield found


def programs() -> Iterator[Any]:
    fresh = rvm.assemble(TEXT)
    yield fresh
    fresh.work(**work_inputs())
    yield fresh
    yield rvm.gradient(PROGRAM, "work")
    yield rvm.tangent(PROGRAM, "scale")
    yield rvm.invert(PROGRAM)


def results() -> Iterator[Any]:
    yield PROGRAM.work(**work_inputs())
    yield PROGRAM.work.hessian(loss="y", wrt=["y"], **work_inputs())


def errors(kind: type[Any]) -> Iterator[Any]:
    """Errors and warnings as they are raised, and by hand with every part."""
    if issubclass(kind, rvm.AssemblyWarning):
        with catch_warnings(record=True) as given:
            simplefilter("always")
            rvm.assemble("func f(x: i64)\n    inc x; inc x\n")
        yield given[0].message
        return
    if issubclass(kind, CollectedError):
        try:
            rvm.assemble("func f(x: f64)\n    add x, yy\n    add x, zz\n")
        except rvm.AssemblyError as error:
            yield kind(error.diagnostics)
        return
    parts = {
        "where": Where("a.rasm", 3, 5, 9, "    add x, y", "f", 2),
        "values": {"x": np.arange(3.0), "y": 2.5, "given": [1, {"a": (2, None)}]},
        "notes": ("one", "two"),
        "hint": "try it",
        "time": 12,
        "direction": -1,
    }
    whole = kind("R001", "it failed", **parts)
    whole.add_note("a note of Python's")
    yield whole
    yield kind("R001", "it failed")
    if kind is rvm.RvmError:
        yield failing()


def plans() -> Iterator[Any]:
    yield pebble.plan(100, pebbles=9)
    yield pebble.plan(60, pebbles=6, goal="gradient")
    yield pebble.plan(40, pebbles=6, goal="gradient", costs=[1.0 + k % 3 for k in range(40)])
    used = pebble.plan(50, pebbles=8)
    assert sum(1 for _ in used.actions()) == used.cost.actions
    yield used


DAG = pebble.Dag(((), (0,), (0, 1), (2,)), (3,), ("a", "b", "c", "d"))


def online() -> Iterator[Any]:
    run = pebble.Online(3)
    yield run
    for _ in range(9):
        run.step()
    yield run


BENCH = "INPUT(a)\nINPUT(b)\nOUTPUT(z)\ny = NAND(a, b)\nz = NOT(y)\n"

SAMPLES: dict[type[Any], Callable[[], Iterator[Any]]] = {
    rvm.AssemblyWarning: lambda: iter(
        [rvm.AssemblyWarning(Diagnostic("A077", "it may fail", Where("a.rasm", 3), hint="or not"))]
    ),
    rvm.Fixed: lambda: iter([rvm.Fixed(5, 3), rvm.Fixed(-7)]),
    rvm.LogNumber: lambda: iter([rvm.LogNumber(1.5)]),
    rvm.FunctionHandle: functions,
    rvm.Machine: machines,
    rvm.Options: lambda: iter(
        [rvm.Options(), rvm.Options(engine="python", callbacks={"a": print})]
    ),
    rvm.Library: programs,
    rvm.Program: lambda: (lib.program for lib in programs()),
    rvm.LaneErrors: lambda: iter([lane_errors()]),
    rvm.Mut: lambda: iter([rvm.Mut(1)]),
    rvm.Use: lambda: iter([rvm.Use(0)]),
    Array: lambda: iter([Array[word("f64"), "n", 3]]),
    Stack: lambda: iter([Stack[word("i64")]]),
    Counts: counts,
    LaneMap: lambda: iter([PROGRAM.scale.map, (~PROGRAM.scale.map).with_options(block=2)]),
    LaneResult: lambda: iter([PROGRAM.scale.map(y=np.arange(3.0), a=2.0), lane_errors().result]),
    Result: results,
    pebble.Action: lambda: pebble.plan(5, pebbles=5).actions(),
    pebble.Circuit: lambda: iter([pebble.parse_circuit(BENCH)]),
    pebble.Cost: lambda: (p.cost for p in plans()),
    pebble.Dag: lambda: iter([DAG]),
    pebble.DagPlan: lambda: iter([pebble.plan_dag(DAG, pebbles=4)]),
    pebble.Frontier: lambda: iter([pebble.frontier(20)]),
    pebble.Kind: lambda: iter(pebble.Kind),
    pebble.Online: online,
    pebble.Plan: plans,
    pebble.Player: lambda: iter([pebble.Player(pebble.plan(10, pebbles=5).rules)]),
    pebble.Point: lambda: iter(pebble.frontier(20).points[:3]),
    pebble.Rules: lambda: (p.rules for p in plans()),
    pebble.Schedule: lambda: (p.schedule for p in plans()),
}


def error_classes(kind: type[Any] = rvm.RvmError) -> Iterator[type[Any]]:
    """An error class of rvm's and all below it."""
    yield kind
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("rvm"):
            yield from error_classes(sub)


def public_classes() -> set[type[Any]]:
    """Every class that `rvm` and `rvm.pebble` export, and every error."""
    names = [(rvm, n) for n in rvm.__all__] + [(pebble, n) for n in pebble.__all__]
    found = {getattr(home, n) for home, n in names if isclass(getattr(home, n))}
    return found | set(error_classes()) | set(SAMPLES)


def samples(kind: type[Any]) -> Iterator[Any]:
    """Objects of a class; KeyError for a class that nobody thought of."""
    if kind in SAMPLES:
        return SAMPLES[kind]()
    if issubclass(kind, BaseException):
        return errors(kind)
    raise KeyError(kind)


def seen(thing: Any) -> Any:
    """What can be seen of an object, as plain values that can be compared."""
    match thing:
        case np.ndarray():
            return ("array", thing.dtype.str, thing.shape, thing.tobytes())
        case rvm.Machine():
            there = [seen(thing.state.frames[0].regs), thing.time, thing.direction]
            there += [len(thing.state.frames), thing.state.top.pc, thing.erased_bits]
            return [*there, thing.residue_bytes, thing.engine, seen(thing.registers())]
        case Counts():
            return [(str(n), n.done, n.jumps, n.returns, seen(n.sizes)) for n in thing.nodes()]
        case rvm.FunctionHandle():
            called = thing(**work_inputs()) if not thing.undo else {}
            return [repr(thing), seen(thing.options), seen(called)]
        case LaneMap():
            return [repr(thing), thing.block, thing.on_error]
        case BaseException():
            return [type(thing), str(thing), seen(vars(thing))]
        case LaneResult():
            rest = [thing.errors, thing.ticks, thing.erased_bits, thing.alone]
            return [seen(dict(thing)), seen(rest)]
        case pebble.Schedule():
            return [tuple(a) for a in thing.actions()]
        case pebble.Plan():
            return [seen(thing.schedule), thing.rules, thing.cost, thing.describe()]
        case dict() | Result():
            said = {"info": thing._info and thing.info} if isinstance(thing, Result) else {}
            return {k: seen(v) for k, v in thing.items()} | said
        case list() | tuple():
            return [seen(v) for v in thing]
        case float():
            return thing.hex()
        case pebble.Online():
            return [thing.n, thing.kept]
        case pebble.Player() | pebble.Frontier() | rvm.Mut() | rvm.Use():
            return repr(thing) if "object at" not in repr(thing) else seen(vars(thing))
        case _:
            return thing
