"""Explanations of missed targets, from profiles and machine code, by the target's key."""

from __future__ import annotations

_MERGE = (
    "the remaining difference is come-froms and indices, some fifteen comparisons per iteration; "
    "the index to advance is chosen without a jump."
)
_GATHER = (
    "the machine code alone takes 0.9 of C's time, and as long as C for the gradient: gathered "
    "indices are compared with the vector's length while additions are waited for. The rest is the "
    "call from Python, which looks up the addresses and lengths of five arrays (nine for the "
    "gradient), and copies those that change, so that it can restore them after an error."
)
_UNCOMPUTED = (
    "the program computes z = Q (x - mean) of each component twice and uncomputes it twice, and as "
    "often again in the gradient, which C need not do; it takes all points at once, so its loops "
    "are long. The gradient's sums over the points are added in order, one addition at a time."
)
_SIGHTS = (
    "sine and cosine, whose bits are specified, take more operations than those of the C library. "
    "In the gradient, adjoints that are added to results begin with an addition to zero, since "
    "0 + x is not x where x is -0, and more numbers are live at once than there are registers."
)
_PAIRS = (
    "adjoints that are added to results begin with an addition to zero, since 0 + x is not x where "
    "x is -0; there are as many divisions and roots as in the hand-written code."
)
NOTES: dict[str, str] = {
    "loop forward": (
        "both run at the latency of one addition; the difference is no larger than between two "
        "runs of the same code."
    ),
    "loop gradient": (
        "both run at the latency of one addition in each direction; the rest is the call."
    ),
    "leapfrog forward": (
        "both are chains of a root and a division; the order of the machine code differs."
    ),
    "leapfrog gradient": _PAIRS,
    "bodies forward": "the ancillas of a pair are checked for NaN where they are freed.",
    "bodies gradient": _PAIRS,
    "matmul forward": (
        "the outer loops are unrolled and jammed as the C compiler does it; the rest is the call "
        "from Python, which copies the matrix that changes, so that it can restore it after an "
        "error."
    ),
    "matmul gradient": ("two iterations of the middle loop are joined; C has two loops inside it."),
    "matvec forward": _GATHER,
    "matvec gradient": _GATHER,
    "sparse_dot forward": _MERGE,
    "sparse_dot gradient": _MERGE,
    "jacobian": (
        "the gradients run each observation forwards and back for each row; the common part of the "
        "two is computed once. C uses one matrix for both rows, the derivative of the rotation, "
        "and needs a third of the instructions. Its fused operations give other bits."
    ),
    "gmm forward": _UNCOMPUTED,
    "gmm gradient": _UNCOMPUTED,
    "bundle forward": _SIGHTS,
    "bundle gradient": _SIGHTS,
    "checks forward": "a short loop with several indices has as many comparisons as additions.",
    "checks gradient": "a short loop with several indices has as many comparisons as additions.",
    "jax": (
        "this is a ratio between two compilers, and differs between machines; hand-written C has "
        "about the same ratio to JAX. From 10⁷ steps on, JAX writes its tape to main memory and "
        "becomes slower still; while the tape fits the processor's cache, it costs little."
    ),
    "memory": "the growth is that of the process: LLVM's own memory, if it has to compile.",
    "call": "arguments are checked and packed in Python.",
    "compiled": (
        "a third of it is imports, half of these LLVM's; transforming and printing take a tenth, "
        "and the rest is LLVM's optimisation and code generation."
    ),
    "cached": (
        "most of it is importing some twenty small modules; the rest is reading the states of "
        "rvm's files and of the processor, to check that the cached code is still valid."
    ),
    "vector": (
        "each time a loop is entered, bounds, ranges and overlaps are checked in Python; this "
        "takes a microsecond or two, as much as NumPy's work on a thousand points."
    ),
    "lanes": "NumPy's cost of a call is shared by the lanes, and there are few.",
}
