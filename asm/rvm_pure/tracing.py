"""NumPy functions as terms: run once, on values that record operations by NumPy's protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from inspect import signature
from typing import Any, NoReturn

import numpy as np

from rvm.codes.words import described
from rvm.faults import UsageError
from rvm.isa import FUNCTIONS
from rvm.isa.rows import reduction_by
from rvm.isa.rules import OF_ARRAYS
from rvm.types import BOOL, F64, I64, Scalar
from rvm_pure.lengths import size_of
from rvm_pure.recorder import Recorder, caller, line_of, refused
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Lam,
    Loop,
    Num,
    Op,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
)
from rvm_pure.types import Arr, Product, Size, dims, elem_type

UFUNCS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "true_divide": "/",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "float_power": "**",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "maximum": "max",
    "minimum": "min",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "and",
    "logical_or": "or",
    "logical_not": "not",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "matmul": "@",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "conjugate": "conj",
}
"""NumPy's functions of numbers whose names are not the table's."""
WHOLE = {
    name: row.name
    for row in FUNCTIONS.values()
    if row.repeats
    for name in (row.name, row.name.removeprefix("a"))
}
"""NumPy's functions of whole arrays: `np.max` is `np.amax`."""


_OWN = ("apply", "recorder", "term")


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
            return numpy_sum(self, reduction_by(fn), named.get("axis", 0))
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
        found = ARRAY_FUNCTIONS.get(func.__name__) if func.__module__ == "numpy" else None
        if found is None:
            name = f"{func.__module__}.{func.__name__}".replace("numpy.", "np.", 1)
            raise refused(f"`{name}` cannot be traced", _hint(func.__name__))
        try:
            return found(*args, **named)
        except TypeError:
            what = f"`np.{func.__name__}` is traced with plain arguments only"
            raise refused(what) from None

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        out: Traced = self
        for k, one in enumerate(keys):
            if isinstance(one, slice):
                return out._rows(one, keys[k + 1 :])
            out = out._item(one)
        return out

    def _rows(self, one: slice, rest: tuple[Any, ...]) -> Any:
        out = sliced(self, one)
        return mapped(lambda row: row[rest], out) if rest else out

    def _item(self, i: Any) -> Traced:
        if self.ndim == 0:
            raise refused("a number has no elements", "there are more indices than dimensions")
        if not isinstance(i, (Traced, int, np.integer)):
            what = "`None`" if i is None else described(i)
            raise refused(f"{what} is no index of a traced array", _INDICES)
        if isinstance(i, Traced) and elem_type(i.term.type or BOOL) == BOOL:
            raise refused("how many elements a condition picks is not known", _PICKED)
        if isinstance(i, (int, np.integer)) and i < 0:
            i = self.shape[0] + int(i)
        return self._new(Index(self.term, (term_of(i),)))

    def sum(self, axis: Any = None) -> Any:
        return numpy_sum(self, "sum", axis)

    def prod(self, axis: Any = None) -> Any:
        return numpy_sum(self, "prod", axis)

    def max(self, axis: Any = None) -> Any:
        return numpy_sum(self, "amax", axis)

    def min(self, axis: Any = None) -> Any:
        return numpy_sum(self, "amin", axis)

    def mean(self, axis: Any = None) -> Any:
        return mean(self, axis)

    def dot(self, other: Any) -> Any:
        return self @ other

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
        known = [n for n in dir(type(self)) if n[0] != "_" and n not in _OWN]
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


_UNCHANGED = "`rvm.pure.update(x, i, value)` is a new array"
_INDICES = "indices are whole numbers, slices, and traced arrays of whole numbers"
_PICKED = "`np.where(c, x, 0)` has as many as x"


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


def _hint(name: str) -> str:
    near = [n for n in (*UFUNCS, *ARRAY_FUNCTIONS) if n[:3] == name[:3]]
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
    raise refused(f"{described(v)} is no part of a trace", hint)


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


_ACTIVE: ContextVar[Recorder | None] = ContextVar("trace", default=None)
"""The trace of the function that is run."""


