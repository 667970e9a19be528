"""Numbers that callers give, by every way in: the same ones are taken, the same ones refused."""

from __future__ import annotations

import linecache
import math
import random
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rvm_tools.cells import read_table
from rvm_tools.debug import Session
from rvm_tools.debug.texts import raw_text
from rvm_tools.literals import read_literal
from rvm_tools.values import inputs_for
from sizes import examples, thin
from tools.dap.client import Refused, talking

import rvm
from rvm.engines import ENGINES
from rvm.interop.scipy import objective
from rvm.numbers import system
from rvm.run.machine import Machine
from rvm.types import C128, F32, F64, FIXED, LOG64, SCALARS, Scalar

TYPES = tuple(SCALARS.values())
BIG = 2**53 + 1


def program(t: Scalar) -> rvm.Library:
    """A function with a parameter of each kind that may hold a number of a type."""
    return rvm.assemble(f"""record Held
    v: {t}
end
func main(x: {t}, s: stack[{t}], r: Held, other: f64)
    add other, 1
""")


PROGRAMS = {t: program(t) for t in TYPES}
ZERO = {t: system(t).to_python(system(t).zero) for t in TYPES}


def call(t: Scalar, v: Any) -> Any:
    zero = ZERO[t]
    out = PROGRAMS[t].main(x=v, s=[], r={"v": zero}, other=0.0)
    return out.x


def stack(t: Scalar, v: Any) -> Any:
    zero = ZERO[t]
    return PROGRAMS[t].main(x=zero, s=[v], r={"v": zero}, other=0.0).s[0]


def record(t: Scalar, v: Any) -> Any:
    return PROGRAMS[t].main(x=ZERO[t], s=[], r={"v": v}, other=0.0).r.v


def lane(t: Scalar, v: Any) -> Any:
    zero = ZERO[t]
    out = PROGRAMS[t].main.map(x=[v, v], s=[], r={"v": zero}, other=0.0)
    return system(t).to_python(out.x[1].item())


def assigned(t: Scalar, v: Any) -> Any:
    zero = ZERO[t]
    m = Machine(PROGRAMS[t], x=zero, s=[], r={"v": zero}, other=0.0)
    m["x"] = v
    return m["x"]


def pushed(t: Scalar, v: Any) -> Any:
    zero = ZERO[t]
    m = Machine(PROGRAMS[t], x=zero, s=[], r={"v": zero}, other=0.0)
    m["s"] = [v]
    return m["s"][0]


def element(t: Scalar, v: Any) -> Any:
    m = Machine(
        rvm.assemble(f"func main(x: {t}[n], other: f64)\n    add other, 1\n"),
        x=np.zeros(1, system(t).dtype),
        other=0.0,
    )
    m["x"] = [v]
    return system(t).to_python(m["x"][0].item())


WAYS: dict[str, Callable[[Scalar, Any], Any]] = {
    f.__name__: f for f in (call, stack, record, lane, assigned, pushed, element)
}
GIVEN: list[Any] = [
    *(0, 1, -1, 255, 256, 2**24 + 1, 2**31, 2**53, BIG, -BIG, 2**62 + 1, 2**63, 10**400, 10**5000),
    *(0.0, -0.0, 0.1, 3.0, 1e22, 1e300, -1e300, 1e-46, math.inf, math.nan),
    *(Decimal("0.1"), Decimal("1e23"), Decimal("1e400"), Decimal("1e-400"), Decimal("1e999999999")),
    *(Fraction(1, 3), Fraction(BIG), Fraction(10**400), Fraction(1, 10**400), Decimal("-0")),
    *(True, np.True_, np.float32(0.1), np.float64(1e300), np.int64(2**62 + 1), np.uint8(7)),
    *(
        np.longdouble(2) ** 60 + 1,
        np.array(3),
        np.array(2.5),
        1j,
        complex(0.1, -0.0),
        np.complex64(2),
    ),
    *("3", None, [1], np.ma.masked, np.ma.array(3.0), Decimal("nan"), Decimal("1e-999999999")),
    *(1.0, 1.5, float(BIG), -3.0, 256.0, 2.0**63, np.float32(3), np.int8(3), np.array(3.0)),
    *(Fraction(3), Decimal(3), Decimal("3.0"), 3 + 0j, -math.inf, False),
]


