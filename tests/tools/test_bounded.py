"""Files that a stranger names, and files without an end: what is opened, and how much is read."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sizes import wide
from tools.running import process, rvm

from rvm.host import read
from rvm.host.archives import read_arrays

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs and devices")
TEXT = ";! run f(x=@{}) -> x=0\nfunc f(x: i64)\n    add x, 1\n"


def checked(folder: Path, name: str, includes: str, code: int) -> str:
    """What `rvm check` says of a text whose `;! run` line names a file."""
    folder.mkdir(exist_ok=True)
    (folder / "s.rasm").write_text(TEXT.format(name))
    # A command that waits for a FIFO would never end here.
    args = ("check", str(folder / "s.rasm"), "--includes", includes, "--engine", "reference")
    return rvm(*args, code=code).output


@pytest.mark.parametrize("includes", ["none", "below"])
@pytest.mark.parametrize("path", ["{}/key.json:word", "../key.json", "link.json", "key.txt"])
def test_a_run_line_reads_what_the_policy_allows(tmp_path: Path, path: str, includes: str) -> None:
    key, folder = tmp_path / "key.json", tmp_path / "below"
    folder.mkdir()
    (folder / "link.json").symlink_to(key)
    name = path.format(tmp_path)
    without = checked(folder, name, includes, 1)
    key.write_text('{"secret": 7741, "word": -1}')
    (tmp_path / "key.txt").write_text("7741")
    told = checked(folder, name, includes, 1)
    assert told == without
    assert "I011" in told and "secret" not in told and "7741" not in told


def test_a_run_line_reads_files_of_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("-1")
    for includes in ("below", "any"):
        checked(tmp_path, "one.json", includes, 0)
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "link.json").symlink_to(tmp_path / "one.json")
    checked(tmp_path / "up", "link.json", "any", 0)
    text = TEXT.format(tmp_path / "one.json")
    rvm("check", "-", input=text)
    assert "I011" in rvm("check", "-", "--includes", "below", input=text, code=1).output


@posix
@pytest.mark.parametrize("includes", ["none", "below", "any"])
def test_a_run_line_waits_for_no_pipe_and_reads_no_device(tmp_path: Path, includes: str) -> None:
    for suffix in ("csv", "json", "npy", "npz"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
        (tmp_path / f"zero.{suffix}").symlink_to("/dev/zero")
        for name in (f"pipe.{suffix}", f"zero.{suffix}", f"a\0b.{suffix}", f"a\0.{suffix}:x"):
            assert "I011" in checked(tmp_path, name, includes, 1), name


@posix
@pytest.mark.parametrize("suffix", ["csv", "json", "npy", "npz"])
def test_a_device_without_an_end_is_refused_as_data(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "s.rasm").write_text(TEXT.format("x"))
    (tmp_path / f"z.{suffix}").symlink_to("/dev/zero")
    file = str(tmp_path / "s.rasm")
    assert "I011" in rvm("run", file, f"x=@{tmp_path}/z.{suffix}", code=1).output


@wide
@posix
def test_a_device_without_an_end_is_refused_as_text(tmp_path: Path) -> None:
    (tmp_path / "s.rasm").write_text(TEXT.format("x"))
    file = str(tmp_path / "s.rasm")
    for suffix in ("bench", "rdb", "toml", "rbc", "rasm"):
        (tmp_path / f"z.{suffix}").symlink_to("/dev/zero")
    for args in (
        ("pebble", f"{tmp_path}/z.bench"),
        ("debug", file, "x=1", "-x", f"{tmp_path}/z.rdb"),
        ("trace", file, "x=1", "--energy", f"{tmp_path}/z.toml"),
        ("run", f"{tmp_path}/z.rbc", "x=1"),
        ("check", f"{tmp_path}/z.rasm"),
    ):
        done = process(*args)
        assert done.returncode in (1, 2) and "error[" in done.stderr, (args, done)


def test_files_are_read_to_their_limit(tmp_path: Path) -> None:
    file = tmp_path / "f"
    for size in (0, 1, 999, 1000):
        file.write_bytes(b"x" * size)
        assert read.read_bytes(file, 1000) == b"x" * size
        assert read.read_stream(io.BytesIO(b"x" * size), 1000) == b"x" * size
    file.write_bytes(b"x" * 1001)
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        read.read_bytes(file, 1000)
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        read.read_stream(io.BytesIO(b"x" * 1001), 1000)


def test_short_memory_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.rasm").write_text(TEXT.format("x"))
    (tmp_path / "x.json").write_text("1")

    def none_left(*args: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(json, "loads", none_left)
    told = rvm("run", str(tmp_path / "s.rasm"), f"x=@{tmp_path}/x.json", code=1).output
    assert "I011" in told and "no memory" in told


@pytest.mark.parametrize("text", ['"@{}"', '["@{}"]', '"[@{}]"', '{{"x": " @{}"}}', '"{{a: @{}}}"'])
def test_values_in_files_name_no_files(tmp_path: Path, text: str) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("[7741]")
    (tmp_path / "v.json").write_text(text.format(secret))
    (tmp_path / "s.rasm").write_text(TEXT.format("x"))
    for word in (f"x=@{tmp_path}/v.json", f"@{tmp_path}/v.json"):
        told = rvm("run", str(tmp_path / "s.rasm"), word, code=1).output
        assert "7741" not in told
        assert "I010" in told or "I011" in told


@wide
def test_an_archive_is_measured_before_it_is_decompressed(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("header.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (300 << 20,)}
        )
        for _ in range(300):
            file.write(bytes(1 << 20))
    assert "P005" in rvm("pebble", str(bomb), code=1).output
    np.savez_compressed(bomb, x=np.zeros(1000))
    assert read_arrays(bomb, 9000)["x"].shape == (1000,)
    with pytest.raises(ValueError, match="more than 8,000 bytes"):
        read_arrays(bomb, 8000)
