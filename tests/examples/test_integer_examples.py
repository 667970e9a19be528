"""The integer examples against second implementations, laws and published vectors."""

from __future__ import annotations

import math
import zlib
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from programs.both_ways import ENGINES, load
from rvm_tools.cli import cli
from sizes import sample, thin, wide

import rvm
from rvm import FunctionHandle, InvertibilityError, Machine, RvmError

EXAMPLES = Path(__file__).parents[2] / "examples"
LICENSE = (EXAMPLES.parent / "LICENSE").read_bytes()
each_engine = pytest.mark.parametrize("engine", ENGINES)


def example(name: str) -> rvm.Library:
    return load(EXAMPLES / f"{name}.rasm")


def function(name: str, which: str, engine: str) -> FunctionHandle:
    return example(name)[which].with_options(engine=engine)


def letters(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8).copy()


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------ Fibonacci and factorials


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@each_engine
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 15])
def test_all_ways_to_fibonacci_agree(engine: str, n: int) -> None:
    assert function("fibonacci", "fib", engine)(out=0, n=n).out == fibonacci(n)
    assert function("fibonacci", "rrfib", engine)(out=0, n=n).out == fibonacci(n + 1)
    pair = function("fibonacci", "fib_pair", engine)
    there = pair(a=0, b=0, n=n)
    assert (there.a, there.b, there.n) == (fibonacci(n + 1), fibonacci(n + 2), 0)
    back = (~pair)(**there)
    assert (back.a, back.b, back.n) == (0, 0, n)


def test_a_pair_that_is_none_has_no_index() -> None:
    pair = function("fibonacci", "fib_pair", "python")
    with pytest.raises(RvmError):
        # 5 and 9 are not neighbours of the sequence: the subtraction never ends in 1 and 1.
        (~pair)(a=5, b=9, n=0, max_steps=10_000)


@each_engine
def test_the_search_finds_the_first_index(engine: str) -> None:
    search = function("fibonacci", "fib_at_least", engine)
    for x in (-3, 0, 1, 2, 3, 4, 100):
        n = next(k for k in range(99) if fibonacci(k) >= x)
        there = search(n=0, x=x)
        assert there.n == n
        assert (~search)(**there).n == 0


@each_engine
def test_factorials_to_the_last_that_fits(engine: str) -> None:
    factorial = function("factorial", "factorial", engine)
    for n in range(21):
        assert factorial(f=1, n=n).f == math.factorial(n)
        assert (~factorial)(f=math.factorial(n), n=n).f == 1
    with pytest.raises(InvertibilityError) as caught:
        factorial(f=1, n=21)
    assert caught.value.code == "R001"
    with pytest.raises(InvertibilityError):
        (~factorial)(f=math.factorial(10) + 1, n=10)  # no multiple of 10!


# ------------------------------------------------------------------ the Turing machine

BLANK, ANY = 2, -1
INCREMENT = [
    # state, reads, writes, moves, next
    (0, BLANK, BLANK, 0, 1),
    (1, ANY, ANY, 1, 2),
    (2, 0, 1, 0, 3),
    (2, 1, 0, 0, 1),
    (2, BLANK, BLANK, 0, 3),
    (3, ANY, ANY, -1, 4),
    (4, 0, 0, 0, 3),
    (4, BLANK, BLANK, 0, 5),
]


def table(rules: list[tuple[int, ...]]) -> dict[str, NDArray[np.int64]]:
    columns = np.array(rules, np.int64).T
    names = ("state", "reads", "writes", "moves", "next")
    return {n: c.copy() for n, c in zip(names, columns, strict=True)}


def tape_of(number: int, bits: int) -> NDArray[np.int64]:
    return np.array([BLANK, *(number >> k & 1 for k in range(bits)), BLANK], np.int64)


@each_engine
@pytest.mark.parametrize("bits", [1, 3, 6])
def test_the_turing_machine_adds_one(engine: str, bits: int) -> None:
    turing = function("turing", "turing", engine)
    for number in range(0, 1 << bits, 3):
        tape = tape_of(number, bits)
        there = turing(tape=tape, head=0, q=0, rules=table(INCREMENT), start=0, halt=5)
        assert (there.head, there.q) == (0, 5)
        assert list(tape) == list(tape_of((number + 1) % (1 << bits), bits))
        back = (~turing)(**there)  # subtracts one
        assert (back.head, back.q) == (0, 0)
        assert list(tape) == list(tape_of(number, bits))


