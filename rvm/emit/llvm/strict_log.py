"""Functions for the memory operations of the strict log in generated code.

See `rvm.ir.strict` for the inline part, `rvm.ir.context` for the fields of the log.  All are given
how many codes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rvm.emit.llvm.helpers import Body, helper
from rvm.ir.context import COUNT, GAPS, LIMIT, LIVE, PEAK, ROOM, STACK, WANTED, WORDS
from rvm.ir.node import I64, PTR, Node, Var
from rvm.numbers.residue import CODES, ESCAPE, FAR, NEAR, WORD, Residue

LEVELS = WORD.bit_length() - 1


class Stack:
    """A stack of the log, of codes, nibbles or whole gaps: its words, and how many entries it has.

    `size` is a variable, `before` what it began with; an entry has a number of bits.
    """

    def __init__(self, b: Body, row: Node, bits: int, size: Node | None) -> None:
        self.b, self.row, self.bits = b, row, bits
        self.words = b.peek(PTR, b.word(row, WORDS))
        self.before = b.read(row, COUNT) if size is None else size
        self.size: Var = b.begun(self.before)

    def _place(self, at: Node) -> tuple[Node, Node]:
        """A pointer to the word with an entry, and the bits of it that come before."""
        b = self.b
        bit = b.op("wmul", at, self.bits)
        return b.word(self.words, b.op("lshr", bit, LEVELS)), b.op("and", bit, WORD - 1)

    def push(self, entry: Node) -> None:
        """Push an entry, for which there must be room."""
        b = self.b
        place, shift = self._place(b.get(self.size))
        below = b.op("xor", b.op("shl", b.i64(-1), shift), -1)
        rest = b.op("and", b.peek(I64, place), below)
        b.poke(b.op("or", rest, b.op("shl", entry, shift)), place)
        b.add_to(self.size, b.i64(1))

    def pop(self) -> Node:
        """Pop an entry, which must be there."""
        b = self.b
        b.add_to(self.size, b.i64(-1))
        place, shift = self._place(b.get(self.size))
        found = b.op("lshr", b.peek(I64, place), shift)
        return found if self.bits == WORD else b.op("and", found, (1 << self.bits) - 1)

    def fits(self, n: Node) -> Node:
        """Whether there is room for so many more entries."""
        b = self.b
        return b.op("ule", b.op("wadd", b.get(self.size), n), b.read(self.row, ROOM))

    def used(self, count: Node) -> Node:
        """The words that so many entries take."""
        b = self.b
        return b.op("lshr", b.op("wadd", b.op("wmul", count, self.bits), WORD - 1), LEVELS)


class Log:
    """The log, which has a number of codes."""

    def __init__(self, b: Body, codes: Node) -> None:
        self.b, self.row = b, b.read_field(GAPS, PTR)
        self.stacks = [
            Stack(b, b.word(self.row, STACK * k), stack.bits, None if k else codes)
            for k, stack in enumerate(Residue().stacks)
        ]

    def growth(self, sizes: Sequence[Node]) -> Node:
        """The bytes that it takes more where its stacks have these sizes."""
        b, total = self.b, self.b.i64(0)
        for stack, size in zip(self.stacks, sizes, strict=True):
            more = b.op("wsub", stack.used(size), stack.used(stack.before))
            total = b.op("wadd", total, more)
        return b.op("wmul", total, WORD // 8)

    def settle(self, more: Node, sizes: Sequence[Node]) -> None:
        """Account for bytes, and note the sizes of the stacks."""
        b = self.b
        b.grow(b.field(LIVE), more)
        b.write_field(PEAK, b.intrinsic("smax", b.read_field(PEAK), b.read_field(LIVE)))
        for stack, size in zip(self.stacks, sizes, strict=True):
            b.poke(size, b.word(stack.row, COUNT))

    def passes(self, more: Node) -> Node:
        """Whether so many more bytes pass the memory limit."""
        b = self.b
        return b.op("gt", b.op("wadd", b.read_field(LIVE), more), b.read_field(LIMIT))

    def if_room(self, n: Node, refused: Callable[[], Node]) -> Node:
        """1 if `refused`, or if there is no room for `n` more entries on each stack; else 0.

        Then that many are asked for.
        """
        b = self.b

        def asked() -> Node:
            b.poke(n, b.word(self.row, WANTED))
            return b.i64(1)

        fits = b.all([stack.fits(n) for stack in self.stacks])
        return b.either(fits, lambda: b.op("zext", refused(), kind=I64), asked)


@helper(PTR, I64, I64, PTR, I64, behind="noinline")
def rvm_keep(b: Body, ctx: Node, codes: Node, word: Node, gaps: Node, n: Node) -> Node:
    """Push a row of gaps, all of them: 0, or else 1, where there is no room for their bytes.

    `word` is that of the last code.
    """
    log = Log(b, codes)
    small, nibbles, wholes = log.stacks
    last = b.op("udiv", b.intrinsic("usub.sat", codes, 1), WORD // small.bits)
    b.poke(word, b.word(small.words, last))

    def keep(gap: Node) -> None:
        is_near = b.op("ult", b.op("wadd", gap, 1), len(CODES))
        code = b.select(b.op("lt", gap, 0), b.i64(CODES[-1]), gap)
        small.push(b.select(is_near, code, b.i64(ESCAPE)))
        b.when(b.invert(is_near), lambda: further(gap))

    def further(gap: Node) -> None:
        is_close = b.op("ule", b.op("wadd", gap, NEAR), 2 * NEAR)
        up, down = b.op("wsub", gap, 2), b.op("wsub", b.i64(5), gap)
        nibbles.push(b.select(is_close, b.select(b.op("gt", gap, 0), up, down), b.i64(FAR)))
        b.when(b.invert(is_close), lambda: wholes.push(gap))

    def refused() -> Node:
        b.nest((n,), lambda i: keep(b.read(gaps, i[0])))
        sizes = [b.get(stack.size) for stack in log.stacks]
        more = log.growth(sizes)
        over = b.op("and", b.op("ne", more, 0), log.passes(more))
        b.when(b.invert(over), lambda: log.settle(more, sizes))
        return over

    return log.if_room(n, refused)


@helper(PTR, I64, behind="noinline")
def rvm_take(b: Body, ctx: Node, codes: Node) -> Node:
    """Pop the gap on top, which must be there."""
    log = Log(b, codes)
    small, nibbles, wholes = log.stacks
    code = small.pop()
    gap = b.begun(b.select(b.op("eq", code, CODES[-1]), b.i64(-1), code))

    def further() -> None:
        nibble = nibbles.pop()
        up, down = b.op("wadd", nibble, 2), b.op("wsub", b.i64(5), nibble)
        b.set(gap, b.select(b.op("ult", nibble, NEAR - 1), up, down))
        b.when(b.op("eq", nibble, FAR), lambda: b.set(gap, wholes.pop()))

    b.when(b.op("eq", code, ESCAPE), further)
    sizes = [b.get(stack.size) for stack in log.stacks]
    log.settle(log.growth(sizes), sizes)
    return b.get(gap)


@helper(PTR, I64, I64, behind="noinline")
def rvm_reserve(b: Body, ctx: Node, codes: Node, n: Node) -> Node:
    """Whether there is no room for so many more gaps, however large."""
    log = Log(b, codes)
    most = [b.op("wadd", stack.before, n) for stack in log.stacks]
    return log.if_room(n, lambda: log.passes(log.growth(most)))
