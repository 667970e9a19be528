"""Values of a function that is being traced: they answer NumPy's protocols, and record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from rvm.codes.words import described
from rvm.faults import UsageError
from rvm.isa import FUNCTIONS
from rvm.isa.numpy_names import UFUNCS
from rvm.isa.rows import reduction_by
from rvm.isa.rules import OF_ARRAYS
from rvm.types import BOOL, F32, SCALARS, Scalar
from rvm_pure.lengths import size_term
from rvm_pure.recorder import ACTIVE, Recorder, caller, refused
from rvm_pure.slices import End, sliced
from rvm_pure.terms import Each, If, Index, Lam, Num, Op, Prim, Proj, Term, Tup, Var
from rvm_pure.types import Arr, Product, dims, elem_type

WRITTEN = 64
"""The most numbers of an array from outside that become literals."""
_TYPES = {"float64": "f64", "float32": "f32", "complex128": "c128"}
_TYPES |= {
    f"{word}{bits}": f"{word[0]}{bits}" for word in ("int", "uint") for bits in (8, 16, 32, 64)
}
_DTYPES = {name: dtype for dtype, name in _TYPES.items()}
"""The machine's types of numbers that NumPy has, by name."""
_OWN = ("apply", "is_shared", "recorder", "term")
_COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
_ARITHMETIC = {"-", "/", "//", "%", "**", "&", "|", "^", *_COMPARISONS}
_ARITHMETIC |= {row.repeats for row in FUNCTIONS.values()}
"""Functions among whose operands a truth value is 0 or 1, unless all are truth values."""
_UNCHANGED = "`rvm.pure.update(x, i, value)` is a new array"
_INDICES = "indices are whole numbers, slices, `None`, `...`, and arrays of whole numbers from 0 on"
_PICKED = "`np.where(c, x, 0)` has as many as x"

ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""NumPy's functions of arrays that are traced, which the module `array_functions` enters."""


class NoAttribute(UsageError, AttributeError):
    """The error for an attribute that traced values lack; `hasattr` is then False."""


