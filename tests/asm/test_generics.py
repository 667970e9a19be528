"""Generic functions: made for types, they are what would have been written for these types."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from rvm_asm import assemble, disassemble
from rvm_asm.generics import members
from sizes import some

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import AssemblyError
from rvm.isa.rules import CLASSES
from rvm.program import Function
from rvm.types import SCALARS

DOC = Path(__file__).parents[2] / "docs" / "language.md"

AXPY = """
func axpy[T: number](y: T[n], a: T, x: T[n])
    alloc t: T[n]
    add t, a * x
    add y, t + T(3)
    sub t, a * x
    free t
"""
CLIMB = """
func even[T: int](y: T, n: T)
    if n > 0
        call odd(y, n - 1)
    end
func odd[T: int](y: T, n: T)
    if n > 0
        call even(y, n - 1)
    else
        inc y
    end
"""
BODIES = """
record Body[T: real]
    x: T[3]
    m: T
end
func kick[T: real](b: Body[T][n], h: T)
    for i = 0 to n - 1
        with c: Body[T], k = h / 2
            swap b[i], c
            swap c, b[i]
            add b[i].x, k * b[i].m
        end
    end
"""


def written_for(text: str, t: str) -> str:
    """A text of generic functions by hand for one type: the brackets go, and T is the type."""
    text = re.sub(r"(func \w+|record \w+)\[.*?\]", r"\1", text)
    text = text.replace("Body[T]", "Body")
    return re.sub(r"\bT\b", t, text.replace("T(", f"`{t}`("))


def checked(text: str) -> None:
    """A text whose generic functions are looked at for all types."""
    generics = rvm.assemble(text).program.generics
    assert generics is not None
    generics.check()


def same(one: Function, two: Function) -> bool:
    """Whether two functions are the same but for the names of functions and records."""
    code = [[(i.op, i.args, i.aux, i.symbol.split("[")[0]) for i in f.code] for f in (one, two)]
    return code[0] == code[1] and one.registers == two.registers and one.dims == two.dims


@pytest.mark.parametrize("text", [AXPY, CLIMB, BODIES], ids=["axpy", "climb", "bodies"])
def test_it_is_what_one_would_have_written(text: str) -> None:
    library = rvm.assemble(text)
    kind = re.search(r"T: (\w+)", text)
    assert kind is not None
    types = [*map(str, members([kind[1]])), *(["fixed(20)"] if kind[1] != "int" else [])]
    assert len(types) >= 4
    for t in types:
        by_hand = rvm.assemble(written_for(text, t))
        for name in library.generics:
            assert same(library[f"{name}[{t}]"].function, by_hand[name].function), (name, t)


def test_disassembled_it_is_the_same_bytes() -> None:
    library = rvm.assemble(AXPY + BODIES).having("kick[fixed(30)]", "axpy[u8]", "kick[f32]")
    text = disassemble(library)
    assert "func `axpy[u8]`(" in text and "`Body[fixed(30)]`{" in text
    data = encode(library)
    assert encode(assemble(text)) == data
    assert decode(data) == library.program


@pytest.mark.parametrize("engine", executing())
@some
def test_engines_run_it_there_and_back(engine: str) -> None:
    library = rvm.assemble(AXPY)
    for t, dtype in (("f32", "f4"), ("f64", "f8"), ("i32", "i4"), ("u8", "u1"), ("c128", "c16")):
        f = library[f"axpy[{t}]"].with_options(engine=engine)
        y, x = np.arange(3).astype(dtype), np.full(3, 2, dtype)
        out = f(y=y, a=4, x=x)
        assert list(y) == [11, 12, 13]
        (~f)(**out)
        assert list(y) == [0, 1, 2]
    fixed = library["axpy[fixed(20)]"].with_options(engine=engine)
    raw = np.zeros(2, np.int64)
    fixed(y=raw, a=4, x=np.full(2, 2 << 20))
    assert list(raw) == [11 << 20] * 2


# ---------------------------------------------------------------- inference


CALLS = """
record P[T: real]
    a: T
    s: T[2]
end
func two[T: number](y: T, x: T)
    add y, x
func like[T: number[…]](y: T, x: T)
    with t: T
        add t, x
        add y, t
        sub t, x
    end
func rows[T](y: T, x: T[n])
    swap y, x[0]
    swap x[0], y
func on[T: real](p: P[T], y: T)
    add y, p.a
func heap[T: number](s: stack[T], x: T)
    with t: T
        push t, s
        pop t, s
    end
func both[T: real, U: int](y: T, n: U)
    add y, T(n)
