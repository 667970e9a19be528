"""Reading values as people write them: `3`, `2+1j`, `[1, 2.5]`, `{pos: 1}`, `"hello"`, `@data.csv`.

The result has no type yet: numbers are int, Decimal, float (for inf and nan) or complex; texts are
bytes; lists and records are Python lists and dicts; `Typed`, `MadeArray` and `File` are described
below.  `rvm_tools.values` converts it to the type of a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from rvm_asm.characters import Misspelt, bytes_of, encoded

from rvm.faults import InputError
from rvm.numbers.floats import rounded
from rvm.types import F64


@dataclass(frozen=True, slots=True)
class Typed:
    """A number with a type, as the assembly language writes it: `7.0'log64`, `3'fixed(30)`."""

    value: Any
    type: str


@dataclass(frozen=True, slots=True)
class MadeArray:
    """An array that is described: zeros(2, 3), ones(5), range(10)."""

    kind: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class File:
    """`@path` or `@path:name`: a value that a file holds.

    `@raw:path` has the bytes of any file, `@-` those of standard input.
    """

    spec: str
    allowed: str = ""
    """For a path in a program's text: the files that it may name, as in `--includes`."""


MAX_DEPTH = 64
"""The largest nesting depth of lists and records."""
MAX_DIGITS = 4000
"""Digits of an integer, and the decimal exponent of a real number, that are read."""
SHOWN = 120
"""The number of characters of a text shown with a message."""
TEXT = "text:"
"""The prefix of a text without quotes."""
_HINT = (
    "a value is a number, true, false, [a, list], {field: value}, "
    "zeros(5), ones(2, 3), range(10), text:letters, @file, or @raw:file for its bytes"
)
_MAKERS = ("zeros", "ones", "range")

_NUMBER = re.compile(
    r"""[+-]?(?:
        (?P<int>0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[bB]_*[01][01_]*|0[oO]_*[0-7][0-7_]*)
      | (?P<real>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?|inf|nan)
    )(?P<j>j?)(?![\w.])""",
    re.X,
)
_TYPE = re.compile(r"'(\w+(?:\(\d+\))?)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PATH = re.compile(r"[^\s,\])}]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SPACE = re.compile(r"\s*")


