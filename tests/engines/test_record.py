"""Results that were recorded once come again, whatever NumPy may use of the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engines import record
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from sizes import sample, thin, wide

from rvm.engines import executing

FEATURES = [f for f in __cpu_dispatch__ if __cpu_features__[f]]
"""What NumPy has code of its own for here, the newest last."""


@thin
@pytest.mark.parametrize("engine", executing())
def test_engines_give_what_was_recorded(engine: str) -> None:
    assert record.differences(engine) == []


@wide
@pytest.mark.parametrize("most", range(len(FEATURES)))
@sample
def test_processors_with_less_give_the_same(most: int) -> None:
    """Without the newest features, down to none, in a process of its own."""
    engines = [e for e in executing() if e != "native"]
    done = subprocess.run(
        [sys.executable, str(Path(record.__file__)), *engines],
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES[most:])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split("\n"), done.returncode) == ([""] * (len(engines) + 1), 0), done.stderr
