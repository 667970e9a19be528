"""Complex numbers and their parts.

A complex adjoint is dL/dRe + i dL/dIm: what flows to `z` from `abs2(z)` with the adjoint g is 2 g
z. What flows from the modulus at 0 is 0, from the angle at 0 NaN.
"""

from __future__ import annotations

from functools import partial

from rvm.isa.functions.formulas import const, enter, fn
from rvm.isa.rules import elementwise, modulus, of
from rvm.leaf.function import Body
from rvm.leaf.trace import apply, called
from rvm.numbers.code import Codes, coded, moved
from rvm.numbers.complex_functions import by_parts
from rvm.numbers.elementary import text
from rvm.numbers.own import own
from rvm.types import C128, F64


def by_body(name: str, body: Body, kind: str = C128.name, arity: int = 1) -> Codes:
    """Code by the body of a function of complex numbers, or of f64 where `kind` is that."""
    return Codes({kind: lambda: coded(f"complex_{name}", body, (kind,) * arity, *own(kind, name))})


enter(
    "conj x",
    elementwise("number"),
    "the complex conjugate; a real number itself",
    cost="ADDS",
    partials=lambda x: (const(1, x),),
    vjp=lambda g, z: (fn("conj", g),),
    code={"*": moved, **by_body("conj", by_parts(lambda z: (z[0], -z[1])))},
    moves=True,
    linear=True,
)
enter(
    "real z",
    of(C128, result=F64),
    "the real part",
    cost="MOVES",
    vjp=lambda g, z: (fn("c128", g),),
    code=by_body("re", partial(apply, "re")),
    moves=True,
    linear=True,
)
enter(
    "imag z",
    of(C128, result=F64),
    "the imaginary part",
    cost="MOVES",
    vjp=lambda g, z: (fn("complex", 0.0, g),),
    code=by_body("im", partial(apply, "im")),
    moves=True,
    linear=True,
)
enter(
    "complex re im",
    of(F64, F64, result=C128),
    "re + i im",
    cost="MOVES",
    vjp=lambda g, re, im: (fn("real", g), fn("imag", g)),
    code=by_body("of", partial(apply, "complex"), F64.name, 2),
    exact=True,
)
enter(
    "abs2 x",
    modulus("number"),
    "the squared absolute value or modulus",
    cost="MULTS",
    partials=lambda x: (const(2, x) * x,),
    vjp=lambda g, z: (const(2.0, g) * g * z,),
    code=by_body("abs2", by_parts(lambda z: z[0] * z[0] + z[1] * z[1])),
    underflows=True,
)
enter(
    "angle z",
    of(C128, result=F64),
    "the angle of a complex number, in (-pi, pi]",
    vjp=lambda g, z: (g * (fn("complex", 0.0, 1.0) * z / fn("abs", z) / fn("abs", z)),),
    code=by_body("angle", by_parts(lambda z: called(text("atan2"), z[1], z[0]))),
    underflows=True,
    cuts="complex",
)
