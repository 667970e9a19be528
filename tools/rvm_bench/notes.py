"""What profiles and machine code show where a target is missed, by the target's key."""

from __future__ import annotations

_MERGE = (
    "what is left are come-froms and indices, some fifteen comparisons an "
    "iteration; which index is stepped is chosen without a jump."
)
_GATHER = (
    "the machine code alone takes 0.9 of C's time, and as long as C for the gradient: gathered "
    "indices are compared with the vector's length while additions are waited for. The rest is the "
    "call from Python. Five arrays are asked for their places and lengths, nine for the gradient, "
    "and those that change are copied, so that an error could put them back."
)
_UNCOMPUTED = (
    "the program computes z = Q (x - mean) of each component twice and uncomputes it twice, and as "
    "often again in the gradient, which C has no need to; it takes all points at once, so that "
    "its loops are long. The gradient's sums over the points are taken in their order, an addition "
    "at a time."
)
_SIGHTS = (
    "sine and cosine, whose bits are stated, take more operations than the C library's. In the "
    "gradient adjoints that come into results begin with an addition to zero, since 0 + x is not x "
    "where x is -0, and more numbers are alive at once than there are registers."
)
_PAIRS = (
    "adjoints that come into results begin with an addition to zero, since 0 + x is not x where x "
    "is -0; divisions and roots are as many as by hand."
)
NOTES: dict[str, str] = {
    "loop forward": (
        "both run at the latency of one addition; what differs is within what two runs differ by."
    ),
    "loop gradient": ("both run at the latency of one addition, each way; the rest is the call's."),
    "leapfrog forward": (
        "both are chains of a root and a division; the order of the machine code differs."
    ),
    "leapfrog gradient": (
        "adjoints that come into results begin with an addition to zero, since 0 + x is not x "
        "where x is -0; divisions and roots are as many as by hand."
    ),
    "bodies forward": "the ancillas of a pair are checked for NaN where they are freed.",
    "bodies gradient": _PAIRS,
    "matmul forward": (
        "the outer loops are unrolled and jammed as the C compiler does it; what is left is the "
        "call from Python, which copies the matrix that changes, so that an error can put it back."
    ),
    "matmul gradient": ("two iterations of the middle loop are joined; C has two loops inside it."),
    "matvec forward": _GATHER,
    "matvec gradient": _GATHER,
    "sparse_dot forward": _MERGE,
    "sparse_dot gradient": _MERGE,
    "jacobian": (
        "the gradients run an observation forwards and back for each row; what the two have in "
        "common is computed once. C has one matrix for both rows, the derivative of the rotation, "
        "and needs a third of the instructions; and its fused operations have other bits."
    ),
    "gmm forward": _UNCOMPUTED,
    "gmm gradient": _UNCOMPUTED,
    "bundle forward": _SIGHTS,
    "bundle gradient": _SIGHTS,
    "checks forward": "a short loop with several indices has as many comparisons as additions.",
    "checks gradient": "a short loop with several indices has as many comparisons as additions.",
    "jax": (
        "this is a factor between two compilers, and differs by machine: the hand-written C is "
        "about as far from it. From 10⁷ steps on JAX writes its tape to memory, and is slower "
        "still; where the tape fits the processor's cache it costs little."
    ),
    "memory": "what grows is the process: LLVM's own memory, if it has to compile.",
    "call": "arguments are checked and packed in Python.",
    "compiled": (
        "a third of it is imports, half of these LLVM's; transforming and printing take a tenth, "
        "and the rest is LLVM's optimisation and code generation."
    ),
    "cached": (
        "most of it is importing some twenty small modules; the rest is reading the states of "
        "rvm's files and of the processor, which say whether what is kept is still right."
    ),
    "vector": (
        "each time a loop is entered, bounds, ranges and overlaps are checked in Python: a "
        "microsecond or two, which at a thousand points is as much as NumPy's work."
    ),
    "lanes": "NumPy's cost of a call is shared by the lanes, and there are few.",
}
