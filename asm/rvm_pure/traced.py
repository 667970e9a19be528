"""Values of a function that is being traced: they answer NumPy's protocols, and record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from rvm.codes.words import described
from rvm.faults import UsageError
from rvm.isa import FUNCTIONS
from rvm.isa.numpy_names import UFUNCS
from rvm.isa.rows import reduction_by
from rvm.isa.rules import OF_ARRAYS
from rvm.types import BOOL, F64, Scalar
from rvm_pure.lengths import size_term
from rvm_pure.recorder import Recorder, caller, refused
from rvm_pure.slices import End, sliced
from rvm_pure.terms import Each, Index, Num, Op, Proj, Term, Tup
from rvm_pure.types import Arr, Product, dims, elem_type

_OWN = ("apply", "recorder", "term")
_UNCHANGED = "`rvm.pure.update(x, i, value)` is a new array"
_INDICES = "indices are whole numbers, slices, and traced arrays of whole numbers"
_PICKED = "`np.where(c, x, 0)` has as many as x"

ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""NumPy's functions of arrays that are traced, which the module `array_functions` enters."""


class NoAttribute(UsageError, AttributeError):
    """The error for an attribute that traced values lack; `hasattr` is then False."""


class Traced:
    """A value of a function that is being traced."""

    __slots__ = ("recorder", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, term: Term) -> None:
        self.recorder = recorder
        self.term = term

    def __repr__(self) -> str:
        return f"<traced value of type {self.term.type}>"

    @property
    def shape(self) -> tuple[Any, ...]:
        """The lengths: those that types write as numbers are such, others are traced."""
        assert self.term.type is not None
        out: list[Any] = []
        for k, n in enumerate(dims(self.term.type)):
            if n is None or (n.name and n.more < 0):  # n - 2 is less than no elements for n = 1
                out.append(self._new(Op("dim", (self.term, Num(k)))))
            elif n.name:
                # As types write it, so that arrays made by it have the same length.
                out.append(Traced(self.recorder, self.recorder.typed(size_term(n))))
            else:
                out.append(n.more)
        return tuple(out)

    @property
    def ndim(self) -> int:
        assert self.term.type is not None
        return len(dims(self.term.type))

    @property
    def size(self) -> Any:
        total: Any = 1
        for n in self.shape:
            total = n * total
        return total

    @property
    def T(self) -> Any:  # noqa: N802
        return self if self.ndim < 2 else self._new(Op("transpose", (self.term,)))

    def _new(self, e: Term) -> Traced:
        return Traced(self.recorder, self.recorder.named(e))

    def apply(self, fn: str, *args: Any) -> Traced:
        """A function of the table of values and numbers; whole numbers among real ones are real."""
        terms = [term_of(a) for a in args]
        known = [elem_type(t.type) for t in terms if t.type is not None and not isinstance(t, Num)]
        real = next(
            (t for t in known if isinstance(t, Scalar) and not t.is_integer and t != BOOL), None
        )
        if fn == "/" and real is None:
            real = F64
        if real is not None and FUNCTIONS[fn].rule not in OF_ARRAYS:
            terms = [self._converted(t, real) for t in terms]
        return self._new(Op(fn, tuple(terms)))

    def _converted(self, e: Term, to: Scalar) -> Term:
        elem = None if e.type is None else elem_type(e.type)
        if isinstance(elem, Scalar) and elem.is_integer and not isinstance(e, Num):
            return Op(str(to), (e,))
        return e

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        name = ufunc.__name__
        fn = UFUNCS.get(name, name)
        if method == "reduce" and reduction_by(fn):
            return ARRAY_FUNCTIONS[reduction_by(fn)](self, named.get("axis", 0))
        if method == "accumulate" and name == "add":
            return self._new(Op("scan_left", (self.term,)))
        if named.get("out") is not None:
            raise refused(f"`np.{name}` is traced without `out`", _UNCHANGED)
        if method != "__call__" or fn not in FUNCTIONS:
            what = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
            raise refused(f"`{what}` cannot be traced", _hint(name))
        if named.keys() - {"out", "where", "casting", "order", "dtype", "subok"}:
            raise refused(f"`np.{name}` is traced without further arguments")
        return self.apply(fn, *args)

    def __array_function__(self, func: Any, types: Any, args: Any, named: Any) -> Any:
        name = f"{func.__module__}.{func.__name__}".removeprefix("numpy.")
        if name not in ARRAY_FUNCTIONS:
            raise refused(f"`np.{name}` cannot be traced", _hint(func.__name__))
        return _called(name, args, named)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        out: Traced = self
        for k, one in enumerate(keys):
            if isinstance(one, slice):
                return out._rows(one, keys[k + 1 :])
            out = out._item(one)
        return out

    def _rows(self, one: slice, rest: tuple[Any, ...]) -> Any:
        if one == slice(None, None, -1) and not rest:
            return _called("flip", (self,), {"axis": 0})
        if one.step not in (None, 1):
            how = "`x[::-1]` goes back, `rvm.pure.map(lambda i: x[2 * i], rvm.pure.iota(k))` skips"
            raise refused(f"a slice is traced with the step 1 only, not {one.step}", how)
        start, stop = map(_end, (one.start, one.stop))
        out = Traced(self.recorder, sliced(self.recorder, self.term, start, stop))
        if not rest:
            return out
        fn = out.recorder.function(
            [element_type(out.term)], lambda row: term_of(value_of(out.recorder, row)[rest])
        )
        return out._new(Each(fn, (out.term,)))

    def _item(self, i: Any) -> Traced:
        if not isinstance(i, (Traced, int, np.integer)):
            what = "`None`" if i is None else described(i)
            raise refused(f"{what} is not an index of a traced array", _INDICES)
        if self.ndim == 0:
            raise refused("a number has no elements", "there are more indices than dimensions")
        if isinstance(i, Traced) and elem_type(i.term.type or BOOL) == BOOL:
            raise refused("how many elements a condition picks is not known", _PICKED)
        if isinstance(i, (int, np.integer)) and i < 0:
            i = self.shape[0] + int(i)
        return self._new(Index(self.term, (term_of(i),)))

    def astype(self, t: Any) -> Any:
        names = {"float64": "f64", "float32": "f32", "int64": "i64", "complex128": "c128"}
        name = names.get(str(np.dtype(t)))
        if name is None:
            raise refused(
                f"`astype` is not traced to {np.dtype(t)}", f"it is to {', '.join(names)}"
            )
        return self._new(Op(name, (self.term,)))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [n for n in sorted(dir(type(self))) if n[0] != "_" and n not in _OWN]
        raise NoAttribute(
            "U060",
            f"a traced value has no `{name}`",
            where=caller(),
            hint=f"it has {', '.join(known)}",
        )

    def _untraceable(self, what: str, hint: str) -> NoReturn:
        raise refused(f"while a function is traced, {what} of its values are not known", hint)

    def __bool__(self) -> bool:
        self._untraceable(
            "the truth values", "`rvm.pure.where(c, a, b)` chooses, `rvm.pure.loop` repeats"
        )

    def __len__(self) -> int:
        self._untraceable("the lengths", "`x.shape[0]` is the length, as a traced number")

    def __float__(self) -> float:
        self._untraceable("the numbers", "functions of `math` are not traced, NumPy's are")

    __int__ = __complex__ = __float__

    def __index__(self) -> int:
        how = "`rvm.pure.loop(n, body, init)`, `rvm.pure.iota(n)`, `np.zeros_like(x)`"
        self._untraceable("the numbers", how)

    def __iter__(self) -> Any:
        self._untraceable("the elements", "`rvm.pure.map(f, x)`, `rvm.pure.reduce(f, init, x)`")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refused("a traced array does not change", _UNCHANGED)

    def __array__(self, *args: Any, **named: Any) -> Any:
        how = "arrays are made by `np.concatenate`, `rvm.pure.map`, `rvm.pure.replicate`"
        raise refused("the function called here needs numbers, not traced values", how)


