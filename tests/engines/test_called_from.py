"""An error deep in calls says who called, the same on every engine."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

TEXT = """
func inner(x: i64, a: i64[n])
    add a[x], 1
func middle(x: i64, a: i64[n])
    call inner(x, a)
func outer(x: i64, a: i64[n])
    add x, 1
    uncall middle(x, a)
    sub x, 1
func deep(x: i64, a: i64[n])
    if x > 0, x > 0
        sub x, 1
        call deep(x, a)
        add x, 1
    else
        call inner(9, a)
    end
func returned(x: i64, a: i64[n])
    call changes(2 * a[0])
func changes(x: i64)
    add x, 1
func above(x: i64, a: i64[n])
    call returned(x, a)
"""


def failing(name: str, x: int, engine: str) -> RvmError:
    library = rvm.assemble(TEXT, "calls.rasm")
    f = library[name.removeprefix("~")].with_options(engine=engine)
    with pytest.raises(RvmError) as caught:
        (~f if name[0] == "~" else f)(x=x, a=np.zeros(3, np.int64))
    return caught.value


@pytest.mark.parametrize(
    ("name", "x", "lines"),
    [
        ("inner", 9, []),
        ("middle", 9, [("middle", 5)]),
        ("outer", 9, [("middle", 5), ("outer", 8)]),
        ("~outer", 9, [("middle", 5), ("outer", 8)]),
        ("returned", 9, []),
        ("above", 9, [("above", 23)]),
        ("deep", 0, [("deep", 16)]),
        ("deep", 3, [("deep", 16), ("deep", 13), ("deep", 13), ("deep", 13)]),
        ("deep", 4, [("deep", 16), ("deep", 13), ("deep", 13), 1, ("deep", 13)]),
        ("deep", 5000, [("deep", 16), ("deep", 13), ("deep", 13), 4997, ("deep", 13)]),
    ],
)
def test_the_calls_that_led_there(name: str, x: int, lines: list[tuple[str, int] | int]) -> None:
    told = set()
    for engine in executing():
        error = failing(name, x, engine)
        found = [c if isinstance(c, int) else (c.function, c.line) for c in error.calls]
        assert found == lines, engine
        said = [f"{c:,} more" if isinstance(c, int) else f"line {c[1]} in `{c[0]}`" for c in lines]
        assert ("called from " + ", from ".join(said) in str(error)) == bool(lines)
        data = json.loads(json.dumps(error.diagnostics[0].as_json()))
        plain = [c.get("left_out") or (c["function"], c["line"]) for c in data["calls"]]
        assert plain == lines
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        told.add(str(error))
    assert len(told) == 1


def test_limits_say_so_too() -> None:
    library = rvm.assemble(TEXT)
    with pytest.raises(RvmError) as caught:
        library.deep.with_options(max_steps=100)(x=5000, a=np.zeros(3, np.int64))
    assert "called from line 13 in `deep`" in str(caught.value)