def recorder_of(*values: Any) -> Recorder:
    """The trace that some of the values belong to, or else that of the function that is run."""
    for v in values:
        if isinstance(v, Traced):
            return v.recorder
        if isinstance(v, (tuple, list)):
            found = [x for x in v if isinstance(x, (Traced, tuple, list))]
            if found:
                return recorder_of(*found)
    active = _ACTIVE.get()
    if active is None:
        raise refused("nothing is traced here", "`rvm.pure(f)` traces what `f` does")
    return active


def numpy_sum(x: Any, fn: str, axis: Any = None, **named: Any) -> Any:
    """`np.sum` and its like, of all elements or along one axis of a matrix."""
    name = fn.removeprefix("a") if fn[:2] == "am" else fn
    if any(v not in (None, False, np._NoValue) for v in named.values()):
        more = ", ".join(f"`{k}`" for k, v in named.items() if v not in (None, np._NoValue))
        raise refused(f"`np.{name}` is traced with an axis only, without {more}")
    if axis is not None and (not isinstance(axis, int) or not -x.ndim <= axis < x.ndim):
        count = f"{x.ndim} dimension{'s' * (x.ndim != 1)}"
        raise refused(f"`np.{name}` along axis {axis} of an array of {count}", "axes begin at 0")
    if axis is None or x.ndim == 1:
        return x._new(Op(fn, (x.term,)))
    if x.ndim != 2:
        how = "`rvm.pure.map(f, x)` goes through the rows"
        raise refused(f"`np.{name}` is traced along an axis of a matrix only", how)
    rows = x if axis in (1, -1) else x.T
    return mapped(lambda row: numpy_sum(row, fn), rows)


def mean(x: Any, axis: Any = None) -> Any:
    count = x.size if axis is None else x.shape[axis]
    return numpy_sum(x, "sum", axis) / count


def mapped(f: Callable[..., Any], *arrays: Any) -> Any:
    """f of the elements of arrays of one length, rows where they have more dimensions."""
    recorder = recorder_of(*arrays)
    terms = [recorder.typed(term_of(a)) for a in arrays]
    fn = recorder.function([_elem(t) for t in terms], _body(recorder, f))
    return value_of(recorder, recorder.named(Each(fn, tuple(terms))))


def _elem(e: Term) -> Any:
    if not isinstance(e.type, Arr):
        raise refused(f"an array is wanted, not a value of type {e.type}")
    return e.type.elem


def _body(recorder: Recorder, f: Callable[..., Any]) -> Callable[..., Term]:
    def body(*args: Term) -> Term:
        try:
            signature(f).bind(*args)
        except TypeError as error:
            what = f"the function is called with {len(args)} value{'s' * (len(args) != 1)}: {error}"
            raise refused(what, "`loop` with (i, state), `reduce` and `scan` with two") from None
        return term_of(f(*(value_of(recorder, a) for a in args)))

    return body


def folded(kind: str) -> Callable[..., Any]:
    """`reduce`, `scan`: f(state, element) from an initial value on."""

    def fold(f: Callable[..., Any], init: Any, array: Any) -> Any:
        recorder = recorder_of(array, init)
        x = recorder.typed(term_of(array))
        elem = _elem(x)
        start = recorder.typed(term_of(init), elem)
        assert start.type is not None
        fn = recorder.function([start.type, elem], _body(recorder, f))
        return value_of(recorder, recorder.named(Fold(kind, fn, start, x)))

    return fold


def loop(n: Any, body: Callable[..., Any], init: Any) -> Any:
    """`state = body(i, state)` for i from 0 to n - 1."""
    recorder = recorder_of(n, init)
    start = recorder.typed(term_of(init))
    assert start.type is not None
    fn = recorder.function([I64, start.type], _body(recorder, body))
    var, p = fn.params
    assert isinstance(var, str)
    return value_of(recorder, recorder.named(Loop(p, start, var, term_of(n), fn.body)))


def where(c: Any, a: Any, b: Any) -> Any:
    """a where c holds, else b; where a and b are functions, only one of them is evaluated."""
    recorder = recorder_of(c, a, b)
    if callable(a) and callable(b):
        yes, no = recorder.block(lambda: term_of(a())), recorder.block(lambda: term_of(b()))
        return value_of(recorder, recorder.named(If(term_of(c), yes, no)))
    like = next(v for v in (a, b, c) if isinstance(v, Traced))
    return like.apply("select", c, a, b)


