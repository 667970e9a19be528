"""Messages in terms of Python: refusals, and translations of the assembler's messages."""

from __future__ import annotations

import ast

from rvm_asm.messages import Reporter, Words

FORGETS, UNREAD, CHANGES, OUTSIDE = "A090", "A091", "A092", "A093"
"""Codes: a statement that forgets; one that is not read; a name for a value that changes; a name
from outside that is not a constant."""

REFUSED: dict[type[ast.AST], tuple[str, str, str]] = {
    ast.Return: (
        FORGETS,
        "a reversible function returns nothing: its results are its parameters",
        "add to a parameter, `out += …`, and leave `return` out",
    ),
    ast.Break: (
        UNREAD,
        "a loop can be left only where its condition is tested",
        "`while rvm.loop(p, q):`, with p false where the loop ends and q false where it begins",
    ),
    ast.Continue: (
        UNREAD,
        "an iteration cannot be left early",
        "put the rest under `if rvm.when(p, q):`",
    ),
    ast.Try: (UNREAD, "errors end a run, and undo its changes", "leave `try` out; `assert` checks"),
    ast.Raise: (UNREAD, "`raise` is not read", '`assert condition, "text"` ends the run'),
    ast.Global: (FORGETS, "a name from outside is a constant here", "make it a parameter"),
    ast.Nonlocal: (FORGETS, "a name from outside is a constant here", "make it a parameter"),
    ast.FunctionDef: (
        UNREAD,
        "a function inside of a reversible one is not read",
        "put it outside, under `@rvm.reversible`",
    ),
    ast.ClassDef: (UNREAD, "a class inside of a reversible function is not read", ""),
    ast.Import: (UNREAD, "an import inside of a reversible function is not read", "put it outside"),
    ast.ImportFrom: (
        UNREAD,
        "an import inside of a reversible function is not read",
        "put it outside",
    ),
    ast.Match: (UNREAD, "`match` is not read", "`if … elif … else`"),
    ast.Lambda: (UNREAD, "a lambda cannot be used here", "write the expression where it is used"),
    ast.ListComp: (
        FORGETS,
        "a list made here would be lost",
        "`with rvm.ancilla(rvm.f64, n) as t:`, and a loop that adds to t",
    ),
    ast.GeneratorExp: (
        UNREAD,
        "a generator is not read",
        "a loop that adds to a place, or `np.sum` of an expression over arrays",
    ),
    ast.SetComp: (FORGETS, "a set made here would be lost", ""),
    ast.DictComp: (FORGETS, "a dict made here would be lost", ""),
    ast.List: (
        FORGETS,
        "a list made here would be lost",
        "an array is a parameter, or `with rvm.ancilla(rvm.f64, n) as t:`, and is filled there; "
        "of a tuple outside, `T[0]` is a constant",
    ),
    ast.Dict: (FORGETS, "a dict made here would be lost", ""),
    ast.Set: (FORGETS, "a set made here would be lost", ""),
    ast.NamedExpr: (FORGETS, "`:=` is not read", "a line `name = expression` before this one"),
    ast.Yield: (UNREAD, "a reversible function is not a generator", ""),
    ast.YieldFrom: (UNREAD, "a reversible function is not a generator", ""),
    ast.Await: (UNREAD, "a reversible function does not wait", ""),
    ast.Starred: (UNREAD, "`*` is not read here", "name the arguments one by one"),
    ast.JoinedStr: (UNREAD, "a text may only be in `print` and `assert`", ""),
}
"""Nodes that are refused everywhere: code, message, replacement."""

