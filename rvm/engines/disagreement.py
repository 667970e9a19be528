"""Two conditions that disagree about a jump (R002), described in terms of the source text.

The positions of jumps tell whether they belong to an `if`, a `while` or a `from` loop.  Each has
the source place of its condition, so the message can quote it.  Jumps that were written explicitly,
or whose source is not known, are described as branches and come-froms.

All positions here are those of the function as it was written, in both directions of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rvm.engines.evaluate import evaluate
from rvm.expr import Const, Expr, reads
from rvm.faults import InvertibilityError, MachineError
from rvm.isa import lower
from rvm.numbers import system
from rvm.program import Function, Instr
from rvm.state import Frame, where, words
from rvm.stmt import writes
from rvm.types import elem_of
from rvm.verify.text import shortened, show

MAX_CHANGES = 3
"""The largest number of changes to a condition's operands that a message lists."""
_AFTER_ARM = {":": "`if rvm.when({}, …):`", "": "`if {}, …`"}
"""The notation for the condition after an arm, by the text after the condition in its line."""


def changes(frame: Frame, value: Expr, between: range) -> Iterator[str]:
    """The lines of instructions, at positions in the function, that change places a value reads."""
    function = frame.code.function
    read = {p.reg for p in reads(value)}
    told: set[tuple[int, int]] = set()
    for pc in between:
        instr = function.code[pc]
        if instr.op in ("br", "cf"):
            continue
        for place in (p for s in lower(instr) for p in writes(s, frame.code.image.inout)):
            line = function.span(pc).line
            if place.reg in read and (place.reg, line) not in told and line:
                told.add((place.reg, line))
                if len(told) > MAX_CHANGES:
                    return
                yield f"line {line} changes `{show(place, function)}`"


def of_carried(frame: Frame) -> InvertibilityError:
    """The error R002 for a statement whose two ends decide differently."""
    at = where(frame.code, frame.pc)
    text = shortened((at.text or "")[at.column - 1 : at.end - 1].strip())
    back = "running back, " * frame.code.undo
    return InvertibilityError(
        "R002",
        f"{back}`{text}` does not agree with what the statement's other end decided",
        hint="running back, the condition behind a block decides: it must hold exactly where the "
        "block was entered",
    )


class Words(NamedTuple):
    """The wording of a disagreement, and the instructions whose changes may be the cause."""

    message: str
    hint: str
    between: range = range(0)


