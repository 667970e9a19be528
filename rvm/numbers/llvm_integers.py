"""LLVM code of integers and bools: two's complement, wrapping, quotients rounded down.

A fault of the reference (a divisor 0, a negative count) gives the instruction up; operands are
replaced there, so that what is computed nevertheless is no trap and no undefined value.  Where a
divisor, count or exponent is a constant, nothing is tested, and less is computed.
"""

from __future__ import annotations

from rvm.numbers.llvm import Emitter, Llvm, chosen, instruction, raised, same, whole

SIGNED = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
"""LLVM's names of the comparisons of signed integers."""
UNSIGNED = {s: name.replace("s", "u", 1) if name[0] == "s" else name for s, name in SIGNED.items()}
"""And of unsigned ones."""


MOST_UNROLLED = 64
"""The greatest constant exponent whose products are written out."""


def integer_comparisons(kind: str, signed: bool) -> dict[str, Llvm]:
    """The six comparisons on a type as `i64`."""
    return {s: instruction(f"icmp {t} {kind}") for s, t in (SIGNED if signed else UNSIGNED).items()}


def bool_llvm() -> dict[str, Llvm]:
    """The functions of bools.  `and` and `or` here evaluate both arguments."""
    negated = instruction("xor i1 true,")
    return {
        "==": instruction("icmp eq i1"),
        "!=": instruction("icmp ne i1"),
        **{f: instruction("and i1") for f in ("&", "and")},
        **{f: instruction("or i1") for f in ("|", "or")},
        "^": instruction("xor i1"),
        "~": negated,
        "not": negated,
    }


def extremes(kind: str, compare: dict[str, Llvm]) -> dict[str, Llvm]:
    """`min` and `max` by comparisons: the first of equals."""

    def by(test: Llvm) -> Llvm:
        return lambda e, a, b: chosen(e, test(e, a, b), kind, a, b)

    return {"min": by(compare["<="]), "max": by(compare[">="])}


def integer_llvm(bits: int, signed: bool) -> dict[str, Llvm]:
    """The functions of an integer type.

    The counts of shifts and rotations are operands of type i64; those of shifts are 64 for all
    that are greater.
    """
    kind = f"i{bits}"
    compare = integer_comparisons(kind, signed)
    division = signed_division(kind) if signed else _unsigned_division(kind)
    return {
        **compare,
        **division,
        **extremes(kind, compare),
        "+": instruction(f"add {kind}"),
        "-": instruction(f"sub {kind}"),
        "*": instruction(f"mul {kind}"),
        "**": _power(bits, signed),
        "neg": instruction(f"sub {kind} 0,"),
        "abs": magnitude(kind) if signed else same,
        "sign": sign(kind, "1", "-1") if signed else _unsigned_sign(kind),
        "square": lambda e, x: e.op(f"mul {kind} {x}, {x}"),
        "relu": relu(kind) if signed else same,
        "&": instruction(f"and {kind}"),
        "|": instruction(f"or {kind}"),
        "^": instruction(f"xor {kind}"),
        "~": instruction(f"xor {kind} -1,"),
        "<<": _shift("shl", bits, "0"),
        ">>": _shift("ashr" if signed else "lshr", bits, "" if signed else "0"),
        "rotl": _rotation("fshl", bits),
        "rotr": _rotation("fshr", bits),
    }


def count_of(bits: int, signed: bool, saturated: bool) -> Llvm:
    """A bit count of an integer type as an i64; saturated, an unsigned one is at most 64."""

    def write(e: Emitter, k: str) -> str:
        constant = whole(k)
        if constant is not None:
            known = constant if signed else constant % (1 << bits)
            return str(min(known, 64) if saturated else known % 64)
        if bits < 64:
            return e.op(f"{'sext' if signed else 'zext'} i{bits} {k} to i64")
        if signed or not saturated:
            return k
        return e.op(f"call i64 @llvm.umin.i64(i64 {k}, i64 64)")

    return write


def magnitude(kind: str) -> Llvm:
    """The absolute value; that of the least number is itself."""
    return lambda e, x: e.op(f"call {kind} @llvm.abs.{kind}({kind} {x}, i1 false)")


def relu(kind: str) -> Llvm:
    """x where it is positive, else 0."""
    return lambda e, x: e.op(f"call {kind} @llvm.smax.{kind}({kind} {x}, {kind} 0)")


def sign(kind: str, one: str, minus_one: str) -> Llvm:
    """Of a signed number: one, 0 or minus one."""

    def write(e: Emitter, x: str) -> str:
        below = chosen(e, e.op(f"icmp slt {kind} {x}, 0"), kind, minus_one, "0")
        return chosen(e, e.op(f"icmp sgt {kind} {x}, 0"), kind, one, below)

    return write


def _unsigned_sign(kind: str) -> Llvm:
    return lambda e, x: e.op(f"zext i1 {e.op(f'icmp ne {kind} {x}, 0')} to {kind}")


