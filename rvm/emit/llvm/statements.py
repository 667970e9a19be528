"""From statements on scalars and stacks to LLVM's assembly language.

An instruction either is done, or is given up before it has changed anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rvm.emit.llvm import context
from rvm.emit.llvm.values import Location, Values, View, item_size
from rvm.emit.llvm.writer import COLD, constant
from rvm.emit.values import Unprintable, element, scalar_of, type_of
from rvm.expr import Expr, Place
from rvm.image import Clash
from rvm.isa import implementation
from rvm.numbers import system
from rvm.numbers.llvm import Value, register_type
from rvm.program import Function
from rvm.state import SCALAR_BYTES
from rvm.stmt import (
    FORWARD,
    Alloc,
    Drop,
    Effect,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import Array, Scalar, Stack, elem_of, rank_of

INFINITY = "0x7FF0000000000000"


class Statements(Values):
    """Prints the instructions of one function.

    Without `checks` nothing asks whether what is done can be undone: come-froms, freed values and
    factors are taken on trust.  Indices and divisions are checked all the same.
    """

    def __init__(self, function: Function, checks: bool) -> None:
        super().__init__(function)
        self.checks = checks
        self.erased = self.variable("i64", "erased")
        """Bits erased since the function was entered."""
        self.certain: frozenset[int] = frozenset()
        """The `id`s of statements that free an ancilla which surely holds their value."""

    def instruction(self, stmts: Sequence[Stmt], clashes: Sequence[Clash]) -> None:
        """Print an instruction; Unprintable if it is not for this printer."""
        if len(stmts) > 1:
            # Were the second to fail, the first would have been done already.
            raise Unprintable
        self._apart(clashes)
        self.statement(stmts[0])

    def statement(self, stmt: Stmt) -> None:
        """Print one statement."""
        match stmt:
            case Update(dst):
                if rank_of(type_of(dst)):
                    self.update_array(stmt)
                else:
                    self._update(stmt)
            case Exchange(a, b):
                if isinstance(a.type, Array):
                    self.exchange_arrays(a, b)
                else:
                    self._exchange(a, b)
            case Map(dsts, values, _):
                if any(isinstance(type_of(d), Array) for d in dsts):
                    self.map_arrays(dsts, values)
                else:
                    self._map(dsts, values)
            case When(cond, body):
                self._when(cond, body)
            case Land(cond, _):
                if self.checks:
                    self.trouble(cast(str, self.value(cond)))
            case Alloc(reg) | Fresh(reg):
                self._made(stmt, reg)
            case Free(reg) | Drop(reg):
                self._gone(stmt, reg)
            case Push(src, stack):
                self._push(src, stack)
            case Pop(dst, stack):
                self._pop(dst, stack)
            case Effect(kind, _, args, when):
                self._effect(kind, args, bool(when & FORWARD))
            case _:
                raise Unprintable

    # What `rvm.emit.llvm.arrays` adds.

    def update_array(self, stmt: Update) -> None:
        """`dst op= value` for an array place."""
        raise Unprintable

    def exchange_arrays(self, a: Place, b: Place) -> None:
        """Exchange the contents of two array places."""
        raise Unprintable

    def map_arrays(self, dsts: Sequence[Place], values: Sequence[Expr]) -> None:
        """Store values, all of them computed first, where there are arrays among the places."""
        raise Unprintable

    def make_array(self, reg: int, value: Expr | None) -> None:
        """A local array, filled with a value (None: zero)."""
        raise Unprintable

    def free_array(self, reg: int, value: Expr | None, check: bool) -> None:
        """A local array, if wanted checked against a value (None: forgotten), and given up."""
        raise Unprintable

    # ------------------------------------------------------------ data

    def _update(self, stmt: Update) -> None:
        t = elem_of(type_of(stmt.dst))
        place = self.located(stmt.dst)
        value = self.value(stmt.value)
        if stmt.op in "*/" and self.checks:
            self.factor(value, t)
        self.write(place, self.combined(stmt.op, t, self.read(place), value))

    def combined(self, op: str, t: Scalar, old: Value, value: Value) -> Value:
        """What an update makes of an old value."""
        code = implementation(op, (t, t))
        if code.llvm is None:
            raise Unprintable
        return cast(Value, code.llvm(self, old, value))

    def factor(self, value: Value, t: Scalar) -> None:
        """Trouble unless a factor can be divided out again: finite, and not zero."""
        factors = system(t).factors
        if factors == "any":
            return
        parts = value if isinstance(value, tuple) else (value,)
        kind = register_type(t)
        bad: list[str] = []
        for part in parts:
            wide = self.op(f"fpext float {part} to double") if kind == "float" else part
            size = self.op(f"call double @llvm.fabs.f64(double {wide})")
            bad.append(self.op(f"fcmp ueq double {size}, {INFINITY}"))
        for test in bad:
            self.trouble(test)
        if factors == "nonzero":
            zeros = [self.op(f"fcmp oeq {kind} {p}, 0.0") for p in parts]
            self.trouble(zeros[0] if len(zeros) == 1 else self.op(f"and i1 {zeros[0]}, {zeros[1]}"))

    def _exchange(self, a: Place, b: Place) -> None:
        x, y = self.located(a), self.located(b)
        v, w = self.read(x), self.read(y)
        self.write(x, w)
        self.write(y, v)

    def _map(self, dsts: Sequence[Place], values: Sequence[Expr]) -> None:
        places = [self.located(d) for d in dsts]
        new = [self.value(v) for v in values]
        for place, value in zip(places, new, strict=True):
            self.write(place, value)

    def _when(self, cond: Expr, body: Sequence[Stmt]) -> None:
        if len(body) > 1:
            raise Unprintable
        then, done = self.fresh("then"), self.fresh("done")
        self.fork(cast(str, self.value(cond)), then, done)
        self.label(then)
        self.statement(body[0])
        self.jump(done)
        self.label(done)

    def _effect(self, kind: str, args: Sequence[Expr], happens: bool) -> None:
        """An assertion is trouble where it does not hold; other effects are not for here."""
        if happens:
            if kind != "assert":
                raise Unprintable
            self.trouble(self.op(f"xor i1 {self.value(args[0])}, true"))

    # ------------------------------------------------------------ ancillas

    def _made(self, stmt: Alloc | Fresh, reg: Place) -> None:
        t = self.function.registers[reg.reg].type
        value = stmt.value if isinstance(stmt, Alloc) else None
        if isinstance(t, Stack):
            self._new_stack(reg.reg)
        elif isinstance(t, Array):
            self.make_array(reg.reg, value)
        else:
            made = constant(system(t).zero, t) if value is None else self.value(value)
            self.write(self.located(reg), made)

    def _gone(self, stmt: Free | Drop, reg: Place) -> None:
        t = self.function.registers[reg.reg].type
        value = stmt.value if isinstance(stmt, Free) else None
        if isinstance(t, Stack):
            self._end_stack(reg.reg)
        elif isinstance(t, Array):
            self.free_array(reg.reg, value, self.checks and id(stmt) not in self.certain)
        elif value is not None:
            if self.checks and id(stmt) not in self.certain:
                self.freed(t, self.read(self.located(reg)), self.value(value))
        else:
            self.erase(self.nonzero(t, self.read(self.located(reg))), t.bits)

    def freed(self, t: Scalar, held: Value, expected: Value) -> None:
        """Check the value of a freed ancilla; a difference within the tolerance is erased."""
        if t.is_exact:
            self.trouble(self.compare("ne", register_type(t), cast(str, held), cast(str, expected)))
            return
        differs, far, same = self.fresh("differs"), self.fresh("near"), self.fresh("freed")
        self.fork(self.altered(t, held, expected), differs, same, COLD)
        self.label(differs)
        number = self.fresh("number")
        # Where nothing has happened to a value LLVM finds that this is all there can be.
        self.fork(self.both_nan(t, held, expected), same, number)
        self.label(number)
        self.trouble(self.distant(t, held, expected))
        self.jump(far)
        self.label(far)
        self.erase(self.unequal(t, held, expected), t.bits)
        self.jump(same)
        self.label(same)

    def both_nan(self, t: Scalar, a: Value, b: Value) -> str:
        """Whether two inexact numbers are both NaN."""
        return self.op(f"and i1 {self._is_nan(t, a)}, {self._is_nan(t, b)}")

    def _is_nan(self, t: Scalar, value: Value) -> str:
        kind = register_type(t)
        if isinstance(value, tuple):
            return self.op(f"fcmp uno {kind} {value[0]}, {value[1]}")
        return self.op(f"fcmp uno {kind} {value}, {value}")

    def altered(self, t: Scalar, a: Value, b: Value) -> str:
        """Whether two inexact numbers differ in a bit."""
        kind = register_type(t)
        if isinstance(a, tuple):
            re, im = (self._altered(kind, x, y) for x, y in zip(a, b, strict=True))
            return self.op(f"or i1 {re}, {im}")
        return self._altered(kind, a, cast(str, b))

    def _altered(self, kind: str, a: str, b: str) -> str:
        whole = "i32" if kind == "float" else "i64"
        x, y = (self.op(f"bitcast {kind} {v} to {whole}") for v in (a, b))
        return self.op(f"icmp ne {whole} {x}, {y}")

    def unequal(self, t: Scalar, a: Value, b: Value) -> str:
        """Whether two inexact numbers differ; a NaN differs from everything."""
        kind = register_type(t)
        if isinstance(a, tuple):
            re, im = (self.op(f"fcmp une {kind} {x}, {y}") for x, y in zip(a, b, strict=True))
            return self.op(f"or i1 {re}, {im}")
        return self.op(f"fcmp une {kind} {a}, {b}")

    def nonzero(self, t: Scalar, value: Value) -> str:
        """Whether a value is not zero."""
        kind = register_type(t)
        if isinstance(value, tuple):
            return self.unequal(t, value, ("0.0", "0.0"))
        if t.is_bool:
            return value
        how = "fcmp une" if kind in ("double", "float") else "icmp ne"
        return self.op(f"{how} {kind} {value}, {'0.0' if 'f' in how else '0'}")

    def distant(self, t: Scalar, held: Value, expected: Value) -> str:
        """Whether two numbers that differ in a bit are too far apart for the tolerance."""
        gap, size = self._gap_and_size(t, held, expected)
        wide = self.op(f"fcmp ogt double {size}, 1.0")
        scale = self.choose(wide, "double", size, "1.0")
        tolerance = self.load("double", self.field(context.TOLERANCE))
        limit = self.op(f"fmul double {tolerance}, {scale}")
        near = self.op(f"fcmp ole double {gap}, {limit}")
        finite = self.op(f"fcmp one double {size}, {INFINITY}")
        # With a tolerance of 0 no other zero will do.
        some = self.op(f"fcmp ogt double {limit}, 0.0")
        fine = self.op(f"and i1 {self.op(f'and i1 {near}, {finite}')}, {some}")
        return self.op(f"xor i1 {fine}, true")

    def _gap_and_size(self, t: Scalar, held: Value, expected: Value) -> tuple[str, str]:
        if isinstance(held, tuple):
            assert isinstance(expected, tuple)
            parts = [self.op(f"fsub double {a}, {b}") for a, b in zip(held, expected, strict=True)]
            gap = self.pure("rvm_hypot", "double", ("double", parts[0]), ("double", parts[1]))
            size = self.pure(
                "rvm_hypot", "double", ("double", expected[0]), ("double", expected[1])
            )
            return gap, size
        a, b = held, cast(str, expected)
        if register_type(t) == "float":
            a, b = (self.op(f"fpext float {v} to double") for v in (a, b))
        difference = self.op(f"fsub double {a}, {b}")
        gap, size = (self.op(f"call double @llvm.fabs.f64(double {v})") for v in (difference, b))
        return gap, size

    def erase(self, condition: str, bits: int | str) -> None:
        """Count bits as erased if an `i1` holds."""
        lost = bits if condition == "true" else self.choose(condition, "i64", str(bits), "0")
        self.lose(str(lost))

    def lose(self, bits: str) -> None:
        """Count so many bits as erased."""
        before = self.load("i64", self.erased)
        self.store("i64", self.op(f"add i64 {before}, {bits}"), self.erased)

    # ------------------------------------------------------------ memory account

    def field(self, k: int) -> str:
        """A pointer to a field of the context."""
        return self.op(f"getelementptr i64, ptr %ctx, i64 {k}")

    def room(self, size: str) -> str:
        """Trouble unless the memory limit leaves room; the live bytes that there would then be."""
        live = self.load("i64", self.field(context.LIVE))
        total = self.op(f"add i64 {live}, {size}")
        limit = self.load("i64", self.field(context.LIMIT))
        self.trouble(self.compare("sgt", "i64", total, limit))
        return total

    def grow(self, total: str) -> None:
        """Enter new live bytes, and the peak."""
        self.store("i64", total, self.field(context.LIVE))
        peak = self.load("i64", self.field(context.PEAK))
        more = self.op(f"call i64 @llvm.smax.i64(i64 {peak}, i64 {total})")
        self.store("i64", more, self.field(context.PEAK))

    def shrink(self, size: str) -> None:
        """Take bytes from the live ones."""
        live = self.load("i64", self.field(context.LIVE))
        self.store("i64", self.op(f"sub i64 {live}, {size}"), self.field(context.LIVE))

    # ------------------------------------------------------------ stacks

    def _stack(self, place: Place) -> tuple[str, Scalar]:
        t = self.function.registers[place.reg].type
        assert isinstance(t, Stack)
        return self.load("ptr", self.stacks[place.reg]), t.elem

    def _new_stack(self, reg: int) -> None:
        made = self.helper("rvm_stack_new", "ptr")
        self.trouble(self.op(f"icmp eq ptr {made}, null"))
        self.store("ptr", made, self.stacks[reg])

    def _end_stack(self, reg: int) -> None:
        stack = self.load("ptr", self.stacks[reg])
        count = self.helper("rvm_stack_count", "i64", ("ptr", stack))
        self.trouble(self.compare("ne", "i64", count, "0"))
        self.helper("rvm_stack_end", "i64", ("ptr", stack))

    def _push(self, src: Place, stack: Place) -> None:
        place = self.located(src)
        held, t = self._stack(stack)
        value = self.read(place)
        total = self.room(str(SCALAR_BYTES))
        slot = self.helper("rvm_stack_push", "ptr", ("ptr", held), ("i64", str(item_size(t))))
        self.trouble(self.op(f"icmp eq ptr {slot}, null"))
        self.write(self.element(slot, t, ""), value)
        self.grow(total)
        self.write(place, constant(system(scalar_of(src)).zero, scalar_of(src)))

    def _pop(self, dst: Place, stack: Place) -> None:
        place = self.located(dst)
        held, t = self._stack(stack)
        self._cleared(t, self.read(place))
        count = self.helper("rvm_stack_count", "i64", ("ptr", held))
        self.trouble(self.compare("eq", "i64", count, "0"))
        slot = self.helper("rvm_stack_pop", "ptr", ("ptr", held), ("i64", str(item_size(t))))
        self.write(place, self.read(self.element(slot, t, "")))
        self.shrink(str(SCALAR_BYTES))

    def _cleared(self, t: Scalar, value: Value) -> None:
        """Trouble unless a place holds zero; one with a sign will do if there is a tolerance."""
        if not t.is_exact:
            altered, signed, clear = (
                self.fresh("altered"),
                self.fresh("signed"),
                self.fresh("clear"),
            )
            zero = ("0.0", "0.0") if isinstance(value, tuple) else "0.0"
            self.fork(self.altered(t, value, zero), altered, clear, COLD)
            self.label(altered)
            self.trouble(self.nonzero(t, value))
            self.jump(signed)
            self.label(signed)
            tolerance = self.load("double", self.field(context.TOLERANCE))
            self.trouble(self.op(f"fcmp oeq double {tolerance}, 0.0"))
            self.jump(clear)
            self.label(clear)
            return
        self.trouble(self.nonzero(t, value))

    # ------------------------------------------------------------ overlap

    def _apart(self, clashes: Sequence[Clash]) -> None:
        """Trouble if places that must be apart are one, or views of one array reach as far."""
        for a, b, same_ok in clashes:
            one, two = element(a), element(b)
            if one is not None and two is not None and len(one) == len(two):
                if not same_ok:
                    self._unequal_indices(one, two)
            else:
                self._disjoint(self.followed(a), self.followed(b), same_ok)

    def _unequal_indices(self, one: Sequence[Expr], two: Sequence[Expr]) -> None:
        test = "true"
        for i, j in zip(one, two, strict=True):
            equal = self.compare("eq", "i64", self.whole_number(i), self.whole_number(j))
            test = equal if test == "true" else self.op(f"and i1 {test}, {equal}")
        self.trouble(test)

    def _disjoint(self, a: Location | View, b: Location | View, same_ok: bool) -> None:
        """Trouble if two places reach into each other; whether they then meet is not asked here."""
        (low, high), (begin, end) = self._reach(a), self._reach(b)
        under = self.compare("ult", "i64", low, end)
        over = self.compare("ult", "i64", begin, high)
        test = self.op(f"and i1 {under}, {over}")
        if same_ok:
            test = self.op(f"and i1 {test}, {self.compare('ne', 'i64', low, begin)}")
        self.trouble(test)

    def _reach(self, place: Location | View) -> tuple[str, str]:
        """The addresses from a place's first byte to behind its last."""
        if isinstance(place, Location):
            first, size = place.pointers[0], item_size(place.type)
            dims: tuple[str, ...] = ()
            strides: tuple[str, ...] = ()
        else:
            first, size = place.pointer, item_size(place.elem)
            dims, strides = place.dims, place.strides
        low = self.op(f"ptrtoint ptr {first} to i64")
        high = self.op(f"add i64 {low}, {size}")
        for dim, stride in zip(dims, strides, strict=True):
            steps = self.op(f"sub i64 {dim}, 1")
            high = self.op(f"add i64 {high}, {self.product(steps, stride)}")
        return low, high
