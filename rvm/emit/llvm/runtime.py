"""Functions that generated code calls for stacks, stopped frames, lanes and counters."""

from __future__ import annotations

from rvm.emit.llvm.helpers import NULL, VOID, Body, helper
from rvm.ir import context
from rvm.ir.kind import ROOT
from rvm.ir.node import F64, I32, I64, PTR, Node, constant

GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
"""2**64 divided by the golden ratio, as a signed number: the factor of Fibonacci hashing (Knuth,
"Sorting and Searching", 6.4)."""
ROOT_OF = constant(f"@{ROOT}", PTR)
"""The function that is entered."""


@helper(PTR, I64, gives=PTR, behind="cold")
def rvm_copied(b: Body, held: Node, size: Node) -> Node:
    """Memory with a copy of some bytes; null if there is none."""
    made = b.helper("malloc", PTR, b.intrinsic("umax", size, 1))
    b.when(b.op("ne", made, NULL), lambda: b.copy(made, held, size))
    return made


@helper(PTR, I64, gives=PTR)
def rvm_stack_push(b: Body, stack: Node, size: Node) -> Node:
    """A pointer to one more value of a size; null if there is no memory."""
    count, room = b.read(stack, context.COUNT), b.read(stack, context.ROOM)
    fits, found = b.begun(b.truth(True)), b.begun(NULL)

    def grow() -> None:
        more = b.intrinsic("umax", b.op("wmul", room, 2), 16)
        made = b.helper("realloc", PTR, b.peek(PTR, stack), b.op("wmul", more, size))
        b.set(fits, b.op("ne", made, NULL))

        def keep() -> None:
            b.poke(made, stack)
            b.poke(more, b.word(stack, context.ROOM))

        b.when(b.get(fits), keep)

    def put() -> None:
        b.poke(b.op("wadd", count, 1), b.word(stack, context.COUNT))
        b.set(found, b.op("moved", b.peek(PTR, stack), b.op("wmul", count, size), kind=PTR))

    b.when(b.op("eq", count, room), grow)
    b.when(b.get(fits), put)
    return b.get(found)


# ------------------------------------------------------------------------- lanes


@helper(PTR, PTR, gives=I32, before="", behind="#1")
def lanes(b: Body, job: Node, none: Node) -> Node:
    """Run the root for one lane after another, see `rvm.engines.native.lanes_threads.Piece`.

    `job` is a row: the rows of slots and the bytes of each, those of contexts, where to note how
    each ends, the first lane and the end of them, and the ticks after which to return.  The first
    that is left is noted there.
    """
    rows, contexts, hows = (b.peek(PTR, b.word(job, k)) for k in (0, 2, 4))
    row, size, first, end, ticks = (b.read(job, k) for k in (1, 3, 5, 6, 7))
    k, left = b.begun(first), b.begun(ticks)

    def at(base: Node, distance: Node | int) -> Node:
        return b.op("moved", base, b.op("wmul", b.get(k), distance), kind=PTR)

    def lane() -> None:
        ctx = at(contexts, size)
        before = b.peek(I64, ctx)
        b.poke(b.op("through", ROOT_OF, at(rows, row), ctx, kind=I32), at(hows, 4))
        used = b.op("wsub", before, b.peek(I64, ctx))
        b.set(left, b.op("wsub", b.get(left), b.op("wadd", used, 16)))
        b.add_to(k, b.i64(1))

    b.loop(lambda: b.op("and", b.op("lt", b.get(k), end), b.op("gt", b.get(left), 0)), lane)
    b.poke(b.get(k), b.word(job, 5))
    return constant(0, I32)


@helper(PTR, PTR, PTR, gives=I32, behind="cold noinline")
def rvm_each_lane(b: Body, single: Node, row: Node, ctx: Node) -> Node:
    """Run a function for each lane by itself; whether all came to their ends."""
    own, lefts, given = b.room(context.FIELDS), b.room(context.WIDTH), b.read_field(context.TICKS)
    done = constant(context.DONE, I32)
    k, how, least = b.begun(b.i64(0)), b.begun(done), b.begun(given)
    most, alone = b.begun(b.read_field(context.PEAK)), b.begun(b.read_field(context.ALONE))

    def lane() -> None:
        b.copy(own, ctx, b.i64(8 * context.FIELDS))
        b.poke(b.i64(0), b.word(own, context.ERASED))
        b.poke(constant(0.0, F64), b.word(own, context.DRIFT))
        b.set(how, b.op("through", single, row, b.get(k), own, kind=I32))
        b.when(b.op("eq", b.get(how), done), ended)
        b.add_to(k, b.i64(1))

    def ended() -> None:
        left = b.read(own, context.TICKS)
        b.poke(left, b.word(lefts, b.get(k)))
        b.set(least, b.intrinsic("smin", b.get(least), left))
        b.add_to(alone, b.op("wsub", given, left))
        b.grow(b.word(b.field(context.LANE_ERASED), b.get(k)), b.read(own, context.ERASED))
        drift = b.word(b.field(context.LANE_DRIFT), b.get(k))
        far = b.peek(F64, b.word(own, context.DRIFT))
        b.poke(b.larger(far, b.peek(F64, drift)), drift)
        b.set(most, b.intrinsic("smax", b.get(most), b.read(own, context.PEAK)))

    def share() -> None:
        b.write_field(context.LIVE, b.read(own, context.LIVE))
        b.write_field(context.PEAK, b.get(most))
        b.write_field(context.TICKS, b.get(least))
        b.write_field(context.ALONE, b.get(alone))

        def spare(j: Node) -> None:
            over = b.op("wsub", b.read(lefts, j), b.get(least))
            b.grow(b.word(b.field(context.SPARED), j), over)

        b.nest((b.i64(context.WIDTH),), lambda i: spare(i[0]))

    def goes_on() -> Node:
        return b.op("and", b.op("eq", b.get(how), done), b.op("ult", b.get(k), context.WIDTH))

    b.loop(goes_on, lane)
    all_done = b.op("eq", b.get(how), done)
    b.when(all_done, share)
    return b.select(all_done, done, constant(context.STOPPED, I32))


