"""The attack finds what is planted, makes it small, and is the same for the same seed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from attack.campaign import Campaign, attempt
from attack.cases import KINDS, drawn, judged, kind
from attack.command import again, main
from attack.crew import Worker
from attack.reduction import BYTES, LINES, OutOfTime, shrunk
from click.testing import CliRunner
from sizes import thin, wide

WRONG, READER = "attack.planted.wrong_engine", "attack.planted.reader"


def campaign(out: Path, name: str, inputs: int, jobs: int = 1, seed: int = 1) -> Campaign:
    made = Campaign([name], seed, 600.0, jobs, out, inputs, say=lambda line: None)
    made.run()
    return made


@wide
def test_what_is_planted_in_a_reader_is_found_and_made_small(tmp_path: Path) -> None:
    made = campaign(tmp_path, READER, 98, seed=221)
    tally = made.tallies[READER]
    assert tally.inputs == 98 and tally.accepted and tally.refused
    found = {f.signature: f for f in made.findings.values()}
    assert {s: f.data for s, f in found.items()} == {
        "KeyError in the attack itself": b"<key>",
        "the code Z999 is not explained in the attack itself": b"<code>",
        "an input hangs": b"<hang>",
        "the process dies of SIGABRT": b"<abort>",
        "MemoryError in the attack itself": b"<memory>",
    }
    assert all(f.again for f in found.values())
    assert tally.found == sum(f.count for f in found.values()) > len(found)
    # What one reads of a finding is enough to see it again.
    files = sorted(p for p in tmp_path.iterdir() if p.name.startswith(READER))
    assert len(files) == 2 * len(found)
    report = next(p for p in files if "KeyError" in p.name and p.name.endswith(".txt.txt"))
    assert "KeyError: 'planted'" in report.read_text()
    assert f"--reproduce {report.name.removesuffix('.txt')}" in report.read_text()
    assert again(report.with_suffix("")) == 1


def test_an_input_that_sleeps_hangs_too(tmp_path: Path) -> None:
    worker = Worker()
    try:
        assert attempt(worker, "attack.planted.sleeper", b"").signature == "an input hangs"
    finally:
        worker.close()


@wide
def test_a_wrong_operation_is_found_and_made_small(tmp_path: Path) -> None:
    made = campaign(tmp_path, WRONG, 12)
    found = next(f for f in made.findings.values() if "python is not reference" in f.signature)
    text = found.data.decode()
    assert "swap" in text
    head, *lines = text.splitlines()
    assert head.startswith("; sound ") and len(lines) < 8


@wide
def test_the_same_seed_tries_the_same_inputs(tmp_path: Path) -> None:
    # None of these inputs ends its process, which takes a second to begin anew.
    made = [campaign(tmp_path / str(jobs), READER, 60, jobs, seed=8) for jobs in (1, 2)]
    tallies = [m.tallies[READER] for m in made]
    assert len({(t.accepted, t.refused, t.found) for t in tallies}) == 1
    assert made[0].findings.keys() == made[1].findings.keys()
    other = campaign(tmp_path / "other", READER, 60, seed=3)
    assert other.findings.keys() != made[0].findings.keys()


@thin
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_makes_inputs_and_most_have_no_finding(name: str, tmp_path: Path) -> None:
    """What a few inputs of each kind come to; that they are tried at all, and can be refused."""
    found = kind(name)
    data = [drawn(found, 1, k) for k in range(6)]
    assert data == [drawn(found, 1, k) for k in range(6)]
    assert len(set(data)) > 3
    verdicts = [judged(found, d, tmp_path) for d in data[:3]]
    assert not any("in the attack itself" in v.signature for v in verdicts)
    outcomes = {v.outcome for v in verdicts}
    assert outcomes <= {"accepted", "refused", "found"}


@wide
def test_one_command_does_all(tmp_path: Path) -> None:
    def attack(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, [*words, "--jobs", "1", "--out", str(tmp_path)])
        return result.exit_code, result.output

    code, text = attack("--kinds", "models,values", "--inputs", "40", "--seed", "3")
    assert "models" in text and "values" in text and "seed 3" in text
    assert code in (0, 1)
    code, text = attack("--kinds", READER, "--inputs", "60", "--seed", "8")
    assert code == 1 and "findings are in" in text
    assert attack("--kinds", "nonsense")[0] == 2


@wide
def test_the_memory_of_a_process_is_not_that_of_its_parent() -> None:
    code = "from attack.worker import peak_memory; print(peak_memory())"
    parent = (
        "import subprocess, sys; held = bytearray(300 << 20); "
        f"subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", parent], env=env, capture_output=True, text=True, check=True
    )
    assert 1 << 10 < int(done.stdout) < 200 << 10


def test_shrinking_leaves_what_is_needed() -> None:
    data = bytes(range(200))
    assert shrunk(data, [BYTES], lambda d: 7 in d and 150 in d) == bytes([7, 150])
    text = "".join(f"line {k}\n" for k in range(90)).encode()
    assert shrunk(text, [LINES, BYTES], lambda d: b"e 4" in d) == b"e 4"


def test_shrinking_ends_with_its_time() -> None:
    tries = 0

    def same(data: bytes) -> bool:
        nonlocal tries
        tries += 1
        if tries > 5:
            raise OutOfTime
        return random.Random(data).random() < 0.5

    assert len(shrunk(bytes(range(100)), [BYTES], same)) < 100


@pytest.mark.soak
def test_a_quarter_of_an_hour_of_everything(tmp_path: Path) -> None:
    made = Campaign(KINDS, random.randrange(10**6), 900.0, 1, tmp_path)
    made.run()
    assert not made.findings, (made.seed, [f.signature for f in made.findings.values()])
