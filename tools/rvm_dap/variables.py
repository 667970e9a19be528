"""Scopes, variables and their children; setting them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rvm_tools.debug.commands.files import EDITED
from rvm_tools.debug.costs import floor_text
from rvm_tools.debug.session import Session

from rvm.faults import UsageError
from rvm.program import Function
from rvm_dap.adapter import Adapter, Body, answers
from rvm_dap.protocol import Arguments
from rvm_dap.stop_events import tell_probes
from rvm_dap.values import (
    CHUNK,
    ArrayPart,
    Child,
    NamedValues,
    Node,
    parameter,
    register_value,
    value_of_type,
)


@contextmanager
def looking(session: Session, depth: int) -> Iterator[None]:
    """A context in which the session shows a frame; UsageError U032 if there is none."""
    before = session.selected
    session.select(depth)
    try:
        yield
    finally:
        if session.selected >= 0:
            session.selected = before


def frame_of(adapter: Adapter, args: Arguments) -> int:
    """The depth of the frame that a request names; the innermost if it names none."""
    innermost = len(adapter.session.frames) - 1
    depth = args.integer("frameId", innermost + 1) - 1
    if not 0 <= depth <= innermost:
        raise UsageError("U032", f"there is no frame with the number {depth + 1}")
    return depth


def _node_of(adapter: Adapter, args: Arguments) -> Node:
    """The object of a variables reference; UsageError U041 if it is not (or no longer) valid."""
    number = args.integer("variablesReference")
    found = adapter.handles[number - 1] if 0 < number <= len(adapter.handles) else None
    if not isinstance(found, Node):
        raise UsageError("U041", f"there are no variables with the number {number} any more")
    return found


def place_in(adapter: Adapter, args: Arguments) -> tuple[int, str]:
    """The frame and text of the place that a request names: a child, or an expression."""
    name = args.text("name")
    if args.integer("variablesReference", 0):
        node = _node_of(adapter, args)
        child = _child(node, name)
        if not child.text:
            raise UsageError("U030", f"`{name}` is not a place")
        return node.depth, child.text
    return frame_of(adapter, args), name


def _child(node: Node, name: str) -> Child:
    if isinstance(node, ArrayPart):
        digits = name.strip("[]")
        k = int(digits) if digits.isdigit() else -1
        if node.low <= k < node.high:
            return next(node.part(k - node.low, 1, False))
    else:
        for child in node.children(False):
            if child.name == name:
                return child
    raise UsageError("U041", f"there is no variable `{name}` here")


# ---------------------------------------------------------------- looking


@answers("scopes")
def scopes(adapter: Adapter, args: Arguments) -> Body:
    """Parameters, ancillas that are live, and the machine itself."""
    depth = frame_of(adapter, args)
    session = adapter.session
    frame = session.frames[depth]
    function, regs = frame.code.function, frame.regs

    def arguments(hexadecimal: bool) -> list[Child]:
        return [
            parameter(depth, p.name, p.name, function, p.layout, regs, hexadecimal)
            for p in function.params
        ]

    def ancillas(hexadecimal: bool) -> list[Child]:
        return [
            register_value(depth, name, name, function.registers[k], regs[k], hexadecimal)
            for k, name in _live(function, regs)
        ]

    found = [
        ("Parameters", "arguments", NamedValues(depth, arguments), len(function.params)),
        ("Locals", "locals", NamedValues(depth, ancillas), len(list(_live(function, regs)))),
    ]
    out: list[dict[str, Any]] = [
        {
            "name": name,
            "presentationHint": hint,
            "variablesReference": adapter.reference(node),
            "namedVariables": count,
            "expensive": False,
        }
        for name, hint, node, count in found
    ]
    machine = NamedValues(depth, lambda hexadecimal: _counters(session))
    out.append(
        {
            "name": "Machine",
            "presentationHint": "registers",
            "variablesReference": adapter.reference(machine),
            "expensive": False,
        }
    )
    return {"scopes": out}


def _live(function: Function, regs: list[Any]) -> Iterator[tuple[int, str]]:
    for k in range(function.n_args, len(function.registers)):
        if regs[k] is not None and not function.registers[k].is_own:
            yield k, function.registers[k].name


def _counters(session: Session) -> list[Child]:
    """The machine's counters, which none can set."""
    account = session.machine.state.account
    rows = [
        ("time", f"{session.time}", "ticks"),
        ("end", "not known yet" if session.length is None else f"{session.length}", "ticks"),
        ("work", f"{session.work}", "ticks"),
        ("memory", f"{account.live_bytes}", "bytes"),
        ("peak memory", f"{account.peak_bytes}", "bytes"),
        ("erased", f"{session.erased}", "bits"),
        ("energy", floor_text(session), "joules"),
    ]
    if session.machine.residue_bytes:
        rows.append(("residue", f"{session.machine.residue_bytes}", "bytes"))
    if session.diverged is not None:
        rows.append(("edited", f"first at time {session.diverged}", ""))
    return [Child(name, "", value, unit, None, False) for name, value, unit in rows]


