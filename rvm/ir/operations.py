"""The table of pure operations on one kind of numbers, with LLVM's names for them.

There are also casts, `select`, and intrinsic functions that targets know by name.  Sums,
differences and products of `add`, `sub`, `mul` must not overflow; those of `wadd`, `wsub`, `wmul`
wrap.  Comparisons of floats whose names begin with fu are also true for a NaN.
"""

from __future__ import annotations

ALIKE = "sdiv udiv srem urem and or xor shl ashr lshr fadd fsub fmul fdiv fneg freeze"
"""Operations with the same name in LLVM."""
OTHERS = """
add: add nsw, sub: sub nsw, mul: mul nsw, wadd: add, wsub: sub, wmul: mul, udiv_exact: udiv exact,
eq: icmp eq, ne: icmp ne, lt: icmp slt, le: icmp sle, gt: icmp sgt, ge: icmp sge,
ult: icmp ult, ule: icmp ule, ugt: icmp ugt, uge: icmp uge,
feq: fcmp oeq, fne: fcmp une, flt: fcmp olt, fle: fcmp ole, fgt: fcmp ogt, fge: fcmp oge,
fone: fcmp one, fueq: fcmp ueq, fult: fcmp ult, fule: fcmp ule, fugt: fcmp ugt, fuge: fcmp uge,
funo: fcmp uno, ford: fcmp ord
"""
MNEMONICS = {name: name for name in ALIKE.split()}
MNEMONICS |= dict(other.strip().split(": ") for other in OTHERS.split(","))
"""LLVM's mnemonic by operation; those of leaf operations are among them."""
COMPARISONS = frozenset(name for name, mnemonic in MNEMONICS.items() if "cmp" in mnemonic)
"""Operations that give a truth value."""
CASTS = frozenset(["sext", "zext", "trunc", "sitofp", "uitofp", "fptosi", "fptoui"])
CASTS |= {"fpext", "fptrunc", "bitcast", "ptrtoint"}
