"""The rule for propagating derivatives back from places to the values computed into them.

A formula of real numbers, single or elementwise, has one derivative for each operand and one for
each pair of operands.  For other functions, of whole arrays or of complex numbers, the columns of
the Jacobian are tangents along each real number that is read, and second derivatives are tangents
of the adjoints' terms.  Either is found once, as a graph of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.taylor.field import Bend, Field, Regs, Slots, Term, flat, locate
from rvm.engines.evaluate import evaluate, plain
from rvm.expr import Apply, Const, Expr, Place
from rvm.isa import FUNCTIONS, apply, implementation, typed
from rvm.isa.derivatives import adjoint_type
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.shapes import Lengths
from rvm.numbers import NAMES, fill, system
from rvm.transform.adjoint import carries, sweep
from rvm.transform.graph import Graph
from rvm.transform.tangent import tangent_on
from rvm.types import Scalar, elem_of, rank_of, with_rank

WHOLE = ("sum", "prod", "amin", "amax", "last_min", "first_max")
"""Functions with rules like those of single numbers, that look at a whole array."""
Slotted = Sequence[Any]


class Arriving:
    """Values of expressions that are stored in places, for frames with this many registers.

    They are added to the old values, times `sign`, or, if `replace`, replace them.
    """

    def __init__(
        self,
        outs: Sequence[Place],
        values: Sequence[Expr],
        registers: int,
        sign: float = 1.0,
        replace: bool = False,
    ) -> None:
        self.outs, self._sign, self._replace = tuple(outs), sign, replace
        found = [_formula(o, v, registers) for o, v in zip(outs, values, strict=True)]
        self._formulas = [f for f in found if f is not None]
        self._whole = None
        if len(self._formulas) < len(found):
            self._whole = _Whole(outs, values, registers)

    def __call__(self, field: Field, dsts: Sequence[Slots], regs: Regs, slots: Slotted) -> None:
        """Undo the storing in slots; registers hold the values before it."""
        if self._whole is not None:
            outs, bends = self._whole.derive(field, dsts, regs, slots, self._sign)
            if not any(field.is_seeded(d) for d, _ in outs):
                bends = []
        else:
            outs, bends = [], []
            for dst, formula in zip(dsts, self._formulas, strict=True):
                terms, own = formula.derive(field, dst, regs, slots, self._sign)
                outs.append((dst if isinstance(dst, int) else flat(dst), terms))
                bends += own
        field.pull(outs, bends, self._replace)


def _evaluation(
    graph: Graph, roots: Iterable[int], many: frozenset[int] = frozenset()
) -> Callable[[Regs], tuple[Any, ...]]:
    """A function that evaluates graph nodes on registers: generated source, a line for each.

    Registers in `many` hold arrays where the nodes have numbers; they are evaluated elementwise.
    """
    lines: list[str] = []
    names: dict[str, Any] = {"plain": plain}
    arrays: dict[int, bool] = {}
    """The nodes written so far, and whether each is an array."""

    def write(number: int) -> str:
        if number not in arrays:
            node = graph[number]
            arrays[number], text = rank_of(node.type) > 0, f"k{number}"
            if isinstance(node.leaf, Const):
                names[text] = node.leaf.value
            elif node.leaf is not None:
                names[text] = partial(evaluate, node.leaf)
                whole = isinstance(node.leaf, Place) and not node.leaf.path
                arrays[number] |= whole and node.leaf.reg in many  # type: ignore[attr-defined]
                text = f"r[{node.leaf.reg}]" if whole else f"{text}(r)"  # type: ignore[attr-defined]
            elif node.lazy:
                names[text] = partial(evaluate, graph.expr(number))
                text = f"{text}(r)"
            else:
                text = apply_text(number, node.args)
            lines.append(f"v{number} = {text}")
        return f"v{number}"

    def apply_text(number: int, args: tuple[int, ...]) -> str:
        given = [write(a) for a in args]
        code = implementation(graph[number].fn, tuple(elem_of(graph[a].type) for a in args))
        if any(arrays[a] for a in args):
            arrays[number] |= bool(many)
            text = fill(code.numpy, *given)
            return text if arrays[number] else f"plain({text})"
        if code.value is None:
            return fill(code.python, *given, fresh=f"t{number}_")
        names[f"f{number}"] = code.value
        return f"f{number}({', '.join(given)})"

    result = "".join(f"{write(root)}, " for root in roots)
    source = "\n ".join(("def derive(r):", *lines, f"return ({result})"))
    # Functions enter the names when they are first asked for: some while this was written.
    names = {**NAMES, **names}
    exec(compile(source, "<derivatives>", "exec"), names)
    found: Callable[[Regs], tuple[Any, ...]] = names["derive"]
    return found


# ---------------------------------------------------------------- formulas of real numbers


class _Formula:
    """A formula's first derivatives by each operand, and its second by each pair of operands."""

    def __init__(self, node: Expr, operands: Sequence[Expr], registers: int) -> None:
        graph = Graph(Lengths())
        self._operands = tuple(operands)
        self._registers = registers
        first = _partials(graph, graph.intern(node))
        second = {
            (j, k): n for j, f in first.items() for k, n in _partials(graph, f).items() if k >= j
        }
        self._by = [operands[k - registers] for k in first]
        self._pairs = [(operands[j - registers], operands[k - registers]) for j, k in second]
        many = {
            registers + k for k, e in enumerate(operands) if e.type is not None and rank_of(e.type)
        }
        self._values = _evaluation(graph, (*first.values(), *second.values()), frozenset(many))

    def derive(
        self, field: Field, dst: Slots, regs: Regs, slots: Slotted, sign: float
    ) -> tuple[list[Term], list[Bend]]:
        """Terms and bends for the derivatives with respect to the values stored in `dst`."""
        frame = [*regs, *(evaluate(e, regs) for e in self._operands)]
        found = [sign * part for part in self._values(frame)]
        at: dict[Expr, Any] = {e: locate(e, regs, slots) for e in self._by}  # type: ignore[arg-type]
        terms = [(at[e], a) for e, a in zip(self._by, found, strict=False)]
        curved = field.weighed(found[len(terms) :], dst)
        bends: list[Bend] = [
            (at[a], at[b], 0.5 * c if a is b else c)
            for (a, b), c in zip(self._pairs, curved, strict=bool(curved))
        ]
        if isinstance(dst, int):
            return terms, bends
        shape = dst.shape
        terms = [
            (_row(at[e], shape), _row(a, shape)) for e, a in zip(self._by, found, strict=False)
        ]
        return terms, [(_row(a, shape), _row(b, shape), _row(c, shape)) for a, b, c in bends]


