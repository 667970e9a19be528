"""Texts of a target that replace those printed from a body, for speed.

For a class of types and a function, `OWN` has the Python and the NumPy template ("" for that of the
body). tests/isa/test_functions_code.py and test_llvm.py compare their values with the body's.  As
measured, Python's product of complex numbers takes 0.08 us, its body 0.5.
"""

from __future__ import annotations

import sys

from rvm.leaf.ops import WIDTHS, wrapped

ROUND32 = "unpack32(pack32({}))[0]"


def _double(template: str) -> str:
    for k in range(2):
        template = template.replace(f"{{{k}}}", f"np.asarray({{{k}}}, dtype_f64)")
    return f"{template}.astype(dtype_f32)"


def _multiplies_plainly() -> bool:
    """Whether Python rounds each product in that of complex numbers, and repairs none.

    CPython 3.14 repairs those that are NaN in both parts; compilers may fuse multiply and add.
    """
    x, y = complex(1 + 2.0**-30, 1 - 2.0**-30), complex(1 + 2.0**-30, 1 + 2.0**-29)
    want = complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)
    return sys.version_info < (3, 14) and x * y == want


PRODUCTS = {
    "*": ("({0} * {1})", "complex_times({0}, {1})"),
    "square": ("(({t0} := {0}) * {t0})", "complex_square({0})"),
    "/": ("({0} / {1})", ""),
}
if not _multiplies_plainly():
    PRODUCTS = {fn: ("", numpy) for fn, (_, numpy) in PRODUCTS.items()}
EXTREMES = {"min": ("", "np.minimum({0}, {1})"), "max": ("", "np.maximum({0}, {1})")}
OWN: dict[str, dict[str, tuple[str, str]]] = {
    "bool": {
        # Of `and` and `or` the second argument is evaluated only where it counts.
        f: (f"({{0}} {f} {{1}})", "")
        for f in ("and", "or")
    },
    "integer": {
        **EXTREMES,
        "sign": ("", "np.sign({0}, dtype=dtype_KIND)"),
        "square": ("", "np.square({0})"),
        "relu": ("", "np.maximum({0}, 0)"),
        # Python raises for a negative count by itself, and shifts right by any other.
        ">>": ("({0} >> {1})", ""),
    },
    "f64": {
        "//": ("({0} // {1})", "np.floor_divide({0}, {1})"),
        "%": ("({0} % {1})", "np.remainder({0}, {1})"),
        "sign": ("", "np.sign({0})"),
        "square": ("", "np.square({0})"),
    },
    "f32": {
        "//": (ROUND32.replace("{}", "{0} // {1}"), _double("np.floor_divide({0}, {1})")),
        "%": (ROUND32.replace("{}", "{0} % {1}"), _double("np.remainder({0}, {1})")),
        "sign": ("", "np.sign({0})"),
        "square": ("", "np.square({0})"),
    },
    "fixed": {**EXTREMES, "relu": ("", "np.maximum({0}, 0)")},
    "log64": {},
    "c128": {
        # Products of NumPy's own may be fused.
        **{s: (f"({{0}} {s} {{1}})", f"({{0}} {s} {{1}})") for s in ("==", "!=", "+", "-")},
        **PRODUCTS,
        "neg": ("(-{0})", "(-{0})"),
        "conj": ("{0}.conjugate()", "np.conjugate({0})"),
        "re": ("", "np.real({0})"),
        "im": ("", "np.imag({0})"),
    },
}


def own(title: str, fn: str) -> tuple[str, str]:
    """The Python and the NumPy template of a function of a type; "" where it has none."""
    kind = title.partition("_")[0]
    if kind in WIDTHS and fn == "<<":
        # Python refuses a negative count.
        bits = WIDTHS[kind]
        count = f"({{t0}} if ({{t0}} := {{1}}) < {bits} else {bits})"
        return wrapped(f"{{0}} << {count}", kind).replace("{t}", "{t9}"), ""
    python, numpy = OWN.get("integer" if kind in WIDTHS else kind, {}).get(fn, ("", ""))
    return python.replace("KIND", kind), numpy.replace("KIND", kind)
