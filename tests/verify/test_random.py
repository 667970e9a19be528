"""Random sound programs have no findings, in either direction."""

from __future__ import annotations

from collections import Counter

import pytest
from attack.programs.blind import DATA, random_program
from sizes import thin, wide

from rvm.transform import invert
from rvm.verify import findings, liveness

SEEDS = range(150)


@thin
@pytest.mark.parametrize("start", range(0, 150, 50))
def test_sound_programs_and_their_inverses_pass(start: int) -> None:
    for seed in range(start, start + 50):
        program = random_program(seed)
        assert findings(program) == [], seed
        assert findings(invert(program)) == [], seed


@wide
def test_the_programs_are_worth_testing() -> None:
    ops = Counter(i.op for seed in SEEDS for f in random_program(seed).functions for i in f.code)
    assert set(DATA) <= set(ops)
    assert {"call", "uncall", "push", "pop", "br", "cf", "print", "callback"} <= set(ops)


def test_live_sets_of_the_inverse_are_those_of_the_program_read_backwards() -> None:
    for seed in SEEDS[:20]:
        program = random_program(seed)
        inverse = invert(program)
        for f in program.functions:
            there, back = liveness(f), liveness(inverse.function(f.name))
            n = len(f.code)
            assert [there.live(p) for p in range(n + 1)] == [back.live(n - p) for p in range(n + 1)]
