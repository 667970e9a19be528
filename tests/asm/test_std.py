"""The library's texts against NumPy, on all engines, there and back, and their gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rvm_asm
from rvm_asm import assemble, disassemble
from rvm_asm.includes import STD, library
from sizes import sample, some, thin

import rvm
from rvm.codec import encode
from rvm.engines import executing
from rvm.faults import AssemblyError, RvmError

FOLDS = """
include "std/fold.rasm"
func plus[T: number[…]](s: T, x: T)
    add s, x
func squares(s: f64, x: f64)
    add s, x ** 2
func logistic(y: f64, x: f64, r: f64)
    add y, r * x * (1 - x)
func turned(y: c128, x: c128)
    add y, x * cis(0.5)
func main(s: f64, r: f64[m], x: f64[n], A: f64[n, m], c: f64[l], u: f64[k], z: c128[n])
    call fold(s, x, squares)
    call fold(r, A, plus)
    call fold_of(s, x, squares, plus)
    call scan_with(c, 3.5, logistic)
    uncall scan_with(c, 3.5, logistic)
    call scan_over(c, u, logistic)
    call scan(z, turned)
"""
STACKS = """
include "std/stacks.rasm"
func large(b: bool, x: f64)
    xor b, x > 1
func main(s: stack[f64], up: stack[f64], at: stack[i64], x: f64[n])
    call filter(s, x, large)
    call ascending(up, at, x)
"""
LINEAR = """
include "std/linear.rasm"
include "std/statistics.rasm"
func main(y: f64[n, n], A: f64[n, n], d: f64, l: f64)
    call inverse(y, A)
    call determinant(d, A)
    call logdet(l, A)
func solved(b: f64[n], A: f64[n, n])
    with p: i64[n]
        call factor(A, p)
        call solve(b, A, p)
        uncall factor(A, p)
    end
func moments(m: f64, v: f64, p: f64, x: f64[n])
    call mean(m, x)
    call variance(v, x)
    for i = 0 to n - 1
        add p, normal_logpdf(x[i], m, sqrt(v))
    end
