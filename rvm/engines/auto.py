"""The choice of the engine `auto`, by what is installed, requested and to be run.

Results are the same to the bit on all engines, so the choice affects only the time.  Programs begin
in generated Python and change to machine code after a while; without LLVM, to loops as NumPy
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rvm.engines import ENGINES, engine
from rvm.engines.extent import first_chunk
from rvm.engines.protocol import Engine
from rvm.engines.python import Python
from rvm.faults import UsageError
from rvm.host.once import once
from rvm.image import Code, Image
from rvm.state import Options, State

if TYPE_CHECKING:
    from rvm.probes import Armory

WARM = 100_000
"""Ticks of generated Python after which compiling is worth its time."""
ARMED_WARM = 2_000_000
"""The same for code with traps, which is compiled for these alone."""
A_CALL = 50
"""Ticks that take about as long as entering generated Python."""


class Choice(NamedTuple):
    """The engines with which a run begins and continues, and the reasons."""

    first: str
    then: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        way = self.first if self.first == self.then else f"{self.first}, then {self.then}"
        return f"{way}: {'; '.join(self.reasons)}"


def choose(image: Image, name: str, options: Options) -> Choice:
    """The choice of `auto` for a function."""
    if not options.checks:
        return _only("native", "only machine code can leave out the checks")
    if options.bits == "machine":
        return _only("python", 'NumPy and libm compute for it, as `bits="machine"` has it')
    traits = traits_of(image, name)
    if not native_is_there():
        missing = 'there is no machine code here, for reasons that `engine="native"` gives'
        if not traits.loops:
            return _only("python", missing)
        pays = f"long loops pay as NumPy operations, after about {WARM:,} ticks"
        return Choice("python", "vector", (missing, pays))
    if traits.acting:
        return _only(
            "python", f"each iteration of a loop may {traits.acting}, which no engine compiles"
        )
    pays = f"compiling pays after about {WARM:,} ticks, or {WARM // A_CALL:,} calls"
    return Choice("python", "native", (pays, "all engines agree to the bit"))


def _only(engine: str, reason: str) -> Choice:
    return Choice(engine, engine, (reason,))


def lanes_engine(code: Code, options: Options) -> str:
    """The choice of `auto` for lanes: the same for all of a program's runs, in both directions."""
    choice = choose(code.image, code.name, options)
    if "native" not in (choice.first, choice.then) or not traits_of(code.image, code.name).loops:
        return "vector"
    return "native" if not options.checks or is_all_compiled(code.image, code.name) else "vector"


def is_all_compiled(image: Image, name: str) -> bool:
    """Whether machine code can execute every instruction of a function, in both directions.

    A lane that reaches another instruction would have to continue alone.
    """
    from rvm.ir.function import plan_of

    key = (is_all_compiled, name)
    cache = image.program.cache
    if key not in cache:
        codes = [image.code(n, undo) for n in image.reachable(name) for undo in (False, True)]
        cache[key] = not any(plan_of(c, True, False).flow.apart for c in codes)
    return bool(cache[key])


