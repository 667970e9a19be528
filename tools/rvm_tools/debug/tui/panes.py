"""The panes: widgets that paint rows of text, and report clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from rvm_tools.debug.console import OutputLine
from rvm_tools.debug.tui.bars import LEFT, RIGHT, Timeline, short
from rvm_tools.debug.tui.page import Listing, ValueRows
from rvm_tools.debug.tui.past import Past
from rvm_tools.trace.energy import Model, landauer

_STYLES = {
    "head": "bold",
    "current": "bold green",
    "changed": "bold yellow",
    "error": "bold red",
    "dim": "dim",
    "printed": "cyan",
}
"""The prompt's own colours."""


def painted(line: OutputLine, width: int | None = None) -> Text:
    """A line in its colour, cut to a width."""
    text = Text(line.text, style=_STYLES.get(line.style, ""), no_wrap=True, end="")
    if width is not None:
        text.truncate(max(width, 1), overflow="ellipsis")
    return text


def _joined(rows: Sequence[Text]) -> Text:
    """Rows below each other."""
    return Text("\n", no_wrap=True, end="").join(rows)


class CodePane(Widget, can_focus=True):
    """Code with a cursor: `>` is the machine's position, `●` a breakpoint."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("enter", "again", show=False),
    ]

    @dataclass
    class Again(Message):
        """Enter: repeat the last command."""

    @dataclass
    class Resized(Message):
        """The pane's size has changed, so contents of a fixed width must be rebuilt."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.listing = Listing("", [], [], -1, 0, frozenset())
        self.cursor = 0
        self.top = 0

    def show(self, listing: Listing, follow: bool) -> None:
        """Show code; if its position has changed, or with `follow`, the cursor moves there."""
        old = self.listing
        if (listing.title, listing.here) != (old.title, old.here):
            follow = True
        if follow:
            self.cursor = listing.focus
        self.listing = listing
        self.border_title = listing.title
        self._move_to(self.cursor, 3 if follow else 2)

    def _move_to(self, row: int, margin: int = 2) -> None:
        """Put the cursor on a row, with some rows of code to be seen on either side."""
        count, height = len(self.listing.rows), max(self.size.height, 1)
        self.cursor = max(0, min(row, count - 1))
        margin = min(margin, (height - 1) // 2)
        low, high = self.cursor - height + 1 + margin, self.cursor - margin
        self.top = max(0, min(max(self.top, low), high, max(0, count - height)))
        self.refresh()

    def action_move(self, by: int) -> None:
        self._move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self._move_to(self.cursor + by * max(1, self.size.height - 1))

    def action_again(self) -> None:
        self.post_message(self.Again())

    def on_resize(self, event: events.Resize) -> None:
        self._move_to(self.cursor)
        self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is not None:
            self._move_to(self.top + at.y)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._move_to(self.cursor + 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._move_to(self.cursor - 3)

    @property
    def place(self) -> str | None:
        """The argument of `b` for the row at the cursor; None where nothing can be set."""
        places = self.listing.places
        return places[self.cursor] if self.cursor < len(places) else None

    def render(self) -> Text:
        code = self.listing
        digits = len(str(len(code.rows)))
        base = 0 if code.title.startswith("bytecode") else 1
        rows = []
        for k in range(self.top, min(len(code.rows), self.top + self.size.height)):
            mark = ">" if k == code.here else " "
            flag = "●" if k in code.breaks else " "
            row = painted(
                OutputLine(f"{mark}{flag}{k + base:>{digits}} {code.rows[k]}"), self.size.width
            )
            if k == code.here:
                row.stylize(_STYLES["current"])
            if flag != " ":
                row.stylize("bold red", 1, 2)
            if k == self.cursor:
                row.pad_right(max(0, self.size.width - row.cell_len))
                row.stylize("reverse" if self.has_focus else "underline")
            rows.append(row)
        return _joined(rows)


class RowsPane(Widget, can_focus=False):
    """Rows of text under a title; the wheel scrolls."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.rows: Sequence[OutputLine] = ()
        self.top = 0

    def show(self, title: str, rows: Sequence[OutputLine]) -> None:
        if title != self.border_title:
            self.top = 0
        self.rows, self.border_title = rows, title
        self.scroll_rows(0)

    def show_values(self, values: ValueRows) -> None:
        self.show(values.title, values.rows)

    def scroll_rows(self, by: int) -> None:
        """Move the first row shown."""
        self.top = max(0, min(self.top + by, len(self.rows) - max(self.size.height, 1)))
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.scroll_rows(-3)

    def render(self) -> Text:
        height = self.size.height
        shown = list(self.rows[self.top : self.top + height])
        rest = len(self.rows) - self.top - height
        if rest > 0 and shown:
            shown[-1] = OutputLine(f"  … {rest + 1} more rows", "dim")
        return _joined([painted(row, self.size.width) for row in shown])


class TimelinePane(Widget, can_focus=False):
    """The run as a bar that can be clicked, events above it, energy and memory below."""

    @dataclass
    class Seek(Message):
        """A click: the time that was meant."""

        goal: int

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.past = Past()
        self.model = landauer()
        self.marks: dict[str, int] = {}
        self.extent, self.known, self.time = 1, False, 0

    def show(
        self, past: Past, model: Model, marks: dict[str, int], extent: int, known: bool, time: int
    ) -> None:
        self.past, self.model, self.marks = past, model, marks
        self.extent, self.known, self.time = max(extent, time), known, time
        self.refresh()

    @property
    def timeline(self) -> Timeline:
        cells = max(1, self.size.width - LEFT - RIGHT)
        return Timeline(cells, self.extent, self.known, self.time)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        line = self.timeline
        if at is not None and 0 <= at.x - LEFT < line.cells:
            self.post_message(self.Seek(line.time_at(at.x - LEFT)))

    def render(self) -> Text:
        line = self.timeline
        shown = line.events(self.marks.values(), self.past.hits, self.past.calls)
        behind, here, ahead = line.bar()
        # A copy: the machine's thread may add samples meanwhile.
        samples = dict(self.past.samples)
        power, energy = line.energy(samples, self.model)
        blocks, held = line.memory(samples)
        end = f"of {short(self.extent)}" if self.known else "of ?"
        return _joined(
            [
                _row("events", (shown, "bold")),
                _row("time", (behind, "green"), (here, "bold green"), (ahead, "dim"), figure=end),
                _row(self.model.name, (power, "magenta"), figure=energy),
                _row("memory", (blocks, "cyan"), figure=held),
            ]
        )


def _row(label: str, *parts: tuple[str, str], figure: str = "") -> Text:
    """A row of the timeline: its label, the columns, a figure."""
    name = label[: LEFT - 1]
    return Text.assemble((f"{name:<{LEFT}}", "dim"), *parts, (f" {figure}"[:RIGHT], ""))


class _WordSuggester(Suggester):
    """Proposes completions of a command's last word."""

    def __init__(self, complete: Callable[[str], str | None]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return self.complete(value)


class CommandLine(Input):
    """The prompt's line: Up and Down go through the history, Tab accepts a proposal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "run"),
        Binding("up", "earlier(1)", "earlier"),
        Binding("down", "earlier(-1)", "later"),
        Binding("tab", "cursor_right", "complete"),
        Binding("escape", "app.stop", "back to the keys"),
    ]

    @dataclass
    class Entered(Message):
        """A line was typed."""

        text: str

    def __init__(self, id: str, complete: Callable[[str], str | None]) -> None:
        super().__init__(
            id=id, compact=True, select_on_focus=False, suggester=_WordSuggester(complete)
        )
        self.typed: list[str] = []
        self._back = 0

    async def _on_key(self, event: events.Key) -> None:
        # Enter and Tab are acted on here, and not when they have come up to the bindings: what is
        # typed on quickly, or comes from another program, is in order then.
        if event.key not in ("enter", "tab"):
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.action_enter()
        else:
            self.action_cursor_right()

    def action_enter(self) -> None:
        text = self.value.strip()
        if text and text not in self.typed[-1:]:
            self.typed.append(text)
        self._back = 0
        self.value = ""
        self.post_message(self.Entered(text))

    def action_earlier(self, by: int) -> None:
        self._back = max(0, min(len(self.typed), self._back + by))
        self.value = self.typed[-self._back] if self._back else ""
        self.cursor_position = len(self.value)
