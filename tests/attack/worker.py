"""A process that tries inputs, one after the other, and says what it found.

It is given a request a line on standard input: a range of a kind's inputs, or a file of one.  Each
finding is told at once, as a line; how far it has come stands in a file that both processes map, so
that who started it knows which input crashed or hangs.  What rvm itself prints goes nowhere.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attack.cases import ACCEPTED, FOUND, REFUSED, Outcome, drawn, explained, judged, kind

PROGRESS = struct.Struct("<qqqd")
"""The input under way, how many were accepted and refused, the processor's time before it."""
_MEMORY = 4 << 30
"""The address space that a worker may take."""
_FILES = 256 << 20
"""The longest file that it may write."""
DETAIL = 6000


def main(board: str, log: str) -> None:
    """Serve requests until standard input ends."""
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
    # Errors of the C library and stacks of a crash are kept.
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILES, _FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    explained()  # no input is charged with the imports
    with Path(board).open("r+b") as shared, os.fdopen(requests) as lines:
        progress = mmap.mmap(shared.fileno(), PROGRESS.size)
        for line in lines:
            _serve(json.loads(line), progress, answers)


def _serve(request: Mapping[str, Any], progress: mmap.mmap, answers: int) -> None:
    found = kind(request["kind"])
    found.prepare()
    began = time.process_time()
    counts = {ACCEPTED: 0, REFUSED: 0, FOUND: 0}
    home = Path.cwd()
    folder = Path(tempfile.mkdtemp(dir=home))
    file = request.get("file")
    numbers = range(request["first"], request["first"] + request["count"])
    try:
        for index in [-1] if file else numbers:
            done = (index, counts[ACCEPTED], counts[REFUSED], time.process_time())
            PROGRESS.pack_into(progress, 0, *done)
            os.chdir(folder)
            data = Path(file).read_bytes() if file else drawn(found, request["seed"], index)
            verdict = judged(found, data, folder)
            counts[verdict.outcome] += 1
            if verdict.outcome == FOUND:
                _say(answers, _told(index, verdict))
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)
    done_at = time.process_time() - began
    _say(answers, {"done": counts, "cpu": done_at, "peak": peak_memory()})


def peak_memory() -> int:
    """The most memory that this process has held, in kilobytes.

    On Linux `ru_maxrss` begins with that of the process which started this one, so a large parent
    would have its workers replaced after each batch.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _told(index: int, verdict: Outcome) -> dict[str, Any]:
    detail = verdict.detail
    if len(detail) > DETAIL:
        detail = f"{detail[: DETAIL // 2]}\n...\n{detail[-DETAIL // 2 :]}"
    return {"found": index, "signature": verdict.signature, "detail": detail}


def _say(answers: int, message: Mapping[str, Any]) -> None:
    # Read by the process that started this one; a lone surrogate is written as ASCII.
    data = json.dumps(message).encode("ascii") + b"\n"
    while data:
        data = data[os.write(answers, data) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
