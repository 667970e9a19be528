"""The beginning and the end of a conversation: initialize, launch, restart, disconnect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rvm_tools.debug.console import Console
from rvm_tools.debug.front import DebugRequest, open_session
from rvm_tools.debug.journeys import Onlooker
from rvm_tools.options import quarter_of_memory

from rvm.faults import UsageError
from rvm_dap.adapter import Adapter, Body, Client, Debuggee, answers
from rvm_dap.breakpoints import Registry
from rvm_dap.code import Addresses
from rvm_dap.navigation import ended, run, stopped
from rvm_dap.progress import ProgressEvents
from rvm_dap.protocol import Arguments
from rvm_dap.sources import Sources

_WIDTH = 100
_CAPABILITIES = (
    "supportsConfigurationDoneRequest",
    "supportsFunctionBreakpoints",
    "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints",
    "supportsLogPoints",
    "supportsDataBreakpoints",
    "supportsInstructionBreakpoints",
    "supportsBreakpointLocationsRequest",
    "supportsStepBack",
    "supportsSteppingGranularity",
    "supportsGotoTargetsRequest",
    "supportsRestartRequest",
    "supportsTerminateRequest",
    "supportsCancelRequest",
    "supportsEvaluateForHovers",
    "supportsSetVariable",
    "supportsSetExpression",
    "supportsCompletionsRequest",
    "supportsExceptionInfoRequest",
    "supportsDelayedStackTraceLoading",
    "supportsLoadedSourcesRequest",
    "supportsDisassembleRequest",
    "supportsValueFormattingOptions",
)


@answers("initialize")
def initialize(adapter: Adapter, args: Arguments) -> Body:
    """Record the client's conventions and capabilities; answer with ours."""
    if adapter.debuggee is not None:
        raise UsageError("U042", "`initialize` comes once, and first")
    adapter.client = Client(
        1 if args.flag("linesStartAt1", True) else 0,
        1 if args.flag("columnsStartAt1", True) else 0,
        args.flag("supportsVariablePaging"),
        args.flag("supportsInvalidatedEvent"),
        args.flag("supportsProgressReporting"),
    )
    return dict.fromkeys(_CAPABILITIES, True) | {"exceptionBreakpointFilters": []}


@answers("launch")
def launch(adapter: Adapter, args: Arguments) -> None:
    """Read the program and its inputs; the client is then asked for its breakpoints."""
    if adapter.debuggee is not None:
        raise UsageError("U042", "a program has been launched already")
    base = Path(args.text("cwd", ""))
    program = args.text("program")
    session = open_session(
        DebugRequest(
            file=str(base / program),
            values=_written(args.given.get("inputs")),
            function=args.text("function", "") or None,
            back=args.flag("back"),
            gradient=args.text("gradient", "") or None,
            engine=args.text("engine", "auto"),
            strict=args.flag("strict"),
            tolerance=_tolerance(args),
            max_steps=args.integer("maxSteps", 0) or None,
            max_memory=args.integer("maxMemory", 0) or quarter_of_memory(),
            base=base,
        )
    )
    progress = ProgressEvents(adapter.channel) if adapter.client.progress else Onlooker()
    session.watched_by(progress)
    console = Console(session, width=_WIDTH)
    session.say = session._travel.say = adapter.channel.output
    addresses = Addresses(session.program)
    adapter.debuggee = Debuggee(
        session,
        console,
        Sources(session.program, addresses, base),
        addresses,
        Registry(session),
        args.flag("stopOnEntry"),
        args.flag("stopAtEnd", True),
        args.flag("noDebug"),
        progress,
    )
    adapter.later(lambda: adapter.channel.event("initialized"))


def _tolerance(args: Arguments) -> float | None:
    given = args.given.get("tolerance")
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise UsageError("U041", "the argument `tolerance` is not a number")
    return float(given)


def _written(inputs: object) -> list[str]:
    """Inputs as the command line has them: a list of `NAME=VALUE`, or an object of values."""
    if inputs is None:
        return []
    if isinstance(inputs, list) and all(isinstance(text, str) for text in inputs):
        return inputs
    if isinstance(inputs, dict):
        return [f"{name}={_value(value)}" for name, value in inputs.items()]
    raise UsageError(
        "U041",
        "the argument `inputs` is neither an object nor a list of strings",
        hint='for example {"n": 10, "x": "@data.csv"} or ["n=10", "x=@data.csv"]',
    )


def _value(value: Any) -> str:
    """A value from JSON as a value of the command line; a string is taken as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_value(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


@answers("configurationDone")
def configured(adapter: Adapter, args: Arguments) -> None:
    """All breakpoints are set: run, or stop at the beginning."""
    debuggee = adapter.launched
    if debuggee.no_debug:
        adapter.later(lambda: _run_only(adapter))
    elif debuggee.stop_on_entry:
        adapter.later(lambda: stopped(adapter, debuggee.session.stop))
    else:
        adapter.later(lambda: run(adapter, 1))


def _run_only(adapter: Adapter) -> None:
    """Run without a debugger, to the end or to an error."""
    session = adapter.session
    for probe in session.probes:
        session.delete(probe.number)
    with adapter.journey("run"):
        stop = session.resume()
    if stop.error is not None:
        adapter.channel.output(str(stop.error), "stderr")
    ended(adapter)


@answers("restart")
def restart(adapter: Adapter, args: Arguments) -> None:
    """Begin again with the same inputs; edits are dropped, breakpoints stay and count from 0."""
    adapter.session.restart()
    for probe in adapter.session.probes:
        probe.hits = 0
    adapter.handles.clear()
    adapter.later(lambda: configured(adapter, args))


@answers("cancel")
def cancel(adapter: Adapter, args: Arguments) -> None:
    """Answered when the program stops; the cancelled run has reported where."""


@answers("terminate")
def terminate(adapter: Adapter, args: Arguments) -> None:
    """End the program."""
    adapter.later(lambda: ended(adapter))


@answers("disconnect")
def disconnect(adapter: Adapter, args: Arguments) -> None:
    """The client leaves."""
    adapter.finished = True
