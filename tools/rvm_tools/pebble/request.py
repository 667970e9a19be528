"""A request to `rvm pebble`, and its terms for the planners."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvm.faults import InputError, RvmError, UsageError
from rvm_tools.cells import Table
from rvm_tools.files import Stored, read_value
from rvm_tools.literals import File, read_literal

TERMS = {
    "pebbles": "pebbles",
    "max_moves": "time",
    "memory": "bytes",
    "max_energy": "energy",
    "state_bytes": "state-bytes",
    "step_energy": "step-energy",
    "temperature": "temperature",
    "price": "price",
    "erasures": "erasures",
    "overwrite": "no-overwrite",
    "radix": "radix",
    "disk": "disk",
    "write": "write",
    "read": "read",
    "reversible_steps": "in-place",
    "costs": "costs",
    "sizes": "sizes",
    "blocks": "blocks",
    "strategy": "strategy",
    "goal": "goal",
    "time_limit": "time-limit",
    "rounds": "rounds",
    "seed": "seed",
}
"""The arguments of `rvm.pebble.plan` and `plan_dag`, and the options that give them."""
_OF_GRAPHS = frozenset(
    ("pebbles", "max_moves", "memory", "strategy", "costs", "sizes", "time_limit", "rounds", "seed")
)
BUDGETS = ("pebbles", "max_moves", "memory", "max_energy")
SEARCH = ("time_limit", "rounds", "seed")


@dataclass(frozen=True, slots=True)
class PebbleRequest:
    """The options of a call."""

    file: str | None
    steps: int | None
    terms: Mapping[str, Any]
    """The given terms, by the names of `TERMS`."""
    compare: bool | None
    plot: bool
    picture: bool
    actions: bool
    check: bool
    out: str | None
    save: str | None
    function: str | None
    step: str | None
    number: str | None
    step_in_place: str | None
    emit: str | None
    as_json: bool

    @property
    def kept(self) -> bool:
        """Whether the file is a plan that was saved."""
        return self.file is not None and Path(self.file).suffix == ".npz"

    @property
    def quiet(self) -> bool:
        """Whether only output requested by name is to be shown."""
        return self.plot or self.picture or self.actions

    def chosen(self, *names: str) -> dict[str, Any]:
        """The given ones among some terms."""
        return {name: self.terms[name] for name in names if self.terms.get(name) is not None}


def request_of(given: Mapping[str, Any]) -> PebbleRequest:
    """The request that the options of a call make, by their names."""
    named = {option.replace("-", "_"): name for name, option in TERMS.items()}
    terms = {named[k]: v for k, v in given.items() if k in named and v is not None}
    if terms.pop("overwrite"):
        terms["overwrite"] = False
    for name in ("costs", "sizes"):
        if name in terms:
            terms[name] = _numbers_of(terms[name], name)
    if "reversible_steps" in terms:
        terms["reversible_steps"] = _steps_of(terms["reversible_steps"])
    request = PebbleRequest(terms=terms, **{k: v for k, v in given.items() if k not in named})
    _fitting(request)
    return request


def _fitting(request: PebbleRequest) -> None:
    """Raise UsageError P001 for an option without meaning for the planned object."""
    takes, what = frozenset(TERMS) - frozenset(SEARCH), "a chain"
    takes_function = False
    if request.kept:
        takes, what = frozenset(), "a plan that was saved"
    elif request.file is not None and request.step is None:
        takes, what = _OF_GRAPHS, "a graph"
        takes_function = Path(request.file).suffix != ".bench"
    unfit = [f"--{TERMS[name]}" for name in request.terms if name not in takes]
    if request.function is not None and not takes_function:
        unfit.append("--function")
    if unfit:
        raise UsageError("P001", f"{what} has no use for {' and '.join(unfit)}")


def _steps_of(text: str) -> list[int]:
    """The numbers in `2,3,7-9`.  UsageError P001."""
    out: list[int] = []
    for part in filter(None, re.split(r"[\s,]+", text.strip("[] "))):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if found is None:
            raise UsageError("P001", f"`{part}` is not a step", hint="as in --in-place 2,3,7-9")
        first = int(found[1])
        out += range(first, int(found[2] or first) + 1)
    return out


def _numbers_of(text: str, what: str) -> Sequence[float] | Mapping[str, float]:
    """The numbers in `1,2,3` or in a file; by names, in a `.json` file or as `{a: 1, b: 2}`."""
    if text.startswith("@"):
        value = read_value(File(text[1:]), Path(), what)
    else:
        value = read_literal(text if text[:1] in "[{" else f"[{text}]")
    if isinstance(value, Table):
        value = value.literals()
    if isinstance(value, Stored):
        value = value.array.tolist()
    listed = value.values() if isinstance(value, dict) else value
    if not isinstance(listed, Sequence | type({}.values())) or isinstance(listed, str):
        raise InputError("I010", f"`{what}` are a list of numbers, or numbers by names")
    for number in listed:
        try:
            _plain(number)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                "I010", f"`{what}` are finite numbers, and {number!r} is not one"
            ) from None
    if isinstance(value, dict):
        return {name: _plain(number) for name, number in value.items()}
    return [_plain(number) for number in value]


def _plain(number: Any) -> float:
    """A number of Python: whole where it is."""
    read = float(number)
    return int(number) if read == int(read) else read


def in_options(error: RvmError) -> RvmError:
    """The error with the hint in words of the command line: `--pebbles 11` for `pebbles=11`."""
    names = "|".join(TERMS)

    def option(found: re.Match[str]) -> str:
        return f"--{TERMS[found[1]]}" + (f" {found[2]}" if found[2] else "")

    error.hint = re.sub(rf'\b({names})="?([\w.]*)"?', option, error.hint)
    return error
