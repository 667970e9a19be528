"""Every reason to refuse a file, each made by changing one field of a sound one."""

from __future__ import annotations

import struct
import subprocess
import sys
import time

import pytest
from attack.surgery import join, patched, tables
from verify.making import Maker, array, program

from rvm.codec import decode, encode
from rvm.codec.layout import (
    BY_TAG,
    DIRECTORY,
    HEADER,
    MAX_LAYOUT_DEPTH,
    NONE,
    TABLES,
    seal,
)
from rvm.expr import Apply, Const, Index, Span
from rvm.faults import BytecodeError
from rvm.program import Dim, Param, Program, Record, Source
from rvm.types import C128, F64, I64, U8


def sample() -> bytes:
    """A file with something in every table."""
    m = Maker("f", x=array(), y=F64, i=I64, z=C128, b=U8)
    pair = Record("pair", (("z", 3), ("b", 4)))
    m.params = (Param("x", 0), Param("y", 1), Param("i", 2), Param("p", pair))
    m.dims = [Dim("n", 0, 0)]
    t = m.local("t", array(), m.length("x"))
    m.op("alloc", t, 0.0)
    m.op("add", m.elem("x", m["i"]), Apply("*", (m["y"], Const(2.5))))
    m.op("swap", t, m.at("x", Index((Span(None, m["i"]),))))
    m.op("inc", m["b"])
    m.op("print", Apply("==", (m["i"], Const(3))), aux=1, symbol="text")
    m.op("free", t, 0.0)
    f = m.function()
    return encode(Program((f,), "f", (Source("f.rasm", "…"),)))


SAMPLE = sample()


def code_of(data: bytes) -> str:
    with pytest.raises(BytecodeError) as caught:
        decode(data)
    assert caught.value.code.startswith("B")
    return caught.value.code


def rows(tag: str) -> list[tuple[int, ...]]:
    return list(BY_TAG[tag].record.iter_unpack(tables(SAMPLE)[tag]))


def row_of(tag: str, field: int, value: int) -> int:
    """The first record of a table whose field has this value."""
    return next(k for k, row in enumerate(rows(tag)) if row[field] == value)


def test_the_sample_is_sound_and_surgery_leaves_it_whole() -> None:
    assert encode(decode(SAMPLE)) == SAMPLE
    assert join(tables(SAMPLE)) == SAMPLE
    assert all(tables(SAMPLE).values())


def test_b001_other_files() -> None:
    for data in (b"", b"\x7fELF", b"func main()\n", b"\x8fRVM\n\x1a\n" + SAMPLE[7:]):
        assert code_of(data) == "B001"


def test_b002_versions_and_flags() -> None:
    for at in (8, 10):
        data = bytearray(SAMPLE)
        data[at] ^= 2
        assert code_of(seal(data)) == "B002"


def test_b003_every_truncation_and_an_extension() -> None:
    assert {code_of(SAMPLE[:n]) for n in range(8, len(SAMPLE))} == {"B003"}
    assert code_of(SAMPLE + b"\0") == "B003"


def test_b004_every_single_bit_behind_the_header() -> None:
    for at in range(24, len(SAMPLE)):
        data = bytearray(SAMPLE)
        data[at] ^= 1 << at % 8
        assert code_of(bytes(data)) == "B004"


def test_b003_a_file_of_a_header_only() -> None:
    assert code_of(seal(bytearray(SAMPLE[: HEADER.size]))) == "B003"


def test_b005_directories() -> None:
    for k in range(len(TABLES)):
        for field in range(4):
            data = bytearray(SAMPLE)
            at = HEADER.size + k * DIRECTORY.size + 4 * field
            data[at] ^= 1
            assert code_of(seal(data)) == "B005"
    contents = tables(SAMPLE)
    assert code_of(join({**contents, "MAIN": contents["MAIN"] * 2})) == "B005"
    assert code_of(join({**contents, "MAIN": b""})) == "B005"
    data = bytearray(SAMPLE) + b"\0"
    assert code_of(seal(data)) == "B005"
    struct.pack_into("<I", data := bytearray(SAMPLE), 12, 3)
    assert code_of(seal(data)) == "B005"


INDICES = [
    ("OPCD", 0, 0), ("FUNC", 0, 0), ("TYPE", 0, 4), ("CNST", 0, 0), ("REGS", 0, 0),
    ("REGS", 0, 1), ("PARM", 0, 0), ("PARM", 0, 2), ("DIMS", 0, 0), ("DIMS", 0, 1),
    ("CODE", 0, 0), ("CODE", 0, 4), ("FNCT", 0, 0), ("SRCS", 0, 0), ("SRCS", 0, 1),
    ("MAIN", 0, 0), ("LIST", 0, 0), ("LIST", -1, 0),
]  # fmt: skip


