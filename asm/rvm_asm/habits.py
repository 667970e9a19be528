"""Notation from Python and C, and its replacement in the assembly language.

A line that can't be parsed is examined again: if it has the form of a line in one of those
languages, the message gives our notation for it, with the line's own names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from rvm.isa import OPCODES
from rvm.stmt import Update
from rvm.types import SCALARS
from rvm_asm.lexer import NAME, NUMBER

SHAPE = "reshape"
"""The step that makes an array with several dimensions of one with one."""


class Habit(NamedTuple):
    """A message about the tokens from `first` to before `stop` of a line."""

    first: int
    stop: int
    message: str
    hint: str


_CONTROL = "a loop can be left only where its condition is tested"
WORDS = {
    "return": (
        "the results of a function are its parameters",
        "add the result to one of them: `add out, …`",
    ),
    "break": (_CONTROL, "`while p, q`, with p false where the loop ends and q false before it"),
    "continue": (
        "an iteration cannot be left early",
        "put the rest under an `if`, whose condition must hold after it exactly if it did before",
    ),
    "goto": ("a jump and the place where it lands are a pair", "`br condition, label`, and `cf`"),
    "elif": ("a further arm of an `if` is an `elseif`", "`elseif condition`"),
    "pass": ("a block may be empty", "leave `pass` out"),
    "def": ("a function begins with `func`", "`func name(x: f64)`"),
    "function": ("a function begins with `func`", "`func name(x: f64)`"),
    "void": ("a function begins with `func`, and has no result", "`func name(x: f64)`"),
    "import": ("other files are included", '`include "file.rasm"`'),
    "del": ("an ancilla is freed with the value that it has at that point", "`free x = value`"),
    "mov": (
        "overwriting a value forgets it",
        "`add x, y` where x is 0, or an exchange: `swap x, y`",
    ),
    "set": (
        "overwriting a value forgets it",
        "`add x, y` where x is 0, or an exchange: `swap x, y`",
    ),
    "printf": ('`print "…", x` needs a separate block', "`extern forward`, `print …`, `end`"),
}
"""Words that begin a line in other languages: an explanation, and the replacement."""
_TYPES = {"int": "i64", "long": "i64", "float": "f64", "double": "f64", "char": "u8", "auto": "f64"}
TYPE_NAMES = {
    **_TYPES,
    "integer": "i64",
    "short": "i16",
    "byte": "u8",
    "uint": "u64",
    "unsigned": "u64",
    "size_t": "i64",
    "usize": "i64",
    "real": "f64",
    "number": "f64",
    "half": "f32",
    "float32": "f32",
    "float64": "f64",
    "complex": "c128",
    "complex128": "c128",
    "boolean": "bool",
    **{f"{u}int{n}": f"{u or 'i'}{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
    "str": "u8[n]",
    "string": "u8[n]",
    "bytes": "u8[n]",
    "list": "f64[n]",
    "array": "f64[n]",
    "Array": "f64[n]",
    "ndarray": "f64[n]",
    "vector": "f64[n]",
    "Vec": "f64[n]",
    "matrix": "f64[m, n]",
    "Callable": "func(f64)",
    "function": "func(f64)",
}
"""Types of other languages, and the corresponding ones here."""
_DECLARES = frozenset({"let", "var", "const", "unsigned", *_TYPES, *SCALARS})
_OPERATORS = {"&": ("and", "&&"), "|": ("or", "||")}
_HEADS = frozenset({"if", "elseif", "elif", "else", "while", "for", "from", "func", "def"})


@cache
def _updates() -> dict[str, str]:
    """For each sign the instruction that updates by it."""
    return {
        row.body[0].op: name
        for name, row in reversed(OPCODES.items())
        if len(row.body) == 1 and isinstance(row.body[0], Update) and len(row.operands) == 2
    }


def habit(kinds: Sequence[str], texts: Sequence[str], comment: str = "") -> Habit | None:
    """The meaning of a line's tokens in other languages; None if unknown.

    `comment`: the line's comment, if the line was read until there.
    """
    size = len(texts)
    if not size:
        return None
    first = texts[0]
    if first == "//" or texts[:2] == ["/", "*"]:
        return Habit(0, 1, "a comment starts with `;`", "`; " + _text(texts[1:3]) + " …`")
    if first == "}":
        return Habit(0, 1, "a block is closed by `end`", "`end`")
    if first == "else" and texts[1:2] == ["if"]:
        return Habit(0, 2, *WORDS["elif"])
    if first == "for":
        return _loop(texts)
    found = _derivative(texts) or _unmarked(texts, comment) if first in _CALLS else None
    found = found or _anywhere(kinds, texts)
    if found is not None:
        return found
    if first in ("func", "def"):
        return _function(kinds, texts)
    if first == "const" and size > 2 and texts[1] in (*_TYPES, *SCALARS) and kinds[2] == NAME:
        value = _text(texts[4:]) if texts[3:4] == ["="] else "…"
        return Habit(1, 2, "a constant has no separate type", f"`const {texts[2]} = {value}`")
    if first in WORDS:
        return Habit(0, 1, *WORDS[first])
    if "if" in texts[1:] and "else" in texts[texts.index("if", 1) :]:
        k = texts.index("if", 1)
        return Habit(k, k + 1, "a choice between values is a function", "`select(condition, a, b)`")
    for k in range(1, size - 1):
        word, both = _OPERATORS.get(texts[k], ("", ""))
        if word and texts[k + 1] == texts[k]:
            return Habit(k, k + 2, f"`{both}` is `{word}`", f"`a {word} b`")
    if first in _HEADS:
        return _head(texts)
    if first in _DECLARES and size > 1 and kinds[1] == NAME:
        return _declaration(texts)
    if first in OPCODES and kinds[0] == NAME and texts[1:2] not in (["("], ["="]):
        return _operands(kinds, texts)
    return _change(kinds, texts) if kinds[0] == NAME else None


def _anywhere(kinds: Sequence[str], texts: Sequence[str]) -> Habit | None:
    """Notation within lines of other languages: methods, tuples, anonymous functions."""
    size = len(texts)
    if texts[0] == "with" and "as" in texts[1:-1]:
        k = texts.index("as")
        value, name = _text(texts[1:k]), texts[k + 1]
        return Habit(k, k + 1, "the name comes first", f"`with {name} = {value}`")
    for k in range(1, size):
        if texts[k] == "lambda":
            hint = "write it as `func name(…)`, and pass `name`"
            return Habit(k, k + 1, "a function that is passed has a name", hint)
        if texts[k] == "'" and texts[k - 1 : k + 2][-1] == "(" and texts[0] not in _CALLS:
            said = "a derivative is run by `call`, on a separate line"
            return Habit(k - 1, k + 1, said, f"`call {texts[k - 1]}'(…; …)`")
        if texts[k] == "(" and texts[k - 1] == SHAPE and texts[k + 1 : k + 2] == ["("]:
            inside = _text(texts[k + 2 : texts.index(")", k)]) if ")" in texts[k:] else "m, n"
            said = "lengths have no brackets of their own"
            return Habit(k + 1, k + 2, said, f"`{SHAPE}({inside})`")
        if texts[k] == "(" and k > 2 and texts[k - 2] == "." and texts[k - 1] != SHAPE:
            return _method(texts, k)
    return None


_CALLS = ("call", "uncall", "map", "unmap", "iterate")
_MODULES = ("math", "cmath", "np", "numpy", "Math", "std")
_METHODS = {
    "append": "push {1}, {0}",
    "push": "push {1}, {0}",
    "push_back": "push {1}, {0}",
    "pop": "pop x, {0}",
    "size": "len({0})",
    "length": "len({0})",
    "len": "len({0})",
    "transpose": "{0}.T",
    "conjugate": "conj({0})",
    "max": "amax({0})",
    "min": "amin({0})",
}


DERIVATIVES = {
    "grad": "f'(arguments; bars)",
    "gradient": "f'(arguments; bars)",
    "vjp": "f'(arguments; bars)",
    "adjoint": "f~'(arguments; bars)",
    "jvp": "f.(arguments; dots)",
    "tangent": "f.(arguments; dots)",
}
"""Names of derivatives in other languages, and the notation here."""


def _derivative(texts: Sequence[str]) -> Habit | None:
    """A call in another notation for derivatives: `call f.grad(…)`, `call grad f(…)`."""
    for stop, name, word in ((4, texts[1:2], texts[3:4]), (2, texts[2:3], texts[1:2])):
        if word and word[0] in DERIVATIVES and name and name[0].isidentifier():
            form = f"{texts[0]} {name[0]}{DERIVATIVES[word[0]][1:]}"
            return Habit(1, stop, "a derivative is called with a mark", f"`{form}`")
    return None


def _unmarked(texts: Sequence[str], comment: str) -> Habit | None:
    """A call with bars, or dots, behind a `;` of a function without a mark."""
    is_open = texts.count("(") == texts.count(")") + 1
    if not (is_open and comment[:1] == ";" and ")" in comment and texts[1].isidentifier()):
        return None
    name, k = texts[1], texts.index("(")
    if k > 2 and texts[k - 1] != "]":
        return None  # it has one
    word = "call" if texts[0] == "iterate" else texts[0]
    form = f"{word} {_text(texts[1:k])}'{_text(texts[k:])}{_closed(comment)}"
    said = f"`{name}` has no mark, so a comment begins at `;`"
    hint = f"bars belong to `{name}'` and `{name}~'`, dots to `{name}.`: `{form}` is the gradient"
    return Habit(1, 2, said, hint)


def _closed(text: str) -> str:
    """A text up to the bracket that closes one before it."""
    depth = 1
    for k, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return text[: k + 1]
    return text


def _method(texts: Sequence[str], k: int) -> Habit:
    """A call of a method, whose bracket is token k."""
    first = k - 2
    while first > 0 and (texts[first - 1].isidentifier() or texts[first - 1] in ".]"):
        first -= 1
        if first and texts[first - 1] in OPCODES:
            break
    close = texts.index(")", k) if ")" in texts[k:] else len(texts)
    place, inside, name = _text(texts[first : k - 2]), _text(texts[k + 1 : close]), texts[k - 1]
    if place in _MODULES:
        return Habit(first, k, "functions have no module before them", f"`{name}({inside})`")
    arguments = f"{place}, {inside}" if inside else place
    known = _METHODS.get(name)
    hint = known.format(place, inside or "x") if known else f"{name}({arguments})"
    return Habit(k - 1, k, "places have no methods", f"`{hint}`")


def _function(kinds: Sequence[str], texts: Sequence[str]) -> Habit | None:
    """The head of a function."""
    for k in range(1, len(texts) - 1):
        if texts[k] == "->":
            said = "a function returns nothing: its results are parameters"
            return Habit(k, k + 1, said, "add a parameter for it: `out: f64`")
        if texts[k] == "<" and kinds[k - 1] == NAME and kinds[k + 1] == NAME:
            said = "types are in square brackets"
            return Habit(k, k + 1, said, f"`{texts[k - 1]}[{texts[k + 1]}]`")
        if texts[k : k + 2] == ["[", "]"] and "(" in texts[:k]:
            said = "an array names its length, or has `:` for any"
            return Habit(k, k + 2, said, f"`{texts[k - 1]}[n]`")
        if texts[k - 1] in "(," and texts[k] in (*_TYPES, *SCALARS) and kinds[k + 1] == NAME:
            t = _TYPES.get(texts[k], texts[k])
            hint = f"`{texts[k + 1]}: {t}`"
            return Habit(k, k + 2, "the type of a parameter follows its name", hint)
    return _head(texts)


def type_hint(name: str) -> str:
    """A hint with our name for a type of another language; "" if unknown."""
    if name in TYPE_NAMES:
        return f"`{TYPE_NAMES[name]}`"
    if len(name) == 1 and name.isupper():
        return f"a type parameter follows the function's name: `func name[{name}](…)`"
    return ""


def declaration(word: str, name: str) -> Habit | None:
    """The meaning of a line with the names of a type and a place in other languages."""
    return _declaration([word, name]) if word in _DECLARES else None


def _operands(kinds: Sequence[str], texts: Sequence[str]) -> Habit | None:
    """Operands without commas between them."""
    for k in range(2, len(texts)):
        if texts[k][0] == ".":
            continue
        if kinds[k] in (NAME, NUMBER) and kinds[k - 1] in (NAME, NUMBER, ")", "]"):
            hint = f"`{_text(texts[:k])}, {_text(texts[k:])}`"
            return Habit(k, k + 1, "operands are separated by commas", hint)
    return None


def _loop(texts: Sequence[str]) -> Habit | None:
    if texts[1:2] == ["("]:
        name = next((t for t in texts[2:] if t.isidentifier() and t not in _DECLARES), "i")
        return Habit(
            1, 2, "a loop names its first and its last value", f"`for {name} = 0 to n - 1`"
        )
    if texts[2:3] != ["in"]:
        return _head(texts)
    var, span = texts[1], f"`for {texts[1]} = 0 to n - 1`"
    if texts[3:5] == ["range", "("]:
        inside = list(texts[5 : len(texts) - texts[::-1].index(")") - 1]) if ")" in texts else []
        parts = _parts(inside)
        if 1 <= len(parts) <= 2:
            last = _before(parts[-1])
            span = f"`for {var} = {_text(parts[0]) if len(parts) == 2 else 0} to {last}`"
    return Habit(2, 3, "a loop names its first and its last value", span)


def _parts(texts: Sequence[str]) -> list[list[str]]:
    """The arguments of an argument list."""
    out: list[list[str]] = [[]]
    depth = 0
    for text in texts:
        depth += (text in "([") - (text in ")]")
        if text == "," and not depth:
            out.append([])
        else:
            out[-1].append(text)
    return [p for p in out if p]


def _before(texts: Sequence[str]) -> str:
    """The number before one."""
    if len(texts) == 1 and texts[0].isdigit():
        return str(int(texts[0]) - 1)
    return f"{_text(texts)} - 1"


def _head(texts: Sequence[str]) -> Habit | None:
    """A head with the signs that open a block elsewhere."""
    if texts[-1] in (":", "{", "then", "do"):
        k = len(texts) - 1
        hint = "leave it out; `end` closes the block"
        return Habit(k, k + 1, f"a block begins without `{texts[-1]}`", hint)
    if texts[0] in ("if", "elseif", "while") and "=" in texts:
        k = texts.index("=")
        return Habit(k, k + 1, "`=` compares nothing", f"`{_text(texts[1:k])} == …`")
    return None


def _declaration(texts: Sequence[str]) -> Habit:
    k = next((k for k in range(1, len(texts)) if texts[k] not in _DECLARES), 1)
    t = next((_TYPES.get(w, w) for w in texts[:k] if w in _TYPES or w in SCALARS), "")
    if texts[k + 1 : k + 2] == [":"] and len(texts) > k + 2:
        t = _TYPES.get(texts[k + 2], texts[k + 2])
    value = f" = {_text(texts[texts.index('=') + 1 :])}" if "=" in texts else ""
    t = f": {t}" if t else "" if value else ": f64"
    return Habit(
        0,
        k + 1,
        "a local variable is an ancilla, which is freed with the value that it has at that point",
        f"`alloc {texts[k]}{t}{value}`, and at the end `free {texts[k]} = …`",
    )


def _change(kinds: Sequence[str], texts: Sequence[str]) -> Habit | None:
    """A line that changes a place: `x += e`, `x = e`, `x++`, `x, y = y, x`, `f(x)`."""
    stop = _place(texts)
    place, rest = _text(texts[:stop]), list(texts[stop:])
    if rest[:1] == ["("] and stop == 1 and rest[-1] == ")":
        inside = _text(rest[1:-1])
        if place in OPCODES:
            return Habit(0, 1, "an instruction's operands have no brackets", f"`{place} {inside}`")
        return Habit(0, 1, "a function is run by `call`", f"`call {place}({inside})`")
    if rest in (["+", "+"], ["-", "-"]):
        name = "inc" if rest[0] == "+" else "dec"
        return Habit(stop, stop + 2, f"`{place}{rest[0]}{rest[1]}` is `{name} {place}`", "")
    if rest[:1] == [":"] and rest[1:2] == ["="]:
        rest, stop = rest[1:], stop + 1
    if len(rest) > 1 and rest[1] == "=" and rest[0] in _updates():
        name, value = _updates()[rest[0]], _text(rest[2:]) or "…"
        said = (
            f"a change is an instruction: `{place} {rest[0]}= {value}` is `{name} {place}, {value}`"
        )
        return Habit(0, stop + 2, said, "")
    if len(rest) > 1 and rest[1] == "=" and rest[0] in ("//", "%", "**", "<<", ">>", "|", "&", "@"):
        said = f"`{place} {rest[0]}= …` forgets what `{place}` was"
        value = _text([*texts[:stop], rest[0], *rest[2:]])
        return Habit(0, stop + 2, said, f"add it to another place: `add t, {value}`")
    if rest[:3] == ["=", "map", "("] and len(rest) > 5:
        said = f"`map` runs a function for each element, and `{place}` is one of its arguments"
        return Habit(stop + 1, stop + 2, said, f"`map {rest[3]}({place}{_text(rest[4:])}`")
    if rest[:1] == ["="] and len(rest) > 1:
        value = _text(rest[1:])
        said = f"`{place} = …` forgets what `{place}` was"
        hint = f"`add {place}, {value}` where `{place}` is 0, or an exchange: `swap x, y`"
        return Habit(0, stop + 1, said, hint)
    if rest[:1] == [","] and "=" in rest:
        return Habit(0, 1, "two places are exchanged by `swap`", f"`swap {place}, {rest[1]}`")
    return None


def _place(texts: Sequence[str]) -> int:
    """The number of tokens of the place at the beginning."""
    k, depth = 1, 0
    while k < len(texts) and (depth or texts[k] in ("[", ".") or texts[k - 1] == "."):
        depth += (texts[k] == "[") - (texts[k] == "]")
        k += 1
        if not depth and texts[k : k + 1] not in (["["], ["."]) and texts[k - 1] != ".":
            break
    return k


def _text(texts: Sequence[str]) -> str:
    """Tokens as they are usually written."""
    out = ""
    for k, text in enumerate(texts):
        tight = (
            not out
            or text in ")],.:"
            or texts[k - 1] in "([.:"
            or (text in "([" and (texts[k - 1].isidentifier() or texts[k - 1] in ")]"))
        )
        out += text if tight else f" {text}"
    return out
