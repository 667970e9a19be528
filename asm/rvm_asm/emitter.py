"""Lowering single instructions: operands checked and typed, jumps paired, macros expanded."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from rvm.expr import Const, Expr, Place
from rvm.isa import OPCODES, TypeFault, check_operands, typed
from rvm.program import Function, Instr, Span
from rvm.types import BOOL, I64, elem_of
from rvm_asm.jumps import Pending, pair
from rvm_asm.messages import did_you_mean
from rvm_asm.nodes import Alloc, Declared, Effect, Func, Invoke, Jump, Node, Op, Ref, Stat
from rvm_asm.program import Declarations, Signing
from rvm_asm.registers import TypeProblem
from rvm_asm.scope import Alias, Binding, Group, Scope, Slot
from rvm_asm.values import Rejected, Values

MAX_EXPANSIONS = 1 << 16
"""The most uses of macros in a function, those inside macros included."""
MAX_CODE = 1 << 20
"""The most instructions of a function: macros and `undo` multiply."""
WORDS = (
    "if", "while", "from", "for", "routine", "undo", "extern", "local",
    "func", "const", "record", "macro", "pure", "include", "entry",
)  # fmt: skip


class Emitter(Values):
    """The growing code of one function."""

    def __init__(self, program: Declarations, func: Func) -> None:
        super().__init__(program, program.excused[func.name.text])
        self.func = func
        self.code: list[Instr] = []
        self.spans: list[Span] = []
        self.templates: list[tuple[Expr, ...]] = []
        """The operands of each instruction as they were before typing: they lead to the syntax."""
        self.pending: list[Pending] = []
        self.broken = False
        self.loops: dict[int, str] = {}
        """Registers of the variables of the loops around, which their bodies do not change."""
        self._source = program.sources
        self._expansions = 0
        self._sound: set[tuple[object, ...]] = set()
        """Opcodes with the types of places that they take."""
        self._at: Stat = Stat(func.start, func.end)

    def sign(self) -> bool:
        """Enter the parameters; False if they are wrong."""
        signing = Signing(self.program, self.registers, self.func)
        fine = signing.build()
        self.scope.names = signing.names
        self.params = tuple(signing.params)
        self.n_args = len(self.registers.list)
        return fine

    def function(self, name: str) -> Function:
        """What has been made, as a function."""
        return Function(
            name,
            self.params,
            tuple(self.registers.list),
            tuple(self.code),
            tuple(self.spans),
            tuple(self.registers.dims),
        )

    # Instructions.

    def put(self, instr: Instr, stat: Stat, templates: tuple[Expr, ...] = ()) -> int:
        """Append an instruction; its index."""
        at = len(self.code)
        if at >= MAX_CODE:
            self.complain("A046", f"the function has more than {MAX_CODE} instructions", stat)
        self.code.append(instr)
        self.spans.append(self._source.span(stat.start, stat.end))
        self.templates.append(templates)
        return at

    def complain(
        self, code: str, message: str, stat: Stat | Declared, hint: str = ""
    ) -> NoReturn:
        """Report a statement, and give it up."""
        self.report.error(code, message, stat.start, stat.end, hint=hint)
        raise Rejected

    def op(self, stat: Op) -> None:
        """A data instruction, `push`, `pop` or the use of a macro."""
        name = stat.name
        row = OPCODES.get(name)
        if row is None or name in ("print", "assert", "callback"):
            if name in self.program.macros:
                self.expand(stat)
                return
            self._unknown(stat)
        args = stat.args
        if name in ("swap", "exch") and self._records(stat):
            return
        templates = tuple([self.operand(a) for a in args])
        # What places of such types may do has been asked before, most of the time.
        shape = (name, *[t.type if type(t) is Place else None for t in templates])
        if shape in self._sound and None not in shape:
            done = templates
        else:
            self._no_stacks(templates, args, name)
            try:
                done = check_operands(name, templates, self.registers.list)
            except TypeFault as fault:
                self._type_fault(fault, stat, args)
            self._sound.add(shape)
        if self.loops:
            for o, arg in zip(row.operands, done, strict=False):
                if o.mode == "mut" and isinstance(arg, Place) and arg.reg in self.loops:
                    self._loop_variable(arg, args, done)
        self.put(Instr(name, done), stat, templates)

    def _no_stacks(self, templates: tuple[Expr, ...], args: list[Node], name: str) -> None:
        """Refuse a stack where a value or a place of one is wanted."""
        for k, (template, arg) in enumerate(zip(templates, args, strict=True)):
            stack = isinstance(template, Place) and template.type is None
            if stack and not (name in ("push", "pop") and k == 1):
                self.reject(
                    "A040",
                    "a stack has no value of its own",
                    arg,
                    "`push x, s` moves x to it, `pop x, s` takes the top",
                )

    def _loop_variable(self, arg: Place, args: list[Node], done: tuple[Expr, ...]) -> NoReturn:
        node = next(a for a, d in zip(args, done, strict=True) if d is arg)
        self.reject(
            "A058",
            f"the loop's variable `{self.loops[arg.reg]}` is changed in its body",
            node,
            "the loop itself counts it, there and back; use `while` to count otherwise",
        )

    def _type_fault(self, fault: TypeFault, stat: Stat, args: list[Node]) -> NoReturn:
        at: Node | Stat | None = self.origin(fault.node) if fault.node is not None else None
        if at is None and 0 <= fault.operand < len(args):
            at = args[fault.operand]
        if at is None:
            at = stat
        self.report.error(fault.code, fault.message, at.start, at.end, hint=fault.hint)
        raise Rejected

    def _unknown(self, stat: Op) -> NoReturn:
        name = stat.name
        known = [*OPCODES, *self.program.macros, *WORDS]
        hint = did_you_mean(name, known)
        if name in self.program.functions:
            hint = f"`{name}` is a function: `call {name}(…)`"
        self.report.error(
            "A003", f"there is no instruction `{name}`", stat.start, stat.stop, hint=hint
        )
        raise Rejected

    def _records(self, stat: Op) -> bool:
        """Exchange two records leaf by leaf, if records they are."""
        if len(stat.args) != 2:
            return False
        a, b = (self.leaves(n) for n in stat.args)
        if a is None or b is None:
            return False
        if len(a) != len(b) or any(x.type != y.type for x, y in zip(a, b, strict=True)):
            self.complain("A040", "the records are not of one type", stat)
        for x, y in zip(a, b, strict=True):
            try:
                done = check_operands(stat.name, (x, y), self.registers.list)
            except TypeFault as fault:
                self._type_fault(fault, stat, stat.args)
            self.put(Instr(stat.name, done), stat, (x, y))
        return True

    def leaves(self, node: Node) -> list[Expr] | None:
        """The places of all leaves if `node` names a record, else None."""
        if not isinstance(node, Ref):
            return None
        binding = self.scope.names.get(node.name)
        if type(binding) is Slot or binding is None:
            return None
        found, path = self.resolve(node)
        if isinstance(found, Alias):
            return None
        if not isinstance(found, Group):
            return None
        out = []
        for leaf in found.leaves():
            place = self._place(leaf, path, node)
            self.made.append((place, node))
            out.append(place)
        return out

    # Memory.

    def alloc(self, stat: Alloc) -> None:
        """`alloc`, `free` and `local`, of a register or of all leaves of a record."""
        binding = self._declared(stat)
        if isinstance(binding, Alias):
            if not isinstance(binding.node, Ref):
                self.complain("A052", f"`{stat.name}` takes a register", stat)
            outer, self.scope = self.scope, binding.scope
            try:
                found, path = self.resolve(binding.node)
            finally:
                self.scope = outer
            if path or not isinstance(found, (Slot, Group)):
                self.complain("A052", f"`{stat.name}` takes a whole register", stat)
            binding = found
        if stat.name == "local":
            return
        if isinstance(binding, Slot):
            self._alloc_leaf(stat, binding)
        elif isinstance(binding, Group):
            if stat.value is not None:
                self.complain(
                    "A056", "a record is made and freed with zeros", stat,
                    "add the values to its fields",
                )
            leaves = list(binding.leaves())
            for leaf in leaves if stat.name == "alloc" else reversed(leaves):
                self._alloc_leaf(stat, leaf)
        else:
            self.complain("A034", f"`{stat.declared.name}` is a length, no register", stat)

    def _alloc_leaf(self, stat: Alloc, leaf: Slot) -> None:
        if leaf.reg in self.loops:
            self.complain(
                "A058", f"the loop's variable `{self.loops[leaf.reg]}` is freed in its body", stat
            )
        place = Place(leaf.reg, (), leaf.value_type)
        d = stat.declared
        self.made.append((place, Ref(d.name, (), d.start, d.end)))
        templates: tuple[Expr, ...] = (place,)
        args: list[Node] = [Ref(d.name, (), d.start, d.end)]
        if stat.value is not None:
            templates = (place, self.operand(stat.value))
            args.append(stat.value)
        try:
            done = check_operands(stat.name, templates, self.registers.list)
        except TypeFault as fault:
            self._type_fault(fault, stat, args)
        self.put(Instr(stat.name, done), stat, templates)

    def _declared(self, stat: Alloc) -> Binding:
        d = stat.declared
        known = self.scope.names.get(d.name)
        if d.type is None or (stat.name == "free" and known is not None):
            if known is None:
                found, path = self._by_path(d)
                if found is not None and not path:
                    return found
                if d.name in self.excused:
                    raise Rejected
                hint = did_you_mean(d.name, self.scope.names)
                if stat.name == "free":
                    self.complain("A005", f"nothing here is called `{d.name}`", d, hint)
                self.complain(
                    "A065", f"the new register `{d.name}` needs a type", d,
                    f"`{stat.name} {d.name}: f64`",
                )
            return known
        if known is not None and (
            not isinstance(known, (Slot, Group))
            or next(known.leaves() if isinstance(known, Group) else iter((known,))).reg
            < self.n_args
        ):
            self.complain(
                "A006", f"`{d.name}` is a parameter already", d, "call the ancilla otherwise"
            )
        # A `local`, and a numbered name, is always a register of its own.
        own = stat.name == "local" or "#" in d.name
        owner = None if own else self.scope.owner
        try:
            binding = self.registers.declare(d.name, d.type, self._length, owner)
        except TypeProblem:
            self.excused.add(d.name)
            raise Rejected from None
        except Rejected:
            self.excused.add(d.name)
            raise
        self.scope.names[d.name] = binding
        return binding

    def _by_path(self, d: Declared) -> tuple[Binding | None, object]:
        """A dotted name as a field of a record: `free p.pos` frees that leaf alone."""
        head, *rest = d.name.split(".")
        binding = self.scope.names.get(head)
        for name in rest:
            if not isinstance(binding, Group):
                return None, ()
            binding = binding.fields.get(name)
        return (binding if rest else None), ()

    def _length(self, node: Node | None, slot: Slot, axis: int) -> Expr | None:
        if node is None:
            self.report.error(
                "A063",
                "the lengths of an ancilla must be named",
                self._at.start,
                self._at.end,
                hint="`alloc t: f64[n]`",
            )
            raise Rejected
        template = self.operand(node)
        try:
            done = typed(template, I64)
        except TypeFault as fault:
            self.fault(fault, node)
        if done.type != I64:
            self.reject("A063", f"a length is an i64, not a {done.type}", node)
        return done

    # Calls and effects.

    def call(self, stat: Invoke) -> None:
        """`call` and `uncall`: records become their leaves, literals take the parameters' types."""
        name = stat.callee.text
        signature = self.program.signatures.get(name)
        if signature is None:
            if name in self.program.functions or name in self.excused:
                raise Rejected
            hint = did_you_mean(name, self.program.functions)
            if name in self.program.macros:
                hint = f"`{name}` is a macro: write `{name} …` without `call`"
            self.report.error(
                "A045", f"there is no function `{name}`",
                stat.callee.start, stat.callee.end, hint=hint,
            )
            raise Rejected
        flat = self._flat_call(stat, signature)
        templates: list[Expr] = []
        done: list[Expr] = []
        for arg, (leaves, slots) in zip(stat.args, flat, strict=True):
            if leaves is not None:
                templates += leaves
                done += leaves
                continue
            template = self.operand(arg)
            templates.append(template)
            slot = slots[0]
            if isinstance(template, Place):
                done.append(template)
                continue
            try:
                done.append(typed(template, elem_of(slot.type)))
            except TypeFault as fault:
                self.fault(fault, arg)
        self.put(Instr(stat.name, tuple(done), -1, name), stat, tuple(templates))

    def _flat_call(
        self, stat: Invoke, signature: tuple[tuple[str, Binding], ...]
    ) -> list[tuple[list[Expr] | None, list[Slot]]]:
        """For each argument its leaves, if it is a record, and the parameter's registers."""
        name = stat.callee.text
        expected = ", ".join(p for p, _ in signature) or "none"
        params = [b for _, b in signature]
        leaves = [self.leaves(a) for a in stat.args]
        if len(params) != len(stat.args):
            # The leaves of a record may be given one by one, as disassembled code does.
            params = [
                s
                for b in params
                for s in (b.leaves() if isinstance(b, Group) else (b,))
            ]
        if len(params) != len(stat.args):
            self.complain(
                "A044",
                f"`{name}` takes {len(signature)} argument{'s' * (len(signature) != 1)}, "
                f"not {len(stat.args)}",
                stat,
                f"its parameters are {expected}",
            )
        out: list[tuple[list[Expr] | None, list[Slot]]] = []
        for b, found, arg in zip(params, leaves, stat.args, strict=True):
            slots = list(b.leaves()) if isinstance(b, Group) else [b]
            if (found is not None) != isinstance(b, Group) or (
                found is not None and len(found) != len(slots)
            ):
                what = f"a record `{b.record}`" if isinstance(b, Group) else "no record"
                self.reject("A040", f"`{name}` takes {what} here", arg)
            out.append((found, slots))  # type: ignore[arg-type]
        return out

    def effect(self, stat: Effect, when: int) -> None:
        """An instruction of an `extern` block."""
        if stat.name == "assert" and len(stat.args) != 1:
            self.complain("A044", "`assert` takes one condition", stat)
        templates = tuple([self.operand(a) for a in stat.args])
        want = BOOL if stat.name == "assert" else None
        try:
            done = tuple([typed(t, want) for t in templates])
            done = check_operands(stat.name, done, self.registers.list)
        except TypeFault as fault:
            self._type_fault(fault, stat, stat.args)
        self.put(Instr(stat.name, done, when, stat.text), stat, templates)

    # Jumps.

    def condition(self, node: Node, stat: Stat) -> tuple[Expr, Expr]:
        """A condition typed, and its template."""
        template = self.operand(node)
        try:
            return check_operands("br", (template,), self.registers.list)[0], template
        except TypeFault as fault:
            self._type_fault(fault, stat, [node])

    def jump(self, stat: Jump) -> None:
        """A `br` or `cf` that is written; its partner is found at the end of its scope."""
        try:
            cond, template = self.condition(stat.cond, stat)
        except Rejected:
            # The pair stays whole, so that one slip is not reported at both ends.
            self.broken = True
            cond = template = Const(True, BOOL)
        at = self.put(Instr(stat.name, (cond,)), stat, (template,))
        self.pending.append(Pending(at, stat.name, stat.partner, stat, self.scope))

    def pair_jumps(self, start: int, first: int, closed: str = "") -> None:
        """Pair the pending jumps from number `start` on, which stand at code index >= `first`."""
        mine = self.pending[start:]
        del self.pending[start:]
        if not mine:
            return
        if not pair(mine, self.code, first, self.report, closed, self.excused):
            self.broken = True
        for p in mine:
            if p.partner_at >= 0:
                self.code[p.at] = replace(self.code[p.at], aux=p.partner_at)

    # Macros.

    def expand(self, stat: Op) -> None:
        """The use of a macro: its body, in a scope of its own."""
        macro = self.program.macros[stat.name]
        if len(stat.args) != len(macro.formals):
            words = ", ".join(f.text for f in macro.formals) or "none"
            self.complain(
                "A050",
                f"the macro `{stat.name}` takes {len(macro.formals)} operands, "
                f"not {len(stat.args)}",
                stat,
                f"its parameters are {words}",
            )
        context = self.report.context
        if any(name == stat.name for name, _, _ in context):
            self.complain("A051", f"the macro `{stat.name}` uses itself", stat)
        self._expansions += 1
        if self._expansions > MAX_EXPANSIONS:
            self.complain("A046", f"the function uses more than {MAX_EXPANSIONS} macros", stat)
        inner = Scope(f"{self.scope.owner}/{stat.name}")
        for formal, arg in zip(macro.formals, stat.args, strict=True):
            inner.names[formal.text] = Alias(arg, self.scope)
        outer, self.scope = self.scope, inner
        start, first = len(self.pending), len(self.code)
        context.append((stat.name, stat.start, stat.end))
        try:
            self.statements(macro.body)
            self.pair_jumps(start, first, f"the macro `{stat.name}`")
        finally:
            context.pop()
            self.scope = outer

    def statements(self, body: list[Stat]) -> None:
        """Lower a block; defined with the structured statements."""
        raise NotImplementedError
