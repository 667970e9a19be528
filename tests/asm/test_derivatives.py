"""Calls of derivatives in texts: `call f'(x; x_bar)`, `call f~'(x; x_bar)`, `call f.(x; x_dot)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpmath import mp
from rvm_asm import assemble, disassemble
from sizes import some, thin

import rvm
from rvm.engines import executing
from rvm.faults import AssemblyError

ENGINES = executing()
SERIES = """
func f(y: f64, x: f64, n: i64)              ; y += Σ sin(x / k) / k
    for k = 1 to n
        add y, sin(x / f64(k)) / f64(k)
    end
"""
BODIES = """
record Body
    x: f64[2]
    n: i64
    m: f64
end
record Force
    x: f64[2]
    m: f64
end

func pull(e: f64, a: Body, b: Body)
    with d0 = a.x[0] - b.x[0], d1 = a.x[1] - b.x[1]
        sub e, a.m * b.m / sqrt(d0 ** 2 + d1 ** 2)
    end

func one(a: Body, b: Body, fa: Force, fb: Force)        ; bars of the fields that have some
    call pull'(0.0, a, b; 1, fa, fb)

func all(b: Body[n], out: Body[n])                      ; bars in records of the argument's type
    for i = 1 to n - 1
        for j = 0 to i - 1
            call pull'(0.0, b[i], b[j]; 1, out[i], out[j])
        end
    end
"""


def series(x: float, n: int, order: int) -> float:
    """The derivatives of `f` of SERIES by x, from their formulas."""
    with mp.workdps(40):
        terms = (mp.diff(lambda t, k=k: mp.sin(t / k) / k, x, order) for k in range(1, n + 1))
        return float(mp.fsum(terms))


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_what_each_does(engine: str) -> None:
    text = (
        SERIES
        + """
func gradient(y: f64, x: f64, n: i64, yb: f64, xb: f64)
    call f'(y, x, n; yb, xb)
func adjoint(y: f64, x: f64, n: i64, yb: f64, xb: f64)
    call f~'(y, x, n; yb, xb)
func tangent(y: f64, x: f64, n: i64, yd: f64, xd: f64)
    call f.(y, x, n; yd, xd)
func back(y: f64, x: f64, n: i64, yb: f64, xb: f64)
    uncall f'(y, x, n; yb, xb)
"""
    )
    library = rvm.assemble(text)
    x, n = 0.7, 9
    value, slope = series(x, n, 0), series(x, n, 1)
    run = {
        k: library[k].with_options(engine=engine)
        for k in ("gradient", "adjoint", "tangent", "back")
    }
    at = {"y": 0.0, "x": x, "n": n, "yb": 2.0}
    near = {"rel": 1e-14, "abs": 1e-14}
    # The arguments are as they were, and the bars have gained.
    found = run["gradient"](y=0.0, x=x, n=n, yb=2.0, xb=0.5)
    assert dict(found) == pytest.approx(
        {"y": 0.0, "x": x, "n": n, "yb": 2.0, "xb": 0.5 + 2 * slope}, **near
    )
    found = run["back"](**found)
    assert dict(found) == pytest.approx({**at, "xb": 0.5}, **near)
    # From results to inputs.
    found = run["adjoint"](y=value, x=x, n=n, yb=2.0, xb=0.5)
    assert dict(found) == pytest.approx(
        {"y": 0.0, "x": x, "n": n, "yb": 2.0, "xb": 0.5 + 2 * slope}, **near
    )
    # From inputs to results.
    found = run["tangent"](y=0.0, x=x, n=n, yd=0.5, xd=2.0)
    assert dict(found) == pytest.approx(
        {"y": value, "x": x, "n": n, "yd": 0.5 + 2 * slope, "xd": 2.0}, **near
    )


def test_a_result_that_takes_the_place_of_an_input() -> None:
    """Of x := 3 x + 1 the bar is not added to, but becomes that of the input."""
    f = rvm.assemble("""
