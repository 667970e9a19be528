"""A program's gradient in other frameworks: SciPy, PyTorch, JAX.

Each module here needs its library only when it is used, and the library is an
optional extra: `pip install "rvm[torch]"`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rvm.faults import UsageError


def library(name: str, module: str = "") -> Any:
    """An optional library's module; UsageError U007 if the library is not installed."""
    try:
        return import_module(module or name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name:
            raise
        raise UsageError(
            "U007",
            f"rvm.interop.{name} needs the library `{name}`, which is not installed",
            hint=f'pip install "rvm[{name}]"',
        ) from None
