"""LLVM functions that pure operations call: loops and pairs.

`NEEDS` lists the functions that each one calls: others of these, and those of the C library by
their aliases.
"""

from __future__ import annotations

from rvm.leaf.ops import LIBM

SYMBOLS = {f"rvm_{f}": f for f in LIBM}
"""The C library's functions by their aliases."""


def declaration(symbol: str) -> str:
    """LLVM's declaration of a key of `SYMBOLS`."""
    args = ", ".join(["double"] * LIBM[SYMBOLS[symbol]])
    return f"declare double @{symbol}({args}) #0"


NEEDS = {
    "rvm_divide_wide": ["rvm_divide_digit"],
    "rvm_fixed_div": ["rvm_divide_wide"],
}
TURN = "rvm_turn"
"""Sine and cosine of one angle, which share its reduction."""
PRELUDE = {
    "rvm_integer_power": """
define internal i64 @rvm_integer_power(i64 %x, i64 %n) #0 {
entry:
  br label %loop
loop:
  %base = phi i64 [ %x, %entry ], [ %squared, %loop ]
  %rest = phi i64 [ %n, %entry ], [ %half, %loop ]
  %power = phi i64 [ 1, %entry ], [ %next, %loop ]
  %bit = trunc i64 %rest to i1
  %more = mul i64 %power, %base
  %next = select i1 %bit, i64 %more, i64 %power
  %squared = mul i64 %base, %base
  %half = lshr i64 %rest, 1
  %done = icmp eq i64 %half, 0
  br i1 %done, label %out, label %loop
out:
  ret i64 %next
}
""",
    # The magnitudes of numerator (`high` times 2**64 plus `low`) and divisor, high < divisor: the
    # quotient and the rest by Knuth's algorithm D in base 2**32 (The Art of Computer Programming,
    # volume 2, section 4.3.1), for LLVM would call a function that is not in every process.
    "rvm_divide_wide": """
define internal { i64, i64 } @rvm_divide_wide(i64 %high, i64 %low, i64 %divisor) #0 {
entry:
  %shift = call i64 @llvm.ctlz.i64(i64 %divisor, i1 false)
  %d = shl i64 %divisor, %shift
  %n3 = call i64 @llvm.fshl.i64(i64 %high, i64 %low, i64 %shift)
  %n1 = shl i64 %low, %shift
  %left = lshr i64 %n1, 32
  %right = and i64 %n1, 4294967295
  %first = call { i64, i64 } @rvm_divide_digit(i64 %n3, i64 %left, i64 %d)
  %q1 = extractvalue { i64, i64 } %first, 0
  %r1 = extractvalue { i64, i64 } %first, 1
  %second = call { i64, i64 } @rvm_divide_digit(i64 %r1, i64 %right, i64 %d)
  %q0 = extractvalue { i64, i64 } %second, 0
  %r0 = extractvalue { i64, i64 } %second, 1
  %up = shl i64 %q1, 32
  %quotient = add i64 %up, %q0
  %rest = lshr i64 %r0, %shift
  %a = insertvalue { i64, i64 } poison, i64 %quotient, 0
  %b = insertvalue { i64, i64 } %a, i64 %rest, 1
  ret { i64, i64 } %b
}
""",
    # One digit of the quotient, and the rest: of `top` times 2**32 plus `digit`, by a divisor whose
    # highest bit is set.  The guess from the divisor's upper half is at most 2 too high.
    "rvm_divide_digit": """
define internal { i64, i64 } @rvm_divide_digit(i64 %top, i64 %digit, i64 %d) #0 {
entry:
  %d1 = lshr i64 %d, 32
  %d0 = and i64 %d, 4294967295
  %q = udiv i64 %top, %d1
  %r = urem i64 %top, %d1
  br label %guess
guess:
  %guessed = phi i64 [ %q, %entry ], [ %less, %lower ]
  %left = phi i64 [ %r, %entry ], [ %more, %lower ]
  %wide = icmp ugt i64 %guessed, 4294967295
  %product = mul i64 %guessed, %d0
  %shifted = shl i64 %left, 32
  %bound = or i64 %shifted, %digit
  %over = icmp ugt i64 %product, %bound
  %high = or i1 %wide, %over
  br i1 %high, label %lower, label %found
lower:
  %less = sub i64 %guessed, 1
  %more = add i64 %left, %d1
  %again = icmp ult i64 %more, 4294967296
  br i1 %again, label %guess, label %found
found:
  %digit_of = phi i64 [ %guessed, %guess ], [ %less, %lower ]
  %up = shl i64 %top, 32
  %all = or i64 %up, %digit
  %taken = mul i64 %digit_of, %d
  %rest = sub i64 %all, %taken
  %a = insertvalue { i64, i64 } poison, i64 %digit_of, 0
  %b = insertvalue { i64, i64 } %a, i64 %rest, 1
  ret { i64, i64 } %b
}
""",
    # A quotient of raw fixed-point numbers, the divisor not 0: that of the magnitudes rounded to
    # nearest, ties to even, modulo 2**64, with the sign.
    "rvm_fixed_div": """
define internal i64 @rvm_fixed_div(i64 %a, i64 %b, i64 %frac) #0 {
entry:
  %n = call i64 @llvm.abs.i64(i64 %a, i1 false)
  %d = call i64 @llvm.abs.i64(i64 %b, i1 false)
  %top = call i64 @llvm.fshl.i64(i64 0, i64 %n, i64 %frac)
  %low = shl i64 %n, %frac
  %high = urem i64 %top, %d
  %short = icmp eq i64 %high, 0
  br i1 %short, label %narrow, label %wide
narrow:
  %q1 = udiv i64 %low, %d
  %r1 = urem i64 %low, %d
  br label %round
wide:
  %both = call { i64, i64 } @rvm_divide_wide(i64 %high, i64 %low, i64 %d)
  %q2 = extractvalue { i64, i64 } %both, 0
  %r2 = extractvalue { i64, i64 } %both, 1
  br label %round
round:
  %q = phi i64 [ %q1, %narrow ], [ %q2, %wide ]
  %r = phi i64 [ %r1, %narrow ], [ %r2, %wide ]
  %over = sub i64 %d, %r
  %odd = and i64 %q, 1
  %beyond = icmp ugt i64 %r, %over
  %tie = icmp eq i64 %r, %over
  %is_odd = trunc i64 %odd to i1
  %to_even = and i1 %tie, %is_odd
  %up = or i1 %beyond, %to_even
  %one = zext i1 %up to i64
  %size = add i64 %q, %one
  %signs = xor i64 %a, %b
  %below = icmp slt i64 %signs, 0
  %negated = sub i64 0, %size
  %result = select i1 %below, i64 %negated, i64 %size
  ret i64 %result
}
""",
    # Sine and cosine of one angle, which share its reduction.
    "rvm_turn": """
define internal {double, double} @rvm_turn(double %x) noinline #0 {
entry:
  %sin = call double @rvm_f_sin(double %x)
  %cos = call double @rvm_f_cos(double %x)
  %one = insertvalue {double, double} poison, double %sin, 0
  %both = insertvalue {double, double} %one, double %cos, 1
  ret {double, double} %both
}
""",
}
"""The definitions by the functions' names."""
