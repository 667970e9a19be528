"""Counts of a run: by call path, by instruction, and by the sizes of arrays.

An engine that counts fills a `Counts` while it runs.  Counts are only numbers, so their size does
not grow with the length of a run.

A tick does one of three things at one instruction: it *executes* it and continues after it (at a
call: it enters the callee), it takes a *jump* from a branch to after its come-from, which executes
both, or it *returns* to a call.  So the three kinds of counts add up to the ticks.

Call paths are a calling context tree (Ammons, Ball, Larus, "Exploiting hardware performance
counters with flow and context sensitive profiling", 1997): a function has separate counts for each
path by which it is called, and recursion leads back to the node of the active function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

from rvm.accounts.cost import Cost, Size, cost, measured
from rvm.expr import Apply, Const, Expr, Index, Place, Shaped, Span, Step, places
from rvm.host.once import once
from rvm.image import Code
from rvm.isa import ENDS, MAKES
from rvm.state import Frame
from rvm.types import I64, Stack, elem_of, rank_of

Key = tuple[Size, ...]
"""The sizes on which an instruction's cost depends, in the order of `Sized.of`."""


class Pending(Protocol):
    """Counters that are kept elsewhere, in a form of their own."""

    def settle(self) -> None:
        """Add the pending counts to those of their node, and reset them."""