class Traced:
    """A value of a function that is being traced."""

    __slots__ = ("is_pythons", "is_shared", "recorder", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, term: Term, is_shared: bool = False) -> None:
        self.recorder = recorder
        self.term = term
        self.is_shared = is_shared
        """Whether NumPy's array shares its memory: with a view, or with the caller's array."""
        self.is_pythons = False
        """Whether it is a number of Python in the traced function: a length, or made of such."""

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
                continue
            out[-1].is_pythons = True
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
        return _called("transpose", (self,), {})

    @property
    def real(self) -> Any:
        return self.apply("real", self) if self._is_complex() else self

    @property
    def imag(self) -> Any:
        return self.apply("imag", self) if self._is_complex() else self.apply("*", self, 0)

    def conj(self) -> Any:
        return self.apply("conj", self) if self._is_complex() else self

    conjugate = conj

    def flatten(self) -> Any:
        return _called("copy", (_called("ravel", (self,), {}),), {})

    def _is_complex(self) -> bool:
        elem = elem_type(self.term.type or BOOL)
        return isinstance(elem, Scalar) and elem.is_complex

    def _new(self, e: Term) -> Traced:
        return Traced(self.recorder, self.recorder.named(e))

    def apply(self, fn: str, *args: Any) -> Traced:
        """A function of the table of values and numbers; whole numbers among real ones are real."""
        if fn == "*" and any(isinstance(a, (list, tuple)) for a in args) and not self.ndim:
            raise refused("a number of Python or NumPy times a list repeats it", "`np.array([…])`")
        args = tuple(map(operand, args))
        if FUNCTIONS[fn].rule in OF_ARRAYS:
            return self._new(Op(fn, tuple(map(term_of, args))))
        # A condition chooses among numbers, and is none of them.
        chosen, rest = (args[:1], args[1:]) if fn == "select" else ((), args)
        numbers = fn in _ARITHMETIC and (fn == "/" or not all(map(_is_truth, rest)))
        to = common_type(rest, fn) if numbers or fn not in _ARITHMETIC else None
        terms = [converted(a, to, numbers) for a in rest]
        return self._new(Op(fn, (*map(term_of, chosen), *terms)))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        name = ufunc.__name__
        fn = UFUNCS.get(name, name)
        whole = {"logical_and": "all", "logical_or": "any"}.get(name) or reduction_by(fn)
        if method == "reduce" and whole:
            return _called(whole, args, {"axis": 0, **named})
        if method == "accumulate" and fn in ("+", "*"):
            return _called("cumsum" if fn == "+" else "cumprod", args, {"axis": 0, **named})
        if method == "__call__" and name in ARRAY_FUNCTIONS:
            return _called(name, args, named)
        if named.get("out") is not None:
            raise refused(f"`np.{name}` is traced without `out`", _UNCHANGED)
        if method == "outer" and fn in FUNCTIONS:
            a, b = args
            return self.apply(fn, a[(..., *[None] * np.ndim(b))] if np.ndim(a) else a, b)
        if method != "__call__" or fn not in FUNCTIONS:
            what = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
            raise refused(f"`{what}` cannot be traced", _LISTED)
        if named:
            words = ", ".join(f"`{n}`" for n in named)
            raise refused(f"`np.{name}` is traced without {words}", "`np.where(c, a, b)` chooses")
        if name in ("float_power", "fabs"):
            # Of whole numbers too these are real, and powers are at least of f64.
            double = name == "float_power"
            args = tuple(_real(a, double) for a in args)
        return self.apply(fn, *args)

    def __array_function__(self, func: Any, types: Any, args: Any, named: Any) -> Any:
        name = f"{func.__module__}.{func.__name__}".removeprefix("numpy.")
        if name not in ARRAY_FUNCTIONS:
            raise refused(f"`np.{name}` cannot be traced", _LISTED)
        return _called(name, args, named)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if sum(k is Ellipsis for k in keys) > 1:
            raise refused("an index has one `...` only")
        for k, one in enumerate(keys):
            if one is Ellipsis:
                named = sum(x is not None for x in keys) - 1
                keys = (*keys[:k], *[slice(None)] * (self.ndim - named), *keys[k + 1 :])
                break
        return self._part(tuple(map(_index, keys)))

    def _part(self, keys: tuple[Any, ...]) -> Any:
        """The part with some indices, of which the first is taken first."""
        if not keys:
            return self
        one, rest = keys[0], keys[1:]
        if one is None:
            out = self._new(Prim("replicate", (Num(1), term_of(self._part(rest)))))
            out.is_shared = self.is_shared = True
            return out
        if self.ndim == 0:
            raise refused("a number has no elements", "there are more indices than dimensions")
        if isinstance(one, slice):
            self.is_shared = True
            start, stop = _end(one.start), _end(one.stop)
            step = 1 if one.step is None else one.step
            if not isinstance(step, int) or step == 0:
                raise refused("the step of a slice is a number that is written, and not 0")
            return Traced(
                self.recorder, sliced(self.recorder, self.term, start, stop, step), True
            )._rows(rest)
        if isinstance(one, Traced) and one.ndim:
            if not any(isinstance(k, Traced) and k.ndim for k in rest):
                if self.ndim == 1:
                    return self._new(Index(self.term, (one.term,)))._rows(rest)
                rows = self.recorder.function(
                    [element_type(one.term)], lambda i: Index(self.term, (i,))
                )
                return self._new(Each(rows, (one.term,)))._rows(rest)
            many = [k for k in keys if isinstance(k, Traced) and k.ndim == 1]
            if len(many) < len(keys):
                raise refused("several arrays of indices are one for each of the first axes")
            fn = self.recorder.function(
                [element_type(k.term) for k in many],
                lambda *at: term_of(self._part(tuple(value_of(self.recorder, i) for i in at))),
            )
            return self._new(Each(fn, tuple(k.term for k in many)))
        if any(isinstance(k, slice) or k is None for k in rest) and any(
            isinstance(k, Traced) and k.ndim for k in rest
        ):
            how = "`x[i][:, k]` takes the one part after the other"
            raise refused("a number, a slice and an array of indices are not mixed", how)
        if isinstance(one, int) and one < 0:
            one = self.shape[0] + one
        row = self._new(Index(self.term, (term_of(one),)))
        row.is_shared = self.is_shared = True
        return row._part(rest)

    def _rows(self, keys: tuple[Any, ...]) -> Any:
        """The same part of each row."""
        if not keys:
            return self
        fn = self.recorder.function(
            [element_type(self.term)], lambda row: term_of(value_of(self.recorder, row)._part(keys))
        )
        out = self._new(Each(fn, (self.term,)))
        out.is_shared = True
        return out

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        name = _TYPES.get(str(np.dtype(dtype)))
        if name is None:
            raise refused(
                f"`astype` is not traced to {np.dtype(dtype)}", f"it is to {', '.join(_TYPES)}"
            )
        out = self._new(Op(name, (self._number().term,)))
        if not copy and scalar_of(self) == SCALARS[name]:
            out.is_shared = self.is_shared = True
        return out

    def _number(self) -> Traced:
        """The value, with numbers for truth values."""
        assert self.term.type is not None
        if elem_type(self.term.type) != BOOL:
            return self
        return self._new(Op("select", (self.term, Num(1), Num(0))))

    def _real(self) -> Traced:
        """The value, with real numbers for whole ones and truth values."""
        return self._new(converted(self, common_type((self,), "/"), True))

    def __pos__(self) -> Traced:
        if elem_type(self.term.type or BOOL) == BOOL:
            raise refused("truth values have no sign", "`x + 0` is a number")
        return Traced(self.recorder, self.term)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

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
            "the truth values",
            "`rvm.pure.where(c, a, b)` chooses, `rvm.pure.loop` repeats, `&` and `|` combine",
        )

    def __format__(self, spec: str) -> str:
        if spec:
            self._untraceable("the numbers", "show them after a call")
        return repr(self)

    def __len__(self) -> int:
        n = self.shape[0] if self.ndim else None
        if not isinstance(n, int):
            self._untraceable("the lengths", "`x.shape[0]` is the length, as a traced number")
        return n

    def __float__(self) -> float:
        self._untraceable(
            "the numbers",
            "NumPy's functions are traced; `float(x)`, `int(x)` and those of `math` are not",
        )

    __int__ = __complex__ = __float__

    def __index__(self) -> int:
        how = "`rvm.pure.loop(n, body, init)`, `rvm.pure.iota(n)`, `np.zeros_like(x)`"
        self._untraceable("the numbers", how)

    def __iter__(self) -> Any:
        n = self.shape[0] if self.ndim else None
        if not isinstance(n, int):
            self._untraceable("the elements", "`rvm.pure.map(f, x)`, `rvm.pure.reduce(f, init, x)`")
        return iter([self[k] for k in range(n)])

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refused("a traced array does not change", _UNCHANGED)

    def __array__(self, *args: Any, **named: Any) -> Any:
        how = "arrays are made by `np.stack([a, b])`, `np.concatenate`, `rvm.pure.iota(n)`"
        raise refused("the function called here needs numbers, not traced values", how)


