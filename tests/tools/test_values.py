"""From literals and files to values of a parameter's type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_tools.values import assignments, inputs_for

from rvm import Fixed, LogNumber, RvmError, assemble
from rvm.program import Function


def function(params: str, records: str = "") -> Function:
    return assemble(f"{records}\nfunc f({params})\n").program.function("f")


def given(f: Function, *words: str, base: Path = Path()) -> dict[str, Any]:
    return inputs_for(f, assignments(words, base), base)


def refused(f: Function, *words: str, base: Path = Path()) -> RvmError:
    with pytest.raises(RvmError) as caught:
        given(f, *words, base=base)
    return caught.value


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("i64", "3", 3),
        ("i64", "3.0", 3),
        ("u8", "0xff", 255),
        ("u64", "18446744073709551615", 2**64 - 1),
        ("f64", "3", 3.0),
        ("f64", "0.1", 0.1),
        ("f64", "1e400'f64", None),
        ("f32", "0.1", float(np.float32(0.1))),
        ("c128", "2", 2 + 0j),
        ("c128", "2-1j", 2 - 1j),
        ("bool", "true", True),
        ("bool", "1", True),
        ("bool", "2", None),
        ("u8", "256", None),
        ("u8", "-1", None),
        ("i64", "1.5", None),
        ("i64", "true", None),
        ("f64", "1j", None),
        ("f64", "[1]", None),
        ("fixed", "0.5", Fixed(1 << 42)),
        ("fixed", "0.1", Fixed(round(0.1 * 2**43))),
        ("fixed", "3'fixed", Fixed(3)),
        ("fixed(30)", "3'fixed", None),
        ("fixed(30)", "3'fixed(30)", Fixed(3, 30)),
        ("log64", "7.5'log64", LogNumber(7.5)),
        ("log64", "1", LogNumber(0.0)),
        ("log64", "-1", None),
    ],
)
def test_a_scalar_takes_its_type_or_is_refused(type_: str, text: str, value: Any) -> None:
    f = function(f"x: {type_}")
    if value is None:
        assert refused(f, f"x={text}").code == "I003"
        return
    found = given(f, f"x={text}")["x"]
    assert found == value
    assert type(found) is type(value)


def test_a_fixed_point_number_is_the_nearest_to_its_digits() -> None:
    # 0.1 in binary64 is a little above a tenth: through it the 61st fraction bit would be wrong.
    found = given(function("x: fixed(60)"), "x=0.1")["x"]
    assert found.raw == 115292150460684698  # (2**60 + 4) / 10
    assert found.raw != round(0.1 * 2**60)


def test_arrays_have_the_storage_dtype_and_shape() -> None:
    f = function("a: i32[m, n], b: fixed[:], c: log64[:], d: bool[:], e: f32[:]")
    found = given(f, "a=[[1,2,3],[4,5,6]]", "b=[0.5,1]", "c=[1, 2'log64]", "d=[true,false]", "e=[]")
    assert found["a"].dtype == np.int32 and found["a"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found["b"].dtype == np.int64 and found["b"].tolist() == [1 << 42, 1 << 43]
    assert found["c"].dtype == np.float64 and found["c"].tolist() == [0.0, 2.0]
    assert found["d"].dtype == np.bool_
    assert found["e"].shape == (0,)


def test_described_arrays() -> None:
    f = function("a: f64[m, n], b: i64[:], c: fixed[:]")
    found = given(f, "a=ones(2, 3)", "b=range(4)", "c=zeros(2)")
    assert found["a"].tolist() == [[1.0] * 3] * 2
    assert found["b"].tolist() == [0, 1, 2, 3]
    assert found["c"].tolist() == [0, 0]


def test_wrong_shapes() -> None:
    f = function("a: f64[m, n]")
    assert refused(f, "a=[1,2]").code == "I004"
    assert refused(f, "a=[[1],[2,3]]").code == "I004"
    assert refused(f, "a=3").code == "I003"


def test_stacks_may_be_left_out() -> None:
    f = function("s: stack[i64], x: i64")
    assert given(f, "x=1") == {"x": 1}
    assert given(f, "x=1", "s=[1, 2]") == {"x": 1, "s": [1, 2]}
    assert refused(f, "x=1", "s=range(92233720368547758074)").code == "I004"


RECORDS = "record V\n    x: f64\n    y: f64\nend\nrecord B\n    v: V\n    n: i64\nend\n"


def test_records_come_whole_by_field_and_as_arrays() -> None:
    one = {"b": {"v": {"x": 1.0, "y": 2.0}, "n": 3}}
    f = function("b: B", RECORDS)
    assert given(f, "b={v: {x: 1, y: 2}, n: 3}") == one
    assert given(f, "b.v.x=1", "b.v.y=2", "b.n=3") == one
    many = given(function("b: V[n]", RECORDS), "b=[{x: 1, y: 2}, {x: 3, y: 4}]")["b"]
    assert many["x"].tolist() == [1.0, 3.0] and many["y"].tolist() == [2.0, 4.0]


def test_a_wrong_record_names_its_fields() -> None:
    f = function("b: B", RECORDS)
    error = refused(f, "b={v: {x: 1, z: 2}, n: 3}")
    assert error.code == "I003" and error.values == {"unknown": "z"}
    assert refused(f, "b={n: 3}").values == {"missing": "v"}


def test_everything_missing_is_named_at_once() -> None:
    error = refused(function("x: f64, y: f64[n], z: i64"), "y=[1]")
    assert error.code == "I001"
    assert "`x`, `z`" in error.message
    assert error.hint == "it takes x: f64, y: f64[n], z: i64"


def test_names_are_checked() -> None:
    f = function("velocity: f64")
    error = refused(f, "velocty=1")
    assert error.code == "I002" and error.hint == "did you mean `velocity`?"
    assert refused(f, "velocity").code == "U010"
    assert refused(f, "velocity=1", "velocity=2").code == "U010"
    assert refused(f, "1x=3").code == "U010"


# ---------------------------------------------------------------- files


def test_npy_and_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1.5, 2.5]))
    np.savez(tmp_path / "b.npz", x=np.array([1.0]), y=np.float64(3.0))
    f = function("x: f64[n], y: f64")
    assert given(f, "x=@a.npy", "y=@b.npz", base=tmp_path)["x"].tolist() == [1.5, 2.5]
    assert given(f, "x=@a.npy", "y=@b.npz", base=tmp_path)["y"] == 3.0
    assert given(f, "x=@b.npz:x", "y=@b.npz:x", base=tmp_path)["y"] == 1.0
    assert given(f, "@b.npz", base=tmp_path)["x"].tolist() == [1.0]


def test_npy_holds_storage(tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", np.array([1, 2]))
    np.save(tmp_path / "g.npy", np.array([0.5]))
    found = given(function("q: fixed[:], g: log64[:]"), "q=@q.npy", "g=@g.npy", base=tmp_path)
    assert found["q"].tolist() == [1, 2] and found["g"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("array", "type_", "ok"),
    [
        (np.array([1, 2], np.int32), "i64", True),
        (np.array([1, 2], np.int64), "f64", True),
        (np.array([2**53 + 1]), "f64", False),
        (np.array([1.0, 2.0]), "u8", True),
        (np.array([1.5]), "i64", False),
        (np.array([-1]), "u64", False),
        (np.array([300]), "u8", False),
        (np.array([0.1]), "f32", False),
        (np.array([0.5, np.nan]), "f32", True),
        (np.array([1 + 1j]), "f64", False),
        (np.array([0, 1, 2]), "bool", False),
        (np.array([1, 0]), "bool", True),
        (np.array([1.0, 0.0]), "bool", False),
        (np.array([True]), "bool", True),
        (np.array([True]), "u8", False),
        (np.array([True]), "c128", False),
        (np.array([True]), "fixed", False),
        (np.array(["a"]), "f64", False),
    ],
)
def test_a_file_converts_only_if_no_number_changes(
    tmp_path: Path, array: Any, type_: str, ok: bool
) -> None:
    np.save(tmp_path / "a.npy", array)
    f = function(f"x: {type_}[n]")
    if ok:
        found = given(f, "x=@a.npy", base=tmp_path)["x"]
        assert np.array_equal(found, array, equal_nan=True)
    else:
        assert refused(f, "x=@a.npy", base=tmp_path).code == "I003"


def test_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("time,height\n0,1.5\n1,2.5\n2,3.5\n")
    (tmp_path / "m.csv").write_text("1,2\n3,4\n")
    (tmp_path / "row.csv").write_text("1,2,3\n")
    f = function("x: f64[n], k: i64[:], m: f64[a, b], q: fixed[:]")
    found = given(f, "x=@t.csv:height", "k=@t.csv:time", "m=@m.csv", "q=@row.csv", base=tmp_path)
    assert found["x"].tolist() == [1.5, 2.5, 3.5]
    assert found["k"].dtype == np.int64 and found["k"].tolist() == [0, 1, 2]
    assert found["m"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found["q"].tolist() == [1 << 43, 2 << 43, 3 << 43]
    assert (
        refused(f, "x=@t.csv:hight", "k=[]", "m=[[]]", "q=[]", base=tmp_path).hint
        == "did you mean `height`?"
    )


def test_json(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(json.dumps({"x": [1, 2.5], "g": "2.0'log64", "q": 0.1}))
    f = function("x: f64[n], g: log64, q: fixed(60)")
    found = given(f, "@v.json", base=tmp_path)
    assert found["x"].tolist() == [1.0, 2.5]
    assert found["g"] == LogNumber(2.0)
    assert found["q"].raw == 115292150460684698
    assert given(f, "x=@v.json:x", "g=1", "q=0", base=tmp_path)["x"].tolist() == [1.0, 2.5]


@pytest.mark.parametrize("name", ["no.npy", "no.csv", "no.json", "no.txt", "bad.npz", "bad.npy"])
def test_unreadable_files(tmp_path: Path, name: str) -> None:
    for bad in ("bad.npz", "bad.npy", "no.txt"):
        (tmp_path / bad).write_bytes(b"neither")
    error = refused(function("x: f64"), f"x=@{name}", base=tmp_path)
    assert error.code == "I011"
    assert name in error.message or ".txt" in error.message


def test_no_pickles_are_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert refused(function("x: f64"), "x=@p.npy", base=tmp_path).code == "I011"


@pytest.mark.parametrize("text", ["0x_", "0b_", "0o__", "[1, 0x_]", "(0b_, 1)", "0xg", "0b2"])
def test_a_number_has_digits(text: str) -> None:
    assert text in str(refused(function("x: i64"), f"x={text}"))
    with pytest.raises(RvmError):
        assemble(f"func f(x: i64)\n    add x, {text}\n")
