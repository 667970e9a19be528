"""The table of leaf operations: the kinds they take and give, and their text for each target.

Floats are IEEE 754, every operation rounded to nearest.  Integers are in two's complement; sums,
differences and products of `add`, `sub`, `mul` must not leave their range, those of `wadd`, `wsub`,
`wmul` wrap.  No text here may be contracted: LLVM forms no fused operation without a flag that asks
for it.  Operations of f64 and i64 have short names (`fadd`, `wadd`), those of other kinds end in
their kind (`wadd_u8`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rvm.leaf.trace import Node

F64, F32, BIT, C128 = "f64", "f32", "bit", "c128"
I32, I64, U8, U32, U64 = "i32", "i64", "u8", "u32", "u64"
"""The kinds of values: floats, a truth value, two floats, integers of a width, signed or not."""
MASK = (1 << 64) - 1
WIDTHS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
"""The integers' bits."""
NATIVE = {F64: F64, F32: F32, BIT: BIT, **{k: f"i{n}" for k, n in WIDTHS.items()}}
"""The kinds in machine code, where integers have no sign of their own: operations have.

A complex number is a pair of nodes there.
"""


def signed(kind: str) -> bool:
    """Whether an integer kind has a sign."""
    return kind[0] == "i"


def limits(kind: str) -> tuple[int, int]:
    """The least and the greatest number of an integer kind."""
    bits = WIDTHS[kind]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed(kind) else (0, (1 << bits) - 1)


Native = Callable[..., Any]
"""A function that appends an operation in machine code, and returns the result's node."""


LIBM = {"fmod": 2}
"""The exact functions of the C library that `%` needs, with their numbers of arguments.

In machine code they are called `rvm_fmod` and so on.
"""