"""
TEXTS = {"folds": FOLDS, "stacks": STACKS, "linear": LINEAR}


@pytest.mark.parametrize("engine", executing())
@some
def test_folds_and_recurrences(engine: str) -> None:
    f = rvm.assemble(FOLDS).main.with_options(engine=engine)
    r = np.random.default_rng(0)
    x, matrix, u = r.normal(size=3), r.normal(size=(3, 2)), np.array([2.0, 3.0, 3.5])
    z = np.array([1j, 0, 0])
    given = {"s": 1.0, "r": np.zeros(2), "x": x, "A": matrix, "c": np.array([0.3, 0, 0, 0])}
    out = f(**given, u=u, z=z)
    assert out.s == pytest.approx(1 + 2 * (x @ x), rel=1e-14)
    np.testing.assert_allclose(out.r, matrix.sum(0), rtol=1e-14)
    c = [0.3]
    for k in range(3):
        c.append(u[k] * c[-1] * (1 - c[-1]))
    np.testing.assert_allclose(out.c, c, rtol=1e-14)
    np.testing.assert_allclose(out.z, 1j * np.exp([0, 0.5j, 1j]), rtol=1e-14)
    back = (~f)(**out)
    assert back.s == pytest.approx(1) and list(back.c) == [0.3, 0, 0, 0]


def test_the_gradient_of_a_recurrence() -> None:
    text = FOLDS + "func orbit(c: f64[n], r: f64)\n    call scan_with(c, r, logistic)\n"
    f = rvm.assemble(text).orbit
    start = np.array([0.3, 0, 0, 0, 0])
    g = f.vjp({"c": np.array([0.0, 0, 0, 0, 1])}, c=start.copy(), r=3.2)

    def last(r: float) -> float:
        x = 0.3
        for _ in range(4):
            x = r * x * (1 - x)
        return x

    assert g.r == pytest.approx((last(3.2 + 1e-6) - last(3.2 - 1e-6)) / 2e-6, rel=1e-8)


@pytest.mark.parametrize("engine", executing())
@some
def test_selections(engine: str) -> None:
    f = rvm.assemble(STACKS).main.with_options(engine=engine)
    for x in ([1.5, 0.5, 3.0, 2.0, 4.0, 4.0], [], [-1.0], [3.0, 2.0, 1.0]):
        out = f(s=[], up=[], at=[], x=np.array(x))
        assert out.s == [v for v in x if v > 1]
        assert out.at == [k for k, v in enumerate(x) if all(v > w for w in x[:k])]
        assert out.up == [x[k] for k in out.at]
        back = (~f)(**out)
        assert (back.s, back.up, back.at) == ([], [], [])


@thin
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("n", [0, 1, 2, 3, 6])
@sample
def test_linear_equations(engine: str, n: int) -> None:
    lib = rvm.assemble(LINEAR)
    r = np.random.default_rng(n)
    matrix = r.normal(size=(n, n))
    if n > 2:
        matrix[0, 0] = 0  # so that rows must be exchanged
    out = lib.main.with_options(engine=engine)(y=np.zeros((n, n)), A=matrix.copy(), d=0, l=0)
    inverse, det = np.linalg.inv(matrix), np.linalg.det(matrix)
    np.testing.assert_allclose(out.y, inverse, rtol=1e-10)
    np.testing.assert_allclose([out.d, out.l], [det, np.log(abs(det))], rtol=1e-10)
    b = r.normal(size=n)
    solved = lib.solved.with_options(engine=engine)
    x = solved(b=b.copy(), A=matrix.copy()).b
    np.testing.assert_allclose(x, inverse @ b, rtol=1e-10)
    np.testing.assert_allclose((~solved)(b=x, A=matrix.copy()).b, b, rtol=1e-10)


def test_gradients_of_linear_equations() -> None:
    f = rvm.assemble(LINEAR).main
    r = np.random.default_rng(4)
    matrix, seed = r.normal(size=(4, 4)), r.normal(size=(4, 4))
    given = {"y": np.zeros((4, 4)), "d": 0, "l": 0}
    inverse = np.linalg.inv(matrix)
    for loss, expected in (
        ({"d": 1.0}, np.linalg.det(matrix) * inverse.T),
        ({"l": 1.0}, inverse.T),
        ({"y": seed}, -inverse.T @ seed @ inverse.T),
    ):
        np.testing.assert_allclose(f.vjp(loss, A=matrix.copy(), **given).A, expected, rtol=1e-9)


def test_a_matrix_without_an_inverse() -> None:
    with pytest.raises(RvmError, match="the matrix is singular") as caught:
        rvm.assemble(LINEAR).solved(b=np.ones(2), A=np.ones((2, 2)))
    assert caught.value.code == "R013"


def test_moments() -> None:
    x = np.random.default_rng(5).normal(3, 2, size=9)
    out = rvm.assemble(LINEAR).moments(m=0, v=0, p=0, x=x)
    np.testing.assert_allclose([out.m, out.v], [x.mean(), x.var(ddof=1)], rtol=1e-13)
    density = np.exp(-((x - out.m) ** 2) / (2 * out.v)) / np.sqrt(2 * np.pi * out.v)
    assert out.p == pytest.approx(np.log(density).sum(), rel=1e-12)


@thin
@pytest.mark.parametrize("name", library())
def test_a_file_stands_alone_for_all_types(name: str) -> None:
    generics = rvm.assemble(f'include "{name}"\nfunc main(x: i64)\n    inc x\n').program.generics
    assert generics is not None
    generics.check()
    idea = (STD.parent / name).read_text(encoding="utf-8").splitlines()[0]
    assert idea.startswith("; ") and len(idea) < 101


@pytest.mark.parametrize("name", list(TEXTS))
def test_disassembled_it_is_the_same_bytes(name: str) -> None:
    program = assemble(TEXTS[name])
    assert encode(assemble(disassemble(program))) == encode(program)
    assert all("/" not in s.name or s.name in library() for s in program.sources)


@pytest.mark.parametrize("includes", ["none", "below", "any"])
def test_every_policy_allows_the_library(includes: str, tmp_path: Path) -> None:
    path = tmp_path / "a.rasm"
    path.write_text('include "b.rasm"\n' * (includes != "none") + FOLDS)
    (tmp_path / "b.rasm").write_text('include "std/fold.rasm"\n')
    (tmp_path / "std").mkdir()
    (tmp_path / "std" / "fold.rasm").write_text("nonsense")
    assert "scan[c128, turned]" in rvm_asm.load(path, includes=includes)


def test_other_files_of_the_package_are_not_libraries() -> None:
    for name in ("std/../codes.py", "std/nothing.rasm", "fold.rasm", "std", "/std/fold.rasm"):
        with pytest.raises(AssemblyError) as caught:
            assemble(f'include "{name}"\nfunc f(x: i64)\n    inc x\n')
        assert [d.code for d in caught.value.diagnostics] == ["A069"]
    with pytest.raises(AssemblyError, match=r"the library has .*\bstd/fold\.rasm, "):
        assemble('include "std/folds.rasm"\nfunc f(x: i64)\n    inc x\n', includes="any")
