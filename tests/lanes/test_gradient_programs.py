"""Gradients through lanes of every program that gradients are tested on: as single gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradients.programs import PROGRAMS
from lanes.singles import copied, flat, perturbed, stacked
from sizes import thin

import rvm


@thin
@pytest.mark.parametrize("name", PROGRAMS)
def test_adjoints_by_lane(name: str) -> None:
    text, inputs, loss = PROGRAMS[name]
    f = rvm.assemble(text).main.with_options(engine="vector")
    rng = np.random.default_rng(3)
    lanes: list[dict[str, Any]] = [inputs, {k: perturbed(v, rng) for k, v in inputs.items()}]
    given = {k: stacked([lane[k] for lane in lanes]) for k in inputs}
    losses, found = f.map.value_and_grad(loss=loss, on_error="return", **given)
    by_name = flat(found)
    for k, lane in enumerate(lanes):
        try:
            alone = f.with_options(engine="python")
            value, grad = alone.value_and_grad(loss=loss, **{n: copied(v) for n, v in lane.items()})
        except rvm.RvmError as error:
            assert found.errors[k].code == error.code
            continue
        assert k not in found.errors
        assert np.isclose(losses[k], value, rtol=1e-12, equal_nan=True)
        single = flat(grad)
        assert single.keys() == by_name.keys()
        for place, want in single.items():
            held, bar = np.asarray(by_name[place][k], complex), np.asarray(want, complex)
            assert np.allclose(held, bar, rtol=1e-9, atol=1e-9, equal_nan=True), place