def overlaps(rules: list[tuple[int, ...]], state: int, symbol: int) -> int:
    """Pairs of rules that agree in two columns, by Bennett's definition."""
    return sum(
        a[state] == b[state] and (ANY in (a[symbol], b[symbol]) or a[symbol] == b[symbol])
        for k, a in enumerate(rules)
        for b in rules[:k]
    )


@each_engine
def test_clashes_counts_what_makes_a_table_irreversible(engine: str) -> None:
    clashes = function("turing", "clashes", engine)
    random = rng()
    tables = [INCREMENT, [*INCREMENT, (2, 0, 0, 0, 1)], [*INCREMENT, (9, ANY, ANY, 1, 3)]]
    tables += [[tuple(int(v) for v in random.integers(-1, 3, 5)) for _ in range(6)]]
    counts = [overlaps(t, 0, 1) + overlaps(t, 4, 2) for t in tables]
    assert [clashes(count=0, rules=table(t)).count for t in tables] == counts
    assert counts[0] == 0 and min(counts[1:]) > 0


@each_engine
def test_a_table_that_is_not_reversible_is_found_out_in_a_run(engine: str) -> None:
    # Both rules end in state 1 with a 1 on the tape: which came last can't be told.
    rules = [(0, 1, 1, 0, 1), (0, 0, 1, 0, 1)]
    turing = function("turing", "turing", engine)
    turing(tape=np.array([1]), head=0, q=0, rules=table(rules), start=0, halt=1)
    tape = np.array([0])
    with pytest.raises(InvertibilityError):
        turing(tape=tape, head=0, q=0, rules=table(rules), start=0, halt=1)
    assert tape[0] == 0


# ------------------------------------------------------------------ billiard balls


def block(cells: tuple[bool, ...]) -> tuple[bool, ...]:
    """Margolus' rule for the cells (a, b, c, d) of one block."""
    a, b, c, d = cells
    if sum(cells) == 1 or (sum(cells) == 2 and a == d):
        return (d, c, b, a) if sum(cells) == 1 else (not a, not b, not c, not d)
    return cells


