"""What `rvm explain` says of messages about functions in Python."""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "A090": explain(
        "a statement that forgets",
        """
        In a function under `@rvm.reversible` every statement can be undone.  These can't:

            x = y + 1               # what was x?  `x += y + 1` if x is 0, or `x, y = y, x`
            x //= 2                 # was it even?  `with rvm.ancilla(x // 2) as h:`
            return x * y            # a result is a parameter: `out += x * y`
            del x                   # only what `t: rvm.f64 = e` made is freed, with that value

        `+= -= ^=` on all numbers, `*= /=` on floats, exchanges `a, b = b, a` and `x = -x` can be.
        """,
    ),
    "A091": explain(
        "Python that has no meaning in a reversible function",
        """
        The source of a function under `@rvm.reversible` is read, not run, and not all of Python has
        a meaning there: `break`, `continue`, `try`, comprehensions, `lambda`, methods, calls of
        ordinary functions.  The message says what to write instead.

            for v in x:                         # `for i in range(len(x)):`, and x[i]
            while x > 1:                        # `while rvm.loop(x > 1, k > 0):`
            y += helper(x)                      # put helper under `@rvm.reversible`

        `docs/python.md` has a table of all that has a meaning.
        """,
    ),
    "A092": explain(
        "a name for a value that changes",
        """
        `h = x + 1` gives an expression a name, and the expression is put in wherever the name is
        used.  That is the value that it had only if nothing in it changes in the function.

            h = x + 1
            x += 1                              # h would be another number from here on
            y += h

            with rvm.ancilla(x + 1) as h:       # a place of its own holds the number; it is freed
                …                               # with the value, which must be the same by then
        """,
    ),
    "A093": explain(
        "a name from outside that is no constant",
        """
        Numbers, and tuples of numbers, that stand outside of a function are constants in it; when
        they have another value at a later call, the program is made anew.  Lists, arrays and other
        objects may change while the program stays: they are parameters.

            WEIGHTS = (0.5, 0.25)               # fine: `y += WEIGHTS[0] * x`
            table = np.arange(10.0)             # not this: `def f(y, x, table): …`
        """,
    ),
    "U047": explain(
        "a Python file without reversible functions",
        """
        `rvm run file.py` and the other commands import the file, under the name `__rvm__`, and take
        the functions under `@rvm.reversible` that it defines.  It has none.  What the file does
        besides, under `if __name__ == "__main__":`, is not done.
        """,
    ),
}
