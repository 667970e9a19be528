"""Setting stops: at lines, functions and instructions, and on changes and reads of places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rvm_tools.debug.expressions import fixed_place
from rvm_tools.debug.lines import beginnings
from rvm_tools.debug.stops import Breakpoint
from rvm_tools.debug.texts import place_text

from rvm.faults import RvmError, UsageError
from rvm.image import image_of
from rvm_dap.adapter import Adapter, Body, answers
from rvm_dap.breakpoints import Probe, Wish
from rvm_dap.code import shown
from rvm_dap.protocol import Arguments
from rvm_dap.stop_events import place_of_probe
from rvm_dap.variables import place_in


def _wish(args: Arguments, where: str, **more: Any) -> Wish:
    """A client's wish for a stop."""
    message = args.text("logMessage", "") or None
    return Wish(
        where, args.text("condition", ""), args.text("hitCondition", ""), message=message, **more
    )


def _told(found: Sequence[Probe | RvmError]) -> list[dict[str, Any]]:
    """Each stop's number, or why it could not be set."""
    return [
        {"verified": False, "message": f"{p.message} [{p.code}]"}
        if isinstance(p, RvmError)
        else {"verified": True, "id": p.number}
        for p in found
    ]


def _placed(adapter: Adapter, probes: Sequence[Probe | RvmError]) -> Body:
    """The same with the actual position of each stop."""
    out = _told(probes)
    for body, probe in zip(out, probes, strict=True):
        if isinstance(probe, Breakpoint):
            body |= place_of_probe(adapter, probe)
    return {"breakpoints": out}


@answers("setBreakpoints")
def set_breakpoints(adapter: Adapter, args: Arguments) -> Body:
    """The breakpoints and log points of a source."""
    debuggee = adapter.launched
    given = args.inner("source")
    entries = args.items("breakpoints")
    try:
        found = debuggee.sources.find(given.text("path", ""), given.integer("sourceReference", 0))
    except UsageError as error:
        # The file is not part of this program; an editor may have breakpoints in it all the same.
        return {"breakpoints": _told([error] * len(entries))}
    first = adapter.client.first_line
    wishes = [
        _wish(b, debuggee.sources.where(found, b.integer("line") + 1 - first)) for b in entries
    ]
    return _placed(adapter, debuggee.breaks.replace(("source", found), wishes))


@answers("setFunctionBreakpoints")
def set_function_breakpoints(adapter: Adapter, args: Arguments) -> Body:
    """Breakpoints at functions, and at labels."""
    wishes = [_wish(b, b.text("name").strip()) for b in args.items("breakpoints")]
    return _placed(adapter, adapter.launched.breaks.replace("function", wishes))


@answers("setInstructionBreakpoints")
def set_instruction_breakpoints(adapter: Adapter, args: Arguments) -> Body:
    """Breakpoints at addresses."""
    addresses = adapter.launched.addresses
    wishes = []
    for b in args.items("breakpoints"):
        address = addresses.read(b.text("instructionReference")) + b.integer("offset", 0)
        found = addresses.at(address)
        # An address without an instruction is reported as a stop that could not be set.
        where = shown(address) if found is None else f"{found[0].name}@{max(found[1], 0)}"
        wishes.append(_wish(b, where))
    probes = adapter.launched.breaks.replace("instruction", wishes)
    out = _told(probes)
    for body, probe in zip(out, probes, strict=True):
        if isinstance(probe, Breakpoint):
            target = probe.target
            body["instructionReference"] = shown(addresses.of(target.function, target.pc))
    return {"breakpoints": out}


@answers("setExceptionBreakpoints")
def set_exception_breakpoints(adapter: Adapter, args: Arguments) -> Body:
    """Failed checks always stop; there is nothing to choose."""
    return {"breakpoints": []}


@answers("breakpointLocations")
def breakpoint_locations(adapter: Adapter, args: Arguments) -> Body:
    """The lines of a source, between two, at which an instruction begins."""
    debuggee = adapter.launched
    source = args.inner("source")
    found = debuggee.sources.find(source.text("path", ""), source.integer("sourceReference", 0))
    first = adapter.client.first_line
    low = args.integer("line") + 1 - first
    high = args.integer("endLine", low - 1 + first) + 1 - first
    image = image_of(debuggee.session.program)
    if isinstance(found, str):
        lines = set(range(1, len(image.code(found, False)) + 1))
    else:
        lines = beginnings(image, found)
    return {"breakpoints": [{"line": k - 1 + first} for k in sorted(lines) if low <= k <= high]}


# ---------------------------------------------------------------- places


@answers("dataBreakpointInfo")
def data_breakpoint_info(adapter: Adapter, args: Arguments) -> Body:
    """Whether a place can be watched: its name, with indices as they are now."""
    session = adapter.session
    try:
        depth, text = place_in(adapter, args)
        frame = session.frames[depth]
        function = frame.code.function
        place = session.language.place(text, function, frame.regs)
        shown_place = place_text(fixed_place(place, function, frame.regs), function)
    except RvmError as error:
        return {"dataId": None, "description": f"{error.message} [{error.code}]"}
    return {
        "dataId": json.dumps([depth, function.name, shown_place]),
        "description": f"{shown_place} of {function.name}",
        "accessTypes": ["write", "read"],
        "canPersist": False,
    }


@answers("setDataBreakpoints")
def set_data_breakpoints(adapter: Adapter, args: Arguments) -> Body:
    """Watch places for changes, or for being read."""
    wishes = []
    for b in args.items("breakpoints"):
        try:
            depth, function, text = json.loads(b.text("dataId"))
        except (ValueError, TypeError):
            raise UsageError(
                "U041", "the argument `dataId` is not one that was given out"
            ) from None
        access = b.text("accessType", "write")
        if access not in ("write", "read"):
            raise UsageError("U041", f"`{access}` is not an access that can be watched")
        wishes.append(
            _wish(b, text, reads=access == "read", depth=int(depth), function=str(function))
        )
    return {"breakpoints": _told(adapter.launched.breaks.replace("data", wishes))}
