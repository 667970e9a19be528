"""`rvm run --explain-vector`: a verdict on every loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.running import golden, rvm, rvm_json

import rvm as rvm_module

LOOPS = """\
func main(s: f64, x: f64[n], y: f64[n], idx: i64[n])
    for i = 0 to n - 1
        add y[i], 2*x[idx[i]]       ; a gather
    end
    for i = 1 to n - 1
        add y[i], s
        neg x[i]
        add s, x[i]
    end
    for i = 1 to n - 1 ; goes on from the element before
        add x[i], x[i - 1] * 2
    end
    call more(s, y)

func more(s: f64, y: f64[n])
    for i = 0 to n - 1
        call square(s, y, i)
    end

func square(s: f64, y: f64[n], i: i64)
    add s, y[i] ** 2

func apart(y: f64[n])
    for i = 0 to n - 1
        neg y[i]
    end
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "loops.rasm"
    path.write_text(LOOPS)
    return str(path)


def test_what_people_read(file: str) -> None:
    """The loops of the entry and of what it calls; those of another function if that is named."""
    golden("explain_vector", rvm("run", file, "--explain-vector").stdout)
    assert rvm("run", file, "-f", "apart", "--explain-vector").stdout == (
        "apart:\n    24  for i = 0 to n - 1  both ways  vectorised: elementwise\n"
    )
    assert rvm("run", file, "-f", "square", "--explain-vector").stdout == "no loops\n"


def test_bodies_of_maps_that_go_element_by_element(tmp_path: Path) -> None:
    path = tmp_path / "maps.rasm"
    path.write_text("""\
func half(y: f64, x: f64)
    add y, x / 2
func f(y: f64, x: f64)
    call half(y, x)
func plain(y: f64, x: f64)
    add y, x
func main(y: f64[n], x: f64[n], g: f64[n])
    map f(y, x)
    map plain(y, x)
    map f'(y, x; 1, g)
""")
    table, last = rvm("run", str(path), "-f", "main", "--explain-vector").stdout.split("\n\n")
    assert "declined: it calls `half`" in table and "vectorised: elementwise" in table
    end = 'are done together by `f.map(…)`, `lib["f\'"].map(…)` from Python.\n'
    assert last == "Elements that `map` takes one by one " + end
    lib = rvm_module.load(path)
    x = np.arange(4.0)
    found = lib["f'"].map(y=np.zeros(4), x=x, y_bar=np.ones(4), x_bar=np.zeros(4))
    assert found.x_bar.tolist() == [0.5] * 4
    assert lib.f.map(y=np.zeros(4), x=x).y.tolist() == (x / 2).tolist()


def test_as_an_object(file: str) -> None:
    first, *_, last = rvm_json("run", file, "--explain-vector")["loops"]
    assert first == {
        "function": "main",
        "line": 2,
        "loop": "for i = 0 to n - 1",
        "direction": "both ways",
        "vectorised": True,
        "reason": "elementwise",
    }
    assert (last["function"], last["vectorised"]) == ("more", False)
