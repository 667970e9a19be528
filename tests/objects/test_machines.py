"""A machine that is pickled on its way goes on to the same end, and back to the same start."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from copy import copy, deepcopy
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from attack.programs import sound
from objects.samples import PROGRAM, seen, work_inputs
from sizes import sample, some, thin, wide

import rvm
from rvm.engines import ENGINES, executing
from rvm.host.blocks import packed, unpacked
from rvm.run.machine import Machine

SHARED = rvm.assemble("""
func bump(a: f64[:], b: f64[:])
    for i = 0 to len(a) - 1
        add a[i], 2 * b[i]
    end

func inside(m: f64[:, :], z: c128[:])
    call bump(m[0, :], m[2, :])
    add z[0].im, m[0, 1]
    call bump(m[1, :], m[0, :])

func work(m: f64[:, :], z: c128[:], n: i64)
    for k = 1 to n
        call inside(m, z[1:])
        uncall bump(m[2, :], m[1, :])
    end
""")


def shared_inputs() -> dict[str, object]:
    whole = np.arange(24.0).reshape(4, 6)
    return {"m": whole[:3, ::2].copy(), "z": np.array([1j, 2.0, 3.0]), "n": 2}


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["shared", "work"])
@sample
def test_from_every_time_to_the_same_end_and_start(engine: str, name: str) -> None:
    program, inputs = (SHARED, shared_inputs) if name == "shared" else (PROGRAM, work_inputs)
    f = program.work.with_options(engine=engine)
    whole = f.machine(**inputs())
    whole.run()
    length, end = whole.time, seen(whole.result)
    walked = f.machine(**inputs())
    for time in range(0, length + 1, 1 if engine == "reference" else 7):
        assert walked.seek(time) == time
        there = walked.time
        again = pickle.loads(pickle.dumps(walked))
        assert seen(again.run().result) == end
        assert again.time == length
        other = deepcopy(walked)
        assert (other.run_back().time, walked.time) == (0, there)
        if name == "shared":  # in whole numbers, which come back to the bit
            assert seen(other.result) == seen(f.machine(**inputs()).result)


def test_a_pickled_machine_goes_on_in_another_process(tmp_path: Path) -> None:
    machine = SHARED.work.machine(**shared_inputs())
    machine.step(20)
    assert len(machine.state.frames) == 3
    file = tmp_path / "machine.pickle"
    file.write_bytes(pickle.dumps(machine))
    code = """
import pickle, sys
from pathlib import Path
file = Path(sys.argv[1])
machine = pickle.loads(file.read_bytes()).run()
file.write_bytes(pickle.dumps((machine, machine.result)))
"""
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)
    there, result = pickle.loads(file.read_bytes())
    assert seen(result) == seen(there.result) == seen(machine.run().result)
    assert seen(there.run_back().result) == seen(SHARED.work.machine(**shared_inputs()).result)


def test_a_copy_of_a_machine_shares_no_memory() -> None:
    machine = SHARED.work.machine(**shared_inputs())
    machine.step(9)
    before = seen(machine)
    copy(machine).run()
    assert seen(machine) == before


def test_frames_of_a_copied_machine_share_their_memory() -> None:
    machine = SHARED.work.machine(**shared_inputs())
    machine.step(9)
    again = copy(machine)
    frames = again.state.frames
    assert len(frames) == 3
    outer, inner = frames[0].regs[0], frames[2].regs[0]
    assert np.shares_memory(outer, inner)
    assert not np.shares_memory(outer, machine.state.frames[0].regs[0])


def test_counts_go_on_in_a_copy() -> None:
    for engine in ENGINES:
        machine = PROGRAM.work.machine(**work_inputs(), engine=engine)
        counts = machine.count()
        machine.step(25)
        again = pickle.loads(pickle.dumps((machine, counts)))
        for m, c in (again, (machine, counts)):
            m.run()
            assert c.ticks == m.time
        assert seen(again[1]) == seen(counts)


def test_output_is_not_copied() -> None:
    out = StringIO()
    program = rvm.assemble(
        'func f(x: i64)\n    add x, 1\n    extern both\n        print "x {}", x\n    end\n'
    )
    machine = Machine(program, x=1, output=out)
    deepcopy(machine).run()
    assert out.getvalue() == "x 2\n"


def test_blocks_keep_what_overlaps() -> None:
    base = np.arange(60, dtype=np.int32).reshape(5, 12)
    parts = [base[1:3, 2:5], base[::-2, ::3], base.T[4], base[0, :0], np.arange(3.0), base[4:1:-1]]
    parts[2].flags.writeable = False
    blocks, views = packed(parts)
    again = [unpacked(blocks, v) for v in views]
    for old, new in zip(parts, again, strict=True):
        assert np.array_equal(old, new)
        assert old.dtype == new.dtype and (not old.size or old.strides == new.strides)
        assert old.flags.writeable == new.flags.writeable
    for i, old in enumerate(parts):
        for j, other in enumerate(parts):
            assert np.shares_memory(old, other) == np.shares_memory(again[i], again[j])
    again[0][...] = -1
    assert np.array_equal(again[5] == -1, np.isin(base[4:1:-1], base[1:3, 2:5]))


def test_arrays_of_a_subclass_become_plain_ones_of_the_copy() -> None:
    given = np.arange(4.0).view(np.recarray)
    machine = PROGRAM.work.machine(**work_inputs() | {"x": given})
    machine.step(5)
    again = copy(machine)
    assert type(again.run().result.x) is np.ndarray
    assert np.shares_memory(again.result.x, again.state.frames[0].regs[0])
    assert np.array_equal(again.result.x, machine.run().result.x)


def carried(seed: int) -> None:
    """A random program, pickled at a random time, comes to the end and start of an unbroken run."""
    rng = random.Random(seed)
    program, inputs = rvm.assemble(sound.program(seed)), sound.inputs(seed)
    options = rvm.Options(engine=rng.choice(executing()), strict=True)

    def fresh() -> Machine:
        return Machine.start(program, "main", deepcopy(inputs), options)

    whole = fresh()
    start = seen(whole)
    end = seen(whole.run())
    whole.seek(rng.randint(0, whole.time))
    again = pickle.loads(pickle.dumps(whole))
    assert seen(pickle.loads(pickle.dumps(again)).run()) == end
    assert seen(again.run_back()) == seen(fresh().run().run_back())
    assert seen(again)[0] == start[0]


@wide
@pytest.mark.parametrize("seed", range(10))
@some
def test_random_programs_are_carried(seed: int) -> None:
    carried(seed)


@pytest.mark.soak
def test_many_random_programs_are_carried() -> None:
    for seed in range(100, 500):
        carried(seed)
