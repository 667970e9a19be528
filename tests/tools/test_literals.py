"""Reading values as people write them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from rvm_tools.literals import SHOWN, File, MadeArray, Typed, read_literal

from rvm.faults import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-7", -7),
        ("+7", 7),
        ("0xff", 255),
        ("-0b101", -5),
        ("1_000_000", 1_000_000),
        ("1.5", Decimal("1.5")),
        (".5", Decimal("0.5")),
        ("1.", Decimal(1)),
        ("1e-3", Decimal("0.001")),
        ("123456789012345678901234567890.1", Decimal("123456789012345678901234567890.1")),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("2j", 2j),
        ("2+1j", 2 + 1j),
        ("2-1.5e1j", 2 - 15j),
        ("-2 ", -2),
        ("(1, -2)", 1 - 2j),
        ("true", True),
        ("false", False),
        ("[]", []),
        ("[1, 2.5, [true]]", [1, Decimal("2.5"), [True]]),
        ("[1, 2,]", [1, 2]),
        ("{pos: 1, vel: [2]}", {"pos": 1, "vel": [2]}),
        ('{"pos": 1, "vel": {"x": 2}}', {"pos": 1, "vel": {"x": 2}}),
        ("zeros(2, 3)", MadeArray("zeros", (2, 3))),
        ("range(10)", MadeArray("range", (10,))),
        ("7.0'log64", Typed(Decimal("7.0"), "log64")),
        ("-3'fixed(30)", Typed(-3, "fixed(30)")),
        ("@data/x.npy", File("data/x.npy")),
        ("@x y.npz:a", File("x y.npz:a")),
    ],
)
def test_a_literal_is_read(text: str, value: Any) -> None:
    found = read_literal(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_read() -> None:
    assert math.isnan(read_literal("nan"))


def test_a_negative_zero_keeps_its_sign_in_a_complex_number() -> None:
    assert math.copysign(1, read_literal("-0.0+1j").real) == -1
    assert math.copysign(1, read_literal("1-0j").imag) == -1


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 0),
        ("x", 0),
        ("1 2", 2),
        ("[1, 2", 5),
        ("[1 2]", 3),
        ("{pos 1}", 5),
        ("{pos: 1, pos: 2}", 12),
        ("zeros()", 7),
        ("range(1, 2)", 11),
        ("zeros(-1)", 8),
        ("1.2.3", 0),
        ("3abc", 0),
        ("'text'", 0),
        ("9" * 5000, 0),
        ("1e5000", 0),
        ("1e-999999999", 0),
        ("[" * 65, 64),
    ],
)
def test_what_is_not_a_literal_is_marked(text: str, column: int) -> None:
    with pytest.raises(InputError) as caught:
        read_literal(text)
    assert caught.value.code == "I010"
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    assert caught.value.notes == (shown, " " * column + "^")


def test_of_a_long_text_what_is_around_the_mark_is_shown() -> None:
    with pytest.raises(InputError) as caught:
        read_literal("[" + "1, " * 1000 + "wrong, " + "2, " * 1000)
    shown, mark = caught.value.notes
    assert len(shown) < 130 and shown[mark.index("^") :].startswith("wrong")


def test_a_list_without_brackets_is_refused_with_its_right_form() -> None:
    with pytest.raises(InputError, match="`y`: a list is written in brackets") as caught:
        read_literal("1, 2.5,3", name="y")
    assert caught.value.diagnostics[0].hint == "[1, 2.5,3]"
    assert read_literal("[1, 2.5,3]") == [1, Decimal("2.5"), 3]