def took(f: Callable[[Scalar, Any], Any], t: Scalar, v: Any) -> str:
    """The number that a way in makes of a value, or that it refuses it."""
    try:
        return repr(f(t, v))
    except rvm.InputError as error:
        assert error.code == "I003"
        assert str(error)
        return "refused"


@thin
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_all_ways_take_the_same(t: Scalar) -> None:
    for v in GIVEN:
        wanted = took(call, t, v)
        for name, f in WAYS.items():
            if name == "element" and isinstance(v, list):
                # A list in a list is an array of two dimensions.
                continue
            assert took(f, t, v) == wanted, (name, type(v))


def real(v: Any) -> Fraction | None:
    """The exact value of a real number; None of another, or of one that is not finite."""
    if isinstance(v, (bool, np.bool_, str, list, complex)) or v is None:
        return None
    if isinstance(v, (np.ma.MaskedArray, np.complexfloating)):
        return None
    if isinstance(v, Decimal) and abs(v.adjusted()) > 10**6:
        return None
    v = v.item() if isinstance(v, np.ndarray) else v
    if isinstance(v, np.longdouble):
        return Fraction(*v.as_integer_ratio())
    v = v.item() if isinstance(v, np.generic) else v
    return Fraction(v) if math.isfinite(v) or isinstance(v, (int, Fraction)) else None


@pytest.mark.parametrize("t", [F64, F32, C128, FIXED, *TYPES[1:6]], ids=str)
def test_by_exact_arithmetic(t: Scalar) -> None:
    """Whole numbers exact, others no further from what was given than any neighbour, all finite."""
    for v in GIVEN:
        try:
            exact = real(v)
        except OverflowError:
            exact = Fraction(v)
        if exact is None:
            continue
        try:
            held = system(t).from_python(v)
        except ValueError:
            assert not is_held(t, exact, whole=not isinstance(v, (float, Decimal))), v
            continue
        near(t, held.real if t.is_complex else held, exact)


def is_held(t: Scalar, v: Fraction, whole: bool) -> bool:
    """Whether a type has a number: itself if it must be whole, else something near."""
    if t.is_integer or t.is_bool:
        low, high = (0, 1) if t.is_bool else (system(t).low, system(t).high)  # type: ignore[attr-defined]
        return v.denominator == 1 and low <= v <= high
    if t.is_fixed:
        return abs(v) < 2 ** (63 - t.frac)
    largest = Fraction(float(np.finfo(np.float32 if t == F32 else np.float64).max))
    if abs(v) > largest:
        return False
    digits = 24 if t == F32 else 53
    return v.denominator != 1 or not whole or v.numerator.bit_length() <= digits


def near(t: Scalar, held: Any, exact: Fraction) -> None:
    """No neighbour of a number is nearer."""
    if t.is_integer or t.is_bool:
        assert held == exact
        return
    if t.is_fixed:
        assert abs(Fraction(held, 1 << t.frac) - exact) <= Fraction(1, 2 << t.frac)
        return
    kind = np.float32 if t == F32 else np.float64
    assert math.isfinite(held)
    gap = abs(Fraction(held) - exact)
    for to in (-math.inf, math.inf):
        other = float(np.nextafter(kind(held), kind(to)))
        assert math.isinf(other) or gap <= abs(Fraction(other) - exact)


@examples(200)
@given(st.integers(0, 2**23), st.integers(-120, -1), st.sampled_from([-1, 0, 1]))
def test_decimals_midway_between_singles(m: int, k: int, side: int) -> None:
    """A decimal that is nearly midway is not rounded twice, by way of an f64 that is midway."""
    tie = (Fraction(2**23 + m) + Fraction(1, 2)) * Fraction(2) ** k
    v = tie + side * tie / 2**80
    near(F32, system(F32).from_python(v), v)


def test_logarithms_of_what_is_not_a_float() -> None:
    log = system(LOG64).from_python
    for k in (400, 5000):
        assert math.isclose(log(10**k), k * math.log(10), rel_tol=1e-15)
        assert math.isclose(log(Fraction(1, 10**k)), -k * math.log(10), rel_tol=1e-15)
        assert math.isclose(log(Decimal(10) ** -k), -k * math.log(10), rel_tol=1e-15)