def _operator(fn: str, swapped: bool = False) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        return self.apply(fn, other, self) if swapped else self.apply(fn, self, other)

    return operator


_BINARY = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}
_BINARY |= {"pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^"}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
for _word, _fn in _BINARY.items():
    setattr(Traced, f"__{_word}__", _operator(_fn))
    setattr(Traced, f"__r{_word}__", _operator(_fn, True))
for _word, _fn in _COMPARED.items():
    setattr(Traced, f"__{_word}__", _operator(_fn))
for _word, _fn in {"neg": "neg", "abs": "abs", "invert": "~"}.items():
    setattr(Traced, f"__{_word}__", lambda self, fn=_fn: self.apply(fn, self))


def _called(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """One of NumPy's functions of arrays."""
    try:
        return ARRAY_FUNCTIONS[name](*args, **named)
    except TypeError:
        raise refused(f"`np.{name}` is traced with plain arguments only") from None


def _method(name: str) -> Any:
    return lambda self, *args, **named: _called(name, (self, *args), named)


METHODS: tuple[str, ...] = (
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "dot",
    "clip",
    "cumsum",
    "cumprod",
)
METHODS += ("trace", "transpose", "take")
for _word in METHODS:
    setattr(Traced, _word, _method(_word))


def _hint(name: str) -> str:
    near = [n for n in {**UFUNCS, **ARRAY_FUNCTIONS} if n[:3] == name[:3]]
    known = ", ".join(sorted(near)[:6] or ARRAY_FUNCTIONS)
    return f"traced are {known}" + ", and functions of numbers" * (not near)


def term_of(v: Any) -> Term:
    """A value as a term: a traced one, a number, a tuple of such."""
    if isinstance(v, Traced):
        return v.term
    if isinstance(v, (bool, int, float, complex)):
        return Num(v)
    if isinstance(v, np.generic) or (isinstance(v, np.ndarray) and v.ndim == 0):
        return Num(v.item())
    if isinstance(v, (tuple, list)):
        return Tup(tuple(map(term_of, v)))
    hint = "a value is a number, an array or a tuple of such"
    if isinstance(v, np.ndarray):
        hint = "an array that the function needs is a parameter"
    raise refused(f"{described(v)} cannot be part of a trace", hint)


def value_of(recorder: Recorder, e: Term) -> Any:
    """A term as the traced function sees it: tuples as tuples."""
    if isinstance(e.type, Product):
        items = (
            e.items
            if isinstance(e, Tup)
            else [recorder.typed(Proj(k, e)) for k in range(len(e.type.items))]
        )
        return tuple(value_of(recorder, x) for x in items)
    return Traced(recorder, e)


def _end(v: Any) -> End:
    """An end of a slice as it is written, or as a term."""
    if isinstance(v, (int, np.integer)):
        return int(v)
    return None if v is None else term_of(v)


def element_type(e: Term) -> Any:
    if not isinstance(e.type, Arr):
        raise refused(f"an array is wanted, not a value of type {e.type}")
    return e.type.elem
