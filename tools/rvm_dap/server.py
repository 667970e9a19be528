"""The server: a reader and a worker for each client, over standard input and output or TCP."""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from rvm.faults import UsageError
from rvm_dap.adapter import Adapter
from rvm_dap.inbox import Inbox
from rvm_dap.protocol import Arguments, Channel, Request, request_of
from rvm_dap.wire import BadMessage, BrokenStream, read_message

_LEAVE = Request(0, "disconnect", Arguments())
"""The request assumed from a client that has disconnected."""


def converse(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """One client's whole conversation.

    The worker is a separate thread, so that the reader receives a pause while a program runs.
    """
    channel = Channel(outgoing)
    inbox = Inbox(channel.not_stopped)
    adapter = Adapter(channel, inbox)
    worker = threading.Thread(target=adapter.serve, name="rvm dap", daemon=True)
    worker.start()
    try:
        _read(incoming, channel, inbox, lambda: adapter.finished)
    finally:
        inbox.put(_LEAVE)
        worker.join()


def _read(incoming: BinaryIO, channel: Channel, inbox: Inbox, finished: Callable[[], bool]) -> None:
    """Put requests into the inbox until the client leaves, or sends something unreadable."""
    while not finished():
        try:
            message = read_message(incoming)
        except BadMessage as error:
            channel.output(str(error), "stderr")
            continue
        except BrokenStream as error:
            channel.output(f"the conversation ends: {error}", "stderr")
            return
        except (OSError, ValueError):
            return
        if message is None:
            return
        try:
            request = request_of(message)
        except UsageError as error:
            seq, command = message.get("seq"), message.get("command")
            channel.refuse(seq if isinstance(seq, int) else 0, str(command or ""), error)
            continue
        if request is None:
            continue
        inbox.put(request)
        if request.command == "disconnect":
            return


def serve_stdio() -> None:
    """Serve one client on standard input and output; other output goes to standard error."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    kept, sys.stdout = sys.stdout, sys.stderr
    try:
        converse(incoming, outgoing)
    finally:
        sys.stdout = kept


def address_of(text: str) -> tuple[str, int]:
    """`127.0.0.1:4711` as host and port; UsageError U040 if that is not this computer alone."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError("U040", f"`{text}` is not a HOST:PORT", hint="--listen 127.0.0.1:4711")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise UsageError(
            "U040",
            f"`{host}` is not an address of this computer alone",
            hint="a debugger runs what it is told to: listen at 127.0.0.1 or ::1",
        )
    return host, int(port)


def serve_tcp(host: str, port: int, ready: Callable[[str, int], object]) -> None:
    """Serve any number of clients, each with a separate session, until interrupted.

    `ready` is called with the address; port 0 chooses a free one.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError("U040", f"can't listen at {host}:{port}: {reason}") from None
        listener.listen()
        ready(host, listener.getsockname()[1])
        while True:
            client, _ = listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve_socket, args=(client,), daemon=True).start()


def serve_socket(client: socket.socket) -> None:
    """Serve one client on a connected socket, and close it; the client may have done so."""
    with (
        suppress(OSError),
        client,
        client.makefile("wb") as outgoing,
        client.makefile("rb") as incoming,
    ):
        converse(incoming, outgoing)
