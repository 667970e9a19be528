"""A lexer for Pygments: assembly in colours, wherever Pygments or rich show it.

The tokens are those of the assembler's own lexer.  The role of a word depends on its position: any
word may be a name, and is an instruction only at the beginning of one.  Instructions, functions and
types are those of the table, including a user's own.  The lexer is found as the entry point `rasm`
of the group `pygments.lexers`; Pygments comes with rich, and nothing else of rvm needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.rules import CLASSES
from rvm.types import SCALARS
from rvm_asm.lexer import (
    CHARACTER,
    IS_CHARACTER,
    IS_COMMENT,
    IS_CONTINUED,
    IS_NAME,
    IS_NEWLINE,
    IS_NUMBER,
    IS_SIGN,
    IS_STRING,
    IS_WRONG,
    NAME,
    NUMBER,
    PATTERN,
    STRING,
    is_sign,
)
from rvm_asm.literals import WORDS
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceMap
from rvm_asm.statements import CLOSERS, DIRECTIONS, TOP, StatementParser
from rvm_asm.stats import MAPS

_NAMES = {
    "func": Name.Function,
    "pure": Name.Function,
    "macro": Name.Function,
    "entry": Name.Function,
    "call": Name.Function,
    "uncall": Name.Function,
    **dict.fromkeys(MAPS, Name.Function),
    "iterate": Name.Function,
    "routine": Name.Function,
    "undo": Name.Function,
    "record": Name.Class,
    "const": Name.Constant,
}
"""The kind of the name after such a word."""
_BETWEEN = {
    "for": frozenset({"to", "downto", "step"}),
    "iterate": frozenset({"times", "for", "to", "with"}),
    "extern": frozenset(DIRECTIONS),
    "replace": frozenset({"as", "by"}),
}
"""Words inside such a statement, or in its head, that are not names."""
_BRACKETS = frozenset("()[]{},:.';") | {"...", "…"}


@dataclass(slots=True)
class _Token:
    """A stretch of the text; `kind` is the number of the group of the lexer's pattern."""

    start: int
    text: str
    kind: int


_SOLID = (IS_NAME, IS_SIGN, IS_NUMBER, IS_STRING, IS_CHARACTER, IS_WRONG)


