"""The reference page of the instruction set, by `python -m rvm_tools.isa_page`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import cleandoc
from itertools import product

from rvm_asm.printer import RegisterNames, SourcePrinter

from rvm.codes.words import with_article
from rvm.expr import Const, Expr, Place, rebuild
from rvm.faults import DefinitionError
from rvm.isa import FUNCTIONS, OPCODES, FunctionRow, OpRow, TypeFault, apply
from rvm.isa.derivatives import adjoint_type, gains
from rvm.isa.rules import CLASSES, FACTOR, default_type
from rvm.numbers import system
from rvm.program import Function, Register
from rvm.stmt import Exchange, Map, Stmt, Update, When
from rvm.types import BOOL, F64, I64, SCALARS, Scalar, ValueType, elem_of, rank_of, with_rank

_HEAD = """\
# The instruction set

This page is generated from the tables `rvm.isa.OPCODES` and `rvm.isa.FUNCTIONS` by
`python -m rvm_tools.isa_page > docs/isa.md`; a test keeps them in agreement. `docs/language.md`
describes the syntax of instructions, `docs/adding-an-opcode.md` how to add new ones.
"""
MODES = {"mut": "changed", "use": "read", "reg": "created or removed", "stack": "stack"}
_NUMBERS = ("integers", "fixedpoint", "floats", "complexes", "logs", "conversions")


def page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD, *_classes(), *_opcodes(), *_functions(), *_numbers()]
    return "\n".join(parts).rstrip() + "\n"


# ---------------------------------------------------------------- types


def members(cls: str) -> list[str]:
    """The scalar types of a class."""
    return [name for name, t in SCALARS.items() if CLASSES[cls](t)]


def _classes() -> Iterator[str]:
    yield "## Classes of types\n"
    yield "These names denote the types that instructions and functions take.\n"
    yield "| class | types |\n|---|---|"
    for cls in CLASSES:
        yield f"| {cls} | {' '.join(members(cls))} |"
    yield ""


def _class_of(types: Sequence[str]) -> str:
    """The name of a class that has just these members, else the types themselves."""
    for cls in CLASSES:
        if members(cls) == list(types):
            return types[0] if len(types) == 1 else cls
    return " ".join(types)


# ---------------------------------------------------------------- opcodes


def _undone(row: OpRow) -> str:
    """The inverse of an opcode, with a different one for some types if there is one."""
    if not row.exact_inverse:
        return _code(row.inverse)
    return f"{_code(row.inverse)}, on {row.exact_types} {_code(row.exact_inverse)}"


def _opcodes() -> Iterator[str]:
    yield "## Instructions\n"
    yield (
        "T is the type of the operands, from the class given. An operand is changed, or only "
        "read; changed operands never overlap the others. *Cost* is the class in which executing "
        "the instruction counts, in addition to its expressions.\n"
    )
    yield "| instruction | description | inverse | T | cost |\n|---|---|---|---|---|"
    for row in OPCODES.values():
        yield (
            f"| {_code(_written(row))} | {_cell(_meaning(row))} | "
            f"{_undone(row)} | {row.types} | {row.cost} |"
        )
    yield ""
    for row in OPCODES.values():
        yield f"### `{row.name}`\n"
        yield f"{_sentence(row.doc)}\n"
        for operand in row.operands:
            kind = "of type T" if operand.kind == "T" else f"of type {operand.kind}"
            if operand.kind == "angle":
                kind = "of type T (an f64 if T is c128 or an integer)"
            yield f"- `{operand.name}`: {MODES[operand.mode]}, {kind}"
        if row.operands:
            yield ""


def _written(row: OpRow) -> str:
    if row.name in ("call", "uncall"):
        return f"{row.name} f(a, …)"
    shown = {"print": '"text", v, …', "assert": 'c, "text"', "callback": "name, v, …"}.get(row.name)
    if row.name in ("alloc", "free"):
        shown = "x: T = v" if row.name == "alloc" else "x = v"
    if row.name in ("br", "cf"):
        shown = "c, label"
    return f"{row.name} {shown or ', '.join(o.name for o in row.operands)}"


def _meaning(row: OpRow) -> str:
    """The body as assignments; for other opcodes, the first sentence of their description."""
    if not row.body:
        return row.doc.split(". ")[0].rstrip(".")
    names = [o.name for o in row.operands]
    return "; ".join(_code(_stmt(s, names)) for s in row.body)


def _stmt(stmt: Stmt, names: Sequence[str]) -> str:
    match stmt:
        case Update(dst, op, value):
            return f"{formula(dst, names)} {op}= {formula(value, names)}"
        case Exchange(a, b):
            return f"{formula(a, names)} <=> {formula(b, names)}"
        case Map(dsts, values, _):
            left = ", ".join(formula(d, names) for d in dsts)
            return f"{left} = {', '.join(formula(v, names) for v in values)}"
        case When(cond, body):
            inside = "; ".join(_stmt(s, names) for s in body)
            return f"if {formula(cond, names)}: {inside}"
        case _:
            raise TypeError(f"no data statement: {stmt!r}")


def formula(node: Expr, names: Sequence[str]) -> str:
    """An expression over formals, or over the first registers, in the assembly language."""
    registers = tuple(Register(n, F64) for n in names)
    function = Function("", (), registers, ())
    return SourcePrinter(function, RegisterNames(function)).expr(_with_places(node))


def _with_places(node: Expr) -> Expr:
    index = getattr(node, "index", None)
    if index is not None:
        return Place(index, (), F64)
    if isinstance(node, Const) and node.type is None:
        return Const(node.value, default_type(node.value))
    return rebuild(node, _with_places)


# ---------------------------------------------------------------- functions


def _functions() -> Iterator[str]:
    yield "## Functions\n"
    yield (
        "Pure functions for the expressions of instructions. A function of numbers takes arrays "
        "too, element by element, with NumPy's broadcasting. *Derivative*: the term that is added "
        "to the adjoint of each argument if the adjoint of the result is `g`, for f64; — if there "
        "is none, because the function is piecewise constant or not of real numbers.\n"
    )
    yield "| function | result | types | cost | derivative |\n|---|---|---|---|---|"
    for row in FUNCTIONS.values():
        names = row.operands
        types, result = _typings(row)
        gives = _sentence(row.doc) + (f" Result: {result}." if result else "")
        yield (
            f"| {_code(_call(row, names))} | {_cell(gives)} | {types} | {row.cost} | "
            f"{_derivative(row, names)} |"
        )
    yield ""


def _call(row: FunctionRow, names: Sequence[str]) -> str:
    if row.symbol and row.arity == 2:
        return f"{names[0]} {row.symbol} {names[1]}"
    if row.symbol:
        return f"{row.symbol}{' ' if row.symbol.isalpha() else ''}{names[0]}"
    return f"{row.name}({', '.join(names)})"


def _shapes(arity: int) -> Iterator[tuple[int, ...]]:
    """Numbers of dimensions to try, scalars first."""
    yield from sorted(product(range(3), repeat=arity), key=lambda r: (sum(r), tuple(-k for k in r)))


def _typed(
    row: FunctionRow, t: Scalar, ranks: Sequence[int]
) -> tuple[list[ValueType], ValueType] | None:
    """The types of arguments of elements `t`, if allowed.

    A condition is a bool, an index an i64, the factor of a shear a fixed(62).
    """
    more = row.arity - 1
    first = [(t, *(other,) * more) for other in (t, I64, BOOL, FACTOR)] if more else [(t,)]
    for elems in (*first, *([(BOOL, *(t,) * more)] if more else [])):
        types = [with_rank(e, r) for e, r in zip(elems, ranks, strict=True)]
        try:
            result = apply(row.name, *(Place(k, (), u) for k, u in enumerate(types))).type
        except TypeFault:
            continue
        if result is not None:
            return types, result
    return None


def _first_shape(row: FunctionRow, t: Scalar) -> tuple[list[ValueType], ValueType] | None:
    return next((f for r in _shapes(row.arity) if (f := _typed(row, t, r)) is not None), None)


def _typings(row: FunctionRow) -> tuple[str, str]:
    """The class of types that a function takes, and the special features of its result."""
    found = {name: f for name, t in SCALARS.items() if (f := _first_shape(row, t)) is not None}
    results = {str(elem_of(r)) for _, r in found.values()}
    same = all(str(elem_of(r)) == name for name, (_, r) in found.items())
    dims = {rank_of(r) for _, r in found.values()}
    arrays = any(rank_of(t) for types, _ in found.values() for t in types)
    text = "" if same or len(results) != 1 else with_article(results.pop())
    if arrays:
        shape = " or ".join(("a scalar", "a vector", "a matrix")[d] for d in sorted(dims))
        text = f"{shape} of {text.split()[1]}" if text else shape
    return _class_of(list(found)), text


def _derivative(row: FunctionRow, names: Sequence[str]) -> str:
    """The terms for the arguments' adjoints, for f64 (or c128), on the first shapes with any."""
    for t in (F64, SCALARS["c128"]):
        for ranks in _shapes(row.arity):
            found = _typed(row, t, ranks)
            grown = None if found is None else _gains(row, *found)
            if grown is not None:
                parts = [
                    f"{name}: {formula(gain, [*names, 'g'])}"
                    for name, gain in zip(names, grown, strict=True)
                    if gain is not None
                ]
                return "<br>".join(_code(p) for p in parts) or "—"
    return "—" if row.formula is None else "that of its formula"


