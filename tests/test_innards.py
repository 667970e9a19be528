"""Messages speak of values as users write them: nothing of how Python or the machine holds them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rich_click as click
from rvm_tools.cli import cli
from rvm_tools.values import assignments, inputs_for
from sizes import thin
from tools.running import COMMANDS, NORM

import rvm
from rvm.types import SCALARS

INNARDS = re.compile(
    r"<class|<[\w.]+ object|object at 0x|dtype\(|NoneType|(?<!np\.)\barray\(|Decimal\(|Fraction\("
    r"|Fixed\(|LogNumber\(|\bnp\.(?:str_|bool|float|int|uint|complex|datetime)\d*\(|builtins|mappingproxy"
    r"|OrderedDict|PosixPath|allow_pickle|positional argument|keyword argument|Traceback"
    r"|internal error"
)
PYTHONS = re.compile(r"\bb['\"]|\{'|\bNone\b|\bTrue\b|\bFalse\b")
"""What callers in Python write, and nobody at the command line."""
TYPES = [
    *SCALARS, "fixed(8)", "f64[n]", "i64[2]", "u8[n]", "bool[n]", "c128[m, n]", "log64[n]",
    "fixed[n]", "stack[i64]", "stack[f64]", "stack[f64[2]]", "P", "P[n]", "stack[P]",
]  # fmt: skip
HEAD = "record P\n    m: f64\n    k: i64\nend\n\n"
LIBRARY = rvm.assemble(HEAD + "".join(f"func f{k}(x: {t})\n\n" for k, t in enumerate(TYPES)))
WRITTEN = """
|x|1.5|-1|1e400|1e5000|nan|inf|true|null|[]|[1, 2|[1, [2]]|[[1],[2,3]]|{m: 1}|{"m": 1}|{}|'a'|"a"
"|1j|(1,2)|0x|1__0|@|@/nonexistent|@.|@a.csv|@a.csv:b|@a.csv:k|@a.npz|@a.npz:p|@a.npz:q|@a.npz:r
@o.npy|@a.json|@a.json:a|@a.json:b|1:2|zeros(3)|zeros(-1)|zeros(2, 2)|range(10)|1'f32|1'q|[1'f32]
[true]|[nan]|[1e400]|[[[1]]]|["a"]|{"m": [1]}|{m: 1, k: 1.5}|{m: 1, k: 2, z: 3}|[{m: 1, k: true}]
""".replace("\n", "|").split("|")  # fmt: skip
GIVEN: list[Any] = [
    "a", b"a", None, object(), Decimal("1.5"), Decimal("NaN"), Fraction(1, 3), np.str_("a"), [1],
    [], {}, {"m": 1}, {1, 2}, 1j, 10**400, float("inf"), True, range(3),
    np.datetime64("2020-01-01"),
    np.array(["a"]), np.array([None, 1]), np.array([[1.5]]), np.array([1j]), np.array(1.5), int,
    [Decimal(1)], [b"a"], [None], [[1], [2, 3]], lambda: 1, {"m": Decimal("1.5"), "k": 1},
    {"m": 1.0, "k": 1.5}, {"m": 1.0, "k": 1, "z": 2}, [{"m": 1.0, "k": None}], np.zeros(2, "M8[s]"),
]  # fmt: skip


def wrong(text: str) -> str | None:
    """What in a message is of Python's insides."""
    found = INNARDS.search(text)
    return None if found is None else text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a,b\n1,x\n2,\n")
    Path("a.json").write_text('{"a": null, "b": [1, "x", null]}')
    np.savez("a.npz", p=np.array(["a", None], object), r=np.array([1 + 2j]))
    np.save("o.npy", np.array(["a", "b"]))
    Path("n.rasm").write_text(NORM)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_values_at_the_command_line() -> None:
    """Each of many values for a parameter of each type."""
    told = []
    for k, t in enumerate(TYPES):
        function = LIBRARY.program.function(f"f{k}")
        for text in WRITTEN:
            try:
                inputs_for(function, assignments([f"x={text}"], Path()), Path())
            except rvm.RvmError as error:
                shown = str(error)
                if wrong(shown) or PYTHONS.search(shown):
                    told.append((t, text, shown))
    assert told == []


def test_values_in_python() -> None:
    told = []
    for k, t in enumerate(TYPES):
        for value in GIVEN:
            try:
                LIBRARY[f"f{k}"](x=value)
            except rvm.RvmError as error:
                if wrong(str(error)):
                    told.append((t, value, str(error)))
    assert told == []


OPTIONS = [
    (*path, p.opts[-1])
    for path, command in COMMANDS.items()
    for p in command.params
    if isinstance(p, click.Option) and not p.is_flag and not p.count
]
"""Each option that takes a value, with its command."""
VALUES = ("r=0", "y=0", "x=[3, 4]")
ARGUMENTS = {
    **dict.fromkeys(("run", "grad", "trace", "debug"), ("n.rasm", *VALUES)),
    **dict.fromkeys(("check", "dis", "stubs", "pure"), ("n.rasm",)),
    "asm": ("n.rasm", "--emit=listing"),
}


@thin
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("given", [o for o in OPTIONS if o[0] not in ("bench", "dap")])
def test_values_of_options(given: tuple[str, ...]) -> None:
    from click.testing import CliRunner

    *path, option = given
    sign = "=" if option.startswith("--") else ""
    for value in ("", "q", "-1", "1e400", "x[", "9" * 30):
        args = [*path, *ARGUMENTS.get(path[0], ()), f"{option}{sign}{value}"]
        done = CliRunner().invoke(cli, args, prog_name="rvm", input="")
        assert done.exit_code in (0, 1, 2, 3, 4), (args, done.output)
        assert not wrong(done.stderr) and not PYTHONS.search(done.stderr), (args, done.stderr)


SHOWN: dict[str, tuple[str, str]] = {
    "alloc z: fixed = q + 1|free z = q": ("z = 2.5, expected = 1.5", "must hold `q` here"),
    "alloc z: fixed = q|free z = q + 1": ("z = 1.5, expected = 2.5", "must hold `q + 1.0` here"),
    "alloc z: log64 = l|free z = l * l": ("'log64, expected = ", "must hold `l * l` here"),
    "alloc z: fixed[2]|add z, r|free z": ("z = [1.5, 2.5], expected = [0.0, 0.0]",) * 2,
    "push q, s|pop r[0], s": ("place = 1.5",) * 2,
    "alloc t: stack[fixed]|push q, t|free t": ("on top = 1.5",) * 2,
    "alloc c: bool = b|free c = not b": ("must hold `not b` here",) * 2,
    'extern forward|assert b, "text", q, r, l|end': ("value 1 = 1.5, value 2 = [1.5, 2.5]",) * 2,
}


@pytest.mark.parametrize("body", SHOWN)
def test_values_of_a_run(body: str) -> None:
    """Fixed-point numbers and logarithms are told by what they are, not by what holds them."""
    lines = body.replace("|", "\n    ")
    head = "func f(q: fixed, r: fixed[n], s: stack[fixed], l: log64, b: bool)\n    "
    f = rvm.assemble(f"{head}{lines}\n").f
    r = np.array([3 << 42, 5 << 42])
    with pytest.raises(rvm.RvmError) as caught:
        f(q=1.5, r=r, s=[], l=3.0, b=False)
    text = str(caught.value)
    assert all(part in text for part in SHOWN[body]), text
    assert not wrong(text)


def test_values_that_are_printed() -> None:
    text = 'extern both\nprint "{} {} {} {:[]}", q, r, s, r\nend\n'
    f = rvm.assemble(f"func f(q: fixed, r: fixed[n], s: stack[fixed])\n{text}").f
    lines: list[str] = []
    f(q=1.5, r=np.array([3 << 42, 5 << 42]), s=[2.5], output=lines.append)
    assert "".join(lines).strip() == "1.5 [1.5 2.5] (2.5,) [1.5, 2.5]"
