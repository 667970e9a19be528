"""Options of the whole test suite."""

from __future__ import annotations

import compileall
import gc
import os
import re
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import sizes

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts jobs in the background with Ctrl-C ignored, and all their children inherit
    # that; the tests that interrupt a run would wait for its end, which is hours away.
    signal.signal(signal.SIGINT, signal.default_int_handler)


GATES = {
    "wide": "do what CI does besides an ordinary run",
    "deep": "do exhaustive tests, and the whole of those that do a part",
    "soak": "do the long tests too",
    "npm": "do tests with packages from npm too",
}
"""Markers of tests that run only if they are asked for, by an option or by `-m`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, text in GATES.items():
        parser.addoption(f"--{name}", action="store_true", help=text)


def asked_for(config: pytest.Config, name: str) -> bool:
    """Whether an option or `-m` names a marker of `GATES`."""
    chosen = re.search(rf"(?<!not )\b{name}\b", config.option.markexpr)
    return bool(config.getoption(f"--{name}") or chosen)


def pytest_configure(config: pytest.Config) -> None:
    sizes.DEEP = asked_for(config, "deep")
    with suppress(ImportError):
        # Its own deadline for an example is one in wall time, which a loaded machine misses.
        from hypothesis import settings

        settings.register_profile("patient", settings.default, deadline=None)
        settings.load_profile("patient")
    if config.args == config.getini("testpaths"):
        for_all_files(config)
    if hasattr(config, "workerinput"):
        return
    if "RVM_CACHE_DIR" not in os.environ:
        # One folder of machine code for all processes of a run, away from the user's own.
        os.environ["RVM_CACHE_DIR"] = shared(config)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # Processes that tests begin would compile all sources again, for half of their time.
        os.environ["PYTHONPYCACHEPREFIX"] = shared(config)


def for_all_files(config: pytest.Config) -> None:
    """Leave `assert` as Python has it, and share the compiling of sources among processes.

    pytest's own `assert`, which shows values, takes longer to compile than to run.  It is there
    when files are named, as that of a test that failed.
    """
    if config.pluginmanager.rewrite_hook in sys.meta_path:
        sys.meta_path.remove(config.pluginmanager.rewrite_hook)
    if hasattr(config, "workerinput") and config.option.markexpr != "smoke":
        # All processes import all files in the same order, so each would compile all of them.
        ours = int(config.workerinput["workerid"].removeprefix("gw"))
        folders = [config.rootpath / name for name in ("rvm", "asm", "tools", "tests")]
        files = sorted(file for folder in folders for file in folder.rglob("*.py"))
        for file in files[ours :: config.workerinput["workercount"]]:
            compileall.compile_file(file, quiet=2)


def shared(config: pytest.Config) -> str:
    """A folder for all processes of a run, which goes with it."""
    made = tempfile.TemporaryDirectory(prefix="rvm-tests-")
    config.add_cleanup(made.cleanup)
    return made.name


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m smoke`, files in which the word does not stand are not even imported."""
    if config.option.markexpr != "smoke" or collection_path.suffix != ".py":
        return None
    return "mark.smoke" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that nobody asked for go; before `-m` looks at the markers."""
    for marker, cases in sizes.left_out(items).items():
        for case in cases:
            case.add_marker(marker)
    if sizes.DEEP:
        for item in items:
            if item.get_closest_marker("sized"):
                item.add_marker("deep")
    asked = [name for name in GATES if asked_for(config, name)]
    # What is exhaustive is everything.
    shut = set(GATES) - set(asked) - ({"wide"} if "deep" in asked else set())
    # An item's keywords have the names of folders too, that of the clone among them.
    gone = [item for item in items if not shut.isdisjoint(m.name for m in item.iter_markers())]
    if gone:
        config.hook.pytest_deselected(items=gone)
        left = set(gone)
        items[:] = [item for item in items if item not in left]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end, so the garbage collector is off meanwhile
    and does not look at it later: a third of the time would go into that."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        # Programs and what is made of them live as long as their module: looking through all of
        # them time and again takes a twelfth of the time.
        gc.set_threshold(2_000, 20, 100)


@pytest.fixture
def clean_tables() -> Iterator[None]:
    """What a test defines is gone after it."""
    from rvm.isa import FUNCTIONS, OPCODES
    from rvm.isa.lower import linked_body
    from rvm.transform.maps import adjoint_map, tangent_map

    opcodes, functions = dict(OPCODES), dict(FUNCTIONS)
    yield
    for table, before in ((OPCODES, opcodes), (FUNCTIONS, functions)):
        for name in set(table) - set(before):
            del table[name]  # type: ignore[attr-defined]
    for cached in (linked_body, adjoint_map, tangent_map):
        cached.cache_clear()
