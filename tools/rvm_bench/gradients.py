"""The cost of gradients compared with their functions, counted on programs' own `;! run` lines.

`python -m rvm_bench.gradients FILE …` prints the table of steps and of operations on real and
complex numbers, for ordinary and for strict code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rvm_asm import load
from rvm_tools.directives import Directive, directives
from rvm_tools.tables import aligned
from rvm_tools.values import inputs_for

import rvm
from rvm.derive.target import Target
from rvm.engines.evaluate import evaluate, plain
from rvm.expr import Apply, Expr, Place
from rvm.isa import FUNCTIONS, array_value, value
from rvm.program import Function, Layout, Program, Record
from rvm.run.machine import Machine
from rvm.run.results import Result
from rvm.state import Options
from rvm.stmt import Map, Stmt, Update, When
from rvm.transform.duals import bar_slots
from rvm.types import I64, Scalar, Stack, elem_of, rank_of


@dataclass(frozen=True, slots=True)
class RunWork:
    """Steps of a run, and the operations on real and complex numbers in it."""

    steps: int
    operations: int


@dataclass(frozen=True, slots=True)
class GradientCost:
    """A function on some inputs: its own work, and that of function and gradient together."""

    name: str
    function: RunWork
    gradient: RunWork
    strict_function: RunWork
    strict_gradient: RunWork


def costs(files: Sequence[Path]) -> Iterator[GradientCost]:
    """The costs of every function with derivatives in these files, on its first `;! run` line."""
    for path in files:
        text = path.read_text(encoding="utf-8")
        program, strict = rvm.load(path).program, load(path, expand=True)
        seen = set()
        for run in directives(text, path.name):
            if run.is_run and not run.codes and run.function not in seen:
                seen.add(run.function)
                if _differentiable(program.function(run.function)):
                    name = path.stem + (f" {run.function}" if run.function != path.stem else "")
                    yield GradientCost(name, *_both(program, run, path), *_both(strict, run, path))


def _differentiable(function: Function) -> bool:
    """Whether a gradient of it can be seeded without knowing the lengths of stacks."""
    stacks = any(isinstance(r.type, Stack) for r in function.registers[: function.n_args])
    return bool(bar_slots(function)) and not stacks


def _both(program: Program, run: Directive, path: Path) -> tuple[RunWork, RunWork]:
    """The work of the function, and of its gradient with every adjoint seeded with 1."""

    def inputs() -> dict[str, Any]:
        return inputs_for(program.function(run.function), run.inputs, path.parent)

    machine = Machine.start(program, run.function, inputs(), Options(engine="reference"))
    regs = list(machine.state.frames[0].regs)
    one = counted(machine)
    both = Target(program, run.function).gradient_program
    entry, f = both.function(both.entry), program.function(run.function)
    shapes = {bar: np.shape(regs[k]) for k, bar in bar_slots(f).items()}
    seeds = {p.name: _ones(entry, p.layout, shapes) for p in entry.params[len(f.params) :]}
    start = Options(engine="reference")
    two = counted(Machine.start(both, both.entry, {**inputs(), **seeds}, start))
    # The entry's two calls belong to neither.
    return one, RunWork(two.steps - 4, two.operations)


def _ones(entry: Function, layout: Layout, shapes: dict[int, tuple[int, ...]]) -> Any:
    if isinstance(layout, Record):
        return Result({name: _ones(entry, inner, shapes) for name, inner in layout.fields})
    t = entry.registers[layout].type
    if isinstance(t, Scalar):
        return 1.0
    return np.ones(shapes[layout], np.complex128 if elem_of(t).is_complex else np.float64)


# ---------------------------------------------------------------- counting


def counted(machine: Machine) -> RunWork:
    """Run a machine to its end, looking at every instruction before it is executed."""
    total = 0
    while not machine.finished:
        frame = machine.state.top
        if frame.pc < len(frame.code):
            instr = frame.code.instrs[frame.pc]
            stmts = frame.code.stmts(frame.pc)
            if all(isinstance(s, (Update, Map, When)) for s in stmts):
                total += sum(_statement(s, frame.regs) for s in stmts)
            else:
                total += sum(operations(a, frame.regs) for a in instr.args)
                if instr.op == "br" and evaluate(instr.args[0], frame.regs):
                    # The come-from that it lands on is executed with it.
                    total += operations(frame.code.instrs[instr.aux].args[0], frame.regs)
        machine.step()
    return RunWork(machine.time, total)


def _statement(stmt: Stmt, regs: Sequence[Any]) -> int:
    match stmt:
        case Update(dst, _, new):
            return _updated(dst, regs) + operations(new, regs)
        case Map(_, values, _):
            return sum(operations(v, regs) for v in values)
        case When(cond, body):
            inside = evaluate(cond, regs)
            return operations(cond, regs) + sum(_statement(s, regs) for s in body if inside)
        case _:
            return 0


def _updated(dst: Place, regs: Sequence[Any]) -> int:
    if not _is_real(dst) or dst.type is None:
        return 0
    return int(np.size(evaluate(dst, regs))) if rank_of(dst.type) else 1


def operations(node: Expr, regs: Sequence[Any]) -> int:
    """The operations on real and complex numbers that computing an expression takes.

    One for each element that a function computes or consumes; a product of matrices of
    m × k and k × n numbers counts m k n.
    """
    return _counted(node, regs)[0]


def _counted(node: Expr, regs: Sequence[Any]) -> tuple[int, Any]:
    """An expression's operations and its value."""
    if not isinstance(node, Apply):
        return 0, evaluate(node, regs)
    if FUNCTIONS[node.fn].lazy:
        first, found = _counted(node.args[0], regs)
        if len(node.args) == 2 and found != (node.fn == "and"):
            return first, found
        second, found = _counted(node.args[1 if found or len(node.args) == 2 else 2], regs)
        return first + second, found
    counts, values = zip(*(_counted(a, regs) for a in node.args), strict=True)
    result = _applied(node, values)
    inner = sum(counts)
    row = FUNCTIONS[node.fn]
    only_moves = row.cost == "MOVES" and "*" in row.code
    if only_moves or not any(map(_is_real, (node, *node.args))):
        return inner, result
    size = int(np.size(result))
    if node.fn == "@":
        return inner + size * int(np.shape(values[0])[-1]), result
    return inner + max(size, *(int(np.size(v)) for v in values)), result


