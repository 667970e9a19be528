"""The counting vector engine: pieces of loops count their iterations, and those of each arm."""

from __future__ import annotations

from rvm.accounts.counts import sized_of
from rvm.engines.counted import CountedSource, CountingPython
from rvm.engines.vector.engine import Vector
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.plan import LoopPlan
from rvm.engines.vector.source import VectorSource
from rvm.ir.counters import Counters, counters_of
from rvm.ir.structure import Loop


class CountedVectorSource(VectorSource, CountedSource):
    """The generated source of one function in one direction, with vectorised loops and counters."""

    def _plan(self, loop: Loop, counters: Counters | None = None) -> LoopPlan:
        sized = sized_of(self.code)
        if any(map(self.code.rounds, range(loop.cycle.head, loop.cycle.back + 1))):
            raise Declined("the bits that its updates lose to rounding are to be counted")
        if any(sized.of[pc] for pc in range(loop.cycle.head, loop.cycle.back + 1)):
            raise Declined("the sizes of arrays that it finds are to be counted")
        return super()._plan(loop, counters_of(self.code, self.flow))


class CountingVector(CountingPython):
    """Generated source that counts, whose loops do many iterations at once."""

    name = "vector"
    source_type = CountedVectorSource
    first_chunk = Vector.first_chunk
