"""Bytes and texts in, results out: every format is read back to the same bits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rvm_tools import show
from rvm_tools.outputs import outputs, write
from rvm_tools.values import assignments, inputs_for
from sizes import thin
from tools.running import rvm, rvm_json

from rvm import assemble
from rvm.numbers import system
from rvm.types import SCALARS, Scalar

CIPHER = """
func cipher(text: u8[n], key: u8[m], count: i64)
    extern forward
        print "{} bytes", n
    end
    for i = 0 to n - 1
        xor text[i], key[i % m]
        inc count
    end
"""
NUMBERS = """
record Pair
    a: i64
    b: f64
end
func f(x: f64[n], k: u64[n], b: bool[n], q: fixed[n], g: log64[n], z: c128[n], \\
       s: f32[n], A: i16[m, n], p: Pair)
    add x, 1.0
    inc p.a
"""
GIVEN = (
    "x=[0.1,1e300,-0.0]", "k=[18446744073709551615,0,1]", "b=[true,false,true]", "q=[0.5,-0.25,3]",
    "g=[1,2.5,7]", "z=[1+2j,0,3]", "s=[0.1,1,2]", "A=[[1,2,3],[4,5,-6]]", "p={a: 1, b: 0.25}",
)  # fmt: skip
"""Values of each kind of number."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cipher.rasm").write_text(CIPHER)
    (tmp_path / "numbers.rasm").write_text(NUMBERS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_bytes_of_a_file_go_there_and_back(here: Path) -> None:
    data = bytes(range(256)) * 3
    (here / "letter").write_bytes(data)
    rvm("run", "cipher.rasm", "text=@raw:letter", "key=text:köy", "count=0", "--out", "text=a.bin")
    key = "köy".encode()
    secret = bytes(b ^ key[i % len(key)] for i, b in enumerate(data))
    assert (here / "a.bin").read_bytes() == secret
    back = ("run", "cipher.rasm", "text=@-", r'key="k\u00f6\x79"', "count=768", "--back")
    found = rvm(*back, "--out", "text=-", input=secret)
    assert found.stdout_bytes == data


def test_nothing_else_goes_to_standard_output() -> None:
    found = rvm("run", "cipher.rasm", "text=text: a\n", "key=[0]", "count=0", "--out", "text=-")
    assert found.stdout_bytes == b" a\n" and found.stderr == "3 bytes\n"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("text:", b""),
        ('text:"x', b'"x'),
        ('""', b""),
        (r'"a\n\t\0\"\\\xff"', b'a\n\t\0"\\\xff'),
        ('"\N{SNOWMAN}"', "\N{SNOWMAN}".encode()),
    ],
)
def test_texts_are_their_bytes(text: str, data: bytes) -> None:
    given = ("run", "cipher.rasm", f"text={text}", "key=[0]", "count=0")
    assert rvm_json(*given)["values"]["text"] == list(data)


def test_each_format_of_all_values_is_read_back(here: Path) -> None:
    rvm("run", "numbers.rasm", *GIVEN, "--out", "all.npz", "--out", "all.json")
    want = rvm_json("run", "numbers.rasm", *GIVEN, "--back")["values"]
    for file in ("all.npz", "all.json"):
        twice = rvm_json("run", "numbers.rasm", f"@{file}", "--back")["values"]
        again = rvm_json("run", "numbers.rasm", f"@{file}", "--back", "--round-trip")
        assert twice["x"] != want["x"] and again["restored"]
        assert {k: v for k, v in twice.items() if k not in "xp"} == {
            k: v for k, v in want.items() if k not in "xp"
        }


# Tables hold plain numbers, and bytes have no shape.
HELD = {
    ".npy": ("x", "k", "b", "q", "g", "z", "s", "A", "p.a"),
    ".json": ("x", "k", "b", "q", "g", "z", "s", "A", "p.a"),
    ".bin": ("x", "k", "b", "q", "g", "z", "s", "p.a"),
    ".csv": ("x", "k", "q", "s", "A"),
}


