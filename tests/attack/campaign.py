"""A campaign: batches of all kinds on all processes for a time, then findings made small."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attack.cases import FOUND, Outcome, drawn, kind
from attack.crew import BatchEvent, InputBatch, Worker, events
from attack.findings import FoundInput, KindTally, save
from attack.reduction import OutOfTime, shrunk

_BATCH_SECONDS = 2.0
"""How long a batch takes, about."""
_SMALLER_SECONDS = 90.0
"""How long a finding is made smaller."""
_Say = Callable[[str], object]


@dataclass(slots=True)
class Campaign:
    """What to attack, for how long, and the outcome.

    With `inputs` that many of each kind are tried, and the same for the same seed; otherwise as
    many as fit into `seconds`.
    """

    kinds: Sequence[str]
    seed: int
    seconds: float
    jobs: int
    out: Path
    inputs: int | None = None
    say: _Say = print
    tallies: dict[str, KindTally] = field(default_factory=dict)
    findings: dict[tuple[str, str], FoundInput] = field(default_factory=dict)
    """The first finding of each kind and signature."""
    _again: list[InputBatch] = field(default_factory=list)
    """Batches that go on after an input that hung or crashed."""

    def run(self) -> None:
        """Try inputs until the time is over or Ctrl-C, then make findings small."""
        self.tallies = {name: KindTally(name) for name in self.kinds}
        end = time.monotonic() + self.seconds
        workers = [Worker() for _ in range(self.jobs)]
        try:
            while True:
                if time.monotonic() < end:
                    for worker in workers:
                        batch = self._next() if worker.batch is None else None
                        if batch is not None:
                            worker.start(batch)
                if all(w.batch is None for w in workers):
                    break
                for _, event in events(workers, 0.25):
                    self._enter(event)
        except KeyboardInterrupt:
            self.say("interrupted; what was found is made smaller")
        finally:
            for worker in workers:
                worker.close()
        for found in self.findings.values():
            _smaller(found, self.out, self.say)

    def _next(self) -> InputBatch | None:
        """The next batch: of the kind that has had the least of its share."""
        if self._again:
            return self._again.pop()
        left = [t for t in self.tallies.values() if self.inputs is None or t.next < self.inputs]
        if not left:
            return None
        least = min(left, key=lambda t: t.cpu / kind(t.name).share)
        count = max(1, min(20_000, int(least.rate * _BATCH_SECONDS)))
        if self.inputs is not None:
            count = min(count, self.inputs - least.next)
        batch = InputBatch(least.name, self.seed, least.next, count)
        least.next += count
        # So that processes that begin at once take several kinds.
        least.cpu += 1e-3
        return batch

    def _enter(self, event: BatchEvent) -> None:
        batch, tally = event.batch, self.tallies[event.batch.kind]
        tally.accepted += event.accepted
        tally.refused += event.refused
        tally.found += len(event.found)
        done = event.accepted + event.refused + len(event.found)
        tally.cpu += event.cpu or _BATCH_SECONDS
        if event.cpu:
            tally.rate = max(0.2, done / event.cpu)
        for index, verdict in event.found:
            self._note(batch, index, verdict)
        if done < batch.count and event.found:
            rest = event.found[-1][0] + 1
            stop = batch.first + batch.count
            if batch.first < rest < stop:
                self._again.append(InputBatch(batch.kind, batch.seed, rest, stop - rest))

    def _note(self, batch: InputBatch, index: int, verdict: Outcome) -> None:
        key = (batch.kind, verdict.signature)
        known = self.findings.get(key)
        count = 1 if known is None else known.count + 1
        if known is not None and known.index < index:
            known.count = count
            return
        try:
            data = drawn(kind(batch.kind), batch.seed, index) if index >= 0 else b""
        except Exception:  # then it is the making that has failed, as the report says
            data = b""
        found = FoundInput(
            batch.kind, batch.seed, index, verdict.signature, verdict.detail, data, count
        )
        self.findings[key] = found
        save(found, self.out)
        if known is None:
            self.say(f"found: {batch.kind} {index}: {verdict.signature}")


def attempt(worker: Worker, name: str, data: bytes, seconds: float = 600.0) -> Outcome:
    """Try one input in a process that may die of it."""
    file = worker.home / f"input{kind(name).suffix}"
    file.write_bytes(data)
    worker.start(InputBatch(name, 0, 0, 1, str(file)))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _, event in events([worker], 0.25):
            if event.found:
                return event.found[-1][1]
            return Outcome("accepted" if event.accepted else "refused")
    worker.end()
    worker.batch = None
    raise OutOfTime


def _smaller(found: FoundInput, out: Path, say: _Say = print) -> None:
    """Try a finding again alone, then make it small and save it anew."""
    worker = Worker()
    end = time.monotonic() + _SMALLER_SECONDS
    try:
        found.again = attempt(worker, found.kind, found.data) == Outcome(FOUND, found.signature)
        if found.again:

            def same(data: bytes) -> bool:
                left = end - time.monotonic()
                if left <= 0:
                    raise OutOfTime
                verdict = attempt(worker, found.kind, data, left)
                if verdict != Outcome(FOUND, found.signature):
                    return False
                found.detail = verdict.detail
                return True

            found.data = shrunk(found.data, kind(found.kind).splits, same)
            say(f"smaller: {found.kind}: {found.signature}: {len(found.data)} bytes")
        else:
            say(f"not found again alone: {found.kind} {found.index}: {found.signature}")
    except OutOfTime:
        pass
    finally:
        worker.close()
    save(found, out)
