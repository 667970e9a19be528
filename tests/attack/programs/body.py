"""What writers of random functions share: lines, and the names that must not be changed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable


class BodyWriter(ABC):
    """The body of a function in the making; `names` are its variables by type."""

    def __init__(self, rng: random.Random, names: dict[str, list[str]], budget: int) -> None:
        self.rng = rng
        self.names = names
        self.lines: list[str] = []
        self.locked: set[str] = set()
        """Names that what is written now must not change."""
        self.fresh = 0
        self.budget = budget
        """How many more statements there may be."""

    def body(self, depth: int, n: int) -> None:
        """At most `n` statements."""
        for _ in range(n):
            if self.budget > 0:
                self.budget -= 1
                self.statement(depth)

    @abstractmethod
    def statement(self, depth: int) -> None:
        """A random statement."""

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def free(self, t: str) -> list[str]:
        """The names of a type that may be changed."""
        return [n for n in self.names[t] if n not in self.locked]

    def locking(self, names: set[str], inside: Callable[[], None]) -> None:
        """Write something that must not change these names."""
        before = set(self.locked)
        self.locked |= names
        inside()
        self.locked = before

    def stacked_of(self, t: str, depth: int) -> None:
        """A number waits on the stack while zero, and then another, is in its place."""
        names = self.free(t)
        if len(names) < 2:
            return
        a, b = self.rng.sample(names, 2)
        self.line(depth, f"push {a}, s")
        self.line(depth, f"swap {a}, {b}")
        self.locking({b}, lambda: self.body(depth + 1, 2))
        self.line(depth, f"pop {b}, s")
