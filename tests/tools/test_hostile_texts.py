"""Every text and file that the command line reads, damaged: a message and an exit code, soon."""

from __future__ import annotations

import io
import json
import random
import re
import resource
import signal
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rvm_tools.cli import cli
from sizes import thin

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")
CODES = (0, 1, 2, 3, 4)
"""What an exit code may be; 70 is a bug, 130 an interrupt that nobody sent."""
SECONDS = 20
"""No input takes so long, on a busy machine either."""
MEMORY = 3 << 30

PROGRAM = """\
record Body
    pos: f64
    spin: i64
end
func main(b: bool, u: u8, i: i64, h: f32, x: f64, z: c128, q: fixed, g: log64, p: Body,
          a: f64[n], m: i64[k, l], w: c128[o], s: stack[f64])
    add x, 1
    inc p.spin
"""
PROGRAM = PROGRAM.replace(",\n          ", ", ")
VALUES = {
    "b": "true", "u": "7", "i": "-12_000", "h": "1.5e-3", "x": "2.5", "z": "(1.0, -2.5)'c128",
    "q": "3'fixed", "g": "7.0'log64", "p": "{pos: 1, spin: 2}", "a": "[1, 2.5, inf]",
    "m": "[[1, 2], [3, 4]]", "w": "[1+2j, -3j]", "s": "[1, 2]",
}  # fmt: skip
BENCH = """\
# a circuit
INPUT(a)
INPUT(b)
OUTPUT(y)
t1 = NAND(a, b)
t2 = NOT(t1)
y = XOR(t1, t2)
"""
MODEL = """\
title = "mine"
temperature = 300.0
bit = 2.9e-21
step = 0.0
[adds]
default = 1e-13
f64 = 1.8e-12
"""
SESSION = """\
# a session
break 3
step 2
p x
goto 1
set x = 3
watch x
back
mark here
goto @here
x/4 a
info
"""
DIRECTIVES = """\
;! run f(x=1, a=[1, 2], p={pos: 1, spin: 2}) -> x=2 within 1e-6
;! run f(x=(1.0, 2), a=zeros(3)) fails R001, R002
;! fails A013
"""
HOT = (
    "", " ", "(", ")", "[", "]", "{", "}", ",", ":", "=", "'", '"', "-", "+", "@", ".", "..", "#",
    "\0", "\n", "\t", "\\", "é", "\u202e", "\U0001f600", "٣", "²", "0", "1", "-1", "1e999",
    "1e999999999999999999999", "1e-99999999999999999999", "9" * 5000, "0x" + "f" * 400, "1e4000",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e308", "1e309", "nan",
    "inf", "-inf", "1_", "_1", "1__0", "0b2", "j", "1j", "1+2j", "-0.0", "true", "null", "None",
    "'c128", "'fixed", "'fixed(62)", "'fixed(63)", "'fixed(99999999999999999999)", "'log64",
    "'f16", "'u8", "zeros(", "zeros(3)", "zeros(1000000000000)", "ones(99999, 99999, 99999)",
    "range(9999999999999)", "range(3)", "range(-1)", "zeros()", "(,)", "(1.0, -)", "((1))", "@x",
    "@/dev/null", "@v.json", "@v.npz:a", "@v.csv:b", "(" * 3000, "[" * 3000, "{a:" * 2000,
    "-" * 3000, "x" * 5000, "x.re", "a[", "a[1]", "a[1:2]", "a[999999999999]", "99999999999999",
    "1e6", "1.5", "k", "64M", "1e400", "0.1", "T", "1:2", "/", "//", "**", "9**9**9", "1<<9999",
)  # fmt: skip
TOKEN = re.compile(r"\d[\w.]*|\w+|\s+|.", re.DOTALL)