@thin
@pytest.mark.parametrize(("suffix", "name"), [(s, n) for s, names in HELD.items() for n in names])
def test_each_format_of_one_value_is_read_back(name: str, suffix: str, here: Path) -> None:
    file = f"one{suffix}"
    rvm("run", "numbers.rasm", *GIVEN, "--out", f"{name}={file}")
    want = rvm_json("run", "numbers.rasm", *GIVEN)["values"]
    others = [g for g in GIVEN if not g.startswith(f"{name.split('.')[0]}=")]
    spec = f"@raw:{file}" if suffix == ".bin" else f"@{file}"
    given = f"{name}={spec}" + (f":{name}" if suffix == ".csv" and name != "A" else "")
    more = ["p.b=0.25"] if name == "p.a" else []
    found = rvm_json("run", "numbers.rasm", *others, given, *more)["values"]
    if name in ("x", "p.a"):  # what the run changed
        found = rvm_json("run", "numbers.rasm", *others, given, *more, "--back")["values"]
        assert found["p"]["a"] in (0, 1)
        return
    assert found[name] == want[name]


def test_a_table_has_a_column_for_each_array(here: Path) -> None:
    given = ("run", "cipher.rasm", "text=text:abc", "key=[1,2,3]", "count=0")
    rvm(*given, "--out", "key=k.csv")
    assert (here / "k.csv").read_text() == "key\n1\n2\n3\n"
    assert "columns of one length" in rvm(*given, "--out", "all.csv", code=2).stderr
    assert not (here / "all.csv").exists()


def test_derivatives_of_each_kind_are_written(here: Path) -> None:
    (here / "s.rasm").write_text("func s(x: f64[n], y: f64)\n    add y, sum(x ** 2)")
    given = ("grad", "s.rasm", "x=[1,2]", "y=0", "--loss", "y")
    rvm(*given, "--hessian", "--out", "g.npz", "--out", "x=x.csv", "--out", "x,x=h.npy")
    assert np.array_equal(np.load(here / "h.npy"), 2 * np.eye(2))
    assert (here / "x.csv").read_text() == "x\n2.0\n4.0\n"
    assert set(np.load(here / "g.npz")) == {"x", "y", "x,x", "x,y", "y,x", "y,y"}
    assert rvm(*given, "--out", "x=-").stdout_bytes == np.array([2.0, 4.0]).tobytes()
    assert "there is no `z`" in rvm(*given, "--out", "z=z.npy", code=2).stderr


def test_programs_go_through_pipes() -> None:
    data = rvm("asm", "cipher.rasm", "-o", "-").stdout_bytes
    text = rvm("dis", "-", "-o", "-", input=data).stdout
    assert rvm("asm", "-", "-o", "-", input=text).stdout_bytes == data
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--out", "o.txt"], "--out o.npz"),
        (["--out", "o.bin"], "--out NAME=o.bin"),
        (["--out", "text=o.npz"], "--out text=o.npy"),
        (["--out", "txt=o.bin"], "did you mean `text`?"),
        (["--out", "-"], "--out NAME=-"),
        (["--out", "text=a.bin", "--out", "key=a.bin"], "names `a.bin` twice"),
        (["key=@-", "--out", "o.npz"], "is given twice"),
    ],
)
def test_what_is_asked_for_is_checked_before_the_run(args: list[str], says: str) -> None:
    found = rvm("run", "cipher.rasm", "text=text:abc", "key=[1]", "count=0", *args, code=2)
    assert says in found.stderr and found.stdout == ""
    assert [p.name for p in Path().iterdir()].sort() == ["cipher.rasm", "numbers.rasm"].sort()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("count=text:a", "a text is given"),
        ('text="a', "no closing quote"),
        (r'text="\q"', "is not an escape"),
        (r'text="\ud800"', "half of a surrogate pair"),
        ("text=@raw:none", "can't read values"),
        ("count=@raw:odd", "3 bytes are not a whole number of i64s"),
        ("text=@odd.bin", "@raw:odd.bin has its bytes"),
    ],
)
def test_what_is_not_a_value(value: str, says: str, here: Path) -> None:
    (here / "odd").write_bytes(b"abc")
    given = {"text": "text=[1]", "key": "key=[1]", "count": "count=0"}
    given[value.split("=")[0]] = value
    assert says in rvm("run", "cipher.rasm", *given.values(), code=1).stderr


