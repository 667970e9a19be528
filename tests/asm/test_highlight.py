"""Colours for assembly: every text comes back whole, and each word is told by where it stands."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Error, Keyword, Name, Whitespace
from rvm_asm.disassemble import disassemble
from rvm_asm.highlight import RasmLexer
from sizes import wide

import rvm
from rvm.faults import AssemblyError
from rvm.isa import OPCODES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEXTS = sorted(
    [*ROOT.glob("examples/**/*.rasm"), *ROOT.glob("tests/**/*.rasm"), *ROOT.glob("tools/**/*.rasm")]
)


def tokens(text: str) -> list[tuple[object, str]]:
    """The tokens of a text, all of it."""
    return list(RasmLexer(stripnl=False, ensurenl=False).get_tokens(text))


def words(text: str) -> dict[str, object]:
    """What each word of a text is; the last time that it stands there."""
    return {v: k for k, v in tokens(text) if k is not Whitespace}


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_every_program_has_colours(path: Path) -> None:
    text = path.read_text()
    found = tokens(text)
    assert "".join(v for _, v in found) == text
    if path.stem != "characters":
        assert not [v for k, v in found if k is Error]


@wide
@given(st.text() | st.text(alphabet="addfunc x1.5'`\";:\\\n[]{}#!\t()e+-"))
def test_any_text_comes_back(text: str) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    found = tokens(text)
    assert "".join(v for _, v in found) == plain
    lexer = RasmLexer()
    at = 0
    for position, _, part in lexer.get_tokens_unprocessed(plain):
        assert position == at and part
        at += len(part)


def test_what_is_not_a_token_is_an_error() -> None:
    path = HERE / "errors" / "characters.rasm"
    wrong = [v for k, v in tokens(path.read_text()) if k is Error]
    with pytest.raises(AssemblyError) as error:
        rvm.load(path)
    # The assembler gives up a line at its first one.
    assert len([d for d in error.value.diagnostics if d.code == "A001"]) == len(wrong)


def test_the_kinds_of_words() -> None:
    text = (HERE / "highlighted.rasm").read_text()
    shown = "".join(f"{str(k)[6:]:<24}{v!r}\n" for k, v in tokens(text) if k is not Whitespace)
    path = HERE / "highlighted.txt"
    if os.environ.get("RVM_GOLDEN"):
        path.write_text(shown)
    assert shown == path.read_text(), "RVM_GOLDEN=1 would keep the new kinds"


def test_instructions_and_functions_come_from_the_table() -> None:
    for op in OPCODES:
        assert words(f"{op} x, y\n")[op] == Keyword.Reserved
    found = words("    add y, sqrt(x) + mine(x) + len(x)\n")
    assert (found["sqrt"], found["mine"]) == (Name.Builtin, Name.Function)


@pytest.mark.usefixtures("clean_tables")
def test_a_users_own_instruction_has_its_colour() -> None:
    assert words("    lift a, b\n")["lift"] == Name.Function

    @rvm.opcode(inverse="lower")
    def lift(a: rvm.Mut, b: rvm.Use) -> None:
        """Raise."""
        a += b

    @rvm.opcode(inverse="lift")
    def lower(a: rvm.Mut, b: rvm.Use) -> None:
        """Undo `lift`."""
        a -= b

    assert words("    lift a, b\n")["lift"] == Keyword.Reserved


@pytest.mark.parametrize("name", ["sort", "rans", "norm", "chacha20"])
def test_strict_code_has_colours_too(name: str) -> None:
    path = ROOT / "examples" / f"{name}.rasm"
    text = disassemble(rvm.load(path))
    found = tokens(text)
    assert "".join(v for _, v in found) == text
    assert not any(k is Error for k, _ in found)
    assert "L1" in {v for k, v in found if k is Name.Label}


def test_pygments_finds_it() -> None:
    assert [e.value for e in entry_points(group="pygments.lexers") if e.name == "rasm"]
    assert isinstance(get_lexer_by_name("rasm"), RasmLexer)
    assert isinstance(get_lexer_for_filename("x.rasm"), RasmLexer)