WRITTEN: dict[str, Any] = {
    "9007199254740993": BIG,
    "9007199254740993.0": Decimal(BIG),
    "16777217": 2**24 + 1,
    "1e300": Decimal("1e300"),
    "1e400": Decimal("1e400"),
    "1e23": Decimal("1e23"),
    "0.1": Decimal("0.1"),
    "-3": -3,
    "3": np.int8(3),
    "3.0": np.float32(3),
    "1.0000000596046448": Decimal("1.0000000596046448"),
    "1.0": 1.0,
    "1.5": 1.5,
    "-0.0": -0.0,
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "true": True,
    "3+0j": 3 + 0j,
    '"3"': "3",
    "-0": 0,
    "0x1f": 31,
    "1_000": 1000,
    "+5": 5,
    "18446744073709551615": 2**64 - 1,
    "9223372036854775809": 2**63 + 1,
    "1e-400": Decimal("1e-400"),
    "0.1000000000000000055511151231257828": Decimal("0.1000000000000000055511151231257828"),
    "2.1019476964872256e-45": Decimal("2.1019476964872256e-45"),
    "123456.123456789": Decimal("123456.123456789"),
    "-0.1-1e-30j": complex(-0.1, -1e-30),
    "9007199254740992j": complex(0, 2**53),
    "1e23-0j": complex(1e23, -0.0),
    "-0+1j": complex(-0.0, 1),
    "inf-infj": complex(math.inf, -math.inf),
}
"""Values in the text of a command, with numbers of Python that are the same."""


NO_PARTS = (
    *("9007199254740993+1j", "9007199254740993j", "-9007199254740993j", "0-9007199254740993j"),
    *("1e400+1j", "1e400j", "1-1e400j", "nan+1e400j", "(1e400, 0)", "(0, -1e400)"),
    *("(9007199254740993, 1)", "(1, 9007199254740993)", "(9007199254740993,1)'c128"),
)
"""Complex numbers whose parts are no f64."""
BESIDE = ("0", "0.5", "-1", "1e300", "true", "2+1j", "3'fixed")
"""Cells of other columns, which make no difference."""


@pytest.mark.parametrize("text", NO_PARTS)
def test_programs_refuse_the_same_literals(text: str, tmp_path: Path) -> None:
    """In the assembly language, in pure functions and in Python, a number of parts too."""
    for written in (text, text.replace("9007199254740993", "0x20000000000001")):
        if "0x20000000000001j" in written:
            continue  # no number
        typed = written if written[0] != "(" or "'" in written else f"{written}'c128"
        texts = {"a.rasm": f"func f(y: c128)\n    add y, {typed}\n"}
        if written[0] != "(":
            texts["b.pure"] = f"def f(x: c128) = x + ({written})\n"
            texts["c.py"] = f"@rvm.reversible\ndef f(y: rvm.c128):\n    y += {written}\nf(0j)\n"
        for name, source in texts.items():
            path = tmp_path / name
            path.write_text(source, "utf-8")
            with pytest.raises(rvm.AssemblyError) as caught:
                if path.suffix == ".py":
                    lines = dict(enumerate(source.splitlines(keepends=True)))
                    linecache.cache[str(path)] = (
                        len(source),
                        None,
                        list(lines.values()),
                        str(path),
                    )
                    exec(compile(source, str(path), "exec"), {"rvm": rvm, "nan": math.nan})
                else:
                    rvm.load(path)
            assert [d.code for d in caught.value.diagnostics] == ["A041"], (name, source)


@pytest.mark.parametrize(
    "text", ["9007199254740992j", "9007199254740993.0j", "0.1j", "-2j", "3+4j"]
)
def test_programs_take_the_other_literals(text: str) -> None:
    f = rvm.assemble(f"func f(y: c128)\n    add y, {text}\n").f
    assert f(y=0j).y == complex(text)


