"""Facts about the lengths of arrays that are known before a run."""

from __future__ import annotations

from collections.abc import Sequence

from rvm.types import ValueType, elem_of, rank_of
from rvm_pure.terms import Num, Op, Term, Var
from rvm_pure.types import Arr, Length, Size, Type, array_of, dims, together


def size_of(e: Term) -> Length:
    """The length that a term of whole numbers denotes; None if only the run knows it."""
    match e:
        case Num(int(k)):
            return Size("", max(0, k))
        case Var(name):
            return Size(name)
        case Op("+", (a, Num(int(k)))) | Op("+", (Num(int(k)), a)):
            n = size_of(a)
            return None if n is None else n.plus(k)
        case Op("-", (a, Num(int(k)))):
            n = size_of(a)
            return None if n is None else n.plus(-k)
        case Op("len", (a,)) if isinstance(a.type, Arr):
            return a.type.length
        case Op("dim", (a, Num(int(k)))) if a.type is not None and k < len(dims(a.type)):
            return dims(a.type)[k]
    return None


def size_term(n: Size) -> Term:
    """A length as a term, as its type writes it."""
    if not n.name:
        return Num(n.more)
    name = Var(n.name)
    return Op("+" if n.more > 0 else "-", (name, Num(abs(n.more)))) if n.more else name


def result_type(fn: str, args: Sequence[Term], result: ValueType) -> tuple[Type, str]:
    """The type of a function's value with its lengths, and the error in the arguments' lengths."""
    elem, rank = elem_of(result), rank_of(result)
    shapes = [dims(a.type) for a in args if a.type is not None]
    unknown: tuple[Length, ...] = (None,) * rank
    match fn:
        case "matvec" | "matmul" | "@" | "dot":
            a, b = shapes
            fine, _ = together(a[-1], b[max(len(b) - 2, 0)])
            clash = "" if fine else f"whose lengths agree, not {_text(a)} and {_text(b)}"
            return array_of(elem, (*a[:-1], *(b[1:] if len(b) == 2 else ()))), clash
        case "outer":
            return array_of(elem, (*shapes[0], *shapes[1])), ""
        case "gather":
            return array_of(elem, (*shapes[1], *shapes[0][1:])[:rank]), ""
        case "scatter":
            fine, _ = together(shapes[0][0], shapes[1][0])
            clash = "" if fine else f"of one length, not {_text(shapes[0])} and {_text(shapes[1])}"
            return array_of(elem, (size_of(args[2]),)), clash
        case "transpose":
            return array_of(elem, shapes[0][::-1]), ""
        case "sum_like" | "spread_like":
            return array_of(elem, shapes[1]), ""
        case "len" | "dim":
            return elem, ""
    if not rank:
        return elem, ""
    out: list[Length] = list(unknown)
    for k in range(1, rank + 1):
        found: Length = Size("", 1)
        for shape in shapes:
            if len(shape) < k or shape[-k] == Size("", 1):
                continue
            fine, n = (True, shape[-k]) if found == Size("", 1) else together(found, shape[-k])
            if not fine:
                return array_of(elem, unknown), f"of one length, not of {found} and {shape[-k]}"
            found = n
        out[-k] = found
    return array_of(elem, tuple(out)), ""


def _text(shape: tuple[Length, ...]) -> str:
    return "[" + ", ".join("?" if n is None else str(n) for n in shape) + "]"