func f(x: f64)
    mul x, 3
    add x, 1
func main(x: f64, xb: f64)
    call f'(x; xb)
""").main
    assert dict(f(x=5.0, xb=7.0)) == {"x": 5.0, "xb": 21.0}


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_records(engine: str) -> None:
    library = rvm.assemble(BODIES)
    rng = np.random.default_rng(1)
    n = 4
    x, m = rng.normal(size=(n, 2)), rng.uniform(1, 2, size=n)

    def energy(x: np.ndarray, m: np.ndarray) -> float:
        pairs = [(i, j) for i in range(n) for j in range(i)]
        return -sum(m[i] * m[j] / np.hypot(*(x[i] - x[j])) for i, j in pairs)

    bodies = {"x": x, "n": np.arange(n), "m": m}
    out = {"x": np.zeros((n, 2)), "n": np.full(n, 7), "m": np.zeros(n)}
    found = library["all"].with_options(engine=engine)(b=bodies, out=out)
    h = 1e-6
    for i in range(n):
        for k in range(2):
            step = np.zeros((n, 2))
            step[i, k] = h
            slope = (energy(x + step, m) - energy(x - step, m)) / (2 * h)
            assert found.out["x"][i, k] == pytest.approx(slope, rel=1e-7)
        step = np.eye(n)[i] * h
        slope = (energy(x, m + step) - energy(x, m - step)) / (2 * h)
        assert found.out["m"][i] == pytest.approx(slope, rel=1e-7)
    assert list(found.out["n"]) == [7] * n
    two = [{"x": x[k], "n": 0, "m": float(m[k])} for k in (1, 0)]
    force = [{"x": np.zeros(2), "m": 0.0} for _ in two]
    short = library["one"](a=two[0], b=two[1], fa=force[0], fb=force[1])
    r = x[1] - x[0]
    assert short.fa["x"] == pytest.approx(m[0] * m[1] * r / np.hypot(*r) ** 3, rel=1e-12)


RECORDS = {
    "a record": ("Body", "{}", lambda v: v),
    "an element": ("Body[n]", "{}[1]", lambda v: np.array([v, v])),
    "the top of a stack": ("stack[Body]", "{}.top", lambda v: [v, v]),
    "a generic record": ("Of[f64]", "{}", lambda v: v),
}
"""For each kind of argument its type, how it is passed, and what a field then holds."""
FORMS = {
    "'": "call f'(e, {b}; e1, {d})",
    "' undone": "uncall f'(e, {b}; e1, {d})",
    "~'": "call f~'(e, {b}; e1, {d})",
    "~' undone": "uncall f~'(e, {b}; e1, {d})",
    ".": "call f.(e, {b}; e1, {d})",
    ". undone": "uncall f.(e, {b}; e1, {d})",
    "'.": "call f'.(e, {b}, e1, {d}; e2, {b2}, e3, {d2})",
}


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", RECORDS)
@some
def test_bars_in_records_of_the_arguments_own_type(kind: str, form: str, engine: str) -> None:
    """What has no bar in such a record stays; the rest is J, or its transpose, by differences."""
    t, place, value = RECORDS[kind]
    names = {k: place.format(k) for k in ("b", "d", "b2", "d2")}
    records = ", ".join(f"{k}: {t}" for k in names)
    library = rvm.assemble(f"""
record Pair
    p: f64
    q: f64
end
record Body
    n: i64
    x: f64
    v: Pair
    on: bool
    m: f64
end
record Of[T: real]
    n: i64
    x: T
    v: Pair
    on: bool
    m: T
end
func f(e: f64, b: {"Of[f64]" if "generic" in kind else "Body"})
    add e, b.m * sin(b.x) * b.v.p + b.v.q ** 2
    if b.on
        add b.x, e * b.v.q * f64(b.n)
    end
