"""The lines of the report of `rvm check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rvm.codes.words import count
from rvm.faults import Diagnostic, InvertibilityError, RvmError, Where
from rvm_tools.digits import come_back_hint
from rvm_tools.trial import Trial


@dataclass(slots=True)
class CheckRow:
    """A line of the report: a check, its verdict, notes, and errors."""

    what: str
    verdict: str = "ok"
    say: str = ""
    errors: list[RvmError] = field(default_factory=list)
    engines: list[set[str]] = field(default_factory=list)
    """For each error the engines that gave it; none where no engine was at work."""
    warnings: dict[str, Diagnostic] = field(default_factory=dict)
    """About the text; of results that lost their digits in a run, by name, the first; and errors
    on generated inputs that rounding explains, by message."""
    lost_bits: dict[str, int] = field(default_factory=dict)
    off: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    erased_bits: int = 0
    residue_bytes: int = 0

    def fail(self, error: RvmError, engine: str | None = None) -> None:
        """Enter an error, once if several engines give the same."""
        self.verdict = "FAIL"
        by = {engine} if engine else set()
        for known, engines in zip(self.errors, self.engines, strict=True):
            if _text(known) == _text(error):
                engines |= by
                return
        self.errors.append(error)
        self.engines.append(by)

    def doubt(self, known: int, notes: tuple[str, ...]) -> None:
        """Turn errors except the first `known` into warnings, the first of each message."""
        for error in self.errors[known:]:
            for d in error.diagnostics:
                told = replace(d, severity="warning", notes=d.notes + notes)
                self.warnings.setdefault(d.message, told)
        del self.errors[known:], self.engines[known:]
        if not self.errors:
            self.verdict = "?"

    def name_engines(self, every: Sequence[str]) -> None:
        """Say in each error which engine gave it, unless all did."""
        for error, engines in zip(self.errors, self.engines, strict=True):
            if engines and engines != set(every):
                error.notes = (f"on the {', '.join(sorted(engines))} engine", *error.notes)

    def take(self, trial: Trial, inputs: Mapping[str, Any], where: Where) -> None:
        """Add a trial of a run on these inputs, requested at this place."""
        for lost in trial.digits or ():
            self.warnings.setdefault(lost.name, lost.warning(inputs, where))
        self.steps = max(self.steps, trial.steps)
        self.erased_bits = max(self.erased_bits, trial.erased_bits)
        self.residue_bytes = max(self.residue_bytes, trial.residue_bytes)
        for d in trial.lost:
            self.lost_bits[d.name] = max(self.lost_bits.get(d.name, 0), d.bits)
            self.off[d.name] = max(self.off.get(d.name, 0.0), d.off)
        if trial.failed is not None:
            self.fail(trial.failed, trial.engine)
        for d in trial.lost:
            if not d.within:
                self.fail(
                    InvertibilityError(
                        "C001",
                        f"`{d.name}` did not come back to what it was",
                        values={"bits off": d.bits, "numbers": f"{d.numbers} of {d.of}"},
                        hint=come_back_hint(trial.digits),
                    ),
                    trial.engine,
                )

    def summary(self, strict: bool) -> str:
        """A summary of the trials."""
        parts = [count(self.steps, "step")]
        lost = ", ".join(f"{k} {n} ({self.off[k]:.1g})" for k, n in self.lost_bits.items())
        parts.append(f"lost bits: {lost}" if lost else "every bit comes back")
        digits = [name for name, w in self.warnings.items() if w.code == "C006"]
        if digits:
            parts.append(f"digits lost: {', '.join(digits)}")
        if self.erased_bits:
            parts.append(f"{self.erased_bits:,} bits erased")
        if strict:
            parts.append(f"{self.residue_bytes:,} bytes in the residue log")
        return ", ".join(parts)


def _text(error: RvmError) -> str:
    return "\n".join(d.human() for d in error.diagnostics)