def test_a_text_of_a_program_reads_no_standard_input(here: Path) -> None:
    text = "func f(x: u8[n])\n    inc x[0]\n;! run f(x=@-) -> x=[2]\n"
    (here / "d.rasm").write_text(text)
    assert "I011" in rvm("check", "d.rasm", code=1, input=b"\1").stderr
    (here / "one.dat").write_bytes(b"\1")
    (here / "d.rasm").write_text(text.replace("@-", "@raw:one.dat"))
    assert json.loads(rvm("check", "d.rasm", "--json").stdout)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n# 3\n\n4,five\n", "line 5, column 2: `five` is not a number"),
        ("1,2\n3\n", "line 2 has 1 number, and line 1 has 2"),
        ("1,\n2,3\n", "line 1, column 2: is empty"),
        ("a,b\n1,\n", "line 2, column 2: is empty"),
    ],
)
def test_a_wrong_number_in_a_table_is_reported_by_its_line(
    text: str, says: str, here: Path
) -> None:
    (here / "t.csv").write_text(text)
    (here / "m.rasm").write_text("func f(x: f64[n, m])\n    add x, 1.0")
    found = rvm("run", "m.rasm", "x=@t.csv", code=1).stderr
    assert says in found


def test_bytes_go_to_files_of_any_suffix(here: Path) -> None:
    for name in ("letter", "letter.txt", "letter.npz", "letter.bin"):
        given = ("cipher.rasm", "text=text:hello", "key=text:k", "count=0")
        rvm("run", *given, "--out", f"text=@raw:{name}")
        assert (here / name).read_bytes() == bytes(c ^ ord("k") for c in b"hello")
    shown = rvm("run", *given, "--out", "text=other", code=2).stderr
    assert "--out text=@raw:other" in shown
    assert "U012" in rvm("run", *given, "--out", "@raw:other", code=2).stderr


def test_a_matrix_of_bools_is_read_back(here: Path) -> None:
    (here / "f.rasm").write_text("func f(x: bool[m, n])\n")
    rvm("run", "f.rasm", "x=[[true,false],[false,false]]", "--out", "x=x.csv")
    found = rvm_json("run", "f.rasm", "x=@x.csv")["values"]["x"]
    assert found == [[True, False], [False, False]]
    (here / "x.csv").write_text("true,false\n1,x\n")
    assert (
        "line 2, column 2: `x` is not a number" in rvm("run", "f.rasm", "x=@x.csv", code=1).stderr
    )


@pytest.mark.parametrize("kind", ["bool", "i8", "u64", "f32", "f64", "c128", "fixed", "log64"])
def test_a_column_of_each_kind_is_read_back(here: Path, kind: str) -> None:
    values = {
        "bool": "[true,false]",
        "c128": "[1+2j,-0.1-1e-30j]",
        "u64": "[18446744073709551615,0]",
    }
    (here / "f.rasm").write_text(f"func f(x: {kind}[n])\n")
    rvm(
        "run",
        "f.rasm",
        f"x={values.get(kind, '[1,0.5]' if 'f' in kind else '[1,7]')}",
        "--out",
        "x=x.csv",
    )
    for back in ([], ["--back"]):
        rvm("run", "f.rasm", "x=@x.csv", *back, "--out", "x=again.csv")
        assert (here / "again.csv").read_bytes() == (here / "x.csv").read_bytes()


def test_complex_numbers_in_a_table(here: Path) -> None:
    (here / "z.csv").write_text("j,x\n1+2j,3\n-0.0,nan+1e-300j\n")
    (here / "f.rasm").write_text("func f(z: c128[n], x: c128[n])\n")
    found = rvm_json("run", "f.rasm", "z=@z.csv:j", "x=@z.csv:x")["values"]
    assert [complex(v) for v in found["z"]] == [1 + 2j, 0]
    assert str(complex(found["x"][1])) == "(nan+1e-300j)"
    (here / "g.rasm").write_text("func f(x: f64[n])\n")
    message = rvm_json("run", "g.rasm", "x=@z.csv:j", code=1)["errors"][0]["message"]
    assert "complex" in message


NUMBERS_OF = (*(t for t in SCALARS.values() if not t.is_bool), Scalar("fixed", 60))
COLUMNS = ", ".join(f"x{k}: {t}[n]" for k, t in enumerate(NUMBERS_OF))