INSTEAD = {
    "mean": "`np.sum(x) / len(x)`",
    "average": "`np.sum(x * w) / np.sum(w)`",
    "var": "`np.sum((x - m) ** 2) / len(x)`, with m in `rvm.ancilla(np.sum(x) / len(x))`",
    "std": "`np.sqrt(np.sum((x - m) ** 2) / len(x))`, with m in `rvm.ancilla(…)`",
    "norm": "`np.sqrt(np.sum(x * x))`",
    "round": "`np.floor(x + 0.5)`, or as a whole number `int(np.floor(x + 0.5))`",
    "rint": "`np.floor(x + 0.5)`",
    "around": "`np.floor(x + 0.5)`",
    "clip": "`np.minimum(np.maximum(x, lo), hi)`",
    "sort": "exchanges of elements, `x[i], x[j] = x[j], x[i]`, under conditions",
    "sorted": "exchanges of elements, `x[i], x[j] = x[j], x[i]`, under conditions",
    "divmod": "`x // y` and `x % y`",
    "zeros": "`with rvm.ancilla(rvm.f64, n) as t:` makes an array of zeros",
    "zeros_like": "`with rvm.ancilla(0.0, like=x) as t:` makes an array of zeros",
    "empty": "`with rvm.ancilla(rvm.f64, n) as t:` makes an array of zeros",
    "ones": "`with rvm.ancilla(1.0, like=x) as t:` makes an array of ones",
    "arange": "a loop, `for i in range(n):`, that adds i to the elements",
    "array": "`with rvm.ancilla(rvm.f64, n) as t:` makes an array",
    "copy": "`with rvm.ancilla(x) as t:` holds a copy",
    "roll": "`x[1:]` and `x[:-1]`, or a loop over indices",
    "einsum": "products, `A @ x`, and sums, `np.sum(x * y)`",
    "trace": "`np.sum` of a place that a loop adds `A[i, i]` to",
    "append": "`rvm.push(x, s)` puts a value on a stack",
    "pop": "`rvm.pop(x, s)` takes the top of a stack",
    "random": "draw numbers outside, and pass them",
    "rand": "draw numbers outside, and pass them",
    "grad": "`rvm.gradient_of(f)(y, x, bars=(1, x_bar))` adds the gradient to `x_bar`",
    "vjp": "`rvm.gradient_of(f)(y, x, bars=(y_bar, x_bar))`",
    "jvp": "`rvm.tangent_of(f)(y, x, dots=(y_dot, x_dot))`",
    "input": "pass what is read as an argument",
    "open": "pass what is read as an argument",
}
"""Functions and methods that do not exist here, and their replacements."""

FORGETTING = {
    ast.FloorDiv: (
        "//=",
        "the remainder",
        "`with rvm.ancilla({x} // {e}) as {h}:` holds the quotient",
    ),
    ast.Mod: ("%=", "the quotient", "`with rvm.ancilla({x} % {e}) as {r}:` holds the remainder"),
    ast.Pow: ("**=", "which root it was", "`{y} += {x} ** {e}` adds the power to another place"),
    ast.LShift: ("<<=", "the bits that are shifted out", "`rvm.rol({x}, {e})` rotates them"),
    ast.RShift: (">>=", "the bits that are shifted out", "`rvm.ror({x}, {e})` rotates them"),
    ast.BitOr: ("|=", "which bits were set before", "`{x} ^= {e}`, or `{y} += {x} | {e}`"),
    ast.BitAnd: ("&=", "which bits were set before", "`{x} ^= {e}`, or `{y} += {x} & {e}`"),
    ast.MatMult: ("@=", "what was there", "`{y} += {x} @ {e}` adds the product to another place"),
}
"""Updates that can't be undone: operator, lost information, replacement for x and e."""

SIGNS = {"add": "+=", "sub": "-=", "xor": "^=", "mul": "*=", "div": "/="}
"""The operators of the instructions that update a place."""

