"""`rvm asm` and `rvm dis`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.running import KINDS, NORM, golden, rvm

BAD = "func main(x: f64, y: f64)\n    add x, x * y\n\nfunc other(x: f64)\n    ad x, 2\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "norm.rasm").write_text(NORM)
    (tmp_path / "kinds.rasm").write_text(KINDS)
    (tmp_path / "bad.rasm").write_text(BAD)
    return tmp_path


@pytest.mark.parametrize("name", ["norm", "kinds"])
def test_disassembly_assembles_to_the_same_bytes(name: str, here: Path) -> None:
    rvm("asm", f"{name}.rasm", "-o", "a.rbc", "--verify")
    rvm("dis", "a.rbc", "-o", "b.rasm")
    rvm("asm", "b.rasm", "-o", "b.rbc")
    assert (here / "a.rbc").read_bytes() == (here / "b.rbc").read_bytes()


def test_bytecode_goes_to_standard_output_when_no_terminal_reads_it(here: Path) -> None:
    rvm("asm", "norm.rasm", "-o", "a.rbc")
    assert rvm("asm", "norm.rasm").stdout_bytes == (here / "a.rbc").read_bytes()
    assert rvm("asm", "norm.rasm", "-o", "c.rbc").output == ""


def test_disassembly_knows_bytecode_by_its_content(here: Path) -> None:
    rvm("asm", "norm.rasm", "-o", "a.bin")
    text = rvm("dis", "a.bin", "--no-positions").stdout
    assert text == rvm("dis", "norm.rasm", "--no-positions").stdout
    data = (here / "a.bin").read_bytes()
    assert rvm("dis", "-", "--no-positions", input=data).stdout == text


def test_what_people_read() -> None:
    golden("dis", rvm("dis", "norm.rasm", "--no-positions").stdout)
    golden("asm_listing", rvm("asm", "norm.rasm", "--emit=listing").stdout)
    golden("asm_strict", rvm("asm", "norm.rasm", "--emit=strict").stdout)


def test_the_program_as_json() -> None:
    found = json.loads(rvm("asm", "kinds.rasm", "--emit=json").stdout)
    (f,) = found["functions"]
    assert found["entry"] == f["name"] == "kinds"
    assert f["params"][5] == {"name": "p", "type": {"pos": "f64", "spin": "i64"}}
    assert [i["op"] for i in f["code"]] == ["not", "add", "add", "add", "add", "add"]
    assert f["code"][0]["line"] == 7
    jumps = json.loads(rvm("asm", "norm.rasm", "--emit=json").stdout)["functions"][0]["code"]
    for at, i in enumerate(jumps):
        if i["op"] in ("br", "cf"):
            assert jumps[i["partner"]]["partner"] == at


def test_all_errors_in_each_format() -> None:
    human = rvm("asm", "bad.rasm", code=1)
    golden("asm_errors", human.stderr)
    assert human.stdout == ""
    short = rvm("asm", "bad.rasm", "--error-format=short", code=1).stderr.splitlines()
    assert [line.split(": ")[1] for line in short] == ["error[A013]", "error[A003]"]
    found = json.loads(rvm("asm", "bad.rasm", "--error-format=json", code=1).stderr)
    assert [(e["code"], e["line"]) for e in found["errors"]] == [("A013", 2), ("A003", 5)]


def test_included_files(here: Path) -> None:
    (here / "lib").mkdir()
    (here / "lib" / "part.rasm").write_text("func part(x: i64)\n    inc x\n")
    (here / "main.rasm").write_text('include "part.rasm"\nfunc main(x: i64)\n    call part(x)\n')
    assert "A012" in rvm("asm", "main.rasm", code=1).stderr
    assert "func part" in rvm("asm", "main.rasm", "-I", "lib", "--emit=strict").stdout


def test_what_may_be_included(here: Path) -> None:
    (here / "lib").mkdir()
    (here / "part.rasm").write_text("func part(x: i64)\n    inc x\n")
    (here / "lib" / "main.rasm").write_text(
        'include "../part.rasm"\nfunc main(x: i64)\n    call part(x)\n'
    )
    assert rvm("run", "lib/main.rasm", "x=1").stdout.split()[-2:] == ["i64", "2"]
    for command in ("asm", "run", "grad x", "check", "dis", "debug", "pebble --pebbles=2", "trace"):
        for policy in ("below", "none"):
            words = command.split()
            refused = rvm(words[0], "lib/main.rasm", *words[1:], "--includes", policy, code=1)
            assert "A069" in refused.stderr + refused.stdout, command
    assert rvm("asm", "lib/main.rasm", "--includes=below", "-I.", "--emit=listing").stdout


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["asm", "nrm.rasm"], 2, "did you mean `norm.rasm`?"),
        (["asm", "a.rbc"], 2, "bytecode already"),
        (["asm", "norm.rasm", "-o", "no/where.rbc"], 2, "can't write no/where.rbc"),
        (["asm", "norm.rasm", "--emit=llvm"], 2, "llvm"),
        (["asm", "latin.rasm"], 2, "not UTF-8 text"),
        (["dis", "hostile.rbc"], 1, "B00"),
        (["dis", "no.rbc"], 2, "can't read no.rbc"),
        (["run", "empty.rbc"], 1, "B001"),
        (["run", "empty.rbc"], 1, "--> empty.rbc"),
    ],
)
def test_errors(here: Path, args: list[str], code: int, says: str) -> None:
    (here / "latin.rasm").write_bytes(b"; \xe9\n")
    (here / "hostile.rbc").write_bytes(rvm("asm", "norm.rasm").stdout_bytes[:-5])
    (here / "empty.rbc").write_bytes(b"")
    result = rvm(*args, code=code)
    assert says in result.stderr and result.stdout == ""


@pytest.mark.parametrize("style, head", [("short", "{}:3:9: warning[A077]: "), ("json", "{{")])
def test_warnings_are_put_out_in_the_format_of_errors(here: Path, style: str, head: str) -> None:
    (here / "low.rasm").write_text("func f(x: i64)\n    if x > 3\n        dec x\n    end\n")
    done = rvm("asm", "low.rasm", "--emit=listing", f"--error-format={style}")
    assert done.stderr.startswith(head.format("low.rasm"))
    if style == "json":
        assert [d["code"] for d in json.loads(done.stderr)["warnings"]] == ["A077"]
