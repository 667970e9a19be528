"""What `help`, `inspect.signature` and `__doc__` say of functions of programs."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path

import pytest

import rvm

TEXT = """
; Not this.

record Body
    x: f64
    v: f64
end

; The sum of a vector's squares,
; which only grows.
func norm(x: f64[n], y: f64 = 0, s: stack[i64], b: Body)   ; y += sum of squares
    for i = 0 to n - 1
        add y, x[i] ** 2
    end

func axpy[T: real](y: T[n], a: T, x: T[n]) ; y += a x
    add y, a * x

;! run bare(k=1) -> k=2
func bare(k: i64)
    inc k

entry norm
"""


def test_signatures_have_types_and_starting_values() -> None:
    library = rvm.assemble(TEXT)
    assert (
        str(inspect.signature(library.norm))
        == "(x: f64[n], y: f64 = 0.0, s: stack[i64] = [], *, b: Body) -> Result"
    )
    swapped = rvm.assemble("func f(k: i64, y: f64 = 0)\n    add y, f64(k)\n").f
    assert str(inspect.signature(swapped)) == "(k: i64, y: f64 = 0.0) -> Result"
    assert inspect.signature(swapped).bind(3).arguments == {"k": 3}
    assert list(inspect.signature(library.axpy).parameters) == ["y", "a", "x"]
    assert list(inspect.signature(~library.norm).parameters) == ["x", "y", "s", "b"]


def test_comments_at_the_head_are_the_documentation() -> None:
    library = rvm.assemble(TEXT)
    said = library.norm.__doc__ or ""
    assert said.startswith("<function norm(x: f64[n]")
    assert said.endswith("The sum of a vector's squares,\nwhich only grows.\ny += sum of squares")
    assert (library.axpy.__doc__ or "").endswith("y += a x")
    assert library["axpy[f32]"].comment() == "y += a x"
    assert library.bare.comment() == "" and library.bare.__doc__ == repr(library.bare)
    assert "which only grows" in pydoc.render_doc(library.norm)
    assert "A call is a transaction" in (type(library.norm).__doc__ or "")


def test_what_python_says_of_a_python_function_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "door.py").write_text(
        "import rvm\n\n@rvm.reversible\n"
        'def f(x: rvm.f64, n: int = 3):\n    """Text."""\n    x += n\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    from importlib import import_module

    f = import_module("door").f
    assert f.__doc__ == "Text." and list(inspect.signature(f).parameters) == ["x", "n"]
    assert inspect.signature(f).parameters["n"].default == 3