@answers("variables")
def variables(adapter: Adapter, args: Arguments) -> Body:
    """The children of a reference's object; for an array, the requested part."""
    node = _node_of(adapter, args)
    hexadecimal = args.inner("format").flag("hex")
    which = args.text("filter", "")
    start, count = args.integer("start", 0), args.integer("count", 0)
    found: list[Child]
    if isinstance(node, NamedValues):
        found = [] if which == "indexed" else list(node.children(hexadecimal))
        found = found[start : start + count] if count else found[start:]
    elif which == "named":
        found = []
    elif not count and len(node) > CHUNK and not adapter.client.paging:
        found = list(node.chunks())
    else:
        found = list(node.part(start, count or len(node), hexadecimal))
    return {"variables": [_told(adapter, child) for child in found]}


def _told(adapter: Adapter, child: Child) -> dict[str, Any]:
    """A value as the protocol's variable."""
    out: dict[str, Any] = {"name": child.name, **shape(adapter, child), "value": child.value}
    if child.text:
        out["evaluateName"] = child.text
    if not child.settable:
        out["presentationHint"] = {"attributes": ["readOnly"]}
    return out


def shape(adapter: Adapter, child: Child) -> dict[str, Any]:
    """A value's type, and the reference and number of its children."""
    out: dict[str, Any] = {"variablesReference": 0}
    if child.type:
        out["type"] = child.type
    if child.inner is not None and (not isinstance(child.inner, ArrayPart) or len(child.inner)):
        out["variablesReference"] = adapter.reference(child.inner)
        if isinstance(child.inner, ArrayPart):
            out["indexedVariables"] = len(child.inner)
        else:
            out["namedVariables"] = len(child.inner.children(False))
    return out


# ---------------------------------------------------------------- setting


@answers("setVariable")
def set_variable(adapter: Adapter, args: Arguments) -> Body:
    """Change a variable of a container."""
    depth, text = place_in(adapter, args)
    return _set(adapter, depth, text, args)


@answers("setExpression")
def set_expression(adapter: Adapter, args: Arguments) -> Body:
    """Change the place that an expression is."""
    return _set(adapter, frame_of(adapter, args), args.text("expression"), args)


def _set(adapter: Adapter, depth: int, text: str, args: Arguments) -> Body:
    session = adapter.session
    first = session.diverged is None
    with looking(session, depth):
        session.set(text, args.text("value").strip())
        t, raw = session.evaluate(text)
    if first:
        adapter.channel.output(EDITED, "console")
    tell_probes(adapter)
    adapter.later(lambda: changed(adapter))
    hexadecimal = args.inner("format").flag("hex")
    child = value_of_type(depth, text, text, t, raw, hexadecimal)
    return {"value": child.value, **shape(adapter, child)}


def changed(adapter: Adapter) -> None:
    """Notify the client that values have changed."""
    if adapter.client.invalidated:
        adapter.channel.event("invalidated", {"areas": ["variables"]})
