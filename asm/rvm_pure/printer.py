"""Terms and definitions as texts that the reader reads again."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from rvm_asm.expressions import BINARY, COMPARE, NOT, POWER, UNARY

from rvm.isa import FUNCTIONS
from rvm_pure.definition import Definition
from rvm_pure.parser import PREFIX, SECTIONS, WORDS_OF_TERMS
from rvm_pure.terms import (
    App,
    Call,
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Loop,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    walk,
)

WIDTH = 96
_ATOM, _APPLICATION, _OPEN = 99, 50, 0
_WORD_OF = {name: word for word, name in PREFIX.items()}


def definition(d: Definition, *, block: bool | None = None, prefix: bool = False) -> str:
    """A definition; with `block` its outer lets as lines, with `prefix` every function a word."""
    printer = Printer(prefix, applied(d.body))
    spelled = printer.spelled
    shown = [f"{spelled(p.name)}: {p.type}" for p in d.params]
    if d.continuation:
        first, *names = map(spelled, d.continuation)
        shown.append(f"{first}({', '.join(names)})")
    head = f"def {spelled(d.name.text)}({', '.join(shown)}) ="
    if d.block if block is None else block:
        lines, e = [head], d.body
        while isinstance(e, Let):
            lines.append(printer.broken(f"{printer.pattern(e.pattern)} = ", e.value, 4))
            e = e.body
        lines.append(printer.broken("", e, 4))
        return "\n".join(lines) + "\n"
    one = f"{head} {printer.text(d.body)}"
    if len(one) <= WIDTH and not isinstance(d.body, Let):
        return one + "\n"
    return f"{head}\n{printer.broken('', d.body, 4)}\n"


def term(e: Term) -> str:
    """A term in one line."""
    return Printer().text(e)


def applied(e: Term) -> frozenset[str]:
    """The functions of the table that a term applies."""
    return frozenset(x.fn for x in walk(e) if isinstance(x, Op))


class Printer:
    """Terms as texts; with `prefix` in 004's manner, every function a word before a tuple."""

    def __init__(self, prefix: bool = False, functions: Container[str] = ()) -> None:
        self.prefix = prefix
        self.functions = functions
        """The functions of the table that variables must not hide."""

    def spelled(self, name: str) -> str:
        """A name, in backquotes if it would be read as a word or would hide a function."""
        return f"`{name}`" if name in WORDS_OF_TERMS or name in self.functions else name

    def pattern(self, p: Pattern, inner: bool = False) -> str:
        """A pattern, in brackets if it is inside of another."""
        if isinstance(p, str):
            return self.spelled(p)
        found = ", ".join(self.pattern(q, True) for q in p)
        return f"({found})" if inner or len(p) != 1 else found

    def text(self, e: Term, least: int = 0) -> str:
        """A term in one line, in brackets if its outermost operator binds looser than `least`."""
        found, power = self._printed(e)
        return found if power >= least else f"({found})"

    def broken(self, head: str, e: Term, indent: int) -> str:
        """A term after `head`, in several lines where it is long."""
        gap = " " * indent
        one = f"{gap}{head}{self.text(e)}"
        simple = not isinstance(e, Let) and not _has_long_let(e)
        if len(one) <= WIDTH and simple:
            return one
        match e:
            case Let(p, value, body):
                first = self.broken(f"{head}let {self.pattern(p)} = ", value, indent) + " in\n"
                if head:
                    first = f"{gap}{head.rstrip()}\n" + self.broken(
                        f"let {self.pattern(p)} = ", value, indent + 4
                    )
                    return first + " in\n" + self.broken("", body, indent + 4)
                return first + self.broken("", body, indent)
            case Tup(items) if any(isinstance(x, Lam) for x in items):
                inside = ",\n".join(self.broken("", x, indent + 4) for x in items)
                return f"{gap}{head}(\n{inside}\n{gap})"
            case Lam(params, body):
                names = ", ".join(self.pattern(q, True) for q in params)
                return f"{gap}{head}fun ({names}) ->\n{self.broken('', body, indent + 4)}"
            case Loop(body=body):
                return f"{gap}{head}{self._loop(e)}\n{self.broken('', body, indent + 4)}"
            case If(c, yes, no):
                start = f"{gap}{head}if {self.text(c)} then\n"
                second = f"\n{gap}    else\n"
                return (
                    start
                    + self.broken("", yes, indent + 8)
                    + second
                    + self.broken("", no, indent + 8)
                )
        return one

    def _loop(self, e: Loop) -> str:
        """A loop but for its body."""
        last = f"= {self.text(e.count, BINARY['-'])} - 1 to 0"
        way = last if e.down else f"< {self.text(e.count)}"
        start = f"loop {self.pattern(e.pattern)} = {self.text(e.init)}"
        return f"{start} for {self.spelled(e.var)} {way} do"

    def _printed(self, e: Term) -> tuple[str, int]:
        match e:
            case Var(name):
                return self.spelled(name), _ATOM
            case Num(value, elem):
                found = number(value) + f"'{elem}" * bool(elem)
                return found, UNARY if found.startswith("-") else _ATOM
            case Tup(items):
                return f"({self._list(items)})", _ATOM
            case Let(p, value, body):
                return f"let {self.pattern(p)} = {self.text(value)} in {self.text(body)}", _OPEN
            case If(c, a, b):
                found = f"if {self.text(c)} then {self.text(a)} else {self.text(b)}"
                return found, _OPEN
            case Lam(params, body):
                names = ", ".join(self.pattern(q, True) for q in params)
                return f"fun ({names}) -> {self.text(body)}", _OPEN
            case App(fn, args):
                return f"{self.text(fn, _ATOM)}({self._list(args)})", _ATOM
            case Call(name, args):
                return f"{self.spelled(name)}({self._list(args)})", _ATOM
            case Proj(k, of):
                part = f"proj {k + 1}" if k > 1 else ("fst", "snd")[k]
                return f"{part} {self.text(of, _ATOM)}", _APPLICATION
            case Index(of, items):
                return f"{self.text(of, _ATOM)}[{self._list(items)}]", _ATOM
            case Update(of, items, value):
                at = self._list(items)
                return f"{self.text(of, 1)} with [{at}] = {self.text(value)}", _OPEN
            case Loop(body=body):
                return f"{self._loop(e)} {self.text(body)}", _OPEN
        return self._applied(e)

    def _applied(self, e: Term) -> tuple[str, int]:
        match e:
            case Op(fn, args):
                return self._op(fn, args)
            case Prim(name, args):
                return f"{name} {self._atoms(args)}", _APPLICATION
            case Each(fn, arrays):
                if fn == _PAIR and len(arrays) == 2:
                    return f"zip {self._atoms(arrays)}", _APPLICATION
                n = len(arrays)
                mapped = "map" if n == 1 else f"map{n}" if n < 9 else "mapn"
                return f"{mapped} {self._function(fn)} {self._atoms(arrays)}", _APPLICATION
            case Fold(kind, fn, init, array):
                return f"{kind} {self._function(fn)} {self._atoms((init, array))}", _APPLICATION
        raise TypeError(f"a {type(e).__name__} is not printed")

    def _op(self, fn: str, args: tuple[Term, ...]) -> tuple[str, int]:
        if self.prefix and (fn in _WORD_OF or len(args) == 1):
            return f"{_WORD_OF.get(fn, fn)} {self._atoms((_tuple(args),))}", _APPLICATION
        sign = FUNCTIONS[fn].symbol or fn
        if len(args) == 1 and (sign in ("-", "~") or fn == "not"):
            power = NOT if fn == "not" else UNARY
            return f"{sign}{' ' * (fn == 'not')}{self.text(args[0], power)}", power
        if len(args) == 2 and sign in BINARY:
            power = BINARY[sign]
            left = power + (power in (COMPARE, POWER))
            right = power + (power != POWER)
            return f"{self.text(args[0], left)} {sign} {self.text(args[1], right)}", power
        if len(args) == 1 and isinstance(args[0], (Each, Fold, Prim, Op)):
            return f"{fn} {self.text(args[0], _ATOM)}", _APPLICATION
        return f"{fn}({self._list(args)})", _ATOM

    def _function(self, fn: Lam) -> str:
        match fn:
            case Lam((str(a), str(b)), Op(name, (Var(x), Var(y)))) if (a, b) == (x, y) and a != b:
                sign = FUNCTIONS[name].symbol
                if sign in SECTIONS:
                    return sign
            case Lam((str(a),), Op(name, (Var(x),))) if a == x and not FUNCTIONS[name].symbol:
                return name
        names = ", ".join(self.pattern(q, True) for q in fn.params)
        return f"({names}. {self.text(fn.body)})"

    def _atoms(self, args: Iterable[Term]) -> str:
        return " ".join(self.text(a, _ATOM) for a in args)

    def _list(self, args: Iterable[Term]) -> str:
        return ", ".join(map(self.text, args))


_PAIR = Lam(("a'", "b'"), Tup((Var("a'"), Var("b'"))))


def _tuple(args: tuple[Term, ...]) -> Term:
    return args[0] if len(args) == 1 else Tup(args)


def _has_long_let(e: Term) -> bool:
    """Whether lets are to be seen at the ends of a term."""
    match e:
        case Lam(body=b) | Loop(body=b):
            return isinstance(b, Let) or _has_long_let(b)
        case If(_, a, b):
            return any(isinstance(x, Let) or _has_long_let(x) for x in (a, b))
        case Tup(items):
            return any(map(_has_long_let, items))
    return False


def number(value: Any) -> str:
    """A number as a literal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
