"""Elements of arrays, in the lanes of a context: where they are, how they are read and stored."""

from __future__ import annotations

from collections.abc import Hashable

from rvm.engines.vector.access import Access, Axis
from rvm.engines.vector.graph import Node
from rvm.engines.vector.values import Context, Values
from rvm.expr import Expr
from rvm.types import I64, Scalar, elem_of


class Elements(Values):
    """Makes nodes of elements."""

    def prepare(self, mirrored: bool) -> None:
        """Begin with no indices.

        With `mirrored` the last iteration is the first lane: NumPy goes upwards faster than
        downwards.
        """
        self.mirrored = mirrored
        if mirrored:
            self.every = Node(f"steps(_at, {self._stride}, _k)", (), I64)
        self.starts: list[str] = []
        """Lines that find the first index of each run of indices."""
        self.bounds: list[str] = []
        """Lines that check both ends of runs, when the number of lanes is known."""
        self.loaded: dict[object, Node] = {}
        """Views of elements, by their keys."""
        self._placed: dict[Hashable, tuple[str, tuple[Node, ...]]] = {}
        self._firsts: dict[object, str] = {}
        self._slices: dict[object, str] = {}
        self._bounded: set[object] = set()
        self._reached: dict[Hashable, tuple[tuple[int, str], tuple[int, str], str]] = {}

    @property
    def _stride(self) -> int | None:
        """By how much the loop's variable grows from lane to lane."""
        stride = self.counted.stride
        return -stride if self.mirrored and stride is not None else stride

    def rate_text(self, axis: Axis) -> str:
        """By how much an affine index grows from lane to lane."""
        stride = self._stride
        if not axis.rate:
            return "0"
        if stride is not None:
            return repr(axis.rate * stride)
        return "_by" if axis.rate == 1 else f"({axis.rate} * _by)"

    def first(self, axis: Axis) -> str:
        """The name of an index's value in the first lane; one that is fixed has it in all."""
        if not axis.rate:
            return self.printer_text(axis)
        found = self._firsts.get(axis.key)
        if found is None:
            found = self._firsts[axis.key] = f"_f{len(self._firsts)}"
            self.starts.append(f"{found} = {self._sum(axis)}")
        return found

    def _sum(self, axis: Axis) -> str:
        """An affine index in the first lane.

        It is not wrapped around: what would be is out of bounds here, and so left to the ordinary
        loop.
        """
        assert axis.rest is not None
        terms = [(axis.rate, "_at")]
        for atom, factor in axis.rest.atoms.items():
            assert isinstance(atom, Expr)
            terms.append((factor, self.fixed(atom).template))
        text = ""
        for factor, name in terms:
            size = "" if abs(factor) == 1 else f"{abs(factor)} * "
            text += f" {'-' if factor < 0 else '+'} {size}{name}"
        text = text.removeprefix(" + ").lstrip()
        constant = axis.rest.constant
        return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text

    def printer_text(self, axis: Axis) -> str:
        """A fixed index."""
        return self.fixed(axis.index).template

    def base(self, found: Access) -> str:
        """The array that an element is one of."""
        self.used.add(found.reg)
        name = self.printer.regs[found.reg]
        return name + {"": "", "re": ".real", "im": ".imag"}[found.part]

    def length(self, found: Access, k: int) -> str:
        """The length of an axis."""
        self.used.add(found.reg)
        name = self.printer.regs[found.reg]
        return f"{name}.shape[{k}]" if k else f"len({name})"

    def type_of(self, found: Access) -> Scalar:
        """The number type of an element."""
        t = found.place.type
        assert t is not None
        return elem_of(t)

    def is_view(self, found: Access, context: Context) -> bool:
        """Whether the elements of a context's lanes are a slice."""
        return (
            context.parent is None
            and found.kind == "stream"
            and sum(bool(a.rate) for a in found.axes) == 1
        )

    def place(self, found: Access, context: Context) -> tuple[str, tuple[Node, ...]]:
        """What stands in the brackets, as a template and its arguments; its bounds are checked."""
        if self.is_view(found, context):
            return ", ".join(self._run(found, k) for k in range(len(found.axes))), ()
        key = self.moment(found, context)
        known = self._placed.get(key)
        if known is not None:
            return known
        args: list[Node] = []
        keys = []
        for k, axis in enumerate(found.axes):
            length = self.length(found, k)
            if axis.rest is not None and not axis.rate:
                first = self.first(axis)
                self._bound((found.reg, k, axis.key), f"within({first}, {first}, {length})")
                keys.append(first)
                continue
            if axis.rest is not None:
                first, rate = self.first(axis), self.rate_text(axis)
                lanes = Node(f"steps({first}, {rate}, _k)")
                if context.sel is not None:
                    size = "" if rate == "1" else f"{rate} * "
                    lanes = Node(f"({first} + {size}{{0}})", (context.sel,))
            else:
                lanes = self.value(axis.index, context)
                if not lanes.lanes:
                    lanes = Node("np.full({1}, {0})", (lanes, context.count))
            keys.append(f"{{{len(args)}}}")
            args.append(Node(f"inside({{0}}, {length})", (lanes,)))
        self._placed[key] = ", ".join(keys), tuple(args)
        return self._placed[key]

    def moment(self, found: Access, context: Context) -> Hashable:
        """Equal where an access reaches the same elements: its indices may change in a body."""
        regs = {r for axis in found.axes for r in self._regs(axis.index)}
        return found.key, context, tuple((r, self.version(r)) for r in sorted(regs))

    def _run(self, found: Access, k: int) -> str:
        """One index of a slice."""
        axis = found.axes[k]
        first, length = self.first(axis), self.length(found, k)
        bound = (found.reg, k, axis.key)
        if not axis.rate:
            self._bound(bound, f"within({first}, {first}, {length})")
            return first
        rate = self.rate_text(axis)
        last = f"{first} + {rate} * (_k - 1)"
        check, run = f"within({first}, {last}, {length})", f"run_of({first}, {rate}, _k)"
        if rate == "1":
            # Calls would take as long as NumPy does with a short run.
            run = f"slice({first}, {first} + _k)"
            self._reach(found.reg, axis, length)
        else:
            self._bound(bound, check)
        name = self._slices.get(axis.key)
        if name is None:
            name = self._slices[axis.key] = f"_s{len(self._slices)}"
            self.bounds.append(f"{name} = {run}")
        return name

    def _reach(self, reg: int, axis: Axis, length: str) -> None:
        """Say that an axis is reached from an index on; of such runs the outermost are checked."""
        assert axis.rest is not None
        key = reg, length, axis.rate, frozenset(axis.rest.atoms.items())
        here = axis.rest.constant, self.first(axis)
        low, high, _ = self._reached.get(key, (here, here, length))
        self._reached[key] = min(low, here), max(high, here), length

    @property
    def reached(self) -> list[str]:
        """Lines that check both ends of runs of neighbours."""
        return [
            f"if {low} < 0 or {high} + _k > {length}: raise Trouble"
            for (_, low), (_, high), length in self._reached.values()
        ]

    def _bound(self, key: object, line: str) -> None:
        if key not in self._bounded:
            self._bounded.add(key)
            self.bounds.append(line)

    def one(self, found: Access) -> Node:
        """The element that the first lane reaches."""
        for k in range(len(found.axes)):
            first = self.first(found.axes[k])
            length = self.length(found, k)
            key = (found.reg, k, found.axes[k].key, "first")
            self._bound(key, f"within({first}, {first}, {length})")
        keys = ", ".join(map(self.first, found.axes))
        return Node(f"{self.base(found)}[{keys}].item()", (), self.type_of(found), lanes=False)

    def load(self, found: Access, context: Context) -> Node:
        """Elements as they are in memory."""
        keys, args = self.place(found, context)
        t = self.type_of(found)
        base = self.base(found)
        if self.is_view(found, context):
            node = self.loaded.get(found.key)
            if node is None:
                node = Node(f"{base}[{keys}]", args, t, memory=found.reg)
                self.loaded[found.key] = node
            return node
        if not args:
            return Node(f"{base}[{keys}].item()", (), t, lanes=False)
        if len(found.axes) == 1:
            return Node(f"{base}.take({keys})", args, t)
        return Node(f"{base}[{keys}]", args, t)
