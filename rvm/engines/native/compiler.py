"""LLVM at work: from a module's text to machine code that can be called.

Object code is kept in a folder, by a hash of the text and of all that compiling depends on:
`RVM_CACHE_DIR`, by default `rvm` in the user's cache folder; if it is empty nothing is kept.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rvm.faults import UsageError
from rvm.numbers.llvm import SYMBOLS

Run = Callable[[Any, Any], int]
"""Takes the addresses of a frame's slots and of a context; how the run ended."""
LEVELS = ((4_000, 3), (40_000, 2))
"""Up to how many lines a module is optimised how much; longer ones least: LLVM's time grows faster
than the text.  Loops are vectorised at levels 2 and 3."""
DIGEST = 32


class Compiler:
    """LLVM for this machine."""

    def __init__(self) -> None:
        try:
            import llvmlite.binding as llvm
        except ImportError:
            raise UsageError(
                "U002",
                "the engine `native` needs llvmlite, which is not installed",
                hint='pip install "rvm[native]"; or use another engine',
            ) from None
        self.llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.cpu = llvm.get_host_cpu_name()
        self.features = llvm.get_host_cpu_features().flatten()
        self.triple = llvm.get_process_triple()
        self.machine = self._machine(3)
        self.layout = str(self.machine.target_data)
        self.jit = llvm.create_lljit_compiler(self.machine)
        libm = ctypes.CDLL(ctypes.util.find_library("m"))
        self.addresses = {
            alias: ctypes.cast(getattr(libm, name), ctypes.c_void_p).value
            for alias, name in SYMBOLS.items()
        }
        self.kept: list[Any] = []
        """What machine code lives in."""
        self.version = f"{llvm.llvm_version_info} {self.cpu} {self.features} {self.triple}"

    def _machine(self, level: int) -> Any:
        target = self.llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )

    def function(
        self,
        text: str,
        name: str,
        symbols: Sequence[str],
        memory: Mapping[str, int] | None = None,
    ) -> Run:
        """The machine code of a module's function; `memory` are addresses of its globals."""
        data = self._object(text)
        builder = self.llvm.JITLibraryBuilder()
        builder.add_object_img(data).add_current_process().export_symbol(name)
        for alias in symbols:
            builder.import_symbol(alias, self.addresses[alias])
        for alias, address in (memory or {}).items():
            builder.import_symbol(alias, address)
        library = builder.link(self.jit, f"m{len(self.kept)}")
        self.kept.append(library)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        return kind(library[name])

    def _object(self, text: str) -> bytes:
        key = blake2b(f"{self.version}\n{text}".encode(), digest_size=DIGEST).hexdigest()
        folder = cache_folder()
        found = None if folder is None else _kept(folder / key)
        if found is None:
            found = self.compiled(text)
            if folder is not None:
                _keep(folder, key, found)
        return found

    def compiled(self, text: str) -> bytes:
        """The object code of a module."""
        module = self.optimised(text)
        data: bytes = self.machine.emit_object(module)
        return data

    def optimised(self, text: str) -> Any:
        """A module of LLVM's after its optimisations."""
        llvm = self.llvm
        module = llvm.parse_assembly(text)
        lines = text.count("\n")
        level = next((level for most, level in LEVELS if lines <= most), 1)
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = level > 1
        passes = llvm.create_pass_builder(self.machine, options)
        passes.getModulePassManager().run(module, passes)
        return module

    def assembly(self, text: str) -> str:
        """The machine code of a module, to be read."""
        result: str = self.machine.emit_assembly(self.optimised(text))
        return result


@cache
def compiler() -> Compiler:
    """The one compiler; UsageError U002 without llvmlite."""
    return Compiler()


def cache_folder() -> Path | None:
    """Where object code is kept; None if nowhere."""
    given = os.environ.get("RVM_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "rvm" if base else None


def _kept(path: Path) -> bytes | None:
    """The object code in a file; None if there is none, or it has been damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    body = data[DIGEST:]
    return body if blake2b(body, digest_size=DIGEST).digest() == data[:DIGEST] else None


def _keep(folder: Path, key: str, data: bytes) -> None:
    """Put object code into a file, whole or not at all; without room there it is not kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(blake2b(data, digest_size=DIGEST).digest() + data)
        Path(name).replace(folder / key)
    except OSError:
        return
