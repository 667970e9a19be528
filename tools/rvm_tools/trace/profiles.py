"""A trace in the formats of other tools: callgrind, Perfetto, speedscope, folded stacks.

Formats: the callgrind manual's "Callgrind Format Specification"; "Trace Event Format" (Google,
2016); speedscope's file-format-schema.json; Brendan Gregg's folded stacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rvm.accounts.counts import Node
from rvm_tools.streams import json_text
from rvm_tools.trace.account import CostAccount, SourceLine, Tally, line_of
from rvm_tools.trace.run import Trace

_ZEPTO = 1e-21
EVENTS = ("Ir", "Erased", "EnergyzJ")
"""Callgrind's events: instructions executed, bits erased, zeptojoules."""
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def events(trace: Trace, tally: Tally) -> tuple[int, int, int]:
    """A tally as callgrind's events."""
    return tally.executed, tally.erased_bits, round(trace.joules(tally) / _ZEPTO)


# ---------------------------------------------------------------- callgrind


def callgrind(trace: Trace) -> str:
    """A profile for callgrind_annotate and KCachegrind.

    What a recursive call costs is counted in the outermost call, so its own line has none.
    """
    account = trace.account
    out = [
        "# callgrind format",
        "version: 1",
        "creator: rvm trace",
        f"cmd: {trace.name}",
        f"desc: Energy: in zeptojoules, by the model {trace.model.name}",
        "positions: line",
        f"events: {' '.join(EVENTS)}",
        "",
        # Without a caller of its own the outermost function, should it recurse, would show nothing.
        "fl=(rvm)",
        "fn=(start)",
        *_start(trace),
        "",
    ]
    by_name: dict[str, list[Node]] = {}
    for node in account.nodes:
        by_name.setdefault(node.name, []).append(node)
    totals = Counter[int]()
    for name, nodes in by_name.items():
        out += _function(trace, name, nodes, totals)
    out.append(f"totals: {' '.join(str(totals[k]) for k in range(len(EVENTS)))}")
    return "\n".join(out)


def _start(trace: Trace) -> Iterator[str]:
    """The call of the outermost function."""
    account = trace.account
    for root in account.counts.roots:
        at = _first_line(root)
        yield f"0 {' '.join('0' for _ in EVENTS)}"
        yield f"cfi={_file(account, at)}"
        yield f"cfn={root.name}"
        yield f"calls=1 {at.number}"
        yield f"0 {' '.join(map(str, events(trace, account.total(root))))}"


def _function(trace: Trace, name: str, nodes: list[Node], totals: Counter[int]) -> list[str]:
    """A function's own costs by line, and its calls."""
    account = trace.account
    own: dict[SourceLine, Tally] = {}
    calls: dict[tuple[SourceLine, str], tuple[int, Tally, SourceLine]] = {}
    for node in nodes:
        for pc, tally in enumerate(account.tallies(node)):
            own.setdefault(line_of(node, pc), Tally()).add(tally)
        if node is account.counts.roots[0] and account.left.erased_bits and len(node.code):
            own[line_of(node, len(node.code) - 1)].add(account.left)
        for pc, callee in node.children.items():
            key = line_of(node, pc), callee.name
            n, inside, at = calls.get(key, (0, Tally(), _first_line(callee)))
            if callee.parent is node:
                inside.add(account.total(callee))
            calls[key] = n + node.done[pc], inside, at
    home = _first_line(nodes[0])
    out = [f"fl={_file(account, home)}", f"fn={name}"]
    here = home.source
    for line in sorted(own):
        costs = events(trace, own[line])
        called = [(to, *rest) for (at, to), rest in calls.items() if at == line]
        if not any(costs) and not called:
            continue
        if line.source != here:
            out.append(f"fi={_file(account, line)}")
            here = line.source
        out.append(f"{line.number} {' '.join(map(str, costs))}")
        totals.update(dict(enumerate(costs)))
        for to, n, inside, at in called:
            out += [
                f"cfi={_file(account, at)}",
                f"cfn={to}",
                f"calls={n} {at.number}",
                f"{line.number} {' '.join(map(str, events(trace, inside)))}",
            ]
    return [*out, ""]


def _first_line(node: Node) -> SourceLine:
    """The line of a function's first instruction as it is written."""
    code = node.code
    lines = [line_of(node, pc) for pc in range(len(code))]
    known = [line for line in lines if line.number]
    return min(known) if known else SourceLine(-1, 0)


def _file(account: CostAccount, line: SourceLine) -> str:
    return account.program.sources[line.source].name if line.number else "(no source)"


# ---------------------------------------------------------------- stacks


def folded(trace: Trace) -> str:
    """Call paths with the steps spent at their ends, for flame graphs."""
    stacks: Counter[str] = Counter()
    for node in trace.account.nodes:
        stacks[";".join(n.name for n in node.path)] += trace.account.own(node).ticks
    return "\n".join(f"{stack} {ticks}" for stack, ticks in stacks.items() if ticks)


_WEIGHTS: dict[str, Callable[[Trace, Tally], float]] = {
    "steps": lambda trace, tally: tally.ticks,
    "erased bits": lambda trace, tally: tally.erased_bits,
    "energy in zJ": lambda trace, tally: trace.joules(tally) / _ZEPTO,
}
"""The profiles of a speedscope file."""


def speedscope(trace: Trace) -> str:
    """A profile of call paths for steps, for erased bits and for energy."""
    account = trace.account
    frames: dict[str, int] = {}
    described: list[dict[str, Any]] = []
    for node in account.nodes:
        if node.name not in frames:
            frames[node.name] = len(described)
            line = _first_line(node)
            place = {"file": _file(account, line), "line": line.number} if line.number else {}
            described.append({"name": node.name, **place})
    profiles = []
    for name, weigh in _WEIGHTS.items():
        samples = []
        weights = []
        for node in account.nodes:
            weight = weigh(trace, account.own(node))
            if weight:
                samples.append([frames[n.name] for n in node.path])
                weights.append(weight)
        profiles.append(
            {
                "type": "sampled",
                "name": name,
                "unit": "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    return json_text(
        {
            "$schema": _SCHEMA,
            "name": f"{trace.name} {trace.way}",
            "exporter": "rvm trace",
            "activeProfileIndex": 0,
            "shared": {"frames": described},
            "profiles": profiles,
        }
    )


# ---------------------------------------------------------------- time


def perfetto(trace: Trace) -> str:
    """Calls as slices over time, a step drawn as a microsecond."""
    slices = trace.slices
    assert slices is not None, "traces for this format keep them"
    found: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": "rvm"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": trace.name}},
    ]
    for s in slices.kept:
        found.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "cat": "call",
                "name": s.name,
                "ts": s.begin,
                "dur": s.ticks,
            }
        )
    return json_text(
        {
            "traceEvents": found,
            "displayTimeUnit": "ns",
            "otherData": {
                "unit": "a microsecond stands for a step",
                "steps": trace.steps,
                "calls": slices.calls,
                "calls left out": slices.left_out,
                "shortest call shown, in steps": slices.least,
            },
        }
    )
