"""Sums, products, extremes and scans of arrays, and the products of linear algebra.

`sum`, `prod`, `dot` and `@` of two vectors combine elements in the order that
`rvm.numbers.reductions` states; in a product with a matrix each element is a sum of products taken
one after the other.
Integers wrap; every product of fixed-point numbers is rounded before it is summed; f32 stays in
f32. The sum of no elements is 0, their product 1; an extreme of none is an error (R015). `amin` and
`amax` are NaN if an element is. Of equal elements `amax` passes its derivative to the first and
`amin` to the last, as `max` and `min` do of two. `@`, `dot` and `outer` do not conjugate; their
derivatives do: what flows to A from A @ x with the adjoint g is the outer product of g and conj(x).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.expr import Expr, Formal
from rvm.faults import DefinitionError
from rvm.isa.functions.formulas import Partials, conj, enter, fn, rank
from rvm.isa.rows import Row
from rvm.isa.rules import PRODUCTS, outer, product, reduction, same_shape, scan
from rvm.numbers import system
from rvm.numbers.code import Code, compiled
from rvm.numbers.fixedpoint import fixed_mul, fixed_mul_array
from rvm.numbers.reductions import matrix_product, ordered
from rvm.numbers.support import NAMES, name, outside_domain, unequal_lengths
from rvm.types import LOG64, Scalar


def both(template: str) -> Code:
    """A function of arrays: one template for scalar and for array results."""
    return Code(template, template, alike=True)


def linear(whole: str, rounded: str = "") -> dict[str, Row]:
    """Of numbers that NumPy adds and multiplies as they are held; DTYPE is that of the elements.

    `rounded` is the template for floats and complex numbers, where it is another one.
    """

    def code(template: str) -> Row:
        return lambda t: both(template.replace("DTYPE", f"dtype_{t.name}"))

    inexact = code(rounded or whole)
    return {"integer": code(whole), "float": inexact, "complex": inexact}


def numbers(whole: str, rounded: str = "") -> dict[str, Row]:
    """The same of fixed-point numbers too, which are added as they are held."""
    made = linear(whole, rounded)
    return {**made, "fixed": made["integer"]}


def fixed(template: str) -> dict[str, Row]:
    """Of fixed-point numbers, with FRAC fraction bits and the number ONE."""

    def code(t: Scalar) -> Code:
        return both(template.replace("FRAC", str(t.frac)).replace("ONE", str(1 << t.frac)))

    return {"fixed": code}


@name
def product_of(f: Any, a: Any, b: Any) -> Any:
    """A product of arrays by `f`; R008 where their lengths do not match."""
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise unequal_lengths(a.shape, b.shape)
    return f(a, b)


@name
def whole_product(a: Any, b: Any) -> Any:
    """`a @ b` of integers, a number where both are vectors."""
    found = product_of(np.matmul, a, b)
    return found if found.ndim else found.item()


@name
def fixed_product(a: Any, b: Any, frac: int) -> Any:
    """The matrix product of raw fixed-point arrays: rounded products, summed with wrap-around."""
    return matrix_product(a, b, partial(fixed_mul_array, frac=frac))


@name
def fixed_at(a: Any, b: Any, frac: int) -> Any:
    """`a @ b` of raw fixed-point arrays, a number where both are vectors."""
    out = fixed_product(a, b, frac)
    return out if out.ndim else out.item()


@name
def fixed_prod(x: Any, frac: int) -> Any:
    """The products of raw fixed-point numbers along the first axis, each product rounded."""
    return ordered(partial(fixed_mul_array, frac=frac), x, fixed_mul(1, 1 << frac, 0))


@name
def log_sum(x: Any) -> Any:
    """The logarithms of the sums of numbers held as logarithms, along the first axis."""
    plus = system(LOG64).code("+", (LOG64, LOG64))
    assert plus is not None
    return ordered(compiled(plus.numpy, 2, NAMES), x, -math.inf)


@name
def extreme(f: Any, x: Any) -> Any:
    """The first element, in C order, that `f` (as argmax) finds."""
    if not x.size:
        raise outside_domain("an array without elements has no extreme one")
    return x.reshape(-1)[f(x)].item()


@name
def one_at(f: Any, x: Any, one: Any) -> NDArray[Any]:
    """An array like x, `one` at the first element in C order that `f` (as argmax) finds."""
    out: NDArray[Any] = np.zeros_like(x)
    if x.size:
        out.flat[f(x)] = one
    return out


@name
def last_least(x: Any, axis: int | None = None) -> Any:
    """Where the last of the least elements is, in C order or along the first axis."""
    flat = x.reshape(-1) if axis is None else x
    return len(flat) - 1 - np.argmin(flat[::-1], axis=axis)


@name
def prod_others(x: Any, *directions: Any) -> NDArray[Any]:
    """For each element the product of all others; with directions, its derivative along them.

    Products of what stands left and right, so that zeros need no division.  For k directions the
    numbers are polynomials in k units whose squares are 0, as lists of 2**k coefficients.
    """
    n, size = x.size, 1 << len(directions)
    if not directions and x.dtype.kind != "c":
        # The same products in the same order; complex ones NumPy may contract in whole arrays.
        left, right = np.ones(n, x.dtype), np.ones(n, x.dtype)
        left[1:] = np.multiply.accumulate(x.ravel()[:-1])
        right[:-1] = np.multiply.accumulate(x.ravel()[:0:-1])[::-1]
        return (left * right + 0).reshape(x.shape)
    coefficients = np.zeros((size, n), x.dtype)
    coefficients[0] = x.ravel()
    for k, d in enumerate(directions):
        coefficients[1 << k] = np.broadcast_to(d, x.shape).ravel()

    def times(p: Any, q: Any) -> Any:
        out = np.zeros(size, x.dtype)
        for i in range(size):
            for j in range(size):
                if not i & j:
                    out[i | j] += p[i] * q[j]
        return out

    unit = np.zeros(size, x.dtype)
    unit[0] = 1
    before, after = [unit], [unit]
    for i in range(n - 1):
        before.append(times(before[-1], coefficients[:, i]))
        after.append(times(after[-1], coefficients[:, n - 1 - i]))
    found = [times(p, q)[-1] for p, q in zip(before, reversed(after), strict=True)][:n]
    out: NDArray[Any] = np.array(found, x.dtype).reshape(x.shape)
    return out


def _transposed(a: Expr) -> Expr:
    return fn("transpose", conj(a))


def _product_vjp(g: Expr, a: Expr, b: Expr) -> Partials:
    match rank(a), rank(b):
        case 1, 1:
            return (g * conj(b), g * conj(a))
        case 2, 1:
            return (fn("outer", g, conj(b)), fn("@", _transposed(a), g))
        case 1, 2:
            return (fn("@", conj(b), g), fn("outer", conj(a), g))
        case _:
            return (fn("@", g, _transposed(b)), fn("@", _transposed(a), g))


def _no_fourth(g: Expr, *args: Expr) -> Partials:
    raise DefinitionError("D011", "`prod` can be differentiated three times, not four")


PRODUCT = {
    **linear("product_of(np.matmul, {0}, {1})", "ordered_product({0}, {1})"),
    **fixed("fixed_product({0}, {1}, FRAC)"),
}


enter(
    "sum x",
    reduction("value"),
    "the sum of all elements",
    cost="ADDS",
    vjp=lambda g, x: (fn("spread_like", g, x),),
    code={
        **numbers("np.sum({0}, dtype=DTYPE).item()", "ordered_sum({0})"),
        "log": both("log_sum({0}.reshape(-1)).item()"),
    },
    linear=True,
    repeats="+",
)
enter(
    "prod x",
    reduction("value"),
    "the product of all elements",
    cost="MULTS",
    vjp=lambda g, x: (g * fn("prod_others", conj(x)),),
    code={
        **linear("np.prod({0}, dtype=DTYPE).item()", "ordered_prod(np.multiply, {0}, 1)"),
        "complex": both("ordered_prod(complex_times, {0}, 1)"),
        **fixed("fixed_prod({0}.reshape(-1), FRAC).item()"),
        "log": both("ordered_sum({0})"),
    },
    repeats="*",
)
enter(
    "amin x",
    reduction("ordered"),
    "the least element, the first of equals",
    cost="ADDS",
    vjp=lambda g, x: (g * fn("last_min", x),),
    code={"*": both("extreme(np.argmin, {0})")},
    exact=True,
    repeats="min",
    partial="any",
)
enter(
    "amax x",
    reduction("ordered"),
    "the greatest element, the first of equals",
    cost="ADDS",
    vjp=lambda g, x: (g * fn("first_max", x),),
    code={"*": both("extreme(np.argmax, {0})")},
    exact=True,
    repeats="max",
    partial="any",
)


def _logsumexp() -> Expr:
    x = Formal(0)
    top = fn("detach", fn("amax", x))
    # Infinities are not subtracted from themselves.
    shift = fn("select", fn("<", fn("abs", top), math.inf), top, 0.0)
    return shift + fn("log", fn("sum", fn("exp", x - shift)))


enter(
    "logsumexp x",
    reduction("float"),
    "log(sum(exp(x))) of all elements, which does not overflow",
    formula=_logsumexp(),
    partial="any",
)
enter(
    "first_max x",
    same_shape("scale"),
    "1 at the first greatest element, else 0",
    cost="ADDS",
    code={"*": both("one_at(np.argmax, {0}, 1)"), **fixed("one_at(np.argmax, {0}, ONE)")},
    steps=True,
)
enter(
    "last_min x",
    same_shape("scale"),
    "1 at the last least element, else 0",
    cost="ADDS",
    code={"*": both("one_at(last_least, {0}, 1)"), **fixed("one_at(last_least, {0}, ONE)")},
    steps=True,
)
enter(
    "prod_others x",
    same_shape("inexact"),
    "for each element the product of all others",
    cost="MULTS",
    vjp=lambda g, x: (fn("prod_others_1", conj(x), g),),
    code=linear("prod_others({0})"),
    at_once=True,
)
enter(
    "prod_others_1 x d",
    same_shape("inexact"),
    "the derivative of `prod_others(x)` along d",
    cost="MULTS",
    vjp=lambda g, x, d: (fn("prod_others_2", conj(x), conj(d), g), fn("prod_others_1", conj(x), g)),
    code=linear("prod_others({0}, {1})"),
)
enter(
    "prod_others_2 x d e",
    same_shape("inexact"),
    "the derivative of `prod_others_1(x, d)` along e; it has no derivative",
    cost="MULTS",
    vjp=_no_fourth,
    code=linear("prod_others({0}, {1}, {2})"),
)
enter(
    "dot a b",
    product((1, 1)),
    "the sum of products of two vectors, none conjugated",
    cost="MULTS",
    vjp=_product_vjp,
    code={
        **linear("product_of(np.dot, {0}, {1}).item()", "ordered_dot({0}, {1})"),
        **fixed("fixed_product({0}, {1}, FRAC).item()"),
    },
    contracts=True,
)
enter(
    "matvec a b",
    product((2, 1)),
    "the product of a matrix and a vector",
    cost="MULTS",
    vjp=_product_vjp,
    code=PRODUCT,
    contracts=True,
)
enter(
    "matmul a b",
    product((2, 2)),
    "the product of two matrices",
    cost="MULTS",
    vjp=_product_vjp,
    code=PRODUCT,
    contracts=True,
)
enter(
    "@ a b",
    product(*PRODUCTS),
    "the product of vectors and matrices, by their dimensions",
    cost="MULTS",
    vjp=_product_vjp,
    code={
        **linear("whole_product({0}, {1})", "ordered_product({0}, {1})"),
        **fixed("fixed_at({0}, {1}, FRAC)"),
    },
    contracts=True,
    binds=10,
)
enter(
    "outer a b",
    outer,
    "the matrix of all products of two vectors",
    cost="MULTS",
    vjp=lambda g, a, b: (fn("@", g, conj(b)), fn("@", conj(a), g)),
    code={
        **linear("outer_product({0}, {1})"),
        **fixed("fixed_mul_array({0}[:, None], {1}[None, :], FRAC)"),
    },
)
enter(
    "scan_left x",
    scan("number"),
    "running sums from the left: y[i] = x[0] + … + x[i]",
    cost="ADDS",
    vjp=lambda g, x: (fn("scan_right", g),),
    code=numbers("np.cumsum({0}, dtype=DTYPE)"),
    linear=True,
)
enter(
    "scan_right x",
    scan("number"),
    "running sums from the right: y[i] = x[i] + … + x[n-1]",
    cost="ADDS",
    vjp=lambda g, x: (fn("scan_left", g),),
    code=numbers("np.cumsum({0}[::-1], dtype=DTYPE)[::-1]"),
    linear=True,
)
