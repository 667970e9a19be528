"""The strict log in nodes: pushing and popping gaps, and the number of bits of a gap.

See `rvm.numbers.gaps` for gaps, and `rvm.numbers.residue` for the log.  While a function runs, the
number of codes and the last word are held in variables.  Most gaps are handled there; if a word is
full or empty, or a gap large, the runtime handles them in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from rvm.ir import context
from rvm.ir.builder import Builder
from rvm.ir.items import Parts, parts_of, value_of
from rvm.ir.node import BIT, F32, FLOATS, I32, I64, PTR, Node, constant
from rvm.numbers.residue import CODES, ESCAPE, WORD
from rvm.types import Scalar

WIDTH = ESCAPE.bit_length()
EACH = WORD // WIDTH
"""The bits of a code, and how many a word has."""
NAN = {F32: 0x7FC0 << 16, "f64": 0x7FF8 << 48}
"""The bits that represent all NaNs."""


# ------------------------------------------------------------------------- pushing and popping


def keep(b: Builder, *pairs: tuple[Scalar, Parts, Parts]) -> None:
    """Push the gaps from what undoing would give to what there is: all, or none and trouble."""
    if not b.writes:
        return
    log, gaps = b.log, [gap for pair in pairs for gap in _gaps(b, *pair)]
    assert log is not None
    count, word = b.get(log.count), b.get(log.word)
    begun = b.op("and", count, b.i64(EACH - 1))
    fits = b.op("ult", b.op("wsub", begun, b.i64(1)), b.i64(EACH - len(gaps)))
    near = [b.op("ult", b.op("wadd", gap, b.i64(1)), b.i64(len(CODES))) for gap in gaps]

    def here() -> None:
        shift, found = b.op("wadd", begun, begun), word
        for gap in gaps:
            code = b.select(b.op("lt", gap, b.i64(0)), b.i64(CODES[-1]), gap)
            found = b.op("or", found, b.op("shl", code, shift))
            shift = b.op("wadd", shift, b.i64(WIDTH))
        b.set(log.word, found)
        b.set(log.count, b.op("wadd", count, b.i64(len(gaps))))

    def there() -> None:
        row = b.variable(I64, "gaps", many=len(gaps))
        for k, gap in enumerate(gaps):
            b.set(row, gap, b.i64(k))
        given = Node("variable", PTR, (), row)
        full = b.helper("rvm_keep", I64, b.field(0), count, word, given, b.i64(len(gaps)))
        b.trouble(b.op("ne", full, b.i64(0)))
        load(b)

    b.when(b.invert(b.all([fits, *near])), there, here, unlikely=True)


def taken(b: Builder, t: Scalar, guess: Parts) -> Parts:
    """The old value, from the result of undoing and the gap on top, which must exist."""
    if not b.writes:
        return guess
    parts = parts_of(guess)
    gaps = [_popped(b) for _ in parts]
    return value_of([_moved(b, t, *pair) for pair in zip(parts, reversed(gaps), strict=True)])


def ask(b: Builder, gaps: Node) -> None:
    """Trouble unless the log has so many gaps."""
    assert b.log is not None
    b.trouble(b.op("lt", b.get(b.log.count), gaps))


def reserve(b: Builder, gaps: Node) -> None:
    """Trouble unless there is room for so many more, however large they are."""
    assert b.log is not None
    full = b.helper("rvm_reserve", I64, b.field(0), b.get(b.log.count), gaps)
    b.trouble(b.op("ne", full, b.i64(0)))


def _popped(b: Builder) -> Node:
    log, gap = b.log, b.variable(I64, "gap")
    assert log is not None
    count = b.get(log.count)
    before = b.op("wsub", count, b.i64(1))
    at = b.op("and", before, b.i64(EACH - 1))
    shifted = b.op("lshr", b.get(log.word), b.op("wadd", at, at))
    code = b.op("and", shifted, b.i64(ESCAPE))

    def here() -> None:
        b.set(log.count, before)
        b.set(gap, b.select(b.op("eq", code, b.i64(CODES[-1])), b.i64(-1), code))

    def there() -> None:
        b.set(gap, b.helper("rvm_take", I64, b.field(0), count))
        load(b)

    rare = b.op("or", b.op("eq", at, b.i64(0)), b.op("eq", code, b.i64(ESCAPE)))
    b.when(rare, there, here, unlikely=True)
    return b.get(gap)


# ------------------------------------------------------------------------- coming and leaving


def load(b: Builder) -> None:
    """Take what the variables hold from memory."""
    if b.log is not None:
        b.set(b.log.count, b.peek(I64, _field(b, context.COUNT)))
        b.set(b.log.word, b.peek(I64, _last(b)))


def settle(b: Builder) -> None:
    """Put what the variables hold into memory."""
    if b.log is None:
        return
    b.poke(b.get(b.log.count), _field(b, context.COUNT))
    if b.kind.strict > 0:
        # Of an empty log this is the first word, above its end.
        b.poke(b.get(b.log.word), _last(b))


def _field(b: Builder, k: int) -> Node:
    return b.op("slot", b.read_field(context.GAPS, PTR), kind=PTR, aux=k)


def _last(b: Builder) -> Node:
    """A pointer to the word of the last code; of an empty log to the first word."""
    assert b.log is not None
    last = b.intrinsic("usub.sat", b.get(b.log.count), b.i64(1))
    away = b.op("wmul", b.op("udiv", last, b.i64(EACH)), b.i64(WORD // 8))
    return b.op("moved", b.peek(PTR, _field(b, context.WORDS)), away, kind=PTR)


# ------------------------------------------------------------------------- gaps


def bits_lost(b: Builder, guess: Node, meant: Node) -> Node:
    """The bits of the gap between two floats; 0 where they are equal."""
    gap = b.op("wsub", _key(b, meant), _key(b, guess))
    size = b.select(b.op("lt", gap, b.i64(0)), b.op("wsub", b.i64(0), gap), gap)
    bits = b.op("wsub", b.i64(64), b.intrinsic("ctlz", size, constant(False, BIT)))
    return b.select(b.op("feq", guess, meant), b.i64(0), bits)


def _gaps(b: Builder, t: Scalar, guess: Parts, meant: Parts) -> Sequence[Node]:
    """The gaps of the parts of a number."""
    pairs = zip(parts_of(guess), parts_of(meant), strict=True)
    return [b.op("wsub", _order(b, t, y), _order(b, t, x)) for x, y in pairs]


def _order(b: Builder, t: Scalar, x: Node) -> Node:
    """A number, or a part of one, as an integer of the same order."""
    if x.kind in FLOATS:
        return _key(b, x)
    return x if x.kind == I64 else b.op("sext" if t.is_signed else "zext", x, kind=I64)


def _key(b: Builder, x: Node) -> Node:
    """The bits of a float in numerical order; of every NaN the same."""
    whole = b.op("bitcast", x, kind=I32 if x.kind == F32 else I64)
    if x.kind == F32:
        whole = b.op("sext", whole, kind=I64)
    return _folded(b, b.select(b.op("funo", x, x), b.i64(NAN[x.kind]), whole), x.kind)


def _folded(b: Builder, whole: Node, kind: str) -> Node:
    """From the bits of a float to its key, and from that to the bits."""
    most = (1 << (31 if kind == F32 else 63)) - 1
    mask = b.op("and", b.op("ashr", whole, b.i64(63)), b.i64(most))
    return b.op("xor", whole, mask)


def _moved(b: Builder, t: Scalar, guess: Node, gap: Node) -> Node:
    """The number at this gap from another."""
    if guess.kind not in FLOATS:
        found = b.op("wadd", _order(b, t, guess), gap)
        return found if guess.kind == I64 else b.op("trunc", found, kind=guess.kind)
    found = b.op("wadd", _key(b, guess), gap)
    if guess.kind == F32:
        # Past the largest key comes the least.
        found = b.op("sext", b.op("trunc", found, kind=I32), kind=I64)
    found = _folded(b, found, guess.kind)
    if guess.kind == F32:
        found = b.op("trunc", found, kind=I32)
    moved = b.op("bitcast", found, kind=guess.kind)
    # Where nothing was lost, a NaN keeps its bits.
    return b.select(b.op("eq", gap, b.i64(0)), guess, moved)
