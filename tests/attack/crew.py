"""The processes that try inputs: started, given work, watched, ended and started again.

An input that takes too long of a processor's time (or ten times as long on a clock), and one at
which its process dies, is tried once more alone; the rest of its batch goes on without it.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.cases import ACCEPTED, FOUND, PACKAGES, REFUSED, Outcome, kind
from attack.worker import PROGRESS

_PATIENCE = 10.0
"""How many times as long as of a processor's time an input may take on a clock."""
_STARTING = 60.0
"""The seconds that a process may take to begin with a batch."""
_HOME = str(Path(__file__).parents[1])
"""The folder that this package is found in."""
_NONE_YET = -2
_GROWN = 1 << 20
"""Kilobytes of memory at which a process is ended, and another one goes on."""
_FRAME = re.compile(r'File "([^"]+)", line \d+ in (\S+)')


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Inputs of a kind by their numbers, or the one in a file."""

    kind: str
    seed: int
    first: int
    count: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class BatchEvent:
    """The outcome of a batch, or of a part of it; `found` has the inputs' numbers with findings."""

    batch: InputBatch
    accepted: int
    refused: int
    found: tuple[tuple[int, Outcome], ...]
    cpu: float


class Worker:
    """One process, and what is known of the batch that it is at."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="rvm-attack-"))
        self.batch: InputBatch | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._found: list[tuple[int, Outcome]] = []
        self._unread = b""
        self._index, self._since = -1, 0.0
        (self.home / "board").write_bytes(bytes(PROGRESS.size))
        with (self.home / "board").open("r+b") as file:
            self._board = mmap.mmap(file.fileno(), PROGRESS.size)

    def start(self, batch: InputBatch) -> None:
        """Begin with a batch."""
        process = self._process or self._begin()
        self.batch, self._found = batch, []
        PROGRESS.pack_into(self._board, 0, _NONE_YET, 0, 0, _used(process.pid))
        self._index, self._since = _NONE_YET, time.monotonic()
        request = {
            "kind": batch.kind,
            "seed": batch.seed,
            "first": batch.first,
            "count": batch.count,
            "file": batch.file,
        }
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()

    def _begin(self) -> subprocess.Popen[bytes]:
        (self.home / "log").write_bytes(b"")
        command = [sys.executable, "-m", "attack.worker", "../board", "../log"]
        folder = self.home / "scratch"
        folder.mkdir(exist_ok=True)
        # Compiled code is not kept, and libraries start no threads of their own.
        alone = {"RVM_CACHE_DIR": "", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        alone["PYTHONPATH"] = os.pathsep.join(p for p in (_HOME, os.getenv("PYTHONPATH")) if p)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **alone, "PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2"},
        )
        return self._process

    def fileno(self) -> int:
        """The descriptor that its answers come from, for `select`."""
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.fileno()

    def read(self) -> BatchEvent | None:
        """Take what it has said; an event if it has ended its batch, or has died."""
        data = os.read(self.fileno(), 1 << 16)
        return self._taken(data) if data else self._dead()

    def _taken(self, data: bytes) -> BatchEvent | None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):
                continue  # a message of the interpreter's, before it has begun
            message = json.loads(line)
            if "found" in message:
                verdict = Outcome(FOUND, message["signature"], message["detail"])
                self._found.append((message["found"], verdict))
            else:
                return self._ended(message)
        return None

    def _ended(self, message: dict[str, Any]) -> BatchEvent:
        assert self.batch is not None
        counts = message["done"]
        event = BatchEvent(
            self.batch, counts[ACCEPTED], counts[REFUSED], tuple(self._found), message["cpu"]
        )
        self.batch = None
        if message["peak"] > _GROWN:
            self.end()
        return event

    def _dead(self) -> BatchEvent:
        """What is known of a batch whose process died."""
        process = self._process
        assert process is not None
        code = process.wait()
        law = f"the process ends with {code}"
        if code < 0:
            with contextlib.suppress(ValueError):
                law = f"the process dies of {signal.Signals(-code).name}"
        return self._broken(law)

    def late(self) -> BatchEvent | None:
        """An event if the input under way takes too long; the process is then ended."""
        if self.batch is None or self._process is None:
            return None
        index, _, _, before = PROGRESS.unpack_from(self._board)
        if index != self._index:
            self._index, self._since = index, time.monotonic()
            return None
        limit = kind(self.batch.kind).seconds if index != _NONE_YET else _STARTING
        waited = time.monotonic() - self._since
        used = _used(self._process.pid) - before
        if used < limit and waited < _PATIENCE * limit:
            return None
        self._process.send_signal(signal.SIGUSR1)  # its stack goes to the log
        time.sleep(0.5)
        self._process.kill()
        assert self._process.stdout is not None
        # It may have gone on until the end came, and have said so.
        event = self._taken(self._process.stdout.read())
        self._process.wait()
        if event is None:
            return self._broken("an input hangs")
        self.end()
        return event

    def _broken(self, law: str) -> BatchEvent:
        """The event of a batch that was broken off, with the input under way as a finding."""
        batch = self.batch or InputBatch("", 0, 0, 0)
        index, accepted, refused, _ = PROGRESS.unpack_from(self._board)
        log = (self.home / "log").read_text(encoding="utf-8", errors="replace")[-6000:]
        verdict = Outcome(FOUND, f"{law} {innermost(log)}".strip(), f"{law}\n{log}")
        event = BatchEvent(batch, accepted, refused, (*self._found, (index, verdict)), 0.0)
        self.batch = None
        self.end()
        return event

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process, self._unread = self._process, None, b""
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def close(self) -> None:
        """End the process and remove its folder."""
        self.end()
        self._board.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _used(pid: int) -> float:
    """The processor's time that a process has taken, in seconds; on Linux only, elsewhere 0."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def innermost(log: str) -> str:
    """The innermost function of rvm's own on a stack that `faulthandler` has written."""
    for file, name in _FRAME.findall(log):
        if any(f"/{p}/" in file for p in PACKAGES):
            return f"in {Path(file).stem}.{name}"
    return ""


def events(workers: list[Worker], seconds: float) -> Iterator[tuple[Worker, BatchEvent]]:
    """What has happened within a number of seconds, if anything has."""
    busy = [w for w in workers if w.batch is not None]
    ready, _, _ = select.select(busy, [], [], seconds) if busy else ([], [], [])
    for worker in busy:
        event = worker.read() if worker in ready else worker.late()
        if event is not None:
            yield worker, event