def walled(grid: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    grid = grid.copy()
    height, width = grid.shape
    for t in range(2 * steps):
        for i in range(t % 2, height - 1, 2):
            for j in range(t % 2, width - 1, 2):
                grid[i : i + 2, j : j + 2].flat = block(tuple(grid[i : i + 2, j : j + 2].flat))
    return grid


def board(cells: int, steps: int) -> int:
    """64 cells in a row; a block is a cell, its neighbour and the two that are 8 farther."""
    bits = [bool(cells >> k & 1) for k in range(64)]
    for t in range(2 * steps):
        for i, j in product(range(0, 8, 2), range(0, 8, 2)):
            places = [(8 * i + j + 9 * (t % 2) + k) % 64 for k in (0, 1, 8, 9)]
            moved = block(tuple(bits[p] for p in places))
            for p, ball in zip(places, moved, strict=True):
                bits[p] = ball
    return sum(1 << k for k, ball in enumerate(bits) if ball)


@thin
@each_engine
@pytest.mark.parametrize("shape", [(2, 2), (4, 10), (12, 8)])
def test_billiard_balls_between_walls(engine: str, shape: tuple[int, int]) -> None:
    automaton = function("margolus", "automaton", engine)
    height, width = shape
    start = rng().random(shape) < 0.35
    for steps in (0, 1, 2, 40):
        grid = start.copy()
        view = grid.reshape(height // 2, 2, width // 2, 2)
        automaton(cells=view, steps=steps)
        assert np.array_equal(grid, walled(start, steps))
        assert grid.sum() == start.sum()
        (~automaton)(cells=view, steps=steps)
        assert np.array_equal(grid, start)


@each_engine
def test_billiard_balls_on_a_board_without_edges(engine: str) -> None:
    run = function("margolus", "board", engine)
    random = rng()
    for density in (0.1, 0.3, 0.6):
        start = sum(1 << k for k in range(64) if random.random() < density)
        for steps in (1, 7):
            there = run(cells=start, steps=steps)
            assert there.cells == board(start, steps)
            assert (~run)(**there).cells == start


SEVEN_BALLS = 0x4210090500000000


@wide
def test_100_000_steps_of_the_board_and_back() -> None:
    machine = Machine(example("margolus"), "board", cells=SEVEN_BALLS + 2, steps=100_000)
    machine.run()
    assert machine["cells"] != SEVEN_BALLS + 2
    assert machine["cells"].bit_count() == 8
    machine.run_back()
    assert (machine.time, machine["cells"]) == (0, SEVEN_BALLS + 2)
    again = function("margolus", "board", "python")(cells=SEVEN_BALLS, steps=100_000)
    assert again.cells == SEVEN_BALLS  # a period of 1000 steps
    assert board(SEVEN_BALLS, 1000) == SEVEN_BALLS


@pytest.mark.soak
@each_engine
def test_100_000_steps_between_walls_and_back(engine: str) -> None:
    start = rng(7).random((12, 12)) < 0.2
    grid = start.copy()
    view = grid.reshape(6, 2, 6, 2)
    machine = Machine(example("margolus"), "automaton", cells=view, steps=100_000, engine=engine)
    machine.run()
    assert grid.sum() == start.sum() and not np.array_equal(grid, start)
    machine.run_back()
    assert np.array_equal(grid, start)


# ------------------------------------------------------------------ orders


@each_engine
@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 64])
def test_sorting_keeps_the_stable_permutation(engine: str, n: int) -> None:
    sort = function("sort", "sort", engine)
    for limit in (3, 1000):
        start = rng(n).integers(-limit, limit, n)
        x, p = start.copy(), np.zeros(n, np.int64)
        sort(x=x, p=p)
        assert np.array_equal(p, np.argsort(start, kind="stable"))
        assert np.array_equal(x, start[p])
        (~sort)(x=x, p=p)
        assert np.array_equal(x, start) and not p.any()


def test_any_permutation_of_sorted_numbers_leads_back() -> None:
    sort = function("sort", "sort", "python")
    for _ in range(20):
        p = rng(5).permutation(9)
        x, given = np.arange(9), p.copy()
        (~sort)(x=x, p=given)
        assert np.array_equal(x, np.argsort(p))
    with pytest.raises(RvmError):
        (~sort)(x=np.arange(4), p=np.array([0, 1, 1, 3]))


def test_sorting_takes_n_log_n_steps() -> None:
    def steps(n: int) -> int:
        x, p = rng(2).permutation(n), np.zeros(n, np.int64)
        return Machine(example("sort"), "sort", x=x, p=p).run().time

    few, many = steps(256), steps(1024)
    assert few < 256 * 8 * 14
    assert 4 < many / few < 5.5


@each_engine
def test_shuffles_as_fisher_and_yates_do(engine: str) -> None:
    shuffle, draw = (function("shuffle", f, engine) for f in ("shuffle", "draw"))
    n, seed = 52, [2**63 + 5, 77]
    numbers = draw(out=np.zeros(n - 1, np.uint64), s=np.array(seed, np.uint64))
    cards = list(range(n))
    for i, number in zip(range(n - 1, 0, -1), numbers.out, strict=True):
        j = int(number) % (i + 1)
        cards[i], cards[j] = cards[j], cards[i]
    there = shuffle(x=np.arange(n), s=np.array(seed, np.uint64))
    assert list(there.x) == cards
    assert list(there.s) == list(numbers.s)
    back = (~shuffle)(**there)
    assert list(back.x) == list(range(n)) and list(back.s) == seed


# ------------------------------------------------------------------ compression


