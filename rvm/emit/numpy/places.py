"""Places over lanes: views of arrays, and elements whose indices differ by lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rvm.emit.numpy.known import Value
from rvm.emit.python.lines import bare
from rvm.expr import Expr, Index, Part, Place, Shaped, Span, Transposed, is_count
from rvm.types import Scalar, Stack

if TYPE_CHECKING:
    from rvm.emit.numpy.values import LaneValues


def held(p: LaneValues, place: Place) -> Value:
    """The value of a place, as a view if possible."""
    name = p.regs[place.reg]
    if not place.path:
        return Value(name, place.reg)
    if is_count(place):
        return p.named(f"{name}.count()")
    if p.guard and (guarded := _guarded(p, place)) is not None:
        return guarded
    base, key = found(p, place)
    if key is None:
        return p.named(base, home=place.reg)
    if place.reg in p.varying:
        return p.named(f"pick({base}, {key}, _W)")
    return p.named(f"pick_shared({base}, {key}, _W)")


def _guarded(p: LaneValues, place: Place) -> Value | None:
    """Elements that only the lanes of the guard use; others may have no such element."""
    view = p.regs[place.reg]
    steps = [s for s in place.path if not isinstance(s, Part)]
    if len(steps) != 1 or not isinstance(steps[0], Index):
        return None
    items = []
    for item in steps[0].items:
        if isinstance(item, Span):
            return None
        items.append(p.lanes(item).text)
    for step in place.path:
        if isinstance(step, Part):
            view += ".real" if step.name == "re" else ".imag"
    shared = place.reg not in p.varying
    return p.named(f"pick_guarded({view}, ({', '.join(items)},), {p.guard}, {shared}, _W)")


def found(p: LaneValues, place: Place, alike: bool = False) -> tuple[str, str | None]:
    """A place as a view, or as a view and a key with an index that varies.

    With `alike`, indices must be the same in all lanes of the group.
    """
    varying = place.reg in p.varying
    view = p.regs[place.reg]
    if isinstance(p.function.registers[place.reg].type, Stack):
        names = {"re": ".real", "im": ".imag"}
        inside = "".join(names[cast(Part, s).name] for s in place.path[1:])
        return f"{view}.values{inside}", f"({view}.last({p.guard or None}),)"
    if isinstance(p.function.registers[place.reg].type, Scalar):
        part = cast(Part, place.path[0])
        return f"{view}.{'real' if part.name == 're' else 'imag'}", None
    steps = [s for s in place.path if isinstance(s, Part)]
    steps += [s for s in place.path if not isinstance(s, Part)]  # type: ignore[misc]
    key = None
    for step in cast("list[Any]", steps):
        if key is not None:
            pick = "pick" if varying else "pick_shared"
            view, key, varying = p.named(f"{pick}({view}, {key}, _W)").text, None, True
        if isinstance(step, Part):
            view += ".real" if step.name == "re" else ".imag"
        elif isinstance(step, Transposed):
            view = f"turned({view})" if varying else f"{view}.T"
        elif isinstance(step, Shaped):
            dims = ", ".join([integer(p, d) for d in step.dims])
            view = f"{'shaped_lanes' if varying else 'shaped'}({view}, {dims})"
        else:
            items = [_index(p, i, view, axis, alike) for axis, i in enumerate(step.items)]
            if any(differs for _, differs in items):
                key = "(" + "".join(f"{text or 'slice(None)'}, " for text, _ in items) + ")"
            else:
                view += f"[{', '.join(text or ':' for text, _ in items)}]"
    return view, key


def _index(p: LaneValues, item: Expr | Span, view: str, axis: int, alike: bool) -> tuple[str, bool]:
    """One item of an index ("" for all of an axis), and whether it varies."""
    if isinstance(item, Span):
        if item.is_whole:
            return "", False
        ends = ("None" if e is None else integer(p, e) for e in item.ends)
        return f"span({', '.join(ends)}, {view}.shape[{axis}])", False
    if not p.known.differs(item):
        return p.scalars.index(item), False
    if alike:
        return f"inside({integer(p, item)}, {view}.shape[{axis}])", False
    text = p.lanes(item).text
    if p.guard:
        text = f"guarded({text}, {p.guard}, 0)"
    return p.named(f"inside({text}, {view}.shape[{axis}])").text, True


def integer(p: LaneValues, node: Expr) -> str:
    """An integer that must be the same in all lanes of the group."""
    if not p.known.differs(node):
        return bare(p.value(node))
    return p.named(f"one({p.lanes(node).text})").text


def view_of(p: LaneValues, place: Place) -> str:
    """A view of an array place; lanes for which it differs diverge."""
    if place.reg not in p.varying:
        return p.scalars.view(place)
    view, key = found(p, place, alike=True)
    assert key is None
    return view
