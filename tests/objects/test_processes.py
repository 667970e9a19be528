"""Pools of processes run functions of programs, and their errors arrive."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from objects.samples import PROGRAM, seen
from sizes import wide

import rvm

METHODS = multiprocessing.get_all_start_methods()
INPUTS = [(float(k), 2.0) for k in range(6)]
BAD = [(1.0, 2.0), (3.0, 0.0), (5.0, 4.0)]
TIMEOUT = 120


def expected(error: rvm.RvmError) -> None:
    """The error of the second of BAD, wherever it was raised."""
    with pytest.raises(rvm.RvmError) as here:
        PROGRAM.recip(*BAD[1])
    assert type(error) is type(here.value)
    assert str(error) == str(here.value)
    assert seen(vars(error)) == seen(vars(here.value))


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_maps_a_function(method: str) -> None:
    f = PROGRAM.scale
    f(1.0, 2.0)
    f.grad(loss="y", y=1.0, a=2.0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.starmap_async(f, INPUTS).get(TIMEOUT)
        assert [r.y for r in found] == [2 * y for y, _ in INPUTS]
        with pytest.raises(rvm.RvmError) as failed:
            pool.starmap_async(PROGRAM.recip, BAD).get(TIMEOUT)
        expected(failed.value)
        lanes = pool.apply_async(f.map, ([1.0, 2.0], 3.0)).get(TIMEOUT)
        assert lanes.y.tolist() == [3.0, 6.0]
        with pytest.raises(rvm.LaneErrors) as parted:
            pool.apply_async(PROGRAM.recip.map, (np.ones(2), np.array([1.0, 0.0]))).get(TIMEOUT)
        assert list(parted.value.errors) == [1]


@pytest.mark.parametrize("method", METHODS)
def test_an_executor_maps_a_function(method: str) -> None:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        found = [pool.submit(PROGRAM.recip, *values) for values in BAD]
        assert found[0].result(TIMEOUT).y == 4.0
        with pytest.raises(rvm.RvmError) as failed:
            found[1].result(TIMEOUT)
        expected(failed.value)
        assert found[2].result(TIMEOUT).y == 24.0


def test_joblib_maps_a_function() -> None:
    joblib = pytest.importorskip("joblib")
    f = joblib.delayed(PROGRAM.recip)
    with joblib.Parallel(2) as pool:
        assert [r.y for r in pool(f(y, 2.0) for y, _ in INPUTS)] == [2 * y + 2 for y, _ in INPUTS]
        with pytest.raises(rvm.RvmError) as failed:
            pool(f(*values) for values in BAD)
        expected(failed.value)


def test_what_cannot_be_pickled_is_reported_as_text() -> None:
    error = rvm.InputError("I003", "no", values={"given": lambda: 1, "x": 2.5})
    again = pickle.loads(pickle.dumps(error))
    assert again.values["x"] == 2.5
    assert again.values["given"] == "a function"
    assert callable(error.values["given"])


def test_programs_read_again_are_one() -> None:
    data = pickle.dumps(PROGRAM.scale)
    first, second = pickle.loads(data), pickle.loads(data)
    assert first.program is second.program


OWN = """
import rvm

@rvm.opcode(inverse="untwice")
def twice(y: rvm.Mut, v: rvm.Use) -> None:
    "y += 2v"
    y += v
    y += v

@rvm.opcode(inverse="twice")
def untwice(y: rvm.Mut, v: rvm.Use) -> None:
    "y -= 2v"
    y -= v
    y -= v

@rvm.function()
def table(x):
    return {1.0: 10.0, 2.0: 20.0}[float(x)]

PROGRAM = rvm.assemble('''
func f(y: f64, v: f64)
    twice y, v
    add y, table(v)
''')
"""
MAIN = """
if __name__ == "__main__":
    import multiprocessing
    f = PROGRAM.f
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print([r.y for r in pool.starmap_async(f, [(0.0, 1.0), (0.0, 2.0)]).get(120)])
        try:
            pool.starmap_async(f, [(0.0, 3.0)]).get(120)
        except rvm.MachineError as error:
            print(error.code, error.values)
"""


@wide
@pytest.mark.parametrize("home", ["main", "module"])
def test_own_opcodes_in_spawned_processes(home: str, tmp_path: Path) -> None:
    if home == "main":
        (tmp_path / "main.py").write_text(OWN + MAIN)
    else:
        (tmp_path / "own.py").write_text(OWN)
        (tmp_path / "main.py").write_text("import rvm\nfrom own import PROGRAM\n" + MAIN)
    ran = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert ran.stderr == ""
    assert ran.stdout == "[12.0, 24.0]\nR014 {'argument 1': 3.0}\n"


@wide
def test_own_opcodes_that_a_process_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    dump = "import pickle, own; open('f.pickle', 'wb').write(pickle.dumps(own.PROGRAM.f))"
    load = "import pickle; print(pickle.load(open('f.pickle', 'rb'))(0.0, 1.0).y)"
    subprocess.run([sys.executable, "-c", dump], cwd=tmp_path, check=True)
    known = subprocess.run(
        [sys.executable, "-c", load], cwd=tmp_path, capture_output=True, text=True
    )
    assert known.stdout == "12.0\n", known.stderr
    (tmp_path / "own.py").unlink()
    (tmp_path / "load.py").write_text(load)
    unknown = subprocess.run(
        [sys.executable, "-c", load], cwd=tmp_path, capture_output=True, text=True
    )
    assert "error[B012]" in unknown.stderr
    assert "twice" in unknown.stderr
