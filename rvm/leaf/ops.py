"""The table of leaf operations: the kinds they take and give, and their text for each target.

Floats are IEEE 754 binary64, every operation rounded to nearest.  Integers have 64 bits, in two's
complement; sums, differences and products of `add`, `sub`, `mul` must not leave them, those of
`wadd`, `wsub`, `wmul` wrap.  No text here may be contracted: LLVM forms no fused operation
without a flag that asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass

F64, I64, BIT = "f64", "i64", "bit"
"""The kinds of values: a binary64, a 64-bit integer, a truth value."""
MASK = (1 << 64) - 1
LLVM_TYPES = {F64: "double", I64: "i64", BIT: "i1"}


@dataclass(frozen=True, slots=True)
class Op:
    """A leaf operation.

    `python` is on Python numbers, `numpy` on arrays of float64, int64 and bool; both are closed
    expressions that use each argument once.  `llvm` is an instruction, or several, the results of
    those before being `{a}`, `{b}` …
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    python: str
    numpy: str
    llvm: str


def _float(name: str, sign: str) -> Op:
    text = f"({{0}} {sign} {{1}})"
    return Op(name, (F64, F64), F64, text, text, f"{name} double {{0}}, {{1}}")


def _whole(name: str, sign: str, llvm: str, wraps: bool = False) -> Op:
    text = f"({{0}} {sign} {{1}})"
    python = f"wrap_i64({text[1:-1]})" if wraps else text
    return Op(name, (I64, I64), I64, python, text, f"{llvm} i64 {{0}}, {{1}}")


def _compare(name: str, sign: str, kind: str, llvm: str) -> Op:
    text = f"({{0}} {sign} {{1}})"
    t = LLVM_TYPES[kind]
    return Op(name, (kind, kind), BIT, text, text, f"{llvm} {t} {{0}}, {{1}}")


def _choice(kind: str) -> Op:
    t = LLVM_TYPES[kind]
    return Op(
        f"select_{kind}",
        (BIT, kind, kind),
        kind,
        "({1} if {0} else {2})",
        "np.where({0}, {1}, {2})",
        f"select i1 {{0}}, {t} {{1}}, {t} {{2}}",
    )


def _intrinsic(name: str, python: str, numpy: str, llvm: str) -> Op:
    return Op(name, (F64,), F64, python, numpy, f"call double @llvm.{llvm}.f64(double {{0}})")


OPS = {
    op.name: op
    for op in (
        _float("fadd", "+"),
        _float("fsub", "-"),
        _float("fmul", "*"),
        _float("fdiv", "/"),
        Op("fneg", (F64,), F64, "(-{0})", "(-{0})", "fneg double {0}"),
        _intrinsic("fabs", "abs({0})", "np.abs({0})", "fabs"),
        _intrinsic("sqrt", "sqrt({0})", "np.sqrt({0})", "sqrt"),
        _compare("flt", "<", F64, "fcmp olt"),
        _compare("fle", "<=", F64, "fcmp ole"),
        _compare("feq", "==", F64, "fcmp oeq"),
        _compare("fne", "!=", F64, "fcmp une"),
        _whole("add", "+", "add nsw"),
        _whole("sub", "-", "sub nsw"),
        _whole("mul", "*", "mul nsw"),
        _whole("wadd", "+", "add", wraps=True),
        _whole("wsub", "-", "sub", wraps=True),
        _whole("wmul", "*", "mul", wraps=True),
        _whole("and", "&", "and"),
        _whole("or", "|", "or"),
        _whole("xor", "^", "xor"),
        # The counts of shifts lie within 0 and 63.
        _whole("shl", "<<", "shl", wraps=True),
        _whole("ashr", ">>", "ashr"),
        Op(
            "lshr",
            (I64, I64),
            I64,
            "lshr_i64({0}, {1})",
            "lshr_array({0}, {1})",
            "lshr i64 {0}, {1}",
        ),
        # The upper half of the product of two unsigned numbers.
        Op(
            "umulh",
            (I64, I64),
            I64,
            "umulh({0}, {1})",
            "umulh_array({0}, {1})",
            "zext i64 {0} to i128; zext i64 {1} to i128; mul i128 {a}, {b}; lshr i128 {c}, 64;"
            " trunc i128 {d} to i64",
        ),
        _compare("eq", "==", I64, "icmp eq"),
        _compare("ne", "!=", I64, "icmp ne"),
        _compare("lt", "<", I64, "icmp slt"),
        _compare("le", "<=", I64, "icmp sle"),
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
        Op("both", (BIT, BIT), BIT, "({0} and {1})", "({0} & {1})", "and i1 {0}, {1}"),
        Op("either", (BIT, BIT), BIT, "({0} or {1})", "({0} | {1})", "or i1 {0}, {1}"),
        Op("not", (BIT,), BIT, "(not {0})", "(~{0})", "xor i1 {0}, true"),
        _choice(F64),
        _choice(I64),
        _choice(BIT),
    )
}
"""The leaf operations by name; beside them there are constants, arguments and tables."""