@each_engine
@pytest.mark.parametrize("text", [b"", b"a", b"aab", b"\0\0\0a\0", LICENSE], ids=len)
def test_run_lengths(engine: str, text: bytes) -> None:
    encode = function("runlength", "encode", engine)
    there = encode(text=letters(text), bytes=[], counts=[])
    runs = [(k, len(list(g))) for k, g in groupby(text)]
    assert list(zip(there.bytes, there.counts, strict=True)) == runs
    assert not there.text.any()
    back = (~encode)(**there)
    assert back.text.tobytes() == text
    assert not back.bytes and not back.counts


def test_run_lengths_that_do_not_fit_the_text_are_refused() -> None:
    encode = function("runlength", "encode", "python")
    for bytes_, counts in (([97], [3]), ([97], [5]), ([97, 97], [2, 2]), ([97, 98], [4, 0])):
        with pytest.raises(RvmError):
            (~encode)(text=np.zeros(4, np.uint8), bytes=bytes_, counts=counts)


@thin
@each_engine
def test_rans_comes_to_the_entropy_of_a_file(engine: str) -> None:
    encode = function("rans", "encode", engine)
    there = encode(text=letters(LICENSE), freq=np.zeros(256, np.int64), x=0, words=[])
    counts = np.bincount(letters(LICENSE), minlength=256)
    assert np.array_equal(there.freq, counts)
    assert not there.text.any()
    used = counts[counts > 0]
    entropy = float(-(used * np.log2(used / len(LICENSE))).sum())
    size = 32 * len(there.words) + math.log2(there.x)
    # The number starts at 2**31, and rounding costs less than a bit.
    assert size - 31 == pytest.approx(entropy, abs=0.5)
    assert size / 8 < 0.65 * len(LICENSE)
    back = (~encode)(**there)
    assert back.text.tobytes() == LICENSE
    assert not back.freq.any() and back.x == 0 and not back.words


@each_engine
@pytest.mark.parametrize("text", [b"", b"z", b"zzzzzzzz" * 9, bytes(range(256))], ids=len)
def test_rans_of_texts_without_or_full_of_information(engine: str, text: bytes) -> None:
    encode = function("rans", "encode", engine)
    there = encode(text=letters(text), freq=np.zeros(256, np.int64), x=0, words=[])
    if len(set(text)) == 1:
        assert not there.words and there.x <= 1 << 31
    assert (~encode)(**there).text.tobytes() == text


def rans_number(text: bytes) -> int:
    """The whole message as one number of Python's, without words put out."""
    n, letters_ = len(text), sorted(text)
    x = (1 << 31) // n * n
    for letter in text:
        f, c = text.count(letter), letters_.index(letter)
        x = x // f * n + c + x % f
    return x


def test_rans_makes_the_number_that_the_theory_makes() -> None:
    text = b"abracadabra"
    there = function("rans", "encode", "python")(
        text=letters(text), freq=np.zeros(256, np.int64), x=0, words=[]
    )
    assert not there.words and there.x == rans_number(text)


def lifted(x: NDArray[np.int64], levels: int) -> NDArray[np.int64]:
    """CDF 5/3 with slices and an explicit reflection at both ends."""
    x = x.copy()
    for k in range(levels):
        s = x[:: 1 << k]
        even, odd = s[0::2].copy(), s[1::2].copy()
        if not len(odd):
            break
        right = np.append(even[1:], even[-1])[: len(odd)]
        odd -= np.floor_divide(even[: len(odd)] + right, 2)
        before = np.append(odd[0], odd)[: len(even)]
        after = np.append(odd, odd[-1])[: len(even)]
        even += np.floor_divide(before + after + 2, 4)
        s[0::2], s[1::2] = even, odd
    return x


@each_engine
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 17, 64, 100])
def test_the_wavelet_of_any_length(engine: str, n: int) -> None:
    wavelet = function("wavelet", "wavelet", engine)
    start = rng(n).integers(-1000, 1000, n)
    for levels in (0, 1, 3, 8):
        x = start.copy()
        wavelet(x=x, levels=levels)
        assert np.array_equal(x, lifted(start, levels))
        (~wavelet)(x=x, levels=levels)
        assert np.array_equal(x, start)


def sunspots() -> NDArray[np.int64]:
    lines = (EXAMPLES / "data" / "sunspots.csv").read_text(encoding="utf-8").splitlines()
    return np.array([int(line.split(",")[2]) for line in lines[2:]], np.int64)