class RasmLexer(Lexer):  # type: ignore[misc]  # Pygments has no types
    """Assembly of rvm: structured and strict code, as `rvm dis` prints it too."""

    name = "rvm assembly"
    aliases = ["rasm", "rvm"]  # noqa: RUF012
    filenames = ["*.rasm"]  # noqa: RUF012
    mimetypes = ["text/x-rasm"]  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        special = StatementParser(([], [], []), Reporter(SourceMap()))._special
        self._control = (set(special) | CLOSERS) - set(OPCODES)

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Position, token type and text, from the first character to the last."""
        line: list[_Token] = []
        in_record = False
        at = 0
        while at >= 0:
            begin, at = at, -1
            for found in PATTERN.finditer(text, begin):
                kind = found.lastindex or IS_COMMENT
                start = found.start(kind)
                if start > found.start():
                    line.append(_Token(found.start(), text[found.start() : start], 0))
                if kind in (IS_COMMENT, IS_CHARACTER) and is_sign(found[kind], *_tokens(line)):
                    line.append(_Token(start, found[kind][0], IS_SIGN))
                    at = start + 1
                    break
                if found[kind]:
                    line.append(_Token(start, found[kind], kind))
                if kind == IS_NEWLINE:
                    words = [t for t in line if t.kind == IS_NAME]
                    yield from self._line(line, in_record)
                    if words and words[0].text in TOP | {"end"}:
                        in_record = words[0].text == "record"
                    line = []
        yield from self._line(line, in_record)

    def _line(self, line: list[_Token], in_record: bool) -> Iterator[tuple[int, Any, str]]:
        """The tokens of a line (or of several, continued ones)."""
        solid = [t for t in line if t.kind in _SOLID]
        kinds = dict(zip(map(id, solid), self._meanings(solid, in_record), strict=True))
        for token in line:
            yield token.start, kinds.get(id(token)) or _plain(token), token.text

    def _meanings(self, solid: list[_Token], in_record: bool) -> list[Any]:
        """The token type of each sign, number and word in a line."""
        out: list[Any] = [None] * len(solid)
        texts = [t.text for t in solid]
        begin = 0
        while not in_record and texts[begin + 1 : begin + 2] == [":"]:
            out[begin] = Name.Label
            begin += 2
        head = texts[begin] if begin < len(texts) and solid[begin].kind == IS_NAME else ""
        for k, token in enumerate(solid):
            if token.kind == IS_NAME and out[k] is None:
                out[k] = self._word(texts, k, begin, head, in_record)
        last = len(solid) - 1
        if head in ("br", "cf") and last > begin and solid[last].kind == IS_NAME:
            out[last] = Name.Label if texts[last - 1] == "," else out[last]
        return out

    def _word(self, texts: list[str], k: int, begin: int, head: str, in_record: bool) -> Any:
        text = texts[k]
        before = texts[k - 1] if k else ""
        behind = texts[k + 1] if k + 1 < len(texts) else ""
        if text in WORDS:
            return Keyword.Constant
        infix = text in FUNCTIONS and FUNCTIONS[text].lazy and FUNCTIONS[text].symbol
        if infix or (text == "not" and k != begin):
            return Operator.Word
        if before == ".":
            return Name.Attribute
        if k == begin:
            return self._first(text, behind, in_record)
        if k == begin + 1 and head in _NAMES:
            return _NAMES[head]
        if text in _BETWEEN.get(head, ()):
            return Keyword
        if (text in CLASSES and before in (":", "|")) or (text == "func" and before == ":"):
            return Keyword.Type
        if text in SCALARS or text == "stack":
            in_stack = before == "[" and texts[k - 2 : k - 1] == ["stack"]
            named = head in ("call", "uncall", *MAPS, "iterate", "entry") and before in ("[", ",")
            in_stack = in_stack or (named and behind in ("]", ",", "("))
            if before in (":", "'") or in_stack or (behind == "(" and text in SCALARS):
                return Keyword.Type
        if behind == "(":
            return Name.Builtin if text in FUNCTIONS else Name.Function
        return Name

    def _first(self, text: str, behind: str, in_record: bool) -> Any:
        """The token type of a statement's first word; an unknown word is the use of a macro."""
        if text in TOP:
            return Keyword.Declaration
        if in_record and text != "end":
            return Name.Attribute
        if text in OPCODES:
            return Keyword.Reserved
        if text in self._control:
            return Keyword
        return Name.Function if behind != ":" else Name


def _tokens(line: list[_Token]) -> tuple[list[str], list[str]]:
    """Kinds and texts of the tokens of a line so far."""
    kinds = {IS_NAME: NAME, IS_NUMBER: NUMBER, IS_STRING: STRING, IS_CHARACTER: CHARACTER}
    solid = [t for t in line if t.kind in _SOLID]
    return [kinds.get(t.kind, t.text) for t in solid], [t.text for t in solid]


def _plain(token: _Token) -> Any:
    """The type of a token that does not depend on context."""
    text = token.text
    if token.kind == IS_NUMBER:
        base = {"0x": Number.Hex, "0b": Number.Bin, "0o": Number.Oct}.get(text[:2].lower())
        real = any(c in text for c in ".eEj")
        return base or (Number.Float if real else Number.Integer)
    if token.kind == IS_COMMENT:
        return Comment.Special if text[1:2] in ("!", "@") else Comment.Single
    if token.kind == IS_SIGN:
        return Punctuation if text in _BRACKETS else Operator
    if token.kind == IS_CONTINUED:
        return Comment.Single if ";" in text else Punctuation
    plain = {IS_STRING: String.Double, IS_CHARACTER: String.Char, IS_WRONG: Error, IS_NAME: Name}
    return plain.get(token.kind, Whitespace)
