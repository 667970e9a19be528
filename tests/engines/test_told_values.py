"""Values that are not what they must be are told in the words of the text, in either direction."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from sizes import thin

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

TEXT = """
func freed(y: i64)
    alloc t: i64 = 3
    add t, y
    free t = 5
func lengths(n: i64)
    alloc t: f64[n]
    inc n
    free t
func stacked(y: i64, n: i64)
    alloc s: stack[i64]
    if n > 0
        push y, s
    end
    if n > 1
        add y, 1
        push y, s
    end
    if n > 0
        pop y, s
    end
    free s
func pushed(y: i64, s: stack[i64])
    push y, s
func popped(y: i64, s: stack[i64])
    pop y, s
func around(y: i64)
    uncall freed(y)
func ends(n: i64)
    for i = 1 to n
        add n, 1
    end
func begins(n: i64)
    for i = n to 5
        add n, 1
    end
func steps(n: i64)
    for i = 1 to 9 step n
        add n, 1
    end
func add_to(x: f64, y: f64)
    add x, y
func f(y: f64, x: f64)
    mul x, 3
    add y, x ** 2
func passed(y: f64)
    call add_to(y * y + 1, 1)
func bar(y: f64, x: f64)
    call f'(y, x; 1, 4)
func bar_back(y: f64, x: f64)
    uncall f'(y, x; 1, 4)
func adjoint(y: f64, x: f64, b: f64)
    call f~'(y, 5.0; 0, b)
func dot(y: f64, x: f64)
    call f.(y, x; 1, 3)
func bar_of(y: f64, x: f64, h: f64, v: f64)
    call f'.(0.0, x, 1, 2; 0, v, 0, h)
"""
TOLD: list[tuple[str, dict[str, Any], str, str]] = [
    ("freed", {"y": 0}, "R001", "`t` is freed with a wrong value"),
    ("~freed", {"y": 0}, "R001", "running back, `t` does not have its initial value"),
    ("around", {"y": 0}, "R001", "running back, `t` does not have its initial value"),
    ("~around", {"y": 0}, "R001", "`t` is freed with a wrong value"),
    ("lengths", {"n": 2}, "R012", "the lengths of `t` have changed since it was made"),
    ("~lengths", {"n": 2}, "R012", "running back, `t` does not have its initial lengths"),
    ("stacked", {"y": 1, "n": 2}, "R001", "the stack `s` is freed while it is not empty"),
    ("~pushed", {"y": 1, "s": [2]}, "R006", "running back, a `push` takes its value back into"),
    ("~pushed", {"y": 0, "s": []}, "R006", "running back, the stack of a `push` is empty"),
    ("popped", {"y": 1, "s": [2]}, "R006", "a value is popped into a place that is not zero"),
    ("popped", {"y": 0, "s": []}, "R006", "the stack is empty"),
    ("ends", {"n": 3}, "R001", "the last value of the loop over `i` has changed"),
    ("~ends", {"n": 3}, "R001", "running back, the last value of the loop over `i`"),
    ("begins", {"n": 3}, "R001", "the first value of the loop over `i` has changed"),
    ("steps", {"n": 1}, "R001", "the step of the loop over `i` has changed"),
    ("passed", {"y": 1.0}, "R012", "add_to x (y * y) + 1.0"),
    ("bar", {"y": 0.0, "x": 1.0}, "R012", "f' x_bar 4.0"),
    ("bar_back", {"y": 0.0, "x": 1.0}, "R012", "f' x_bar 4.0"),
    ("adjoint", {"y": 25.0, "x": 1.0, "b": 1.0}, "R012", "f~' x 5.0"),
    ("dot", {"y": 0.0, "x": 1.0}, "R012", "f. y_dot 1.0"),
    ("bar_of", {"y": 0.0, "x": 2.0, "h": 0.0, "v": 1.0}, "R012", "f'. x_bar 2.0"),
]
"""What each does wrong; of what a call returns: the function, the parameter, what was passed."""


@thin
@pytest.mark.parametrize("name, at, code, message", TOLD)
def test_on_every_engine(name: str, at: dict[str, Any], code: str, message: str) -> None:
    library = rvm.assemble(TEXT)
    told = set()
    if code == "R012" and "`" not in message:
        callee, param, passed = message.split(" ", 2)
        message = f"`{callee}` returns with another value in `{param}`, which was passed `{passed}`"
    for engine in executing():
        f = library[name.removeprefix("~")].with_options(engine=engine)
        with pytest.raises(RvmError) as caught:
            (~f if name.startswith("~") else f)(**deepcopy(at))
        error = caught.value
        assert error.code == code and error.message.startswith(message), str(error)
        # The assembler's own names have dots that no text has.
        assert not any("." in shown for shown in error.values), str(error)
        told.add(str(error))
    assert len(told) == 1