def _gains(
    row: FunctionRow, types: Sequence[ValueType], result: ValueType
) -> tuple[Expr | None, ...] | None:
    elem = adjoint_type(elem_of(result))
    if elem is None:
        return None
    args = tuple(Place(k, (), t) for k, t in enumerate(types))
    g = Place(len(args), (), with_rank(elem, rank_of(result)))
    try:
        return gains(row.name, args, g)
    except (DefinitionError, TypeFault):
        return None


# ---------------------------------------------------------------- number systems


def _numbers() -> Iterator[str]:
    yield "## Number types\n"
    yield "| type | exact | stored as | zero |\n|---|---|---|---|"
    for name, t in SCALARS.items():
        sys_ = system(t)
        exact = "yes" if sys_.exact else "up to rounding"
        yield f"| {name} | {exact} | {sys_.dtype.name} | {sys_.zero!r} |"
    yield "\n*Exact*: `add` then `sub` of the same number restores every bit.\n"
    for module in _NUMBERS:
        text = cleandoc(import_module(f"rvm.numbers.{module}").__doc__ or "")
        title, _, rest = text.partition("\n")
        yield f"### {title.rstrip('.')}\n\n{rest.strip()}\n"


# ---------------------------------------------------------------- Markdown


def _sentence(doc: str) -> str:
    text = " ".join(doc.split())
    return text if text.endswith((".", ")")) else text + "."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


if __name__ == "__main__":
    sys.stdout.buffer.write(page().encode())
