"""Signals during a run: their handlers wait until an instruction is complete.

Python calls the handler of a signal between any two steps of its own.  A handler that raises (that
of Ctrl-C, that of a timeout) would leave an instruction half done.  So, while a run is `Listening`,
a relay replaces every handler that is written in Python, and checks which functions were running:

- in a function marked `deferred`, the signal is recorded, and `heard` passes it on at the next safe
  point;
- in one marked `at_once`, which calls a caller's own code, or in neither, it is handled at once.

The innermost of these functions decides, without any flag: a relay that was not removed acts as the
handler that it replaces, so no signal is ever lost.
"""

from __future__ import annotations

import signal
import sys
import threading
from _signal import getsignal  # type: ignore[import-not-found]
from _signal import signal as set_handler
from collections import deque
from collections.abc import Callable
from functools import wraps
from opcode import opmap
from types import CodeType, FrameType, TracebackType
from typing import ParamSpec, TypeVar

from rvm.faults import Interrupted

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_DEFERS: dict[CodeType, bool] = {}
"""For marked functions: whether signals are to wait."""
_waiting: deque[Relay] = deque()
"""The relays of the handlers whose signals have arrived, in order."""
_RAISE = opmap["RAISE_VARARGS"]
_DEFAULT = signal.default_int_handler
TRIES = 1_000
"""The number of attempts to restore handlers, however fast signals arrive."""
_NUMBERS = tuple(sorted(int(n) for n in signal.valid_signals()))


def deferred(function: F) -> F:
    """Mark a function: signals that arrive while it runs wait for `heard`."""
    _DEFERS[function.__code__] = True
    return function


def at_once(function: F) -> F:
    """Mark a function that calls a caller's code, in which signals must be handled immediately.

    It is called only between two instructions, so exceptions from it leave the state consistent.
    """
    _DEFERS[function.__code__] = False
    return function


class Relay:
    """Stands in for a signal's handler."""

    __slots__ = ("handler", "instead", "number")

    def __init__(
        self,
        number: int,
        handler: Callable[[int, FrameType | None], object],
        instead: Callable[[], object] | None = None,
    ) -> None:
        self.number = number
        self.handler = handler
        self.instead = instead

    def __call__(self, number: int, frame: FrameType | None) -> None:
        # Where signals come faster than this finds out who is to wait, each would interrupt the one
        # before: a signal that arrives again before it was handled counts once.
        asking = frame
        while asking is not None and asking.f_code in _ASKING:
            known = asking.f_locals
            if known.get("self") is self and "defers" not in known:
                return
            asking = asking.f_back
        defers = _innermost(frame)
        if defers:
            # As with the system's own signals, one that waits already is not kept twice.
            if self not in _waiting:
                _waiting.append(self)
        elif defers is None:
            self.handler(number, frame)
        else:
            self.act(frame)

    @at_once
    def act(self, frame: FrameType | None) -> None:
        """Handle a signal in a run."""
        if self.instead is not None:
            self.instead()
        elif self.handler is _DEFAULT:
            raise interrupted()
        else:
            self.handler(self.number, frame)


def _innermost(frame: FrameType | None) -> bool | None:
    """The mark of the innermost marked function; None if there is none."""
    while frame is not None:
        found = _DEFERS.get(frame.f_code)
        if found is not None:
            return found
        frame = frame.f_back
    return None


_ASKING = (Relay.__call__.__code__, _innermost.__code__)
"""The code that finds out whether a signal is to wait."""


def interrupted(hint: str = "") -> Interrupted:
    """The exception for Ctrl-C during a run, replacing that of Python's own handler."""
    return Interrupted("R016", "interrupted", hint=hint)