def damaged(rng: random.Random, text: str) -> str:
    """A text near another: its tokens dropped, doubled, exchanged, or others put in."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if not tokens:
            tokens = [rng.choice(HOT)]
        k = rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                del tokens[k]
            case 1:
                tokens.insert(k, rng.choice(tokens))
            case 2:
                j = rng.randrange(len(tokens))
                tokens[j], tokens[k] = tokens[k], tokens[j]
            case 3:
                tokens[k] = tokens[k] * rng.choice((2, 3, 300))
            case 4:
                tokens[k] = rng.choice(HOT)
            case _:
                tokens.insert(k, rng.choice(HOT))
    return "".join(tokens)


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes near others: cut, with bits turned, with numbers of the format's edges put in."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not out:
            break
        k = rng.randrange(len(out))
        match rng.randrange(6):
            case 0:
                del out[k:]
            case 1:
                out[k] ^= 1 << rng.randrange(8)
            case 2:
                del out[k : k + rng.randint(1, 8)]
            case 3:
                out[k:k] = out[k : k + rng.randint(1, 40)]
            case 4:
                width = rng.choice(("<H", "<I", "<Q"))
                most = (1 << 8 * struct.calcsize(width)) - 1
                struct.pack_into(
                    width,
                    out,
                    min(k, max(0, len(out) - 8)),
                    rng.choice((0, 1, most, most >> 1, rng.randint(0, most))),
                ) if len(out) >= 8 else None
            case _:
                out[k:k] = rng.choice((b"\xff", b"\0" * 9, b"\xfe\xff", b"'shape': (1000000000,"))
    return bytes(out)


def npz(rng: random.Random, arrays: dict[str, Any]) -> bytes:
    """A zip of arrays with one or another part damaged, its checksums mended."""
    out = io.BytesIO()
    how = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, array in arrays.items():
            inner = io.BytesIO()
            np.save(inner, array)
            data = inner.getvalue()
            if rng.random() < 0.4:
                data = damaged_header(rng, data)
            elif rng.random() < 0.3:
                data = damaged_bytes(rng, data)
            archive.writestr(rng.choice((name + ".npy",) * 8 + (name, "x", "a/b.npy")), data)
            if rng.random() < 0.05:
                archive.writestr(name + ".npy", data)
    data = out.getvalue()
    if rng.random() < 0.3:  # an unknown compression, encryption, sizes that are wrong
        at = data.rfind(b"PK\x01\x02")
        edited = bytearray(data)
        field, width = rng.choice(((6, "<H"), (8, "<H"), (10, "<H"), (20, "<I"), (24, "<I")))
        struct.pack_into(width, edited, at + field, rng.choice((1, 9, 12, 93, 0xFFFF)))
        local = {6: 4, 8: 6, 10: 8, 20: 18, 24: 22}[field]
        struct.pack_into(width, edited, local, rng.choice((1, 9, 12, 93, 0xFFFF)))
        data = bytes(edited)
    return damaged_bytes(rng, data) if rng.random() < 0.3 else data


def damaged_header(rng: random.Random, data: bytes) -> bytes:
    """An array file that says other things of itself."""
    shape = rng.choice(("(1000000000000,)", "(-1,)", "(3.5,)", "(" * 500, "3", "(0, 99999999999)",
                        "(4294967296, 4294967296)", "None", "(True,)", "()"))  # fmt: skip
    kind = rng.choice(("<f8", ">i4", "|O", "<U9999999", "<M8[s]", "[('a', '<f8')]", "<f2", "|V0",
                       "<c16", "|S0", "<f16", "q", "'", "[" * 900))  # fmt: skip
    text = f"{{'descr': '{kind}', 'fortran_order': {rng.choice((True, False, 3))}, "
    header = (text + f"'shape': {shape}, }}\n").encode()
    version = rng.choice((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header + data[128:]


# ------------------------------------------------------------ what is read


Case = tuple[list[str], dict[str, bytes]]
"""A command, and files for it."""


def a_value(rng: random.Random) -> Case:
    values = dict(VALUES)
    for name in rng.sample(list(values), rng.choice((1, 1, 3))):
        values[name] = damaged(rng, values[name])
    words = [f"{k}={v}" for k, v in values.items()]
    if rng.random() < 0.2:
        words[rng.randrange(len(words))] = damaged(rng, rng.choice(words))
    return ["run", "p.rasm", "--", *words], {}


def a_value_file(rng: random.Random) -> Case:
    name = rng.choice(list(VALUES))
    arrays = {"x": np.float64(1), "a": np.arange(3.0), "m": np.ones((2, 2), int), "z": 1j}
    table = "a,b\n1,2\n3,4.5\n# c\n" if rng.random() < 0.5 else "1,2\n3,4\n"
    objects = {k: [1, 2.5, {"pos": 1, "spin": 2}, "1+2j", "inf", True][k2 % 6]
               for k2, k in enumerate(VALUES)}  # fmt: skip
    text = json.dumps(rng.choice((objects, {"values": objects}, [1, 2, 3], [[1, 2], [3, 4]])))
    one = io.BytesIO()
    np.save(one, arrays[rng.choice(list(arrays))])
    header = damaged_header(rng, one.getvalue())
    files = {
        "v.npy": rng.choice((damaged_bytes(rng, one.getvalue()), header)),
        "v.npz": npz(rng, arrays),
        "v.csv": encoded(rng, damaged(rng, table)),
        "v.json": encoded(rng, damaged(rng, text)),
    }
    which = rng.choice(list(files))
    spec = which + rng.choice(("", "", ":a", ":b", ":", ":x:y"))
    if rng.random() < 0.5:
        name, spec = rng.choice(
            (
                ("a", "v.npz:a"),
                ("x", "v.npz:x"),
                ("m", "v.npz:m"),
                ("a", "v.csv:b"),
                ("m", "v.csv"),
                ("a", "v.npy"),
                ("x", "v.json:x"),
                ("p", "v.json:h"),
            )
        )
        which = spec.split(":")[0]
    values = VALUES | {name: f"@{spec}"}
    words = [f"{k}={v}" for k, v in values.items()]
    if rng.random() < 0.2:
        words = [f"@{spec}"]
    return ["run", "p.rasm", "--", *words], {which: files[which]}


def encoded(rng: random.Random, text: str) -> bytes:
    """A text as bytes, some of them no UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    return damaged_bytes(rng, data) if rng.random() < 0.1 else data