def _applied(node: Apply, values: Sequence[Any]) -> Any:
    """A function's value on the values of its arguments."""
    elems = tuple(elem_of(a.type or I64) for a in node.args)
    many = any(rank_of(a.type or I64) for a in node.args)
    return plain((array_value if many else value)(node.fn, elems)(*values))


def _is_real(node: Expr) -> bool:
    if node.type is None:
        return False
    t = elem_of(node.type)
    return not (t.is_bool or t.is_integer)


# ---------------------------------------------------------------- the table


def table(found: Sequence[GradientCost]) -> str:
    """Steps and operations of each function, and how many times those its gradient takes."""
    rows = [["function", "steps", "gradient", "operations", "gradient", "strict", "gradient"]]
    rows += [
        [
            c.name,
            f"{c.function.steps:,}",
            _times(c.gradient.steps, c.function.steps),
            f"{c.function.operations:,}",
            _times(c.gradient.operations, c.function.operations),
            f"{c.strict_function.operations:,}",
            _times(c.strict_gradient.operations, c.strict_function.operations),
        ]
        for c in found
    ]
    return "\n".join(aligned(rows))


def _times(gradient: int, function: int) -> str:
    return f"×{gradient / function:.2f}" if function else "-"


if __name__ == "__main__":
    print(table(list(costs([Path(name) for name in sys.argv[1:]]))))
