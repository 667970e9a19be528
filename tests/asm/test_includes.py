"""What an `include` may read: policies, limits, and files that hold none."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import rvm_asm
from rvm_asm import includes
from sizes import wide

import rvm
from rvm.faults import AssemblyError, Diagnostic, UsageError

SECRET = "root:x:0:0:topsecret"
MAIN = "func main(x: i64)\n inc x\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A secret, and beside it a folder with a part, links to both, and a library elsewhere."""
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "more.rasm").write_text("func more(x: i64)\n add x, 2\n")
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (here / "part.rasm").write_text("func part(x: i64)\n add x, 1\n")
    (here / "sub" / "up.rasm").write_text('include "../part.rasm"\n')
    (here / "out.rasm").symlink_to("../secret")
    (here / "away").symlink_to("..")
    (here / "in.rasm").symlink_to("part.rasm")
    return here


def failing(here: Path, name: str, policy: str, *folders: Path) -> Diagnostic:
    """The one message about a text in `here` that includes `name`."""
    text = f'include "{name}"\n{MAIN}'
    with pytest.raises(AssemblyError) as caught:
        rvm_asm.assemble(
            text, includes=policy, include_path=folders, path=here / "main.rasm", name="main.rasm"
        )
    for d in caught.value.diagnostics:
        assert "topsecret" not in d.human()
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0]


OUTSIDE = ("../secret", "out.rasm", "away/secret", "away/here/../secret", "sub/../../secret")


def test_below_reads_what_is_below_and_nothing_else(tree: Path) -> None:
    for name in (
        "part.rasm",
        "in.rasm",
        "sub/up.rasm",
        "./sub/../part.rasm",
        str(tree / "in.rasm"),
    ):
        (tree / "main.rasm").write_text(f'include "{name}"\n{MAIN}')
        assert list(rvm.load(tree / "main.rasm", includes="below")) == ["part", "main"], name
    for name in (*OUTSIDE, str(tree.parent / "secret"), "/etc/passwd", "../lib/more.rasm"):
        assert failing(tree, name, "below").code == "A069", name


def test_folders_of_the_include_path_are_allowed(tree: Path) -> None:
    lib = tree.parent / "lib"
    text = f'include "more.rasm"\n{MAIN}'
    assert list(rvm.assemble(text, includes="below", include_path=[lib])) == ["more", "main"]
    assert list(rvm.assemble(text, includes="any", include_path=[lib])) == ["more", "main"]
    assert failing(tree, "../secret", "below", lib).code == "A069"
    with pytest.raises(AssemblyError, match="A069"):
        rvm.assemble(text, include_path=[lib])


def test_one_folder_by_its_name(tree: Path) -> None:
    lib = tree.parent / "lib"
    text = f'include "more.rasm"\n{MAIN}'
    for folder in (lib, str(lib)):
        made = rvm.assemble(text, includes="below", include_path=folder)
        assert list(made) == ["more", "main"]
    with pytest.raises(AssemblyError, match="A069"):
        rvm.assemble(f'include "/etc/passwd"\n{MAIN}', includes="below", include_path=str(lib))


def test_files_that_are_forbidden_and_files_that_are_not_there_look_alike(tree: Path) -> None:
    for policy in ("below", "none"):
        there, not_there = (failing(tree, f"../{n}", policy) for n in ("secret", "absent"))
        assert there.human().replace("secret", "absent") == not_there.human()


def test_a_forbidden_file_is_not_opened(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: object, *rest: object) -> int:
        raise AssertionError(f"{path} is opened")

    monkeypatch.setattr(os, "open", opened)
    for name in (*OUTSIDE, "/etc/passwd"):
        for policy in ("below", "none"):
            assert failing(tree, name, policy).code == "A069"


def test_texts_alone_include_nothing_and_files_anything(tree: Path) -> None:
    part = tree / "part.rasm"
    with pytest.raises(AssemblyError, match="A069"):
        rvm.assemble(f'include "{part}"\n{MAIN}')
    assert list(rvm.assemble(f'include "{part}"\n{MAIN}', includes="any")) == ["part", "main"]
    (tree / "main.rasm").write_text(f'include "../lib/more.rasm"\n{MAIN}')
    assert list(rvm.load(tree / "main.rasm")) == ["more", "main"]
    with pytest.raises(UsageError, match="U004"):
        rvm.assemble(MAIN, includes="all")


def test_only_regular_files_are_read(tree: Path) -> None:
    os.mkfifo(tree / "fifo")
    (tree / "linked").symlink_to("fifo")
    (tree / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(tree / "socket"))
        for name in ("fifo", "linked", "zero", "/dev/zero", "/dev/tty", "socket", "sub", "/"):
            assert failing(tree, name, "any").code == "A012", name
    (tree / "loop").symlink_to("loop")
    (tree / "bytes").write_bytes(b"\xff\xfe")
    for name in ("loop", "bytes", "part.rasm/x", "a" * 5000, "nul\\0"):
        assert failing(tree, name, "any").code == "A012", name