def native_is_there() -> bool:
    """Whether machine code can be made and run here, as far as is known."""
    return ENGINES["native"].missing() is None


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties, of a function and all that it calls, on which the choice depends."""

    loops: bool
    acting: str
    """The effects in every iteration of every innermost loop; "" if there are none."""


def traits_of(image: Image, name: str) -> Traits:
    """The traits of a function, found once."""
    return once(image.program.cache, (Traits, name), Traits, lambda: _traits(image, name))


def _traits(image: Image, name: str) -> Traits:
    codes = [image.code(n, False) for n in image.reachable(name)]
    loops = any(map(_loops, codes)) or image.recurs(name)
    acts = [a for c in codes for a in _acting(c)]
    return Traits(loops, acts[0] if acts and all(acts) and not image.recurs(name) else "")


def _loops(code: Code) -> bool:
    return any(i.op == "br" and i.aux < pc for pc, i in enumerate(code.instrs))


def _acting(code: Code) -> Iterator[str]:
    """For each innermost loop, the effects in all its iterations; "" if there are none."""
    loops = [(i.aux, pc) for pc, i in enumerate(code.instrs) if i.op == "br" and i.aux < pc]
    for head, back in loops:
        if any(head < other < back for other, _ in loops):
            continue
        over, found = head, ""
        for pc in range(head + 1, back):
            instr = code.instrs[pc]
            if instr.op == "br":
                over = max(over, instr.aux)
            elif instr.op in ("print", "callback") and pc > over:
                found = instr.op.replace("callback", "call back")
        yield found


class Climber:
    """Machine code, with generated Python on the way out of a deep recursion.

    Frames in which machine code stopped are re-entered one at a time, which takes longer than the
    rest of the work in most of them.
    """

    def __init__(self, native: Engine, python: Engine) -> None:
        self._native = native
        self._python = python
        self._climbs = False

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks."""
        from rvm.engines.native.engine import FEW, MANY

        depth = len(state.frames)
        if self._climbs:
            did = self._python.advance(state, min(ticks, WARM))
            self._climbs = did < FEW * (depth - len(state.frames))
        else:
            did = self._native.advance(state, ticks)
            self._climbs = did < ticks and len(state.frames) <= depth - MANY
        return did


class Auto:
    """Two engines, one after the other."""

    name = "auto"
    exact = False

    def __init__(
        self,
        python: Engine | None = None,
        native: Callable[[], Engine] | None = None,
        vector: Callable[[], Engine] | None = None,
    ) -> None:
        self.python: Engine = Python() if python is None else python
        self._make_native = native or partial(engine, "native")
        self._make_vector = vector or partial(engine, "vector")
        self._native: Engine | None = None
        self._climber: Climber | None = None
        self._vector: Engine | None = None

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks with the engine whose turn it is."""
        root = state.frames[0].code
        choice = choice_of(root, state.options)
        armory = armory_of(state) if state.armed else None
        hot = is_hot(root) if armory is None else armory.heat >= ARMED_WARM
        if choice.then == "native" and (hot or choice.first == "native"):
            try:
                return self._compiled(choice).advance(state, ticks)
            except UsageError:
                if choice.first == "native" or native_is_there():
                    raise
                # LLVM cannot be loaded, as has been found out just now.
                return self.advance(state, ticks)
        if choice.then == "vector" and hot and not state.armed:
            return self.vector.advance(state, ticks)
        ticks = ticks if choice.then == "python" else min(ticks, WARM)
        did = self.python.advance(state, ticks)
        if armory is None:
            root.image.heat[root.name] += did + A_CALL
        else:
            armory.heat += did
        return did

    def first_chunk(self, state: State) -> int:
        """The number of ticks to run first."""
        root = state.frames[0].code
        warm = is_warm(root, choice_of(root, state.options))
        return first_chunk(self.native if warm else self.python, state)

    def _compiled(self, choice: Choice) -> Engine | Climber:
        if choice.first == "native":
            return self.native
        if self._climber is None:
            self._climber = Climber(self.native, self.python)
        return self._climber

    @property
    def native(self) -> Engine:
        """The native engine, made when it is needed."""
        if self._native is None:
            self._native = self._make_native()
        return self._native

    @property
    def vector(self) -> Engine:
        """The engine of loops as NumPy operations, made when it is needed."""
        if self._vector is None:
            self._vector = self._make_vector()
        return self._vector


def armory_of(state: State) -> Armory | None:
    """The armory that armed a state's frames."""
    from rvm.probes.armed import ArmedCode

    return next((f.code.armory for f in state.frames if isinstance(f.code, ArmedCode)), None)


def is_warm(code: Code, choice: Choice) -> bool:
    """Whether machine code goes next."""
    return choice.then == "native" and (choice.first == "native" or is_hot(code))


def is_hot(code: Code) -> bool:
    """Whether a function has run for so long that compiling it pays."""
    return code.image.heat[code.name] >= WARM


def choice_of(code: Code, options: Options) -> Choice:
    """The choice for an outermost frame, made once for each kind of options."""
    key = (Choice, options.strict, options.checks, options.bits, native_is_there())
    return once(code.compiled, key, Choice, lambda: choose(code.image, code.name, options))
