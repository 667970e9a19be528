"""The keys of the screen, and the actions of the app that they lead to."""

from __future__ import annotations

from textual.binding import Binding, BindingType


def _key(key: str, action: str, label: str = "", shown: str | None = None) -> Binding:
    # What leads to the command line comes first, so that what is typed after it goes there.
    first = action.startswith("type")
    return Binding(key, action, label, show=bool(label), key_display=shown, priority=first)


KEYS: list[BindingType] = [
    _key("s", "go('s')", "step", "s/S"),
    _key("S", "go('rs')"),
    _key("n", "go('n')", "next", "n/N"),
    _key("N", "go('rn')"),
    _key("c", "go('c')", "run", "c/C"),
    _key("C", "go('rc')"),
    _key("f", "go('fin')", "out", "f/F"),
    _key("F", "go('rfin')"),
    _key("i", "go('si')", "op", "i/I"),
    _key("I", "go('rsi')"),
    _key("home", "go('start')"),
    _key("end", "go('end')"),
    _key("u", "go('up')"),
    _key("d", "go('down')"),
    _key("g", "type('goto ')"),
    _key("b", "break", "break"),
    _key("w", "type('watch ')"),
    _key("e", "survey", "energy"),
    _key("v", "view(1)", "view"),
    _key("V", "view(-1)"),
    _key("a", "array(1)"),
    _key("A", "array(-1)"),
    _key("right_square_bracket", "elements(1)"),
    _key("left_square_bracket", "elements(-1)"),
    _key("colon", "type('')"),
    _key("tab", "type('')"),
    _key("question_mark", "help", "help", "?"),
    _key("q", "leave", "quit"),
    Binding("escape", "stop", show=False),
    Binding("ctrl+c", "stop", show=False, priority=True),
]
