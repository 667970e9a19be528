"""From written values to a parameter's: literals and files converted to its type.

A conversion that would change a number is refused. The command line owns its arrays, so equal
numbers of another type (`3` for an f64, an int32 file for an i64) are converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import count, instead, with_article
from rvm.faults import InputError, UsageError
from rvm.numbers import system
from rvm.numbers.base import NumberSystem
from rvm.program import Function, Layout, Record, head_text, type_text
from rvm.run.binding import start_of
from rvm.types import Array, Scalar, Stack, elem_of
from rvm_tools.cells import Table
from rvm_tools.files import STDIN, FileBytes, Stored, read_all, read_value
from rvm_tools.literals import TEXT, File, MadeArray, Typed, read_literal


def assignments(words: Sequence[str], base: Path) -> dict[str, Any]:
    """The values that arguments `NAME=VALUE`, `NAME.FIELD=VALUE` and `@file` give, untyped."""
    out: dict[str, Any] = {}
    if sum(word.endswith(f"=@{STDIN}") for word in words) > 1:
        raise UsageError("U010", "standard input, `@-`, is the value of one parameter")
    for word in words:
        name, equals, text = word.partition("=")
        if word.startswith("@"):
            for key, value in read_all(File(word[1:]), base).items():
                _enter(out, key, value)
            continue
        if not equals or not all(p.isidentifier() for p in name.split(".")):
            raise UsageError(
                "U010",
                f"`{word}` is not a NAME=VALUE",
                hint="for example x=3, x=[1,2,3], x=@data.npy, or @inputs.npz for all",
            )
        text = text if text.startswith(TEXT) else text.strip()
        _enter(out, name, read_literal(text, name=name))
    return out


def _enter(into: dict[str, Any], name: str, value: Any) -> None:
    """Set a value; a dotted name is a field of a record."""
    head, dot, rest = name.partition(".")
    if dot:
        inner = into.setdefault(head, {})
        if isinstance(inner, dict):
            _enter(inner, rest, value)
            return
    elif head not in into:
        into[head] = value
        return
    raise UsageError("U010", f"`{name}` is given twice")


def inputs_for(
    function: Function, given: Mapping[str, Any], base: Path, example: str = ""
) -> dict[str, Any]:
    """The arguments of a call: each parameter's value in its type.

    InputError I001 names all missing values, I002 a name that is not a parameter, I003 and I004 a
    value of another type or shape.
    """
    names = [p.name for p in function.params]
    for name in given:
        if name not in names:
            hint = instead(name, names, f"it takes {signature(function)}")
            message = f"`{function.name}` has no parameter `{name}`"
            raise InputError("I002", message, hint=hint)
    missing = [
        p.name for p in function.params if p.name not in given and start_of(function, p) is None
    ]
    if missing:
        what = "a value" if len(missing) == 1 else "values"
        hint = f"it takes {signature(function)}"
        if example:
            hint += f"\nthe file's own example: {example}"
        raise InputError(
            "I001",
            f"`{function.name}` needs {what} for {', '.join(f'`{m}`' for m in missing)}",
            hint=hint,
        )
    return {
        p.name: value_for(function, p.layout, p.name, given[p.name], base)
        for p in function.params
        if p.name in given
    }


def signature(function: Function) -> str:
    """The parameters with their types, as the source has them."""
    return head_text(function) or "nothing"


def value_for(function: Function, layout: Layout, name: str, value: Any, base: Path) -> Any:
    """One parameter's value (or a field's) in its type."""
    if isinstance(value, File):
        value = read_value(value, base, name)
    if isinstance(layout, Record):
        fields = _fields(layout, name, value)
        return {
            field: value_for(function, inner, f"{name}.{field}", fields[field], base)
            for field, inner in layout.fields
        }
    t = function.registers[layout].type
    wanted = type_text(function, layout)
    if isinstance(value, bytes) and (isinstance(value, FileBytes) or not isinstance(t, Scalar)):
        value = _from_bytes(system(elem_of(t)), value, name, wanted)
    if isinstance(t, Array):
        array = array_of(t, wanted, name, value)
        if array.ndim != t.rank:
            raise InputError(
                "I004",
                f"`{name}` is {with_article(wanted)}: it has {count(t.rank, 'dimension')}, "
                f"not {array.ndim}",
                values={"shape": list(array.shape)},
            )
        return array
    sys = system(elem_of(t))
    if isinstance(t, Stack):
        shape = function.registers[layout].shape
        if not isinstance(value, list):
            array = array_of(Array(t.elem, 1), wanted, name, value)
            if array.ndim not in (1, 1 + len(shape)):
                raise _wrong(name, wanted, f"the file has {count(array.ndim, 'dimension')}")
            return array

        def numbers(v: Any) -> Any:
            if shape and isinstance(v, list):
                return [numbers(inner) for inner in v]
            return sys.to_python(raw_number(sys, v, name, wanted))

        return [numbers(v) for v in value]
    return sys.to_python(raw_number(sys, value, name, wanted))


def _from_bytes(sys: NumberSystem, data: bytes, name: str, wanted: str) -> Stored:
    """The numbers that bytes are in the machine's storage, the lowest byte of each first."""
    if not isinstance(data, FileBytes) and sys.dtype != np.uint8:
        raise _wrong(name, wanted, "a text is given, which is an array of u8")
    if len(data) % sys.dtype.itemsize:
        each = f"{len(data):,} bytes are not a whole number of {sys.type}s"
        raise _wrong(name, wanted, f"{each}, which have {sys.dtype.itemsize} bytes each")
    array = np.frombuffer(data, sys.dtype.newbyteorder("<")).astype(sys.dtype)
    if sys.type.is_bool and np.any(array.view(np.uint8) > 1):
        raise _wrong(name, wanted, "a byte is neither 0 nor 1")
    return Stored(array)


