"""The costs of a function and its gradient: by the paper's accounts, and as the machine counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rvm.isa.rows import COSTS
from rvm.library.handle import FunctionHandle
from rvm_pure.cost import Cost, figure, work
from rvm_pure.definition import Definition
from rvm_pure.types import is_active
from rvm_pure.zeros import filled, zeros


def counted(f: Definition, handle: FunctionHandle, sizes: Mapping[str, int]) -> Cost:
    """The machine's count for adding the value of a function, with all arguments one half."""
    given = {p.name: filled(p.type, sizes, lambda t: 0.5 if is_active(t) else 1) for p in f.params}
    assert f.body.type is not None
    out = zeros(f.body.type, sizes)
    m = handle.with_options(engine="reference").machine(**{handle.parameters[0]: out}, **given)
    counts = m.count()
    m.run()
    found = dict.fromkeys(COSTS, 0)
    for node in counts.nodes():
        for pc in range(len(node.code)):
            for times, cost in node.costs(pc):
                for kind, k in cost.work.items():
                    found[kind.cls] += times * k
    return Cost(*(found[c] for c in COSTS))


@dataclass(frozen=True, slots=True)
class Row:
    """Three accounts: figure 11's, the one for which the bound holds, and the machine's count."""

    stage: str
    figure: Cost
    work: Cost
    machine: Cost

    @classmethod
    def of(cls, stage: str, f: Definition, handle: FunctionHandle, sizes: Mapping[str, int]) -> Row:
        """The accounts of a function that `handle` calls."""
        return cls(stage, figure(f.body, sizes), work(f.body, sizes), counted(f, handle, sizes))


@dataclass(frozen=True, slots=True)
class Account:
    """The costs of a function and its gradient at some lengths."""

    source: Row
    gradient: Row
    nesting: int
    kappa: float

    @property
    def bound(self) -> float:
        """The most that the gradient's work may be, in parts of the function's."""
        return float(self.kappa * 3**self.nesting)

    @property
    def ratio(self) -> float:
        """The gradient's work in parts of the function's."""
        return self.gradient.work.total / max(1, self.source.work.total)

    def __str__(self) -> str:
        lines = [f"{'':14}" + "".join(f"{c:>9}" for c in COSTS)]
        for row in (self.source, self.gradient):
            for name in ("figure", "work", "machine"):
                counts = getattr(row, name).counts
                label = {"figure": "figure 11", "work": "work", "machine": "counted"}[name]
                lines.append(f"{label:14}" + "".join(f"{k:>9}" for k in counts))
            lines.insert(-3, row.stage)
        lines.append(
            f"work of the gradient {self.ratio:.2f} times the function's, at most "
            f"{self.bound:g}: kappa {self.kappa:.3g}, NAO {self.nesting}"
        )
        return "\n".join(lines)