def a_circuit(rng: random.Random) -> Case:
    files = {"c.bench": encoded(rng, damaged(rng, BENCH))}
    return ["pebble", "c.bench", "--pebbles", "3", "--time-limit", "0.1"], files


def a_plan(rng: random.Random, plan: bytes) -> Case:
    with zipfile.ZipFile(io.BytesIO(plan)) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in parts.items():
            if rng.random() < 0.5:
                array = np.load(io.BytesIO(data), allow_pickle=False)
                data = resaved(rng, array)
            archive.writestr(name, data)
    data = out.getvalue()
    if rng.random() < 0.2:
        data = damaged_bytes(rng, data)
    return ["pebble", "plan.npz", rng.choice(("--check", "--actions", "--compare", "--picture"))], {
        "plan.npz": data
    }


def resaved(rng: random.Random, array: Any) -> bytes:
    """An array of a plan with another content: texts damaged, numbers at their edges."""
    if array.dtype.kind in "US":
        array = np.array(damaged(rng, str(array)) if array.ndim == 0 else array)
    elif array.dtype == np.uint8 and array.ndim == 1 and rng.random() < 0.7:
        text = damaged(rng, array.tobytes().decode("utf-8", "replace"))
        array = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    elif array.size:
        array = array.copy()
        edges = (0, 1, -1, 127, 255, 1 << 31, (1 << 63) - 1, np.inf, -np.inf, np.nan, 1e300)
        with np.errstate(all="ignore"):
            flat = array.reshape(-1)
            value = np.asarray(rng.choice(edges))
            flat[rng.randrange(flat.size)] = value.astype(array.dtype)
            if rng.random() < 0.2:
                array = array.astype(rng.choice((np.float64, np.int64, np.complex128, np.int8)))
            if rng.random() < 0.1:
                array = array.reshape(-1)[: rng.randint(0, array.size)]
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    data = out.getvalue()
    return damaged_header(rng, data) if rng.random() < 0.1 else data


def a_model(rng: random.Random) -> Case:
    files = {"m.toml": encoded(rng, damaged(rng, MODEL))}
    return ["trace", "small.rasm", "x=3", "--energy", "./m.toml"], files


def a_session(rng: random.Random) -> Case:
    files = {"s.rdb": encoded(rng, damaged(rng, SESSION))}
    return ["debug", "small.rasm", "x=3", "--batch", "-x", "s.rdb"], files


def directives(rng: random.Random) -> Case:
    text = damaged(rng, DIRECTIVES) + "\nfunc f(x: i64)\n    inc x\n"
    return ["check", "d.rasm", "--engine", "reference"], {"d.rasm": encoded(rng, text)}


