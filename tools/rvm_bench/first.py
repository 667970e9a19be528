"""The first calls of a process, timed from the moment a program is loaded.

`python -m rvm_bench.first PROGRAM` prints one JSON object: seconds for importing rvm and
loading the program, for its first gradient with all that is imported and compiled for it, and for
the second.  Nothing is imported here that the call would import.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time

_Moment = tuple[float, float]
_INPUTS = {"x": 1.0, "y": 0.0, "u": 0.0, "v": 1.0, "n": 1, "h": 0.01}
"""The inputs of the gradient of `leapfrog` with one step."""


def _now() -> _Moment:
    return perf_counter(), process_time()


def _between(begun: _Moment, ended: _Moment) -> float:
    """Seconds of wall-clock or processor time, whichever is less, since the machine is shared."""
    return min(ended[0] - begun[0], ended[1] - begun[1])


def main(path: str) -> None:
    begun = _now()
    import rvm

    function = rvm.load(path).main.with_options(engine="native")
    loaded = _now()
    function.vjp({"x": 1.0}, _INPUTS)
    first = _now()
    function.vjp({"x": 1.0}, _INPUTS)
    second = _now()
    times = {"load": (begun, loaded), "first": (loaded, first), "second": (first, second)}
    # Only now: on the way to a first call, `json` is imported for what is kept.
    import json

    print(json.dumps({name: _between(*pair) for name, pair in times.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