func main({records}, e: f64, e1: f64, e2: f64, e3: f64)
    {FORMS[form].format(**names)}
""")
    assert assemble(disassemble(library.program)) == library.program
    run = library.main.with_options(engine=engine)

    def record(numbers: np.ndarray, n: int) -> dict[str, Any]:
        x, p, q, m = (value(float(v)) for v in numbers[1:])
        return {"n": value(n), "on": value(True), "x": x, "v": {"p": p, "q": q}, "m": m}

    def numbers(e: float, b: Any) -> np.ndarray:
        return np.array([e, *(np.ravel(v)[-1] for v in (b["x"], b["v"]["p"], b["v"]["q"], b["m"]))])

    def step(at: np.ndarray) -> np.ndarray:
        e, x, p, q, m = at
        e += m * np.sin(x) * p + q**2
        return np.array([e, x + e * q * 3, p, q, m])

    def jacobian(at: np.ndarray) -> np.ndarray:
        h = np.eye(5) * 1e-6
        return np.array([(step(at + s) - step(at - s)) / 2e-6 for s in h]).T

    rng = np.random.default_rng(3)
    at, along, there, way = rng.uniform(0.5, 1.5, size=(4, 5))
    backwards = form in ("~'", ". undone")
    begins = step(at) if backwards else at
    given = {k: record(v, 3) for k, v in zip(names, (begins, along, there, way), strict=True)}
    found = run(**given, e=begins[0], e1=along[0], e2=there[0], e3=way[0])
    ends = at if backwards or form.startswith("'") else step(at)
    near = {"rel": 1e-7, "abs": 1e-7}
    matrix = jacobian(at) if form.startswith(".") else jacobian(at).T
    if form.endswith("undone"):
        matrix = np.linalg.inv(matrix)
    assert numbers(found.e, found.b) == pytest.approx(ends, **near)
    assert numbers(found.e1, found.d) == pytest.approx(matrix @ along, **near)
    if form == "'.":
        dots = [jacobian(at + h * there).T @ (along + h * way) for h in (1e-5, -1e-5)]
        assert numbers(found.e2, found.b2) == pytest.approx(there, **near)
        slopes = (dots[0] - dots[1]) / 2e-5
        assert numbers(found.e3, found.d2) == pytest.approx(slopes, rel=1e-4, abs=1e-4)
    for k, before in given.items():
        for field in ("n", "on"):
            assert np.array_equal(found[k][field], before[field])


def test_generic_functions_and_those_that_are_passed() -> None:
    text = """
func cube[T: float](y: T, x: T)
    add y, x ** 3
func square(y: f64, x: f64)
    add y, x * x
func twice[T: float](y: T, x: T, g: func(T, T))
    call g(y, x)
    call g(y, x)
func slope[T: float](x: T, xb: T, g: func(T, T))    ; of whatever is passed
    call g'(T(0), x; 1, xb)
func by_types(x: f32, xb: f32)
    call cube[f32]'(0, x; 1, xb)
func passed(x: f32, xb: f32)
    call slope(x, xb, cube[f32])
func through(x: f64, xb: f64)
    call twice'(0.0, x, square; 1, xb)
func second(x: f64, xb: f64, xdd: f64)              ; the tangent of the gradient
    call cube'.(0.0, x, 1, xb; 0, 1, 0, xdd)
"""
    library = rvm.assemble(text)
    assert library["by_types"](x=2.0, xb=1.0).xb == 13.0
    assert library["passed"](x=2.0, xb=1.0).xb == 13.0
    assert library["through"](x=2.0, xb=1.0).xb == 9.0
    assert dict(library["second"](x=2.0, xb=1.0, xdd=0.0)) == {"x": 2.0, "xb": 13.0, "xdd": 12.0}
    assert {"cube[f32]'", "cube[f64]'."} <= set(library.program)
    assert "call `cube[f32]'`(" in disassemble(library.program)
    made = library.program.generics
    assert made is not None
    with_more, name = made.made("slope[f64, square]")
    assert name in with_more and "square'" in with_more


def test_only_what_is_called_is_made() -> None:
    """Derivatives that a generic function is tried with are not in the program."""
    program = assemble(
        SERIES
        + """