def through_files(t: Scalar, folder: Path) -> dict[str, Callable[[str], list[Any]]]:
    """The ways of the command line, which give all the numbers that they make of a text.

    A number by itself, in lists and in files, and in arrays, beside other numbers.
    """
    given = PROGRAMS[t].program.function("main")
    zero = read_literal("true" if t.is_bool else "0")
    arrays = rvm.assemble(f"func main(x: {t}[n], m: {t}[k, l])\n").main.function

    def one(value: Any) -> list[Any]:
        made = {"x": value, "r": {"v": zero}, "other": read_literal("0")}
        return [inputs_for(given, made, folder)["x"]]

    def first(value: Any, name: str = "x", empty: str = "m") -> Any:
        made = {name: value, empty: [] if empty == "x" else read_literal("zeros(0, 0)")}
        found = inputs_for(arrays, made, folder)[name]
        return system(t).to_python(found.flat[0].item())

    def file(name: str, text: str) -> Path:
        (folder / name).write_text(text)
        return folder / name

    def in_json(text: str) -> list[Any]:
        quoted = text if re.fullmatch(r"-?[1-9][.e0-9]*|true", text) else f'"{text}"'
        file("x.json", quoted)
        file("xs.json", f"[{quoted}, 1]")
        return [*one(read_literal("@x.json")), first(read_literal("@xs.json"))]

    def in_a_table(text: str) -> list[Any]:
        tables = [text, f"x\n{text}\n", f"{text}\n1\n", f"{text},1,1", f"# x\n\n{text}#\n1 \n"]
        found = []
        for table in tables:
            file("x.csv", table)
            found.append(first(read_literal("@x.csv")))
        found.append(first(read_literal("@x.csv"), "m", "x"))
        file("x.csv", text)
        found += one(read_literal("@x.csv"))
        names, others = ",".join(f"b{k}" for k in range(len(BESIDE))), ",".join(BESIDE)
        file("x.csv", f"{names},x\n{others},{text}\n{others}, 1 \n")
        found.append(first(read_literal("@x.csv:x")))
        return found

    return {
        "written": lambda text: one(read_literal(text)),
        "listed": lambda text: [first(read_literal(f"[{text}]"))],
        "in JSON": in_json,
        "in a table": in_a_table,
    }


@thin
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_the_command_line_takes_the_same(t: Scalar, tmp_path: Path) -> None:
    ways = through_files(t, tmp_path)
    for text, v in (WRITTEN | dict.fromkeys(NO_PARTS, "refused")).items():
        wanted = took(call, t, v)
        for name, way in ways.items():
            if set(text) & {"in JSON": {'"'}, "in a table": {'"', "("}}.get(name, set()):
                continue
            for found in took_all(way, text):
                assert found == wanted, (name, text)


def took_all(way: Callable[[str], list[Any]], text: str) -> set[str]:
    try:
        return set(map(repr, way(text)))
    except rvm.InputError as error:
        assert error.code == "I003", error
        return {"refused"}


@thin
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_typed_literals_are_held_to_the_same_rule(t: Scalar, tmp_path: Path) -> None:
    """A log64's is its logarithm, which is an f64, a fixed's its raw integer, others' a number."""
    ways = through_files(t, tmp_path)
    stored = F64 if t.is_log else SCALARS["i64"] if t.is_fixed else t
    for text, v in WRITTEN.items():
        if not re.fullmatch(r"[-+.e\d]+(j|[-+][e\d]+j)?", text):
            continue
        wanted = took(call, stored, v)
        if t.is_log and wanted != "refused":
            wanted = repr(rvm.LogNumber(float(wanted)))
        if t.is_fixed and wanted != "refused":
            wanted = "refused" if "." in text or "e" in text else repr(rvm.Fixed(int(wanted)))
        for name, way in ways.items():
            assert took_all(way, f"{text}'{t}") == {wanted}, (name, text)
        other = "i64" if t != SCALARS["i64"] else "f64"
        assert took_all(ways["written"], f"1'{other}") == {"refused"}


ALL = rvm.assemble(
    f"func main({', '.join(f'x{k}: {t}[m], y{k}: {t}' for k, t in enumerate(TYPES))}, n: i64)\n"
    "    add n, 1\n"
)
"""Arrays and numbers of all types."""
ALL_ZERO: dict[str, Any] = {
    **{f"x{k}": np.zeros(2, system(t).dtype) for k, t in enumerate(TYPES)},
    **{f"y{k}": ZERO[t] for k, t in enumerate(TYPES)},
    "n": 2,
}


def raw_of(session: Session, name: str, t: Scalar) -> Any:
    return system(t).to_python(session.evaluate(name)[1])


