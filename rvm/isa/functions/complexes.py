"""Complex numbers and their parts.

A complex adjoint is dL/dRe + i dL/dIm: what flows to `z` from `abs2(z)` with the adjoint g is 2 g
z. What flows from the modulus at 0 is 0, from the angle at 0 NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm.isa.functions.formulas import const, enter, fn
from rvm.isa.rules import elementwise, modulus, of
from rvm.leaf.python import on_arrays, on_numbers
from rvm.numbers.code import Code
from rvm.numbers.elementary import text
from rvm.numbers.llvm import Emitter, same
from rvm.numbers.llvm_complex import conjugate, squared_modulus
from rvm.numbers.support import name
from rvm.types import C128, F64

REAL = (-4.0, 4.0)


@name
def complex_array(re: Any, im: Any) -> Any:
    """A complex array from its parts, signed zeros, infinities and NaN kept."""
    re, im = np.broadcast_arrays(re, im)
    z = np.empty(re.shape, np.complex128)
    z.real, z.imag = re, im
    return z


@name
def abs2_array(z: Any) -> Any:
    """The squared modulus on arrays."""
    return z.real * z.real + z.imag * z.imag


@name
def phase(z: complex) -> float:
    """The angle of a complex number."""
    return float(on_numbers(text("atan2"))(z.imag, z.real))


@name
def phase_array(z: Any) -> Any:
    """The angles of complex numbers."""
    return on_arrays(text("atan2"))(z.imag, z.real)


def _angle(e: Emitter, z: tuple[str, str]) -> str:
    return e.written(text("atan2"), (z[1], z[0]))


enter(
    "conj",
    1,
    elementwise("number"),
    "the complex conjugate; a real number itself",
    cost="ADDS",
    partials=lambda x: (const(1, x),),
    vjp=lambda g, z: (fn("conj", g),),
    code={
        "*": Code("{0}", "{0}", None, same),
        "c128": Code("{0}.conjugate()", "np.conjugate({0})", None, conjugate),
    },
    domain=(REAL,),
    mp="conj",
    moves=True,
)
enter(
    "real",
    1,
    of(C128, result=F64),
    "the real part",
    cost="MOVES",
    vjp=lambda g, z: (fn("c128", g),),
    code={"c128": Code("{0}.real", "np.real({0})", None, lambda e, z: z[0])},
    mp="re",
    moves=True,
)
enter(
    "imag",
    1,
    of(C128, result=F64),
    "the imaginary part",
    cost="MOVES",
    vjp=lambda g, z: (fn("complex", 0.0, g),),
    code={"c128": Code("{0}.imag", "np.imag({0})", None, lambda e, z: z[1])},
    mp="im",
    moves=True,
)
enter(
    "complex",
    2,
    of(F64, F64, result=C128),
    "re + i im",
    cost="MOVES",
    vjp=lambda g, re, im: (fn("real", g), fn("imag", g)),
    code={
        "f64": Code("complex({0}, {1})", "complex_array({0}, {1})", None, lambda e, x, y: (x, y))
    },
    mp="mpc",
)
enter(
    "abs2",
    1,
    modulus("number"),
    "the squared absolute value or modulus",
    cost="MULTS",
    partials=lambda x: (const(2, x) * x,),
    vjp=lambda g, z: (const(2.0, g) * g * z,),
    code={
        "c128": Code(
            "(({t0} := {0}).real * {t0}.real + {t0}.imag * {t0}.imag)",
            "abs2_array({0})",
            None,
            squared_modulus,
        )
    },
    domain=(REAL,),
    mp=lambda x: abs(x) ** 2,
)
enter(
    "angle",
    1,
    of(C128, result=F64),
    "the angle of a complex number, in (-pi, pi]",
    vjp=lambda g, z: (g * (fn("complex", 0.0, 1.0) * z / fn("abs", z) / fn("abs", z)),),
    code={"c128": Code("phase({0})", "phase_array({0})", None, _angle, alike=True)},
    mp="arg",
)
