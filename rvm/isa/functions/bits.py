"""Functions of the bits of integers (and of bools, where they have a meaning)."""

from __future__ import annotations

import operator

from rvm.isa.functions.formulas import enter, exact_shift
from rvm.isa.rules import elementwise, shift

enter(
    "& x y",
    elementwise("bits"),
    "the bits set in both",
    cost="ADDS",
    binds=7,
    exactly=operator.and_,
)
enter(
    "| x y",
    elementwise("bits"),
    "the bits set in one of them",
    cost="ADDS",
    binds=5,
    exactly=operator.or_,
)
enter(
    "^ x y",
    elementwise("bits"),
    "the bits set in just one of them",
    cost="ADDS",
    in_place=("^",),
    binds=6,
    exactly=operator.xor,
)
enter("~ x", elementwise("bits"), "every bit flipped", cost="ADDS", exactly=operator.invert)
enter(
    "<< x k",
    shift,
    "x shifted left by k bits, an i64 or of x's type",
    cost="ADDS",
    partial="exact",
    binds=8,
    exactly=exact_shift,
)
enter(
    ">> x k",
    shift,
    "x shifted right by k bits, an i64 or of x's type, keeping its sign",
    cost="ADDS",
    partial="exact",
    binds=8,
    exactly=operator.rshift,
)
enter(
    "odd_product x y",
    elementwise("int"),
    "x * k for an odd k, modulo 2^bits",
    cost="MULTS",
    partial="exact",
)
enter(
    "odd_quotient x y",
    elementwise("int"),
    "the y for which y * k is x modulo 2^bits, for an odd k",
    cost="MULTS",
    partial="exact",
)
enter(
    "high_product x y",
    elementwise("int"),
    "the upper half of x * y: the whole product, divided by 2^bits and rounded down",
    cost="MULTS",
)
enter("rotl x k", shift, "the bits of x rotated left by k, an i64 or of x's type", cost="ADDS")
enter("rotr x k", shift, "the bits of x rotated right by k, an i64 or of x's type", cost="ADDS")