@thin
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_set_in_the_debugger_takes_the_same(t: Scalar) -> None:
    session, k = Session(ALL.program, "main", ALL_ZERO), TYPES.index(t)

    def number(t: Scalar, text: str) -> Any:
        session.set(f"y{k}", text)
        return raw_of(session, f"y{k}", t)

    def element(t: Scalar, text: str) -> Any:
        session.set(f"x{k}[1]", text)
        return raw_of(session, f"x{k}[1]", t)

    def whole(t: Scalar, text: str) -> Any:
        session.set(f"x{k}", f"[0, {text}]" if not t.is_bool else f"[false, {text}]")
        return raw_of(session, f"x{k}[1]", t)

    for text, v in WRITTEN.items():
        if '"' not in text:
            wanted = took(call, t, v)
            for way in (number, element, whole):
                assert took(way, t, text) == wanted, (way, text)
    # What it shows can be set, and is the same number.
    rng = random.Random(str(t))
    for _ in range(20):
        bits = rng.randbytes(system(t).dtype.itemsize)
        raw = rng.random() < 0.5 if t.is_bool else np.frombuffer(bits, system(t).dtype)[0].item()
        session.frames[0].regs[2 * k + 1] = raw
        session.set(f"y{k}", raw_text(t, raw))
        assert repr(session.frames[0].regs[2 * k + 1]) == repr(raw)


def test_setting_in_an_editor_takes_the_same(tmp_path: Path) -> None:
    (tmp_path / "all.rasm").write_text(ALL.program.sources[0].text)
    given = {name: [0, 0] if name[0] == "x" else 0 for name in ALL_ZERO} | {"n": 2}
    for k, t in enumerate(TYPES):
        if t.is_bool:
            given |= {f"x{k}": [False, False], f"y{k}": False}
    with talking() as client:
        client.launch(tmp_path / "all.rasm", inputs=given, stopOnEntry=True)
        client.event("stopped")
        for k, t in enumerate(TYPES):
            for text in ("9007199254740993", "1e400", "0.1", "3", "-3", "3.0", "inf", "true"):
                try:
                    client.ask("setExpression", expression=f"y{k}", value=text, frameId=1)
                except Refused as error:
                    assert error.code == "I003"
                    assert took(call, t, WRITTEN[text]) == "refused", (t, text)
                else:
                    shown = client.ask("evaluate", expression=f"y{k}", frameId=1)["result"]
                    raw = system(t).from_python(WRITTEN[text])
                    assert shown == raw_text(t, raw), (t, text)