class Node:
    """Counts of one function in one direction, called along one path."""

    __slots__ = (
        "children",
        "code",
        "done",
        "erased",
        "jumps",
        "parent",
        "pending",
        "returns",
        "rounded",
        "site",
        "sizes",
    )

    def __init__(self, code: Code, parent: Node | None = None, site: int = -1) -> None:
        self.code = code
        self.parent = parent
        self.site = site
        """The position of the call in the parent's code."""
        n = len(code)
        self.done = [0] * n
        """Ticks that executed an instruction without a jump; of a call, entries."""
        self.jumps = [0] * n
        """Jumps taken from a branch."""
        self.returns = [0] * n
        """Returns to a call."""
        self.erased: dict[int, int] = defaultdict(int)
        """Bits that freeing or dropping a value, or returning from a call, erased."""
        self.rounded: dict[int, int] = defaultdict(int)
        """Bits that updates of inexact numbers lost; see `rvm.numbers.gaps.lost`."""
        self.sizes: dict[int, dict[Key, int]] = defaultdict(lambda: defaultdict(int))
        """For each instruction on arrays, how often it met which sizes."""
        self.children: dict[int, Node] = {}
        """The nodes of calls; for a recursive call, the node of the same function further up."""
        self.pending: list[Pending] = []
        """Counts that are kept elsewhere."""

    def __getstate__(self) -> dict[str, Any]:
        """The counts by instruction, up to date, without the counters of generated code."""
        self.settle()
        return {name: getattr(self, name) for name in ("children", "done", "erased", "jumps")} | {
            "rounded": self.rounded,
            "place": (self.code, self.parent, self.site),
            "returns": self.returns,
            "sizes": {pc: dict(found) for pc, found in self.sizes.items()},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Node.__init__(self, *state.pop("place"))
        self.erased.update(state.pop("erased"))
        self.rounded.update(state.pop("rounded"))
        for pc, found in state.pop("sizes").items():
            self.sizes[pc].update(found)
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"<Node {' > '.join(n.name for n in self.path)}>"

    @property
    def name(self) -> str:
        """The function's name, after `~` where it is undone."""
        return "~" * self.code.undo + self.code.name

    @property
    def path(self) -> list[Node]:
        """The nodes from the root to this one."""
        above = [] if self.parent is None else self.parent.path
        return [*above, self]

    def child(self, site: int) -> Node:
        """The node that the call at `site` leads to."""
        found = self.children.get(site)
        if found is None:
            found = self.children[site] = self._callee(site)
        return found

    def _callee(self, site: int) -> Node:
        instr = self.code.instrs[site]
        code = self.code.image.code(instr.symbol, instr.op == "uncall")
        above: Node | None = self
        while above is not None:
            if above.code is code:
                return above
            above = above.parent
        return Node(code, self, site)

    def own_children(self) -> Iterator[Node]:
        """The nodes below this one, without those that recursion leads back to."""
        return (n for n in self.children.values() if n.parent is self)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, callers first."""
        yield self
        for n in self.own_children():
            yield from n.walk()

    # ------------------------------------------------------------ counting

    def settle(self) -> None:
        """Add the counters of generated code to the counts by instruction."""
        for elsewhere in self.pending:
            elsewhere.settle()

    # ------------------------------------------------------------ looking

    @property
    def ticks(self) -> int:
        """The ticks spent in this function along this path, those of its callees aside."""
        return sum(self.done) + sum(self.jumps) + sum(self.returns)

    def executed(self, pc: int) -> int:
        """The number of times the instruction at `pc` was executed, also as an end of a jump."""
        instr = self.code.instrs[pc]
        n = self.done[pc]
        if instr.op == "br":
            n += self.jumps[pc]
        elif instr.op == "cf":
            n += self.jumps[instr.aux]
        return n

    def costs(self, pc: int) -> Iterator[tuple[int, Cost]]:
        """The number of executions of the instruction at `pc`, for each cost."""
        sized = sized_of(self.code)
        if not sized.of[pc]:
            yield self.executed(pc), sized.cost(pc, ())
            return
        for key, n in self.sizes[pc].items():
            yield n, sized.cost(pc, key)


class Sized:
    """The sizes on which the costs of a code's instructions depend, and these costs."""

    def __init__(self, code: Code) -> None:
        self.code = code
        registers = code.function.registers
        self.of: list[tuple[Expr, ...]] = [
            measured(code.stmts(pc), registers) for pc in range(len(code))
        ]
        """For each instruction the places and lengths whose sizes its cost depends on."""
        self._costs: dict[tuple[int, Key], Cost] = {}

    def after(self, pc: int) -> bool:
        """Whether sizes are there only when the instruction has been executed."""
        return self.code.instrs[pc].op in MAKES

    def steady(self, pc: int) -> bool:
        """Whether it finds the same sizes as long as a frame's arrays are the same."""
        return bool(self.of[pc]) and not self.after(pc) and all(map(_steady, self.of[pc]))

    @cached_property
    def depending(self) -> dict[int, list[int]]:
        """For each array register the instructions whose sizes stay as long as it does."""
        out: dict[int, list[int]] = {}
        for pc, nodes in enumerate(self.of):
            if self.steady(pc):
                for reg in {p.reg for e in nodes for p in places(e)}:
                    out.setdefault(reg, []).append(pc)
        return out

    def may_erase(self, pc: int) -> bool:
        """Whether executing the instruction may erase bits when it frees a value."""
        instr = self.code.instrs[pc]
        if instr.op not in ENDS:
            return False
        t = self.code.function.registers[instr.args[0].reg].type  # type: ignore[attr-defined]
        return not isinstance(t, Stack) and (instr.op == "drop" or not elem_of(t).is_exact)

    def cost(self, pc: int, key: Key) -> Cost:
        """The cost of the instruction for these sizes."""
        found = self._costs.get((pc, key))
        if found is None:
            code = self.code
            found = self._costs[pc, key] = cost(
                code.stmts(pc),
                code.function.registers,
                dict(zip(self.of[pc], key, strict=True)),
                len(code.clashes(pc)),
                code.image.inout.get(code.instrs[pc].symbol, ()),
            )
        return found


def _steady(node: Expr) -> bool:
    """Whether an array place's shape, or a length, follows from the shapes of registers alone."""
    match node:
        case Const():
            return True
        case Apply(_, args):
            return all(map(_steady, args))
        case Place(_, path, t):
            return rank_of(t or I64) > 0 and all(
                _steady(bound) for step in path for bound in _bounds(step)
            )
        case _:
            return False


def _bounds(step: Step) -> Iterator[Expr]:
    """The expressions that determine the lengths after a step."""
    if isinstance(step, Shaped):
        yield from step.dims
    elif isinstance(step, Index):
        for item in step.items:
            if isinstance(item, Span):
                yield from item.given


def sized_of(code: Code) -> Sized:
    """The sizes and costs of a code, found at first use."""
    return once(code.compiled, Sized, Sized, lambda: Sized(code))


class Counts:
    """Counts of a run, or of the part of one for which counting was requested.

    `calls`, if given, receives the time and the code of every call entered, and of every return.
    """

    def __init__(self, calls: CallWatcher | None = None) -> None:
        self.roots: list[Node] = []
        """One for each outermost code: a machine that turns has two."""
        self.path: list[Node] = []
        """The nodes of the active frames."""
        self.calls = calls

    def align(self, frames: Sequence[Frame]) -> list[Node]:
        """The path that belongs to these frames."""
        path = self.path
        if len(path) != len(frames) or any(
            n.code is not f.code for n, f in zip(path, frames, strict=True)
        ):
            path[:] = [self._root(frames[0].code)]
            for frame in frames[:-1]:
                path.append(path[-1].child(frame.pc))
        return path

    def _root(self, code: Code) -> Node:
        for root in self.roots:
            if root.code is code:
                return root
        self.roots.append(Node(code))
        return self.roots[-1]

    def enter(self, pc: int, time: int) -> None:
        """A call was entered; `time` is that after its tick."""
        path = self.path
        node = path[-1]
        node.done[pc] += 1
        child = node.children.get(pc) or node.child(pc)
        path.append(child)
        if self.calls is not None:
            self.calls.enter(child.code, time)

    def leave(self, pc: int, time: int) -> None:
        """The innermost function has returned to the call at `pc`; `time` is as in `enter`."""
        self.path.pop()
        self.path[-1].returns[pc] += 1
        if self.calls is not None:
            self.calls.leave(time)

    def nodes(self) -> Iterator[Node]:
        """All nodes, callers first, their counts by instruction up to date."""
        for root in self.roots:
            for node in root.walk():
                node.settle()
                yield node

    @property
    def ticks(self) -> int:
        """All ticks counted."""
        return sum(n.ticks for n in self.nodes())

    @property
    def entered(self) -> int:
        """All calls entered."""
        return sum(n.done[pc] for n in self.nodes() for pc in n.children)


class CallWatcher:
    """A listener to calls; this one ignores them."""

    least: int = 0
    """Calls of fewer ticks need not be reported; it may grow, but not decrease."""

    def enter(self, code: Code, time: int) -> None:
        """A call was entered; `time` is that after its tick."""

    def leave(self, time: int) -> Any:
        """A function was left at a time."""

    def called(self, code: Code, entered: int, left: int) -> None:
        """Report a call, entered and left; such reports come in the order in which calls end.

        Engines report a call either in this way, or by `enter` and `leave`.
        """
        self.enter(code, entered)
        self.leave(left)