def _fields(layout: Record, name: str, value: Any) -> Mapping[str, Any]:
    """A record's fields; a list of records becomes a record of lists."""
    names = [f for f, _ in layout.fields]
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        if any(set(v) != set(value[0]) for v in value):
            raise InputError("I003", f"the records of `{name}` differ in their fields")
        value = {f: [v[f] for v in value] for f in value[0]}
    if not isinstance(value, dict) or set(value) != set(names):
        known = set(value) if isinstance(value, dict) else set()
        wrong = [f for f in known if f not in names] or [f for f in names if f not in known]
        raise InputError(
            "I003",
            f"`{name}` is a `{layout.name}` with the fields {', '.join(names)}",
            values={"unknown" if known - set(names) else "missing": ", ".join(sorted(wrong))},
            hint=f"for example {name}={{{', '.join(f'{f}: …' for f in names)}}}",
        )
    return value


def _wrong(name: str, wanted: str, message: object) -> InputError:
    return InputError("I003", f"`{name}` is {with_article(wanted)}: {message}")


def raw_number(sys: NumberSystem, value: Any, name: str, wanted: str) -> Any:
    """A scalar as its register holds it."""
    if isinstance(value, (Table, Stored)):
        array = _read(sys, value, name, wanted)
        if array.size != 1:
            raise _wrong(name, wanted, f"the file holds {array.size} numbers")
        return array.item()
    if isinstance(value, (list, dict, MadeArray)):
        kind = "a record" if isinstance(value, dict) else "an array"
        raise _wrong(name, wanted, f"{kind} is given for a number")
    if isinstance(value, bytes):
        raise _wrong(name, wanted, "a text is given for a number")
    try:
        return _held(sys, value)
    except (ValueError, TypeError, OverflowError) as error:
        raise _wrong(name, wanted, error) from None


def _held(sys: NumberSystem, value: Any) -> Any:
    """A number as its register holds it; ValueError or TypeError if it does not."""
    if not isinstance(value, Typed):
        return sys.from_python(value)
    named = Scalar("fixed", 43) if value.type == "fixed" else None
    if value.type != str(sys.type) and not (named == sys.type):
        raise ValueError(f"{with_article(value.type)} is given")
    return sys.raw(value.value)