@pytest.mark.parametrize("t", TYPES, ids=str)
def test_the_command_line_and_the_library_refuse_in_the_same_words(t: Scalar) -> None:
    function = rvm.assemble(f"func main(x: {t}, other: f64)\n add other, 1\n").main
    for text in ("1.5", "1e400", "-1", "2", "true", "1j", "nan"):
        v = read_literal(text)
        said = []
        for way in (
            lambda v=v: inputs_for(function.function, {"x": v, "other": 0}, Path()),
            lambda v=v: function(x=v, other=0.0),
        ):
            try:
                way()
            except rvm.InputError as error:
                said.append(error.message)
        assert len(said) != 1 and len(set(said)) <= 1, said


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Numbers near the limits of types, and decimals near what is midway between two floats."""
    bits = draw(st.sampled_from([7, 8, 15, 24, 31, 32, 53, 63, 64]))
    whole = 2**bits + draw(st.integers(-2, 2))
    tie = (2 ** draw(st.sampled_from([24, 53])) + draw(st.integers(0, 99))) * 2 + 1
    scaled = Fraction(tie) * Fraction(2) ** draw(st.sampled_from([-1, -30, -60, -149 - 24, 40]))
    side = Decimal(draw(st.integers(-1, 1))).scaleb(-70)
    with localcontext(prec=200):
        near = Decimal(scaled.numerator) / Decimal(scaled.denominator) * (1 + side)
    made = draw(
        st.sampled_from([str(whole), f"{whole}.0", str(near), f"{near:f}", repr(whole / 7)])
    )
    exponent = draw(st.sampled_from(["", "", "", "e300", "e-330", "e400", "e0"]))
    sign = draw(st.sampled_from(["", "", "-", "+"]))
    return f"{sign}{made}{'' if 'e' in made.lower() else exponent}"


@examples(60)
@given(st.lists(texts(), min_size=1, max_size=12), st.sampled_from(TYPES))
def test_a_column_holds_what_a_list_of_its_texts_does(cells: list[str], t: Scalar) -> None:
    """Each number by itself, in a column by itself, and with all others that the type takes."""
    function = rvm.assemble(f"func main(x: {t}[n])\n").main.function

    def read(value: Any) -> Any:
        return inputs_for(function, {"x": value}, Path())["x"]

    def column(cells: list[str]) -> Any:
        return read(read_table("\n".join(["x", *cells]), Path("x.csv"), None)[1])

    taken = []
    for cell in cells:
        try:
            taken.append((cell, read(read_literal(f"[{cell}]")).item()))
        except rvm.InputError as error:
            assert error.code == "I003"
            with pytest.raises(rvm.InputError, match=r"line 2, column 1 of x\.csv: ") as caught:
                column([cell])
            assert caught.value.code == "I003"
            assert caught.value.message.endswith(error.message.partition(": ")[2])
    found = column([cell for cell, _ in taken])
    assert found.tobytes() == np.array([v for _, v in taken], found.dtype).tobytes()


KINDS = ("?", *"bhiqBHIQ", "e", "f", "d", "g", "F", "D")
IN_ARRAYS = (0, 1, -1, 1.5, -0.0, 200, 2**24 + 1, 2**53, 2.0**63, 0.1, math.inf, math.nan, 2j)


@thin
@pytest.mark.parametrize("t", [t for t in TYPES if not (t.is_fixed or t.is_log)], ids=str)
def test_a_file_of_an_array_gives_the_numbers_that_it_holds(t: Scalar, tmp_path: Path) -> None:
    """What such a file holds is taken as the caller's own number is, or it is refused."""
    function = rvm.assemble(f"func main(x: {t})\n").main.function
    for kind in KINDS:
        for v in IN_ARRAYS[: None if kind in "FD" else -1]:
            with np.errstate(all="ignore"):
                held = np.array(v).astype(kind)
            np.save(tmp_path / "x.npy", held)

            def read(t: Scalar, v: Any) -> Any:
                return inputs_for(function, {"x": v}, tmp_path)["x"]

            found = took(read, t, read_literal("@x.npy"))
            wanted = took(call, t, held)
            exact = wanted == "refused" or t.is_bool or complex(held) == complex(eval(wanted, NAN))
            assert found == (wanted if exact else "refused") or "nan" in found, (kind, v)


NAN = {"nan": math.nan, "inf": math.inf}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "made", ["zeros(0)", "ones(3)", "range(3)", "zeros(2, 2)", "ones(1, 2, 3)"]
)
def test_described_arrays_have_the_shape_that_is_written(made: str, rank: int) -> None:
    function = rvm.assemble(f"func main(x: i64[{', '.join('abc'[:rank])}])\n").main.function
    shape = tuple(map(int, re.findall(r"\d+", made)))
    given = {"x": read_literal(made)}
    if len(shape) == rank:
        assert inputs_for(function, given, Path())["x"].shape == shape
        return
    with pytest.raises(rvm.InputError) as caught:
        inputs_for(function, given, Path())
    assert caught.value.code == "I004"


# ---------------------------------------------------------------- arrays


class Odd(np.ndarray):  # type: ignore[type-arg]
    """An array that shows other elements than it holds."""

    def __getitem__(self, key: Any) -> Any:
        return 42.0

    def __len__(self) -> int:
        return 1


SUMS = rvm.assemble("""func main(x: f64[m, n], y: f64)
    for i = 0 to m - 1
        add y, x[i, 0]
        add x[i, n - 1], y
    end
    add y, sum(x[:, 0])
""")


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", [np.matrix, Odd])
def test_subclasses_are_what_they_hold(name: str, kind: type[np.ndarray[Any, Any]]) -> None:
    pytest.importorskip("llvmlite") if name == "native" else None
    plain = np.arange(6.0).reshape(3, 2)
    given = plain.copy().view(kind)
    want = SUMS.main(x=plain, y=0.5, engine="reference")
    out = SUMS.main(x=given, y=0.5, engine=name)
    assert out.x is given
    assert out.y == want.y
    assert given.tobytes() == plain.tobytes()
    back = (~SUMS.main)(**out, engine=name)
    assert back.x is given
    assert np.array_equal(np.asarray(given.view(np.ndarray)), np.arange(6.0).reshape(3, 2))
    mapped = SUMS.main.map(x=np.stack([plain, plain]).view(Odd), y=0.5)
    assert type(mapped.x) is np.ndarray


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.array(np.ones((2, 2)), mask=np.eye(2))
    ways: list[Callable[[], Any]] = [
        lambda: SUMS.main(x=masked, y=0.0),
        lambda: SUMS.main.map(x=np.ma.array(np.ones((3, 2, 2))), y=0.0),
        lambda: SUMS.main.grad(x=masked, y=0.0, loss="y"),
        lambda: Machine(SUMS, x=np.ones((2, 2)), y=0.0).__setitem__("x", masked),
    ]
    for way in ways:
        with pytest.raises(rvm.InputError, match="some numbers of a masked array do not count"):
            way()


