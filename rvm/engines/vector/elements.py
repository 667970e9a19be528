"""Elements of arrays in a loop's lanes: as they are in memory, and as they are left there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rvm.emit.numpy.known import Value
from rvm.engines.vector.access import Access

if TYPE_CHECKING:
    from rvm.engines.vector.printer import LoopPrinter


def load(p: LoopPrinter, found: Access) -> Value:
    """Elements as they are in memory."""
    view = "" if p.sel or p.guard else p.indices.view(found)
    if view:
        value = p.named(view)
        p.views.add(value.text)
        return value
    base, keys = p.indices.base(found), keys_of(p, found)
    if found.kind == "cell":
        return p.named(f"vector({base}[{keys}], {base}.dtype, {p.wide})")
    if p.guard:
        return p.named(f"pick_guarded({base}, ({keys},), {p.guard}, True, {p.wide})")
    one = len(found.axes) == 1
    return p.named(f"{base}.take({keys})" if one else f"{base}[{keys}]")


def keys_of(p: LoopPrinter, found: Access) -> str:
    """The indices of elements; they are checked unless there is a guard."""
    moment = found.key, p.sel, p.guard
    if moment in p.placed:
        return p.placed[moment]
    at, keys = p.indices, []
    for k, axis in enumerate(found.axes):
        if axis.rest is not None and not axis.rate:
            keys.append(at.fix(found, k))
            continue
        text = (
            p.lanes(axis.index).text if axis.rest is None else p.run(at.first(axis), at.rate(axis))
        )
        if not p.guard:
            text = f"inside({text}, {at.length(found, k)})"
        keys.append(p.named(text).text)
    for other in p.dependences.met.get(found, ()):
        axes = ", ".join(
            f"({at.first(axis)}, {at.rate(axis)}, {key})"
            for axis, key in zip(other.axes, keys, strict=True)
        )
        p.lines.append(f"never(_k, {axes})")
    p.placed[moment] = ", ".join(keys)
    return p.placed[moment]


def store(p: LoopPrinter, found: Access, text: str) -> None:
    """Record the value stored in an element by the lanes of an arm."""
    place = "" if p.sel else p.indices.view(found)
    if not place:
        keys = keys_of(p, found)
        place = f"{p.indices.base(found)}[{keys}]"
        if found in p.dependences.distinct:
            p.lines.append(f"distinct({keys})")
    p.stores.append((place, text, ""))