_WORDS = (
    (
        r"operand `\w+` of `(?:add|sub|xor|mul|div)` has the type (.+), not (.+)",
        r"the value has the type \1, the place \2",
    ),
    (r"operand `b` of `swap` has the type (.+), not (.+)", r"the places have the types \2 and \1"),
    (
        r"`(add|sub|xor|mul|div)` (does not take a value of type)",
        lambda m: f"`{SIGNS[m[1]]}` {m[2]}",
    ),
    (r"`mul` by an odd number is undone by `unmul`", "`*=` by an odd number can be undone"),
    (r"`mul` and `div`", "`*=` and `/=`"),
    (r"accumulates by `xor`", "accumulates by `^=`"),
    (r"^(true|false) is a bool", lambda m: f"{m[1].title()} is a bool"),
    (r"`dim` takes an axis from", "the array has axes from"),
    (r"`alloc (\w+): \w+`", r"`with rvm.ancilla(0.0) as \1:`"),
    (r"`alloc t: f64\[n\]`", "`rvm.ancilla(rvm.f64, n)`"),
    (r"`call (\w+)(\(…\)|\[[^\]]*\]\(…\))`", r"`\1(…)`"),
    (r"`uncall (\w+)\(…\)`", r"`(~\1)(…)`"),
    (r"for example `(\w+): (\w+)\[n(?:, n)*\] = …`", r"`rvm.ancilla(…, like=x) as \1`"),
    (r"`(\w+)\.re` or `\.im`", r"`\1.real` or `.imag`"),
    (r"take its `\.re` or `\.im`", "take its `.real` or `.imag`"),
    (r"take its `\.re`", "take its `.real`"),
    (r"`(sub|add) (\w+), ([^`]*)`", lambda m: f"`{m[2]} {'+-'[m[1] == 'sub']}= {m[3]}`"),
    (
        r"accumulate into a fresh ancilla: +alloc \w+: \S+ / add (\w+), (.*)",
        r"add it elsewhere: `\1 += \2`",
    ),
    (
        r"copy the index first: +alloc (\w+): i64 / add \w+, (.*)",
        r"copy the index first: `with rvm.ancilla(\2) as \1:`",
    ),
    (
        r"which is 0 afterwards: `alloc t: f64 = …`",
        "which is 0 afterwards: `with rvm.ancilla(0.0) as t:`, and `t += …`",
    ),
    (r"has no `\.re` and `\.im`", "has no `.real` and `.imag`"),
    (
        r"bring `(\w+)` back to a known value, then: +free \w+ = …",
        r"`del \1`, where it has its initial value again",
    ),
    (
        r"(`[^`]+`) is passed for `place \d[^`]*`, which `permutation [^`]*` changes, and "
        r"(?:shares elements with (`[^`]+`)|for).*",
        lambda m: f"{m[1]} and {m[2] or 'another of the places'} overlap",
    ),
    (r"pass a copy for `place \d.*", "exchange places that do not overlap"),
    (r"`type \d+` is (.+) by `place \d+`, and (.+) by .*", r"the places have the types \1 and \2"),
    (
        r"pass a copy for (`\w+`): alloc it, add the value, call, and uncompute the copy",
        r"pass a copy for \1: `with rvm.ancilla(…) as t:`",
    ),
    (r"it is written `(\w+) ([^`]*)`", r"it is written `rvm.\1(\2)`"),
    (r"exactly after this arm: `if (.*), …`", r"exactly after this arm: `if rvm.when(\1, …):`"),
    (r"\bthis arm was (not )?taken", r"this block was \1run"),
    ("where the arm was taken", "where the block was run"),
    (
        "before the arm, its condition holds exactly where it was taken",
        "before the block, its condition holds exactly where it was run",
    ),
    (r"\b(this|the) arm\b", r"\1 block"),
    (r"^(`\w+`) is freed with a wrong value", r"\1 ends with a wrong value"),
    (
        r"^`states of iterate[^`]*` is freed with a wrong value",
        "the first argument of `rvm.iterate` is not zero before it, or a step does not come back",
    ),
    (
        "uncompute it before the free, by undoing the code that computed its value",
        "undo its changes first: `r.undo()` undoes the block `with rvm.compute() as r:`",
    ),
    (
        "undo that change before the free, or make it after the free",
        "undo that change before the end, or make it after the end",
    ),
    (r"^(the stack `[^`]+`) is freed while", r"\1 ends while"),
    ("that the instruction uses", "that the statement uses"),
    (r"`undo (\w+)` after the last use: the routine", r"`\1.undo()` after the last use: the block"),
    (r"`push x, s`", "`rvm.push(x, s)`"),
    (r"`pop x, s`", "`rvm.pop(x, s)`"),
    (r"; use `while` to count otherwise", "; use `while rvm.loop(p, q):` to count otherwise"),
    (r"`(\w+): func\b", r"`\1: a function"),
)
"""Phrases in the assembler's messages about its statements, and their form for Python."""


_in_words = Words(_WORDS)


def words(text: str) -> str:
    """A message in terms of Python."""
    return _in_words(text)


class PythonReporter(Reporter):
    """A reporter whose messages speak of Python."""

    words = staticmethod(words)
