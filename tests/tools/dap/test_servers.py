"""`rvm dap` as a process: standard input and output, TCP, and addresses that it refuses."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from rvm_dap.server import address_of
from tools.dap.client import PATIENCE, Client
from tools.dap.programs import CALLS
from tools.running import rvm

from rvm.faults import UsageError


@contextmanager
def server(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "rvm_tools", "dap", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                with suppress(OSError):
                    stream.close()


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    (tmp_path / "calls.rasm").write_text(CALLS)
    return tmp_path / "calls.rasm"


def converse(client: Client, calls: Path) -> None:
    client.launch(calls, inputs={"a": 3, "b": 5})
    assert client.event("stopped")["reason"] == "end"
    assert client.values() == {"a": "4", "b": "112"}
    assert client.go("reverseContinue")["reason"] == "entry"
    assert client.values() == {"a": "3", "b": "5"}
    assert client.output() == ["a is 4", "a is 4"]


def test_standard_input_and_output(calls: Path) -> None:
    with server() as process:
        assert process.stdin and process.stdout
        client = Client(process.stdout, process.stdin)
        converse(client, calls)
        client.ask("disconnect")
        assert process.wait(PATIENCE) == 0


def test_a_closed_input_ends_it(calls: Path) -> None:
    with server() as process:
        assert process.stdin and process.stdout and process.stderr
        client = Client(process.stdout, process.stdin)
        client.launch(calls, inputs={"a": 3, "b": 5})
        client.event("stopped")
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_tcp_serves_clients_side_by_side(calls: Path) -> None:
    with server("--listen", "127.0.0.1:0") as process:
        assert process.stderr
        said = process.stderr.readline().decode()
        assert said.startswith("listening at 127.0.0.1:")
        port = int(said.rsplit(":", 1)[1])
        with (
            socket.create_connection(("127.0.0.1", port), PATIENCE) as one,
            socket.create_connection(("127.0.0.1", port), PATIENCE) as two,
        ):
            first = Client(one.makefile("rb"), one.makefile("wb"))
            second = Client(two.makefile("rb"), two.makefile("wb"))
            first.launch(calls, inputs={"a": 1, "b": 1}, stopOnEntry=True)
            first.event("stopped")
            converse(second, calls)
            assert first.values() == {"a": "1", "b": "1"}
            second.ask("disconnect")
            first.go("next")
            first.ask("disconnect")


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:4711", "192.168.0.1:1", "example.org:80", "127.0.0.1", "127.0.0.1:x", ":70000"],
)
def test_addresses_that_are_refused(text: str) -> None:
    assert "U040" in rvm("dap", "--listen", text, code=2).stderr


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "U040" in rvm("dap", "--listen", f"127.0.0.1:{port}", code=2).stderr


def test_addresses() -> None:
    assert address_of(":4711") == ("127.0.0.1", 4711)
    assert address_of("localhost:0") == ("127.0.0.1", 0)
    assert address_of("[::1]:9") == ("::1", 9)
    with pytest.raises(UsageError):
        address_of("[::]:9")