func slope[T: float](x: T, xb: T, g: func(T, T))
    call g'(T(0), x; 1, xb)
func main(x: f64, xb: f64)
    call f'(0.0, x, 3; 1, xb)
    uncall f~'(0.0, x, 3; 1, xb)
"""
    )
    assert list(program) == ["f", "main", "f~'", "f'"]


def test_stacks_integers_and_complex_numbers() -> None:
    text = """
func f(y: f64, z: c128, s: stack[f64], k: i64, b: bool)
    alloc t: f64
    pop t, s
    add y, t ** k * abs2(z)
    push t, s
    free t
func main(y: f64, z: c128, s: stack[f64], zb: c128, sb: stack[f64])
    call f'(y, z, s, 3, true; 1, zb, sb)
"""
    f = rvm.assemble(text).main
    found = f(y=0.0, z=1 + 2j, s=[5.0, 2.0], zb=0j, sb=[0.0, 0.0])
    assert found.zb == 8 * 2 * (1 + 2j) and found.sb == [0.0, 60.0] and found.s == [5.0, 2.0]


def test_values_that_a_call_and_an_adjoint_undo_are_back_by_construction() -> None:
    """No tolerance is needed where an ancilla is freed."""
    text = """
func f(x: f64, t: f64)
    add t, 1e6 * sin(x)
    add x, t * t
func main(x: f64, xb: f64)
    alloc t: f64 = exp(x)
    alloc tb: f64
    call f(x, t)
    call f~'(x, t; xb, tb)
    uncall f~'(x, t; xb, tb)
    uncall f(x, t)
    free tb
    free t = exp(x)
"""
    program = assemble(text)
    from rvm.image import image_of

    function = program.function("main")
    frees = {pc for pc, i in enumerate(function.code) if i.op == "free"}
    _, (there, back) = image_of(program).sizes(function)
    last = len(function.code) - 1
    assert frees <= there.known
    assert {last - pc for pc, i in enumerate(function.code) if i.op == "alloc"} <= back.known


def test_lanes_are_runs_one_by_one() -> None:
    f = rvm.assemble(
        SERIES
        + """
func main(x: f64, xb: f64, n: i64)
    call f'(0.0, x, n; 1, xb)
"""
    ).main
    x = np.linspace(-2, 2, 17)
    found = f.map(x=x, xb=np.zeros(17), n=5)
    assert found.xb.tolist() == [f(x=v, xb=0.0, n=5).xb for v in x.tolist()]
    assert found.xb == pytest.approx([series(v, 5, 1) for v in x.tolist()], rel=1e-13)


def test_second_derivatives_by_a_gradient_of_a_program_that_calls_one() -> None:
    f = rvm.assemble(
        SERIES
        + """
func main(x: f64, xb: f64, n: i64)
    call f'(0.0, x, n; 1, xb)
"""
    ).main
    g = f.grad(loss="xb", x=0.7, xb=0.0, n=9)
    assert g.x == pytest.approx(series(0.7, 9, 2), rel=1e-13) and g.xb == 1.0
    assert f.hessian(loss="xb", x=0.7, xb=0.0, n=9).x.x == pytest.approx(
        series(0.7, 9, 3), rel=1e-12
    )


def test_a_semicolon_elsewhere_begins_a_comment() -> None:
    program = assemble(
        SERIES
        + """
func main(x: f64, xb: f64)                  ; f'(a; b)
    call f' \\  ; a comment
        (0.0, x, 3 ; 1, \\ ; another; one
        xb) ; f'(
    add x, (1.5 + 2) ; )
    print_it "f'(" ; x )