def _unsigned_division(kind: str) -> dict[str, Llvm]:
    def by(name: str) -> Llvm:
        def write(e: Emitter, a: str, b: str) -> str:
            if whole(b):
                return e.op(f"{name} {kind} {a}, {b}")
            zero = e.op(f"icmp eq {kind} {b}, 0")
            e.trouble(zero)
            return e.op(f"{name} {kind} {a}, {chosen(e, zero, kind, '1', b)}")

        return write

    return {"//": by("udiv"), "%": by("urem")}


def signed_division(kind: str) -> dict[str, Llvm]:
    """`//` and `%`, rounded to minus infinity; the least number // -1 wraps."""

    def parts(e: Emitter, a: str, b: str) -> tuple[str, str, str, str]:
        minus = "false"
        divisor = b
        if whole(b) in (None, 0, -1):
            zero = e.op(f"icmp eq {kind} {b}, 0")
            e.trouble(zero)
            # -1 is taken apart: the processor would trap on the least number.
            minus = e.op(f"icmp eq {kind} {b}, -1")
            divisor = chosen(e, e.op(f"or i1 {zero}, {minus}"), kind, "1", b)
        rest = e.op(f"srem {kind} {a}, {divisor}")
        unlike = e.op(f"icmp slt {kind} {e.op(f'xor {kind} {rest}, {divisor}')}, 0")
        left = e.op(f"icmp ne {kind} {rest}, 0")
        return divisor, rest, minus, e.op(f"and i1 {left}, {unlike}")

    def quotient(e: Emitter, a: str, b: str) -> str:
        if (power := _power_of_two(b)) is not None:
            return e.op(f"ashr {kind} {a}, {power}")
        divisor, _, minus, down = parts(e, a, b)
        cut = e.op(f"sdiv {kind} {a}, {divisor}")
        floor = e.op(f"add {kind} {cut}, {e.op(f'sext i1 {down} to {kind}')}")
        return chosen(e, minus, kind, e.op(f"sub {kind} 0, {a}"), floor)

    def modulo(e: Emitter, a: str, b: str) -> str:
        if (power := _power_of_two(b)) is not None:
            return e.op(f"and {kind} {a}, {(1 << power) - 1}")
        divisor, rest, _, down = parts(e, a, b)
        return e.op(f"add {kind} {rest}, {chosen(e, down, kind, divisor, '0')}")

    return {"//": quotient, "%": modulo}


def _power_of_two(operand: str) -> int | None:
    """The k of a constant 2**k; None of other operands."""
    n = whole(operand)
    return n.bit_length() - 1 if n is not None and n > 0 and not n & (n - 1) else None


def _power(bits: int, signed: bool) -> Llvm:
    kind = f"i{bits}"

    def write(e: Emitter, x: str, n: str) -> str:
        constant = whole(n)
        if constant is not None and 0 < constant <= MOST_UNROLLED:
            return str(raised(x, constant, lambda a, b: e.op(f"mul {kind} {a}, {b}")))
        if signed:
            # To a negative power, 1 and -1 are what they are to a power that is as odd.
            negative = e.op(f"icmp slt {kind} {n}, 0")
            near = e.op(f"icmp ult {kind} {e.op(f'add {kind} {x}, 1')}, 3")
            unit = e.op(f"and i1 {near}, {e.op(f'icmp ne {kind} {x}, 0')}")
            e.trouble(e.op(f"and i1 {negative}, {e.op(f'xor i1 {unit}, true')}"))
            n = chosen(e, negative, kind, e.op(f"and {kind} {n}, 1"), n)
        if bits < 64:
            # What wraps at 64 bits and is cut wraps at fewer.
            x, n = (e.op(f"zext {kind} {v} to i64") for v in (x, n))
        result = e.helper("rvm_integer_power", "i64", ("i64", x), ("i64", n))
        return result if bits == 64 else e.op(f"trunc i64 {result} to {kind}")

    return write


def _shift(name: str, bits: int, beyond: str) -> Llvm:
    """A shift; by the width or more it leaves `beyond` ("": the sign in every bit)."""
    kind = f"i{bits}"

    def write(e: Emitter, x: str, k: str) -> str:
        constant = whole(k)
        if constant is not None and 0 <= constant < bits:
            return e.op(f"{name} {kind} {x}, {constant}")
        e.trouble(e.op(f"icmp slt i64 {k}, 0"))
        far = e.op(f"icmp ugt i64 {k}, {bits - 1}")
        count = chosen(e, far, "i64", str(bits - 1), k)
        if bits < 64:
            count = e.op(f"trunc i64 {count} to {kind}")
        shifted = e.op(f"{name} {kind} {x}, {count}")
        return chosen(e, far, kind, beyond, shifted) if beyond else shifted

    return write


def _rotation(funnel: str, bits: int) -> Llvm:
    kind = f"i{bits}"

    def write(e: Emitter, x: str, k: str) -> str:
        # The funnel shift takes its count modulo the width, which is a power of 2.
        constant = whole(k)
        if constant is not None:
            count = str(constant % bits)
        else:
            count = k if bits == 64 else e.op(f"trunc i64 {k} to {kind}")
        return e.op(f"call {kind} @llvm.{funnel}.{kind}({kind} {x}, {kind} {x}, {kind} {count})")

    return write
