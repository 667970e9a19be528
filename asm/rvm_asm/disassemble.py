"""The disassembler: a program as strict code that assembles to the same program.

One instruction per line, jumps with labels, registers with types.  Nested expressions, which one
instruction may contain, are printed as such.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rvm.expr import Apply, Expr, Place, places
from rvm.faults import RvmError
from rvm.isa import ENDS, MAKES, TypeFault, check_operands, zero_literal
from rvm.isa.typing import literal
from rvm.program import AnyProgram, Function, Instr, Program, program_of
from rvm.stmt import BACKWARD, FORWARD
from rvm.transform.keeping import keeping
from rvm.types import BOOL, Scalar, elem_of
from rvm.verify import inout_slots, verify
from rvm.verify.conflicts import CALLS
from rvm_asm.bijections import passed, passing
from rvm_asm.check import is_futile
from rvm_asm.names import dotted, quoted
from rvm_asm.positions import NONE, mark, source_lines
from rvm_asm.printer import (
    RegisterNames,
    SourcePrinter,
    indices_read_back,
    only_places,
    reads_back,
    template,
)

DIRECTIONS = {FORWARD: "forward", BACKWARD: "backward", FORWARD | BACKWARD: "both"}
_EFFECTS = ("print", "assert", "callback")
MARK_COLUMN = 56


def disassemble(program: AnyProgram, *, positions: bool = True) -> str:
    """A program as strict code.

    With `positions`, `;@` comments keep the source texts and where each instruction stands in
    them; without them the text assembles to the same functions, positioned in itself.
    """
    program = program_of(program)
    lines: list[str] = []
    names = [f.name for f in program.functions]
    default = "main" if "main" in names else names[0] if names else ""
    if program.entry != default and program.entry in names:
        lines += [f"entry {quoted(program.entry)}", ""]
    if _lacks_copies(program):
        lines += ["keep none", ""]
    if _passes_values(program):
        lines += ["keep values", ""]
    if any(r.shape for f in program.functions for r in f.registers):
        lines += ["keep numbers", ""]
    if _is_futile(program):
        lines += ["keep faults", ""]
    signatures = {f.name: f for f in program.functions}
    for function in program.functions:
        lines += _Body(function, signatures, positions).lines()
        lines.append("")
    if positions:
        placed = program.sources or any(f.spans for f in program.functions)
        lines += source_lines(program.sources) if placed else [NONE]
    return "\n".join(lines).rstrip("\n") + "\n"


def _lacks_copies(program: Program) -> bool:
    """Whether the assembler would keep copies that the program does not."""
    try:
        verify(program)
    except RvmError:
        return False
    return keeping(program) is not program


def _is_futile(program: Program) -> bool:
    """Whether the assembler would refuse the text for what the program's runs stop at."""
    try:
        verify(program)
    except RvmError:
        return False
    return is_futile(program)


def _passes_values(program: Program) -> bool:
    """Whether the assembler would change a place by way of an expression that is passed."""
    offered = {
        id(arg): view.place
        for f in program.functions
        for instr in f.code
        if instr.op in CALLS
        for arg in instr.args
        if isinstance(arg, Apply) and (view := passed(arg, lambda p: p.type is not None))
    }
    if not offered:
        return False
    whole = [replace(f, code=tuple(passing(f.code, offered))) for f in program.functions]
    changed = inout_slots(Program(tuple(whole), ""))
    return any(
        id(arg) in offered and k in changed.get(instr.symbol, ())
        for f in program.functions
        for instr in f.code
        if instr.op in CALLS
        for k, arg in enumerate(instr.args)
    )


def instruction_texts(function: Function, functions: Mapping[str, Function]) -> list[str]:
    """The instructions of a function in strict code, with labels of jumps in front.

    `functions` are those that it may call, by name.
    """
    body = _Body(function, dict(functions), False)
    body.declared = set(range(len(function.registers)))
    return [
        f"{body.labels[pc]}: {body._instr(instr)}" if instr.op == "cf" else body._instr(instr)
        for pc, instr in enumerate(function.code)
    ]


def function_lines(function: Function, program: Program, *, positions: bool) -> list[str]:
    """A function of a program in strict code."""
    return _Body(function, {f.name: f for f in program.functions}, positions).lines()


