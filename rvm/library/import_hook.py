"""Programs as modules: `import leapfrog` for a file `leapfrog.rasm` on Python's path."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from keyword import iskeyword
from pathlib import Path
from types import ModuleType

from rvm.library.frontends import front_ends, load


def importable(name: str) -> bool:
    """Whether a function of that name becomes an attribute of its module."""
    return name.isidentifier() and not iskeyword(name) and not name.startswith("__")


class _Finder(MetaPathFinder):
    """A finder of programs, used where Python has found no module."""

    def __init__(self) -> None:
        self.suffixes = [*sorted(front_ends().keys() - {"py"}), "rbc"]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for suffix in self.suffixes:
                file = Path(folder or ".") / f"{name}.{suffix}"
                if file.is_file():
                    return spec_from_file_location(fullname, file, loader=_Loader(file))
        return None


class _Loader(Loader):
    """A loader that makes a module of a program's functions."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def exec_module(self, module: ModuleType) -> None:
        library = load(self.file)
        names = [n for n in (*library, *library.generics) if importable(n)]
        module.__dict__.update({name: library[name] for name in names})
        module.__all__ = names  # type: ignore[attr-defined]


def install_import_hook() -> None:
    """Let `import NAME` find `NAME.rasm`, and files of other front ends, as modules.

    They are searched for in the folders of `sys.path`, or of their package, where Python has found
    no module of that name.  The functions become the module's attributes; errors in the text raise
    AssemblyError on import.  Further calls have no effect.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


__all__ = ["importable", "install_import_hook"]
