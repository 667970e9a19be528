"""The cost of evaluating a term, counted as in the paper: moves, additions, products, others.

`figure` counts as its figure 11 is printed.  `work` counts such that the bound on gradients holds:
values that are bound, named, taken apart or constant cost no moves.

Source: Huot and Shaikhha, figure 11 and section 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rvm.accounts.cost import operation
from rvm.expr import LENGTHS
from rvm.isa import FUNCTIONS
from rvm.isa.rows import COSTS
from rvm_pure.formulas import adjoint_gains
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Let,
    Loop,
    Num,
    Op,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    children,
    walk,
)
from rvm_pure.types import Arr, dims

MOVES, ADDS, MULTS, NLOPS = COSTS


@dataclass(frozen=True, slots=True)
class Cost:
    """Counts by class, in the order of the machine's cost classes."""

    moves: int = 0
    adds: int = 0
    mults: int = 0
    nlops: int = 0

    def __add__(self, other: Cost) -> Cost:
        pairs = zip(self.counts, other.counts, strict=True)
        return Cost(*(a + b for a, b in pairs))

    def __mul__(self, n: int) -> Cost:
        return Cost(*(n * a for a in self.counts))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.moves, self.adds, self.mults, self.nlops

    @property
    def by_class(self) -> dict[str, int]:
        return dict(zip(COSTS, self.counts, strict=True))

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def arithmetic(self) -> int:
        """Without the moves."""
        return self.adds + self.mults + self.nlops


class Count:
    """Counts over a typed term, given its lengths by name; a choice costs its dearer branch.

    `free` is the account without moves of variables, constants, lets and projections.
    """

    def __init__(self, sizes: Mapping[str, int], free: bool = True) -> None:
        self.sizes = dict(sizes)
        self.touch = Cost(0 if free else 1)

    def length(self, e: Term) -> int:
        """The number of elements of an array; ValueError if its type does not give it."""
        assert isinstance(e.type, Arr)
        return self.size(e.type)

    def size(self, t: Arr) -> int:
        n = t.length
        if n is None or (n.name and n.name not in self.sizes):
            raise ValueError(f"a length is not known: {n}")
        return max(0, (self.sizes[n.name] if n.name else 0) + n.more)

    def of(self, e: Term) -> Cost:
        """The cost of a term."""
        match e:
            case Var() | Num():
                return self.touch
            case Let(_, a, b):
                return self.touch + self.of(a) + self.of(b)
            case Proj(_, a):
                return self.touch + self.of(a)
            case Tup(items):
                return self.all(items)
            case Op(fn, args):
                return self.op(e) + self.all(args)
            case If(c, a, b):
                return self.of(c) + max(self.of(a), self.of(b), key=lambda k: k.total)
            case Each(fn, arrays):
                each = self.of(fn.body) + Cost(len(arrays))
                return each * self.length(arrays[0]) + self.all(arrays)
            case Fold(kind, fn, init, array):
                each = self.of(fn.body) + Cost(3 if kind.startswith("scan") else 2)
                return each * self.length(array) + self.of(init) + self.of(array)
            case Prim("iota" | "replicate"):
                assert isinstance(e.type, Arr)
                return Cost(self.size(e.type)) + self.all(e.args)
            case Prim(_, args):
                return Cost(self.length(e)) + self.all(args) if isinstance(e.type, Arr) else Cost()
            case Index(of, items):
                return self.touch + self.of(of) + self.all(items)
            case Update(of, items, v):
                return Cost(1) + self.of(of) + self.all(items) + self.of(v)
            case Loop(_, init, _, n, body):
                return self.of(init) + self.of(n) + self.of(body) * self.steps(n)
        raise TypeError(f"a {type(e).__name__} is not counted")

    def all(self, items: Sequence[Term]) -> Cost:
        out = Cost()
        for x in items:
            out += self.of(x)
        return out

    def steps(self, n: Term) -> int:
        """The number of a loop's iterations; ValueError if it is not a literal."""
        match n:
            case Num(int(k)):
                return max(0, k)
            case Var(name) if name in self.sizes:
                return self.sizes[name]
            case Op("len", (a,)):
                return self.length(a)
        raise ValueError("how often a loop runs is not known")

    def op(self, e: Op) -> Cost:
        """The cost of a function without its arguments, once for each element."""
        row = FUNCTIONS[e.fn]
        if e.fn in LENGTHS:
            return self.touch
        moved, work = operation(row, self.shape(e), [self.shape(a) for a in e.args])
        return _counts(moved, work)

    def shape(self, e: Term) -> tuple[int, ...]:
        t = e.type
        out: list[int] = []
        while isinstance(t, Arr):
            out.append(self.size(t))
            t = t.elem
        return tuple(out)


def figure(e: Term, sizes: Mapping[str, int]) -> Cost:
    """The account of figure 11, where all that is named moves."""
    return Count(sizes, free=False).of(e)


def work(e: Term, sizes: Mapping[str, int]) -> Cost:
    """The account in which the bound holds."""
    return Count(sizes).of(e)


def nesting(e: Term) -> int:
    """The nesting depth of maps and folds in each other's functions, NAO of the paper."""
    match e:
        case Each(fn) | Fold(_, fn):
            outside = [x for x in children(e) if x is not fn]
            return max(1 + nesting(fn.body), *map(nesting, outside))
        case Loop(init=a, count=n, body=b):
            return max(1 + nesting(b), nesting(a), nesting(n))
    return max(map(nesting, children(e)), default=0)


def kappa(e: Term) -> float:
    """The most that a function of the term costs with its derivatives, in parts of itself.

    Functions of arrays are taken for one element.

    It is 4 where each adjoint is multiplied by no more than one function of the arguments, as that
    of a sum, of a product and of `sin` is.
    """
    worst = 4.0
    for x in walk(e):
        if isinstance(x, Op) and x.fn not in LENGTHS:
            shapes = [(1,) * len(dims(a.type)) for a in (x, *x.args) if a.type is not None]
            moved, operations = operation(FUNCTIONS[x.fn], shapes[0], shapes[1:])
            own = _counts(moved, operations).total
            args = [Var(f"x{k}", type=a.type) for k, a in enumerate(x.args)]
            found = adjoint_gains(x, args, Var("z", type=x.type))
            gains = [g for g in found if g is not None]
            if any(sum(isinstance(part, Op) for part in walk(g)) > 2 for g in gains):
                worst = max(worst, (own + sum(_untyped(g) + 4 for g in gains)) / own)
    return worst


def _counts(moved: int, work: Mapping[str, int]) -> Cost:
    return Cost(moved, *(work.get(c, 0) for c in COSTS[1:]))


def _untyped(e: Term) -> int:
    """The cost of a formula of numbers."""
    if not isinstance(e, Op):
        return 0
    row = FUNCTIONS[e.fn]
    return 1 + row.arity + (row.cost != MOVES) + sum(map(_untyped, e.args))