@dataclass(frozen=True, slots=True)
class Op:
    """A leaf operation.

    `python` is on Python numbers, `numpy` on arrays of the storage types; both are closed
    expressions that use each argument once, in order; `{t}` and `{u}` are names for `:=`.  `python`
    may raise ArithmeticError or ValueError where `total`, if there is one, does not.  `native` is
    the operation of `rvm.ir.operations` that does it in machine code; or it is called with the
    operations that are being made (`rvm.ir.graph`) and the arguments' nodes.  `zeros`: of how many
    arguments, the first ones, a zero with the other sign gives at most a zero with the other sign.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    python: str
    numpy: str
    native: str | Native
    total: str = ""
    zeros: int = 0


OPS: dict[str, Op] = {}
"""The leaf operations by name; other nodes are constants, arguments, checks and tables."""


def add(op: Op) -> Op:
    """Enter an operation in the table."""
    OPS[op.name] = op
    return op


def named(name: str, kind: str) -> str:
    """The name of an operation of a kind."""
    return name if kind in (F64, I64) else f"{name}_{kind}"


def wrapped(body: str, kind: str) -> str:
    """A Python integer brought into the range of a kind."""
    low, high = limits(kind)
    if not low:
        return f"({body} & {high})"
    return f"({{t}} if {low} <= ({{t}} := {body}) <= {high} else wrap_{kind}({{t}}))"


COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
"""The signs of comparisons, by the names of their leaf operations."""


def intrinsic(name: str) -> Native:
    """A function that targets know by name."""
    return lambda b, *args: b.intrinsic(name, *args)


def _comparisons(kind: str) -> None:
    floats = kind in (F64, F32)
    for name, sign in COMPARISONS.items():
        if kind == BIT and name not in ("eq", "ne"):
            continue
        unsigned = kind[0] == "u" and name not in ("eq", "ne")
        text = f"({{0}} {sign} {{1}})"
        native = ("f" if floats else "u" if unsigned else "") + name
        add(Op(named("f" * floats + name, kind), (kind, kind), BIT, text, text, native))


def _selection(kind: str) -> None:
    python, numpy = "({1} if {0} else {2})", "np.where({0}, {1}, {2})"
    add(Op(f"select_{kind}", (BIT, kind, kind), kind, python, numpy, lambda b, *x: b.select(*x)))


def _floats(kind: str) -> None:
    single = kind == F32

    def enter(
        name: str, python: str, numpy: str, native: str | Native, total: str = "", zeros: int = 0
    ) -> None:
        arity = 2 if "{1}" in python else 1
        if single and name not in ("fneg", "fabs", "floor"):
            python, total = f"unpack32(pack32({python}))[0]", f"f32({total or python})"
        add(Op(named(name, kind), (kind,) * arity, kind, python, numpy, native, total, zeros))

    for name, sign in (("fadd", "+"), ("fsub", "-"), ("fmul", "*"), ("fdiv", "/")):
        text, total = f"({{0}} {sign} {{1}})", "divide({0}, {1})" if sign == "/" else ""
        enter(name, text, text, name, total, 1 if sign == "/" else 2)
    enter("fneg", "(-{0})", "(-{0})", "fneg", zeros=1)
    floor = "({u} if ({u} := ({t} := {0}) // 1.0) == {u} else {t})"
    for name, function, python, total in (
        ("fabs", "abs", "abs({0})", ""),
        ("sqrt", "sqrt", "sqrt({0})", "root({0})"),
        ("floor", "floor", floor, ""),
    ):
        enter(name, python, f"np.{function}({{0}})", intrinsic(name), total)


def number(node: Node) -> int | None:
    """The value of an integer constant; None of other nodes."""
    return node.aux if node.op == "constant" and isinstance(node.aux, int) else None


def _size(b: Any, x: Node) -> Any:
    return b.intrinsic("abs", x, b.truth(False))


def _integers(kind: str) -> None:
    bits, (low, high) = WIDTHS[kind], limits(kind)

    def enter(name: str, python: str, numpy: str, native: str | Native = "") -> None:
        arity = 2 if "{1}" in python else 1
        add(Op(named(name, kind), (kind,) * arity, kind, python, numpy, native or name))

    for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
        text = f"{{0}} {sign} {{1}}"
        enter(name, f"({text})", f"({text})")
        wraps = wrapped(text, kind)
        if (name, kind) == ("add", U64):
            # Sums of 64 bits are two digits of Python's, which a mask would have to look at.
            wraps = f"({{t}} if ({{t}} := {text}) <= {high} else {{t}} - {high + 1})"
        enter(f"w{name}", wraps, f"({text})")
    for name, sign in (("and", "&"), ("or", "|"), ("xor", "^")):
        text = f"({{0}} {sign} {{1}})"
        enter(name, text, text)
    enter("wneg", wrapped("-{0}", kind), "(-{0})", lambda b, x: b.op("wsub", b.number(0, x), x))
    inverted = "(~{0})" if low else f"({{0}} ^ {high})"
    enter("inv", inverted, "(~{0})", lambda b, x: b.op("xor", b.number(-1, x), x))
    enter("wabs", wrapped("abs({0})", kind), "np.abs({0})", _size)
    # Divisors are not 0; quotients are rounded to minus infinity.
    quotient = "({0} // {1})"
    if low:
        quotient = f"({{t}} if ({{t}} := {{0}} // {{1}}) <= {high} else {low})"
    division = divisions(kind)
    enter("floordiv", quotient, "np.floor_divide({0}, {1})", division[0])
    enter("mod", "({0} % {1})", "np.remainder({0}, {1})", division[1])
    # The counts of shifts and rotations lie within 0 and the width less 1.
    enter("shl", wrapped("{0} << {1}", kind), "({0} << {1})")
    enter("ashr" if low else "lshr", "({0} >> {1})", "({0} >> {1})")
    unsigned = f"({{0}} & {(1 << bits) - 1})" if low else "{0}"
    for name, there, back in (("l", "<<", ">>"), ("r", ">>", "<<")):
        turned = f"(({{t}} := {unsigned}) {there} ({{u}} := {{1}}) | {{t}} {back} {bits} - {{u}})"

        def funnel(b: Any, x: Node, k: Node, name: str = name) -> Node:
            return b.intrinsic(f"fsh{name}", x, x, k)  # type: ignore[no-any-return]

        enter(f"rot{name}", wrapped(turned, kind), f"rot{name}_array({{0}}, {{1}})", funnel)


def divisions(kind: str) -> tuple[str | Native, str | Native]:
    """A quotient rounded to minus infinity, and its rest, in machine code.

    By a constant power of 2 they are a shift and a mask; the least number // -1 wraps.
    """
    if not signed(kind):
        return "udiv", "urem"

    def power(x: Node) -> int | None:
        n = number(x)
        return n.bit_length() - 1 if n is not None and n > 0 and not n & (n - 1) else None

    def parts(b: Any, x: Node, y: Node) -> tuple[Node, Node, Node | None, Node]:
        minus, divisor = None, y
        if number(y) in (None, -1):
            # -1 is taken apart: the processor would trap on the least number.
            minus = b.op("eq", y, b.number(-1, y))
            divisor = b.select(minus, b.number(1, y), y)
        rest = b.op("srem", x, divisor)
        unlike = b.op("lt", b.op("xor", rest, divisor), b.number(0, y))
        left = b.op("ne", rest, b.number(0, y))
        return divisor, rest, minus, b.op("and", left, unlike)

    def quotient(b: Any, x: Node, y: Node) -> Any:
        if (k := power(y)) is not None:
            return b.op("ashr", x, b.number(k, x))
        divisor, _, minus, down = parts(b, x, y)
        cut = b.op("sdiv", x, divisor)
        floor = b.op("wadd", cut, b.op("sext", down, kind=x.kind))
        return floor if minus is None else b.select(minus, b.op("wsub", b.number(0, x), x), floor)

    def modulo(b: Any, x: Node, y: Node) -> Any:
        if (k := power(y)) is not None:
            return b.op("and", x, b.number((1 << k) - 1, x))
        divisor, rest, _, down = parts(b, x, y)
        return b.op("wadd", rest, b.select(down, divisor, b.number(0, y)))

    return quotient, modulo


def _same(b: Any, x: Node) -> Node:
    return x


def _integer_conversion(to: str, source: str) -> None:
    """An integer converted to another kind, with wrapping; a truth value becomes 0 or 1."""
    low, high = limits(to)
    inner = (0, 1) if source == BIT else limits(source)
    python = "int({0})" if source == BIT else "{0}"
    if not (low <= inner[0] and inner[1] <= high):
        python = wrapped("{0}", to)
    narrow, wider = WIDTHS[to], WIDTHS.get(source, 1)
    how = "trunc" if narrow < wider else "sext" if source[0] == "i" else "zext"
    native: str | Native = _same if narrow == wider else how
    numpy = f"cast({{0}}, dtype_{to})"
    add(Op(f"{to}_of_{source}", (source,), to, python, numpy, native))
    if source != BIT:
        # Of a number that fits, which Python has not to look at.
        add(Op(f"{to}_from_{source}", (source,), to, "{0}", numpy, native))


def cut(kind: str) -> Native:
    """A float that fits an integer kind without its fraction."""
    # By way of a type that processors convert to.
    how = "fptoui" if kind == U64 else "fptosi"
    way = I64 if WIDTHS[kind] == 64 else I32 if kind == I32 else I64

    def native(b: Any, x: Node) -> Any:
        # Of a float that is no such integer there is no value at all, which an index must not be.
        found = b.op("freeze", b.op(how, x, kind=way))
        return found if way == NATIVE[kind] else b.op("trunc", found, kind=NATIVE[kind])

    return native


def _float_conversions(kind: str) -> None:
    """An integer or truth value as the nearest float; a float that fits without its fraction."""
    how = "sitofp" if kind[0] == "i" else "uitofp"
    for to, python in ((F64, "float({0})"), (F32, "f32_of_int({0})")):
        add(Op(f"{to}_of_{kind}", (kind,), to, python, f"cast({{0}}, dtype_{to})", how))
    if kind != BIT:
        array = f"np.trunc({{0}}).astype(dtype_{kind})"
        add(Op(f"{kind}_of_f64", (F64,), kind, "int({0})", array, cut(kind)))


def _library(symbol: str, b: Any, *args: Node) -> Any:
    return b.pure(symbol, F64, *args)


def _high_product(b: Any, x: Node, y: Node) -> Any:
    product = b.op("wmul", *(b.op("zext", v, kind="i128") for v in (x, y)))
    return b.op("trunc", b.op("lshr", product, b.number(64, product)), kind=I64)


for _kind in (F64, F32):
    _floats(_kind)
for _kind in (BIT, *WIDTHS):
    _float_conversions(_kind)
for _kind in WIDTHS:
    _integers(_kind)
    for _source in (BIT, *WIDTHS):
        if _source != _kind:
            _integer_conversion(_kind, _source)
for _kind in NATIVE:
    _comparisons(_kind)
    _selection(_kind)
_selection(C128)
for _op in (
    Op("re", (C128,), F64, "{0}.real", "{0}.real", lambda b, z: z[0]),
    Op("im", (C128,), F64, "{0}.imag", "{0}.imag", lambda b, z: z[1]),
    Op(
        "complex",
        (F64, F64),
        C128,
        "complex({0}, {1})",
        "complex_array({0}, {1})",
        lambda b, x, y: (x, y),
    ),
    Op("lshr", (I64, I64), I64, "lshr_i64({0}, {1})", "lshr_array({0}, {1})", "lshr"),
    # The upper half of the product of two integers without a sign.
    Op("umulh", (I64, I64), I64, "umulh({0}, {1})", "umulh_array({0}, {1})", _high_product),
    Op(
        "ult",
        (I64, I64),
        BIT,
        f"(({{0}} & {MASK}) < ({{1}} & {MASK}))",
        "({0}.view(dtype_u64) < {1}.view(dtype_u64))",
        "ult",
    ),
    # The number that the bits represent in another kind.
    Op("bits", (F64,), I64, "bits_of({0})", "{0}.view(dtype_i64)", "bitcast"),
    Op("of_bits", (I64,), F64, "float_of({0})", "{0}.view(dtype_f64)", "bitcast"),
    # An integer as the nearest float; a float that is an integer below 2**63 in size.
    Op("float", (I64,), F64, "float({0})", "{0}.astype(dtype_f64)", "sitofp"),
    Op("int", (F64,), I64, "int({0})", "{0}.astype(dtype_i64)", cut(I64)),
    # The nearest integer, ties to even, of a float below 2**63 in size.
    Op(
        "round",
        (F64,),
        I64,
        "round({0})",
        "np.rint({0}).astype(dtype_i64)",
        lambda b, x: cut(I64)(b, b.intrinsic("rint", x)),
    ),
    Op("f64_of_f32", (F32,), F64, "{0}", "cast({0}, dtype_f64)", "fpext"),
    Op(
        "f32_of_f64",
        (F64,),
        F32,
        "unpack32(pack32({0}))[0]",
        "cast({0}, dtype_f32)",
        "fptrunc",
        "f32({0})",
    ),
    # C's remainder, which is exact, of the sign of the dividend.
    Op(
        "fmod",
        (F64, F64),
        F64,
        "fmod({0}, {1})",
        "np.fmod({0}, {1})",
        partial(_library, "rvm_fmod"),
        "remainder({0}, {1})",
    ),
    # Of two truth values both are evaluated, or in Python the second only where it counts.
    Op("and_bit", (BIT, BIT), BIT, "({0} & {1})", "({0} & {1})", "and"),
    Op("or_bit", (BIT, BIT), BIT, "({0} | {1})", "({0} | {1})", "or"),
    Op("both", (BIT, BIT), BIT, "({0} and {1})", "({0} & {1})", "and"),
    Op("either", (BIT, BIT), BIT, "({0} or {1})", "({0} | {1})", "or"),
    Op("not", (BIT,), BIT, "(not {0})", "np.logical_not({0})", lambda b, x: b.invert(x)),
):
    add(_op)