class Reader:
    """A position in a text, and the parsers from there."""

    def __init__(
        self, text: str, position: int = 0, files: str | None = "", name: str = ""
    ) -> None:
        """`files` is what a `File` in the text is allowed; with None there may be none.

        Messages begin with `name` if there is one: whose value it is.
        """
        self.text = text
        self.name = name
        self.files = files
        self.at = position
        self._depth = 0
        self.space()

    def text_after(self, at: int) -> bytes:
        """The whole text after a position, unchanged."""
        self.at = at
        return self._read(encoded, self.text[at:], at)

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def accept(self, sign: str) -> bool:
        """Whether `sign` comes next; it is then read, with the space after it."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        self.space()
        return True

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.fail(f"`{sign}` is expected")

    def word(self) -> str | None:
        """The next name, if there is one."""
        found = _WORD.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        self.space()
        return found[0]

    def bracketed(self) -> str:
        """The next text in brackets, with the brackets; nothing if there is none."""
        start = self.at
        depth = 0
        for at, c in enumerate(self.text[start:], start):
            depth += (c == "[") - (c == "]")
            if not depth:
                self.at = at + (at > start or c == "]")
                break
        found = self.text[start : self.at]
        self.space()
        return found

    @property
    def done(self) -> bool:
        return self.at >= len(self.text)

    def fail(self, message: str, hint: str = _HINT, code: str = "I010") -> NoReturn:
        """InputError I010, or another, with the text and a mark under the position."""
        if self.name:
            message = f"`{self.name}`: {message}"
        raise InputError(code, message, notes=_marked(self.text, self.at), hint=hint)

    def value(self) -> Any:
        """The next value."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail("this is nested too deeply")
        try:
            return self._value()
        finally:
            self._depth -= 1

    def _value(self) -> Any:
        if self.accept("["):
            return self._items()
        if self.accept("{"):
            return self._fields()
        if self.text.startswith('"', self.at):
            return self._quoted()
        if self.accept("@"):
            if self.files is None:
                self.fail("a value in a file can't name another file")
            found = _PATH.match(self.text, self.at)
            if found is None:
                self.fail("a path is expected after `@`")
            self.at = found.end()
            self.space()
            return File(found[0], self.files)
        number = self._number()
        if number is not None:
            return number
        start = self.at
        word = self.word()
        if word in ("true", "false", "True", "False"):
            return word in ("true", "True")
        if word in _MAKERS:
            self.expect("(")
            return self._made(word)
        self.at = start
        return self.fail("this is not a value" if not self.done else "a value is missing")

    def _items(self) -> list[Any]:
        out: list[Any] = []
        while not self.accept("]"):
            if out:
                self.expect(",")
                if self.accept("]"):
                    break
            out.append(self.value())
        return out

    def _fields(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while not self.accept("}"):
            if out:
                self.expect(",")
            quote = next((q for q in "\"'" if self.text.startswith(q, self.at)), "")
            self.at += len(quote)
            name = self.word()
            if name is None:
                self.fail("a field's name is expected")
            if quote:
                self.expect(quote)
            if name in out:
                self.fail(f"the field `{name}` is given twice")
            if not self.accept(":"):
                self.expect("=")
            out[name] = self.value()
        return out

    def _quoted(self) -> bytes:
        """A text in double quotes, in UTF-8; `\\xff` is any byte."""
        found = _QUOTED.match(self.text, self.at)
        if found is None:
            self.fail("the text has no closing quote")
        out = self._read(bytes_of, found[0][1:-1], self.at + 1)
        self.at = found.end()
        self.space()
        return out

    def _read(self, of: Callable[[str, str], bytes], text: str, at: int) -> bytes:
        """A text's bytes; parts of a command line that are not UTF-8 remain unchanged."""
        try:
            return of(text, "surrogateescape")
        except Misspelt as wrong:
            self.at = at + wrong.at
            self.fail(str(wrong))

    def _made(self, kind: str) -> MadeArray:
        sizes: list[int] = []
        while not self.accept(")"):
            if sizes:
                self.expect(",")
            size = self._number()
            if not isinstance(size, int) or size < 0:
                self.fail(f"`{kind}` takes lengths")
            sizes.append(size)
        if not sizes or (kind == "range" and len(sizes) > 1):
            self.fail(f"`{kind}` takes {'one length' if kind == 'range' else 'lengths'}")
        return MadeArray(kind, tuple(sizes))

    def _number(self) -> Any:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            if self.accept("("):
                return self._pair()
            return None
        start = self.at
        value = self._real(found)
        more = _NUMBER.match(self.text, self.at)
        if found["j"]:
            value = complex(0.0, self._float(value, start))
        elif more is not None and more["j"] and more[0][0] in "+-":
            middle, imaginary = self.at, self._real(more)
            # Not a sum: that would lose the sign of a zero real part.
            value = complex(self._float(value, start), self._float(imaginary, middle))
        return self._suffixed(value)

    def _real(self, found: re.Match[str]) -> Any:
        """The real number that was matched, which is then read."""
        value = _number(found)
        if value is None:
            self.fail("this number is out of all range")
        self.at = found.end()
        return value

    def _pair(self) -> Any:
        """`(re, im)`, or a number in brackets."""
        start, value = self.at, self._part()
        if self.accept(","):
            middle, imaginary = self.at, self._part()
            value = complex(self._float(value, start), self._float(imaginary, middle))
        self.expect(")")
        return self._suffixed(value)

    def _part(self) -> Any:
        """A number in brackets."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail("this is nested too deeply")
        value = self._number()
        if value is None:
            self.fail("a number is expected")
        self._depth -= 1
        return value

    def _float(self, value: Any, at: int) -> float:
        """The part of a complex number that begins at a position; InputError I003 if no f64."""
        if not isinstance(value, (int, float, Decimal)):
            self.fail("a part of a complex number is a real number")
        if not value:
            return -0.0 if self.text.startswith("-", at) else 0.0
        try:
            return rounded(value, F64)
        except ValueError as error:
            self.at = at
            return self.fail(str(error), "the parts of a complex number are f64", "I003")

    def _suffixed(self, value: Any) -> Any:
        suffix = _TYPE.match(self.text, self.at)
        if suffix is not None:
            self.at = suffix.end()
            value = Typed(value, suffix[1])
        self.space()
        return value


def _marked(text: str, at: int) -> tuple[str, str]:
    """A text with a mark under a position, or the part around the position of a long text."""
    first = max(0, at - SHOWN // 2) if len(text) > SHOWN else 0
    shown = text[first : first + SHOWN]
    shown = ("…" if first else "") + shown + ("…" if first + SHOWN < len(text) else "")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    return shown, " " * (at - first + (1 if first else 0)) + "^"


def plain_number(text: str) -> Any:
    """The number that a text is, if it is a real one without a type and in range; else None."""
    found = _NUMBER.fullmatch(text)
    return None if found is None or found["j"] else _number(found)


def _number(found: re.Match[str]) -> Any:
    """The real number that was matched, without `j`; None if it is beyond MAX_DIGITS."""
    text = found[0].replace("_", "").removesuffix("j")
    if len(text) > MAX_DIGITS:
        return None
    if found["int"]:
        return int(text, 0)
    if found["real"] in ("inf", "nan"):
        return float(text)
    if text.lstrip("+-").isdigit():
        return int(text)
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if abs(value.adjusted()) <= MAX_DIGITS else None


def read_literal(text: str, files: str | None = "", name: str = "") -> Any:
    """The value that `text` is; InputError I010 if it is not one.

    `files` is as for a Reader; messages say that it is the value of `name`.
    """
    if files is not None and text.startswith("@"):
        return File(text[1:], files)
    reader = Reader(text, files=files, name=name)
    if text.startswith(TEXT):
        return reader.text_after(len(TEXT))
    value = reader.value()
    if not reader.done:
        if text.startswith(",", reader.at):
            reader.fail("a list is written in brackets", f"[{text}]")
        reader.fail("something follows the value")
    return value
