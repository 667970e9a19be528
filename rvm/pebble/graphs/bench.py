"""Circuits in ISCAS .bench text as graphs: a gate is a node.

    # a comment
    INPUT(a)
    INPUT(b)
    OUTPUT(y)
    y = NAND(a, b)
    z = LUT 0x8e (a, b, y)

Signals may be used before they are defined, and keywords may be in lower case.  Gates are AND,
NAND, OR, NOR, XOR and XNOR of two or more signals, NOT, BUF, BUFF of one, and the constants `vdd`
and `gnd`, without parentheses.  Bit m of a look-up table is its value for the inputs that are the
bits of m, with the first input lowest.  An output that is also an input is always available, and is
omitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from os import PathLike
from typing import NamedTuple

from rvm.faults import InputError, Where
from rvm.host.read import read_bytes
from rvm.pebble.graphs.dag import Dag

MANY = frozenset({"AND", "NAND", "OR", "NOR", "XOR", "XNOR"})
ONE = frozenset({"NOT", "BUF", "BUFF"})

SIGNAL = r"[^\s(),=#]+"
PORT = re.compile(rf"(INPUT|OUTPUT)\s*\(\s*({SIGNAL})\s*\)$", re.IGNORECASE)
GATE = re.compile(
    rf"({SIGNAL})\s*=\s*(?:(\w+)\s*\(([^()]*)\)|LUT\s+(0x[0-9a-f]+)\s*\(([^()]*)\)|(vdd|gnd))$",
    re.IGNORECASE,
)


class Place(NamedTuple):
    """A line of the text."""

    source: str
    number: int
    text: str

    def wrong(self, message: str, word: str = "", hint: str = "") -> InputError:
        """P009 at a word of this line."""
        start = self.text.find(word) if word else len(self.text) - len(self.text.lstrip())
        end = start + len(word) if word else len(self.text.rstrip())
        where = Where(self.source, self.number, start + 1, end + 1, self.text)
        return InputError("P009", message, where=where, hint=hint)


class Gate(NamedTuple):
    """A gate: its kind, what it reads, its line; of LUT, VDD and GND the values of its table."""

    kind: str
    reads: tuple[str, ...]
    place: Place
    table: int = 0


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit: its signals as they are named, its gates, and their graph."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Those that are gates, in the order of the text."""
    gates: Mapping[str, Gate]
    dag: Dag


def parse_bench(text: str, source: str = "<text>") -> Dag:
    """The graph of a circuit.  InputError P009 names the line of what is wrong."""
    return parse_circuit(text, source).dag


def parse_circuit(text: str, source: str = "<text>") -> Circuit:
    """A circuit with its gates.  InputError P009 names the line of what is wrong."""
    inputs: dict[str, Place] = {}
    outputs: dict[str, Place] = {}
    gates: dict[str, Gate] = {}
    place = Place(source, 1, "")
    for number, line in enumerate(text.splitlines(), 1):
        place = Place(source, number, line)
        content = line.split("#")[0].strip()
        if not content:
            continue
        if port := PORT.match(content):
            kind, name = port[1].upper(), port[2]
            ports = inputs if kind == "INPUT" else outputs
            if name in ports:
                raise place.wrong(f"`{name}` is an {kind.lower()} twice", name)
            if ports is inputs and name in gates:
                raise place.wrong(f"`{name}` is a gate in line {gates[name].place.number}", name)
            ports[name] = place
        elif found := GATE.match(content):
            name = found[1]
            for known in (inputs.get(name), gates[name].place if name in gates else None):
                if known is not None:
                    raise place.wrong(f"`{name}` is defined in line {known.number} already", name)
            gates[name] = _gate(found, place)
        else:
            raise place.wrong(
                "this is not a line of a circuit",
                hint="lines are INPUT(a), OUTPUT(y), y = NAND(a, b), y = LUT 0x7 (a, b), y = vdd, "
                "or comments after #",
            )
    for gate in gates.values():
        for name in gate.reads:
            if name not in gates and name not in inputs:
                raise gate.place.wrong(f"`{name}` is not defined", name)
    for name, at in outputs.items():
        if name not in gates and name not in inputs:
            raise at.wrong(f"`{name}` is not defined", name)
    wanted = [name for name in outputs if name in gates]
    if not wanted:
        raise place.wrong("the circuit has no gate as an output")
    _no_cycle(gates)
    dag = Dag.of({name: gate.reads for name, gate in gates.items()}, wanted)
    return Circuit(tuple(inputs), tuple(wanted), gates, dag)


def load_bench(path: str | PathLike[str]) -> Dag:
    """The graph of a circuit in a file."""
    return load_circuit(path).dag


def load_circuit(path: str | PathLike[str]) -> Circuit:
    """A circuit in a file, with its gates."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("P009", "this is not UTF-8 text", where=Where(str(path))) from None
    return parse_circuit(text, str(path))


def _gate(found: re.Match[str], place: Place) -> Gate:
    _, word, arguments, table, entries, constant = found.groups()
    if constant:
        return Gate(constant.upper(), (), place, int(constant.upper() == "VDD"))
    reads = tuple(name.strip() for name in (entries if table else arguments).split(","))
    for name in reads:
        if not re.fullmatch(SIGNAL, name):
            raise place.wrong(f"`{name}` is not the name of a signal", name)
    if table:
        if int(table, 16) >> (1 << len(reads)):
            raise place.wrong(
                f"the table {table} has more than the {1 << len(reads)} values for "
                f"{len(reads)} input{'s' * (len(reads) > 1)}",
                table,
            )
        return Gate("LUT", reads, place, int(table, 16))
    kind = word.upper()
    if kind == "DFF":
        raise place.wrong("a flip-flop has a state, and the circuit no order of its own", word)
    if kind not in MANY | ONE:
        raise place.wrong(
            f"there is no gate `{word}`", word, f"gates: {', '.join(sorted(MANY | ONE))}"
        )
    if kind in ONE and len(reads) != 1:
        raise place.wrong(f"{kind} has one input, not {len(reads)}", word)
    if kind in MANY and len(reads) < 2:
        raise place.wrong(f"{kind} has two inputs or more", word)
    return Gate(kind, reads, place)


def _no_cycle(gates: dict[str, Gate]) -> None:
    """Refuse gates that depend on themselves, at the line of one that does."""
    reads = {name: [u for u in gate.reads if u in gates] for name, gate in gates.items()}
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        name, *others = error.args[1][:0:-1]
        shown = " <- ".join([name, *others[:5], *(["..."] if len(others) > 5 else []), name])
        message = f"`{name}` is computed from itself: {shown}"
        raise gates[name].place.wrong(message, name) from None
