"""The EBNF of docs/language.md against the parser, both ways."""

from __future__ import annotations

import random
import re
from itertools import chain

import pytest
from rvm_asm import parse
from rvm_asm.cursor import RESERVED
from rvm_asm.expressions import BINARY, SHAPE
from rvm_asm.messages import Reporter
from rvm_asm.parser import KEPT
from rvm_asm.source import SourceMap
from rvm_asm.statements import CLOSERS, DIRECTIONS, TOP, StatementParser
from sizes import part, sized

from asm import ebnf
from rvm.faults import AssemblyError

RULES = ebnf.grammar()
LEXICAL = {
    "NAME": ("x", "y", "foo", "b2", "to", "step", "t#1", "`x'`", "é"),
    "INTEGER": ("0", "12", "1_000", "0xff", "0b11"),
    "FLOAT": ("1.5", ".5", "2e-3", "1.", "0.1234567890123456789"),
    "IMAGINARY": ("2.5j", "3j"),
    "STRING": ('"a"', '"x is {} \\"quoted\\""', '""'),
    "CHARACTER": ("'a'", "'('", "';'", "' '", "'.'", "'~'", "'\"'", "'\\''", "'\\n'", "'\\xff'"),
    "NEWLINE": ("\n", " ; a comment\n"),
}
CLASSES = {
    "NAME": re.compile(rf"(?!({'|'.join(RESERVED)})$)(?:[^\W\d]\w*(#\d+)?|`[^`]*`(#\d+)?)"),
    "INTEGER": re.compile(r"\d[\d_]*|0x[0-9a-f]+|0b[01]+"),
    "FLOAT": re.compile(r"\d+\.\d*|\.\d+|\d+e-?\d+"),
    "IMAGINARY": re.compile(r"[\d.]+j"),
    "STRING": re.compile(r'".*"'),
    "CHARACTER": re.compile(r"'(?:[^'\\]|\\(?:x[0-9a-f]{2}|.))'"),
    "NEWLINE": re.compile(r" ?(;.*)?\n"),
}


def test_every_production_is_defined_and_used() -> None:
    used = set(chain.from_iterable(map(ebnf.names_in, RULES.values())))
    assert used - set(RULES) == set(LEXICAL)
    assert set(RULES) - used == {"program"}


def test_words_of_the_grammar_are_those_of_the_parser() -> None:
    words = {w for r in RULES.values() for w in ebnf.words_in(r) if w.isalpha()}
    parser = StatementParser(([], [], []), Reporter(SourceMap()))
    contextual = {"as", "by", "to", "downto", "step", "times", "with", "fixed", "stack"}
    contextual |= {*KEPT, "top", SHAPE}
    assert words == TOP | CLOSERS | set(DIRECTIONS) | RESERVED | set(parser._special) | contextual


def test_operators_of_the_grammar_are_those_of_the_parser() -> None:
    levels = ("expr", "and", "comparison", "union", "exclusive", "common", "shift", "sum",
              "product", "power")  # fmt: skip
    found = [ebnf.words_in(RULES[level]) for level in levels]
    assert set().union(*found) == set(BINARY)
    powers = [{BINARY[sign] for sign in signs} for signs in found]
    assert all(len(p) == 1 for p in powers)
    flat = [p.pop() for p in powers]
    assert flat == sorted(flat) and len(set(flat)) == len(flat)


@pytest.mark.parametrize("seed", range(part(300)))
@sized
def test_sentences_of_the_grammar_parse(seed: int) -> None:
    rng = random.Random(seed)
    generator = ebnf.Generator(RULES, LEXICAL)
    text = "\n"
    while len(text) < 40:
        text += " ".join(generator.sentence(rng, "program", rng.randrange(14, 40)))
    try:
        parse(text)
    except AssemblyError as error:
        pytest.fail(f"{text}\n{error}")


SOUP = ("x", "foo", "1", "2.5", "3j", "true", "nan", "+", "-", "*", "**", "~", "not", "and", "or",
        "<", "==", "(", ")", "[", "]", ",", ":", ".", "@", "if", "&", "|")  # fmt: skip


def _parses(line: str) -> bool:
    try:
        parse(f"func f()\n {line}\n")
    except AssemblyError:
        return False
    return True


@sized
def test_soup_of_words_is_read_alike() -> None:
    """On random words the recognizer of the EBNF and the parser agree."""
    rng = random.Random(5)
    recognizer = ebnf.Recognizer(RULES, CLASSES)
    generator = ebnf.Generator(RULES, {**LEXICAL, "NAME": ("x", "foo")})
    agreed = {True: 0, False: 0}
    while sum(agreed.values()) < part(4000):
        if rng.random() < 0.5:
            tokens = [rng.choice(SOUP) for _ in range(rng.randrange(1, 8))]
        else:
            tokens = generator.sentence(rng, "expr", rng.randrange(13, 22))
            for _ in range(rng.randrange(3)):
                tokens[rng.randrange(len(tokens))] = rng.choice(SOUP)
        if len(tokens) > 30 or "'" in tokens:
            continue
        expected = recognizer.accepts(tokens, "expr")
        assert _parses(f"free x = {' '.join(tokens)}") is expected, tokens
        agreed[expected] += 1
    assert min(agreed.values()) > part(300)


@pytest.mark.parametrize(
    "line",
    ["br", "br x,", "free", "free x =", "alloc x:", "for i = 1", "for i to 3", "undo", "if",
     "call f", "add x y", "add x,", "x[", "extern sideways", "local 3", "from", "L", "1: add x, y"],
)  # fmt: skip
def test_lines_that_are_not_statements(line: str) -> None:
    fine = line == "L"  # the use of a macro without operands
    assert _parses(line) is fine