def array_of(t: Array, wanted: str, name: str, value: Any) -> NDArray[Any]:
    """A list, made array or file contents as an array; InputError if that is impossible."""
    sys = system(t.elem)
    if isinstance(value, MadeArray):
        return _make(sys, value, name, wanted)
    if isinstance(value, (Table, Stored)):
        array = _read(sys, value, name, wanted)
        one_line = isinstance(value, Table) and min(array.shape) <= 1
        return array.reshape(-1) if one_line and t.rank == 1 else array
    if not isinstance(value, list):
        kind = (
            "a record"
            if isinstance(value, dict)
            else "a text"
            if isinstance(value, bytes)
            else "one value"
        )
        raise _wrong(name, wanted, f"{kind} is given for a list, for example [1, 2, 3]")
    shape = _shape(value, name, wanted)
    flat = list(_leaves(value))
    raws = [raw_number(sys, v, name, wanted) for v in flat]
    if not raws and len(shape) < t.rank:
        shape = (0,) * t.rank
    return np.array(raws, sys.dtype).reshape(shape)


def _make(sys: NumberSystem, made: MadeArray, name: str, wanted: str) -> NDArray[Any]:
    """The array that is described."""
    try:
        if made.kind != "range":
            one = raw_number(sys, int(made.kind == "ones"), name, wanted)
            return np.full(made.sizes, one, sys.dtype)
        numbers = np.arange(made.sizes[0], dtype=np.int64)
    except (MemoryError, OverflowError, ValueError) as error:
        raise InputError("I004", f"an array of these lengths can't be made: {error}") from None
    if sys.type.is_fixed or sys.type.is_log:
        return np.array([raw_number(sys, v, name, wanted) for v in numbers.tolist()], sys.dtype)
    return _read(sys, Stored(numbers), name, wanted)


def _shape(value: Any, name: str, wanted: str) -> tuple[int, ...]:
    """The lengths of nested lists; I004 where they differ."""
    if not isinstance(value, list):
        return ()
    inner = {_shape(v, name, wanted) for v in value}
    if len(inner) > 1:
        raise InputError(
            "I004", f"`{name}` is {with_article(wanted)}: the rows of the list differ in length"
        )
    return (len(value), *(next(iter(inner)) if inner else ()))


def _leaves(value: Any) -> Any:
    if isinstance(value, list):
        for v in value:
            yield from _leaves(v)
    else:
        yield value


def _read(sys: NumberSystem, value: Table | Stored, name: str, wanted: str) -> NDArray[Any]:
    """The contents of a file in the storage of a type, if no number changes by that."""
    if isinstance(value, Table):
        try:
            return value.array(sys, lambda v: _held(sys, v))
        except ValueError as error:
            raise _wrong(name, wanted, error) from None
    array = value.array
    if array.dtype.kind not in "biufc":
        raise _wrong(name, wanted, f"the file holds {array.dtype}, no numbers")
    if array.dtype == sys.dtype:
        return np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind == "b" or (sys.type.is_bool and array.dtype.kind not in "iu"):
        raise _wrong(name, wanted, f"the file holds {array.dtype}")
    if array.dtype.kind == "c" and sys.dtype.kind != "c":
        raise _wrong(name, wanted, "the file holds complex numbers")
    with np.errstate(all="ignore"):
        made = array.astype(sys.dtype)
    if not _equal(array, made):
        raise _wrong(name, wanted, f"its dtype is {array.dtype}, and not every number fits")
    return made


def _equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether `b`, converted from `a`, holds the very same numbers (NaN is NaN)."""
    if a.dtype.kind == "c":
        return b.dtype.kind == "c" and bool(np.all((a == b) | ((a != a) & (b != b))))
    with np.errstate(all="ignore"):
        back = b.real.astype(a.dtype)
    return bool(np.all(((back == a) & ((a < 0) == (b.real < 0))) | ((a != a) & (b != b))))
