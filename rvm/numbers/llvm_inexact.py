"""Helpers in LLVM's assembly language for log64 and complex numbers."""

from __future__ import annotations

import math

from rvm.numbers.llvm import double

HELPERS = (
    # Sine and cosine of one angle, which share its reduction.
    """
{double, double} @rvm_turn(double %x) noinline nounwind willreturn memory(none) {
entry:
  %sin = call double @rvm_f_sin(double %x)
  %cos = call double @rvm_f_cos(double %x)
  %one = insertvalue {double, double} poison, double %sin, 0
  %both = insertvalue {double, double} %one, double %cos, 1
  ret {double, double} %both
}
""",
    # The logarithm of the modulus from the sizes of the parts, as `cmath.log` has it.
    f"""
double @rvm_complex_log(double %x, double %y) {{
entry:
  %h = call double @rvm_hypot(double %x, double %y)
  %low = fcmp oge double %h, {double(0.71)}
  %high = fcmp ole double %h, {double(1.73)}
  %near = and i1 %low, %high
  br i1 %near, label %close, label %far
close:
  %first = fcmp ogt double %x, %y
  %m = select i1 %first, double %x, double %y
  %n = select i1 %first, double %y, double %x
  %less = fsub double %m, 1.0
  %more = fadd double %m, 1.0
  %product = fmul double %less, %more
  %square = fmul double %n, %n
  %sum = fadd double %product, %square
  %log1 = call double @rvm_log1p(double %sum)
  %half = fmul double %log1, 0.5
  ret double %half
far:
  %log = call double @rvm_log(double %h)
  ret double %log
}}
""",
    # a + ib to the power c + id; NaN where Python's `complex` raises.
    f"""
{{ double, double }} @rvm_complex_power(double %a, double %b, double %c, double %d) {{
entry:
  %real = fcmp oeq double %d, 0.0
  %floor = call double @llvm.floor.f64(double %c)
  %whole = fcmp oeq double %c, %floor
  %size = call double @llvm.fabs.f64(double %c)
  %small = fcmp ole double %size, 100.0
  %s1 = and i1 %real, %whole
  %s2 = and i1 %s1, %small
  br i1 %s2, label %squaring, label %polar
squaring:
  %n = fptosi double %size to i64
  br label %loop
loop:
  %pr = phi double [ %a, %squaring ], [ %sr, %loop ]
  %pi = phi double [ %b, %squaring ], [ %si, %loop ]
  %rr = phi double [ 1.0, %squaring ], [ %nr, %loop ]
  %ri = phi double [ 0.0, %squaring ], [ %ni, %loop ]
  %rest = phi i64 [ %n, %squaring ], [ %next, %loop ]
  %bit = trunc i64 %rest to i1
  %t1 = fmul double %rr, %pr
  %t2 = fmul double %ri, %pi
  %tr = fsub double %t1, %t2
  %t3 = fmul double %rr, %pi
  %t4 = fmul double %ri, %pr
  %ti = fadd double %t3, %t4
  %nr = select i1 %bit, double %tr, double %rr
  %ni = select i1 %bit, double %ti, double %ri
  %p1 = fmul double %pr, %pr
  %p2 = fmul double %pi, %pi
  %sr = fsub double %p1, %p2
  %p3 = fmul double %pr, %pi
  %si = fadd double %p3, %p3
  %next = lshr i64 %rest, 1
  %done = icmp eq i64 %next, 0
  br i1 %done, label %raised, label %loop
raised:
  %positive = fcmp ogt double %c, 0.0
  br i1 %positive, label %out, label %inverse
inverse:
  %x = call double @llvm.fabs.f64(double %nr)
  %y = call double @llvm.fabs.f64(double %ni)
  %first = fcmp oge double %x, %y
  %large = select i1 %first, double %nr, double %ni
  %little = select i1 %first, double %ni, double %nr
  %ratio = fdiv double %little, %large
  %correction = fmul double %little, %ratio
  %divisor = fadd double %large, %correction
  %zero = fmul double %ratio, 0.0
  %ur = fadd double 1.0, %zero
  %ui = fsub double 0.0, %ratio
  %vr = fadd double %ratio, 0.0
  %vi = fsub double %zero, 1.0
  %wr = select i1 %first, double %ur, double %vr
  %wi = select i1 %first, double %ui, double %vi
  %ir = fdiv double %wr, %divisor
  %ii = fdiv double %wi, %divisor
  br label %out
polar:
  %az = fcmp oeq double %a, 0.0
  %bz = fcmp oeq double %b, 0.0
  %origin = and i1 %az, %bz
  br i1 %origin, label %nothing, label %general
nothing:
  %below = fcmp olt double %c, 0.0
  %turning = fcmp une double %d, 0.0
  %fault = or i1 %below, %turning
  %none = select i1 %fault, double {double(math.nan)}, double 0.0
  br label %out
general:
  %modulus = call double @rvm_hypot(double %a, double %b)
  %angle = call double @rvm_atan2(double %b, double %a)
  %length = call double @rvm_pow(double %modulus, double %c)
  %phase = fmul double %angle, %c
  br i1 %real, label %end, label %spiral
spiral:
  %g1 = fmul double %angle, %d
  %g2 = call double @rvm_exp(double %g1)
  %length2 = fdiv double %length, %g2
  %g3 = call double @rvm_log(double %modulus)
  %g4 = fmul double %d, %g3
  %phase2 = fadd double %phase, %g4
  br label %end
end:
  %l = phi double [ %length, %general ], [ %length2, %spiral ]
  %f = phi double [ %phase, %general ], [ %phase2, %spiral ]
  %cos = call double @rvm_cos(double %f)
  %sin = call double @rvm_sin(double %f)
  %er = fmul double %l, %cos
  %ei = fmul double %l, %sin
  br label %out
out:
  %re = phi double [ %nr, %raised ], [ %ir, %inverse ], [ %none, %nothing ], [ %er, %end ]
  %im = phi double [ %ni, %raised ], [ %ii, %inverse ], [ 0.0, %nothing ], [ %ei, %end ]
  %z = insertvalue {{ double, double }} poison, double %re, 0
  %result = insertvalue {{ double, double }} %z, double %im, 1
  ret {{ double, double }} %result
}}
""",
)
"""The functions, without the word `define` and attributes."""