@pytest.mark.parametrize("name", ENGINES)
def test_arrays_that_overlap_themselves_are_refused(name: str) -> None:
    base = np.zeros(8, [("a", "f8"), ("b", "f8")])
    odd = [
        np.broadcast_to(np.float64(1), (2, 2)),
        np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
        np.ndarray((3, 2), np.float64, base, 0, (16, 16)),
    ]
    for x in odd:
        with pytest.raises(rvm.InputError) as caught:
            SUMS.main(x=x, y=0.0, engine=name)
        assert caught.value.code == "I005"
    with pytest.raises(rvm.InputError):
        SUMS.main.map(x=np.lib.stride_tricks.as_strided(np.ones(4), (2, 2, 2), (0, 8, 8)), y=[0.0])


# ------------------------------------------------------------------ what fills a stack

MOVES = rvm.assemble("""func moves[T: value | bool](y: stack[T], x: stack[T], n: i64)
    for i = 1 to n
        alloc t: T
        pop t, x
        push t, y
        free t
    end
""")


@pytest.mark.parametrize("t", TYPES, ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_of_the_storage_fill_stacks(t: Scalar, engine: str) -> None:
    sys = system(t)
    raws = np.array([1, 0, 1, 1], sys.dtype)
    begun = raws.copy()
    moves = MOVES[f"moves[{t}]"].with_options(engine=engine)
    listed = [sys.to_python(v) for v in raws.tolist()]
    for filled in (raws, np.repeat(raws, 2)[::2], memoryview(raws)):
        out = moves(y=[], x=filled, n=4)
        assert out.x == [] and out.y == listed[::-1]
    assert np.array_equal(raws, begun)  # an array says how a stack begins, and stays as it is
    back = (~moves)(**out)
    assert back.x == listed and back.y == []
    own = listed.copy()
    moves(y=[], x=own, n=4)
    assert own == []


def test_bytes_fill_stacks_of_u8_and_may_share_memory_with_arrays() -> None:
    moves = MOVES["moves[u8]"]
    for filled in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        assert bytes(moves(y=[], x=filled, n=3).y) == b"cba"
    raws = np.frombuffer(b"abc", np.uint8)
    assert bytes(moves(y=raws, x=raws, n=3).y) == b"abccba"


def test_arrays_of_another_kind_fill_no_stack() -> None:
    moves = MOVES["moves[u8]"]
    for code, filled in (
        ("I003", np.arange(3)),
        ("I003", np.ma.masked_array(np.zeros(2, np.uint8), [True, False])),
        ("I004", np.zeros((2, 2), np.uint8)),
        ("I003", "abc"),
        ("I003", (1, 2)),
        ("I003", [1, 256]),
        ("I003", [-1, 1]),
        ("I003", [1, True]),
    ):
        with pytest.raises(rvm.InputError) as error:
            moves(y=[], x=filled, n=3)
        assert error.value.code == code, filled


def test_plain_lists_are_taken_like_any_other() -> None:
    """Lists of one plain type are looked at as a whole: with the same outcome as one by one."""
    for t in TYPES:
        sys = system(t)
        for values in ([], [1, 0], [1.0, 0.0], [True], [0, 1.0], [2**70], [math.inf, math.nan]):
            try:
                wanted = [sys.from_python(v) for v in values]
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    sys.list_from_python(values)
            else:
                found = sys.list_from_python(values)
                assert repr(found) == repr(wanted) and found is not values


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool", "list"])
@pytest.mark.parametrize("t", TYPES, ids=str)
def test_the_hint_for_a_refused_array_makes_one_of_the_same_numbers(t: Scalar, dtype: str) -> None:
    """The expression in the hint, evaluated, is taken, and is of the numbers that were given."""
    numbers = [1, 0, 1] if t.is_bool or dtype == "bool" else [1, 3, 2]
    x: Any = numbers if dtype == "list" else np.array(numbers, dtype)
    library = rvm.assemble(f"func main(x: {t}[n])\n swap x[0], x[1]\n")
    if dtype == system(t).dtype:
        return  # taken, as it is stored
    with pytest.raises(rvm.InputError) as caught:
        library.main(x=x)
    assert caught.value.code == "I003" and bool(caught.value.notes) == bool(system(t).held_as)
    hint = caught.value.hint.removeprefix("convert it yourself, for example ")
    hint = hint.removesuffix(": nothing is copied silently").replace("…", "x")
    made = eval(hint, {"np": np, "x": x})
    library.main(x=made)
    found = [system(t).to_python(v) for v in made.tolist()]
    swapped = [numbers[1], numbers[0], numbers[2]]
    assert [complex(v) for v in found] == pytest.approx([complex(n) for n in swapped])


def test_a_generic_function_of_what_is_stored_as_other_numbers_are() -> None:
    library = rvm.assemble("func main[T: fixed](x: T[n])\n add x[0], 1\n")
    with pytest.raises(rvm.RvmError, match=r"name it, `main\[fixed\]`"):
        library.main(x=np.array([1, 2]))
    assert library["main[fixed]"](x=np.array([1, 2])).x[0] == 1 + (1 << 43)


BODY = """record Body
    pos: f64[2]
    mass: f64
end
func main(y: f64, b: Body)
    add y, b.mass * sum(b.pos)
"""
FIELDS_GIVEN: dict[str, Callable[[Any, Any], object]] = {
    "call": lambda f, b: f(y=0.0, b=b),
    "undone": lambda f, b: (~f)(y=0.0, b=b),
    "machine": lambda f, b: f.machine(y=0.0, b=b),
    "map": lambda f, b: f.map(y=np.zeros(3), b=b),
    "grad": lambda f, b: f.grad(y=0.0, b=b, loss="y"),
    "hessian": lambda f, b: f.hessian(y=0.0, b=b, loss="y"),
    "check": lambda f, b: rvm.check_grad(f, y=0.0, b=b, loss="y"),
    "seeds": lambda f, b: f.vjp({"b": b}, y=0.0, b=RIGHT),
    "tangents": lambda f, b: f.jvp({"b": b}, y=0.0, b=RIGHT),
    "held fixed": lambda f, b: objective(f, "y", "y", y=0.0, b=b),
}
RIGHT = {"pos": np.ones(2), "mass": 2.0}


@pytest.mark.parametrize("way", FIELDS_GIVEN)
@pytest.mark.parametrize(
    ("wrong", "said", "hint"),
    [
        ({"pos": np.ones(2), "mas": 2.0}, "`mas`: a `Body` has pos, mass", "did you mean `mass`?"),
        (RIGHT | {"colour": 3.0}, "`colour`: a `Body` has pos, mass", ""),
    ],
    ids=["misspelt", "too many"],
)
def test_fields_that_a_record_has_not_are_refused(
    way: str, wrong: dict[str, Any], said: str, hint: str
) -> None:
    f = rvm.assemble(BODY).main
    FIELDS_GIVEN[way](f, RIGHT)
    with pytest.raises(rvm.InputError) as caught:
        FIELDS_GIVEN[way](f, wrong)
    assert (caught.value.code, caught.value.hint) == ("I003", hint)
    assert caught.value.message == f"`b` has no field {said}"


@pytest.mark.parametrize(
    ("loss", "message", "hint"),
    [
        ("b.mas", "`b` has no field `mas`", "did you mean `mass`?"),
        ("b.size", "`b` has no field `size`", "its fields: pos, mass"),
        ("b.mass.re.x", "`b.mass` has no field `re`", "`b.mass` is not a record"),
        ("z", "`main` has no parameter `z`", "its parameters: y, b"),
    ],
)
def test_a_loss_that_is_not_a_field(loss: str, message: str, hint: str) -> None:
    with pytest.raises(rvm.InputError) as caught:
        rvm.assemble(BODY).main.grad(y=0.0, b=RIGHT, loss=loss)
    assert (caught.value.code, caught.value.message) == ("I008", message)
    assert caught.value.hint == hint
