"""Chains of products and their inverses: verdicts, results and limits on every engine."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
from attack.programs import chains
from attack.runs import bits
from sizes import part, thin, wide

import rvm
from rvm.engines import executing
from rvm.faults import RvmError
from rvm.registry import having
from rvm.run.machine import Machine

TURNS = (0.8, 0.2, 0.9, 0.5, 0.7, 0.3)
"""The times to which a run goes, as fractions of the whole."""


class Outcome(NamedTuple):
    """How a run ended, and what its machine held then."""

    code: str
    time: int
    regs: Any
    erased: int
    drift: float


def outcome(library: rvm.Library, given: dict[str, Any], *times: int, **options: Any) -> Outcome:
    """Of a run, which goes to some times before it goes to the end."""
    m, code = Machine(library, "main", **copy.deepcopy(given), **options), "passes"
    try:
        for time in times:
            m.seek(time)
        m.run()
    except RvmError as error:
        code = error.code
    held = bits(m.state.frames[0].regs)
    return Outcome(code, m.time, held, m.erased_bits, m.state.account.drift)


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("t", chains.TYPES)
@thin
def test_right_chains_pass_and_wrong_ones_are_refused(t: str, engine: str) -> None:
    for seed in range(part(4)):
        given = chains.inputs(seed, t)
        for wrong in (False, True):
            library = rvm.assemble(chains.program(seed, t, wrong))
            law = outcome(library, given, engine="reference")
            assert law.code == ("R001" if wrong else "passes"), seed
            assert outcome(library, given, engine=engine) == law, seed
            for limit in (0, 1, law.time // 2, law.time - 1):
                ended = outcome(library, given, engine=engine, max_steps=limit)
                assert (ended.code, ended.time) == ("R010", limit), seed
                assert ended == outcome(library, given, engine="reference", max_steps=limit)
            assert outcome(library, given, engine=engine, max_steps=law.time + wrong) == law, seed
            # Ways back and forth in between change no verdict.
            if engine not in having("compiles"):
                times = [int(law.time * fraction) for fraction in TURNS]
                turned = outcome(library, given, *times, engine=engine)
                assert turned.code == law.code, (seed, times)
            if not wrong:
                checked = library["main"](engine="reference", **copy.deepcopy(given))
            elif engine in having("unchecked"):
                # The mistake is made after the results are.
                free = library["main"].with_options(engine=engine, checks=False)
                made = free(**copy.deepcopy(given))
                assert bits([made.out, made.outs]) == bits([checked.out, checked.outs]), seed


def stacked(values: list[Any]) -> Any:
    return np.stack(values) if isinstance(values[0], np.ndarray) else values


@wide
@pytest.mark.parametrize("t", chains.TYPES)
@thin
def test_lanes_are_chains_of_their_own(t: str) -> None:
    for seed in range(part(4)):
        library, wrong = (rvm.assemble(chains.program(seed, t, w)) for w in (False, True))
        many = [chains.inputs(seed, t, k) for k in range(3)]
        singles = [library["main"](engine="reference", **copy.deepcopy(v)) for v in many]
        rows = {k: stacked([v[k] for v in many]) for k in many[0]}
        for engine in having("lanes"):
            if engine in executing():
                found = library["main"].map(engine=engine, **copy.deepcopy(rows))
                assert bits(list(found.outs)) == bits([v.outs for v in singles]), seed
                assert found.info.drift == max(v.info.drift for v in singles), seed
                with pytest.raises(RvmError, match="R001"):
                    wrong["main"].map(engine=engine, **copy.deepcopy(rows))
