"""A function's code laid out for lanes: single statements in a row, and the jumps among them.

An instruction of several statements becomes several operations, so that each is atomic; a `When`
becomes a jump over its body.  Positions are indices of operations; lanes that have diverged are
together again when they reach the same position.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rvm.engines.lanes.uniform import Uniformity, called, nodes_of, varies
from rvm.expr import Const, Expr, places
from rvm.host.once import once
from rvm.image import Clash, Code
from rvm.stmt import FORWARD, Branch, Call, Effect, Land, Stmt, When
from rvm.types import BOOL


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    `kind`: "lane" is a statement on registers that vary, "same" an instruction on uniform ones,
    "branch", "call" and "skip" (over the body of a `When`, to `target`) end a segment.
    `ticks` is 1 for the first operation of an instruction, else 0.
    """

    kind: str
    pc: int
    ticks: int
    stmts: tuple[Stmt, ...]
    clashes: tuple[Clash, ...] = ()
    target: int = -1

    @property
    def stmt(self) -> Stmt:
        return self.stmts[0]

    @property
    def branch(self) -> Branch:
        assert isinstance(self.stmt, Branch)
        return self.stmt


class LanePlan:
    """A function in one direction, called with certain parameters that vary."""

    def __init__(self, code: Code, params: frozenset[int], uniformity: Uniformity) -> None:
        self.code = code
        self.uniformity = uniformity
        self.varying = uniformity.varying(code, params)
        self.ops: list[Op] = []
        self.start: list[int] = []
        """The position of each instruction, and that after the last."""
        for pc in range(len(code)):
            self.start.append(len(self.ops))
            self._lay_out(pc)
        self.start.append(len(self.ops))
        self.leaders = self._leaders()
        self.compiled: dict[object, object] = {}
        """The engine's compiled code, by position and kind."""

    def _lay_out(self, pc: int) -> None:
        stmts, clashes = self.code.ready(pc)
        first = stmts[0]
        if isinstance(first, (Branch, Call)):
            kind = "branch" if isinstance(first, Branch) else "call"
            self.ops.append(Op(kind, pc, 1, stmts, clashes))
        elif isinstance(first, Effect) and not (first.when & FORWARD):
            self.ops.append(Op("nothing", pc, 1, stmts))
        elif not isinstance(first, Land) and not any(
            varies(n, self.varying) for n in nodes_of(self.code, stmts)
        ):
            self.ops.append(Op("same", pc, 1, stmts, clashes))
        else:
            self._statements(pc, stmts, clashes, 1)
        for note in self.code.notes(pc):
            if not any(varies(n, self.varying) for n in nodes_of(self.code, (note,))):
                self.ops.append(Op("same", pc, 0, (note,)))
            else:
                self._statements(pc, (note,), (), 0)

    def _statements(
        self, pc: int, stmts: tuple[Stmt, ...], clashes: tuple[Clash, ...], ticks: int
    ) -> None:
        for stmt in stmts:
            if isinstance(stmt, When):
                at = len(self.ops)
                self.ops.append(Op("skip", pc, ticks, (stmt,), clashes))
                self._statements(pc, stmt.body, (), 0)
                self.ops[at] = Op("skip", pc, ticks, (stmt,), clashes, len(self.ops))
            else:
                self.ops.append(Op("lane", pc, ticks, (stmt,), clashes))
            clashes, ticks = (), 0

    def _leaders(self) -> frozenset[int]:
        """Positions that lanes can reach other than from the previous one."""
        found = {0, len(self.ops)}
        for q, op in enumerate(self.ops):
            if op.kind == "branch":
                found |= {q + 1, self.behind(op)}
            elif op.kind == "call":
                found |= {q, q + 1}
            elif op.kind == "skip":
                found |= {q + 1, op.target}
        return frozenset(found)

    def behind(self, op: Op) -> int:
        """The target of a taken branch: the position after its come-from."""
        return self.start[op.branch.partner + 1]

    def landing(self, op: Op) -> Expr:
        """The condition of a branch's come-from."""
        landing = self.code.stmts(op.branch.partner)[0]
        assert isinstance(landing, Land)
        return landing.cond

    def expected(self, op: Op) -> Expr | None:
        """The condition required where a branch is taken, if its own does not imply it."""
        landing = self.landing(op)
        return None if landing in (op.branch.cond, Const(True, BOOL)) else landing

    def callee(self, op: Op) -> LanePlan:
        """The plan of the function that a call runs."""
        call = op.stmt
        assert isinstance(call, Call)
        code, params = called(self.code, call, self.varying)
        return plan_of(code, params, self.uniformity)

    @cached_property
    def touched(self) -> tuple[frozenset[int], ...]:
        """For each operation, the registers that it reads or changes."""
        return tuple(self._touched(op) for op in self.ops)

    def _touched(self, op: Op) -> frozenset[int]:
        nodes = [*nodes_of(self.code, op.stmts), *(p for a, b, _ in op.clashes for p in (a, b))]
        if op.kind == "branch":
            nodes.append(self.landing(op))
        return frozenset(p.reg for node in nodes for p in places(node))


def plan_of(code: Code, params: frozenset[int], uniformity: Uniformity) -> LanePlan:
    """The plan of a code for parameters that vary, made at first use."""
    key = "lanes", params
    return once(code.compiled, key, LanePlan, lambda: LanePlan(code, params, uniformity))


def acts_outside(code: Code) -> bool:
    """Whether a run may print or call back; lanes then run one after another."""
    seen: set[Code] = set()
    todo = [code]
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        for pc in range(len(here)):
            stmt = here.stmts(pc)[0]
            if isinstance(stmt, Effect) and stmt.when & FORWARD and stmt.kind != "assert":
                return True
            if isinstance(stmt, Call):
                todo.append(here.image.code(stmt.callee, stmt.undo))
    return False