Traced.__name__ = "traced value"  # as messages name it, Python's and others'


def _is_truth(v: Any) -> bool:
    return isinstance(v, bool) or scalar_of(v) == BOOL


def operand(v: Any) -> Any:
    """An operand as NumPy takes it: a list is an array."""
    if not isinstance(v, (list, tuple)):
        return v
    return _called("stack", (v,), {}) if holds_traced(v) else np.asarray(v)


def holds_traced(v: Any) -> bool:
    """Whether there is a traced value in lists in a list."""
    return any(map(holds_traced, v)) if isinstance(v, (list, tuple)) else isinstance(v, Traced)


def scalar_of(v: Any) -> Scalar | None:
    """The type of the numbers of a traced value, a NumPy number or array; None of Python's."""
    if isinstance(v, Traced):
        elem = elem_type(v.term.type or BOOL)
        return elem if isinstance(elem, Scalar) else None
    if not isinstance(v, (np.generic, np.ndarray)):
        return None
    name = {"bool": "bool", **_TYPES}.get(v.dtype.name)
    if name is None:
        raise refused(f"numbers of NumPy's type {v.dtype} are not traced")
    return SCALARS[name]


def common_type(values: Sequence[Any], fn: str = "+") -> Scalar | None:
    """The type that NumPy makes of operands, whose truth values are 0 or 1; None for their own.

    A number of Python counts by its kind only.  UsageError U060 where NumPy's type is not one of
    the machine's, or where it compares more exactly than by a common type.
    """
    strong = [v for v in values if _kind(v) is None]
    found = [t for t in map(scalar_of, strong) if t is not None and t != BOOL]
    own = next((t for t in found if t.name not in _DTYPES), None)
    if own is not None:
        return own
    plain = set(map(_kind, values)) - {None}
    made = np.result_type(*(_DTYPES[t.name] for t in found)) if found else np.dtype(bool)
    if complex in plain:
        if made == np.float32:
            raise refused("numbers of NumPy's type complex64 are not traced", "`x.astype(float)`")
        made = np.result_type(made, np.complex128)
    elif made.kind in "biu" and (fn == "/" or float in plain):
        made = np.dtype(np.float64)
    elif made.kind == "b":
        made = np.dtype(np.int64)
    if made.kind == "f" and fn in _COMPARISONS and all(t.is_integer for t in found) and not plain:
        names = " and ".join(dict.fromkeys(map(str, found)))
        raise refused(f"`{fn}` of {names} is not traced", "`x.astype(float)` rounds")
    return SCALARS[_TYPES[made.name]]


