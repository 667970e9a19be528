"""Rounds of loops split, as `rvm.ir.fission` finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rvm.ir.ahead import READS
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.fission import Fission
from rvm.ir.joined_rounds import between
from rvm.ir.node import I64, Node, Var
from rvm.ir.operations import CASTS, MNEMONICS
from rvm.ir.statements import instruction_at
from rvm.ir.typed import Unprintable
from rvm.ir.values import scalar

MANY = 1024
"""The iterations whose conditions are computed at once: what they read stays in the cache."""
FEW = 16
"""The fewest that are split."""
PLAIN = (READS - {"written", "table"}) | MNEMONICS.keys() | CASTS
"""Operations that may be done twice: they change nothing, and take little time."""
Key = tuple[object, ...]
"""An element of an array, by the expression that finds it."""
Known = dict[Key, Node]
"""The values of elements that differ from those in memory."""


def split(b: FunctionBuilder, fission: Fission, rest: str, past: str) -> None:
    """Many iterations at a time; continue at `rest` if some are left, otherwise at `past`.

    Unprintable if the loop needs no splitting, or an iteration takes more than plain operations.
    """
    rounds = fission.rounds
    variable = b.scalars[rounds.variable][0]
    end = scalar(b, rounds.end)
    some, begin, done = b.fresh("split"), b.fresh("begin"), b.fresh("done")
    b.jump(some)
    b.block(some)
    at = b.get(variable)
    left = between(b, at, end, rounds.step)
    b.fork(b.op("uge", left, b.i64(FEW)), begin, done)
    b.block(begin)
    many = b.intrinsic("smin", left, b.i64(MANY))
    behind = b.op("add", at, b.product(many, b.i64(rounds.step)))
    first = b.op("add", at, b.i64(rounds.step * rounds.early))
    if rounds.step < 0:
        first = b.op("add", behind, b.i64(1 - rounds.early))
    made = _Split(b, fission, variable)
    made.ask(first, many, lambda: b.set(variable, at), rest)
    for k in range(len(fission.gathers)):
        made.gather(k, first, many)
    b.nest((many,), lambda k: made.change(b.op("add", first, k[0])))
    b.set(variable, behind)
    b.count(b.product(many, b.i64(rounds.cycle.back - rounds.cycle.head)))
    b.jump(some)
    b.block(done)
    b.fork(b.op("eq", at, end), past, rest)


class _Split:
    """The parts of a split loop."""

    def __init__(self, b: FunctionBuilder, fission: Fission, variable: Var) -> None:
        self.b = b
        self.fission = fission
        self.variable = variable
        self.gathered = frozenset(pc for by in fission.gathers for pc in by)
        self.asked = bool(fission.gathers)
        """Whether the loop is worth splitting."""

    def ask(self, first: Node, many: Node, back: Callable[[], None], rest: str) -> None:
        """Go to `rest`, after `back`, if a condition holds in any iteration."""
        b = self.b
        bad, known = b.variable(I64, "bad"), Known()
        b.set(bad, b.i64(0))

        def test(condition: Node) -> None:
            self.asked = True
            b.set(bad, b.op("or", b.get(bad), b.op("zext", condition, kind=I64)))

        def one(k: Sequence[Node]) -> None:
            b.set(self.variable, b.op("add", first, k[0]))
            known.clear()
            for pc in self.fission.body:
                self._instruction(pc, known, test)

        b.nest((many,), one)
        if not self.asked:
            raise Unprintable
        back()
        b.stay(b.op("eq", b.get(bad), b.i64(0)), rest)

    def gather(self, k: int, first: Node, many: Node) -> None:
        """What iterations add to elements of one array."""
        b = self.b
        by = self.fission.gathers[k]
        least, most = min(by.values()), max(by.values())
        # Near both ends elements receive from fewer iterations.
        far = most - least
        behind = b.op("add", first, many)
        for n in range(far):
            self._element(by, b.op("add", first, b.i64(least + n)), range(least, least + n + 1))
            self._element(by, b.op("add", behind, b.i64(least + n)), range(least + n + 1, most + 1))
        inner = b.op("add", first, b.i64(most))
        whole = b.op("sub", many, b.i64(far))
        b.nest(
            (whole,), lambda k: self._element(by, b.op("add", inner, k[0]), range(least, most + 1))
        )

    def _element(self, by: Mapping[int, int], at: Node, distances: range) -> None:
        """Add to one element what the iterations at some distances give, in their order."""
        b = self.b
        found: Node | None = None
        place: Node | None = None
        for d in distances if self.fission.rounds.step < 0 else reversed(distances):
            b.set(self.variable, b.op("sub", at, b.i64(d)))
            known = Known()
            for pc in self.fission.body:
                if by.get(pc) == d:
                    place, found = self._sum(pc, known, found)
                elif pc not in self.gathered:
                    self._instruction(pc, known, _ignored)
        if place is not None and found is not None:
            b.do("store", found, *place.args[1:], aux=place.aux)

    def _sum(self, pc: int, known: Known, found: Node | None) -> tuple[Node, Node]:
        """The store of an element to which an instruction adds, and its value after that."""
        items = self._items(pc)
        stores = [n for n in items if n.op == "store"]
        if len(stores) != 1:
            raise Unprintable
        key = _key(stores[0], stores[0].args[1:])
        if found is not None:
            known[key] = found
        new = _replayed(self.b, items, known, _ignored)
        at = tuple(new.get(a, a) for a in stores[0].args[1:])
        return Node("store", "", (stores[0].args[0], *at), stores[0].aux), known[key]

    def change(self, at: Node) -> None:
        """The changes of an iteration that has no conditions, apart from what is gathered."""
        self.b.set(self.variable, at)
        for pc in self.fission.body:
            if pc not in self.gathered:
                _replayed(self.b, self._items(pc), None, _ignored)

    def _instruction(self, pc: int, known: Known, test: Callable[[Node], None]) -> None:
        _replayed(self.b, self._items(pc), known, test)

    def _items(self, pc: int) -> list[Node]:
        return self.b.inside(lambda: instruction_at(self.b, pc))


def _ignored(condition: Node) -> None:
    """A condition that is known not to hold."""


def _key(node: Node, at: Sequence[Node]) -> Key:
    return (node.aux, *map(_form, at))


def _form(node: Node) -> Key:
    return (node.op, node.aux, *map(_form, node.args))


def _replayed(
    b: FunctionBuilder,
    items: Sequence[Node],
    known: Known | None,
    test: Callable[[Node], None],
) -> Mapping[Node, Node]:
    """Append operations again, as if no rare condition held; each is given to `test`.

    With `known` nothing changes but variables: elements have their new values there.
    """
    new: dict[Node, Node] = {}
    for node in items:
        args = [new.get(a, a) for a in node.args]
        match node.op:
            case "trouble":
                test(args[0])
            case "if" if node.aux[2]:
                test(args[0])
                new |= _replayed(b, node.aux[1], known, test)
            case "store" if known is not None:
                known[_key(node, node.args[1:])] = args[0]
            case "load" if known is not None and (key := _key(node, node.args)) in known:
                new[node] = known[key]
            case "set" if known is None or node.aux is not b.erased:
                b.set(node.aux, *args)
            case "set":
                pass
            case "store" | "erased":
                if known is None:
                    b.do(node.op, *args, aux=node.aux)
            case name if name in PLAIN:
                new[node] = b.op(name, *args, kind=node.kind, aux=node.aux)
            case _:
                raise Unprintable
    return new