# ------------------------------------------------------------------------- counters


@helper(PTR, PTR, I64, PTR, I64, gives=VOID, behind="noinline")
def rvm_sizes(b: Body, ctx: Node, row: Node, pc: Node, meter: Node, n: Node) -> None:
    """Move what a meter (see `rvm.ir.counters`) has counted to the table of sizes.

    That is hashed with open addressing.
    """
    count = b.peek(I64, meter)

    def file() -> None:
        key, table = b.word(meter, 1), b.read_field(context.TABLE, PTR)
        mask, stride = b.read_field(context.MASK), b.read_field(context.STRIDE)
        mixed = b.begun(b.op("wadd", b.op("ptrtoint", row, kind=I64), pc))

        def mix(k: Node) -> None:
            found = b.op("wmul", b.op("xor", b.get(mixed), b.read(key, k)), GOLDEN)
            b.set(mixed, b.op("xor", found, b.op("lshr", found, 32)))

        b.nest((n,), lambda i: mix(i[0]))
        at = b.begun(b.op("and", b.get(mixed), mask))
        full, alike = b.begun(b.truth(False)), b.begun(b.truth(True))

        def entry() -> Node:
            return b.word(table, b.op("wmul", b.get(at), stride))

        def is_another() -> Node:
            here = entry()
            holder, place = b.peek(PTR, here), b.read(here, context.ENTRY_AT)
            b.set(alike, b.op("and", b.op("eq", holder, row), b.op("eq", place, pc)))
            b.when(b.get(alike), lambda: b.nest((n,), lambda i: compare(here, i[0])))
            return b.op("and", b.op("ne", holder, NULL), b.invert(b.get(alike)))

        def compare(here: Node, k: Node) -> None:
            same = b.op("eq", b.read(b.word(here, context.ENTRY_SIZES), k), b.read(key, k))
            b.set(alike, b.op("and", b.get(alike), same))

        def insert() -> None:
            b.poke(row, found)
            b.poke(pc, b.word(found, context.ENTRY_AT))
            b.poke(b.i64(0), b.word(found, context.ENTRY_TIMES))
            b.copy(b.word(found, context.ENTRY_SIZES), key, b.op("shl", n, 3))
            b.grow(b.field(context.USED), 1)
            b.set(full, b.op("uge", b.read_field(context.USED), b.read_field(context.MOST)))

        b.loop(is_another, lambda: b.set(at, b.op("and", b.op("wadd", b.get(at), 1), mask)))
        found = entry()
        b.when(b.op("eq", b.peek(PTR, found), NULL), insert)
        b.grow(b.word(found, context.ENTRY_TIMES), count)
        b.poke(b.i64(0), meter)
        _emptied(b, ctx, b.get(full))

    b.when(b.op("ne", count, 0), file)


@helper(PTR, I64, I64, I64, gives=VOID, behind="noinline")
def rvm_called(b: Body, ctx: Node, code: Node, entered: Node, left: Node) -> None:
    """Write a call down."""
    at = b.read_field(context.LOG, PTR)
    for k, value in enumerate((code, entered, left)):
        b.poke(value, b.word(at, k))
    following = b.word(at, context.CALL_WORDS)
    b.write_field(context.LOG, following)
    _emptied(b, ctx, b.op("uge", following, b.read_field(context.LOG_END, PTR)))


def _emptied(b: Body, ctx: Node, full: Node) -> None:
    """Let Python empty the table and the log if one of them is full."""
    b.when(full, lambda: b.op("through", b.read_field(context.EMPTY, PTR), ctx, kind=VOID))


DECLARATIONS = """
declare noalias ptr @malloc(i64) #2
declare noalias ptr @calloc(i64, i64) #2
declare ptr @realloc(ptr, i64) #2
declare void @free(ptr) #2
declare i32 @madvise(ptr, i64, i32) #2
"""
"""Functions of the C library that helpers call."""
