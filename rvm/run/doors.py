"""Methods that change nothing of their callers', `f.grad(loss=…)`: what they raise.

Wrong calls raise errors of rvm, and so does Ctrl-C at any moment.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar

from rvm.codes.words import instead
from rvm.faults import InputError, UsageError
from rvm.host.signals import told
from rvm.run.machine import OPTION_NAMES

P = ParamSpec("P")
T = TypeVar("T")
SHOWN = {"loss": 'loss="{0}"', "tangents": '{{"{0}": …}}', "seeds": '{{"{0}": …}}'}
"""The notation of an argument in messages, for each parameter."""
UNCHANGED = "the inputs are as they were before the call"
"""The hint of Ctrl-C."""
_UNNAMED = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def door(method: Callable[P, T]) -> Callable[P, T]:
    """Wrap a method that takes inputs by name; its object has `called` and `parameters`.

    Where Python rejects the call itself, since an argument is missing or inputs are positional, the
    wrapper raises UsageError U005, which shows the correct form of the call; and `Interrupted` for
    Ctrl-C where Python's own handler is called, between runs too.
    """

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except InputError as error:
            if error.code == "I002":
                error.hint = _misspelt(method, args[0], kwargs) or error.hint
            raise
        except KeyboardInterrupt as error:
            if (found := told(error, UNCHANGED)) is error:
                raise
            raise found from None
        except TypeError as error:
            # One that is raised inside has a further frame.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
        raise _refused(method, args[0], len(args) - 1, kwargs)

    return called


def _misspelt(method: Any, handle: Any, named: Iterable[str]) -> str:
    """A hint at a keyword of the method for a name that resembles it and is not a parameter."""
    own = inspect.signature(method).parameters
    words = [n for n, p in own.items() if p.kind not in _UNNAMED and n != "self"]
    wrong = [n for n in named if n not in {*words, *handle.parameters, *OPTION_NAMES}]
    return next(filter(None, (instead(n, words, "") for n in wrong)), "")


def _refused(method: Any, handle: Any, positional: int, named: Collection[str]) -> UsageError:
    own = list(inspect.signature(method).parameters.values())[1:]
    takes_inputs = any(p.kind is Parameter.VAR_KEYWORD for p in own)
    asked = [p for p in own if p.default is p.empty and p.kind is not Parameter.VAR_KEYWORD]
    words = [p.name for p in asked if p.kind is Parameter.KEYWORD_ONLY]
    first = [p.name for p in asked if p.kind is not Parameter.KEYWORD_ONLY]
    missing = [n for n in (*first[positional:], *words) if n not in named]
    name = handle.called
    if method.__name__ != "__call__":
        name += f".{method.__name__}"
    strange = [n for n in named if not takes_inputs and n not in {p.name for p in own}]
    if missing:
        message = f"`{name}` needs {' and '.join(f'`{m}`' for m in missing)}"
    elif strange:
        message = f"`{name}` takes no `{strange[0]}`"
    elif any(p.kind is Parameter.POSITIONAL_ONLY for p in own):
        message = f"inputs of `{name}` are passed by name, or in one mapping"
    else:
        message = f"`{name}` takes its arguments by name"
    inputs = handle.parameters
    some = inputs[0] if inputs else "x"
    shown = [SHOWN[w].format(some) for w in first]
    if method.__name__ == "with_options":
        shown.append('engine="native"')
    else:
        shown += [f"{p}=…" for p in inputs if takes_inputs]
        shown += [SHOWN[w].format(some) for w in words]
    hint = f"`{name}({', '.join(shown)})`"
    near = _misspelt(method, handle, named)
    return UsageError("U005", message, hint=f"{near} {hint}" if near else hint)
