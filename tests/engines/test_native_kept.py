"""Machine code that is kept: when it is found again, when not, and what damaged files do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sizes import thin, wide

import rvm
from rvm.engines.native import artifact, elf, keys, memory
from rvm.engines.native.compiler import compiler
from rvm.engines.native.roots import root_of
from rvm.host import kept
from rvm.image import image_of
from rvm.ir.kind import Kind
from rvm.program import Program

STEPS = """
func main(x: f64, v: f64, n: i64)
    for i = 1 to n
        add x, v * 0.01
        sub v, sin(x) * 0.01
    end
"""
Made = list[str]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """The texts that LLVM compiles while a test runs; what is kept is in the test's folder."""
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    # Whoever edits rvm while its tests run does not mean these.
    monkeypatch.setattr(rvm, "BEGAN", 1 << 63)
    keys.environment.cache_clear()
    llvm = compiler()
    texts: Made = []
    compiled = llvm.compiled
    monkeypatch.setattr(llvm, "compiled", lambda text: texts.append(text) or compiled(text))
    yield texts


def run(text: str = STEPS, n: int = 10) -> float:
    """A run of a program that nothing in this process knows yet."""
    found: float = rvm.assemble(text).main(x=1.0, v=0.5, n=n, engine="native").x
    return found


def slope(text: str = STEPS) -> float:
    main = rvm.assemble(text).main.with_options(engine="native")
    found: float = main.vjp({"x": 1.0}, x=1.0, v=0.5, n=10).v
    return found


# ---------------------------------------------------------------- hits and misses


def test_a_second_program_of_the_same_text_finds_what_was_kept(made: Made, tmp_path: Path) -> None:
    wanted = rvm.assemble(STEPS).main(x=1.0, v=0.5, n=10, engine="reference").x
    assert run() == run() == wanted
    assert len(made) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_the_time_of_compiling_is_stored_with_the_code(made: Made, tmp_path: Path) -> None:
    """So that runs are as long before Ctrl-C is asked for, and compile no more, in later ones."""
    run()
    (file,) = tmp_path.iterdir()
    found = artifact.decoded(file.read_bytes()[kept.DIGEST :])
    assert found is not None and found.seconds > 0
    kept.keep(file.name, found._replace(seconds=7.5).encoded())
    code = image_of(rvm.assemble(STEPS)).code("main", False)
    assert root_of(code, Kind(0, frozenset(), True)).compiling == 7.5
    assert len(made) == 1


