"""One function in one direction as LLVM code: blocks, loops, ways in and out.

A *root* is entered by Python at any gate, with its registers in a row of slots, and leaves them
there.  An *inner* function is called by compiled code, with its parameters as arguments; where it
cannot go on it leaves its registers in a frame of its own, and so do its callers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from rvm.emit.llvm import context
from rvm.emit.llvm.arrays import FRAMED, MINE, Arrays
from rvm.emit.llvm.flow import Cycle, Flow
from rvm.emit.llvm.loops import Counted, Inner, Inside
from rvm.emit.llvm.traps import print_traps
from rvm.emit.llvm.values import ArrayVariable, item_size, variable_types
from rvm.emit.llvm.writer import COLD
from rvm.expr import Expr, Place
from rvm.image import Code
from rvm.numbers.llvm import memory_type
from rvm.probes.traps import Changed
from rvm.stmt import Branch, Land
from rvm.types import Array, Scalar, elem_of

FAR = 1 << 40
"""Variables of counting loops lie within ± this where a loop is run without checks."""


class Callees(Protocol):
    """Where calls go: the module that is being made."""

    def inner(self, code: Code, scattered: frozenset[int]) -> str:
        """The symbol of an inner function whose array parameters `scattered` have strides."""

    def number(self, code: Code) -> int:
        """The number by which a stopped frame names its code."""

    def metadata(self, text: str) -> str:
        """The name of a new metadata node; `{}` in its text is that name."""

    def cell(self, guard: Changed) -> int:
        """The number of what a guard compares with, and of the element that it looks at."""


INNER, ANYWHERE = -1, -2
"""Entries that are no gate: that of an inner function, and that of a root for all gates."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is made of a code: `entry` is a root's gate, INNER or ANYWHERE.

    A root for one gate is made of proper loops, which optimise well; one for all gates is made
    once, and serves until a run has gone on for long.

    `scattered` are the array parameters that need not be contiguous.  In `strict` mode what may
    lose bits is not compiled.
    """

    entry: int
    scattered: frozenset[int]
    checks: bool = True
    strict: bool = False

    @property
    def root(self) -> bool:
        return self.entry != INNER


class FunctionPrinter(Arrays):
    """Prints one function."""

    def __init__(
        self,
        symbol: str,
        code: Code,
        kind: Kind,
        flow: Flow,
        loops: dict[int, Counted],
        callees: Callees,
    ) -> None:
        super().__init__(code.function, kind.checks)
        self.symbol = symbol
        self.code = code
        self.kind = kind
        self.flow = flow
        self.loops = loops
        self.callees = callees
        self.ticks = self.variable("i64", "ticks")
        self.position = self.variable("i64", "position")
        self.how = self.variable("i32", "how")
        self.passed = frozenset(
            a.reg for pc in flow.calls for a in code.instrs[pc].args if isinstance(a, Place)
        )
        self.starts, self.slots = context.slots(code.function)
        self.changed = code.image.inout[code.name]
        self.needs = flow.needs(0 if kind.root else 1)
        self.around: tuple[Cycle, ...] = flow.around(max(kind.entry, 0))
        self._todo: list[tuple[int, int]] = []
        self._seen: set[tuple[int, int]] = set()
        self._tail: list[str] = []
        self._arguments: list[str] = []
        self._fast: Counted | None = None

    def text(self) -> str:
        """The function's definition."""
        self._variables()
        if self.kind.root:
            self._bound_stack()
            self._from_slots()
        else:
            self._from_arguments()
        self.store("i64", self.load("i64", self.field(context.TICKS)), self.ticks)
        self.store("i64", "0", self.erased)
        if not self.kind.root:
            for held in self.arrays.values():
                if held.owner:
                    self.store("i64", "0", held.owner)
        if self.kind.entry == ANYWHERE:
            self._choose_gate()
        else:
            self.goto(len(self.around), max(self.kind.entry, 0))
        while self._todo:
            self._block(*self._todo.pop())
        self.lines += self._tail
        self._stop()
        args = "ptr noalias %regs, ptr noalias %ctx"
        if not self.kind.root:
            args = ", ".join([*self._arguments, "ptr noalias %ctx"])
        scope = "" if self.kind.root else "internal "
        head = f"define {scope}i32 @{self.symbol}({args}) #1 {{"
        return "\n".join([head, "entry:", *self.entry, *self.lines, "}"]) + "\n"

    # ------------------------------------------------------------ registers

    def _variables(self) -> None:
        for k, register in enumerate(self.function.registers):
            t = register.type
            if isinstance(t, Scalar):
                self.scalars[k] = tuple(self.variable(v, f"r{k}_") for v in variable_types(t))
            elif isinstance(t, Array):
                local = k >= self.function.n_args
                dims = tuple(self.variable("i64", f"d{k}_") for _ in range(t.rank))
                strides = tuple(self.variable("i64", f"s{k}_") for _ in range(t.rank))
                self.arrays[k] = ArrayVariable(
                    self.variable("ptr", f"p{k}_"),
                    dims,
                    strides if k in self.kind.scattered else (),
                    self.variable("i64", f"o{k}_") if local else "",
                )
            else:
                self.stacks[k] = self.variable("ptr", f"k{k}_")
        self._scopes()

    def _scopes(self) -> None:
        """Say of each array register that no other one shares its memory."""
        arrays = list(self.arrays)
        if len(arrays) < 2:
            return
        new = self.callees.metadata
        domain = new("distinct !{{}}")
        scopes = {k: new(f"distinct !{{{{}}, {domain}}}") for k in arrays}
        for k in arrays:
            others = new(f"!{{{', '.join(scopes[j] for j in arrays if j != k)}}}")
            own = new(f"!{{{scopes[k]}}}")
            self.notes[k] = f", !alias.scope {own}, !noalias {others}"

    def _bound_stack(self) -> None:
        """Turn the room on the host's stack into the address that it must not pass."""
        here = self.op("call ptr @llvm.frameaddress.p0(i32 0)")
        address = self.op(f"ptrtoint ptr {here} to i64")
        field = self.field(context.DEEPEST)
        self.store("i64", self.op(f"sub i64 {address}, {self.load('i64', field)}"), field)

    def _from_slots(self) -> None:
        """Load a root's registers; what is not live is read as it stands, and never used."""
        for k, start in enumerate(self.starts):
            t = self.function.registers[k].type
            if isinstance(t, Scalar):
                for part, pointer in enumerate(self.scalars[k]):
                    kind = variable_types(t)[part]
                    slot = self._slot("%regs", start + part)
                    if t.is_bool:
                        byte = self.load("i8", slot)
                        self.store("i1", self.op(f"trunc i8 {byte} to i1"), pointer)
                    else:
                        self.store(kind, self.load(kind, slot), pointer)
            elif isinstance(t, Array):
                self._array_slots(k, "%regs", start, self._fetch)
            else:
                self._fetch("ptr", self._slot("%regs", start), self.stacks[k])

    def _fetch(self, kind: str, slot: str, pointer: str) -> None:
        self.store(kind, self.load(kind, slot), pointer)

    def _keep(self, kind: str, slot: str, pointer: str) -> None:
        self.store(kind, self.load(kind, pointer), slot)

    def _slot(self, base: str, k: int) -> str:
        return self.op(f"getelementptr i64, ptr {base}, i64 {k}")

    def _array_slots(
        self, reg: int, base: str, start: int, move: Callable[[str, str, str], None]
    ) -> None:
        """Move an array's description between its slots and its variables."""
        held = self.arrays[reg]
        move("ptr", self._slot(base, start), held.pointer)
        if held.owner:
            move("i64", self._slot(base, start + 1), held.owner)
        rank = len(held.dims)
        for k, dim in enumerate(held.dims):
            move("i64", self._slot(base, start + 2 + k), dim)
        for k, stride in enumerate(held.strides):
            move("i64", self._slot(base, start + 2 + rank + k), stride)

    def _from_arguments(self) -> None:
        """Take an inner function's parameters from its arguments."""
        for k in range(self.function.n_args):
            t = self.function.registers[k].type
            if isinstance(t, Array):
                held = self.arrays[k]
                self._argument("ptr", f"%a{k}", held.pointer)
                for axis, dim in enumerate(held.dims):
                    self._argument("i64", f"%a{k}d{axis}", dim)
                for axis, stride in enumerate(held.strides):
                    self._argument("i64", f"%a{k}s{axis}", stride)
            elif isinstance(t, Scalar):
                for part, (kind, pointer) in enumerate(
                    zip(variable_types(t), self.scalars[k], strict=True)
                ):
                    name = f"%a{k}p{part}"
                    if k in self.changed:
                        self._arguments.append(f"ptr noalias {name}")
                        self._fetch(kind, name, pointer)
                    else:
                        self._argument(kind, name, pointer)
            else:
                self._argument("ptr", f"%a{k}", self.stacks[k])

    def _argument(self, kind: str, name: str, pointer: str) -> None:
        self._arguments.append(f"{kind} {name}")
        self.store(kind, name, pointer)

    # ------------------------------------------------------------ blocks

    def _choose_gate(self) -> None:
        """Go on at the gate that the context names."""
        gates = sorted(g for g in self.flow.gates if g not in self.flow.apart)
        ways = []
        for gate in gates:
            label = self.fresh("gate")
            ways.append((gate, label))
        wanted = self.load("i64", self.field(context.PC))
        cases = " ".join(f"i64 {gate}, label %{label}" for gate, label in ways)
        self.line(f"switch i64 {wanted}, label %{ways[0][1]} [ {cases} ]")
        for gate, label in ways:
            self.label(label)
            self.goto(0, gate)

    def goto(self, copy: int, target: int) -> None:
        """End the block by going on at a leader."""
        to = self.flow.copy(self.around, copy, target)
        key = (to, target)
        if key not in self._seen:
            self._seen.add(key)
            self._todo.append(key)
        self.jump(f"b{to}_{target}")

    def _block(self, copy: int, start: int) -> None:
        """One leader's block: up to the next jump, or to what is not compiled."""
        self.label(f"b{copy}_{start}")
        if start in self.flow.gates and self.needs[start]:
            self._gate(start)
        self._straight(start, lambda target, back: self._onward(copy, target, back))

    def _onward(self, copy: int, target: int, falling: bool) -> None:
        """Go on at a leader; a loop that is fallen into may be one that needs few checks."""
        loop = self.loops.get(target - 1) if falling else None
        if loop is not None:
            self._enter(loop, copy)
        else:
            self.goto(copy, target)

    def _gate(self, start: int) -> None:
        """Leave at a gate if there are not ticks enough to the next ones."""
        spent, going = self.fresh("spent"), self.fresh("go")
        left = self.load("i64", self.ticks)
        self.fork(self.compare("slt", "i64", left, str(self.needs[start])), spent, going, COLD)
        self._tail += [
            f"{spent}:",
            f"  store i64 {start}, ptr {self.position}",
            f"  store i32 {context.SPENT}, ptr {self.how}",
            "  br label %stop",
        ]
        self.label(going)

    def _straight(self, start: int, onward: Callable[[int, bool], None]) -> None:
        """Instructions from a leader on, and the jump that ends them."""
        flow, pc, done = self.flow, start, 0
        while True:
            if pc != start and pc in flow.leaders:
                self._count(done)
                onward(pc, True)
                return
            if pc in self.code.traps:
                print_traps(self, pc, self._way_out(pc, done))
            if pc == len(self.code):
                self._count(done)
                self._finish()
                return
            instr = self.code.instrs[pc]
            self.leaving(self._way_out(pc, done))
            if pc in flow.apart:
                self.jump(self._way_out(pc, done)())
                return
            if pc in flow.calls:
                self.call(pc, done)
                onward(pc + 1, False)
                return
            if instr.op == "br":
                self._branch(pc, done, onward)
                return
            self.instruction(self.code.stmts(pc), self.code.clashes(pc))
            done += 1
            pc += 1

    def _count(self, ticks: int) -> None:
        if ticks:
            left = self.op(f"sub i64 {self.load('i64', self.ticks)}, {ticks}")
            self.store("i64", left, self.ticks)

    def _way_out(self, pc: int, done: int) -> Callable[[], str]:
        """The way out at an instruction of which nothing is done yet."""
        made: list[str] = []

        def label() -> str:
            if not made:
                name, left, rest = self.fresh("out"), self.fresh("x"), self.fresh("x")
                made.append(name)
                self._tail.extend(
                    [
                        f"{name}:",
                        f"  %{left} = load i64, ptr {self.ticks}",
                        f"  %{rest} = sub i64 %{left}, {done}",
                        f"  store i64 %{rest}, ptr {self.ticks}",
                        f"  store i64 {pc}, ptr {self.position}",
                        f"  store i32 {context.STOPPED}, ptr {self.how}",
                        "  br label %stop",
                    ]
                )
            return made[0]

        return label

    def _branch(self, pc: int, done: int, onward: Callable[[int, bool], None]) -> None:
        stmt = cast(Branch, self.code.stmts(pc)[0])
        landing = cast(Land, self.code.stmts(stmt.partner)[0])
        taken, not_taken = self.fresh("taken"), self.fresh("falls")
        self.fork(cast(str, self.value(stmt.cond)), taken, not_taken)
        self.label(taken)
        trusted = self._fast is not None and pc in self._fast.trusted
        if self.checks and not trusted and landing.cond != stmt.cond:
            holds = cast(str, self.value(landing.cond))
            if holds != "true":
                self.trouble(self.op(f"xor i1 {holds}, true"))
        self._count(done + 1)
        onward(stmt.partner + 1, False)
        self.label(not_taken)
        self._count(done + 1)
        onward(pc + 1, False)

    def _finish(self) -> None:
        """The end of the code."""
        if self.kind.root:
            self.store("i64", str(len(self.code)), self.position)
            self.store("i32", str(context.DONE), self.how)
            self.jump("stop")
            return
        for k in sorted(self.changed):
            t = self.function.registers[k].type
            if isinstance(t, Scalar):
                for part, pointer in enumerate(self.scalars[k]):
                    self._fetch(variable_types(t)[part], pointer, f"%a{k}p{part}")
        self._settle()
        self.line(f"ret i32 {context.DONE}")

    # ------------------------------------------------------------ counting loops

    def _enter(self, loop: Counted, copy: int) -> None:
        """In front of a counting loop: without checks if all of them can be made now."""
        fast, slow = self.fresh("f"), self.fresh("slow")
        begun = self.scalars[loop.variable][0]
        first = self.load("i64", begun)
        end, low = cast(str, self.value(loop.end)), cast(str, self.value(loop.start))
        up, step = loop.step > 0, abs(loop.step)
        distance = self.op(f"sub i64 {end}, {first}" if up else f"sub i64 {first}, {end}")
        self._all(
            slow,
            self._near(first),
            self._near(end),
            self.compare("sgt", "i64", distance, "0"),
            self.compare("sle" if up else "sge", "i64", low, first),
        )
        trips = distance
        if step > 1:
            self._all(slow, self.compare("eq", "i64", self.op(f"urem i64 {distance}, {step}"), "0"))
            trips = self.op(f"udiv i64 {distance}, {step}")
        last = self.op(f"sub i64 {end}, {loop.step}")
        near, far = first, last
        if loop.early:
            near, far = self.op(f"add i64 {first}, {loop.step}"), end
        ranges = {loop.variable: (near, far) if up else (far, near)}
        tests = [t for inner in loop.inner for t in self._range(inner, ranges)]
        tests += [t for i in loop.indices for t in self._inside(i, ranges)]
        tests.append(self._enough(loop, trips, ranges))
        for variable in ranges:
            if variable != loop.variable:
                self.store("i64", "0", self.scalars[variable][0])
        self.store("i64", first, begun)
        self._all(slow, *tests)
        self.jump(fast)
        self.label(slow)
        self.goto(copy, loop.cycle.head + 1)
        self._unchecked(loop, fast, copy)

    def _all(self, otherwise: str, *tests: str) -> None:
        """Go on only if all tests hold."""
        test = tests[0]
        for more in tests[1:]:
            test = self.op(f"and i1 {test}, {more}")
        going = self.fresh("go")
        self.fork(test, going, otherwise)
        self.label(going)

    def _near(self, value: str) -> str:
        moved = self.op(f"add i64 {value}, {FAR}")
        return self.compare("ult", "i64", moved, str(2 * FAR))

    def _extreme_at(
        self,
        node: Expr,
        factors: tuple[tuple[int, int], ...],
        ranges: dict[int, tuple[str, str]],
        greatest: bool,
    ) -> str:
        """The least or greatest value of an affine expression over its variables' ranges."""
        for variable, factor in factors:
            value = ranges[variable][(factor > 0) == greatest]
            self.store("i64", value, self.scalars[variable][0])
        return cast(str, self.value(node))

    def _range(self, inner: Inner, ranges: dict[int, tuple[str, str]]) -> list[str]:
        """Enter the range of an inner loop's variable; whether it is not too wide."""
        low = self._extreme_at(inner.low, inner.low_factors, ranges, False)
        high = self._extreme_at(inner.high, inner.high_factors, ranges, True)
        ranges[inner.variable] = (low, high)
        return [self._near(low), self._near(high)]

    def _inside(self, index: Inside, ranges: dict[int, tuple[str, str]]) -> list[str]:
        """Whether an index lies inside at both ends of its range."""
        length = self.load("i64", self.arrays[index.reg].dims[index.axis])
        ends = {
            self._extreme_at(index.item, index.factors, ranges, greatest)
            for greatest in ((False, True) if index.factors else (True,))
        }
        return [self.compare("ult", "i64", end, length) for end in sorted(ends)]

    def _enough(self, loop: Counted, trips: str, ranges: dict[int, tuple[str, str]]) -> str:
        """Whether there are ticks enough for a whole nest; those of each loop at most."""
        fine = "true"

        def times(a: str, b: str) -> str:
            nonlocal fine
            both = self.op(f"call {{i64, i1}} @llvm.umul.with.overflow.i64(i64 {a}, i64 {b})")
            over = self.op(f"extractvalue {{i64, i1}} {both}, 1")
            over = self.op(f"xor i1 {over}, true")
            fine = over if fine == "true" else self.op(f"and i1 {fine}, {over}")
            return self.op(f"extractvalue {{i64, i1}} {both}, 0")

        def total(cycle: Cycle, count: str) -> str:
            each = str(loop.rounds(cycle))
            for inner in loop.inner:
                if self._directly(loop, cycle, inner.cycle):
                    low, high = ranges[inner.variable]
                    wide = self.op(f"sub i64 {high}, {low}")
                    some = self.op(f"call i64 @llvm.smax.i64(i64 {wide}, i64 0)")
                    if inner.step > 1:
                        some = self.op(f"udiv i64 {some}, {inner.step}")
                    more = total(inner.cycle, self.op(f"add i64 {some}, 1"))
                    each = self.op(f"add i64 {each}, {more}")
            return times(count, each)

        ticks = total(loop.cycle, trips)
        # Sums of a few numbers below 2**61 do not wrap.
        small = self.compare("ult", "i64", ticks, str(1 << 61))
        enough = self.compare("sle", "i64", ticks, self.load("i64", self.ticks))
        found = self.op(f"and i1 {small}, {enough}")
        return found if fine == "true" else self.op(f"and i1 {found}, {fine}")

    def _directly(self, loop: Counted, outer: Cycle, inner: Cycle) -> bool:
        """Whether a loop of a nest stands in another without one between them."""
        if not (outer.head < inner.head and inner.back < outer.back):
            return False
        return not any(
            outer.head < i.cycle.head < inner.head and inner.back < i.cycle.back < outer.back
            for i in loop.inner
        )

    def _unchecked(self, loop: Counted, label: str, copy: int) -> None:
        """The loop once more, with all that was found out before it."""
        outer, self._fast = (self._fast, self.proved), loop
        self.proved = loop.proved
        head, back = loop.cycle.head + 1, loop.cycle.back
        todo, made = [head], {head}
        leave = self.fresh("leave")

        def onward(target: int, falling: bool) -> None:
            del falling
            if not head <= target <= back:
                self.jump(leave)
                return
            if target not in made:
                made.add(target)
                todo.append(target)
            self.jump(label if target == head else f"{label}_{target}")

        while todo:
            start = todo.pop()
            self.label(label if start == head else f"{label}_{start}")
            self._straight(start, onward)
        self._fast, self.proved = outer
        self.label(leave)
        self.goto(copy, back + 1)

    # ------------------------------------------------------------ ways out

    def _settle(self) -> None:
        """Give the counters back to the context."""
        self.store("i64", self.load("i64", self.ticks), self.field(context.TICKS))
        erased = self.field(context.ERASED)
        total = self.op(f"add i64 {self.load('i64', erased)}, {self.load('i64', self.erased)}")
        self.store("i64", total, erased)

    def _stop(self) -> None:
        """Leave with all registers in slots."""
        self.label("stop")
        if self.kind.root:
            base, first = "%regs", 0
            self.store("i64", self.load("i64", self.position), self.field(context.PC))
        else:
            size = 8 * (context.HEADER + self.slots)
            base, first = self.helper("rvm_frame", "ptr", ("i64", str(size))), context.HEADER
            frames = self.field(context.FRAMES)
            self.store("ptr", self.load("ptr", frames), self._slot(base, context.NEXT))
            number = str(self.callees.number(self.code))
            self.store("i64", number, self._slot(base, context.CODE))
            at = self.load("i64", self.position)
            self.store("i64", at, self._slot(base, context.POSITION))
            self.store("ptr", base, frames)
        for k, start in enumerate(self.starts):
            self._save(k, base, first + start)
        self._settle()
        self.line(f"ret i32 {self.load('i32', self.how)}")

    def _save(self, k: int, base: str, start: int) -> None:
        t = self.function.registers[k].type
        if isinstance(t, Scalar):
            for part, pointer in enumerate(self.scalars[k]):
                slot = self._slot(base, start + part)
                if t.is_bool:
                    held = self.op(f"zext i1 {self.load('i1', pointer)} to i8")
                    self.store("i8", held, slot)
                else:
                    self._keep(memory_type(t), slot, pointer)
        elif isinstance(t, Array):
            self._array_slots(k, base, start, self._keep)
            held_array = self.arrays[k]
            if k in self.frames:
                self._move_out(k, base, start)
            if not held_array.owner:
                self.store("i64", "0", self._slot(base, start + 1))
            if not held_array.strides:
                dims = [self.load("i64", d) for d in held_array.dims]
                for axis, stride in enumerate(self.contiguous(dims, item_size(elem_of(t)))):
                    self.store("i64", stride, self._slot(base, start + 2 + t.rank + axis))
        else:
            self._keep("ptr", self._slot(base, start), self.stacks[k])

    def _move_out(self, reg: int, base: str, start: int) -> None:
        """Copy an array that lives in the frame, if it does just now, to memory of its own."""
        held = self.arrays[reg]
        move, stay = self.fresh("move"), self.fresh("stay")
        owner = self.load("i64", held.owner)
        self.fork(self.compare("eq", "i64", owner, str(FRAMED)), move, stay)
        self.label(move)
        t = cast(Array, self.function.registers[reg].type)
        size = str(item_size(t.elem))
        for dim in held.dims:
            size = self.product(size, self.load("i64", dim))
        moved = self.helper("rvm_copied", "ptr", ("ptr", self.frames[reg]), ("i64", size))
        self.store("ptr", moved, self._slot(base, start))
        self.store("i64", str(MINE), self._slot(base, start + 1))
        self.jump(stay)
        self.label(stay)

    # ------------------------------------------------------------ calls

    def call(self, pc: int, done: int) -> None:
        """A call: see `rvm.emit.llvm.calls`."""
        from rvm.emit.llvm.calls import print_call

        print_call(self, pc, done)