def converted(v: Any, to: Scalar | None, numbers: bool = False) -> Term:
    """An operand as a term of numbers of a type; a number that is written has the type anyway.

    `numbers`: truth values are converted too.
    """
    e = term_of(v)
    if isinstance(e, Num):
        if numbers and isinstance(e.value, bool):
            return Num(int(e.value))
        inexact = to is not None and to.is_float and isinstance(e.value, int)
        return Num(float(e.value)) if inexact and isinstance(v, np.generic) else e
    elem = scalar_of(v)
    if to is None or elem == to or elem is None:
        return e
    if elem == BOOL:
        return Op("select", (e, Num(1, str(to)), Num(0, str(to)))) if numbers else e
    return Op(str(to), (e,)) if elem.is_integer or to.name in _DTYPES else e


def _real(v: Any, double: bool) -> Any:
    """An operand with real numbers for whole ones; of f64 at least if `double`."""
    if not isinstance(v, Traced):
        return float(v) if isinstance(v, (int, np.integer, np.bool_)) else v
    own = scalar_of(v)
    if own is None or (not double and own.bits < 32) or (not double and own.is_complex):
        raise refused(f"this function of {own} is not traced")
    x = v._real()
    return x._new(Op("f64", (x.term,))) if double and scalar_of(x) == F32 else x


def _operator(fn: str, swapped: bool = False) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        out = self.apply(fn, other, self) if swapped else self.apply(fn, self, other)
        out.is_pythons = _kind(self) is not None and _kind(other) is not None
        return out

    return operator


def _kind(v: Any) -> type | None:
    """int, float, complex or bool for a number that is Python's in the traced function."""
    if isinstance(v, Traced) and v.is_pythons:
        t = scalar_of(v)
        assert t is not None
        return bool if t == BOOL else int if t.is_integer else float
    known = (bool, int, float, complex)
    return None if isinstance(v, np.generic) else next((k for k in known if type(v) is k), None)


def _in_place(fn: str) -> Any:
    def operator(self: Traced, other: Any) -> Any:
        out = self.apply(fn, self, other)
        if self.ndim == 0:
            return out
        if out.term.type != self.term.type:
            what = f"an array of type {self.term.type} does not take values of type {out.term.type}"
            raise refused(what, f"`x = x {fn} …` is a new array")
        if self.is_shared:
            how = f"`x = x {fn} …` is a new array"
            raise refused(f"`{fn}=` would change an array that is also used elsewhere", how)
        self.term = out.term
        return self

    return operator


_BINARY = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}
_BINARY |= {"pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^"}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
for _word, _fn in _BINARY.items():
    setattr(Traced, f"__{_word}__", _operator(_fn))
    setattr(Traced, f"__r{_word}__", _operator(_fn, True))
    setattr(Traced, f"__i{_word}__", _in_place(_fn))
for _word, _fn in _COMPARED.items():
    setattr(Traced, f"__{_word}__", _operator(_fn))


def _not_traced(sign: str, hint: str) -> Any:
    def operator(self: Traced, *others: Any) -> NoReturn:
        raise refused(f"`{sign}` cannot be traced", hint)

    return operator


for _word, _fn in {"lshift": "<<", "rshift": ">>"}.items():
    for _side in ("", "r", "i"):
        _how = "`x * 2**k` and `x // 2**k` shift whole numbers"
        setattr(Traced, f"__{_side}{_word}__", _not_traced(_fn, _how))
for _word in ("round", "trunc", "ceil", "floor"):
    setattr(Traced, f"__{_word}__", _not_traced(_word, "`np.floor(x)` rounds down"))
for _word, _fn in {"neg": "neg", "abs": "abs", "invert": "~"}.items():
    setattr(Traced, f"__{_word}__", lambda self, fn=_fn: self.apply(fn, self))


