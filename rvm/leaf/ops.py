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
from typing import Any

F64, F32, BIT = "f64", "f32", "bit"
I32, I64, U8, U32, U64 = "i32", "i64", "u8", "u32", "u64"
"""The kinds of values: floats, a truth value, integers of a width, signed or not."""
MASK = (1 << 64) - 1
WIDTHS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
"""The integers' bits."""
LLVM_TYPES = {F64: "double", F32: "float", BIT: "i1", **{k: f"i{n}" for k, n in WIDTHS.items()}}


def signed(kind: str) -> bool:
    """Whether an integer kind has a sign."""
    return kind[0] == "i"


def limits(kind: str) -> tuple[int, int]:
    """The least and the greatest number of an integer kind."""
    bits = WIDTHS[kind]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed(kind) else (0, (1 << bits) - 1)


@dataclass(frozen=True, slots=True)
class Op:
    """A leaf operation.

    `python` is on Python numbers, `numpy` on arrays of the storage types; both are closed
    expressions that use each argument once, in order; `{t}` and `{u}` are names for `:=`.  `python`
    may raise ArithmeticError or ValueError where `total`, if there is one, does not.  `llvm` is an
    instruction, or several, the results of those before being `{a}`, `{b}` …; or it is called with
    an emitter and the operands.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    python: str
    numpy: str
    llvm: str | Callable[..., str]
    total: str = ""


OPS: dict[str, Op] = {}
"""The leaf operations by name; beside them there are constants, arguments, checks and tables."""


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


_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_FLOAT_TESTS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


def _comparisons(kind: str) -> None:
    floats, t = kind in (F64, F32), LLVM_TYPES[kind]
    for name, sign in _COMPARISONS.items():
        if kind == BIT and name not in ("eq", "ne"):
            continue
        sort = "" if name in ("eq", "ne") else "s" if kind[0] == "i" else "u"
        test = f"fcmp {_FLOAT_TESTS[name]}" if floats else f"icmp {sort}{name}"
        text = f"({{0}} {sign} {{1}})"
        key = named("f" * floats + name, kind)
        add(Op(key, (kind, kind), BIT, text, text, f"{test} {t} {{0}}, {{1}}"))


def _selection(kind: str) -> None:
    t = LLVM_TYPES[kind]
    python, llvm = "({1} if {0} else {2})", f"select i1 {{0}}, {t} {{1}}, {t} {{2}}"
    numpy = "np.where({0}, {1}, {2})"
    add(Op(f"select_{kind}", (BIT, kind, kind), kind, python, numpy, llvm))


def _floats(kind: str) -> None:
    single, t = kind == F32, LLVM_TYPES[kind]

    def enter(name: str, python: str, numpy: str, llvm: str, total: str = "") -> None:
        arity = 2 if "{1}" in python else 1
        if single and name not in ("fneg", "fabs", "floor"):
            python, total = f"unpack32(pack32({python}))[0]", f"f32({total or python})"
        add(Op(named(name, kind), (kind,) * arity, kind, python, numpy, llvm, total))

    for name, sign in (("fadd", "+"), ("fsub", "-"), ("fmul", "*"), ("fdiv", "/")):
        text, total = f"({{0}} {sign} {{1}})", "divide({0}, {1})" if sign == "/" else ""
        enter(name, text, text, f"{name} {t} {{0}}, {{1}}", total)
    enter("fneg", "(-{0})", "(-{0})", f"fneg {t} {{0}}")
    floor = "({u} if ({u} := ({t} := {0}) // 1.0) == {u} else {t})"
    for name, function, python, total in (
        ("fabs", "abs", "abs({0})", ""),
        ("sqrt", "sqrt", "sqrt({0})", "root({0})"),
        ("floor", "floor", floor, ""),
    ):
        llvm = f"call {t} @llvm.{name}.{kind}({t} {{0}})"
        enter(name, python, f"np.{function}({{0}})", llvm, total)


def _integers(kind: str) -> None:
    t, bits, (low, high) = LLVM_TYPES[kind], WIDTHS[kind], limits(kind)

    def enter(name: str, python: str, numpy: str, llvm: str | Callable[..., str]) -> None:
        arity = 2 if "{1}" in python else 1
        add(Op(named(name, kind), (kind,) * arity, kind, python, numpy, llvm))

    for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
        text, two = f"{{0}} {sign} {{1}}", f"{t} {{0}}, {{1}}"
        enter(name, f"({text})", f"({text})", f"{name} nsw {two}")
        wraps = wrapped(text, kind)
        if (name, kind) == ("add", U64):
            # Sums of 64 bits are two digits of Python's, which a mask would have to look at.
            wraps = f"({{t}} if ({{t}} := {text}) <= {high} else {{t}} - {high + 1})"
        enter(f"w{name}", wraps, f"({text})", f"{name} {two}")
    for name, sign in (("and", "&"), ("or", "|"), ("xor", "^")):
        text = f"({{0}} {sign} {{1}})"
        enter(name, text, text, f"{name} {t} {{0}}, {{1}}")
    enter("wneg", wrapped("-{0}", kind), "(-{0})", f"sub {t} 0, {{0}}")
    inverted = "(~{0})" if low else f"({{0}} ^ {high})"
    enter("inv", inverted, "(~{0})", f"xor {t} -1, {{0}}")
    size = f"call {t} @llvm.abs.{t}({t} {{0}}, i1 false)"
    enter("wabs", wrapped("abs({0})", kind), "np.abs({0})", size)
    # Divisors are not 0; quotients are rounded to minus infinity.
    quotient = "({0} // {1})"
    if low:
        quotient = f"({{t}} if ({{t}} := {{0}} // {{1}}) <= {high} else {low})"
    division = divisions(kind)
    enter("floordiv", quotient, "np.floor_divide({0}, {1})", division[0])
    enter("mod", "({0} % {1})", "np.remainder({0}, {1})", division[1])
    # The counts of shifts and rotations lie within 0 and the width less 1.
    enter("shl", wrapped("{0} << {1}", kind), "({0} << {1})", f"shl {t} {{0}}, {{1}}")
    shift = "ashr" if low else "lshr"
    enter(shift, "({0} >> {1})", "({0} >> {1})", f"{shift} {t} {{0}}, {{1}}")
    unsigned = f"({{0}} & {(1 << bits) - 1})" if low else "{0}"
    for name, there, back in (("l", "<<", ">>"), ("r", ">>", "<<")):
        turned = f"(({{t}} := {unsigned}) {there} ({{u}} := {{1}}) | {{t}} {back} {bits} - {{u}})"
        funnel = f"call {t} @llvm.fsh{name}.{t}({t} {{0}}, {t} {{0}}, {t} {{1}})"
        enter(f"rot{name}", wrapped(turned, kind), f"rot{name}_array({{0}}, {{1}})", funnel)


def whole(operand: str) -> int | None:
    """The number of an operand that is an integer constant, as LLVM writes it; None of others."""
    return int(operand) if operand.lstrip("-").isdigit() else None


def divisions(kind: str) -> tuple[Callable[..., str], Callable[..., str]]:
    """What writes a quotient rounded to minus infinity, and its rest, as LLVM code.

    By a constant power of 2 they are a shift and a mask; the least number // -1 wraps.
    """
    t = LLVM_TYPES[kind]

    def power(b: str) -> int | None:
        n = whole(b)
        return n.bit_length() - 1 if n is not None and n > 0 and not n & (n - 1) else None

    def unsigned(name: str) -> Callable[..., str]:
        return lambda e, a, b: str(e.op(f"{name} {t} {a}, {b}"))

    if not signed(kind):
        return unsigned("udiv"), unsigned("urem")

    def parts(e: Any, a: str, b: str) -> tuple[str, str, str, str]:
        minus, divisor = "false", b
        if whole(b) in (None, -1):
            # -1 is taken apart: the processor would trap on the least number.
            minus = e.op(f"icmp eq {t} {b}, -1")
            divisor = e.op(f"select i1 {minus}, {t} 1, {t} {b}")
        rest = e.op(f"srem {t} {a}, {divisor}")
        unlike = e.op(f"icmp slt {t} {e.op(f'xor {t} {rest}, {divisor}')}, 0")
        left = e.op(f"icmp ne {t} {rest}, 0")
        return divisor, rest, minus, e.op(f"and i1 {left}, {unlike}")

    def quotient(e: Any, a: str, b: str) -> str:
        if (k := power(b)) is not None:
            return str(e.op(f"ashr {t} {a}, {k}"))
        divisor, _, minus, down = parts(e, a, b)
        cut = e.op(f"sdiv {t} {a}, {divisor}")
        floor = e.op(f"add {t} {cut}, {e.op(f'sext i1 {down} to {t}')}")
        return str(e.op(f"select i1 {minus}, {t} {e.op(f'sub {t} 0, {a}')}, {t} {floor}"))

    def modulo(e: Any, a: str, b: str) -> str:
        if (k := power(b)) is not None:
            return str(e.op(f"and {t} {a}, {(1 << k) - 1}"))
        divisor, rest, _, down = parts(e, a, b)
        return str(e.op(f"add {t} {rest}, {e.op(f'select i1 {down}, {t} {divisor}, {t} 0')}"))

    return quotient, modulo


def _integer_conversion(to: str, source: str) -> None:
    """An integer as one of another kind: wraps; of a truth value 0 or 1."""
    a, b = LLVM_TYPES[source], LLVM_TYPES[to]
    low, high = limits(to)
    inner = (0, 1) if source == BIT else limits(source)
    python = "int({0})" if source == BIT else "{0}"
    if not (low <= inner[0] and inner[1] <= high):
        python = wrapped("{0}", to)
    narrow, wider = WIDTHS[to], WIDTHS.get(source, 1)
    how = "trunc" if narrow < wider else "sext" if source[0] == "i" else "zext"
    llvm: str | Callable[..., str] = f"{how} {a} {{0}} to {b}" if a != b else lambda e, x: x
    numpy = f"cast({{0}}, dtype_{to})"
    add(Op(f"{to}_of_{source}", (source,), to, python, numpy, llvm))
    if source != BIT:
        # Of a number that fits, which Python has not to look at.
        add(Op(f"{to}_from_{source}", (source,), to, "{0}", numpy, llvm))


def _float_conversions(kind: str) -> None:
    """An integer or truth value as the nearest float; a float that fits without its fraction."""
    t = LLVM_TYPES[kind]
    how = "sitofp" if kind[0] == "i" else "uitofp"
    for to, python in ((F64, "float({0})"), (F32, "f32_of_int({0})")):
        llvm = f"{how} {t} {{0}} to {LLVM_TYPES[to]}"
        add(Op(f"{to}_of_{kind}", (kind,), to, python, f"cast({{0}}, dtype_{to})", llvm))
    if kind != BIT:
        # By way of a type that processors convert to.
        way = "fptoui double {0} to i64" if kind == U64 else "fptosi double {0} to i64"
        cut = f"np.trunc({{0}}).astype(dtype_{kind})"
        cast: str | Callable[..., str] = way
        if WIDTHS[kind] < 64:
            way = way.replace("i64", "i32") if kind == I32 else way

            def cast(e: Any, x: str, way: str = way, kind: str = kind) -> str:
                wide = way.split()[-1]
                found = str(e.op(f"freeze {wide} {e.op(way.format(x))}"))
                return found if wide == t else str(e.op(f"trunc {wide} {found} to {t}"))

        add(Op(f"{kind}_of_f64", (F64,), kind, "int({0})", cut, cast))


for _kind in (F64, F32):
    _floats(_kind)
for _kind in (BIT, *WIDTHS):
    _float_conversions(_kind)
for _kind in WIDTHS:
    _integers(_kind)
    for _source in (BIT, *WIDTHS):
        if _source != _kind:
            _integer_conversion(_kind, _source)
for _kind in LLVM_TYPES:
    _comparisons(_kind)
    _selection(_kind)
for _op in (
    Op(
        "lshr",
        (I64, I64),
        I64,
        "lshr_i64({0}, {1})",
        "lshr_array({0}, {1})",
        "lshr i64 {0}, {1}",
    ),
    # The upper half of the product of two integers without a sign.
    Op(
        "umulh",
        (I64, I64),
        I64,
        "umulh({0}, {1})",
        "umulh_array({0}, {1})",
        "zext i64 {0} to i128; zext i64 {1} to i128; mul i128 {a}, {b}; lshr i128 {c}, 64;"
        " trunc i128 {d} to i64",
    ),
    Op(
        "ult",
        (I64, I64),
        BIT,
        f"(({{0}} & {MASK}) < ({{1}} & {MASK}))",
        "({0}.view(dtype_u64) < {1}.view(dtype_u64))",
        "icmp ult i64 {0}, {1}",
    ),
    # The number that the bits of another kind stand for.
    Op("bits", (F64,), I64, "bits_of({0})", "{0}.view(dtype_i64)", "bitcast double {0} to i64"),
    Op(
        "of_bits",
        (I64,),
        F64,
        "float_of({0})",
        "{0}.view(dtype_f64)",
        "bitcast i64 {0} to double",
    ),
    # An integer as the nearest float; a float that is an integer below 2**63 in size.
    Op("float", (I64,), F64, "float({0})", "{0}.astype(dtype_f64)", "sitofp i64 {0} to double"),
    Op("int", (F64,), I64, "int({0})", "{0}.astype(dtype_i64)", "fptosi double {0} to i64"),
    # The nearest integer, ties to even, of a float below 2**63 in size.
    Op(
        "round",
        (F64,),
        I64,
        "round({0})",
        "np.rint({0}).astype(dtype_i64)",
        "call double @llvm.rint.f64(double {0}); fptosi double {a} to i64",
    ),
    Op("f64_of_f32", (F32,), F64, "{0}", "cast({0}, dtype_f64)", "fpext float {0} to double"),
    Op(
        "f32_of_f64",
        (F64,),
        F32,
        "unpack32(pack32({0}))[0]",
        "cast({0}, dtype_f32)",
        "fptrunc double {0} to float",
        "f32({0})",
    ),
    # C's remainder, which is exact, of the sign of the dividend.
    Op(
        "fmod",
        (F64, F64),
        F64,
        "fmod({0}, {1})",
        "np.fmod({0}, {1})",
        lambda e, a, b: str(e.pure("rvm_fmod", "double", ("double", a), ("double", b))),
        "remainder({0}, {1})",
    ),
    # Of two truth values both are evaluated, or in Python the second only where it counts.
    Op("and_bit", (BIT, BIT), BIT, "({0} & {1})", "({0} & {1})", "and i1 {0}, {1}"),
    Op("or_bit", (BIT, BIT), BIT, "({0} | {1})", "({0} | {1})", "or i1 {0}, {1}"),
    Op("both", (BIT, BIT), BIT, "({0} and {1})", "({0} & {1})", "and i1 {0}, {1}"),
    Op("either", (BIT, BIT), BIT, "({0} or {1})", "({0} | {1})", "or i1 {0}, {1}"),
    Op("not", (BIT,), BIT, "(not {0})", "np.logical_not({0})", "xor i1 {0}, true"),
):
    add(_op)
