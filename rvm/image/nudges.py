"""Functions that move a number by units in the last place, up or down, for other roundings.

The direction is a hash of the number's digits and of the numbers that it is computed from.  These
are arguments too, without other rounding; what they say depends on the kind:

- `plain`: a number is moved unless it is 0;
- `small`, `product`, `quotient`: also if it is 0 but none of the numbers that it comes from is;
- `marked`: if a mark is not 0;
- `sum`: unless the sum of two terms is exact; the numbers are the sum and its terms;
- `within`: by units of a second number, and by a known rounding error; of fixed-point numbers by
  that number itself.

Rows of the function table are made when they are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from operator import and_, or_

from rvm.isa.rows import FunctionRow, FunctionTable
from rvm.isa.rules import elementwise
from rvm.leaf import Function
from rvm.leaf.ops import I64 as I64_KIND
from rvm.leaf.trace import Node, Table, bits, constant, equal, fabs, select, to_float, unequal
from rvm.leaf.trace import apply as leaf
from rvm.numbers import system
from rvm.numbers.code import Body, Code, coded, identifier, kind_of
from rvm.numbers.complex_functions import Parts, by_parts
from rvm.numbers.conversions import as_double, of_double
from rvm.types import Scalar

PREFIX = ".nudged "
"""What the functions' names begin with; no text can use them."""
NAME = re.compile(r"\.nudged ([a-z]+)([0-9]+) ([0-9]+) ([0-9]+)")
"""A name: the kind, the number of known numbers, the seed and the steps."""
FRACTION = (1 << 52) - 1
"""The bits of a number that do not depend on its unit, if that is a power of 2."""
TURNED = 3
"""With every third seed, results of additions are moved to where they were rounded from: errors
that always have the same sign, as where equal numbers are added, then get the opposite one."""
END = (1 << 63) - 16
"""Beyond this raw fixed-point numbers are not moved, so as to stay within their type."""
FACTORS = 0x9E3779B97F4A7C15 - (1 << 64), 0xBF58476D1CE4E5B9 - (1 << 64)
"""Odd numbers that mix bits; sources: D. Knuth, The Art of Computer Programming, vol. 3, section
6.4; D. Stafford, Better bit mixing (2011)."""


@cache
def _row(name: str, kind: str, count: int, seed: int, steps: int) -> FunctionRow:
    return FunctionRow(
        name,
        ("x", *(f"by{k}" for k in range(count))),
        elementwise("value"),
        "x, moved by a unit in the last place or not",
        code={"*": partial(_code, kind, count, seed, steps)},
    )


@cache
def _table(seed: int, steps: int) -> Table:
    """What of a seed comes into perturbed numbers, for machine code that all seeds share."""
    turned = steps > 1 and seed % TURNED == 0
    return Table(f"seed_{steps}", I64_KIND, (seed * FACTORS[1] % (1 << 63), int(turned)), True)


def _code(kind: str, count: int, seed: int, steps: int, t: Scalar) -> Code:
    """The function's code; as machine code it finds the seed in a table."""
    kinds, table = (kind_of(t),) * (1 + count), _table(seed, steps)
    by_value, by_table = (_on(t, kind, count, given, steps) for given in (table.values, table))
    made = coded(f"nudged_{kind}{count}_{seed}_{steps}_{identifier(str(t))}", by_value, kinds)
    return replace(made, body=Function(f"nudged_{kind}{count}_{steps}_{t}", by_table, kinds))


def _on(t: Scalar, kind: str, count: int, given: Table | Sequence[int], steps: int) -> Body:
    """The function on raw numbers of a type."""
    sys = system(t)
    if sys.grain:
        return partial(_units, kind, given, steps, t.frac)
    unit, least = 0.75 * sys.unit, sys.unit * sys.least
    body = partial(_body, kind, given, steps, unit, least)
    if t.parts > 1:
        if count and kind not in ("sum", "within"):
            return by_parts(partial(_by_modulus, kind, given, steps, unit, least))
        return by_parts(lambda *z: (body(*(p[0] for p in z)), body(*(p[1] for p in z))))
    if t.is_float and t.bits < 64:
        return lambda *args: of_double(body(*(as_double(x, t) for x in args)), t)
    return body