def test_chains_of_includes_end(tree: Path) -> None:
    for k in range(500):
        (tree / f"c{k}.rasm").write_text(f'include "c{k + 1}.rasm"\n')
    (tree / "c500.rasm").write_text("func last(x: i64)\n inc x\n")
    found = failing(tree, "c0.rasm", "any")
    assert found.code == "A046" and "64 levels" in found.message
    depth = includes.MAX_DEPTH
    assert failing(tree, f"c{500 - depth + 1}.rasm", "any").code == "A046"
    first = f'include "c{500 - depth + 2}.rasm"\n{MAIN}'
    (tree / "main.rasm").write_text(first)
    assert list(rvm.load(tree / "main.rasm")) == ["last", "main"]
    (tree / "c500.rasm").write_text('include "c0.rasm"\n')  # a circle, too long all the same
    assert failing(tree, "c490.rasm", "any").code == "A046"


def test_files_of_a_program_are_counted(tree: Path) -> None:
    names = [f"p{k}.rasm" for k in range(includes.MAX_FILES)]
    for name in names:
        (tree / name).write_text("")
    text = "".join(f'include "{n}"\n' for n in names)
    (tree / "main.rasm").write_text(text + MAIN)
    with pytest.raises(AssemblyError, match="1000 files"):
        rvm.load(tree / "main.rasm")
    (tree / "main.rasm").write_text(text.split("\n", 1)[1] + MAIN)
    assert list(rvm.load(tree / "main.rasm")) == ["main"]


def test_the_size_of_all_texts_has_a_limit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(includes, "MAX_BYTES", 1000)
    (tree / "big.rasm").write_text(";" * 900 + "\n")
    (tree / "two.rasm").write_text(";" * 90 + "\n")
    text = f'include "big.rasm"\n{MAIN}'
    (tree / "main.rasm").write_text(text)
    assert list(rvm.load(tree / "main.rasm")) == ["main"]
    (tree / "main.rasm").write_text(f'include "two.rasm"\n{text}')
    with pytest.raises(AssemblyError, match="A046"):
        rvm.load(tree / "main.rasm")
    with (tree / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("sparse", "/proc/self/mem"):
        assert failing(tree, name, "any").code in ("A046", "A012")


@wide
def test_a_long_run_of_characters_that_are_not_text_is_given_up_early(tmp_path: Path) -> None:
    path = tmp_path / "main.rasm"
    path.write_bytes(bytes(3_000_000))
    with pytest.raises(AssemblyError) as caught:
        rvm.load(path)
    assert {d.code for d in caught.value.diagnostics} == {"A001"}
    with path.open("wb") as file:
        file.truncate(includes.MAX_BYTES + 1)
    with pytest.raises(AssemblyError, match="64 MiB"):
        rvm.load(path)


def test_a_program_that_is_not_a_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "main.rasm"
    path.write_bytes(b"func f(x: f64)\n ; caf\xe9\n")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        rvm.load(path)


INCLUDED = (
    "func more(x: i64)\n add x, 2\n",
    "func main(x: i64)\n add x, 2\n",
    "func more(x: i64)\n add x, 2\nentry more\n",
    "func other[T: real](x: T)\n add x, 2\nfunc more(x: i64)\n add x, 2\nentry other[f64]\n",
)
OWN = {
    "func own(x: i64)\n inc x\nfunc second(x: i64)\n dec x\n": "own",
    "func own(x: i64)\n inc x\nfunc second(x: i64)\n dec x\nentry second\n": "second",
    "func own[T: real](x: T)\n add x, 1\n": "own[f64]",
    "func own[T: real](x: T)\n add x, 1\nentry own[f32]\n": "own[f32]",
}


@pytest.mark.parametrize("included", INCLUDED)
@pytest.mark.parametrize("own", OWN)
def test_the_entry_is_one_of_the_file_itself(tmp_path: Path, included: str, own: str) -> None:
    (tmp_path / "lib.rasm").write_text(included)
    line = 'include "lib.rasm"\n'
    for text in (line + own, own + line):
        (tmp_path / "text.rasm").write_text(text)
        assert rvm.load(tmp_path / "text.rasm").program.entry == OWN[own]


@pytest.mark.parametrize("included", INCLUDED)
def test_a_file_without_functions_has_the_entry_of_what_it_includes(
    tmp_path: Path, included: str
) -> None:
    (tmp_path / "lib.rasm").write_text(included)
    (tmp_path / "text.rasm").write_text('include "lib.rasm"\n')
    alone = rvm.load(tmp_path / "lib.rasm").program.entry
    assert rvm.load(tmp_path / "text.rasm").program.entry == alone


def test_an_entry_that_an_included_file_lacks_is_reported(tmp_path: Path) -> None:
    (tmp_path / "lib.rasm").write_text("func more(x: i64)\n add x, 2\nentry less\n")
    (tmp_path / "text.rasm").write_text(f'include "lib.rasm"\n{MAIN}')
    with pytest.raises(AssemblyError, match="A045"):
        rvm.load(tmp_path / "text.rasm")