@each_engine
def test_the_wavelet_of_the_sunspots_is_small_and_leads_back(engine: str) -> None:
    start = sunspots()
    assert (len(start), start.max()) == (309, 1902)  # 190.2 in 1957
    x = start.copy()
    wavelet = function("wavelet", "wavelet", engine)
    wavelet(x=x, levels=3)
    assert np.array_equal(x, lifted(start, 3))
    assert np.abs(x).mean() < 0.5 * start.mean()
    (~wavelet)(x=x, levels=3)
    assert np.array_equal(x, start)


def test_what_is_straight_has_no_details() -> None:
    x = 3 * np.arange(65) + 5
    function("wavelet", "wavelet", "python")(x=x, levels=1)
    assert not x[1::2].any()
    assert np.array_equal(x[0::2], 6 * np.arange(33) + 5)


# ------------------------------------------------------------------ ciphers


def words(text: str, dtype: Any = np.uint32) -> NDArray[Any]:
    """Big-endian words of hexadecimal digits."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(bytes.fromhex(text), f">u{size}").astype(dtype)


XTEA = [  # key, plain, cipher
    ("000102030405060708090a0b0c0d0e0f", "4142434445464748", "497df3d072612cb5"),
    ("000102030405060708090a0b0c0d0e0f", "4141414141414141", "e78f2d13744341d8"),
    ("000102030405060708090a0b0c0d0e0f", "5a5b6e278948d77f", "4141414141414141"),
    ("00000000000000000000000000000000", "4142434445464748", "a0390589f8b8efa5"),
    ("00000000000000000000000000000000", "4141414141414141", "ed23375a821a8c2d"),
    ("00000000000000000000000000000000", "0000000000000000", "dee9d4d8f7131ed9"),
]
TEA = [
    ("00000000000000000000000000000000", "0000000000000000", "41ea3a0a94baa940"),
    ("00000000000000000000000000000000", "0102030405060708", "6a2f9cf3fccf3c55"),
    ("0123456712345678234567893456789a", "0000000000000000", "34e943b0900f5dcb"),
    ("00112233445566778899aabbccddeeff", "0102030405060708", "deb1c0a27e745db3"),
]


@each_engine
@pytest.mark.parametrize(
    "name,key,plain,cipher", [("tea", *v) for v in TEA] + [("xtea", *v) for v in XTEA]
)
def test_tea_vectors(engine: str, name: str, key: str, plain: str, cipher: str) -> None:
    encrypt = function("tea", name, engine)
    v = words(plain)
    encrypt(v=v, key=words(key))
    assert np.array_equal(v, words(cipher))
    (~encrypt)(v=v, key=words(key))
    assert np.array_equal(v, words(plain))


SPECK = [  # words of 32 or 64 bits; key, plain, cipher
    (64, "131211100b0a090803020100", "74614620736e6165", "9f7952ec4175946c"),
    (64, "1b1a1918131211100b0a090803020100", "3b7265747475432d", "8c6fa548454e028b"),
    (128, "0f0e0d0c0b0a09080706050403020100",
     "6c617669757165207469206564616d20", "a65d9851797832657860fedf5c570d18"),
    (128, "17161514131211100f0e0d0c0b0a09080706050403020100",
     "726148206665696843206f7420746e65", "1be4cf3a13135566f9bc185de03c1886"),
    (128, "1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100",
     "65736f6874206e49202e72656e6f6f70", "4109010405c0f53e4eeeb48d9c188f43"),
]  # fmt: skip


@each_engine
@pytest.mark.parametrize("size,key,plain,cipher", SPECK)
def test_speck_vectors(engine: str, size: int, key: str, plain: str, cipher: str) -> None:
    encrypt = function("speck", f"speck{size}", engine)
    dtype = np.uint32 if size == 64 else np.uint64
    x, y = (int(w) for w in words(plain, dtype))
    there = encrypt(x=x, y=y, key=words(key, dtype))
    assert [there.x, there.y] == [int(w) for w in words(cipher, dtype)]
    assert np.array_equal(there.key, words(key, dtype))
    back = (~encrypt)(**there)
    assert (back.x, back.y) == (x, y)


KEY = np.frombuffer(bytes(range(32)), "<u4").astype(np.uint32)
# RFC 8439, section 2.4.2.
SUNSCREEN = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for "
    b"the future, sunscreen would be it."
)
SUNSCREEN_CIPHER = bytes.fromhex(
    "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
    "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
    "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
    "5af90bbf74a35be6b40b8eedf2785e42874d"
)


@thin
@each_engine
def test_chacha20_of_the_rfc(engine: str) -> None:
    encrypt = function("chacha20", "encrypt", engine)
    nonce = np.frombuffer(bytes.fromhex("000000000000004a00000000"), "<u4").astype(np.uint32)
    text = letters(SUNSCREEN)
    encrypt(text=text, key=KEY.copy(), counter=1, nonce=nonce)
    assert text.tobytes() == SUNSCREEN_CIPHER
    (~encrypt)(text=text, key=KEY.copy(), counter=1, nonce=nonce)
    assert text.tobytes() == SUNSCREEN


@each_engine
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65])
def test_chacha20_of_texts_that_fill_no_block(engine: str, n: int) -> None:
    # RFC 8439, appendix A.1, vectors 1 and 2: the key stream of a key of zeros.
    stream = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    )
    zeros = {"key": np.zeros(8, np.uint32), "nonce": np.zeros(3, np.uint32)}
    there = function("chacha20", "encrypt", engine)(text=letters(bytes(n)), counter=0, **zeros)
    assert there.text.tobytes() == stream[:n]


# ------------------------------------------------------------------ adders


def bits(number: int, n: int) -> NDArray[np.bool_]:
    return np.array([number >> k & 1 for k in range(n)], bool)


def number(array: NDArray[np.bool_]) -> int:
    return sum(int(b) << k for k, b in enumerate(array))


@thin
@each_engine
@pytest.mark.parametrize("name", ["toffoli", "fredkin"])
def test_adders_add_and_backwards_subtract(engine: str, name: str) -> None:
    add = function("adder", name, engine)
    random = rng()
    pairs = [(3, a, b) for a, b in product(range(8), range(8))]
    pairs += [(1, a, b) for a, b in product(range(2), range(2))]
    pairs += [(62, *(int(v) for v in random.integers(0, 1 << 62, 2))) for _ in range(4)]
    for n, a, b in pairs:
        there = add(a=bits(a, n), b=bits(b, n), carry=False)
        assert number(there.b) + (there.carry << n) == a + b
        assert number(there.a) == a
        difference = (~add)(a=bits(a, n), b=bits(b, n), carry=False)
        assert number(difference.b) == (b - a) % (1 << n)
        assert difference.carry == (a > b)


def test_a_carry_that_is_set_is_flipped() -> None:
    add = function("adder", "toffoli", "python")
    assert add(a=bits(3, 2), b=bits(1, 2), carry=True).carry is False
    assert add(a=bits(1, 2), b=bits(1, 2), carry=True).carry is True


# ------------------------------------------------------------------ files

TEXTS = {
    "empty": b"",
    "one": b"a",
    "short": b"abc",
    "alike": b"z" * 700,
    "period": b"abcab" * 200,
    "letters": bytes(range(256)),
    "random": rng(5).integers(0, 256, 2000).astype(np.uint8).tobytes(),
}


def pages() -> bytes:
    """A text of some 400,000 bytes: the documentation."""
    return b"".join(page.read_bytes() for page in sorted((EXAMPLES.parent / "docs").glob("*.md")))


def packed(name: str, engine: str, text: bytes) -> bytes:
    """What `pack` makes of a text; and that it comes back."""
    pack = function(name, "pack", engine)
    there = pack(text=text, packed=[])
    assert there.text == []
    back = (~pack)(text=[], packed=there.packed.copy())
    assert bytes(back.text) == text and back.packed == []
    return bytes(there.packed)


def next_number(data: list[int]) -> int:
    """A number taken from the end of data, where it begins with its highest digit."""
    value, more = 0, True
    while more:
        digit = data.pop()
        value, more = value << 7 | digit & 127, digit >= 128
    return value


def unpacked(data: bytes) -> bytes:
    """A decoder for `lz.rasm` of its own, which knows nothing of lists or of searching."""
    rest, text = list(data), bytearray()
    n = next_number(rest)
    run = next_number(rest)
    while True:
        for _ in range(run):
            text.append(rest.pop())
        if len(text) == n:
            assert not rest
            return bytes(text)
        head = rest.pop()
        size = (head & 15) + (next_number(rest) if head & 15 == 15 else 0) + 4
        run = (head >> 4) + (next_number(rest) if head >> 4 == 15 else 0)
        back = next_number(rest)
        for _ in range(size):
            text.append(text[-back])


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["empty", "short", "period", "letters"])
@sample
def test_lz_is_read_by_another_decoder(engine: str, text: str) -> None:
    assert unpacked(packed("lz", engine, TEXTS[text])) == TEXTS[text]


@pytest.mark.parametrize("text", [t.encode() for t in ("the cat and the hat", "x" * 99)])
def test_lz_refuses_what_its_encoder_would_not_have_written(text: bytes) -> None:
    pack = function("lz", "pack", "python")
    data = packed("lz", "python", text)
    for k in range(len(data)):
        for damaged in (data[:k], data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :]):
            try:
                found = (~pack)(text=[], packed=damaged, max_steps=10**6, max_memory=10**8)
            except RvmError:
                continue
            # What it takes is the packed form of another text.
            assert packed("lz", "python", bytes(found.text)) == damaged


def transformed(text: bytes) -> tuple[bytes, int]:
    """The transform by sorting all rests of a text."""
    order = sorted(range(len(text) + 1), key=lambda i: text[i:])
    return bytes(text[i - 1] for i in order if i), order.index(0)


@wide
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["one", "short", "period", "letters"])
@sample
def test_bwt_is_the_sorted_one(engine: str, text: str) -> None:
    x = letters(TEXTS[text])
    there = function("bwt", "transform", engine)(y=np.zeros_like(x), first=0, x=x.copy())
    assert (there.y.tobytes(), there.first) == transformed(TEXTS[text])
    assert not there.x.any()
    back = (~function("bwt", "transform", engine))(**there)
    assert back.x.tobytes() == TEXTS[text] and back.first == 0 and not back.y.any()


@wide
@pytest.mark.parametrize("name", ["lz", "bwt", "rans"])
def test_all_texts_come_back(name: str) -> None:
    for text in TEXTS.values():
        packed(name, "python", text)


@pytest.mark.deep
def test_the_documentation_is_compressed_and_comes_back() -> None:
    text = pages()
    lz, sorted_ = packed("lz", "native", text), packed("bwt", "native", text)
    assert unpacked(lz) == text
    # As good as zlib's fastest, and better than its best.
    assert len(packed("rans", "native", lz)) < 1.03 * len(zlib.compress(text, 1))
    assert len(packed("rans", "native", sorted_)) < len(zlib.compress(text, 9))


@wide
def test_files_go_through_the_command_line(tmp_path: Path) -> None:
    file, small, again, secret = (tmp_path / n for n in ("text", "small", "again", "s.txt"))
    file.write_bytes(LICENSE)
    lz, chacha = str(EXAMPLES / "lz.rasm"), str(EXAMPLES / "chacha20.rasm")
    command("run", lz, f"text=@raw:{file}", "--out", f"packed=@raw:{small}")
    assert unpacked(small.read_bytes()) == LICENSE
    command("run", lz, f"packed=@raw:{small}", "--back", "--out", f"text=@raw:{again}")
    assert again.read_bytes() == LICENSE
    given = ("key=[1, 2, 3, 4, 5, 6, 7, 8]", "counter=1", "nonce=[0, 0, 7]")
    command("run", chacha, f"text=@raw:{file}", *given, "--out", f"text=@raw:{secret}")
    command("run", chacha, f"text=@raw:{secret}", *given, "--back", "--out", f"text=@raw:{again}")
    assert again.read_bytes() == LICENSE != secret.read_bytes()


def command(*words: str) -> None:
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