def _row(held: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.broadcast_to(held, shape).reshape(-1)


def _formula(out: Place, node: Expr, registers: int) -> _Formula | None:
    """A value's formula; None if it is not computed element by element on real numbers."""
    operands: dict[Expr, int] = {}
    done = None if _is_wide(out.type) else _apart(node, operands, registers)
    return None if done is None else _Formula(done, tuple(operands), registers)


def _apart(node: Expr, operands: dict[Expr, int], registers: int) -> Expr | None:
    """The expression over numbers: operands follow a frame's registers."""
    assert node.type is not None
    t = elem_of(node.type)
    if isinstance(node, Const):
        return node
    if isinstance(node, Place) or not carries(node):
        k = operands.setdefault(node, len(operands))
        return None if t.is_complex else Place(registers + k, (), t)
    if not isinstance(node, Apply) or not _is_pointwise(node):
        return None
    args = [_apart(a, operands, registers) for a in node.args]
    done = [a for a in args if a is not None]
    return Apply(node.fn, tuple(done), t) if len(done) == len(args) else None


def _is_pointwise(node: Apply) -> bool:
    """Whether a function is computed element by element on real numbers."""
    if node.fn in WHOLE or any(map(_is_wide, (node.type, *(a.type for a in node.args)))):
        return False
    row = FUNCTIONS[node.fn]
    return row.partials is not None or conversion_target(node.fn) is not None or row.steps


def _partials(graph: Graph, root: int) -> dict[int, int]:
    """The nonzero derivatives of a node with respect to the registers that it reads."""
    t = adjoint_type(elem_of(graph[root].type))
    if t is None:
        return {}
    one = graph.intern(typed(Const(1), t))
    found = {p.reg: graph.intern(g) for p, g in _gains(graph, [(root, one)]).items()}
    return {k: n for k, n in found.items() if getattr(graph[n].leaf, "value", 1) != 0}


def _gains(graph: Graph, seeded: Sequence[tuple[int, int]]) -> dict[Place, Expr]:
    """The term that each place read by nodes receives from their adjoints."""
    out: dict[Place, Expr] = {}
    for root, seed in seeded:
        for read, (negative, number) in sweep(graph, root, seed):
            gain = apply("neg", graph.ref(number)) if negative else graph.ref(number)
            out[read] = apply("+", out[read], gain) if read in out else gain
    return out


# ---------------------------------------------------------------- whole arrays, complex numbers


class _Whole:
    """Derivatives of several values together, one direction at a time.

    Registers are a frame's, followed by a tangent for each place that is read, an adjoint for each
    of `outs`, and the values of the places that are read.
    """

    def __init__(self, outs: Sequence[Place], values: Sequence[Expr], registers: int) -> None:
        self._outs = tuple(outs)
        self._reads = tuple(dict.fromkeys(r for v in values for r in _carrying(v)))
        duals = [_dual(registers + k, p) for k, p in enumerate((*self._reads, *outs))]
        dots, bars = duals[: len(self._reads)], duals[len(self._reads) :]
        self._types = [elem_of(d.type) for d in dots if d.type is not None]
        held = {r: Place(registers + len(duals) + k, (), r.type) for k, r in enumerate(self._reads)}
        graph = Graph(Lengths())
        roots = [graph.intern(_replaced(v, held)) for v in values]
        gains = _gains(graph, list(zip(roots, map(graph.intern, bars), strict=True)))
        nodes = [*map(graph.ref, roots), *(gains.get(r) for r in held.values())]
        self._known: list[tuple[list[bool], Callable[[Regs], tuple[Any, ...]]]] = []
        """By direction: which tangents of the values, then of the gains, are nonzero, and a
        function that computes those."""
        for read, dot in zip(held.values(), dots, strict=True):

            def along(node: Expr, read: Place = read, dot: Place = dot) -> Expr | None:
                return dot if node == read else None

            found = [None if n is None else tangent_on(graph, n, along) for n in nodes]
            there = [graph.intern(f) for f in found if f is not None]
            self._known.append(([f is not None for f in found], _evaluation(graph, there)))

    def derive(
        self, field: Field, dsts: Sequence[Slots], regs: Regs, slots: Slotted, sign: float
    ) -> tuple[list[tuple[Slots, list[Term]]], list[Bend]]:
        """The outs with their term, and the bends, of all numbers in a row."""
        reads = [locate(r, regs, slots) for r in self._reads]
        seeds = [sign * _seed(field, d, o) for d, o in zip(dsts, self._outs, strict=True)]
        zeros = [_zero(t, np.shape(r)) for t, r in zip(self._types, reads, strict=True)]
        frame = [*regs, *zeros, *seeds, *(evaluate(r, regs) for r in self._reads)]
        wide = [*(_is_wide(o.type) for o in self._outs), *(t.is_complex for t in self._types)]
        sizes = [
            (np.shape(s), int(np.size(s)) * (1 + w))
            for s, w in zip((*dsts, *reads), wide, strict=True)
        ]
        columns = []
        for j, (there, tangents) in enumerate(self._known):
            at = len(regs) + j
            for unit in _units(self._types[j], np.shape(reads[j])):
                frame[at] = unit
                parts = iter(tangents(frame))
                columns.append(
                    np.concatenate(
                        [
                            _numbers(next(parts), shape, w) if known else np.zeros(size)
                            for known, (shape, size), w in zip(there, sizes, wide, strict=True)
                        ]
                    )
                )
            frame[at] = zeros[j]
        m = sum(size for _, size in sizes[: len(dsts)])
        k = sum(size for _, size in sizes[len(dsts) :])
        every = np.array(columns).reshape(k, m + k)
        d, t = (
            np.concatenate([flat(s, w) for s, w in part] or [np.zeros(0, np.int64)])
            for part in (zip(dsts, wide, strict=False), zip(reads, wide[len(dsts) :], strict=True))
        )
        bend = 0.5 * every[:, m:]
        return [(d, [(t, sign * every[:, :m].T)])], [(t[:, None], t[None, :], bend)]


def _carrying(node: Expr) -> Iterator[Place]:
    """The places in an expression that carry derivatives; those in indices do not."""
    if isinstance(node, Place):
        if carries(node):
            yield node
    elif isinstance(node, Apply):
        for a in node.args:
            yield from _carrying(a)


def _replaced(node: Expr, held: Mapping[Place, Place]) -> Expr:
    """An expression with places replaced; those in indices stay."""
    if isinstance(node, Apply):
        return Apply(node.fn, tuple(_replaced(a, held) for a in node.args), node.type)
    return held.get(node, node) if isinstance(node, Place) else node


def _dual(register: int, of: Place) -> Place:
    assert of.type is not None
    t = adjoint_type(elem_of(of.type))
    assert t is not None
    return Place(register, (), with_rank(t, rank_of(of.type)))


def _is_wide(t: Any) -> bool:
    """Whether places of this type hold complex numbers, of two slots each."""
    return elem_of(t).is_complex


def _seed(field: Field, slots: Slots, out: Place) -> Any:
    """The adjoint of a place, as its registers hold one."""
    found = field.g[slots]
    if _is_wide(out.type):
        found = found + 1j * field.g[slots + 1]
    return found if isinstance(slots, np.ndarray) else found.item()


def _zero(t: Scalar, shape: tuple[int, ...]) -> Any:
    return np.zeros(shape, system(t).dtype) if shape else system(t).zero


def _units(t: Scalar, shape: tuple[int, ...]) -> Iterator[Any]:
    """A unit tangent for each real number."""
    for index in np.ndindex(shape):
        for way in (1.0, 1j) if t.is_complex else (1.0,):
            unit = _zero(t, shape)
            if shape:
                unit[index] = way
            yield unit if shape else type(unit)(way)


def _numbers(held: Any, shape: tuple[int, ...], wide: bool) -> NDArray[np.float64]:
    """A value in a row of real numbers."""
    row = np.asarray(held)
    row = (row if row.shape == shape else np.broadcast_to(row, shape)).reshape(-1)
    if wide:
        return np.stack([row.real, row.imag], axis=1).reshape(-1)
    return np.real(row).astype(np.float64)
