"""The results of calls: values by name, and information on rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from rvm.host.signals import asked


class Rounding(Protocol):
    """An object that has counted a run's roundings: an account, or a run of machine code."""

    @property
    def erased_bits(self) -> int:
        """The number of erased bits."""

    @property
    def drift(self) -> float:
        """The largest residue, relative to the allowed residue."""

    @property
    def bits(self) -> str:
        """The option `bits` of the run."""


class Judge(Protocol):
    """An estimator of the error of a result, or of a gradient."""

    @property
    def error(self) -> Result:
        """The error of each parameter, in the form of the result."""

    def now(self) -> None:
        """Compute the error now, while the inputs are unchanged."""


@dataclass(frozen=True, slots=True)
class Info:
    """Information about a run besides its values: `result.info`.

    For a map it covers all lanes that did not fail, for a gradient both directions.
    """

    erased_bits: int = 0
    """The number of bits erased by frees within the tolerance, pops and drops."""
    drift: float = 0.0
    """The largest residue that was checked, relative to the allowed one; 0 if there was none."""
    log: Any = None
    """The log of a strict call, by which its inverse restores every bit; None for other calls."""
    bits: str = "stated"
    """The option `bits`: "machine" if functions of floats are those of this machine's libraries."""
    judge: Judge | None = field(default=None, repr=False, compare=False)
    """The estimator of the error."""

    @property
    @partial(asked, hint="")
    def error(self) -> Result | None:
        """The estimated absolute error of each number; None if it is not known.

        For a gradient it is computed when first read (`rvm.derive.estimate`); for a call it is
        known if the call had `error=True` (`rvm.derive.result_errors`).
        """
        return None if self.judge is None else self.judge.error

    @partial(asked, hint="")
    def estimate(self) -> None:
        """Compute the error now."""
        if self.judge is not None:
            self.judge.now()

    @classmethod
    def of(cls, *runs: Rounding, judge: Judge | None = None) -> Info:
        """The combined info of several runs."""
        drift = max((run.drift for run in runs), default=0.0)
        bits = {run.bits for run in runs}
        erased = sum(run.erased_bits for run in runs)
        said = "machine" if "machine" in bits else "stated"
        return cls(erased, float(drift), bits=said, judge=judge)


Told = Info | Rounding | Callable[[], Info]
"""The data from which a result's info is made on request."""


class Result(Mapping[str, Any]):
    """The parameters of a finished call, by name: `out.y`, `out["y"]`, `f(**out)`.

    `info` is the information about the run, and not an item; a parameter of that name is
    `out["info"]`.
    """

    __slots__ = ("_info", "_values")
    _values: dict[str, Any]
    _info: Told | None

    def __init__(self, values: dict[str, Any], info: Told | None = None) -> None:
        _set_values(self, values)
        _set_info(self, info)

    @property
    @asked
    def info(self) -> Info:
        """The rounding in the run.  Records, which are not results of runs, have no info."""
        found = self._info
        if found is None:
            # What is asked for then is a field of that name.
            raise AttributeError("info")
        if not isinstance(found, Info):
            found = found() if callable(found) else Info.of(found)
            _set_info(self, found)
        return found

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(self._lacks(name)) from None

    def _lacks(self, name: object) -> str:
        names = ", ".join(f"`{n}`" for n in self._values)
        return f"the result has no `{name}`: it has {names or 'nothing'}"

    def __getattr__(self, name: str) -> Any:
        if name in Result.__slots__:
            # A result without its values yet, as `copy` and `pickle` make it.
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(self._lacks(name)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a result does not change")

    def __getstate__(self) -> object:
        if self._info is not None:
            # The object that counted is not plain data.
            _set_info(self, self.info)
        return super().__getstate__()

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self._values.items())
        return f"Result({inside})"


def is_of_a_run(value: object) -> bool:
    """Whether a value is a result with an `info`; a record has none."""
    return isinstance(value, Result) and value._info is not None


def values_of(result: Result) -> dict[str, Any]:
    """The values by name, in a new dictionary."""
    return result._values.copy()


# In half the time that `object.__setattr__` takes: calls make results.
_set_values = Result.__dict__["_values"].__set__
_set_info = Result.__dict__["_info"].__set__