func main(a: f64, b: f32, n: u8, v: f64[k], w: f64[k], A: f64[m, k], p: P[f32], q: P[fixed][m], \\
          s: stack[i32], z: c128)
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("two(a, 2)", "two[f64]"),
        ("two(b, 2.5)", "two[f32]"),
        ("two(n, 2 * 3)", "two[u8]"),
        ("two(a, f64(n) + v[0])", "two[f64]"),
        ("two(v[1], a ** 2)", "two[f64]"),
        ("two(z, 2)", "two[c128]"),
        ("two(z.re, 2)", "two[f64]"),
        ("two(p.s[0], p.a / 2)", "two[f32]"),
        ("two(q[0].a, 1)", "two[fixed]"),
        ("like(v, w)", "like[f64[:]]"),
        ("like(A[0], v)", "like[f64[:]]"),
        ("like(A[0, 1], a)", "like[f64]"),
        ("rows(a, v)", "rows[f64]"),
        ("rows(v, A)", "rows[f64[:]]"),
        ("rows(p, r)", "rows[P[f32]]"),
        ("on(p, b)", "on[f32]"),
        ("on(q[1], q[0].a)", "on[fixed]"),
        ("heap(s, 3)", "heap[i32]"),
        ("both(a, n)", "both[f64, u8]"),
        ("both[f32, i64](b, 3)", "both[f32, i64]"),
        ("like[f64[:]](v, w)", "like[f64[:]]"),
    ],
)
def test_types_follow_from_arguments(call: str, name: str) -> None:
    text = CALLS.replace("z: c128)", "z: c128, r: P[f32][m])") + f"    call {call}\n"
    program = rvm.assemble(f"keep none\n{text}    uncall {call}\n").program
    assert [i.symbol for i in program.function("main").code] == [name, name]
    assert encode(assemble(disassemble(program))) == encode(program)


def test_recursion_for_other_types_comes_to_an_end() -> None:
    text = """
func total[T: number[…]](s: i64, x: T[n])
    with m = n
        call deeper(s, x[0])
        add s, m
    end
func deeper[T: number[…]](s: i64, x: T)
    inc s
func main(s: i64, x: f64[a, b, c])
    call total(s, x)
"""
    library = rvm.assemble(text)
    assert list(library) == ["main", "total[f64[:, :]]", "deeper[f64[:, :]]"]
    assert library.main(s=0, x=np.zeros((4, 2, 3))).s == 5


def test_iterate_takes_a_generic_step() -> None:
    text = """
func step[T: real](y: T, x: T, k: i64, c: T)
    add y, x + c * T(k)
func main(y: f64, x: f64, u: f32, v: f32)
    iterate step(y, x, k, 0.5) for k = 0 to 9 with pebbles = 5
    iterate step(u, v, k, 0.5) for k = 0 to 9 with pebbles = 5
"""
    library = rvm.assemble(text)
    out = library.main(y=0, x=1, u=0, v=2)
    assert (out.y, out.u) == (1 + 45 / 2, 2 + 45 / 2)
    assert encode(assemble(disassemble(library))) == encode(library)


def test_macros_do_not_see_the_types_around_them() -> None:
    text = "macro m x\n    alloc t: T\n    free t\nend\nfunc f[T: real](x: T)\n    m x\n"
    with pytest.raises(AssemblyError, match="there is no type `T`"):
        rvm.assemble(text)


# ---------------------------------------------------------------- functions as arguments


FOLD = """
func fold[T](s: T, x: T[n], f: func(T, T))
    for i = 0 to n - 1
        call f(s, x[i])
    end
func plus[T: number[…]](s: T, x: T)
    add s, x
func squares(s: f64, x: f64)
    add s, x ** 2
func passing[T: number](s: T, x: T[n], g: func(T, T))
    call fold(s, x, g)
    uncall fold(s, x, g)
    call fold(s, x, g)
func main(s: f64, x: f64[n], r: f64[k], A: f64[n, k])
    call fold(s, x, squares)
    call fold(s, x, plus)
    call fold(r, A, plus)
    call passing(s, x, plus[f64])
"""


@pytest.mark.parametrize("engine", executing())
@some
def test_functions_are_passed(engine: str) -> None:
    library = rvm.assemble(FOLD)
    f = library.main.with_options(engine=engine)
    x, matrix = np.array([1.0, 2.0, 4.0]), np.arange(6.0).reshape(3, 2)
    out = f(s=0, x=x, r=np.zeros(2), A=matrix)
    assert out.s == (1 + 4 + 16) + 7 + 7
    assert list(out.r) == [6, 9]
    assert (~f)(**out).s == 0
    g = library.main.grad(loss="s", s=0, x=x, r=np.zeros(2), A=matrix)
    assert list(g.x) == [2 * v + 2 for v in x]


def test_functions_in_brackets() -> None:
    library = rvm.assemble(FOLD)
    assert library["fold[f64, squares]"](s=0, x=np.array([3.0, 4.0])).s == 25
    assert library["fold[i64, plus]"].name == "fold[i64, plus[i64]]"
    assert library["passing[f32, plus]"](s=0, x=np.ones(3, np.float32)).s == 3
    assert encode(assemble(disassemble(library))) == encode(library)


# ---------------------------------------------------------------- checks


def test_what_is_not_called_is_checked_too() -> None:
    text = "func f[T: number](y: T, x: T)\n    add y, x / 2\nfunc main(x: f64)\n    add x, 1\n"
    with pytest.raises(AssemblyError) as caught:
        checked(text)
    (only,) = caught.value.diagnostics
    assert (only.code, only.where.line) == ("A040", 2)
    assert only.notes == ("for T = i8, i16, i32, i64, u8, u16, u32, u64",)
    assert list(rvm.assemble(text)) == ["main"]