def iota(n: Any) -> Any:
    """The whole numbers below n."""
    recorder = recorder_of(n)
    return Traced(recorder, recorder.named(Prim("iota", (term_of(n),))))


def replicate(n: Any, v: Any) -> Any:
    """An array of n times one value."""
    recorder = recorder_of(n, v)
    return value_of(recorder, recorder.named(Prim("replicate", (term_of(n), term_of(v)))))


def update(x: Any, i: Any, v: Any) -> Any:
    """An array equal to x except for element i."""
    return x._new(Update(x.term, (term_of(i),), term_of(v)))


def sliced(x: Traced, s: slice) -> Traced:
    """`x[a:b]`, whose ends are written; a negative one counts from the end."""
    if s.step not in (None, 1):
        how = "`rvm.pure.map(lambda i: x[n - 1 - i], rvm.pure.iota(n))` goes back"
        raise refused(f"a slice is traced with the step 1 only, not {s.step}", how)
    if s == slice(None):
        return x
    if s.start == 1 and s.stop is None:
        return x._new(Prim("shift1L", (x.term,)))
    if s.start in (None, 0) and s.stop == -1:
        return x._new(Prim("shift1R", (x.term,)))
    n = length_of(x)
    first = _end(s.start or 0, n)
    count: Term = Op("-", (_end(n if s.stop is None else s.stop, n), first))
    if isinstance(s.start, int) and (s.stop is None or (isinstance(s.stop, int) and s.stop < 0)):
        # As a length and so many less, which types know.
        count = Op("-", (n, Num(s.start - (s.stop or 0)))) if s.start >= 0 else Num(-s.start)
    elif s.start in (None, 0) and isinstance(s.stop, int):
        count = Op("-", (n, Num(-s.stop))) if s.stop < 0 else Num(s.stop)
    k = x.recorder.names.new("k")
    at = Var(k) if first == Num(0) else Op("+", (Var(k), first))
    return x._new(Each(Lam((k,), Index(x.term, (at,))), (Prim("iota", (count,)),)))


def concatenated(arrays: Any, axis: Any = 0) -> Any:
    """`np.concatenate`: arrays one after the other, by their first dimension."""
    if not isinstance(arrays, (tuple, list)) or not arrays or axis != 0:
        raise refused("it is traced of a list of arrays, along their first axis")
    parts = [a for a in arrays if isinstance(a, Traced)]
    if len(parts) < len(arrays) or any(a.ndim != parts[0].ndim or not a.ndim for a in parts):
        raise refused("it is traced of arrays of as many dimensions, all of them traced")
    lengths = [length_of(a) for a in parts]
    starts: list[Term] = [Num(0)]
    for n in lengths:
        starts.append(_total(starts[-1], n))
    k = Var(recorder_of(*parts).names.new("k"))
    elements: list[Term] = [
        Index(a.term, (k if start == Num(0) else Op("-", (k, start)),))
        for a, start in zip(parts, starts, strict=False)
    ]
    *others, body = elements
    for one, end in zip(reversed(others), reversed(starts[1:-1]), strict=True):
        body = If(Op("<", (k, end)), one, body)
    return parts[0]._new(Each(Lam((k.name,), body), (Prim("iota", (starts[-1],)),)))


def _total(a: Term, b: Term) -> Term:
    """A sum of lengths, as a length and so many more where it is one."""
    known = [size_of(x) for x in (a, b)]
    for x, n in zip((a, b), reversed(known), strict=True):
        if n is not None and not n.name:
            base = size_of(x)
            return Op("+", (a, b)) if base is None else size_term(base.plus(n.more))
    return Op("+", (a, b))