@pytest.mark.parametrize(("tag", "row", "field"), INDICES)
@pytest.mark.parametrize("value", [10_000, 0xFFFFFFFF])
def test_b006_indices_beyond_their_tables(tag: str, row: int, field: int, value: int) -> None:
    data = patched(SAMPLE, tag, row % len(rows(tag)), field, value)
    assert code_of(data) == "B006"


def test_b006_an_expression_that_contains_itself_or_a_later_one() -> None:
    k = row_of("EXPR", 0, 2)
    first = rows("EXPR")[k][2]
    for value in (k, k + 1):
        assert code_of(patched(SAMPLE, "LIST", first, 0, value)) == "B006"
    for kind, field in ((0, 1), (1, 1), (1, 2)):
        item = row_of("ITEM", 0, kind)
        assert code_of(patched(SAMPLE, "ITEM", item, field, 9_999)) == "B006"
    for kind, field in ((0, 1), (1, 1), (2, 1)):
        k = row_of("EXPR", 0, kind)
        assert code_of(patched(SAMPLE, "EXPR", k, field, 9_999)) == "B006"


def test_b007_strings() -> None:
    assert code_of(patched(SAMPLE, "STRS", 1, 0, 0)) == "B007"
    assert code_of(patched(SAMPLE, "STRS", 0, 1, 1 << 30)) == "B007"
    contents = tables(SAMPLE)
    assert code_of(join({**contents, "TEXT": b"\xff" + contents["TEXT"][1:]})) == "B007"
    assert code_of(join({**contents, "TEXT": contents["TEXT"] + b"x"})) == "B007"


@pytest.mark.parametrize(
    ("field", "value"), [(0, 3), (0, 255), (1, 33), (1, 1), (2, 63), (2, 1), (3, 1), (4, 0)]
)
def test_b008_types(field: int, value: int) -> None:
    assert code_of(patched(SAMPLE, "TYPE", row_of("TYPE", 0, 0), field, value)) == "B008"


def test_b008_arrays_of_no_or_too_many_dimensions() -> None:
    for rank in (0, 33):
        assert code_of(patched(SAMPLE, "TYPE", row_of("TYPE", 0, 1), 1, rank)) == "B008"


def test_b009_constants() -> None:
    assert code_of(patched(SAMPLE, "CNST", 0, 1, 1)) == "B009"
    assert code_of(patched(SAMPLE, "CNST", 0, 2, b"\xff" * 16)) == "B009"
    an_array = row_of("TYPE", 0, 1)
    assert code_of(patched(SAMPLE, "CNST", 0, 0, an_array)) == "B009"


def test_b010_expressions() -> None:
    k = row_of("EXPR", 0, 2)
    constant = row_of("EXPR", 0, 0)
    assert code_of(patched(SAMPLE, "EXPR", k, 0, 3)) == "B010"
    assert code_of(patched(SAMPLE, "EXPR", constant, 2, 1)) == "B010"
    first = rows("EXPR")[row_of("EXPR", 0, 2)][2]
    assert code_of(patched(SAMPLE, "LIST", first, 0, 1)) == "B010"  # dim of what is not an array
    assert code_of(patched(SAMPLE, "STEP", 0, 0, 4)) == "B010"
    assert code_of(patched(SAMPLE, "STEP", 0, 0, 1)) == "B010"
    assert code_of(patched(SAMPLE, "ITEM", 0, 0, 2)) == "B010"


def test_b012_b013_names_that_are_not_known_here() -> None:
    data = SAMPLE.replace(b"swap", b"swop")
    assert code_of(seal(bytearray(data))) == "B012"
    text = row_of("OPCD", 0, rows("OPCD")[0][0])
    assert code_of(patched(SAMPLE, "FUNC", 0, 0, rows("OPCD")[text][0])) == "B013"


def test_b014_layouts() -> None:
    record = next(k for k, r in enumerate(rows("PARM")) if r[1] != NONE)
    assert code_of(patched(SAMPLE, "PARM", record, 1, 3)) == "B014"
    deep = Record("r", ())
    for _ in range(MAX_LAYOUT_DEPTH - 1):
        deep = Record("r", (("x", deep),))
    m = Maker("f")
    m.params = (Param("p", deep),)
    data = encode(program(m))
    decode(data)
    contents = tables(data)
    more = contents["PARM"][:12] + contents["PARM"]
    count = len(contents["PARM"]) // 12
    assert code_of(patched(join({**contents, "PARM": more}), "FNCT", 0, 4, count + 1)) == "B014"
    m.params = (Param("p", Record("r", (("x", deep),))),)
    with pytest.raises(BytecodeError):
        encode(program(m))


