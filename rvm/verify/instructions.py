"""The checks of one instruction: operands, jumps, calls, aliasing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rvm.codes.templates import BASE_SIXTEEN, holes
from rvm.codes.words import unused, with_article
from rvm.expr import Expr, Place, index_places
from rvm.isa import ENDS, MAKES, OPCODES, TypeFault, check_operands
from rvm.isa.machine_ops import SHOWS
from rvm.program import Function, Instr
from rvm.stmt import BACKWARD, FORWARD
from rvm.types import Scalar, elem_of
from rvm.verify.calls import argument_faults
from rvm.verify.conflicts import CALLS, Conflict, conflicts, written_operands
from rvm.verify.finding import Finding
from rvm.verify.flow import paired
from rvm.verify.nodes import Nodes
from rvm.verify.text import show

JUMPS = ("br", "cf")
EFFECTS = ("print", "assert", "callback")
MEMORY = (*MAKES, *ENDS)
STACKS = {**dict.fromkeys(MEMORY, 0), "push": 1, "pop": 1}
"""The operand of each opcode, other than calls, that may be a stack."""
MAX_OPERANDS = 255
"""The most operands that an instruction may have, those of a call included."""


@dataclass(slots=True)
class Checker:
    """The checks of one function's instructions, in any order."""

    function: Function
    nodes: Nodes
    functions: Mapping[str, tuple[Function, int]]
    """Every function of the program, with the number of registers that its callers fill."""
    inout: Mapping[str, Collection[int]]
    limit: int
    """Findings beyond this many are not kept."""
    found: list[Finding] = field(default_factory=list)
    _sound: set[object] = field(default_factory=set)
    """Shapes of data instructions that `check_operands` has passed."""

    @property
    def n_args(self) -> int:
        """The number of registers that callers of the function fill."""
        return self.functions[self.function.name][1]

    def check(self, pc: int, instr: Instr) -> tuple[int, ...] | None:
        """The registers that the instruction names; None if it is unsound by itself."""
        before = len(self.found)
        names: list[int] = []
        if instr.op not in OPCODES:
            self.report(pc, "A003", f"there is no opcode `{instr.op}`")
            return None
        if len(instr.args) > MAX_OPERANDS:
            self.report(pc, "A044", f"more than {MAX_OPERANDS} operands")
            return None
        for k, arg in enumerate(instr.args):
            stack = instr.op in (*CALLS, *SHOWS) or STACKS.get(instr.op) == k
            try:
                names += self.nodes.check(arg, stack)
            except TypeFault as fault:
                self._fault(pc, instr, fault, k)
        if len(self.found) > before:
            return None
        named = tuple(names)
        self._shape(pc, instr)
        if len(self.found) == before:
            self._places(pc, instr, named)
        return named if len(self.found) == before else None

    def _shape(self, pc: int, instr: Instr) -> None:
        op = instr.op
        if op in JUMPS:
            self._jump(pc, instr)
        elif op in EFFECTS:
            if instr.aux not in (FORWARD, BACKWARD, FORWARD | BACKWARD):
                self.report(pc, "B020", f"`{op}` runs in no direction (aux {instr.aux})")
        elif instr.aux != -1:
            self.report(pc, "B020", f"`{op}` has no use for aux {instr.aux}")
        if op in CALLS:
            self._call(pc, instr)
            return
        if instr.symbol and op not in EFFECTS:
            self.report(pc, "B020", f"`{op}` has no use for the symbol `{instr.symbol}`")
        if op in ("print", "assert"):
            self._holes(pc, instr, instr.args[op == "assert" :])
        registers = self.function.registers
        shape = (
            op,
            *(
                (a.type, registers[a.reg].type, not a.path) if isinstance(a, Place) else a.type
                for a in instr.args
            ),
        )
        if shape in self._sound:
            return
        try:
            done = check_operands(op, instr.args, registers)
        except TypeFault as fault:
            self._fault(pc, instr, fault, fault.operand)
            return
        if len(done) != len(instr.args):
            self.report(pc, "A044", f"`{op}` lacks its value")
        elif any(a is not b for a, b in zip(done, instr.args, strict=True)):
            self.report(pc, "B020", f"the operands of `{op}` are not fully typed")
        else:
            self._sound.add(shape)

    def _holes(self, pc: int, instr: Instr, values: Sequence[Expr]) -> None:
        """Braces of a text that no value fills."""
        rest = list(values)
        for hole, form in holes(instr.symbol):
            name = hole[1:-1] if hole[1:-1].isidentifier() else "x"
            hint = f'`{{}}` takes the values behind the text: `… {{}}", {name}`; a brace is `{{{{`'
            if form is None:
                self.report(pc, "A044", f"`{hole}` has no value", hint=hint)
                return
            if not rest:
                self.report(pc, "A044", f"there is no value for `{hole}`", hint=hint)
                return
            t = rest.pop(0).type
            if form == BASE_SIXTEEN and not (t is not None and elem_of(t).is_integer):
                message = f"`{hole}` shows integers, not {with_article(str(t))}"
                self.report(pc, "A040", message, hint="write `{}`")

    def _jump(self, pc: int, instr: Instr) -> None:
        code = self.function.code
        other = "cf" if instr.op == "br" else "br"
        if not 0 <= instr.aux < len(code):
            self.report(
                pc, "A021", f"the `{instr.op}` names instruction {instr.aux} of {len(code)}"
            )
        elif not paired(code, pc):
            partner = code[instr.aux]
            does = f"which names {partner.aux}" if partner.op in JUMPS else f"a `{partner.op}`"
            self.report(
                pc,
                "A020",
                f"the `{instr.op}` names instruction {instr.aux}, {does}",
                hint=f"a jump is two instructions that name each other: pair this `{instr.op}` "
                f"with one `{other}`",
            )

    def _call(self, pc: int, instr: Instr) -> None:
        found = self.functions.get(instr.symbol)
        if found is None:
            self.report(pc, "A045", f"there is no function `{instr.symbol}`")
            return
        for fault in argument_faults(instr, *found, self.function.registers):
            self._fault(pc, instr, fault, fault.operand)

    def _places(self, pc: int, instr: Instr, named: tuple[int, ...]) -> None:
        """Alias rules, where a register is named twice; parameters and ancillas by themselves."""
        if instr.op in MEMORY:
            self._memory(pc, instr)
        elif len(set(named)) < len(named) or self._reads_itself(instr):
            self.alias(pc, instr)

    def _reads_itself(self, instr: Instr) -> bool:
        """Whether a written place is found by its own register, which its operand names once."""
        inout = self.inout.get(instr.symbol, ()) if instr.op in CALLS else ()
        for k in written_operands(instr, inout):
            place = instr.args[k]
            if isinstance(place, Place) and place.path:
                reg = place.reg
                if any(p.reg == reg for p in index_places(place)):
                    return True
        return False

    def alias(self, pc: int, instr: Instr) -> None:
        """The places of one instruction that certainly overlap and must not."""
        inout = self.inout.get(instr.symbol, ()) if instr.op in CALLS else ()
        told: set[tuple[str, int]] = set()
        for c in conflicts(instr, inout):
            if c.verdict == "always" and (c.code, c.operand) not in told:
                told.add((c.code, c.operand))
                self._conflict(pc, instr, c)

    def _conflict(self, pc: int, instr: Instr, c: Conflict) -> None:
        dst, other = show(c.written, self.function), show(c.other, self.function)
        hint = ""
        match c.code:
            case "A013":
                message = f"the destination `{dst}` is also read by the expression"
                value = show(instr.args[c.operand], self.function)
                t = c.written.type
                kind = str(t) if isinstance(t, Scalar) else f"{elem_of(t)}[…]" if t else "…"
                fresh = unused("t", (r.name for r in self.function.registers))
                made = f"alloc {fresh}: {kind}"
                hint = f"accumulate into a fresh ancilla:  {made} / add {fresh}, {value}"
            case "A014":
                message, hint = self._passed_twice(instr, c)
            case "A015":
                place = show(instr.args[c.operand], self.function)
                message = f"the place `{place}` is found by `{other}`, which is changed"
                fresh = unused("k", (r.name for r in self.function.registers))
                hint = f"copy the index first:  alloc {fresh}: i64 / add {fresh}, {other}"
            case _:
                message = f"the places `{dst}` and `{other}` overlap, and both are changed"
        self.report(
            pc,
            c.code,
            message,
            labels=(
                (c.written, "written here"),
                (c.other, "read here" if c.code != "A016" else "and here"),
            ),
            hint=hint,
        )

    def _passed_twice(self, instr: Instr, c: Conflict) -> tuple[str, str]:
        """The message for an argument that a call changes and that another one is, or reads."""
        callee = self.functions[instr.symbol][0].registers
        k = next(k for k, a in enumerate(instr.args) if a is c.written)
        one, two = f"`{callee[k].name}`", f"`{callee[c.operand].name}`"
        dst = show(c.written, self.function)
        arg = instr.args[c.operand]
        shown = show(arg, self.function)
        said = f"`{dst}` is passed for {one}, which `{instr.symbol}` changes, and"
        if not isinstance(arg, Place):
            said += f" read by what is passed for {two}, `{shown}`"
        elif shown == dst:
            said += f" for {two}"
        else:
            said += f" shares elements with `{shown}`, which is passed for {two}"
        hint = f"pass a copy for {two}: alloc it, add the value, call, and uncompute the copy"
        return said, hint

    def _memory(self, pc: int, instr: Instr) -> None:
        place = instr.args[0]
        assert isinstance(place, Place)
        name = self.function.registers[place.reg].name
        if place.reg < self.n_args:
            self.report(
                pc,
                "A034" if instr.op in ENDS else "A031",
                f"`{name}` is a parameter: it belongs to the caller",
                labels=((place, "cannot be freed" if instr.op in ENDS else "is live already"),),
            )
            return
        register = self.function.registers[place.reg]
        for value in (*instr.args[1:], *(d for d in register.dims if d is not None)):
            if place.reg in self.nodes.check(value):
                self.report(
                    pc,
                    "A013",
                    f"the {instr.op} of `{name}` reads `{name}`",
                    labels=((value, "read here"),),
                    hint="the value of an ancilla is known from other registers alone",
                )
                return

    def needed(self, instr: Instr, named: tuple[int, ...]) -> tuple[int, ...]:
        """The registers that must be live for the instruction, its own ancilla left out."""
        if instr.op not in MEMORY:
            return named
        place = instr.args[0]
        assert isinstance(place, Place)
        out = named[1:]
        for dim in self.function.registers[place.reg].dims:
            if dim is not None:
                out += self.nodes.check(dim)
        return out

    def _fault(self, pc: int, instr: Instr, fault: TypeFault, operand: int) -> None:
        node: Expr | None = fault.node
        if node is None and 0 <= operand < len(instr.args):
            node = instr.args[operand]
        labels = () if node is None else ((node, ""),)
        self.report(pc, fault.code, fault.message, labels=labels, hint=fault.hint)

    def report(
        self,
        pc: int,
        code: str,
        message: str,
        labels: tuple[tuple[Expr, str], ...] = (),
        notes: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        if len(self.found) < self.limit:
            self.found.append(Finding(code, message, self.function.name, pc, labels, notes, hint))