@pytest.mark.parametrize("seed", range(3))
def test_bits_of_all_types_are_read_back(here: Path, seed: int) -> None:
    """Numbers at the limits of their types and any others, by themselves and beside all others."""
    rng = np.random.default_rng(seed)
    function = assemble(f"func f({COLUMNS})\n").f.function
    values = [bits(rng, t)[:46] for t in NUMBERS_OF]
    held = show.arrays(function, values)
    for file in ("all.npz", "all.json", "all.csv"):
        write(outputs([file], "results", False), held, lambda: show.as_json(function, values))
        words = [f"{n}=@all.csv:{n}" for n in held] if ".csv" in file else [f"@{file}"]
        compare(inputs_for(function, assignments(words, here), here), held)


@pytest.mark.parametrize("t", NUMBERS_OF, ids=str)
def test_bits_of_a_matrix_are_read_back(here: Path, t: Scalar) -> None:
    function = assemble(f"func f(x: {t}[m, n], s: stack[{t}])\n").f.function
    every = bits(np.random.default_rng(3), t)
    for shape in ((len(every) // 3, 3), (1, len(every)), (len(every), 1)):
        values = [every[: shape[0] * shape[1]].reshape(shape), every.tolist()]
        held, plain = show.arrays(function, values), show.as_json(function, values)
        for suffix in (".npy", ".json", ".csv"):
            words = [f"{name}={name}{suffix}" for name in "xs"]
            write(outputs(words, "results", False), held, plain.copy)
            given = [word.replace("=", "=@") for word in words]
            found = inputs_for(function, assignments(given, here), here)
            if isinstance(found["s"], list):
                found["s"] = list(map(system(t).from_python, found["s"]))
            compare(found | {"s": np.array(found["s"], every.dtype)}, held)


def bits(rng: np.random.Generator, t: Scalar) -> NDArray[Any]:
    """Numbers of a type as they are stored: the limits, and random bits."""
    dtype = system(t).dtype
    found: NDArray[Any] = np.frombuffer(rng.bytes(40 * dtype.itemsize), dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1], dtype)
        return np.concatenate([ends, found])
    parts = np.finfo(dtype)
    real = parts.dtype.type
    ends = np.array([0, -0.0, np.inf, -np.inf, np.nan, parts.max, parts.smallest_subnormal], real)
    ends = np.concatenate(
        [ends, -ends, real(2) ** (parts.nmant + 1) + np.arange(-2, 3, dtype=real)]
    )
    if dtype.kind == "c":
        ends = np.stack([ends, rng.permutation(ends)], 1).ravel().view(dtype)
    return np.concatenate([ends, found])


def compare(found: dict[str, Any], held: Mapping[str, NDArray[Any]]) -> None:
    """All bits but those of NaNs, which are one number, and the shapes."""
    for name, want in held.items():
        got = found[name]
        assert got.shape == want.shape and got.dtype == want.dtype, name
        kind = "f8" if want.dtype.kind == "c" else want.dtype
        for a, b in zip(got.view(kind).ravel(), want.view(kind).ravel(), strict=True):
            assert a.tobytes() == b.tobytes() or (a != a and b != b), (name, a, b)


@pytest.mark.parametrize(
    "args",
    [
        ("asm", "cipher.rasm", "-o", "cipher.rasm"),
        ("asm", "./cipher.rasm", "-o", "link.rasm"),
        ("asm", "cipher.rasm", "--emit=strict", "-o", "hard.rasm"),
        ("dis", "cipher.rbc", "-o", "cipher.rbc"),
        (
            "run",
            "cipher.rasm",
            "text=text:abc",
            "key=text:k",
            "count=0",
            "--out",
            "text=@raw:cipher.rasm",
        ),
        (
            "run",
            "cipher.rbc",
            "text=text:abc",
            "key=text:k",
            "count=0",
            "--out",
            "text=@raw:cipher.rbc",
        ),
    ],
    ids=" ".join,
)
def test_a_program_is_not_written_over(args: tuple[str, ...], here: Path) -> None:
    rvm("asm", "cipher.rasm", "-o", "cipher.rbc")
    rvm("asm", "cipher.rasm", "-o", "cipher.rbc")  # again: it was not read
    (here / "link.rasm").symlink_to("cipher.rasm")
    (here / "hard.rasm").hardlink_to(here / "cipher.rasm")
    compiled = (here / "cipher.rbc").read_bytes()
    done = rvm(*args, code=2)
    assert "it is what is read, and would be lost" in done.stderr
    assert (here / "cipher.rasm").read_text() == CIPHER
    assert (here / "cipher.rbc").read_bytes() == compiled
