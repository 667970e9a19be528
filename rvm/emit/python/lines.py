"""Nodes of one instruction as lines of Python.

A value that is used once is written where it is used, unless the instruction has changed something
in between; a value that is used several times has a variable.  So all values of a line are
evaluated before the line changes anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from rvm.emit.python.builder import ARRAY, TAKEN, same
from rvm.ir.node import Node
from rvm.ir.typed import Unprintable
from rvm.leaf.ops import WIDTHS, limits, signed
from rvm.numbers import fill
from rvm.program import Function
from rvm.types import elem_of

MAX_HEIGHT = 16
"""Levels of functions that one line of source nests: Python's parser takes 200 parentheses."""
TEXTS = {
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "ugt": "(not 0 <= {0} <= {1})",
    "and": "({0} and {1})",
    "or": "({0} or {1})",
    "xor": "(not {0})",
    "wadd": "({0} + {1})",
    "wsub": "({0} - {1})",
    "wmul": "({0} * {1})",
    "udiv": "({0} // {1})",
    "select": "({1} if {0} else {2})",
    "sext": "{0}",
    "zext": "{0}",
}
"""Operations on indices, lengths and conditions."""
PARTS = (".real", ".imag")
JOINED = "complex({1}, {0}.imag)", "complex({0}.real, {1})"
"""A complex number with another part."""
STORES = ("set", "store")
CHANGES = frozenset(["if", "poke", "text"])
EFFECTS = CHANGES.union(["set", "store", "trouble", "bound", "line"])
PRINTED = frozenset(["text", "way", "perform", "done", "between", "edge"])
"""Items without values: existing lines, and marks."""
FIXED = frozenset(["constant", "argument", "slot"])
"""Operations whose value does not depend on their position."""
COUNTED = {"wadd": "+=", "wsub": "-="}
AUGMENTED = {f"({{0}} {sign} {{1}})": sign for sign in "+-*/^"}
"""Templates that are augmented assignments, and their operators."""