def rolled(x: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll` of an array with one dimension."""
    if x.ndim != 1 or not isinstance(shift, (int, np.integer)) or axis not in (None, 0, -1):
        raise refused("it is traced of arrays with one dimension, by a number that is written")
    n, k = length_of(x), Var(x.recorder.names.new("k"))
    last = Op("-", (n, Num(1)))
    body: Term = Index(x.term, (Op("%", (Op("-", (k, Num(int(shift)))), n)),))
    if shift == 1:
        before = Index(x.term, (Op("-", (k, Num(1))),))
        body = If(Op("<", (k, Num(1))), Index(x.term, (last,)), before)
    elif shift == -1:
        after = Index(x.term, (Op("+", (k, Num(1))),))
        body = If(Op("<", (k, last)), after, Index(x.term, (Num(0),)))
    return x._new(Each(Lam((k.name,), body), (Prim("iota", (n,)),)))


def difference(x: Any) -> Any:
    """`np.diff` of an array: the differences of neighbouring elements."""
    return x[1:] - x[:-1]


def _end(v: Any, n: Term) -> Term:
    """An end of a slice as a term; a negative one counts from the end."""
    if isinstance(v, Term):
        return v
    return Op("-", (n, Num(-v))) if isinstance(v, int) and v < 0 else term_of(v)


def length_of(x: Traced) -> Term:
    """The length of an array: by its name, where its type has one."""
    assert isinstance(x.term.type, Arr)
    n = x.term.type.length
    return x._new(Op("len", (x.term,))).term if n is None else size_term(n)


def size_term(n: Size) -> Term:
    """A length as a term, as its type writes it."""
    if not n.name:
        return Num(n.more)
    name = Var(n.name)
    return Op("+" if n.more > 0 else "-", (name, Num(abs(n.more)))) if n.more else name


def like(value: float) -> Callable[..., Any]:
    def made(x: Any, **named: Any) -> Any:
        return x._new(Op("spread_like", (Num(value), x.term)))

    return made


def whole(fn: str) -> Callable[..., Any]:
    """A function of all elements, or along an axis."""

    def made(x: Any, axis: Any = None, **named: Any) -> Any:
        return numpy_sum(x, fn, axis, **named)

    return made


ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: whole(fn) for name, fn in WHOLE.items()},
    "mean": mean,
    "where": where,
    "dot": lambda a, b: recorder_first(a, b).apply("@", a, b) if _ranks(a, b) else a * b,
    "inner": lambda a, b: recorder_first(a, b).apply("@", a, b),
    "vdot": lambda a, b: recorder_first(a, b).apply("@", a, b),
    "outer": lambda a, b: recorder_first(a, b).apply("outer", a, b),
    "transpose": lambda x: x.T,
    "cumsum": lambda x, axis=None: x._new(Op("scan_left", (x.term,))),
    "zeros_like": like(0.0),
    "ones_like": like(1.0),
    "take": lambda x, k: x[k],
    "concatenate": concatenated,
    "roll": rolled,
    "diff": difference,
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
}
"""NumPy's functions of arrays that are traced."""


def recorder_first(*values: Any) -> Traced:
    return next(v for v in values if isinstance(v, Traced))


def _ranks(a: Any, b: Any) -> bool:
    return bool(np.ndim(a) and np.ndim(b))


def traced(f: Callable[..., Any], types: Mapping[str, Any]) -> Term:
    """The operations of a function on values of some types, as a term."""
    recorder = Recorder(dict(types))
    for t in types.values():
        for n in dims(t):
            if n is not None and n.name:
                recorder.env.setdefault(n.name, I64)
    recorder.names.taken |= set(recorder.env)
    given = {name: value_of(recorder, Var(name, type=t)) for name, t in types.items()}
    token = _ACTIVE.set(recorder)
    try:
        return recorder.block(lambda: result_of(f, f(**given)))
    finally:
        _ACTIVE.reset(token)


def result_of(f: Callable[..., Any], v: Any) -> Term:
    """The result of a function as a term; UsageError U060 at the function if it is none."""
    try:
        return term_of(v)
    except UsageError as error:
        file, line = f.__code__.co_filename, f.__code__.co_firstlineno
        where = line_of(file, line)
        hint = "a traced function returns its value" if v is None else error.hint
        what = f"`{f.__name__}` returns {described(v)}, which is no part of a trace"
        raise UsageError("U060", what, where=where, hint=hint) from None