def test_what_is_not_called_is_checked_for_one_type() -> None:
    text = "func f[T: number](y: T)\n    add y, z\nfunc main(x: f64)\n    add x, 1\n"
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    (only,) = caught.value.diagnostics
    assert (only.code, only.where.line) == ("A005", 2)
    assert len(only.notes[0].split(", ")) > 5, "an error is told for all types"


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ("swap y, x[0]", ""),
        ("with t: T\n    swap t, y\n    swap y, t\n    end", ""),
        ("add y, x[0]", "for T = bool, log64|for T = a record"),
        ("add y.x, 1", "for T = f64; T = bool; T = i8"),
        ("push y, s", "for T = bool; T = i8|for T = a record"),
    ],
)
def test_what_may_be_anything_is_checked_for_records_and_arrays(body: str, types: str) -> None:
    text = f"func f[T](y: T, x: T[n], s: stack[f64])\n    {body}\nfunc main(x: f64)\n    inc x\n"
    if not types:
        checked(text)
        return
    with pytest.raises(AssemblyError) as caught:
        checked(text)
    notes = [note for d in caught.value.diagnostics for note in d.notes]
    assert all(any(n.startswith(t) for n in notes) for t in types.split("|")), notes


def test_what_the_verifier_finds_is_reported_once() -> None:
    text = "func f[T: real](y: T, x: T)\n    add y, y * x\nfunc main(x: f64)\n    call f(x, 2)\n"
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(text)
    (only,) = caught.value.diagnostics
    assert (only.code, only.where.line) == ("A013", 2)
    assert only.notes[-1] == "for T = f64, f32, fixed, fixed(20)"


def test_only_what_is_asked_for_is_in_the_program() -> None:
    text = AXPY + "func main(y: f64[n], x: f64[n])\n    call axpy(y, 2, x)\n"
    assert list(rvm.assemble(text)) == ["main", "axpy[f64]"]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("func f[T: real](x: T)\n    inc x\n", "f[f64]"),
        ("func f[T: int](x: T)\n    inc x\n", "f[i64]"),
        ("func f[T: u8 | bool](x: T)\n    xor x, x0\n".replace("x0", "1'T"), "f[bool]"),
        ("entry f[f32]\nfunc f[T: real](x: T)\n    inc x\n", "f[f32]"),
        ("func f[T: real](x: T)\n    inc x\nfunc g(x: f64)\n    inc x\n", "g"),
        ("func main[T: real](x: T)\n    inc x\nfunc g(x: f64)\n    inc x\n", "main[f64]"),
        (
            "func a(x: f64, g: func(f64))\n    call g(x)\nfunc f[T: real](x: T)\n    inc x\n",
            "f[f64]",
        ),
        (
            "entry a[b]\nfunc a(x: f64, g: func(f64))\n    call g(x)\nfunc b(x: f64)\n    inc x\n",
            "a[b]",
        ),
    ],
)
def test_entries(text: str, entry: str) -> None:
    if "1'T" in text:
        text = text.replace("xor x, 1'T", "not x").replace("u8 | bool", "bool")
    assert rvm.assemble(text).program.entry == entry


def test_the_page_lists_the_classes() -> None:
    table = DOC.read_text(encoding="utf-8").split("| class | its types |")[1].split("\n\n")[0]
    listed = {}
    for row in table.splitlines()[2:]:
        names, types = (c.strip() for c in row.split("|")[1:3])
        for name, own in zip(names.split(", "), types.split("; "), strict=True):
            listed[name.strip("`")] = [*SCALARS] if own == "all" else own.split()
    assert listed == {
        c: [str(t) for t in members([c])] for c in CLASSES if c not in SCALARS or c == "bool"
    }


def test_functions_that_do_nothing_have_the_parameters_that_are_wanted() -> None:
    text = """
func both(x: f64, n: i64, f: func(f64), g: func(i64, f64))
    call f(x)
    call g(n, x)
func also(x: f64, f: func(f64, f64, f64))
    call f(x, 1, 2)
func main(x: f64)
    inc x
"""
    checked(text)


def test_what_is_wrong_elsewhere_brings_up_no_types_that_nothing_asks_for() -> None:
    """`1` is no fixed number here, which a text that uses f64 alone is not told."""
    text = """
func g[T: real](x: T[n], s: T, bar: T, f: func(T, T))
    map f'(x, s; 1, {bar})
func h[T: real](x: T, y: T)
    add x, 2 * y * y
func main(x: f64[n], s: f64, bar: f64)
    call g(x, s, bar, h)
"""
    assert "main" in rvm.assemble(text.format(bar="bar"))
    for changed, code in (
        (text.format(bar="bar") + "    add undefined, 2\n", "A005"),
        (text.format(bar="s"), "A014"),
    ):
        with pytest.raises(AssemblyError) as caught:
            rvm.assemble(changed)
        assert [d.code for d in caught.value.diagnostics] == [code]
