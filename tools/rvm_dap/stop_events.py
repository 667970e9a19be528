"""Events about stops: where they are, and which were set or removed without the client."""

from __future__ import annotations

from typing import Any

from rvm_tools.debug.stops import Breakpoint

from rvm.image import image_of
from rvm_dap.adapter import Adapter
from rvm_dap.breakpoints import Wish
from rvm_dap.code import shown


def place_of_probe(adapter: Adapter, probe: Breakpoint) -> dict[str, Any]:
    """The position of a breakpoint, for the client."""
    debuggee = adapter.launched
    target, first = probe.target, adapter.client.first_line
    if target.line:
        source = debuggee.sources.source(target.source)
        return {"source": source, "line": target.line - 1 + first}
    pc = max(target.pc, 0)
    code = image_of(debuggee.session.program).code(target.function, False)
    place = debuggee.sources.place(code, pc)
    if target.pc >= 0:
        place = {"source": debuggee.sources.listing(target.function), "line": pc + 1}
    reference = shown(debuggee.addresses.of(target.function, pc))
    return {
        "source": place["source"],
        "line": place["line"] - 1 + first,
        "instructionReference": reference,
    }


def tell_probes(adapter: Adapter) -> None:
    """Report stops that a command has set, and stops that were removed, used up, or lost."""
    debuggee = adapter.launched
    gone, come = debuggee.breaks.news()
    for number in gone:
        body: dict[str, Any] = {"id": number, "verified": False}
        adapter.channel.event("breakpoint", {"reason": "removed", "breakpoint": body})
    for probe in come:
        body = {"id": probe.number, "verified": True}
        if isinstance(probe, Breakpoint):
            body |= place_of_probe(adapter, probe)
            target = probe.target
            if target.line and not probe.temporary:
                # The client will have it in its list of this source from now on.
                where = debuggee.sources.where(target.source, target.line)
                wish = Wish(where, probe.condition, message=probe.message)
                debuggee.breaks.enter(("source", target.source), wish, probe)
        adapter.channel.event("breakpoint", {"reason": "new", "breakpoint": body})