class Listening:
    """A context in which relays replace signal handlers; at its end they are restored and called.

    If nobody else handles Ctrl-C, `ctrl_c` is called for it, if given. In threads other than the
    main one it does nothing, since no signals are handled there.
    """

    __slots__ = ("_ctrl_c", "_own")

    def __init__(self, ctrl_c: Callable[[], object] | None = None) -> None:
        self._ctrl_c = ctrl_c
        self._own: list[Relay] = []

    def __enter__(self) -> None:
        # Twice, as a handler that is not relayed yet may raise while another's error is seen to.
        try:
            try:
                self._install()
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    @deferred
    def _install(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        for number in _NUMBERS:
            handler = getsignal(number)
            if isinstance(handler, Relay):
                # Left behind, or that of a run around this one.
                if _innermost(sys._getframe(2)) is None:
                    self._own.append(handler)
            elif callable(handler):
                instead = self._ctrl_c if handler is _DEFAULT else None
                self._own.append(Relay(number, handler, instead))
        # In one call of C: Python calls no handler in it but those of signals that came before.
        deque(map(set_handler, [r.number for r in self._own], self._own), 0)

    @deferred
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        caller = sys._getframe(1)
        # Twice, as a handler that is put back may raise where nothing catches it.
        try:
            later = self._left(caller)
        except BaseException as another:
            later = followed(self._left(caller), another)
        if later is None:
            return
        if error is None:
            raise later
        followed(error, later)

    def _left(self, caller: FrameType) -> BaseException | None:
        """Handle all waiting signals, restore the handlers, and return the exception raised.

        The outermost listener leaves nothing that waits: it would be heard in another run.  Whether
        this is the outermost takes a walk up the stack, so only a signal that waits asks for it.
        """
        later = None
        for _ in range(TRIES):
            try:
                try:
                    if _waiting and not _innermost(caller):
                        heard()
                finally:
                    self._put_back()
                if not _waiting or _innermost(caller):
                    break
            except BaseException as another:
                later = followed(later, another)
        return later

    def _put_back(self) -> None:
        own = [r for r in self._own if getsignal(r.number) is r]
        deque(map(set_handler, [r.number for r in own], [r.handler for r in own]), 0)


@deferred
def heard() -> None:
    """A safe point: call the handlers of the signals that wait.

    The first exception is raised, with the others chained to it.  Signals that arrive in the
    meantime wait for the next safe point, so this ends however fast they arrive.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return
    first = None
    for _ in range(len(_waiting)):
        try:
            _waiting.popleft().act(sys._getframe(1))
        except BaseException as error:
            first = followed(first, error)
    if first is not None:
        raise first


def listen() -> None:
    """A safe point within long work that changes no state; cheap if no signal waits."""
    if _waiting:
        heard()


def left_whole(error: BaseException) -> bool:
    """Whether an exception came out of a caller's code, and not of the middle of an instruction."""
    trace = error.__traceback__
    while trace is not None:
        if _DEFERS.get(trace.tb_frame.f_code) is False:
            return True
        trace = trace.tb_next
    return False


def is_ctrl_c(error: BaseException | None) -> bool:
    """Whether Python's own handler of Ctrl-C raised this, and no statement did."""
    if error is None or type(error) is not KeyboardInterrupt:
        return False
    handler = getsignal(signal.SIGINT)
    if (handler.handler if isinstance(handler, Relay) else handler) is not _DEFAULT:
        return False
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] != _RAISE


def told(error: KeyboardInterrupt, hint: str | None) -> KeyboardInterrupt:
    """`Interrupted` for Ctrl-C, with a hint unless that is None; other exceptions unchanged."""
    found = interrupted() if is_ctrl_c(error) else error
    if hint is not None and isinstance(found, Interrupted):
        found.hint = hint
    return found


def asked(function: Callable[P, T], hint: str | None = None) -> Callable[P, T]:
    """Wrap a function or a property that changes nothing: for Ctrl-C it raises `Interrupted`."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt as error:
            if (found := told(error, hint)) is error:
                raise
            raise found from None

    return called


def followed(first: BaseException | None, later: BaseException) -> BaseException:
    """The first exception, with one that came later at the end of its chain."""
    if first is None or first is later:
        return later
    chain = [first]
    while (cause := chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    link: BaseException | None = later
    while link is not None:
        if link in chain:
            return first
        if link.__context__ in chain:
            link.__context__ = None
        link = link.__context__
    chain[-1].__context__ = later
    return first
