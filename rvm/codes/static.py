"""A013 to A046: what is refused before any run, by the assembler or by the verifier."""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

STATIC: dict[str, Explanation] = {
    "A013": explain(
        "the destination is also read",
        """
        An instruction is undone by computing its value again and taking it away.  That works only
        if the value does not depend on what the instruction changes.

            add x, x * y            ; after it, x is gone: for y = -1 every x becomes 0

        This holds for indices inside the value too (`add i, p[i]`), and for the value of an
        ancilla (`free t = t`).  A length is not a value: `add x[0], len(x)` is fine.

        Accumulate into a fresh ancilla, and take it away afterwards if you can say what it is:

            alloc t: f64
            add t, x * y

        Where the text cannot tell (`add y[i], y[j]`), the run checks: see R004.
        """,
    ),
    "A014": explain(
        "two arguments of a call overlap",
        """
        Arguments are passed by reference.  A parameter that the function changes may share no cell
        with any other argument, whether as a whole, as a slice or view of the same array, or as a
        field of the same record; and a value that is passed may not read it.

            func axpy(y: f64[n], x: f64[n])
                add y, 2 * x

            func main(a: f64[n])
                call axpy(a, a)         ; y and x would be the same array

        Parameters that are only read may overlap.  Pass a copy, or slices that do not overlap
        (`a[0:k]` and `a[k:n]`); what cannot be told from the text is checked by the run (R004).
        """,
    ),
    "A015": explain(
        "a place is found by what is written",
        """
        Which cell a place is must not change while the instruction changes the cell: the inverse
        would look for it elsewhere.

            swap i, p[i]            ; after the exchange, p[i] is another element
            add  x[x[0]], 1         ; wrong if x[0] is 0

        Copy the index into an ancilla first:

            alloc k: i64
            add   k, i
            …     use p[k]
        """,
    ),
    "A016": explain(
        "the two places of an instruction overlap",
        """
        An instruction that changes two places needs two different ones.

            rot   x[i], x[i], t         ; no rotation of one number
            swap  x[0:3], x[1:4]        ; the slices share x[1] and x[2]

        The exchange of a place with its very self is allowed: it does nothing.  Where the text
        cannot tell (`rot x[i], x[j], t`), the run checks: see R004.
        """,
    ),
    "A020": explain(
        "a branch without its come-from, or a come-from without its branch",
        """
        A jump is two instructions that name each other, one at each end, so that it can be
        followed both ways.

                br    n == 0, out       ; forwards: if n == 0, go to `out`
                …
        out:    cf    n == 0, start     ; wrong: it names another line than the branch

        Two branches never share one come-from.  Give each `br` a `cf` of its own, with the label
        of the `br`; or write `if`, `while`, `from` or `for`, which make the pairs themselves.
        """,
    ),
    "A021": explain(
        "a jump leaves its function",
        """
        A branch and its come-from stand in one function.  A function is entered at its first
        instruction (forwards) or after its last (backwards), and nowhere else.

            func f(x: i64)
                br x == 0, done         ; `done` is not a label of f

        Use `call` to go to another function.
        """,
    ),
    "A030": explain(
        "a register is used where it is not live",
        """
        An ancilla exists from its `alloc` to its `free`, on every way that a run can take.

            add   t, x              ; t is not there yet
            alloc t: f64
            free  t
            add   y, t              ; t is not there any more

        Also: a `free` of what is not live, and an ancilla whose value or length needs itself.
        Move the use between `alloc` and `free`.
        """,
    ),
    "A031": explain(
        "an ancilla is allocated while it is live",
        """
        The value that it holds would be lost.

            alloc t: i64
            add   t, x
            alloc t: i64            ; what t held is gone

        Free it first, or give the second one another name.  Parameters are live all through their
        function and are never allocated in it.
        """,
    ),
    "A032": explain(
        "an ancilla is not freed",
        """
        A function leaves nothing behind: an ancilla that is live at its end would be thrown away
        with whatever it holds, and the function would have no inverse.

            func f(y: f64, x: f64)
                alloc t: f64
                add   t, x * x
                add   y, sqrt(t)        ; t still holds x * x

        Uncompute it, then free it:

                sub   t, x * x
                free  t

        or let the assembler do so: `routine r … end`, then `undo r`.
        """,
    ),
    "A033": explain(
        "two ways to one place disagree on what is live",
        """
        Where ways meet (at a come-from, going forwards; at a branch, going backwards), the same
        ancillas must be live on both.

            if n > 0
                alloc t: i64
            end n > 0
            free t                  ; is there a t?  it depends

        Allocate before the `if`, or free inside it.
        """,
    ),
    "A034": explain(
        "a write to a name that is read only",
        """
        A constant, a length, the variable of a `for` inside its loop, and a parameter as a whole
        (which belongs to the caller and cannot be freed) are not changed by a program.

            for i = 0 to n - 1
                inc i               ; the loop does that
            end

        Keep a counter of your own in an ancilla.
        """,
    ),
    "A040": explain(
        "the types do not match",
        """
        Nothing is converted silently: a conversion that loses bits could not be undone.

            func f(y: f64, n: i64)
                add y, n                ; f64 and i64

        Convert the value by the name of the type you want:

                add y, f64(n)

        A literal takes the type of its neighbours by itself.
        """,
    ),
    "A041": explain(
        "a literal does not fit its type",
        """
            func f(b: u8)
                add b, 256              ; a u8 holds 0 … 255
                add b, 1.5              ; and no fractions

        A literal must be a value of the type that its neighbours give it.  Arithmetic wraps;
        literals do not.
        """,
    ),
    "A042": explain(
        "the numbers of dimensions do not match",
        """
            func f(y: f64, A: f64[m, n])
                add y, A                ; a matrix does not go into a number
                add y, A[0]             ; neither does a row
                add y, A[0, 0, 0]       ; and A has two dimensions

        A value of fewer dimensions is repeated over a place of more (NumPy's rules), never the
        other way.  Reduce it (`sum(A)`), or name an element (`A[0, 0]`).
        """,
    ),
    "A043": explain(
        "an instruction does not take this type",
        """
            xor y, x        ; integers and bool only
            mul n, 3        ; no: an i64 does not divide exactly
            rot i, j, t     ; not unsigned integers: they have no negative numbers

        `rvm explain` does not know your types; `docs/isa.md` says for each opcode which it takes.
        A `log64` accumulates by `mul` and `div`, a `bool` by `xor`.
        """,
    ),
    "A044": explain(
        "too few or too many operands",
        """
        Each opcode and function takes a fixed number of operands, and a call one argument for each
        parameter of the function it names.

            swap a                  ; two places
            add  y, atan2(x)        ; atan2(y, x)
            call f(1, 2, 3)         ; func f(a: i64, b: i64)

        No instruction takes more than 255.
        """,
    ),
    "A045": explain(
        "a call to a function that does not exist",
        """
            call fob(n, x)          ; did you mean `fib`?

        A program holds all functions that it calls; those of another file come in by `include`.
        """,
    ),
    "A046": explain(
        "an expression or a text is too large",
        """
        One instruction holds an expression of at most 4096 nodes, at most 100 levels deep (a sum of
        many terms is as deep as it has terms).  Compute a part into an ancilla:

            alloc t: f64
            add   t, …              ; one half
            add   y, t + …          ; the other
            sub   t, …
            free  t

        `rvm asm --emit=strict` shows how nested expressions are taken apart.

        A program's texts have at most 64 MiB together, in at most 1000 files that include each
        other at most 64 levels deep.
        """,
    ),
}