def _called(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """One of NumPy's functions of arrays."""
    try:
        return ARRAY_FUNCTIONS[name](*args, **named)
    except TypeError:
        raise refused(f"`np.{name}` is traced with plain arguments only") from None


def _product(swapped: bool) -> Any:
    return lambda self, other: _called("matmul", (other, self) if swapped else (self, other), {})


for _word, _swapped in {"matmul": False, "rmatmul": True}.items():
    setattr(Traced, f"__{_word}__", _product(_swapped))


def _method(name: str) -> Any:
    return lambda self, *args, **named: _called(name, (self, *args), named)


METHODS: tuple[str, ...] = ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all")
METHODS += ("argmax", "argmin", "dot", "clip", "cumsum", "cumprod", "trace", "diagonal", "take")
METHODS += ("transpose", "swapaxes", "reshape", "ravel", "squeeze", "repeat", "copy")
for _word in METHODS:
    setattr(Traced, _word, _method(_word))


_LISTED = "docs/pure.md lists NumPy's functions that are traced"


def term_of(v: Any) -> Term:
    """A value as a term: a traced one, a number, a tuple of such."""
    if isinstance(v, Traced):
        return v.term
    if isinstance(v, np.generic) or (isinstance(v, np.ndarray) and v.ndim == 0):
        scalar_of(v)  # or an error
        return Num(v.item())
    if isinstance(v, (bool, int, float, complex)):
        return Num(v)
    if isinstance(v, (tuple, list)):
        return Tup(tuple(map(term_of, v)))
    hint = "a value is a number, an array or a tuple of such"
    recorder = ACTIVE.get()
    if isinstance(v, np.ndarray) and v.dtype.kind in "biufc":
        if recorder is not None and v.size <= WRITTEN:
            return recorder.constant(v, lambda: _written(recorder, v))
        hint = f"an array of more than {WRITTEN} numbers is a parameter"
    raise refused(f"{described(v)} cannot be part of a trace", hint)


def _written(recorder: Recorder, v: Any) -> Term:
    """An array of numbers as a term that has them as literals."""
    if v.ndim == 0:
        t = scalar_of(v)
        assert t is not None
        return Num(v.item(), str(t) if t.is_integer or t == F32 else "")
    n = (Num(len(v)),)
    if len(v) == 0 or _is_uniform(v.reshape(-1)):
        one = v[0] if len(v) else np.zeros(v.shape[1:], v.dtype)
        return Prim("replicate", (*n, _written(recorder, np.asarray(one))))
    k = recorder.names.new("k")

    def of(first: int, end: int) -> Term:
        if _is_uniform(v[first:end]):
            return _written(recorder, v[first])
        half = (first + end) // 2
        return If(Op("<", (Var(k), Num(half))), of(first, half), of(half, end))

    return recorder.typed(Each(Lam((k,), of(0, len(v))), (Prim("iota", n),)))


def _is_uniform(v: Any) -> bool:
    """Whether all elements, of which there is one at least, are the same to the bit."""
    one = v[0].tobytes()
    return all(x.tobytes() == one for x in v[1:])


def value_of(recorder: Recorder, e: Term, is_shared: bool = False) -> Any:
    """A term as the traced function sees it: tuples as tuples."""
    if isinstance(e.type, Product):
        items = (
            e.items
            if isinstance(e, Tup)
            else [recorder.typed(Proj(k, e)) for k in range(len(e.type.items))]
        )
        return tuple(value_of(recorder, x, is_shared) for x in items)
    return Traced(recorder, e, is_shared)


def _index(v: Any) -> Any:
    """An index as a number, a slice, None or a traced value."""
    if isinstance(v, (list, np.ndarray)) and np.ndim(v):
        made = np.asarray(v)
        recorder = ACTIVE.get()
        if made.dtype.kind in "iu" and recorder is not None and (made >= 0).all():
            return Traced(recorder, recorder.named(term_of(made)))
    if isinstance(v, Traced):
        if elem_type(v.term.type or BOOL) == BOOL:
            raise refused("how many elements a condition picks is not known", _PICKED)
        return v
    if v is None or isinstance(v, slice):
        return v
    if not isinstance(v, (int, np.integer)) or isinstance(v, bool):
        raise refused(f"{described(v)} is not an index of a traced array", _INDICES)
    return int(v)


def _end(v: Any) -> End:
    """An end of a slice as it is written, or as a term."""
    if isinstance(v, (int, np.integer)):
        return int(v)
    return None if v is None else term_of(v)


def element_type(e: Term) -> Any:
    if not isinstance(e.type, Arr):
        raise refused(f"an array is wanted, not a value of type {e.type}")
    return e.type.elem