macro print_it a
end
""".replace('print_it "f\'("', "print_it x")
    )
    assert [i.op for i in program.function("main").code] == ["alloc", "call", "free", "add"]


@pytest.mark.usefixtures("clean_tables")
def test_what_has_no_derivative_is_shown_where_it_stands() -> None:
    @rvm.function()
    def ragged(x: float) -> float:
        """Python code without partials."""
        return x if x > 0 else -x

    text = """
func f(y: f64, x: f64)
    add y, x
    add y, ragged(x)
func main(y: f64, x: f64, xb: f64)
    call f'(y, x; 1, xb)
"""
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    (found,) = caught.value.diagnostics
    assert found.code == "D011" and "`ragged` has no derivative" in found.message
    assert found.where.line == 4
    assert [(b.line, b.text) for b in found.labels if b.text] == [(6, "`f` is differentiated here")]


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("call g'(y, x, 3)", "A002", "call g'(arguments; bars)"),
        ("call f'(y, x, 3; 1)", "A080", "in order y: f64, x: f64"),
        ("call f.(y, x, 3; 1)", "A080", "takes 2 dots"),
        ("call f'(y, x; 1, xb)", "A044", "the 3 arguments of `f`"),
        ("call f'(y, x, 3; 1, x)", "A014", "`x_bar`, which `f'` changes, and for `x`"),
        ("call f'(y, x, 3; 1, s)", "A040", "the bar of `x` is an f64, and this is an f32"),
        ("call f'(y, x, 3; 1, v)", "A042", "the bar of `x` is an f64, and this is an f64[:]"),
        ("call f'(y, x, 3; 1, r)", "A040", "not a record"),
        ("call f'(y, x, n; 1, xb)", "A005", "nothing here is called `n`"),
        ("call of'(r, y; xb, y)", "A040", "the bar of `r` is a record, and this is none"),
        ("call of'(r, y; q, xb)", "A040", "the bar of `r.a` is an f64, and this is a fixed"),
        ("call of'(r, y; rs, xb)", "A042", "1 dimension more than the bar of `r`"),
        ("call of'(rs, y; rs, xb)", "A042", "1 dimension more than parameter `r`"),
        ("call of'.(r, y, r, 1; r, 0, x, 0)", "A040", "the dot of the bar of `r` is a record"),
        ("map of'(rs, y; v, xb)", "A040", "the bar of `r` is a record, and this is none"),
        ("call nothing'(y; y)", "A045", "no function `nothing`"),
        ("call whole'(3;)", "A080", "none of its parameters"),
        ("call f~(y, x, 3; 1, xb)", "A002", "marks are `'`, `~'`, `.`"),
        ("call f.grad(y, x, 3)", "A002", "with a mark\n"),
        ("call f.jvp(y, x, 3; 1, xb)", "A002", "`call f.(arguments; dots)`"),
        ("uncall adjoint f(y, x, 3)", "A002", "`uncall f~'(arguments; bars)`"),
        ("call f'(y, x, 3; 1; xb)", "A002", "bars are separated by commas"),
        ("call of'(y, r; r, y)", "A040", "`of'` takes a record `R` here"),
        ("call taken'(x; xb)", "A006", "`taken'` is declared"),
        (
            "call main'(y, x, xb, s, v, r, rs, q; y, xb, xb, s, v, r, rs, _)",
            "D015",
            "derivative of itself",
        ),
    ],
)
def test_what_is_wrong_is_said(statement: str, code: str, words: str) -> None:
    text = f"""{SERIES}
record R
    a: f64
    b: f64
end
record Q
    a: fixed
    b: f64
end
func of(r: R, y: f64)
func whole(n: i64)
func taken(x: f64)
func `taken'`(x: f64)
func main(y: f64, x: f64, xb: f64, s: f32, v: f64[k], r: R, rs: R[k], q: Q)
    {statement}
"""
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    (found,) = caught.value.diagnostics
    assert found.code == code and words in found.human()