class Lines:
    """The lines of an instruction, as they are printed.

    `names` are the registers' variables, `constant` writes constants.  `viewed` says that elements
    of an array are read and written through a memoryview of it, `x_m`, which gives Python's
    numbers.
    """

    def __init__(
        self, function: Function, names: Sequence[str], constant: Callable[[Any], str], viewed: bool
    ) -> None:
        self.function = function
        self.names = names
        self.constant = constant
        self.viewed = viewed
        self.elements: set[int] = set()
        """Array registers whose elements are accessed through a memoryview."""
        self.temps = 0
        """The number of variables used for values."""
        self.begin()

    def begin(self) -> None:
        """Start again without operations."""
        self.lines: list[str] = []
        self.done: int | None = None
        """The number of lines that execute the instruction; later ones only count it."""
        self._named: dict[Node, str] = {}
        self._own: set[Node] = set()
        """The values that have a line of their own."""
        self.checked: set[str] = set()
        """Variables that an earlier line has checked not to be negative."""
        self._read: set[tuple[object, ...]] = set()
        """The elements that are read in any case."""

    # ------------------------------------------------------------ operations in order

    def print(self, items: Sequence[Node], *results: Node) -> None:
        """Lines for operations; what they give to `results` can then be asked for."""
        self._own = lines_apart(items, results)
        self._do(items)

    def _do(self, items: Sequence[Node]) -> None:
        k = 0
        while k < len(items):
            node = items[k]
            match node.op:
                case "set" | "store":
                    begun = k
                    while k + 1 < len(items) and items[k + 1].op in STORES:
                        k += 1
                    self._stores(items[begun : k + 1])
                case "trouble":
                    self.lines.append(f"if {bare(self.text(node.args[0]))}: trouble()")
                case "bound":
                    self._bound(node.args[0])
                case "poke":
                    self._store(node)
                case "line":
                    self.lines.append(self._filled(node.aux, node.args))
                case "text":
                    self.lines += node.aux[0]
                case "done" | "between":
                    self.done = len(self.lines)
                case "if":
                    self.lines.append(f"if {bare(self.text(node.args[0]))}:")
                    outer, self.lines = self.lines, []
                    self._do(node.aux[0])
                    outer.extend("    " + line for line in self.lines or ["pass"])
                    self.lines = outer
                case _ if node in self._own:
                    self._name(node)
            k += 1

    def _bound(self, index: Node) -> None:
        """A line that bails out if an index is negative; indexing detects one that is too large."""
        if index.op == "constant" and index.aux < 0:
            self.lines.append("trouble()")
        elif not is_nonnegative(index):
            text = self.text(index)
            if not text.isidentifier():
                text = self._name(index)
            if text not in self.checked:
                self.lines.append(f"if {text} < 0: trouble()")
                self.checked.add(text)

    def _name(self, node: Node) -> str:
        text = self.text(node)
        name = self._named[node] = self.temp()
        self.lines.append(f"{name} = {bare(text)}")
        return name

    def _stores(self, nodes: Sequence[Node]) -> None:
        """Assignments, whose values are all found before the first one."""
        if len(nodes) == 1:
            self._store(nodes[0])
            return
        values = ", ".join(self.text(node.args[0]) for node in nodes)
        for node in nodes:
            if node.op == "store" and (node.aux[0], *map(same, node.args[1:])) not in self._read:
                # An index that is too large is found here, before anything has changed.
                self.lines.append(self._target(node))
        targets = ", ".join(map(self._target, nodes))
        self.lines.append(f"{targets} = {values}")

    def _target(self, node: Node) -> str:
        """The target of an assignment."""
        if node.op == "poke":
            return self.text(node.args[1])
        return node.aux.name if node.op == "set" else self._element(node.aux[0], node.args[1:])

    def _store(self, node: Node) -> None:
        value, target = node.args[0], self._target(node)
        if value.op in COUNTED and value.args[0].op in ("get", "peek"):
            one, other = map(self.text, value.args)
            if one == target:
                self.lines.append(f"{target} {COUNTED[value.op]} {bare(other)}")
                return
        if value.op == "template" and len(value.args) == 2 and value not in self._named:
            template, fn = value.aux
            old, by = value.args
            kept = old.op in ("get", "load") and self.text(old) == target
            if kept and fn in "+-" and by.op == "constant" and node.op == "set":
                kind = value.kind
                if kind in WIDTHS and signed(kind) and 0 <= by.aux < 2**31:
                    # Only one end of the range can be passed, so one comparison finds it.
                    low, high = limits(kind)
                    passed = f">= {high + 1}" if fn == "+" else f"< {low}"
                    self.lines.append(f"{target} {fn}= {by.aux}")
                    self.lines.append(f"if {target} {passed}: {target} = wrap_{kind}({target})")
                    return
            if kept and (sign := AUGMENTED.get(template)):
                self.lines.append(f"{target} {sign}= {bare(self.text(by))}")
                return
        self.lines.append(f"{target} = {bare(self.text(value))}")

    # ------------------------------------------------------------ values

    def text(self, node: Node) -> str:
        """A value as Python source: an atom, or in parentheses."""
        name = self._named.get(node)
        if name is not None:
            return name
        match node.op:
            case "get" | "argument":
                return node.aux.name  # type: ignore[no-any-return]
            case "constant":
                return self.constant(node.aux)
            case "slot":
                return f"{self.text(node.args[0])}[{node.aux}]"
            case "peek":
                return self.text(node.args[0])
            case "load":
                return self._loaded(node)
            case "dim":
                return f"{self.names[node.aux[0]]}.shape[{node.aux[1]}]"
            case "part":
                return self.text(node.args[0]) + PARTS[node.aux]
            case "joined":
                return self._filled(JOINED[node.aux], node.args)
            case "lazy":
                template, rest = node.aux
                texts = (self.inside(items, value) for items, value in rest)
                return fill(template, self.text(node.args[0]), *texts)
            case "template":
                return self._filled(node.aux[0], node.args)
        if node.op not in TEXTS:
            raise Unprintable
        return self._filled(TEXTS[node.op], node.args)

    def _filled(self, template: str, args: Sequence[Node]) -> str:
        """A template with its arguments and new temporaries filled in."""
        texts = [self.text(a) for a in args]
        return (
            fill(template, *texts, fresh=self.temp() + "_")
            if "{t" in template
            else fill(template, *texts)
        )

    def temp(self) -> str:
        """A variable that is not used yet."""
        self.temps += 1
        return f"_{self.temps}"

    def _element(self, reg: int, indices: Sequence[Node]) -> str:
        name = self.names[reg]
        if self.viewed and not self._elem_is_complex(reg):
            self.elements.add(reg)
            name += "_m"
        return f"{name}[{', '.join(bare(self.text(i)) for i in indices)}]"

    def _elem_is_complex(self, reg: int) -> bool:
        return elem_of(self.function.registers[reg].type).is_complex

    def _loaded(self, node: Node) -> str:
        """An element, as a Python number: NumPy's complex ones multiply with other roundings."""
        reg, part = node.aux
        found = self._element(reg, node.args)
        self._read.add((reg, *map(same, node.args)))
        if self.viewed and not self._elem_is_complex(reg):
            return found
        name = self.names[reg]
        if len(node.args) == 1:
            found = f"{name}.item({found[len(name) + 1 : -1]})"
        else:
            found += ".item()"
        whole = node.kind == elem_of(self.function.registers[reg].type).name
        return found if whole else found + PARTS[part]

    def inside(self, items: Sequence[Node], value: Node) -> str:
        """A value that is evaluated within a line, with the checks before it."""
        named, read, checks = dict(self._named), set(self._read), list[str]()
        for node in items:
            if node.op == "trouble":
                checks.append(self.text(node.args[0]))
            elif node.op == "bound" and not is_nonnegative(node.args[0]):
                text = self.text(node.args[0])
                if not text.isidentifier():
                    name = self.temp()
                    text, self._named[node.args[0]] = f"({name} := {bare(text)})", name
                if text not in self.checked:
                    checks.append(f"{text} < 0")
        text = self.text(value)
        for check in reversed(checks):
            text = f"(trouble() if {check} else {text})"
        self._named, self._read = named, read
        return text


