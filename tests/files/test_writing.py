"""Files are written whole: whatever goes wrong, the file that was there stays, and nothing else."""

from __future__ import annotations

import ast
import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sizes import thin, wide

from rvm import pebble
from rvm.host import write
from rvm.host.write import write_bytes, write_text

ROOT = Path(__file__).parent.parent.parent
OLD, NEW = b"old contents\n", b"new contents, some more of them\n"


@pytest.fixture(params=["nameless", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With files that have no name while they are written, and without."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return str(request.param)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_new_file_and_one_that_is_replaced(way: str, tmp_path: Path) -> None:
    file = tmp_path / "f"
    before = os.umask(0o027)
    try:
        write_bytes(file, OLD)
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        file.chmod(0o604)
        write_text(str(file), "ü\n")
    finally:
        os.umask(before)
    assert file.read_bytes() == b"\xc3\xbc\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert names(tmp_path) == ["f"]


def test_links_are_followed(way: str, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "target"
    (tmp_path / "link").symlink_to(Path("deep") / "target")
    (tmp_path / "second").symlink_to("link")
    write_bytes(tmp_path / "second", OLD)
    assert target.read_bytes() == OLD
    write_bytes(tmp_path / "second", NEW)
    assert target.read_bytes() == NEW
    assert (tmp_path / "second").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "deep") == ["target"]


class Broken(Exception):
    pass


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


FULL = OSError(errno.ENOSPC, "No space left on device")
CALLS = ["fsync", "link", "fchmod", "replace", "write"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt(), MemoryError()], ids=str)
@pytest.mark.parametrize("there", [True, False])
def test_a_failing_write_leaves_what_was_there(
    way: str,
    call: str,
    error: BaseException,
    there: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if (call, way) == ("link", "named") or (call == "fchmod" and not there):
        pytest.skip("it is not called")
    file = tmp_path / "f"
    if there:
        file.write_bytes(OLD)
    with monkeypatch.context() as patched:
        if call == "replace":
            patched.setattr(Path, "replace", raising(error))
        elif call != "write":
            patched.setattr(os, call, raising(error))
        with pytest.raises(type(error)), write.writing(file) as out:
            out.write(NEW)
            if call == "write":
                raise error
    assert names(tmp_path) == ["f"] * there
    assert not there or file.read_bytes() == OLD


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(OLD)
    code = """
import resource, sys
from rvm.host.write import write_bytes
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    write_bytes(sys.argv[1], bytes(1 << 20))
except OSError as error:
    print(error.strerror)
"""
    ran = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True)
    assert ran.stdout == "File too large\n"
    assert file.read_bytes() == OLD
    assert names(tmp_path) == ["f"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files have names from the start here")
def test_a_process_killed_in_the_midst_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(OLD)
    code = """
import os, signal, sys
from rvm.host.write import writing
with writing(sys.argv[1]) as out:
    out.write(bytes(1 << 20))
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", code, str(file)])
    assert ran.returncode == -signal.SIGKILL
    assert file.read_bytes() == OLD
    assert names(tmp_path) == ["f"]


def test_what_may_not_be_written_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    file = tmp_path / "f"
    file.write_bytes(OLD)
    file.chmod(0o400)
    with pytest.raises(PermissionError):
        write_bytes(file, NEW)
    assert file.read_bytes() == OLD


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_bytes(tmp_path / "no" / "f", NEW)
    with pytest.raises(IsADirectoryError):
        write_bytes(tmp_path, NEW)


def test_pipes_and_devices_are_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, NEW)
    reader.join(20)
    assert read == [NEW]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_bytes(os.devnull, NEW)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


STREAMS = [
    "/dev/stdout",
    "/dev/./stdout",
    "//dev/stdout",
    "/dev/fd/1",
    "/proc/self/fd/1",
    "/proc/self/./fd/1",
    "//proc/self/fd/1",
    "/proc/thread-self/fd/1",
    "link",
    "link to link",
    "of the parent",
]


@thin
@pytest.mark.parametrize("to", ["file", "pipe"])
@pytest.mark.parametrize("name", [*STREAMS, "out"])
def test_standard_output_by_any_name_keeps_its_order(name: str, to: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if name.startswith("/") and not Path(name).parent.is_dir():
        pytest.skip("no such name here")
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "link to link").symlink_to("link")
    out.write_bytes(b"zero\n")
    if to == "pipe":
        out.unlink()
        os.mkfifo(out)
    number = os.open(out, os.O_RDWR if to == "pipe" else os.O_WRONLY | os.O_APPEND)
    try:
        if name == "of the parent":
            if not Path("/proc/self/fd").is_dir():
                pytest.skip("no such name here")
            name = f"/proc/{os.getpid()}/fd/{number}"
        code = f"""
from rvm.host.write import is_direct, write_text
print("one")
assert is_direct({name!r})
write_text({name!r}, "two\\n")
print("three")
"""
        subprocess.run([sys.executable, "-c", code], stdout=number, check=True, cwd=tmp_path)
        read = os.read(number, 100) if to == "pipe" else out.read_bytes()
    finally:
        os.close(number)
    assert read == b"zero\n" * (to == "file") + b"one\ntwo\nthree\n"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no such names here")
def test_an_open_file_of_another_process_is_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(OLD)
    with file.open("ab") as held:
        code = "import sys; from rvm.host.write import write_text; write_text(sys.argv[1], 'more')"
        name = f"/proc/{os.getpid()}/fd/{held.fileno()}"
        subprocess.run([sys.executable, "-c", code, name], check=True)
    assert file.read_bytes() == OLD + b"more"


@wide
@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1"])
def test_a_closed_stream_is_an_ordinary_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "n.rasm").write_text("func f(x: i64)\n    add x, 1\n")
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m rvm_tools asm n.rasm -o {name} >&-', sys.executable],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ran.stderr.startswith(f"error[U012]: can't write {name}: the stream is closed")
    assert ran.returncode not in (0, 70)


PRIVATE = {
    "rvm/host/write.py": "the one that does it",
    "rvm/host/kept.py": "what is kept: checked when it is read, and renamed too",
    "rvm/pebble/bridge/runs/files.py": "states in a private folder, which goes with the run",
    "tests/attack/campaign.py": "an input in a folder for the moment",
    "tests/attack/crew.py": "what processes share, in a folder for the moment",
    "tests/attack/worker.py": "the same",
    "tests/attack/kinds": "inputs in a folder for the moment",
    "tools/rvm_bench": "sources for the C compiler, in a folder for the moment",
    "tools/rvm_tools/cli.py": "standard output is closed by opening the null device",
}
WRITERS = {"write_text", "write_bytes", "save", "savez", "savez_compressed", "savetxt", "tofile"}


def writes(path: Path) -> list[str]:
    """Calls in a source that may write a file by themselves."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("open", "fdopen"):
            modes = [
                a.value
                for a in [*node.args, *(k.value for k in node.keywords)]
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            ]
            if any(set(m) <= set("rwxab+t") and set(m) & set("wxa+") for m in modes):
                found.append(ast.unparse(node))
        elif name in WRITERS:
            first = ast.unparse(node.args[0]) if node.args else ""
            home = getattr(node.func, "value", None)
            if (name in ("write_text", "write_bytes") and home is not None) or (
                isinstance(home, ast.Name) and home.id == "np" and first not in ("file", "out")
            ):
                found.append(ast.unparse(node))
    return found


@wide
def test_every_writer_writes_whole_files() -> None:
    for folder in ("rvm", "asm", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not any(name == p or name.startswith(p + "/") for p in PRIVATE):
                assert writes(path) == [], name


def test_the_search_finds_what_writes() -> None:
    found = [name for name in PRIVATE if name.endswith(".py") and name != "tools/rvm_tools/cli.py"]
    for name in found:
        assert writes(ROOT / name), name


def test_a_plan_that_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plan.npz"
    pebble.plan(20, pebbles=6).save(file)
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", raising(FULL))
    with pytest.raises(OSError, match="No space left"):
        pebble.plan(30, pebbles=6).save(file)
    assert file.read_bytes() == before
    assert names(tmp_path) == ["plan.npz"]
    assert pebble.load(file).describe() == pebble.plan(20, pebbles=6).describe()
