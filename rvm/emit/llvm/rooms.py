"""Memory for local arrays: large blocks are kept for the next array of their size.

Memory from the operating system is cleared page by page when it is first written, which takes
longer than most computations on it.  So there is a row of pointers to released blocks, shared by
all threads of a process; the size of each is stored at its beginning, and whether the rest of it
holds zeros.  Pointers are taken and stored by atomic exchanges, so no thread waits.
"""

from __future__ import annotations

import sys

from rvm.emit.llvm.helpers import NULL, VOID, Body, helper
from rvm.ir.context import CLEAN
from rvm.ir.node import BIT, I32, I64, PTR, Node, constant

POOL = "rvm_pool"
"""The symbol of the row."""
PLACES = 8
"""How many pointers it has."""
LARGE, LARGEST = 1 << 18, 1 << 24
"""The bytes of what is kept, so that all of it is no more than 128 MiB."""
HUGE, HUGE_PAGES = 1 << 22, 14
"""The size from which Linux is asked for large pages, and the number of that advice."""
PAGE = 1 << 12
ROW = constant(f"@{POOL}", PTR)


@helper(I64, gives=PTR, before="internal noalias", behind="noinline")
def rvm_room(b: Body, size: Node) -> Node:
    """Memory of a size, with anything in it; null if there is none."""

    def large() -> Node:
        kept = b.helper("rvm_large", PTR, size)
        none = b.op("eq", kept, NULL)
        return b.either(
            none, lambda: _new(b, size, b.helper("malloc", PTR, size)), lambda: kept, PTR
        )

    def small() -> Node:
        return b.helper("malloc", PTR, b.intrinsic("umax", size, 1))

    return b.either(b.op("uge", size, LARGE), large, small, PTR)


@helper(I64, gives=PTR, before="internal noalias", behind="noinline")
def rvm_zeros(b: Body, size: Node) -> Node:
    """Memory of a size, with zeros in it; null if there is none."""

    def large() -> Node:
        kept = b.helper("rvm_large", PTR, size)

        def cleared() -> Node:
            zeros = constant(0, "i8"), size, b.truth(False)
            b.when(
                b.op("uge", b.peek(I64, kept), CLEAN),
                lambda: b.poke(b.i64(0), kept),
                lambda: b.helper("llvm.memset.p0.i64", VOID, kept, *zeros),
            )
            return kept

        def new() -> Node:
            return _new(b, size, b.helper("calloc", PTR, size, b.i64(1)))

        return b.either(b.op("eq", kept, NULL), new, cleared, PTR)

    def small() -> Node:
        return b.helper("calloc", PTR, b.intrinsic("umax", size, 1), b.i64(1))

    return b.either(b.op("uge", size, LARGE), large, small, PTR)


def _new(b: Body, size: Node, made: Node) -> Node:
    """A new block, in large pages if it is large."""
    if sys.platform == "linux":
        first = b.op("wsub", b.i64(0), b.op("ptrtoint", made, kind=I64))
        pages = b.op("moved", made, b.op("and", first, PAGE - 1), kind=PTR)
        advice = pages, b.op("wsub", size, PAGE), constant(HUGE_PAGES, I32)
        b.when(b.op("uge", size, HUGE), lambda: b.helper("madvise", I32, *advice))
    return made


@helper(PTR, I64, I64, behind="noinline")
def rvm_release(b: Body, p: Node, size: Node, clean: Node) -> Node:
    """Give memory up, of which one says how large it is, and by `CLEAN` or 0 whether it is zero."""
    kept = b.op("ule", b.op("wsub", size, LARGE), LARGEST - LARGE)
    put_by = b.op("or", size, clean)
    b.when(kept, lambda: b.helper("rvm_put_by", VOID, p, put_by), lambda: b.helper("free", VOID, p))
    return b.i64(0)


@helper(I64, gives=PTR, before="internal noalias", behind="cold noinline")
def rvm_large(b: Body, size: Node) -> Node:
    """A large block that is kept; null if there is none of this size."""
    k, found = b.begun(b.i64(0)), b.begun(NULL)

    def look() -> None:
        at = b.word(ROW, b.get(k))
        held = b.op("taken", at, NULL)

        def fits() -> None:
            b.when(
                b.op("eq", b.op("and", b.peek(I64, held), CLEAN - 1), size),
                lambda: b.set(found, held),
                lambda: b.helper("free", VOID, b.op("taken", at, held)),
            )

        b.when(b.op("ne", held, NULL), fits)
        b.add_to(k, b.i64(1))

    b.loop(lambda: _goes_on(b, b.op("eq", b.get(found), NULL), b.get(k)), look)

    return b.get(found)


@helper(PTR, I64, gives=VOID, behind="cold noinline")
def rvm_put_by(b: Body, p: Node, size: Node) -> None:
    """Keep a block of a size, or of zeros, where another goes if there is no place."""
    b.poke(size, p)
    k, done = b.begun(b.i64(0)), b.begun(b.truth(False))

    def offer() -> None:
        pair = b.op("offered", b.word(ROW, b.get(k)), p, kind="{ptr, i1}")
        b.set(done, b.op("extract", pair, kind=BIT, aux=1))
        b.add_to(k, b.i64(1))

    b.loop(lambda: _goes_on(b, b.invert(b.get(done)), b.get(k)), offer)

    def instead() -> None:
        page = b.op("lshr", size, PAGE.bit_length() - 1)
        place = b.word(ROW, b.op("urem", page, PLACES))
        b.helper("free", VOID, b.op("taken", place, p))

    b.when(b.invert(b.get(done)), instead)


def _goes_on(b: Body, going: Node, k: Node) -> Node:
    """Whether the places are still to be gone through."""
    return b.op("and", going, b.op("ult", k, PLACES))