@pytest.mark.parametrize("tag", ["LIST", "ITEM", "STEP", "EXPR", "REGS", "CODE", "LINE", "DIMS"])
def test_b015_records_without_an_owner(tag: str) -> None:
    contents = tables(SAMPLE)
    width = BY_TAG[tag].record.size
    more = contents[tag] + contents[tag][:width]
    assert code_of(join({**contents, tag: more})) == "B015"
    assert code_of(join({**contents, tag: contents[tag][:-width]})) == "B015"


def test_b015_lists_that_overlap() -> None:
    k = next(k for k, r in enumerate(rows("CODE")) if k and r[2] == 2)
    assert code_of(patched(SAMPLE, "CODE", k, 1, 0)) == "B015"


def test_b016_two_functions_of_one_name() -> None:
    f, g = Maker("f", x=I64), Maker("g", x=I64)
    data = encode(program(f, g))
    name = BY_TAG["FNCT"].record.unpack_from(tables(data)["FNCT"])[0]
    assert code_of(patched(data, "FNCT", 1, 0, name)) == "B016"


def test_b017_too_many_operands() -> None:
    assert code_of(patched(SAMPLE, "CODE", 0, 2, 256)) == "B017"


# --- files made to explode


def bomb(levels: int, uses: int) -> bytes:
    """A file of expressions each of which holds the one before it twice."""
    m = Maker("f", x=I64, y=I64)
    m.op("add", m["y"], Apply("+", (m["x"], m["x"])))
    contents = dict(tables(encode(program(m))))
    exprs = list(BY_TAG["EXPR"].record.iter_unpack(contents["EXPR"]))
    lists = [n for (n,) in BY_TAG["LIST"].record.iter_unpack(contents["LIST"])]
    plus = next(r for r in exprs if r[0] == 2)
    target = next(k for k, r in enumerate(exprs) if r[:2] == (1, 1))
    nodes, numbers = lists[:-2], exprs
    for _ in range(levels):
        top = len(numbers) - 1
        numbers.append((2, plus[1], len(nodes), 2))
        nodes += [top, top]
    regs = [(*r[:2], len(nodes), 0) for r in BY_TAG["REGS"].record.iter_unpack(contents["REGS"])]
    op, _, _, aux, symbol = next(BY_TAG["CODE"].record.iter_unpack(contents["CODE"]))
    code = []
    for _ in range(uses):
        code.append((op, len(nodes), 2, aux, symbol))
        nodes += [target, len(numbers) - 1]
    made = {"EXPR": numbers, "LIST": [(n,) for n in nodes], "CODE": code, "REGS": regs}
    for tag, table in made.items():
        contents[tag] = b"".join(BY_TAG[tag].record.pack(*row) for row in table)
    row = list(BY_TAG["FNCT"].record.unpack(contents["FNCT"]))
    row[11:13] = 0, 0
    contents["LINE"] = b""
    for tag, field in (("EXPR", 8), ("CODE", 10), ("LIST", 14)):
        row[field] = len(contents[tag]) // BY_TAG[tag].record.size
    contents["FNCT"] = BY_TAG["FNCT"].record.pack(*row)
    return join(contents)


def test_b011_shared_parts_do_not_blow_up() -> None:
    assert code_of(bomb(50_000, 1)) == "B011"
    assert len(decode(bomb(10, 200)).functions[0].code) == 200


def test_b011_a_small_file_cannot_ask_for_much_work() -> None:
    data = bomb(10, 2_000)  # 4 million nodes in 56 kilobytes
    assert len(data) < 60_000
    start = time.thread_time()
    assert code_of(data) == "B011"
    assert time.thread_time() - start < 2.0


def test_encode_refuses_the_same() -> None:
    m = Maker("f", x=I64, y=I64)
    node = m["x"]
    for _ in range(10):
        node = Apply("+", (node, node), I64)  # type: ignore[assignment]
    for _ in range(2_000):
        m.raw("add", m["y"], node)
    with pytest.raises(BytecodeError) as caught:
        encode(program(m))
    assert caught.value.code == "B018"


COLLECTED = """
import gc, sys
from rvm.codec import decode
from rvm.faults import BytecodeError

data = sys.stdin.buffer.read()
gc.disable()
for k in range(50):
    try:
        decode(data)
    except BytecodeError as error:
        error.itself = error
    gc.collect()
"""


def test_what_an_error_leaves_behind_is_collected() -> None:
    """CPython crashes where a memoryview is collected before an iterator that exports it."""
    bad = patched(SAMPLE, "CODE", 0, 0, 9_999)
    assert code_of(bad)
    done = subprocess.run([sys.executable, "-c", COLLECTED], input=bad, check=False)
    assert done.returncode == 0
