"""Frames, sources and bytecode."""

from __future__ import annotations

from typing import Any

from rvm_tools.debug.views import position

from rvm.faults import Fault, UsageError
from rvm_dap.adapter import Adapter, Body, answers
from rvm_dap.code import shown
from rvm_dap.protocol import Arguments

MOST = 100_000
"""The most instructions that are disassembled at once."""


def _placed(adapter: Adapter, place: dict[str, Any]) -> dict[str, Any]:
    """A place with lines and columns counted as the client does."""
    client = adapter.client
    out = dict(place)
    for name, first in (
        ("line", client.first_line),
        ("endLine", client.first_line),
        ("column", client.first_column),
        ("endColumn", client.first_column),
    ):
        if name in out:
            out[name] += first - 1
    return out


@answers("stackTrace")
def stack_trace(adapter: Adapter, args: Arguments) -> Body:
    """The frames, innermost first, or some of them."""
    debuggee = adapter.launched
    frames = debuggee.session.frames
    total = len(frames)
    start, levels = max(args.integer("startFrame", 0), 0), args.integer("levels", 0)
    stop = min(start + levels, total) if levels > 0 else total
    out = []
    for k in range(start, stop):
        depth = total - 1 - k
        frame = frames[depth]
        code, pc = frame.code, position(frame, k == 0)
        end = pc >= len(code)
        undone = ", being undone" if code.undo else ""
        address = debuggee.addresses.of(code.name, code.forward_pc(pc))
        out.append(
            {
                "id": depth + 1,
                "name": f"{code.name}{undone}{', at its end' if end else ''}",
                **_placed(adapter, debuggee.sources.place(code, pc)),
                "instructionPointerReference": shown(address),
            }
        )
    return {"stackFrames": out, "totalFrames": total}


@answers("source")
def source(adapter: Adapter, args: Arguments) -> Body:
    """The text of a source that is in no file."""
    number = args.inner("source").integer("sourceReference", args.integer("sourceReference", 0))
    return {"content": adapter.launched.sources.content(number), "mimeType": "text/x-rasm"}


@answers("loadedSources")
def loaded_sources(adapter: Adapter, args: Arguments) -> Body:
    """All sources of the program."""
    return {"sources": adapter.launched.sources.all()}


@answers("disassemble")
def disassemble(adapter: Adapter, args: Arguments) -> Body:
    """Instructions around an address, each with its inverse beside it."""
    debuggee = adapter.launched
    addresses = debuggee.addresses
    count = args.integer("instructionCount")
    if not 0 <= count <= MOST:
        raise UsageError("U041", f"{count} is not a number of instructions, 0 to {MOST}")
    first = addresses.read(args.text("memoryReference"))
    first += args.integer("offset", 0) + args.integer("instructionOffset", 0)
    out: list[dict[str, Any]] = []
    for address in range(first, first + count):
        found = addresses.at(address)
        if found is None:
            # Addresses below zero can't be written; editors show none of these.
            out.append(
                {
                    "address": shown(max(address, 0)),
                    "instruction": "",
                    "presentationHint": "invalid",
                }
            )
            continue
        code, pc = found
        row: dict[str, Any] = {"address": shown(address), "instruction": addresses.text(code, pc)}
        if pc < 0:
            row["symbol"] = code.name
        if 0 <= pc < len(code):
            place = _placed(adapter, debuggee.sources.place(code, pc))
            row["location"] = place.pop("source")
            row |= place
        out.append(row)
    return {"instructions": out}


@answers("exceptionInfo")
def exception_info(adapter: Adapter, args: Arguments) -> Body:
    """The check that failed: its code, both conditions or values, and advice."""
    error: Fault | None = adapter.session.stop.error
    if error is None or adapter.session.stop.reason not in ("error", "limit"):
        raise UsageError("U042", "no check has failed here")
    found = error.diagnostics[0]
    inner = [{"message": f"{name} = {value}"} for name, value in found.values.items()]
    details: dict[str, Any] = {
        "message": found.message,
        "typeName": type(error).__name__,
        "fullTypeName": f"rvm.faults.{type(error).__name__}",
        "stackTrace": found.human(),
    }
    if inner:
        details["innerException"] = inner
    return {
        "exceptionId": error.code,
        "description": str(error),
        "breakMode": "always",
        "details": details,
    }