OPTIONS = (
    ["run", "small.rasm", "x=3", "--max-steps", "1e6"],
    ["run", "small.rasm", "x=3", "--max-memory", "64M"],
    ["run", "small.rasm", "x=3", "--tolerance", "1e-6"],
    ["run", "small.rasm", "x=3", "--engine", "python"],
    ["run", "small.rasm", "-f", "main", "x=3"],
    ["pebble", "--steps", "100", "--pebbles", "9"],
    ["pebble", "--steps", "100", "--time", "1e4"],
    ["pebble", "--steps", "100", "--bytes", "2GB", "--state-bytes", "40MB"],
    ["pebble", "--steps", "9", "--pebbles", "4", "--costs", "1,2,1,1,1,1,1,1,1"],
    ["pebble", "--steps", "9", "--pebbles", "4", "--sizes", "8,16,8,8,8,8,8,8,8"],
    ["pebble", "--steps", "9", "--pebbles", "4", "--in-place", "2,3,7-9"],
    [
        "pebble",
        "--steps",
        "9",
        "--pebbles",
        "4",
        "--goal",
        "gradient",
        "--disk",
        "2",
        "--write",
        "1",
    ],
    ["pebble", "--steps", "9", "--pebbles", "4", "--price", "2.5"],
    ["pebble", "--steps", "9", "--strategy", "bennett", "--radix", "3", "--pebbles", "9"],
    [
        "pebble",
        "--steps",
        "9",
        "--energy",
        "1e-9",
        "--step-energy",
        "1e-20",
        "--temperature",
        "300",
    ],
    ["grad", "grad.rasm", "x=3", "y=0", "--loss", "y"],
    ["explain", "A013"],
    ["trace", "small.rasm", "x=3", "--from", "1", "--to", "3"],
)


def an_option(rng: random.Random) -> Case:
    words = list(rng.choice(OPTIONS))
    k = rng.choice([k for k, w in enumerate(words) if k and not w.startswith("-")])
    word = damaged(rng, words[k])
    # Steps by the ten thousand are fair, and planned for as long as that takes.
    if ".rasm" not in words[k] and not re.search(r"[1-9][\d_]{3,11}(?!\d)", word):
        words[k] = word
    return words, {}


READERS: dict[str, Callable[[random.Random], Case]] = {
    "values": a_value,
    "files of values": a_value_file,
    "circuits": a_circuit,
    "models": a_model,
    "sessions": a_session,
    "directives": directives,
    "options": an_option,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few programs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.rasm").write_text(PROGRAM)
    (tmp_path / "small.rasm").write_text("func main(x: i64)\n    inc x\n    inc x\n    inc x\n")
    (tmp_path / "grad.rasm").write_text("func main(y: f64, x: f64)\n    add y, x * x\n")
    return tmp_path


@contextmanager
def bounded() -> Iterator[None]:
    """At most SECONDS and about MEMORY more than now."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError("this takes too long")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    old = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, old)


def tried(case: Case, here: Path) -> int:
    """The exit code of a case, which must be one of those that are documented."""
    words, files = case
    for name, data in files.items():
        (here / name).write_bytes(data)
    words = [w for w in words if "\0" not in w and not re.search("[\ud800-\udfff]", w)]
    with bounded():
        result = CliRunner().invoke(cli, words, prog_name="rvm")
    assert result.exit_code in CODES, (words, result.output[-2000:], result.exception)
    assert "Traceback" not in result.output
    assert len(result.output) < 200_000, words
    return result.exit_code


def fuzz(make: Callable[[random.Random], Case], here: Path, seeds: range) -> Counter[int]:
    seen: Counter[int] = Counter()
    for seed in seeds:
        try:
            seen[tried(make(random.Random(seed)), here)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    return seen


def saved_plan(here: Path) -> bytes:
    assert CliRunner().invoke(
        cli, ["pebble", "--steps", "20", "--pebbles", "8", "--save", "plan.npz"]
    ).exit_code == 0  # fmt: skip
    return (here / "plan.npz").read_bytes()


@thin
@pytest.mark.parametrize("name", READERS)
def test_damaged_texts(name: str, here: Path) -> None:
    seen = fuzz(READERS[name], here, range(60))
    assert seen[1] + seen[2] > 5, seen


def test_damaged_plans(here: Path) -> None:
    plan = saved_plan(here)
    seen = fuzz(lambda rng: a_plan(rng, plan), here, range(60))
    assert seen[1] > 10, seen


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_texts(name: str, here: Path) -> None:
    print(name, fuzz(READERS[name], here, range(1000, 6000)))


@pytest.mark.soak
def test_many_damaged_plans(here: Path) -> None:
    plan = saved_plan(here)
    print("plans", fuzz(lambda rng: a_plan(rng, plan), here, range(1000, 6000)))