class _Body:
    """The lines of one function."""

    def __init__(self, function: Function, functions: dict[str, Function], positions: bool) -> None:
        self.function = function
        self.functions = functions
        self.positions = positions
        self.names = RegisterNames(function)
        self.printer = SourcePrinter(function, self.names)
        self.labels = self._labels()
        self.declared = set(range(function.n_args))
        self.out: list[str] = []

    def _labels(self) -> dict[int, str]:
        jumps = [k for k, i in enumerate(self.function.code) if i.op in ("br", "cf")]
        return {k: f"L{n}" for n, k in enumerate(jumps, 1)}

    def lines(self) -> list[str]:
        f = self.function
        params = self.names.parameters(self.printer)
        self.out.append(f"func {quoted(f.name)}({params})")
        if not self._declared_by_allocs():
            for reg in range(f.n_args, len(f.registers)):
                self.out.append(
                    f"        local {self.names.registers[reg]}: {self.printer.typed_register(reg)}"
                )
                self.declared.add(reg)
        open_block = 0
        for pc, instr in enumerate(f.code):
            if instr.op in _EFFECTS and instr.aux != open_block:
                self._close(open_block)
                self.out.append(f"        extern {DIRECTIONS[instr.aux]}")
                open_block = instr.aux
            elif instr.op not in _EFFECTS and open_block:
                self._close(open_block)
                open_block = 0
            label = f"{self.labels[pc]}:" if pc in self.labels else ""
            indent = "            " if open_block else f"{label:<8}"
            self._line(f"{indent}{self._instr(instr)}", pc)
        self._close(open_block)
        return self.out

    def _close(self, block: int) -> None:
        if block:
            self.out.append("        end")

    def _line(self, text: str, pc: int) -> None:
        if self.positions and self.function.spans:
            text = f"{text:<{MARK_COLUMN}} {mark(self.function.span(pc))}"
        self.out.append(text)

    def _declared_by_allocs(self) -> bool:
        """Whether every local is met first in an `alloc` of it, in the registers' order."""
        seen = set(range(self.function.n_args))
        registers = self.function.registers
        for instr in self.function.code:
            new: set[int] = set()
            target = instr.args[0] if instr.op in MAKES else None
            reg = target.reg if isinstance(target, Place) else -1
            rest = list(instr.args[1:] if reg >= 0 else instr.args)
            if reg >= 0 and reg not in seen:
                rest += [d for d in registers[reg].dims if d is not None]
                new.add(reg)
            if any(p.reg not in seen for arg in rest for p in places(arg)):
                return False
            if new and reg != len(seen):
                return False
            seen |= new
        return len(seen) == len(registers)

    # Instructions.

    def _instr(self, instr: Instr) -> str:
        op = instr.op
        if op in (*MAKES, *ENDS):
            return self._memory(instr)
        args = self._operands(instr)
        if op in ("br", "cf"):
            return f"{op:<5} {args[0]}, {self.labels[instr.aux]}"
        if op in ("call", "uncall"):
            return f"{op} {quoted(instr.symbol)}({', '.join(args)})"
        if op in _EFFECTS:
            return self._effect(instr, args)
        return f"{op:<5} {', '.join(args)}" if args else op

    def _memory(self, instr: Instr) -> str:
        place = instr.args[0]
        assert isinstance(place, Place)
        reg = place.reg
        text = f"{instr.op:<5} {self.names.registers[reg]}"
        if reg not in self.declared:
            text += f": {self.printer.typed_register(reg)}"
            self.declared.add(reg)
        t = self.function.registers[reg].type
        if len(instr.args) == 1:
            return text
        elem = elem_of(t)
        value = instr.args[1]
        if value == literal(zero_literal(elem), elem):
            return text
        return f"{text} = {self._operand(value, elem)}"

    def _effect(self, instr: Instr, args: Sequence[str]) -> str:
        text = json.dumps(instr.symbol, ensure_ascii=False)
        if instr.op == "callback":
            parts = [dotted(instr.symbol), *args]
        elif instr.op == "print":
            parts = [*([text] if instr.symbol else []), *args]
        else:
            more = instr.symbol or len(args) > 1
            parts = [args[0], *([text] if more else []), *args[1:]]
        return f"{instr.op} {', '.join(parts)}".rstrip()

    # Operands.

    def _operands(self, instr: Instr) -> list[str]:
        args = instr.args
        if all(only_places(a) for a in args):
            return [self.printer.place(a) for a in args if isinstance(a, Place)]
        if instr.op in ("call", "uncall"):
            callee = self.functions.get(instr.symbol)
            wants = [elem_of(r.type) for r in callee.registers[: callee.n_args]] if callee else []
            return [
                self._operand(a, wants[k] if k < len(wants) else None) for k, a in enumerate(args)
            ]
        if instr.op in _EFFECTS:
            first = BOOL if instr.op == "assert" else None
            return [self._operand(a, None if k else first) for k, a in enumerate(args)]
        bare = self._bare_operands(instr)
        return [self._text(a, b) for a, b in zip(args, bare, strict=True)]

    def _bare_operands(self, instr: Instr) -> list[bool]:
        """For each operand whether it is read back the same without types on its constants."""
        args = instr.args
        templates = [template(a) for a in args]
        found = [t if t is not None else a for t, a in zip(templates, args, strict=True)]
        try:
            done = check_operands(instr.op, found, self.function.registers)
        except TypeFault:
            done = ()
        if len(done) != len(args):
            return [False] * len(args)
        return [
            t is not None and d == a and indices_read_back(a)
            for t, d, a in zip(templates, done, args, strict=True)
        ]

    def _operand(self, node: Expr, want: Scalar | None) -> str:
        return self._text(node, reads_back(node, want))

    def _text(self, node: Expr, bare: bool) -> str:
        self.printer.bare = bare
        text = self.printer.expr(node)
        self.printer.bare = True
        return text
