"""Lowering `alloc`, `free` and `local`, which create and remove registers."""

from __future__ import annotations

from rvm.expr import Expr, Place
from rvm.isa import ENDS, MAKES, TypeFault, check_operands, typed
from rvm.program import Instr
from rvm.types import U8, Array, Scalar, elem_of, rank_of
from rvm.verify.affine import affine, combine
from rvm_asm.generics import NUMBERS, TypeValue
from rvm_asm.inference import record_of
from rvm_asm.messages import did_you_mean
from rvm_asm.names import plain
from rvm_asm.nodes import Application, Declared, Lit, Node, Ref, TypeRef
from rvm_asm.operations import Operations
from rvm_asm.registers import RegisterWriter, TypeProblem
from rvm_asm.scope import Alias, Binding, NameGroup, Slot, leaves_of
from rvm_asm.stacked import text_of
from rvm_asm.stats import AllocStat, OpStat
from rvm_asm.values import Rejected


class Memory(Operations):
    """Lowers statements that make and drop registers."""

    def alloc(self, stat: AllocStat) -> None:
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
            if path or not isinstance(found, (Slot, NameGroup)):
                self.complain("A052", f"`{stat.name}` takes a whole register", stat)
            binding = found
        if stat.name == "local":
            return
        if stat.name in ENDS and stat.declared.type is not None:
            self._same_type(stat.declared, binding)
        if isinstance(binding, Slot):
            self._alloc_leaf(stat, binding)
        elif isinstance(binding, NameGroup):
            if stat.value is not None:
                self.complain(
                    "A056",
                    "a record is made and freed with zeros",
                    stat,
                    "add the values to its fields",
                )
            leaves = list(binding.leaves())
            for leaf in leaves if stat.name in MAKES else reversed(leaves):
                self._alloc_leaf(stat, leaf)
        else:
            self.complain("A034", f"`{stat.declared.name}` is a length, no register", stat)

    def _alloc_leaf(self, stat: AllocStat, leaf: Slot) -> None:
        place = Place(leaf.reg, (), leaf.value_type)
        d = stat.declared
        self.made.append((place, Ref(d.name, (), d.start, d.end)))
        templates: tuple[Expr, ...] = (place,)
        args: list[Node] = [Ref(d.name, (), d.start, d.end)]
        if self.text_of(stat.value) is not None:
            self._alloc_text(stat, leaf)
            return
        if stat.value is not None:
            templates = (place, self.operand(stat.value))
            args.append(stat.value)
        try:
            done = check_operands(stat.name, templates, self.registers.list)
        except TypeFault as fault:
            self._type_fault(fault, stat, args)
        self.put(Instr(stat.name, done), stat, templates)

    def _alloc_text(self, stat: AllocStat, leaf: Slot) -> None:
        """An array of zeros, and a text that is added to it, and subtracted before it is freed."""
        d = stat.declared
        assert stat.value is not None
        zeros = AllocStat(stat.name, d, None, stat.start, stat.end)
        made = stat.name in MAKES
        args: list[Node] = [Ref(d.name, (), d.start, d.end), stat.value]
        if made:
            self._alloc_leaf(zeros, leaf)
        self.op(OpStat("add" if made else "sub", args, stat.start, d.start, stat.end))
        if not made:
            self._alloc_leaf(zeros, leaf)

    def _of_its_value(self, d: Declared, value: Node) -> Declared:
        """A register without a type, with that of the value that it is made by."""
        text = self.text_of(value)
        if text is not None:
            written = TypeRef(str(U8), None, None, [Lit(len(text), d.start, d.end)], d.start, d.end)
        else:
            template = self.operand(value)
            try:
                t = typed(template).type
            except TypeFault as fault:
                self.fault(fault, value)
            if isinstance(t, Array) and not isinstance(value, Ref):
                self.reject(
                    "A075",
                    f"`{d.name}` is an array, whose lengths are to be written",
                    value,
                    f"for example `{d.name}: {t.elem}[{', '.join('n' * t.rank)}] = …`",
                )
            if isinstance(t, Array) and isinstance(value, Ref):
                written = self.like(value)
            elif isinstance(t, Scalar):
                nothing = TypeRef("", None, None, None, d.start, d.end)
                written = TypeValue(NUMBERS, t).written("", nothing)
            else:
                return d
        self.became[id(d)] = written
        return Declared(d.name, written, d.start, d.end)

    def like(self, place: Ref) -> TypeRef:
        """The type of a place, as an ancilla of it is declared."""
        start, end = place.start, place.end
        nothing = TypeRef("", None, None, None, start, end)
        if self.leaves(place) is not None:
            group, path = self.resolve(place)
            assert isinstance(group, NameGroup)
            if group.rank and not path:
                self.reject("A075", "`replace` takes a record, not an array of records", place)
            return record_of(group, 0).written("", nothing)
        template = self.operand(place)
        t = template.type
        if not isinstance(template, Place) or t is None:
            self.reject("A052", "`replace` takes a place that holds numbers", place)
        dims: list[Node | None] = [
            Application("dim", [place, Lit(k, start, end)], start, end) for k in range(rank_of(t))
        ]
        written = TypeRef("", None, None, dims or None, start, end)
        return TypeValue(NUMBERS, elem_of(t)).written("", written)

    def _declared(self, stat: AllocStat) -> Binding:
        d = stat.declared
        known = self.scope.names.get(d.name)
        if stat.name == "alloc" and known is None and d.type is None and stat.value is not None:
            try:
                d = self._of_its_value(d, stat.value)
            except Rejected:
                self.excused.add(d.name)
                raise
        if d.type is None or (stat.name in ENDS and known is not None):
            if known is None:
                found, path = self._by_path(d)
                if found is not None and not path:
                    return found
                if d.name in self.excused:
                    raise Rejected
                hint = did_you_mean(d.name, self.scope.names)
                if stat.name in ENDS:
                    self.complain("A005", f"nothing here is called `{d.name}`", d, hint)
                self.excused.add(d.name)
                self.complain(
                    "A065",
                    f"the new register `{d.name}` needs a type",
                    d,
                    f"`{stat.name} {d.name}: f64`",
                )
            return known
        if known is not None and self._is_parameter(known):
            self.complain(
                "A006", f"`{d.name}` is a parameter already", d, "call the ancilla otherwise"
            )
        # A `local`, and a numbered name, is always a register of its own.
        own = stat.name == "local" or "#" in d.name
        owner = None if own else self.scope.owner
        try:
            binding = self.registers.declare(d, self._length, owner)
        except TypeProblem:
            self.excused.add(d.name)
            raise Rejected from None
        except Rejected:
            self.excused.add(d.name)
            raise
        self.scope.names[d.name] = binding
        return binding

    def _same_type(self, d: Declared, known: Binding) -> None:
        """Refuse to free a register with another written type than its own."""
        written = RegisterWriter(self.program.records, self.report, self.registers.types)
        written.keeps_numbers = self.program.keeps_numbers
        try:
            as_written = written.declare(d, self._length_if_named)
        except TypeProblem:
            raise Rejected from None
        is_record = isinstance(as_written, NameGroup)
        have, want = list(leaves_of(known)), list(leaves_of(as_written))
        hint = f"the type need not be repeated: `free {d.name}`"
        assert d.type is not None
        if isinstance(known, NameGroup) != is_record or len(have) != len(want):
            self.complain("A040", f"`{d.name}` was made with another type", d, hint)
        if isinstance(known, NameGroup) and str(known) != str(as_written):
            self.complain("A040", f"`{d.name}` is a record `{known}`", d, hint)
        for slot, other in zip(have, want, strict=True):
            register, end = self.registers.list[slot.reg], written.list[other.reg]
            if slot.shape != other.shape:
                what = f"`{register.name}` is a {text_of(slot)}, not a {text_of(other)}"
                self.complain("A040", what, d, hint)
            if register.type != end.type:
                self.complain(
                    "A040", f"`{register.name}` is of type {register.type}, not {end.type}", d, hint
                )
            for one, two in zip(register.dims, end.dims, strict=True):
                if None not in (one, two) and one != two and not _equal(one, two):
                    what = f"`{register.name}` was made with another length than this"
                    self.complain("A040", what, d, hint)

    def _length_if_named(self, node: Node | None, slot: Slot, axis: int) -> Expr | None:
        return None if node is None else self._length(node, slot, axis)

    def _is_parameter(self, known: Binding) -> bool:
        if isinstance(known, NameGroup):
            return any(leaf.reg < self.n_args for leaf in known.leaves())
        return not isinstance(known, Slot) or known.reg < self.n_args

    def _by_path(self, d: Declared) -> tuple[Binding | None, object]:
        """A dotted name as a field of a record: `free p.pos` frees that leaf alone."""
        head, *rest = d.name.split(".")
        binding = self.scope.names.get(head)
        for name in rest:
            if not isinstance(binding, NameGroup):
                return None, ()
            binding = binding.fields.get(name)
        return (binding if rest else None), ()

    def _length(self, node: Node | None, slot: Slot, axis: int) -> Expr | None:
        if node is None:
            self.report.about(
                self._at,
                "A063",
                "the lengths of an ancilla must be named",
                hint="`alloc t: f64[n]`",
            )
            raise Rejected
        self._check_length_of_parameter(node)
        return self.whole(node, "A063", "a length is an i64, not a")

    def _check_length_of_parameter(self, node: Node) -> None:
        """Refuse an array whose lengths are those of a type parameter that no parameter has."""
        types = self.scope.types
        if isinstance(node, Ref) and node.name not in self.scope.names:
            name = next((t for t in types if node.name.startswith(f"`{plain(t)}.")), None)
            if name is not None:
                self.reject(
                    "A063",
                    f"`{plain(name)}` is {types[name]} here, and no parameter says how long",
                    node,
                    f"give the function a parameter `x: {plain(name)}`",
                )


def _equal(one: Expr | None, two: Expr | None) -> bool:
    """Whether two lengths are known to be equal."""
    assert one is not None and two is not None
    return combine(affine(one), affine(two), -1).is_zero