def _body(
    kind: str,
    given: Table | Sequence[int],
    steps: int,
    unit: float,
    least: float,
    x: Node,
    *known: Node,
) -> Node:
    """A perturbed number: for each step, a hash moves it up or down.

    `known` are the values from which it is computed, without other rounding: for a sum, the sum and
    its terms.
    """
    digits = bits(x) & FRACTION
    for other in known:
        digits = leaf("wmul", digits, FACTORS[1]) ^ (bits(other) & FRACTION)
    turn, down, turned = _way(given, steps, digits)
    way = to_float(turn)

    def along() -> Node:
        return way * to_float((down << 1) + 1)

    def opposite() -> Node:
        total, a, b = known
        # Source: D. Knuth, The Art of Computer Programming, vol. 2, section 4.2.2, theorem B.
        added = total - a
        off = (a - (total - added)) + (b - added)
        return along() * to_float((((bits(off) ^ bits(x)) >> 63) << 1) + 1)

    if kind == "within":
        total, off = known
        return x + (total * (way * unit) + off * _chosen(turned, along, way))
    stays = equal(x, 0.0)
    if kind == "sum":
        way = _chosen(turned, opposite, way)
        total, a, b = known
        stays |= equal(total - a, b) & equal(total - b, a)
    elif kind == "marked":
        stays = equal(known[0], 0.0)
    elif kind != "plain":
        stays &= reduce(or_, (equal(other, 0.0) for other in known))
    return select(stays, x, x + (x * (way * unit) + way * least))


def _by_modulus(
    kind: str,
    given: Table | Sequence[int],
    steps: int,
    unit: float,
    least: float,
    x: Parts,
    *known: Parts,
) -> Parts:
    """A perturbed complex number: a part made of several terms is moved as the modulus demands.

    The parts of a product are sums of two products, those of other functions mix the parts of any
    number that has both.
    """
    out = []
    there = [[unequal(part, 0.0) for part in z] for z in known]
    for k, part in enumerate(x):
        digits = bits(part) & FRACTION
        for z in known:
            digits = leaf("wmul", digits, FACTORS[1]) ^ (bits(z[k]) & FRACTION)
        way = to_float(_way(given, steps, digits)[0])
        if kind in ("product", "quotient"):
            a, b = there
            one, other = a[0] & b[k], a[1] & b[1 - k]
            mixed, lost = one & other, one | other
        else:
            mixed = reduce(or_, (a & b for a, b in there))
            lost = reduce(or_, (b for _, b in there))
            if kind == "small":
                some = reduce(and_, (a | b for a, b in there))
                lost |= some & equal(x[0], 0.0) & equal(x[1], 0.0)
        size = select(mixed, fabs(x[0]) + fabs(x[1]), part)
        moved = part + (size * (way * unit) + way * least)
        out.append(select(equal(part, 0.0) & ~lost, part, moved))
    return out[0], out[1]


def _units(
    kind: str, given: Table | Sequence[int], steps: int, frac: int, x: Node, *known: Node
) -> Node:
    """A perturbed fixed-point number, moved by as many units in the last place as there are steps.

    Factors may change places, since exact numbers are freed by any formula that gives them.  Where
    a product or quotient has no remainder, in the integers, nothing was rounded.
    """
    mixes = (leaf("wmul", other, FACTORS[1]) for other in known)
    way, _, _ = _way(given, steps, reduce(lambda a, b: leaf("wadd", a, b), mixes, x))
    if kind == "within":
        return x + leaf("wmul", way, known[0])
    stays = (x > END) | (x < -END)
    if kind == "product":
        stays |= equal(leaf("wmul", x, 1 << frac), leaf("wmul", *known))
    elif kind == "quotient":
        stays |= equal(leaf("wmul", x, known[1]), leaf("wmul", known[0], 1 << frac))
    elif known:
        zero = reduce(or_, (equal(other, 0) for other in known))
        stays |= zero if kind == "marked" else zero & equal(x, 0)
    return select(stays, x, x + way)


def _way(given: Table | Sequence[int], steps: int, digits: Node) -> tuple[Node, Node, Node | int]:
    """How far digits demand to move a number, -1 if that is down, and whether sums are turned."""
    salt, turned = _entries(given, steps)
    mixed = leaf("wmul", digits ^ salt, FACTORS[0])
    mixed = leaf("wmul", mixed ^ (mixed >> 29), FACTORS[1])
    down = mixed >> 63
    if steps == 1:
        return (down << 1) + 1, down, turned
    return (mixed >> (64 - steps.bit_length())) + down + 1, down, turned


def _entries(given: Table | Sequence[int], steps: int) -> tuple[Node | int, Node | int]:
    """What is mixed into digits, and whether additions are moved to where they were rounded from.

    The latter is known where there is one step only: they are not.
    """
    if not isinstance(given, Table):
        return given[0], given[1]
    first, second = (given[constant(k, I64_KIND)] for k in range(2))
    return first, second if steps > 1 else 0


def _chosen(turned: Node | int, yes: Callable[[], Node], no: Node) -> Node:
    if isinstance(turned, Node):
        return select(unequal(turned, 0), yes(), no)
    return yes() if turned else no


def _on_demand(others: Callable[[str], FunctionRow | None], name: str) -> FunctionRow | None:
    found = NAME.fullmatch(name)
    if found is None:
        return others(name)
    kind, *numbers = found.groups()
    return _row(name, kind, *map(int, numbers))


FunctionTable.on_demand = staticmethod(partial(_on_demand, FunctionTable.on_demand))
