"""Lowering `iterate`: a step function done many times, by a pebbling schedule.

If the number of steps is a constant, `rvm.pebble` plans the schedule.  In either case, functions
that execute the schedule are added to the program, and the statement becomes a call.  All generated
code has the statement's place in the source, for messages and debuggers.
"""

from __future__ import annotations

from typing import Any, NoReturn

from rvm.faults import RvmError
from rvm.program import Function, Program
from rvm.transform.duals import unique
from rvm.types import I64
from rvm_asm.calls import Calls
from rvm_asm.constants import NotConstant, is_evaluated
from rvm_asm.messages import did_you_mean
from rvm_asm.names import plain
from rvm_asm.nodes import Application, Lit, Node, Operator, Ref, Word
from rvm_asm.scope import Alias, Binding, Scope, Slot
from rvm_asm.stats import Invoke, Iterate
from rvm_asm.values import Rejected

BUDGETS = ("pebbles", "bennett", "memory", "max_moves")
"""The first words of policies; a policy names one of them."""
_POLICY = (*BUDGETS, "state_bytes", "goal")
_WHOLE = ("pebbles", "bennett", "state_bytes")
_GOALS = ("persist", "erase")
MOST_CODE = 1 << 17
"""The most instructions that the schedules of an assembly have."""


class Iterations(Calls):
    """Lowers `iterate`."""

    def iterate(self, stat: Iterate) -> None:
        """A call of the function that plays the schedule."""
        name, args = self.callee(stat)
        stat = replaced(stat, Word(name, stat.callee.start, stat.callee.end), args)
        signature = self._step_signature(stat)
        policy = self._policy(stat)
        number = self._number(stat, signature)
        steps = self._steps(stat)
        taken = frozenset(map(plain, (*self.program.functions, *self.program.signatures)))
        known = {f.name for f in self.program.generated}
        key = (
            stat.start,
            stat.callee.text,
            number,
            str(steps if isinstance(steps, int) else ""),
            str(policy),
        )
        root = self.program.iterated.get(key)
        if root is None:
            try:
                count = steps if isinstance(steps, int) else None
                made = self._made(stat, count, policy, number, taken | known)
            except RvmError as error:
                self._refuse(stat, error)
            self.program.generated += made
            root = self.program.iterated[key] = made[0].name
        args = list(stat.args)
        if stat.first is not None:
            args[[name for name, _ in signature].index(number or "")] = stat.first
        if not isinstance(steps, int):
            signature = (*signature, ("steps", Slot(-1, I64)))
            args.append(steps)
        self.program.signatures[root] = signature
        callee = Word(root, stat.callee.start, stat.callee.end)
        try:
            self.call(Invoke("call", callee, args, stat.start, stat.end))
        finally:
            del self.program.signatures[root]

    # ------------------------------------------------------------ what is written

    def _step_signature(self, stat: Iterate) -> tuple[tuple[str, Binding], ...]:
        name = plain(stat.callee.text)
        signature = self.program.signatures[stat.callee.text]
        if len(signature) != len(stat.args):
            self.wrong_count(name, [p for p, _ in signature], len(stat.args), stat)
        return signature

    def _number(self, stat: Iterate, signature: tuple[tuple[str, Binding], ...]) -> str | None:
        """The parameter that the variable of `for k = …` is passed to."""
        if stat.var is None:
            return None
        word = stat.var.text
        at = [
            k
            for k, a in enumerate(stat.args)
            if isinstance(a, Ref) and a.name == word and not a.steps
        ]
        if len(at) != 1:
            self.report.about(
                stat.var,
                "A067",
                f"the step's number `{word}` is not a separate argument",
                hint=f"pass it once, as it is: `iterate {stat.callee.text}(y, x, {word}) for …`; "
                "without a number, use `times`",
            )
            raise Rejected
        return signature[at[0]][0]

    def _policy(self, stat: Iterate) -> dict[str, Any]:
        """The words after `with`, with their values."""
        out: dict[str, Any] = {}
        for word, node in stat.policy:
            name = word.text
            if name not in _POLICY:
                self._policy_error(
                    f"there is no policy `{name}`",
                    word,
                    did_you_mean(name, _POLICY) or _words(_POLICY),
                )
            if name in out:
                self._policy_error(f"`{name}` is given twice", word)
            if name == "goal":
                out[name] = self._goal(node)
                continue
            out[name] = self._constant(node)
            if not isinstance(out[name], (int, float)) or isinstance(out[name], bool):
                self.reject("A066", f"`{name}` must be a constant number", node)
            least = 2 if name == "bennett" else 1
            if name in _WHOLE and (isinstance(out[name], float) or out[name] < least):
                self.reject("A066", f"`{name}` must be a whole number, {least} or more", node)
        budgets = [name for name in out if name in BUDGETS]
        if len(budgets) != 1:
            word = stat.policy[-1][0]
            self._policy_error(
                f"a policy has one budget, not {len(budgets)}",
                word,
                f"name one of {_words(BUDGETS)}",
            )
        if "memory" in out and "state_bytes" not in out:
            word = next(w for w, _ in stat.policy if w.text == "memory")
            hint = "`memory = 10 ** 6, state_bytes = 800`"
            self._policy_error("a budget of bytes needs the size of a state", word, hint)
        return out

    def _goal(self, node: Node) -> str:
        name = node.name if isinstance(node, Ref) and not node.steps else ""
        if name not in _GOALS:
            self.reject(
                "A066",
                "the goal of an `iterate` is `persist` or `erase`",
                node,
                "gradients come from `rvm.gradient` and from `rvm.pebble.emit`",
            )
        return name

    def _policy_error(self, message: str, word: Word, hint: str = "") -> NoReturn:
        self.report.about(word, "A066", message, hint=hint)
        raise Rejected

    # ------------------------------------------------------------ constants

    def _constant(self, node: Node) -> Any:
        """The value of an expression that the assembler can evaluate, else None."""
        node = self._inlined(node, self.scope)
        if not self._is_constant(node):
            return None
        try:
            return self.program.constants.evaluate(node).value
        except NotConstant:
            raise Rejected from None

    def _inlined(self, node: Node, scope: Scope) -> Node:
        """An expression with a macro's parameters replaced by its operands."""
        if isinstance(node, Ref):
            known = scope.names.get(node.name)
            if isinstance(known, Alias) and not node.steps:
                return self._inlined(known.node, known.scope)
        elif isinstance(node, Application):
            args = [self._inlined(a, scope) for a in node.args]
            return type(node)(node.name, args, node.start, node.end)
        return node

    def _is_constant(self, node: Node) -> bool:
        if isinstance(node, Lit):
            return node.type is None
        if isinstance(node, Ref):
            known = node.name in self.program.constants and node.name not in self.scope.names
            return known and not node.steps
        return is_evaluated(node.name) and all(map(self._is_constant, node.args))

    def _steps(self, stat: Iterate) -> int | Node:
        """The number of steps: of a `for` that of the values of its variable."""
        node = stat.last
        if stat.first is not None:
            start, end = stat.first.start, stat.last.end
            ends = [stat.first, stat.last] if stat.down else [stat.last, stat.first]
            span = Operator("-", ends, start, end)
            node = Operator("+", [span, Lit(1, start, end)], start, end)
        value = self._constant(node)
        if value is None:
            return node
        if not isinstance(value, int) or isinstance(value, bool):
            self.reject("A066", "steps are counted in whole numbers", stat.last)
        if value < 0:
            self.reject("A066", f"there cannot be {value:,} steps", stat.last)
        return value

    # ------------------------------------------------------------ what is made

    def _made(
        self,
        stat: Iterate,
        steps: int | None,
        policy: dict[str, Any],
        number: str | None,
        taken: frozenset[str],
    ) -> list[Function]:
        """The functions for this many steps, or if None for a number known only at run time."""
        from rvm.pebble.bridge.emission.recursion import LONGEST, recursion
        from rvm.pebble.bridge.emission.step import step_of

        if "bennett" not in policy:
            self._limit_code(stat)
            if steps is not None and steps > LONGEST:
                self.reject(
                    "A070",
                    f"{steps:,} steps are too many for a plan: the limit is {LONGEST:,}",
                    stat.last,
                    "make the steps fewer and longer, or use `bennett = 4`",
                )
        callee = plain(stat.callee.text)
        step = step_of(self._stubs(), callee, number and plain(number), by=-1 if stat.down else 1)
        terms = dict(policy)
        goal = terms.pop("goal", "persist")
        form: tuple[str, int] | None
        if "bennett" in terms:
            form, name = ("bennett", terms["bennett"]), f"bennett_{terms['bennett']}"
        elif steps:
            from rvm.pebble import plan

            form = plan(steps, goal=goal, **terms).schedule.form
            assert form is not None, "a plan of equal steps that erases nothing"
        elif "max_moves" in terms and steps is None:
            self.reject(
                "A068",
                "the number of steps is known only at run time, but a budget of moves needs a plan",
                stat.last,
                "make the number a constant, or limit the number of states: `pebbles = 12`",
            )
        else:
            size = terms.get("pebbles") or terms.get("memory", 1) // terms.get("state_bytes", 1)
            if size < 1:
                self.reject("A066", "this is too little memory for one state", stat.policy[0][1])
            form = ("knill", int(size))
        if steps is not None:
            name = f"times_{steps}"
        elif form[0] == "knill":
            name = f"pebbles_{form[1]}"
        span = self._source.span(stat.start, stat.end)
        made = recursion(
            step, steps, form, goal, unique(f"{callee}.{name}", set(taken)), span, taken
        )
        if form[0] == "knill":
            self.program.scheduled += sum(len(f.code) for f in made)
            self._limit_code(stat)
        return made

    def _limit_code(self, stat: Iterate) -> None:
        if self.program.scheduled > MOST_CODE:
            self.complain(
                "A070",
                f"the schedules up to here have {self.program.scheduled:,} instructions in total: "
                f"the limit is {MOST_CODE:,}",
                stat,
                "share one `iterate` in a function that is called, or use `bennett = 4`",
            )

    def _stubs(self) -> Program:
        """The program's functions as far as callers see them."""
        return Program(tuple(self.program.heads.values()), "")

    def _refuse(self, stat: Iterate, error: RvmError) -> NoReturn:
        """Report a planner's objection, at the statement."""
        start, end, hint = stat.start, stat.end, error.hint
        if error.code == "P002":
            start, end = stat.policy[0][0].start, stat.policy[-1][1].end
            word = next(w.text for w, _ in stat.policy if w.text in BUDGETS)
            hint = f"`{word} = {error.values['least']:.0f}` is the least that suffices"
        self.report.error(error.code, error.message, start, end, notes=error.notes, hint=hint)
        raise Rejected


def replaced(stat: Iterate, callee: Word, args: list[Node]) -> Iterate:
    """The statement with an instance of a generic function."""
    s = stat
    return Iterate(callee, args, s.var, s.first, s.last, s.down, s.policy, s.start, s.end)


def _words(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{n}`" for n in names)
