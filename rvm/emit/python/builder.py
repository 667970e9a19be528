"""Operations for Python: numbers of every type, functions of the table, arrays and stacks.

A scalar is one number in one variable, even a complex one.  A function is a `template` of the
number system; statements on arrays and stacks are `line`s that call a function of
`rvm.engines.support`.  In unusual cases these raise, before anything has changed; then the
reference engine executes the whole instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from rvm.expr import Apply, Const, Expr, Index, Part, Place, Shaped, Span, Transposed
from rvm.image.traps import Changed
from rvm.ir.builder import Builder, Way
from rvm.ir.context import STOPPED
from rvm.ir.counters import Meter
from rvm.ir.items import Parts
from rvm.ir.kind import INNER, Kind
from rvm.ir.node import I64, PTR, Argument, Node, Var, constant
from rvm.ir.places import ArrayVariable
from rvm.ir.statements import differing
from rvm.ir.typed import Unprintable, leading, scalar_of, type_of
from rvm.ir.values import located, put, read, value, whole_number
from rvm.isa import FUNCTIONS, implementation
from rvm.isa import value as total_value
from rvm.isa.functions.indexing import HIGH
from rvm.leaf.ops import WIDTHS, limits
from rvm.numbers import system
from rvm.program import Function
from rvm.stmt import UNDO, Alloc, Drop, Exchange, Free, Fresh, Map, Pop, Push, Stmt, Update
from rvm.types import F64, Array, Scalar, Stack, elem_of, rank_of

ARRAY = "array"
"""The kind of arrays."""
CHOICE = "choose"
"""The lazy function for arrays too, since its first argument is a scalar."""
CHANGES = frozenset(["set", "store", "line", "text", "poke", "begin"])
TAKEN = "taken"
"""The name in a template that takes a gap from the strict log, for a function of the table."""


class PythonBuilder(Builder):
    """Appends the operations of one instruction; what is asked for twice is one node.

    `names` are the variables of the registers, `bind` gives a name to a value without a literal.
    `total` says that functions must not raise where their value is defined.
    """

    def __init__(
        self,
        function: Function,
        names: Sequence[str],
        bind: Callable[[object], str],
        total: bool = False,
    ) -> None:
        super().__init__(function, Kind(INNER, frozenset()))
        self.names = names
        self.bind = bind
        self.total = total
        self.asks_exactly = False
        """Whether a line asks `exactly`: whether zeros of two signs are told apart."""
        self.ticks = Var(I64, "n")
        self._known: dict[object, Node] = {}
        for k, register in enumerate(self.function.registers):
            t = register.type
            if isinstance(t, Scalar):
                self.scalars[k] = (Var(t.name, names[k]),)
            elif isinstance(t, Array):
                self.arrays[k] = ArrayVariable(Var(ARRAY, names[k]), ())
        self.leaving(lambda: "")

    def begin(self) -> None:
        """Begin an instruction."""
        self.items = []
        self._known = {}

    # ------------------------------------------------------------ a whole function

    def anew(self) -> None:
        self._known = {}

    def variable(
        self, kind: str, stem: str = "v", size: int = 0, many: int = 0, pace: str = ""
    ) -> Var:
        return super().variable(kind, f"_{stem}", size, many, pace)

    def fork(self, condition: Node, yes: str, no: str, unlikely: bool = False) -> None:
        if condition.op == "constant":
            self.jump(yes if condition.aux else no)
        else:
            super().fork(condition, yes, no, unlikely)

    def count(self, ticks: int | Node) -> None:
        if ticks != 0:
            # An exception there does not belong to an instruction.
            self.do("between")
            self.do("text", aux=([f"n -= {ticks}"], False))

    def way_out(self, pc: int, done: int, how: int = STOPPED) -> Way:
        return lambda: (pc, done, how)

    def changed(self, guard: Changed) -> Node:
        cell = f"{self.bind(guard.cell)}[0]"
        if guard.element is not None:
            return self.call(f"({self.bind(guard.element[0].item)}() != {cell})")
        if guard.place is None:
            return self.call(f"{self.bind(guard.holds)}(())")
        return self.call(f"({{0}} != {cell})", self.value(guard.place))

    def row(self) -> Node:
        return Node("argument", PTR, (), Argument("row", PTR))

    def pass_on(self, row: Node, pc: int, meter: Meter) -> None:
        self.line(f"pass_on({pc})")

    # ------------------------------------------------------------ operations

    def op(self, name: str, *args: Node, kind: str = "", aux: Any = None) -> Node:
        """A pure operation: one that is there already, if it can be."""
        key = name, kind, aux, *map(same, args)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = super().op(name, *args, kind=kind, aux=aux)
        return found

    def get(self, variable: Var, *at: Node) -> Node:
        return self.op("get", *at, kind=variable.kind, aux=variable)

    def set(self, variable: Var, value: Node, *at: Node) -> None:
        super().set(variable, value, *at)
        self._known = {}

    def do(self, name: str, *args: Node, aux: Any = None) -> None:
        if name == "store" and args[0].kind != (t := self._elem(aux[0])):
            # For a part of a complex number, the whole number is stored.
            held = self.op("load", *args[1:], kind=t, aux=(aux[0], 0))
            args = self.op("joined", held, args[0], kind=t, aux=aux[1]), *args[1:]
        super().do(name, *args, aux=aux)
        if name in CHANGES:
            self._known = {}

    def _elem(self, reg: int) -> str:
        return elem_of(self.function.registers[reg].type).name

    def inside(self, body: Callable[[], object]) -> list[Node]:
        """A context whose facts are not known after it."""
        outer, self._known = self._known, dict(self._known)
        try:
            return super().inside(body)
        finally:
            self._known = outer

    def call(self, template: str, *args: Node, kind: str = "", fn: str = "") -> Node:
        """The value of a template."""
        return self.op("template", *args, kind=kind or ARRAY, aux=(template, fn))

    def line(self, template: str, *args: Node) -> None:
        """A statement of Python."""
        self.do("line", *args, aux=template)

    # ------------------------------------------------------------ values

    def kinds(self, t: Scalar) -> tuple[str, ...]:
        return (t.name,)

    def raw(self, value: Any, t: Scalar) -> Node:
        return constant(value, t.name)

    def peeked(self, place: Place, what: str) -> Node:
        name, parts = self.names[place.reg], place.path[1:]
        if what == "len":
            return self.call(f"len({name})", kind="i64")
        part = f".{'real' if cast(Part, parts[0]).name == 're' else 'imag'}" if parts else ""
        return self.call(f"{name}[-1]{part}", kind=elem_of(type_of(place)).name)

    def measured(self, place: Place, axis: int) -> Node:
        return self.call(f"{{0}}.shape[{axis}]", self.view(place), kind=I64)

    def applied(self, node: Apply) -> Node:
        args = node.args
        if node.fn == "for_end" and args[2] == Const(1, args[2].type):  # type: ignore[arg-type]
            # The template works for every step; nearly all steps are 1, where it is simpler.
            start, stop = self.value(args[0]), self.value(args[1])
            inside = f"{{0}} <= ({{t0}} := {{1}}) < {HIGH}"
            outside = "{0} if {t0} < {0} else for_end({0}, {t0}, 1)"
            return self.call(f"({{t0}} + 1 if {inside} else {outside})", start, stop, kind="i64")
        template, fn, rank = self._template(node), node.fn, rank_of(type_of(node))
        kind = ARRAY if rank else elem_of(type_of(node)).name
        if not FUNCTIONS[fn].lazy or (rank and fn != CHOICE):
            return self.call(template, *map(self.value, args), kind=kind, fn=fn)
        first, rest = self.value(args[0]), [self.apart(a) for a in args[1:]]
        made = Node("lazy", kind, (first,), (template, rest))
        self.items.append(made)
        return made

    def _template(self, node: Apply) -> str:
        """The template of a function."""
        fn, args = node.fn, node.args
        elems = tuple(elem_of(type_of(a)) for a in args)
        code, bits = implementation(fn, elems), elems[0].bits
        if any(rank_of(type_of(a)) for a in args) and fn != CHOICE:
            return code.numpy if rank_of(type_of(node)) else f"plain({code.numpy})"
        if self.total and code.value is not None and not FUNCTIONS[fn].lazy and fn != "for_end":
            slots = ", ".join(f"{{{k}}}" for k in range(len(args)))
            return f"{self.bind(total_value(fn, elems))}({slots})"
        if fn == "<<" and isinstance(args[1], Const) and elems[0].name in WIDTHS:
            low, high = limits(elems[0].name)
            if not low and 0 <= args[1].value < bits:
                return f"({{0}} << {{1}} & {high})"
        return code.python

    def apart(self, node: Expr) -> tuple[list[Node], Node]:
        """The operations that compute a value, for a place that no line can precede."""
        found: list[Node] = []
        items = self.inside(lambda: found.append(self.value(node)))
        return items, found[0]

    def value(self, node: Expr) -> Node:
        """An expression, whatever its rank."""
        if isinstance(node, Place):
            t = node.type or self.function.registers[node.reg].type
            if not isinstance(t, Scalar):
                return self.view(node)
        return cast(Node, value(self, node))

    def bound(self, index: Node, length: Node, cut: bool = False) -> None:
        super().bound(index, length)
        if cut:  # NumPy finds out what lies outside of the register, not of a part of it
            self.trouble(self.op("ge", index, length))

    def index(self, node: Expr) -> Node:
        """An index that is not negative; NumPy detects one that is too large."""
        found = whole_number(self, node)
        self.do("bound", found)
        return found

    def view(self, place: Place) -> Node:
        """An array place as a view of NumPy's."""
        text, args = self.names[place.reg], list[Node]()

        def slot(node: Node) -> str:
            args.append(node)
            return f"{{{len(args) - 1}}}"

        def item(given: Expr | Span, axis: int) -> str:
            if isinstance(given, Span):
                if given.is_whole:
                    return ":"
                # NumPy clips slices; ours must lie inside, which only the length can tell.
                ends = ("None" if e is None else slot(self.value(e)) for e in given.ends)
                return f"span({', '.join(ends)}, {text}.shape[{axis}])"
            return slot(self.index(given))

        for step in place.path:
            match step:
                case Transposed():
                    text += ".T"
                case Shaped(dims):
                    text = f"shaped({text}, {', '.join([slot(self.value(d)) for d in dims])})"
                case Part(name):
                    text += ".real" if name == "re" else ".imag"
                case Index(items):
                    text += f"[{', '.join(item(i, axis) for axis, i in enumerate(items))}]"
        return self.call(text, *args, kind=ARRAY)

    def factor(self, by: Parts, t: Scalar) -> None:
        factors = system(t).factors
        if factors != "any":
            finite = f"not {'cisfinite' if t.is_complex else 'isfinite'}({{0}})"
            test = finite if factors == "finite" else f"not {{0}} or {finite}"
            self.trouble(self.call(f"({test})", cast(Node, by)))

    def combined(self, op: str, t: Scalar, old: Parts, by: Parts) -> Node:
        parts = cast(Node, old), cast(Node, by)
        return self.call(implementation(op, (t, t)).python, *parts, kind=t.name, fn=op)

    def keep(self, *pairs: tuple[Scalar, Parts, Parts]) -> None:
        nodes = [cast(Node, part) for _, *parts in pairs for part in parts]
        if all(t == F64 for t, *_ in pairs):
            self.line(
                f"keep_floats(state, {', '.join(f'{{{k}}}' for k in range(len(nodes)))})", *nodes
            )
            return
        slots = (
            f"({self.bind(system(t))}, {{{2 * k}}}, {{{2 * k + 1}}})"
            for k, (t, *_) in enumerate(pairs)
        )
        self.line(f"keep(state, {', '.join(slots)})", *nodes)

    def rounded(self, *pairs: tuple[Scalar, Parts, Parts]) -> None:
        for t, *numbers in pairs:
            count = f"_rounded += lost({self.bind(t)}, {{0}}, {{1}})"
            self.line(f"if {{0}} != {{1}}: {count}", *(cast(Node, x) for x in numbers))

    def reserve(self, gaps: Node) -> None:
        raise AssertionError("whole arrays are lines")

    def ask(self, gaps: Node) -> None:
        # That is detected where they are popped, before anything has changed.
        pass

    def taken(self, t: Scalar, guess: Parts) -> Node:
        # Each is a value of its own.
        text = f"taken(state, ({self.bind(system(t))}, {{0}}))[0]"
        if t == F64:
            text = "taken_float(state, {0})"
        made = Node("template", t.name, (cast(Node, guess),), (text, TAKEN))
        self.items.append(made)
        return made

    def disjoint(self, x: Place, y: Place, same_ok: bool) -> None:
        # Views of one element's parts may be apart: the reference engine finds out.
        one, two = leading(x), leading(y)
        if same_ok or not one or len(one) != len(two):
            raise Unprintable
        differing(self, one, two)

    # ------------------------------------------------------------ statements

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Map() | Push() | Pop() if self.way:
                # With the strict log, the reference engine executes these.
                raise Unprintable
            case Map() if self.rounding is not None:
                raise Unprintable
            case Update(dst, op, given):
                t = elem_of(type_of(dst))
                view, by, factors = self.view(dst), self.value(given), system(t).factors
                if op in "*/" and factors != "any":
                    by = self.call(f"factor({{0}}, {factors!r})", by)
                new, sys = implementation(op, (t, t)).numpy, self.bind(system(t))
                if self.way < 0:
                    new = f"taken(state, ({sys}, {new}))[0]"
                if self.rounding is None and self.way <= 0:
                    self.line(f"fits({{0}}, {{1}}); {{0}}[...] = {new}", view, by)
                    return
                undone = implementation(UNDO[op], (t, t)).numpy.replace("{0}", "_new")
                self.line(f"fits({{0}}, {{1}}); _new = {new}", view, by)
                if self.way:
                    self.line(f"keep(state, ({sys}, {undone}, {{0}}))", view, by)
                else:
                    self.line(f"_rounded += lost({self.bind(t)}, {undone}, {{0}})", view, by)
                self.line("{0}[...] = _new", view)
            case Exchange(x, y):
                self.line("exchange({0}, {1})", self.view(x), self.view(y))
            case Map(dsts, values, _):
                n, places = len(dsts), list(map(self.view, dsts))
                store = f"store_all({_tuple(range(n))}, {_tuple(range(n, 2 * n))})"
                self.line(store, *places, *map(self.value, values))
            case Alloc(Place(reg)) | Fresh(Place(reg)):
                self._make(stmt, reg)
            case Free(Place(reg)) | Drop(Place(reg)):
                self._end(stmt, reg)
            case Push(src, stack):
                place = located(self, src)
                held = cast(Node, read(self, place))
                self.line(f"push(state, {self.names[stack.reg]}, {{0}})", held)
                put(self, place, self._zero(scalar_of(src)))
            case Pop(dst, stack):
                place, name, t = located(self, dst), self.names[stack.reg], scalar_of(dst)
                exactly = self._exactly("signs({0}) != (1.0, 1.0)", t)
                test = f"({{0}} != {{1}} or not {name}{exactly})"
                self.trouble(self.call(test, cast(Node, read(self, place)), self._zero(t)))
                put(self, place, self.call(f"pop(state, {name})", kind=t.name))
            case _:
                raise Unprintable

    def _zero(self, t: Scalar) -> Node:
        return self.raw(system(t).zero, t)

    def _exactly(self, test: str, t: Scalar) -> str:
        """What makes a test for inequality a test of bits, if needed."""
        if t.is_exact:
            return ""
        self.asks_exactly = True
        return f" or exactly and {test}"

    def _array(
        self, do: str, t: Scalar, reg: int, value: Node, held: str = "", more: str = ""
    ) -> None:
        """A local array made or given up."""
        given = self.function.registers[reg].dims
        dims = [self.value(d) for d in given if d is not None]
        shape = f"{_tuple(range(len(dims)))}, {{{len(dims)}}}"
        self.line(f"{do}(state, {self.bind(system(t))}, {held}{shape}{more})", *dims, value)

    def _make(self, stmt: Alloc | Fresh, reg: int) -> None:
        t, name = self.function.registers[reg].type, self.names[reg]
        given = stmt.value if isinstance(stmt, Alloc) else None
        if isinstance(t, Stack):
            self.line(f"{name} = []")
        elif isinstance(t, Array):
            new = self._zero(t.elem) if given is None else self.value(given)
            do = "remake_array" if self.way < 0 else "make_array"
            self._array(f"{name} = {do}", t.elem, reg, new)
            self.line(f"{name}_m = memoryview({name})")
        else:
            made = self._zero(t) if given is None else self.value(given)
            self.set(self.scalars[reg][0], made if self.way >= 0 else self.taken(t, made))

    def _end(self, stmt: Free | Drop, reg: int) -> None:
        t, name = self.function.registers[reg].type, self.names[reg]
        given, more = None, ""
        gone = "".join(f"{self.names[p.reg]} = " for p in stmt.held or ())
        if isinstance(stmt, Free):
            given = stmt.value
            if stmt.judged is not None:
                more = "".join([", ''", *(f", {self.names[p.reg]}" for p in stmt.judged)])
            more += ", returns=True" * stmt.returns
        logged = ", logged=True" * (self.way > 0)
        more += logged
        if isinstance(t, Stack):
            self.line(f"if {name}: trouble()")
        elif given is None:
            test = f"if {name}: " if isinstance(t, Scalar) and not logged else ""
            self.line(f"{test}forget(state, {self.bind(system(elem_of(t)))}, {name}{logged})")
        elif isinstance(t, Array):
            self._array("drop_array", t.elem, reg, self.value(given), f"{name}, ", more)
        elif t.is_exact:
            self.trouble(self.call(f"({name} != {{0}})", self.value(given)))
        else:
            parts = (".real", ".imag") if t.parts > 1 else ("",)
            zero = " or ".join(f"not {name}{part}" for part in parts)
            test = f"{name} != {{0}}{self._exactly(f'({zero})', t)}"
            residue = f"residue(state, {self.bind(system(t))}, {name}, {{0}}{more})"
            self.line(residue if logged else f"if {test}: {residue}", self.value(given))
        self.line(
            f"{gone}{name} = {name}_m = None" if isinstance(t, Array) else f"{gone}{name} = None"
        )


def same(node: Node) -> object:
    """A key shared by equal constants; any other node has its own."""
    return (node.kind, repr(node.aux)) if node.op == "constant" else node


def _tuple(slots: range) -> str:
    return f"({''.join(f'{{{k}}}, ' for k in slots)})"