def lines_apart(items: Sequence[Node], results: Sequence[Node]) -> set[Node]:
    """The values that have a line of their own.

    Those that are used several times, those that are used behind a change, and some of those that
    nest deeply.
    """
    epochs: dict[Node, int] = {}
    """Operations in order, each with the number of changes before it."""

    def place(items: Sequence[Node], epoch: int) -> int:
        for node, after in zip_longest(items, items[1:]):
            for inner in _inner(node):
                place(inner, epoch)
            epochs[node] = epoch
            stores = node.op in STORES and (after is None or after.op not in STORES)
            epoch += stores or node.op in CHANGES
        return epoch

    last = place(items, 0)
    uses: Counter[Node] = Counter()
    found: set[Node] = set()

    def use(node: Node, times: int, epoch: int, user: str = "") -> None:
        if node.op not in FIXED:
            # An array in an expression is written out at each use: NumPy rounds the product of
            # one array with itself in another way.
            uses[node] += times if node.kind != ARRAY or user == "line" else not uses[node]
            if epochs[node] < epoch or (uses[node] > 1 and not is_cheap(node)):
                found.add(node)

    for node in results:
        use(node, 1, last)
    for node, epoch in reversed(epochs.items()):
        if node.op in EFFECTS or uses[node]:
            for value, times in _used(node):
                use(value, times, epoch, node.op)
    heights: dict[Node, int] = {}
    for node in epochs:
        below = [0 if a in found else heights.get(a, 0) for a, _ in _used(node)]
        heights[node] = max(below, default=0) + (node.op in ("template", "lazy"))
        if heights[node] == MAX_HEIGHT and node.kind != ARRAY:
            heights[node] = 0
            found.add(node)
    # Gaps are taken from the log in their order: what is taken before a line of its own has one.
    apart = False
    for node in reversed(epochs):
        if node.op == "template" and node.aux[1] == TAKEN:
            apart = apart or node in found
            if apart:
                found.add(node)
    return found


def _inner(node: Node) -> Iterable[Sequence[Node]]:
    """The operations inside another."""
    if node.op == "if":
        return node.aux[:2]  # type: ignore[no-any-return]
    return [items for items, _ in node.aux[1]] if node.op == "lazy" else ()


def _used(node: Node) -> list[tuple[Node, int]]:
    """The values that the text of an operation holds, and how often."""
    if node.op in ("line", "template"):
        template = node.aux if node.op == "line" else node.aux[0]
        return [(a, template.count(f"{{{k}}}")) for k, a in enumerate(node.args)]
    inside = [(value, 1) for _, value in node.aux[1]] if node.op == "lazy" else []
    return [*((a, 1) for a in node.args), *inside]


def is_cheap(node: Node) -> bool:
    """Whether a value costs no more than a variable."""
    match node.op:
        case "get" | "dim" | "constant" | "part" | "slot":
            return True
        case "template":
            return not node.args and bool(node.aux[0].isidentifier())
        case "sext" | "zext":
            return is_cheap(node.args[0])
    return False


def is_nonnegative(node: Node) -> bool:
    """Whether the form of an integer shows that it is not negative."""
    match node.op:
        case "constant":
            return bool(node.aux >= 0)
        case "dim":
            return True
        case "sext" | "zext":
            return is_nonnegative(node.args[0])
        case "template" if node.kind in WIDTHS and signed(node.kind):
            fn, args = node.aux[1], node.args
            if fn == "&":
                return any(map(is_nonnegative, args))
            if fn == "%":
                return args[1].op == "constant" and args[1].aux > 0
            if fn == "i64":
                return WIDTHS.get(args[0].kind, 64) < 64 and is_nonnegative(args[0])
            return fn == ">>" and is_nonnegative(args[0])
    return node.kind in WIDTHS and not signed(node.kind)


def bare(text: str) -> str:
    """Without one pair of outer parentheses, where they enclose it all."""
    if not (text.startswith("(") and text.endswith(")")) or ":=" in text:
        return text
    depth = 0
    for k, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]
