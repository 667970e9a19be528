"""Elements of arrays, in the lanes of a context: where they are, how they are read and stored."""

from __future__ import annotations

from rvm.engines.vector.access import Access, Axis
from rvm.engines.vector.graph import Node
from rvm.engines.vector.values import Context, Values
from rvm.types import Scalar, elem_of


class Elements(Values):
    """Makes nodes of elements."""

    def prepare(self) -> None:
        """Begin with no indices."""
        self.starts: list[str] = []
        """Lines that find the first index of each run of indices."""
        self.bounds: list[str] = []
        """Lines that check both ends of runs, when the number of lanes is known."""
        self.loaded: dict[object, Node] = {}
        """Views of elements, by their keys."""
        self._firsts: dict[object, str] = {}
        self._slices: dict[object, str] = {}
        self._bounded: set[object] = set()

    def rate_text(self, axis: Axis) -> str:
        """By how much an affine index grows from lane to lane."""
        stride = self.counted.stride
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
            self._use(axis.index)
            lines, text = self.printer.scalar(axis.index)
            self.starts.extend(lines)
            found = self._firsts[axis.key] = f"_f{len(self._firsts)}"
            self.starts.append(f"{found} = {text}")
        return found

    def printer_text(self, axis: Axis) -> str:
        """A fixed index."""
        return self.fixed(axis.index).template

    def base(self, found: Access) -> str:
        """The array that an element is one of."""
        self.used.add(found.reg)
        name = self.printer.regs[found.reg]
        return name + {"": "", "re": ".real", "im": ".imag"}[found.part]

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
        args: list[Node] = []
        keys = []
        for k, axis in enumerate(found.axes):
            length = f"{self.base(found)}.shape[{k}]"
            if axis.rest is not None and not axis.rate:
                first = self.first(axis)
                self._bound((found.reg, k, axis.key), f"within({first}, {first}, {length})")
                keys.append(first)
                continue
            if axis.rest is not None:
                # A fixed index that is affine in no lane's own values: the lanes are counted.
                first, rate = self.first(axis), self.rate_text(axis)
                lanes = Node(f"steps({first}, {rate}, _k)")
                if context.sel is not None:
                    lanes = Node(f"({first} + {rate} * {{0}})", (context.sel,))
            else:
                lanes = self.value(axis.index, context)
                if not lanes.lanes:
                    lanes = Node("np.full({1}, {0})", (lanes, context.count))
            keys.append(f"{{{len(args)}}}")
            args.append(Node(f"inside({{0}}, {length})", (lanes,)))
        return ", ".join(keys), tuple(args)

    def _run(self, found: Access, k: int) -> str:
        """One index of a slice."""
        axis = found.axes[k]
        first, length = self.first(axis), f"{self.base(found)}.shape[{k}]"
        bound = (found.reg, k, axis.key)
        if not axis.rate:
            self._bound(bound, f"within({first}, {first}, {length})")
            return first
        rate = self.rate_text(axis)
        self._bound(bound, f"within({first}, {first} + {rate} * (_k - 1), {length})")
        name = self._slices.get(axis.key)
        if name is None:
            name = self._slices[axis.key] = f"_s{len(self._slices)}"
            self.bounds.append(f"{name} = run_of({first}, {rate}, _k)")
        return name

    def _bound(self, key: object, line: str) -> None:
        if key not in self._bounded:
            self._bounded.add(key)
            self.bounds.append(line)

    def one(self, found: Access) -> Node:
        """The element that the first lane reaches."""
        for k in range(len(found.axes)):
            first = self.first(found.axes[k])
            length = f"{self.base(found)}.shape[{k}]"
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
