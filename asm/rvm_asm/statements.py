"""Parsing statements and blocks.

A line that cannot be read is reported and skipped; the head of a block that cannot be read still
opens its block, so one mistake gives one message.
"""

from __future__ import annotations

from collections.abc import Callable

from rvm.stmt import BACKWARD, FORWARD
from rvm_asm.cursor import Bad
from rvm_asm.habits import habit
from rvm_asm.instructions import InstructionParser
from rvm_asm.lexer import END, NAME, NEWLINE
from rvm_asm.names import RESERVED
from rvm_asm.nodes import Declared, Lit, Node, Word
from rvm_asm.stats import (
    MAPS,
    Arm,
    Empty,
    Extern,
    For,
    From,
    IfStat,
    OpStat,
    Routine,
    Stat,
    While,
    With,
)

TOP = frozenset({"func", "const", "record", "macro", "pure", "include", "entry", "keep"})
"""Words that begin a declaration, and so end a function."""
MAX_BLOCKS = 60
"""The largest nesting depth of blocks."""
CLOSERS = frozenset({"end", "else", "elseif", "until", "loop", "result"})
DIRECTIONS = {"forward": FORWARD, "backward": BACKWARD, "both": FORWARD | BACKWARD}


class StatementParser(InstructionParser):
    """Reads statements up to a word that closes their block."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.excused: set[str] = set()
        """Names on lines that could not be parsed, whose declarations are unknown."""
        self.blocks = 0
        self._too_deep = False
        self._line = 0
        """The first token of the statement that is read."""
        self._special: dict[str, Callable[[int], Stat]] = {
            "alloc": self._alloc,
            "free": self._alloc,
            "fresh": self._alloc,
            "drop": self._alloc,
            "local": self._alloc,
            "br": self._jump,
            "cf": self._jump,
            "call": self._call,
            "uncall": self._call,
            **dict.fromkeys(MAPS, self._call),
            "iterate": self._iterate,
            "replace": self._replace,
            "undo": self._undo,
            "if": self._if,
            "while": self._while,
            "from": self._from,
            "for": self._for,
            "routine": self._routine,
            "with": self._with,
            "extern": self._extern,
            "print": self._effect,
            "assert": self._effect,
            "callback": self._effect,
        }

    def habitual(self) -> None:
        first = stop = self.i
        while first > 0 and self.kinds[first - 1] != NEWLINE:
            first -= 1
        if first < self._line <= stop:
            first = self._line  # behind a label
        while self.kinds[stop] not in (NEWLINE, END):
            stop += 1
        comment = ""
        if first < stop == self.i:
            comment = self.report.sources.text(self.end_of(stop - 1), self.starts[stop]).strip()
        found = habit(self.kinds[first:stop], self.texts[first:stop], comment)
        if found is not None:
            start, end = self.starts[first + found.first], self.end_of(first + found.stop - 1)
            self.report.error("A002", found.message, start, end, hint=found.hint)
            raise Bad

    def skip_line(self) -> None:
        """Skip the rest of a line; its names are excused."""
        kinds = self.kinds
        while kinds[self.i] != NEWLINE and kinds[self.i] != END:
            self.i += 1
        self.depth = 0

    def excuse(self, first: int) -> None:
        """Remember the names from token `first` to the end of the line."""
        i = first
        while self.kinds[i] != NEWLINE and self.kinds[i] != END:
            if self.kinds[i] == NAME:
                self.excused.add(self.texts[i])
            i += 1

    def end_line(self) -> None:
        """Demand the end of the line."""
        if self.kinds[self.i] != NEWLINE:
            self.fail("the end of the line")

    def end_head(self) -> None:
        """The end of a block's head; anything more is reported and skipped."""
        try:
            self.end_line()
        except Bad:
            self.skip_line()

    def block(self, closers: frozenset[str], opener: Word) -> list[Stat]:
        """Statements up to, not including, one of `closers`; reports a block left open."""
        if self.blocks >= MAX_BLOCKS:
            if not self._too_deep:
                self.report.about(
                    opener,
                    "A046",
                    f"blocks nest deeper than {MAX_BLOCKS} levels",
                    hint="make a function of the inner ones",
                )
            self._too_deep = True
            raise Bad
        self.blocks += 1
        try:
            body = self.statements(closers)
        finally:
            self.blocks -= 1
        if self.kinds[self.i] == END or self.texts[self.i] in TOP:
            self.report.about(
                opener,
                "A007",
                f"the block `{opener.text}` is not closed",
                hint="close it with `until …`" if opener.text == "from" else "close it with `end`",
            )
        return body

    def statements(self, closers: frozenset[str]) -> list[Stat]:
        """Statements up to a closer, a declaration or the end of the file."""
        kinds, texts = self.kinds, self.texts
        out: list[Stat] = []
        labels: list[Word] = []
        while True:
            i = self.i
            kind = kinds[i]
            if kind == NEWLINE:
                self.i = i + 1
                continue
            if kind == NAME and kinds[i + 1] == ":":
                labels.append(Word(texts[i], self.starts[i], self.end_of(i)))
                self.i = i + 2
                continue
            if kind == END:
                break
            if kind == NAME:
                text = texts[i]
                if text in closers or text in TOP:
                    break
                if text in CLOSERS:
                    self._stray(text)
                    continue
            try:
                stat = self.statement()
                if kinds[self.i - 1] != NEWLINE:  # a block left open ends at a line's beginning
                    self.end_line()
            except Bad:
                self.excuse(i)
                self.skip_line()
                continue
            if labels:
                stat.labels = tuple(labels)
                labels = []
            out.append(stat)
        if labels:
            empty = Empty(labels[-1].start, labels[-1].end)
            empty.labels = tuple(labels)
            out.append(empty)
        return out

    def _stray(self, text: str) -> None:
        if self._too_deep:
            self.skip_line()
            return
        hint = ""
        if text == "end" and not self.blocks:
            hint = "a function needs no `end`: it ends where the next declaration begins"
        self.report.error(
            "A008",
            f"`{text}` does not close an open block",
            self.starts[self.i],
            self.end_of(self.i),
            hint=hint,
        )
        self.skip_line()

    def statement(self) -> Stat:
        """One statement (its newline not included)."""
        i = self._line = self.i
        if self.kinds[i] != NAME:
            self.fail("an instruction")
        name, start = self.texts[i], self.starts[i]
        self.i = i + 1
        special = self._special.get(name)
        if special is not None:
            return special(start)
        if name in RESERVED and name != "not":
            self.i = i
            self.fail("an instruction")
        stop = start + len(name)
        args: list[Node] = []
        if self.kinds[i + 1] != NEWLINE:
            args.append(self.operand())
            while self.kinds[self.i] == ",":
                self.i += 1
                args.append(self.operand())
        return OpStat(name, args, start, stop, self.last_end())

    # Blocks.

    def _head(self, start: int, word: str) -> Word:
        return Word(word, start, start + len(word))

    def _conditions(self, start: int, fallback: Node) -> tuple[Node, Node | None]:
        """`p` or `p, q`; a head that cannot be read gives the fallback."""
        first = self.i
        try:
            cond = self.expression()
            post = self.expression() if self.accept(",") else None
            self.end_line()
        except Bad:
            self.excuse(first)
            self.skip_line()
            return fallback, fallback
        return cond, post

    def close(self) -> Node | None:
        """The `end` of a block, and the postcondition that may follow it."""
        if not self.accept_word("end"):
            return None
        return None if self.kinds[self.i] == NEWLINE else self.expression()

    def _if(self, start: int) -> Stat:
        arms: list[Arm] = []
        orelse = None
        word, at, stop = "if", start, 0
        closers = frozenset({"elseif", "else", "end"})
        while True:
            fallback = Lit(True, at, at + len(word))
            cond, post = self._conditions(at, fallback)
            stop = stop or self.last_end()
            body = self.block(closers, self._head(at, word))
            arms.append(Arm(cond, post, body))
            at, word = self.starts[self.i], self.texts[self.i]
            self.i += word in closers
            if word != "elseif":
                break
        if word == "else":
            self.end_head()
            orelse = self.block(frozenset({"end"}), self._head(at, "else"))
        else:
            self.i -= word in closers
        end = self.starts[self.i]
        post = self.close()
        if post is not None:
            if len(arms) > 1 or arms[0].post is not None:
                self.report.error(
                    "A009",
                    "the postcondition is named twice"
                    if len(arms) == 1
                    else "an `end` of several arms takes no postcondition",
                    end,
                    post.end,
                    hint="name each arm's after a comma: `elseif p, q`",
                )
            arms[0].post = post
        return IfStat(arms, orelse, start, stop)

    def _while(self, start: int) -> Stat:
        cond, post = self._conditions(start, Lit(False, start, start + 5))
        stop = self.last_end()
        body = self.block(frozenset({"end"}), self._head(start, "while"))
        end = self.starts[self.i]
        named = self.close()
        if named is not None and post is not None:
            self.report.error("A009", "the postcondition is named twice", end, named.end)
        post = post or named
        if post is None:
            self.report.error(
                "A059",
                "this `while` has no postcondition",
                start,
                stop,
                notes=("running back, it decides whether there was one more iteration",),
                hint="give a condition that holds after every iteration and not before the "
                "first: `while p, q`",
            )
            post = cond
        return While(cond, post, body, start, stop)

    def _from(self, start: int) -> Stat:
        entry, extra = self._conditions(start, Lit(True, start, start + 4))
        if extra is not None and extra is not entry:
            self.report.about(extra, "A002", "`from` takes one condition")
        stop = self.last_end()
        head = self._head(start, "from")
        body = self.block(frozenset({"until", "loop"}), head)
        again: list[Stat] = []
        if self.accept_word("loop"):
            self.end_head()
            again = self.block(frozenset({"until"}), head)
        until: Node = entry
        if self.accept_word("until"):
            until = self.expression()
        return From(entry, body, again, until, start, stop)

    def _for(self, start: int) -> Stat:
        first = self.i
        parts: tuple[Word, Node, Node, Node | None, bool] | None = None
        try:
            parts = self._for_head()
        except Bad:
            self.excuse(first)
            self.skip_line()
        stop = self.last_end()
        body = self.block(frozenset({"end"}), self._head(start, "for"))
        end = self.starts[self.i]
        post = self.close()
        if post is not None:
            self.report.error("A009", "the end of a `for` takes no condition", end, post.end)
        if parts is None:
            return Empty(start, stop)
        var, lo, hi, step, down = parts
        return For(var, lo, hi, step, down, body, start, stop)

    def _for_head(self) -> tuple[Word, Node, Node, Node | None, bool]:
        var = self.word("the loop's variable")
        self.expect("=")
        lo = self.expression()
        down = self.falls()
        hi = self.expression()
        step = self.expression() if self.accept_word("step") else None
        self.end_line()
        return var, lo, hi, step, down

    def _routine(self, start: int) -> Stat:
        head = self._head(start, "routine")
        # A routine without a name is named by its position, which no word can be.
        name = Word(f" {start}", start, head.end)
        at = self.i
        if self.kinds[at] != NEWLINE:
            try:
                name = self.word("the name of a routine")
            except Bad:
                self.skip_line()
            self.end_head()
        body = self.block(frozenset({"end", "result"}), head)
        result = None
        if self.accept_word("result"):
            self.end_head()
            result = self.block(frozenset({"end"}), self._head(self.starts[self.i - 1], "result"))
        elif self.kinds[at] == NEWLINE:
            self.report.error(
                "A002",
                "expected the name of a routine",
                start,
                head.end,
                hint="without a name it has a result: `routine`, …, `result`, …, `end`",
            )
        self.accept_word("end")
        return Routine(name, body, result, start, name.end)

    def _with(self, start: int) -> Stat:
        first = self.i
        held: list[tuple[Declared, Node | None]] = []
        try:
            while True:
                name = self.word("the name of a register")
                written = self.type_ref() if self.accept(":") else None
                value = self.expression() if self.accept("=") else None
                held.append((Declared(name.text, written, name.start, name.end), value))
                if not self.accept(","):
                    break
            self.end_line()
        except Bad:
            self.excuse(first)
            self.skip_line()
        stop = self.last_end()
        body = self.block(frozenset({"end"}), self._head(start, "with"))
        self.accept_word("end")
        return With(held, body, start, stop)

    def _extern(self, start: int) -> Stat:
        when = DIRECTIONS.get(self.texts[self.i], 0)
        try:
            if not when:
                self.fail(
                    "`forward`, `backward` or `both`",
                    "name the direction in which the block happens",
                )
            self.i += 1
        except Bad:
            self.skip_line()
        stop = self.last_end()
        self.end_head()
        body = self.block(frozenset({"end"}), self._head(start, "extern"))
        self.accept_word("end")
        return Extern(when, body, start, stop)
