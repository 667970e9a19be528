"""The screen: its panes and keys, and the thread in which the machine runs.

During a command the session belongs to that thread. Other threads may only read the time and
request a stop. The panes are rebuilt when a command has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, RichLog, Static

from rvm.faults import RvmError
from rvm.image import image_of
from rvm_tools.debug.commands.stops import described
from rvm_tools.debug.completions import completions
from rvm_tools.debug.console import Answer, Console, OutputLine, share_text
from rvm_tools.debug.costs import FLOOR, again
from rvm_tools.debug.lines import find_target
from rvm_tools.debug.session import Session
from rvm_tools.debug.tui.help import HelpScreen
from rvm_tools.debug.tui.journey import JourneyView
from rvm_tools.debug.tui.keys import KEYS
from rvm_tools.debug.tui.page import VIEWS, code_of, elements_of, frames_of, values_of
from rvm_tools.debug.tui.panes import CodePane, CommandLine, RowsPane, TimelinePane, painted
from rvm_tools.debug.tui.past import Past
from rvm_tools.debug.views import arrive, frame_text
from rvm_tools.trace.energy import MODELS, Model

_REFRESH = 0.1
"""Seconds between looks at a machine that is running."""
_MAX_LINES = 2000
"""Lines of output that can be scrolled back to."""
_MAX_WAITING = 16
"""Commands that may be typed ahead."""


class Screenful(App[None]):
    """A session on a full screen."""

    TITLE = "rvm debug"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #status { height: 1; background: $primary-background; text-style: bold; }
    #main { height: 3fr; }
    #code { width: 3fr; height: 1fr; padding-right: 1; }
    #right { width: 2fr; }
    #values { height: 2fr; }
    #frames { height: 1fr; min-height: 3; }
    #code, #values, #frames, #log { border-top: solid $primary; border-title-color: $text; }
    #code:focus { border-top: solid $accent; }
    #timeline { height: 4; }
    #log { height: 1fr; min-height: 5; background: $background; }
    #log { overflow-x: hidden; scrollbar-size-vertical: 1; }
    #line { height: 1; }
    #prompt { width: auto; }
    #command { width: 1fr; border: none; height: 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(
        self, session: Session, commands: Sequence[str] = (), model: Model = FLOOR
    ) -> None:
        super().__init__()
        self.past = Past()
        self.view = VIEWS[0]
        self.array: str | None = None
        """The array whose elements are shown in place of the registers."""
        self.first = 0
        """The first element that is shown."""
        self._elements = (0, 0, 0)
        self.busy = ""
        """The active command."""
        self._waiting: deque[Callable[[], None]] = deque(
            partial(self._command, text) for text in commands
        )
        self._said: deque[OutputLine] = deque(maxlen=_MAX_LINES)
        self._leaving = False
        self.journey = JourneyView(session, self.past)
        session.watched_by(self.journey)
        self.console_ = Console(session, self._said.append, model=model)
        self.status = Static(id="status", markup=False)
        self.code = CodePane("code")
        self.values, self.frames = RowsPane("values"), RowsPane("frames")
        self.timeline = TimelinePane("timeline")
        self.output = RichLog(id="log", max_lines=_MAX_LINES, wrap=False, markup=False)
        self.output.can_focus = False
        self.prompt = Static(id="prompt", markup=False)
        self.line = CommandLine("command", self._complete)

    @property
    def session(self) -> Session:
        return self.console_.session

    def compose(self) -> ComposeResult:
        yield self.status
        with Horizontal(id="main"):
            yield self.code
            with Vertical(id="right"):
                yield self.values
                yield self.frames
        yield self.timeline
        yield self.output
        with Horizontal(id="line"):
            yield self.prompt
            yield self.line
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.code.focus()
        arrive(self.console_, self.session.stop)
        self.past.arrive(self.session, True)
        self.set_interval(_REFRESH, self._look)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._show(follow=True)
        self._next()

    # ------------------------------------------------------------ running commands

    def execute(self, text: str, forward: bool = False) -> None:
        """Run a command in the machine's thread, after those that wait.

        `forward`: plain steps go forwards, wherever `direction` points.
        """
        self._soon(partial(self._command, text, forward))

    def _soon(self, job: Callable[[], None]) -> None:
        """Schedule work for when no command is active, in the order of requests."""
        if len(self._waiting) >= _MAX_WAITING:
            self.bell()
            return
        self._waiting.append(job)
        self._next()

    def _next(self) -> None:
        while self._waiting and not self.busy:
            self._waiting.popleft()()

    def _command(self, text: str, forward: bool = False) -> None:
        name = text.strip() or self.console_.last or "nothing"
        self._start(name, partial(self._work, text, forward))

    def _start(self, name: str, work: Callable[[], None]) -> None:
        self.busy = name
        self.console_.width = max(40, self.output.size.width - 1)
        self.session.interrupt(False)
        self.run_worker(work, thread=True, group="machine")

    def _work(self, text: str, forward: bool) -> None:
        """In the machine's thread."""
        console = self.console_
        if text.strip():
            console.show(OutputLine(f"{console.prompt()}{text.strip()}", "dim"))
        reverse, console.reverse = console.reverse, console.reverse and not forward
        answer = console.execute(text)
        if forward:
            console.reverse = reverse
        self.call_from_thread(self._arrived, answer)

    def _arrived(self, answer: Answer) -> None:
        self.busy = ""
        self.past.arrive(self.session, answer.stop is not None)
        if answer.stop is not None and answer.stop.reason == "interrupted":
            self._waiting.clear()
        if self.console_.finished or self._leaving:
            self.exit()
            return
        self._show(follow=answer.stop is not None)
        self._next()

    def action_survey(self) -> None:
        self._soon(self._next_model)

    def _next_model(self) -> None:
        """Show energy by another model, after another session has counted up to each column."""
        console, line = self.console_, self.timeline.timeline
        names = list(MODELS)
        at = names.index(console.model.name) if console.model.name in names else -1
        console.model = MODELS[names[(at + 1) % len(names)]]()
        times = [line.time_at(k) for k in range(line.cells)]
        if self.past.surveyed(times):
            self._show(follow=False)
            return
        try:
            fresh = again(self.session)
        except RvmError as error:
            console.out(f"{error.message}: {error.hint}", "error")
            self._show(follow=False)
            return
        self._start("energy", partial(self._survey, fresh, times))

    def _survey(self, fresh: Session, times: Sequence[int]) -> None:
        """In the machine's thread."""
        self.past.survey(fresh, times)
        if fresh.stop.reason == "interrupted":
            self.console_.out("interrupted", "error")
        self.call_from_thread(self._arrived, Answer("energy"))

    def _interrupt(self) -> None:
        """Stop the running command, and discard those waiting."""
        self._waiting.clear()
        self.session.interrupt()

    def action_stop(self) -> None:
        """Stop a run, in either direction; when nothing runs, leave the command line."""
        if self.busy:
            self._interrupt()
        else:
            self.screen.set_focus(self.code)

    def action_leave(self) -> None:
        if self.busy:
            self._leaving = True
            self._interrupt()
        else:
            self.exit()

    # ------------------------------------------------------------ showing

    def _look(self) -> None:
        """Update what changes while the machine runs: output, time, the timeline."""
        self._pour()
        if self.busy:
            self._show_time()

    def _pour(self) -> None:
        log = self.output
        while self._said:
            log.write(painted(self._said.popleft()))

    def _show_time(self) -> None:
        session, past = self.session, self.past
        time = session.time
        extent, known = past.extent(session), session.length is not None
        self.timeline.show(past, self.console_.model, session.marks, extent, known, time)
        share = f"  {share_text(time, extent)}" if known and extent else ""
        if self.busy:
            where = f"`{self.busy}` {self.journey.bar()}  Esc stops"
        else:
            where = frame_text(session.frames[-1], True)
        mark = f"  {session.mark}" if session.mark else ""
        work = "" if self.busy else f"  work {session.work:,}"
        text = f" t={time:,}{share}{mark}  {where}{work}"
        self.status.update(text)

    def _show(self, follow: bool) -> None:
        """Rebuild all panes, when no command is active."""
        if self.busy:
            return
        session, before = self.session, self.past.before
        code = self.code
        code.show(code_of(session, self.view, code.size.width), follow)
        pane = self.values
        width = max(20, pane.size.width)
        if self.array is not None:
            shown = elements_of(session, before, self.array, self.first, (width, pane.size.height))
        else:
            shown = values_of(session, before, width)
        pane.show_values(shown)
        self._elements = shown.shown
        count = len(session.frames)
        self.frames.show(f"frames ({count})" if count > 1 else "frames", frames_of(session, before))
        self.prompt.update(self.console_.prompt())
        self._show_time()
        self._pour()

    def on_code_pane_resized(self) -> None:
        self.call_after_refresh(self._show, False)
        # What was said last stays in sight.
        self.call_after_refresh(self.output.scroll_end, animate=False)

    # ------------------------------------------------------------ keys

    def action_go(self, command: str) -> None:
        self.execute(command, forward=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """On the command line, the keys of these actions are ordinary text."""
        return action != "type" or not isinstance(self.focused, CommandLine)

    def action_type(self, text: str) -> None:
        """Go to the command line, with the beginning of a command."""
        line = self.line
        line.value = text
        line.cursor_position = len(text)
        self.screen.set_focus(line)

    def action_view(self, by: int) -> None:
        self._soon(partial(self._turn_view, by))

    def _turn_view(self, by: int) -> None:
        self.view = VIEWS[(VIEWS.index(self.view) + by) % len(VIEWS)]
        self._show(follow=True)

    def action_array(self, by: int) -> None:
        self._soon(partial(self._turn_array, by))

    def _turn_array(self, by: int) -> None:
        """The registers, then each array's elements, and round again."""
        names = [None, *values_of(self.session, self.past.before, 80).arrays]
        at = names.index(self.array) if self.array in names else 0
        self.array, self.first = names[(at + by) % len(names)], 0
        self._show(follow=False)

    def action_elements(self, by: int) -> None:
        self._soon(partial(self._turn_page, by))

    def _turn_page(self, by: int) -> None:
        """Another page of the array; of the registers, other rows."""
        if self.array is None:
            pane = self.values
            pane.scroll_rows(by * max(1, pane.size.height - 1))
            return
        start, stop, total = self._elements
        first = max(0, start - (stop - start)) if by < 0 else stop
        if first < total:
            self.first = first
            self._show(follow=False)

    def action_break(self) -> None:
        self._soon(self._toggle_break)

    def _toggle_break(self) -> None:
        """Set a breakpoint at the cursor, or remove the one that is there."""
        place = self.code.place
        if place is None:
            self.bell()
            return
        session = self.session
        try:
            target = find_target(image_of(session.program), place, session.frame.code)
        except RvmError as error:
            self.console_.out(error.message, "error")
        else:
            here = (target.source, target.line, target.function, target.pc)
            for b in session.breaks:
                t = b.target
                if (t.source, t.line, t.function, t.pc) == here:
                    session.delete(b.number)
                    self.console_.out(f"removed {described(b)}")
                    break
            else:
                self.console_.out(described(session.break_at(place)))
        self._show(follow=False)

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    # ------------------------------------------------------------ messages

    def on_code_pane_again(self) -> None:
        self.execute("")

    def on_timeline_pane_seek(self, message: TimelinePane.Seek) -> None:
        self.execute(f"goto {message.goal}")

    def on_command_line_entered(self, message: CommandLine.Entered) -> None:
        self.execute(message.text)

    def _complete(self, text: str) -> str | None:
        """The first completion of a command."""
        if self.busy or not text or text.endswith(" "):
            return None
        start, found = completions(self.console_, text)
        return text[:start] + found[0] if found else None