def test_a_gradient_is_found_without_being_made(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rvm.transform import programs

    first = slope()
    assert len(made) == 1
    monkeypatch.setattr(programs, "gradient", lambda *_: pytest.fail("it was transformed"))
    assert slope() == first
    assert len(made) == 1


def test_values_and_gradients_of_several_losses_are_told_apart(made: Made) -> None:
    for _ in range(2):
        main = rvm.assemble(STEPS).main.with_options(engine="native")
        x, by_x = main.value_and_grad(loss="x", x=1.0, v=0.5, n=10)
        v, by_v = main.value_and_grad(loss="v", x=1.0, v=0.5, n=10)
        out = main(x=1.0, v=0.5, n=10)
        assert (x, v) == (out.x, out.v)
        # x' = x + h v and v' = v - h sin x' keep areas: the determinant of the Jacobian is 1.
        assert by_x.x * by_v.v - by_x.v * by_v.x == pytest.approx(1.0, rel=1e-12)
    assert len(made) == 3


@thin
@pytest.mark.parametrize(
    "other",
    [
        STEPS.replace("0.01", "0.02", 1),
        STEPS.replace("add x", "sub x"),
        STEPS.replace("x: f64, v: f64", "v: f64, x: f64"),
        STEPS.replace("sin(x)", "sin(x * 2.0)"),
        STEPS.replace("n: i64", "n: i32").replace("to n", "to i64(n)"),
    ],
)
def test_another_program_is_compiled(made: Made, other: str) -> None:
    run()
    program = rvm.assemble(other)
    native = program.main(x=1.0, v=0.5, n=10, engine="native")
    assert len(made) == 2
    assert dict(native) == dict(program.main(x=1.0, v=0.5, n=10, engine="reference"))


def test_directions_and_options_are_told_apart(made: Made) -> None:
    main = rvm.assemble(STEPS).main.with_options(engine="native")
    out = main(x=1.0, v=0.5, n=10)
    (~main)(**out)
    main.with_options(checks=False)(x=1.0, v=0.5, n=10)
    assert len(made) == 3
    assert len({keys.key_of(*k) for k in _kinds(main.program)}) == 6


def _kinds(program: Program) -> list[tuple[object, Kind]]:
    image, plain = image_of(program), Kind(0, frozenset())
    return [
        (image.code("main", undo), kind)
        for undo in (False, True)
        for kind in (plain, plain._replace(checks=False), plain._replace(entry=1))
    ]


def test_lanes_find_what_was_kept(made: Made) -> None:
    xs = np.linspace(-1.0, 1.0, 40)
    outs = [
        rvm.assemble(STEPS).main.map(x=xs, v=0.5, n=10, engine="native", on_error="return").x
        for _ in range(2)
    ]
    assert outs[0].tobytes() == outs[1].tobytes()
    compiled = len(made)
    rvm.assemble(STEPS).main.map(x=xs, v=0.5, n=10, engine="native")
    assert len(made) == compiled


# ---------------------------------------------------------------- what it depends on


@wide
@pytest.mark.parametrize("part", ["_sources", "_library", "_processor"])
def test_another_version_or_processor_compiles_anew(
    made: Made, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    run()
    monkeypatch.setattr(keys, part, lambda: "another one")
    keys.environment.cache_clear()
    try:
        run()
    finally:
        keys.environment.cache_clear()
    assert len(made) == 2


def test_what_is_not_known_is_found_by_its_text(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_processor", lambda: "")
    keys.environment.cache_clear()
    try:
        program = rvm.assemble(STEPS)
        assert keys.key(program.program, "main") is None
        assert run() == run()
    finally:
        keys.environment.cache_clear()
    assert len(made) == 1


def test_a_process_that_runs_older_sources_keeps_nothing_for_newer_ones(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    newest = max(p.stat().st_mtime_ns for p in Path(keys.__file__).parents[2].rglob("*.py"))
    for began, known in ((1, False), (newest + 1, True)):
        monkeypatch.setattr(rvm, "BEGAN", began)
        keys.environment.cache_clear()
        assert (keys.key(rvm.assemble(STEPS).program, "main") is not None) is known
        assert run() == run()
    keys.environment.cache_clear()
    assert len(made) == 2, "one by its text, one by its program"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.usefixtures("clean_tables")
def test_a_users_function_may_have_changed(made: Made) -> None:
    def gain(factor: float) -> float:
        from rvm.isa import FUNCTIONS

        @rvm.function(name="bent")
        def bent(x):  # type: ignore[no-untyped-def]
            "A parabola."
            return x * x * factor

        try:
            main = rvm.assemble("func main(y: f64, x: f64)\n    add y, bent(x)\n").main
            found: float = main.grad(loss="y", y=0.0, x=3.0, engine="native").x
        finally:
            del FUNCTIONS["bent"]
        return found

    assert gain(1.0) == 6.0
    assert gain(2.0) == 12.0
    assert gain(1.0) == 6.0
    assert len(made) <= 3


def test_names_of_programs_are_those_of_what_they_do() -> None:
    same = rvm.assemble(STEPS), rvm.assemble("; another comment\n" + STEPS)
    assert keys.fingerprint(same[0].program) == keys.fingerprint(same[1].program) != ""
    other = rvm.assemble(STEPS.replace("1 to", "2 to"))
    assert keys.fingerprint(same[0].program) != keys.fingerprint(other.program)
    # Where a function undoes another one, it takes the log of a strict run.
    program = same[0].program
    marked = [
        replace(program, functions=tuple(replace(f, undoing=marks) for f in program.functions))
        for marks in (None, frozenset(), frozenset({1}))
    ]
    assert len({keys.fingerprint(p) for p in marked}) == 3


# ---------------------------------------------------------------- damage


def _cut(data: bytes) -> bytes:
    return data[:-7]


def _flipped(data: bytes) -> bytes:
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def _nothing(data: bytes) -> bytes:
    return b""


def _text(data: bytes) -> bytes:
    return b"#!/bin/sh\n" * 9


@thin
@pytest.mark.parametrize("damage", [_cut, _flipped, _nothing, _text])
def test_a_damaged_file_is_not_believed(
    made: Made, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    wanted = run()
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert run() == wanted
    assert len(made) == 2
    assert run() == wanted
    assert len(made) == 2, "it has been put right"


def test_a_file_of_something_else_is_not_believed(made: Made, tmp_path: Path) -> None:
    run()
    (one,) = tmp_path.iterdir()
    other = STEPS.replace("0.01", "0.5")
    wanted = run(other)
    (two,) = set(tmp_path.iterdir()) - {one}
    two.write_bytes(one.read_bytes())
    assert run(other) == wanted
    assert len(made) == 3


@thin
@pytest.mark.parametrize(
    "body",
    [b"", b"{}\n", b"[1]\n", b"not json\nabc", b'{"types": [[1]], "args": 0}\n', b"\xff\xfe\n"],
)
def test_a_whole_file_with_other_contents_is_not_believed(
    made: Made, tmp_path: Path, body: bytes
) -> None:
    wanted = run()
    (file,) = tmp_path.iterdir()
    kept.keep(file.name, body)
    assert kept.found(file.name) == body
    assert artifact.decoded(body) is None
    assert run() == wanted
    assert len(made) == 2


def test_a_folder_that_cannot_be_written_is_done_without(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setenv("RVM_CACHE_DIR", str(blocked / "folder"))
    assert run() == run()
    assert len(made) == 2
    monkeypatch.setenv("RVM_CACHE_DIR", "")
    run()
    assert len(made) == 3


def test_the_oldest_go_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept, "MOST_BYTES", 5_000)
    monkeypatch.setattr(kept, "LEAST", 0)
    (tmp_path / "notes.txt").write_text("x" * 9_000)
    names = [kept.digest(bytes([k])).hex() for k in range(6)]
    for k, name in enumerate(names):
        kept.keep(name, bytes(1_000))
        os.utime(tmp_path / name, (1_000 + k, 1_000 + k))
        assert kept.found(names[0]) is not None, "it is used each time"
    left = {name for name in names if kept.found(name) is not None}
    assert left == {names[0], *names[-3:]}
    assert (tmp_path / "notes.txt").exists()


def test_one_long_process_stays_within_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept, "MOST_BYTES", 100_000)
    for least in (0, 4_000):
        monkeypatch.setattr(kept, "LEAST", least)
        for k in range(400):
            kept.keep(kept.digest(b"%d" % k).hex(), bytes(997 + k))
            sizes = [p.stat().st_size for p in tmp_path.iterdir()]
            assert sum(sizes) <= 100_000 and (len(sizes) <= 100_000 // (least or 1) or k < 100)
        assert kept.found(kept.digest(b"399").hex()) is not None


def test_what_killed_processes_left_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    script = (
        "import os, signal\nfrom rvm.host import kept\n"
        "kept.os.replace = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "kept.keep('0' * 64, b'half of it')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(kept.UNFINISHED)
    kept._room = kept._Room()
    kept.keep("1" * 64, b"whole")
    assert left.exists(), "it may be under way in another process"
    long_ago = time.time() - kept.ABANDONED - 60
    os.utime(left, (long_ago, long_ago))
    kept._room = kept._Room()
    kept.keep("2" * 64, b"whole")
    assert {p.name for p in tmp_path.iterdir()} == {"1" * 64, "2" * 64}


def test_a_file_that_cannot_be_written_whole_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path))
    kept.keep("0" * 64, b"before")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(kept.os, "replace", stopped)
        kept.keep("0" * 64, b"after")
    assert [p.name for p in tmp_path.iterdir()] == ["0" * 64]
    assert kept.found("0" * 64) == b"before"


# ---------------------------------------------------------------- whose it is

unix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners as Unix has them")


def planted(made: Made, tmp_path: Path) -> Path:
    """A sound file in a folder of ours, as a run has left it."""
    run()
    (file,) = tmp_path.iterdir()
    made.clear()
    kept._warned = False
    return file


def ignored(made: Made, why: str) -> None:
    """What is there is not run, and one warning says why."""
    with pytest.warns(RuntimeWarning, match=why) as caught:
        wanted = rvm.assemble(STEPS).main(x=1.0, v=0.5, n=10, engine="reference").x
        assert run() == run() == wanted
    assert len(made) >= 1, "it was compiled here"
    assert len(caught) == 1, "it is said once in a process"


@wide
@unix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_ignored(made: Made, tmp_path: Path, mode: int) -> None:
    file = planted(made, tmp_path)
    file.chmod(mode)
    ignored(made, "users other than its owner may write")
    assert file.stat().st_mode & 0o777 == 0o600, "one of ours has taken its place"


@wide
@unix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_ignored(made: Made, tmp_path: Path, mode: int) -> None:
    planted(made, tmp_path)
    tmp_path.chmod(mode)
    ignored(made, "users other than its owner may write")
    assert len(made) == 2, "and nothing is kept there"


@unix
@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_ignored(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    file = planted(made, tmp_path)
    if os.geteuid() == 0:
        os.chown(file if which == "file" else tmp_path, 65_534, 65_534)
    else:
        # Nobody but root can give files away; so this process acts for somebody else.
        monkeypatch.setattr(kept.os, "geteuid", lambda: os.getuid() + 1)
    ignored(made, "belongs to user")


@unix
def test_a_run_goes_on_where_warnings_are_errors(made: Made, tmp_path: Path) -> None:
    planted(made, tmp_path)
    tmp_path.chmod(0o777)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run() == rvm.assemble(STEPS).main(x=1.0, v=0.5, n=10, engine="reference").x
    assert len(made) == 1, "it was compiled here"


def test_without_a_home_folder_nothing_is_kept(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("RVM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert run() == run()
    assert len(made) == 2


@unix
def test_links_are_not_followed(made: Made, tmp_path: Path) -> None:
    file = planted(made, tmp_path)
    other = file.rename(tmp_path / "elsewhere")
    file.symlink_to(other)
    ignored(made, "it is a link")
    assert not file.is_symlink(), "one of ours has taken its place"


@unix
def test_a_folder_may_be_a_link_to_a_folder_of_the_user(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "scratch"
    home.mkdir(0o700)
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path / "link"))
    assert run() == run()
    assert len(made) == 1


@thin
@unix
@pytest.mark.parametrize("what", ["fifo", "folder", "socket", "device", "huge"])
def test_foreign_files_neither_hang_nor_exhaust_memory(
    made: Made, tmp_path: Path, what: str
) -> None:
    import socket

    file = planted(made, tmp_path)
    file.unlink()
    listening = socket.socket(socket.AF_UNIX)
    if what == "fifo":
        os.mkfifo(file, 0o600)
    elif what == "folder":
        file.mkdir(0o700)
    elif what == "socket":
        before = Path.cwd()
        os.chdir(tmp_path)  # names of sockets are short
        listening.bind(file.name)
        os.chdir(before)
    elif what == "device":
        if os.geteuid():
            pytest.skip("only root makes devices")
        try:
            os.mknod(file, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("no devices in here")
    else:
        with file.open("wb") as sparse:
            sparse.truncate(1 << 40)
        file.chmod(0o600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = rvm.assemble(STEPS).main(x=1.0, v=0.5, n=10, engine="reference").x
        assert run() == wanted
    assert len(made) == 1
    listening.close()


@unix
def test_a_folder_that_is_made_is_its_owners_alone(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVM_CACHE_DIR", str(tmp_path / "new" / "rvm"))
    mask = os.umask(0)
    try:
        run()
    finally:
        os.umask(mask)
    home = tmp_path / "new" / "rvm"
    (file,) = home.iterdir()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


# ---------------------------------------------------------------- processes

CHILD = f"""
import sys
import rvm
main = rvm.assemble({STEPS!r}).main.with_options(engine="native")
print(main(x=1.0, v=0.5, n=10).x.hex(), main.vjp({{"x": 1.0}}, x=1.0, v=0.5, n=10).v.hex())
print("llvmlite" in sys.modules)
"""


@wide
def test_processes_at_once_and_one_after_them(tmp_path: Path) -> None:
    """They compile or find, whoever comes first; the one that finds does not load LLVM."""
    environment = {**os.environ, "RVM_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CHILD]
    racing = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    lines = [child.communicate()[0].splitlines() for child in racing]
    after = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, loaded = after.stdout.splitlines()
    assert [line[0] for line in lines] == [first] * 3
    assert loaded == "False"
    assert len(list(tmp_path.iterdir())) == 2, "nothing unfinished is left"


# ---------------------------------------------------------------- linking


def object_of(text: str) -> bytes:
    llvm = compiler()
    head = f'target triple = "{llvm.triple}"\ntarget datalayout = "{llvm.layout}"\n'
    return llvm.compiled(head + text)


CALLS = """
@table = internal constant [4 x i32] [i32 3, i32 1, i32 4, i32 1]
@outside = external global i32
declare double @rvm_fmod(double, double)
declare i32 @toupper(i32)
define internal i32 @second(i32 %k) noinline {
  %at = getelementptr [4 x i32], ptr @table, i64 0, i32 %k
  %v = load i32, ptr %at
  ret i32 %v
}
define i32 @run(ptr %regs, ptr %ctx) {
  %x = load double, ptr %regs
  %s = call double @rvm_fmod(double %x, double 0.3)
  store double %s, ptr %regs
  %k = load i32, ptr %ctx
  %v = call i32 @second(i32 %k)
  %o = load i32, ptr @outside
  %u = call i32 @toupper(i32 %v)
  %sum = add i32 %u, %o
  ret i32 %sum
}
"""


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="ELF, x86-64")
def test_a_block_calls_reads_and_finds_its_own() -> None:
    import ctypes
    import math

    data = object_of(CALLS)
    block = elf.linked(data, "run")
    assert block is not None
    assert {"rvm_fmod", "toupper", "outside"} <= set(block.words)
    outside = ctypes.c_int32(100)
    run = memory.loaded(block, {"outside": ctypes.addressof(outside)})
    assert run is not None
    regs, ctx = ctypes.c_double(0.7), ctypes.c_int32(2)
    assert run(ctypes.addressof(regs), ctypes.addressof(ctx)) == 104
    assert regs.value == math.fmod(0.7, 0.3)
    other = compiler().function(data, "run", ["rvm_fmod"], {"outside": ctypes.addressof(outside)})
    assert other(ctypes.addressof(regs), ctypes.addressof(ctx)) == 104
    assert regs.value == math.fmod(math.fmod(0.7, 0.3), 0.3)


def test_what_the_small_linker_does_not_know_is_left_to_llvm() -> None:
    written = "@held = internal global i32 7\ndefine i32 @run(ptr %a, ptr %b) {\n"
    written += "  %v = load i32, ptr @held\n  store i32 8, ptr @held\n  ret i32 %v\n}\n"
    assert elf.linked(object_of(written), "run") is None
    assert elf.linked(b"\xcf\xfa\xed\xfe" + bytes(200), "run") is None
    assert elf.linked(object_of(CALLS)[:300], "run") is None
    assert elf.linked(object_of(CALLS), "elsewhere") is None


def test_programs_run_where_llvm_links(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other processors, where object files are kept."""
    from rvm.engines.native import roots

    monkeypatch.setattr(roots, "linked", lambda data, entry: None)
    wanted = rvm.assemble(STEPS).main(x=1.0, v=0.5, n=10, engine="reference").x
    assert run() == run() == wanted
    assert len(made) == 1