class Jumps:
    """A pair of jumps in a frame whose conditions disagree."""

    def __init__(self, frame: Frame, at: int, *, taken: bool) -> None:
        self.frame = frame
        self.function: Function = frame.code.function
        self.undo = frame.code.undo
        self.taken = taken
        """Whether the jump was made; else the run came to the condition from before it."""
        self.checked = frame.code.forward_pc(at)
        self.branch, self.landing = sorted(
            (self.checked, self.code[self.checked].aux), key=lambda k: self.code[k].op
        )

    @property
    def code(self) -> tuple[Instr, ...]:
        return self.function.code

    @property
    def condition(self) -> Expr:
        """The condition that is not as it must be."""
        return self.code[self.checked].args[0]

    def written(self, pc: int) -> str:
        """The condition of a structured statement in its source text; "" if there is none."""
        at = where(self.frame.code, self._position(pc))
        line = at.text or ""
        before, text = line[: at.column - 1].rstrip(), line[at.column - 1 : at.end - 1]
        # A statement is the first of its line, but for labels; a condition never is.  Languages
        # with words of their own have no jumps.
        if (not before or before[-1] in ":;") and words(
            self.frame.code, self._position(pc)
        ) is None:
            return ""
        return shortened(text.strip())

    def rest(self, pc: int) -> str:
        """The text after a condition in its line."""
        at = where(self.frame.code, self._position(pc))
        return (at.text or "")[at.end - 1 :].strip()

    def _position(self, pc: int) -> int:
        """The position in the function for one in the running code, or vice versa."""
        return self.frame.code.forward_pc(pc)

    def error(self) -> InvertibilityError:
        """R002, at the condition that is not as it must be."""
        told = self._structured() or self._plain()
        return InvertibilityError(
            "R002",
            told.message,
            where=where(self.frame.code, self._position(self.checked)),
            values=dict(self._values()),
            notes=tuple(self._changes(told.between)),
            hint=told.hint,
        )

    # ------------------------------------------------------------ the cause

    def _values(self) -> Iterator[tuple[str, Any]]:
        """The values that the condition reads."""
        for place in reversed(dict.fromkeys(reads(self.condition))):
            try:
                held = evaluate(place, self.frame.regs)
            except MachineError:
                continue  # behind an `and` or `or` that was not asked
            assert place.type is not None
            yield show(place, self.function), system(elem_of(place.type)).to_python(held)

    def _changes(self, between: range) -> Iterator[str]:
        """The lines that change values read by the condition."""
        return changes(self.frame, self.condition, between)

    # ------------------------------------------------------------ jumps as they are

    def _plain(self) -> Words:
        text = show(self.condition, self.function)
        if not self.taken:
            return Words(
                f"fallen into a come-from whose condition `{text}` holds",
                "its condition must hold only when its branch jumps to it, "
                "or running back would jump",
            )
        other = self.branch if self.checked == self.landing else self.landing
        place = where(self.frame.code, self._position(self.checked))
        return Words(
            f"the branch is taken, as `{show(self.code[other].args[0], self.function)}` holds, "
            f"but the condition of its come-from, `{text}`, does not ({place})",
            "both conditions must hold when the jump is made, or running back would not make it",
        )

    # ------------------------------------------------------------ structured statements

    def _structured(self) -> Words | None:
        text = self.written(self.checked)
        if not text:
            return None
        branch, landing = self.branch, self.landing
        if landing < branch:
            if self._is_while(landing, branch):
                return self._of_while(text, within=True)
            return self._of_loop(text)
        if self.code[branch + 1].op == "cf" and self._is_while(branch + 1, landing - 1):
            return self._of_while(text, within=False)
        before = self.code[landing - 1]
        if before.op == "br" and before.aux < branch:
            return self._of_loop(text)
        return self._of_if(text)

    def _is_while(self, top: int, bottom: int) -> bool:
        """Whether a loop is that of a `while`, which is skipped by a jump around it."""
        skip, behind = top - 1, bottom + 1
        code, span = self.code, self.function.span
        return (
            0 <= skip < top < bottom
            and behind < len(code)
            and (code[skip].op, code[skip].aux) == ("br", behind)
            and (code[bottom].op, code[bottom].aux) == ("br", top)
            and (span(skip), span(top)) == (span(bottom), span(behind))
        )

    def _of_if(self, text: str) -> Words:
        branch, landing = self.branch, self.landing
        leaves = _always(self.code[branch])
        # A jump over the arm, or from its end over the others.
        executed = self.taken == (leaves and not self.undo)
        if self.undo:
            message = (
                f"running back, this arm was undone, but `{text}` does not hold before it"
                if executed
                else f"running back, this arm was not undone, but `{text}` holds before it"
            )
            return Words(message, "before the arm, its condition holds exactly where it was taken")
        head = self.code[branch + 1].aux if leaves else branch
        hint = "running back, it decides: it must hold exactly where the arm was taken"
        if self.function.span(head) == self.function.span(landing):
            form = _AFTER_ARM.get(self.rest(landing)[:1], _AFTER_ARM[""])
            hint = "give the condition that holds exactly after this arm: " + form.format(text)
        if executed:
            arm = range(head + 1, branch if leaves else landing)
            message = f"this arm was taken, but `{text}` does not hold after it"
            return Words(message, hint, arm)
        others = range(branch + 1, landing) if leaves else range(0)
        return Words(f"this arm was not taken, but `{text}` holds after the `if`", hint, others)

    def _of_while(self, text: str, *, within: bool) -> Words:
        if self.undo:
            hint = "it holds before each iteration, and not after the last"
            if within and not self.taken:
                message = f"running back, `{text}` holds where this `while` ends"
            elif within or not self.taken:
                message = (
                    f"running back, `{text}` does not hold before an iteration of this `while`"
                )
            else:
                message = f"running back, this `while` makes no iteration, but `{text}` holds"
            return Words(message, hint)
        hint = (
            "it must hold after every iteration, and not before the first: "
            "running back, it decides whether there was one more"
        )
        if within and not self.taken:
            message = f"`{text}` holds before the first iteration of this `while`"
        elif within or not self.taken:
            message = f"`{text}` does not hold after an iteration of this `while`"
        else:
            message = f"this `while` makes no iteration, but `{text}` holds"
        return Words(message, hint)

    def _of_loop(self, text: str) -> Words:
        """A loop from one condition until another."""
        end = "ends" if self.undo else "begins"
        back = "running back, " * self.undo
        hint = f"it must hold where the loop {end}, and at no other iteration"
        # Back, a loop that is left in the middle is entered by a jump.
        outside = self.taken == (self.undo and self.branch < self.landing)
        if outside:
            return Words(f"{back}`{text}` does not hold where this loop {end}", hint)
        return Words(f"{back}`{text}` holds within this loop, not only where it {end}", hint)


def _always(instr: Instr) -> bool:
    return isinstance(instr.args[0], Const)
