"""A reader, a generator and a recognizer for the EBNF of docs/language.md."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

DOC = Path(__file__).resolve().parents[2] / "docs" / "language.md"
TOKEN = re.compile(r'\s*(?:"([^"]*)"|(\w+)|(.))')

Rule = tuple  # ("seq" | "alt", parts) | ("opt" | "rep", part) | ("word", text) | ("name", text)


def grammar() -> dict[str, Rule]:
    """The productions of the page, by name."""
    text = DOC.read_text(encoding="utf-8").split("```ebnf\n")[1].split("```")[0]
    tokens = [m.groups() for m in TOKEN.finditer(text) if any(m.groups())]
    rules: dict[str, Rule] = {}
    at = 0

    def alternatives() -> Rule:
        nonlocal at
        parts = [sequence()]
        while tokens[at][2] == "|":
            at += 1
            parts.append(sequence())
        return ("alt", parts) if len(parts) > 1 else parts[0]

    def sequence() -> Rule:
        nonlocal at
        parts = []
        while True:
            word, name, sign = tokens[at]
            if word is not None:
                parts.append(("word", word))
                at += 1
            elif name:
                parts.append(("name", name))
                at += 1
            elif sign in "([{":
                at += 1
                inner = alternatives()
                assert tokens[at][2] == {"(": ")", "[": "]", "{": "}"}[sign]
                at += 1
                parts.append({"(": inner, "[": ("opt", inner), "{": ("rep", inner)}[sign])
            else:
                return ("seq", parts)

    while at < len(tokens):
        name = tokens[at][1]
        assert name and tokens[at + 1][2] == "=" and name not in rules, tokens[at]
        at += 2
        rules[name] = alternatives()
        assert tokens[at][2] == ";"
        at += 1
    return rules


def names_in(rule: Rule) -> set[str]:
    """The productions and lexical classes that a rule names."""
    kind, inner = rule
    if kind == "name":
        return {inner}
    if kind == "word":
        return set()
    parts = inner if kind in ("seq", "alt") else [inner]
    return set().union(*map(names_in, parts)) if parts else set()


def words_in(rule: Rule) -> set[str]:
    """The terminals that a rule writes out."""
    kind, inner = rule
    if kind == "word":
        return {inner}
    if kind == "name":
        return set()
    parts = inner if kind in ("seq", "alt") else [inner]
    return set().union(*map(words_in, parts)) if parts else set()


class Generator:
    """Random sentences; the deeper, the sooner they end."""

    def __init__(self, rules: Mapping[str, Rule], lexical: Mapping[str, Sequence[str]]) -> None:
        self.rules = rules
        self.lexical = lexical
        self.depth: dict[str, int] = dict.fromkeys(rules, 99)
        for _ in rules:
            for name, rule in rules.items():
                self.depth[name] = min(self.depth[name], 1 + self._shallow(rule))

    def _shallow(self, rule: Rule) -> int:
        kind, inner = rule
        if kind in ("word", "opt", "rep"):
            return 0
        if kind == "name":
            return self.depth.get(inner, 0)
        depths = [self._shallow(p) for p in inner]
        return min(depths) if kind == "alt" else max(depths, default=0)

    def sentence(self, rng: random.Random, start: str, budget: int = 24) -> list[str]:
        """The tokens of a sentence."""
        out: list[str] = []
        self._make(rng, ("name", start), budget, out)
        return out

    def _make(self, rng: random.Random, rule: Rule, budget: int, out: list[str]) -> None:
        kind, inner = rule
        if kind == "word":
            out.append(inner)
        elif kind == "name":
            if inner in self.rules:
                self._make(rng, self.rules[inner], budget - 1, out)
            else:
                out.append(rng.choice(self.lexical[inner]))
        elif kind == "seq":
            for part in inner:
                self._make(rng, part, budget, out)
        elif kind == "alt":
            fits = [p for p in inner if self._shallow(p) < budget]
            self._make(rng, rng.choice(fits or [min(inner, key=self._shallow)]), budget, out)
        elif kind == "opt":
            if self._shallow(inner) < budget and rng.random() < 0.4:
                self._make(rng, inner, budget, out)
        else:
            while self._shallow(inner) < budget and rng.random() < 0.45:
                self._make(rng, inner, budget - 2, out)


class Recognizer:
    """Whether tokens are a sentence: all ways to read them, each position once a rule."""

    def __init__(self, rules: Mapping[str, Rule], classes: Mapping[str, re.Pattern[str]]) -> None:
        self.rules = rules
        self.classes = classes

    def accepts(self, tokens: Sequence[str], start: str) -> bool:
        """Whether all of `tokens` derives from `start`."""
        self.tokens = tokens
        self.memo: dict[tuple[str, int], frozenset[int]] = {}
        return len(tokens) in self._ends(("name", start), 0)

    def _ends(self, rule: Rule, at: int) -> frozenset[int]:
        kind, inner = rule
        if kind == "word":
            hit = at < len(self.tokens) and self.tokens[at] == inner
            return frozenset({at + 1} if hit else ())
        if kind == "name":
            return self._name(inner, at)
        if kind == "seq":
            ends = frozenset({at})
            for part in inner:
                ends = frozenset(e for s in ends for e in self._ends(part, s))
            return ends
        if kind == "alt":
            return frozenset(e for part in inner for e in self._ends(part, at))
        if kind == "opt":
            return self._ends(inner, at) | {at}
        done: set[int] = set()
        todo = {at}
        while todo:
            done |= todo
            todo = {e for s in todo for e in self._ends(inner, s)} - done
        return frozenset(done)

    def _name(self, name: str, at: int) -> frozenset[int]:
        if name not in self.rules:
            hit = at < len(self.tokens) and self.classes[name].fullmatch(self.tokens[at])
            return frozenset({at + 1} if hit else ())
        key = (name, at)
        if key not in self.memo:
            self.memo[key] = frozenset()
            self.memo[key] = self._ends(self.rules[name], at)
        return self.memo[key]
