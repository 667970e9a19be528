"""Files in Python whose reversible functions are a program."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from rvm_asm.build import Build
from rvm_asm.texts import build

from rvm.faults import UsageError
from rvm.library.generic import GenericFunction
from rvm.library.reversible import PythonOrigin
from rvm.program import Program
from rvm_python.rasm import written
from rvm_python.source import takes_functions
from rvm_python.unit import Unit

MODULE = "__rvm__"
"""The name of a file's module while it is run for its functions."""


def load(
    path: str | Path, *, include_path: str | Path | Sequence[str | Path] = (), includes: str = "any"
) -> Program:
    """The program of a file's reversible functions; the file is run for them, as `__rvm__`.

    OSError if it cannot be read, AssemblyError with what is wrong with the functions; what the file
    raises is the file's own.  UsageError U047 if it has no reversible function.
    """
    return build(_unit(Path(path)).declarations)


def rasm(text: str, name: str, *, functions: Sequence[str] = ()) -> str:
    """The program of the file called `name` in the assembly language.

    Functions whose types the arguments tell are in it for types that are named, `pair[i64, i64]`.
    """
    unit = _unit(Path(name))
    declarations = unit.declarations
    build = Build(declarations)
    program = build.program([build.wanted(f) for f in functions if "[" in f])
    if not program.functions:
        raise UsageError(
            "U043",
            f"the types of the functions in {name} follow from arguments, and none are named",
            hint=f"-f '{program.entry}[f64, …]' names them",
        )
    return written(build, program)


def _unit(path: Path) -> Unit:
    module = _run(path)
    found = [v for v in vars(module).values() if isinstance(v, GenericFunction)]
    own: dict[PythonOrigin, None] = {}
    for f in found:
        if isinstance(f.origin, PythonOrigin) and f.origin.function.__module__ == MODULE:
            own[f.origin] = None
    # Those that take functions are there for the functions that calls pass.
    own = {o: None for o in own if not takes_functions(o.function)}
    if not own:
        raise UsageError(
            "U047",
            f"{path} has no reversible function",
            hint="`@rvm.reversible` in front of `def` makes one",
        )
    return Unit(sorted(own, key=lambda o: o.function.__code__.co_firstlineno))


def _run(path: Path) -> ModuleType:
    """A file, run."""
    with path.open("rb"):
        pass
    spec = spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise UsageError("U047", f"{path} is not a file in Python")
    module = module_from_spec(spec)
    with _importing(module, path):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _importing(module: ModuleType, path: Path) -> Iterator[None]:
    """Modules beside the file are found by it; it is known by its name."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[MODULE] = module
    try:
        yield
    finally:
        sys.path.remove(folder)
