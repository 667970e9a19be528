"""The assembler's own diagnostics: what `rvm explain` says about texts, names and macros.

Codes that bytecode can earn as well (A013 to A046) are in `rvm.codes`.
"""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "A001": explain(
        "a character or literal without meaning",
        """
        The text holds a character that the language does not have, a number that cannot be read
        (`12abc`), or a string or quoted name that does not end in its line.

            add x, 3$           ; no sign `$`
            br !done, out       ; write `not done`
            print "hello        ; close it with `"`

        Comments start with `;`.  Numbers look like 12, 1_000, 0xff, 0b101, 1.5, 2e-3, 2.5j.
        """,
    ),
    "A002": explain(
        "something else was expected",
        """
        A line breaks off, or goes on where it should end.  The caret is at the first word that does
        not fit; what could stand there is in the message.

            add x,              ; an expression is missing
            add x, (y + 1       ; the parenthesis is not closed
            if 0 < x < 1        ; comparisons do not chain: `0 < x and x < 1`

        One line holds one instruction; `\\` at its end continues it in the next.
        """,
    ),
    "A003": explain(
        "an instruction that does not exist",
        """
        The first word of a line is not an opcode, a statement or a macro.

            mov x, y            ; nothing overwrites here: `add x, y` into a zero x, or `swap`

        `docs/isa.md` lists the opcodes.  A function of the program is run by `call f(…)`.
        """,
    ),
    "A004": explain(
        "a function that does not exist",
        """
        Inside an expression stand functions of the function table and `pure` functions.

            add y, sinus(x)     ; did you mean `sin`?
            add y, norm(x)      ; a `func` changes places: `call norm(y, x)`

        `docs/isa.md` lists the functions; `pure name(a, b) = …` declares one.
        """,
    ),
    "A005": explain(
        "a name that is not defined",
        """
        A register must be a parameter or be made by `alloc`, above its first use.  A macro sees its
        parameters, what it allocates itself, and constants: never the names around its use.

            func f(x: f64)
                add x, y        ; what is y?

            macro bump a
                add a, x        ; hand x over as a parameter
            end
        """,
    ),
    "A006": explain(
        "a name is declared twice",
        """
        Functions, constants, records, macros and pure functions of a program share one space of
        names, included files too.  The parameters of a function, the labels in it and its routines
        are distinct among themselves, and no ancilla is called like a parameter or a length.
        """,
    ),
    "A007": explain(
        "a block is not closed",
        """
            if x > 0
                inc y
                                ; `end` is missing

        `if`, `while`, `for`, `routine`, `extern`, `record` and `macro` end with `end`, `from` with
        `until …`.  A function has no `end`: the next declaration ends it.
        """,
    ),
    "A008": explain(
        "an `end` without a block",
        """
        `end`, `else`, `elseif`, `until` or `loop` stands where no block of that kind is open.
        Often a block was closed too early, or a function was given an `end`, which it does not
        have.
        """,
    ),
    "A009": explain(
        "a postcondition in the wrong place",
        """
        A condition may have its postcondition after a comma, or at the `end`, but not both:

            if x > 0, y > 0         if x > 0
                …                       …
            end                     end y > 0

        A chain with `elseif` names each one after its comma.  A `for` has none: its bounds are its
        conditions.
        """,
    ),
    "A010": explain(
        "an instruction outside of any function",
        """
        Instructions stand in functions; a file begins with a declaration: `func`, `const`,
        `record`, `macro`, `pure`, `include` or `entry`.

            func main(x: f64)
                add x, 1
        """,
    ),
    "A011": explain(
        "a type that does not exist",
        """
        The types are bool, i8 to i64, u8 to u64, f32, f64, c128, fixed, fixed(30), log64, arrays
        of these (`f64[n, 3]`), stacks (`stack[f64]`) and the program's records.  A record does
        not contain itself; a stack holds scalars.
        """,
    ),
    "A012": explain(
        "a file to include can't be read",
        """
            include "vectors.rasm"

        The path is looked for beside the including file, then in the folders of the include path.
        A file is read once, however often it is included.  It is a regular file that holds a UTF-8
        text: no folder, device or pipe.
        """,
    ),
    "A050": explain(
        "too few or too many operands of a macro",
        """
            macro twice x, y
                add x, y
                add x, y
            end
            …
                twice a         ; what is y?
        """,
    ),
    "A051": explain(
        "a macro or pure function that uses itself",
        """
        Macros and pure functions are replaced by what they stand for when the program is assembled;
        one that uses itself, directly or by way of others, would never end.  A `func` may call
        itself.
        """,
    ),
    "A052": explain(
        "a place is needed",
        """
        A parameter of a macro or pure function stands for an expression here, but is used as a
        place: it is indexed, a field of it is named, or it is allocated.

            pure first(a) = a[0]
            …
                add y, first(x + 1)     ; (x + 1)[0] is not a place
        """,
    ),
    "A054": explain(
        "a constant without a value",
        """
        A constant is evaluated by the assembler: from literals, other constants, operators and the
        common functions (sqrt, exp, log, sin, cos, min, max, …).  It names no register and not
        itself.

            const N = 100
            const H = pi / N            ; fine
            const BAD = N * x           ; x has its value at run time only
        """,
    ),
    "A055": explain(
        "a field that does not exist",
        """
            record Body
                pos: f64[3]
                m: f64
            end
            …
                add e, p.mass           ; the field is called m

        Complex numbers have `.re` and `.im`, arrays `.T`; other values have no fields.
        """,
    ),
    "A056": explain(
        "a record is not a value",
        """
        A record is passed to functions, allocated, freed and swapped as a whole.  Everything else
        happens to its fields:

            add p, q                    ; no
            add p.x, q.x                ; yes
        """,
    ),
    "A057": explain(
        "a routine that does not exist",
        """
        `undo r` undoes what `routine r … end` did, further down in the same function (or the same
        macro).

            routine r
                …
            end
            add y, t
            undo r
        """,
    ),
    "A058": explain(
        "the variable of a loop is changed",
        """
        A `for` counts by itself, in both directions, so its body only reads the variable; an inner
        loop needs another one.  A function that is called with the variable does not change it
        either, not even for a while: pass it a copy.  (Bounds are evaluated once; what they are
        made of may not have changed at the end: see R001.)

            for i = 0 to n - 1
                inc i                   ; use `while` to count otherwise
            end
        """,
    ),
    "A059": explain(
        "a `while` without a postcondition",
        """
        Forwards, the first condition says whether to go through the loop once more.  Backwards, the
        second one does: it must be false before the first iteration and true after each.

            while fib(x) < 100 , n != 0
                …
                inc n
            end

        If nothing in the state tells the first iteration from the others, add a counter.
        """,
    ),
    "A060": explain(
        "a label that does not exist",
        """
        A label stands before a `br` or `cf` of the same function: `out: cf n == 0, start`.  Labels
        in a macro or routine are its own.
        """,
    ),
    "A061": explain(
        "what stands in an `extern` block",
        """
        `print`, `assert` and `callback` happen in a block that names its direction, and nothing
        else stands there: such a block changes no place.

            extern forward
                print "energy", e
                assert e >= 0, "negative energy"
                callback progress, i
            end
        """,
    ),
    "A062": explain(
        "a reserved word",
        """
        `and`, `or`, `not`, `true`, `false`, `inf` and `nan` name nothing.  All other words may be
        names; in backquotes, anything may.
        """,
    ),
    "A063": explain(
        "a length that can't be",
        """
        A parameter's length is a new name, which it binds, or an expression over lengths bound
        before it.  It does not depend on the value of a parameter, and is not called like one.

            func f(x: f64[n], y: f64[n, 2*n])       ; fine
            func g(k: i64, x: f64[k])               ; k is a register

        The lengths of an ancilla are any integers that are known where it is made and where it is
        freed, none left out.
        """,
    ),
    "A064": explain(
        "a jump out of a routine or macro",
        """
        A routine is undone as a whole, and a macro is a piece of code by itself: a branch and its
        come-from stand both inside of it or both outside.
        """,
    ),
    "A065": explain(
        "a register without a type",
        """
        The first `alloc` of a name says what it is; later ones may leave it out.

            alloc t: f64
            …
            free  t
            alloc t                     ; the same register again
        """,
    ),
    "A066": explain(
        "a policy that no planner knows",
        """
        An `iterate` names one budget, with constants:

            iterate step(y, x) times 1000 with pebbles = 12         ; states at a time
            iterate step(y, x) times 1000 with bennett = 4          ; Bennett's recursion, 4 pieces
            iterate step(y, x) times 1000 with max_moves = 5000     ; steps done and undone
            iterate step(y, x) times 1000 with memory = 10 ** 6, state_bytes = 800

        `goal = erase` adds the result to y, and needs no y that is zero; `goal = persist`, which
        is meant without it, leaves the result itself, and is cheaper.
        """,
    ),
    "A067": explain(
        "a step's number that is not passed on",
        """
        The variable of an `iterate` is the number of a step.  It is one of the arguments, where it
        stands alone, and nothing else:

            iterate step(y, x, k, dt) for k = 0 to 99 with pebbles = 8

        A step that takes no number is done so many `times`.
        """,
    ),
    "A068": explain(
        "a budget of moves for a number of steps that only the run knows",
        """
        How many states a number of moves allows is found out by the assembler, for a number of
        steps that is a constant.  Where only the run knows the number, say how many states there
        may be, or into how many pieces Bennett's recursion cuts the steps:

            iterate step(y, x) times n with pebbles = 12
            iterate step(y, x) times n with bennett = 4
        """,
    ),
    "A069": explain(
        "a file that this text may not include",
        """
        Who assembles the texts of strangers says which files they may read:

            rvm.assemble(text)                          # none
            rvm.load("got.rasm", includes="below")      # those of its folder, and below it
            rvm run got.rasm --includes below

        With "below" come the folders of the include path.  A link that leads outside counts as
        outside.  A file that is forbidden is not opened, and whether it exists is not told.
        """,
    ),
    "A070": explain(
        "more steps or more schedules than are planned",
        """
        The best schedules are looked for among up to 16,777,216 steps, and are made until those of
        a program have 131,072 instructions in all.  A long schedule with barely enough states has
        tens of thousands, with more states fewer.  Let a step do more, let functions share an
        `iterate`, or take Bennett's recursion, which is short for any number of steps:

            iterate step(y, x) times 10 ** 9 with bennett = 4
        """,
    ),
    "A071": explain(
        "a type that does not follow",
        """
        What a type parameter stands for follows from the arguments of a call.  Where two arguments
        say different types, convert one; where none says any, name the types in brackets:

            func scale[T: real](y: T, x: T)
            …
                call scale(a, f64(b))       ; a is an f64, b an f32
                call count[u8](n)           ; nothing here is a T

        Plain numbers are asked last, and take what the others say.
        """,
    ),
    "A072": explain(
        "a type that a parameter may not be",
        """
        A type parameter names the classes of types, or the types, that it may stand for:

            func norm[T: real](r: T, x: T[n])       ; f32, f64, fixed
            func mix[T: int | bool](a: T, b: T)
            func add2[T: number[…]](y: T, x: T)     ; numbers, and arrays of them
            func keep[T](y: T, x: T)                ; whatever a register may be

        The classes are real, float, int, number, exact and others, which docs/language.md lists.
        """,
    ),
    "A073": explain(
        "a generic function for types without end",
        """
        A generic function that calls itself, perhaps by way of others, for ever new types or
        functions would never be done:

            func grow(x: f64, f: func(f64))
                call grow(x, twice[f])              ; twice[twice[twice[…]]]

        Call it for the types that it was made for, or for finitely many others.
        """,
    ),
    "A074": explain(
        "a function that does not fit",
        """
        A parameter that is a function takes the name of one, whose parameters are of the types
        that are written.  A generic one is made for them.

            func fold[T](s: T, x: T[n], f: func(T, T))
            …
                call fold(s, x, plus)               ; plus takes (T, T), T being the type of s
        """,
    ),
    "A075": explain(
        "a value of `with` or `replace` that can't be",
        """
        A register of `with` begins and ends with its value, so the type is that of the value, if
        none is written.  An array holds the elements of an expression, for which it needs lengths:

            with t = x * y, u: f64[n] = a * v
                …
            end

        `replace` makes the new value in another register, by a function that adds it or by an
        expression, and takes the old one away by what makes it from the new:

            replace x as t by f(t, x), g(x, t)
            replace x as t by 2 * x + 1, (t - 1) / 2
        """,
    ),
    "A076": explain(
        "a `map` over nothing, or of what all elements share",
        """
        `map f(x, y, k)` does f for each element of those arguments that have a dimension more than
        f's parameters.  The others are the same for every element, so f may only read them: else an
        element would depend on those before it.

            func axpy(y: f64, a: f64, x: f64)
                add y, a * x
            …
                map axpy(v, 2, w)                   ; for each element of v and w

        Where one element does depend on others, write a `for`.
        """,
    ),
    "A080": explain(
        "a derivative that can't be called so",
        """
        `call f'(x, y; x_bar, y_bar)` runs the gradient of f: behind the `;` stands a place for
        each parameter of f that is a real or complex number, an array or a stack of such, or a
        record with such fields, in their order.  Integers and bools have none.  The types are
        those of the parameters, but f64 for fixed-point numbers and logarithms.

            func norm(y: f64, x: f64[n], k: i64)
            …
                call norm'(y, x, k; 1, x_bar)

        Adjoints (`f~'`) and tangents (`f.`) are called alike.
        """,
    ),
}
