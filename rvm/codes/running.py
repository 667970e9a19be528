"""R001 to R019, R099: what only a run can find out."""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

RUNNING: dict[str, Explanation] = {
    "R001": explain(
        "an ancilla is freed that does not hold its value",
        """
        `free x = v` drops x only if it holds v: what is known can be computed again, the rest would
        be erased.

            alloc t: i64
            add   t, x
            free  t                 ; wrong unless x was 0
            free  t = x             ; right

        What rounding leaves of a float passes, and is counted as erased bits.  Where what made the
        value is undone as it was made, that is whatever is left, if it is finite.  Elsewhere it is
        as much as the updates of x explain, beside the largest number that x has held; what is more
        is tried by runs with perturbed rounding before it is refused.  `--tolerance` puts a part of
        that largest number in the place of this; with 0 each bit counts, the sign of a zero too.  A
        NaN passes only where a NaN is expected.

        x is *lost* where it has been so large that rounding has left nothing of the value that it
        must hold: no check could see whether it is right.

        A stack must be empty.  Going backwards, an `alloc` is a `free`.

        A `for` keeps its bounds in ancillas (`i.end`, `i.lo` of a loop over i), which are freed as
        what the bounds are at the loop's end: they may not change in between.
        """,
    ),
    "R002": explain(
        "a branch and its come-from disagree",
        """
        A run that lands at a come-from by the branch must find its condition true; one that falls
        into it from above must find it false.  Otherwise a run backwards would not know where it
        came from.

            if x > 0                ; end: x > 0 again, unless another postcondition is named
                neg x               ; now it is not
            end

        Name a condition that holds after the first side and not after the second:

            if x > 0
                neg x
            end x < 0

        In `while p, q`, q is false on entry and true after each iteration.
        """,
    ),
    "R003": explain(
        "an index or slice out of bounds",
        """
        Indices run from 0 to length - 1; negative ones do not count from the end.  A slice `a:b`
        needs 0 <= a <= b <= length.

            for i = 0 to n          ; runs n + 1 times
                add s, x[i]         ; x[n] is not there
            end
        """,
    ),
    "R004": explain(
        "places overlap that must not",
        """
        The text could not tell, the run can: here they are the same cell, or slices that share one.

            add  y[i], y[j]         ; fails when i = j: it could not be undone
            rot  x[i], x[j], t      ; the same
            call f(a[i:j], a[k:l])  ; if f changes one of them and the slices overlap

        Guard it (`if i != j`), or go by an ancilla.
        """,
    ),
    "R005": explain(
        "an exact number is divided by zero",
        """
        Integers and fixed-point numbers have no infinity.  `//`, `%`, `/` and negative powers of
        them need a divisor that is not 0.  (A float gives inf or NaN, as IEEE 754 says.)

            add q, a // b           ; put `if b != 0` around it
        """,
    ),
    "R006": explain(
        "a stack is empty, or a place is not",
        """
        `pop x, s` moves the top of the stack into x, which must be zero: what it held would be
        lost.  `push x, s` leaves zero in x.  There must be something to pop.  What rounding
        has left in x passes for zero as at a `free` (R001), if x is an ancilla or undone as it was
        made, and so does a negative zero, unless the tolerance is 0.

            push x, s
            add  x, 1
            pop  x, s               ; x is 1
        """,
    ),
    "R007": explain(
        "multiplying or dividing by this cannot be undone",
        """
        `mul y, v` is undone by `div y, v`, which needs a v that is finite and not 0.  A product
        can be accumulated instead, which is always undone:

            add t, x * v
        """,
    ),
    "R008": explain(
        "lengths do not match",
        """
            func f(y: f64[n], x: f64[n])
                add  y, x           ; fine: both have the length n
                swap y, x[1:n]      ; n and n - 1

        Lengths are known when a function is entered: an argument whose length is not what its
        parameter says is refused there.  A length is never negative.
        """,
    ),
    "R009": explain(
        "a value that its type does not hold",
        """
        A float, an infinity or a NaN is converted to an integer or a fixed-point number that has no
        such value, or a product, quotient, power or function of fixed-point numbers has no value
        that fits: `2000 * 2000`, `exp(14)`, `log(0)`, `sqrt(-1)`.  Nothing is clipped silently, and
        only `+`, `-` and what is accumulated wrap.

            add n, i64(x)           ; x = 1e300

        Ask first (`if abs(x) < 1e18`), or clip with `min` and `max`.
        """,
    ),
    "R010": explain(
        "the limit on steps is reached",
        """
        The run was given `--max-steps` (`max_steps=` in Python) and would take more.  Nothing is
        lost: the machine stands in front of the next instruction and can go on or back.  A loop
        that never ends is the usual reason.
        """,
    ),
    "R011": explain(
        "the limit on memory is reached",
        """
        The run was given `--max-memory` (`max_memory=`, bytes of live registers, arrays and stacks)
        or the computer has no more.  The machine stands in front of the instruction that asked.
        """,
    ),
    "R012": explain(
        "what was passed or kept as a value has changed",
        """
        An argument that is an expression is computed again when the call returns, the lengths of a
        local array when it is freed; they must be what they were.

            call f(n + 1)           ; f must leave its parameter as it found it

            alloc t: f64[n]
            inc n
            free t                  ; now t should have n + 1 elements
        """,
    ),
    "R013": explain(
        "an assertion does not hold",
        """
        An `assert` of an `extern` block failed, in a direction that the block names.  The machine
        stands at it, to be looked at.
        """,
    ),
    "R014": explain(
        "a Python function raised an exception",
        """
        A function that was added with `@rvm.function` raised.  The exception is the cause of this
        one; the machine stands at the instruction.  (What a callback of an `extern` block raises
        arrives as it is.)
        """,
    ),
    "R015": explain(
        "an argument outside the domain of an exact function",
        """
        Integers have no NaN to stand for "no value": a shift by a negative number of bits, or a
        negative power of an integer that is neither 1 nor -1, ends the run.

            add y, x << k           ; k = -1: write x >> -k

        A `for` of step 0 has no end, nor has one that would end where it begins, all round the
        range of i64.
        """,
    ),
    "R016": explain(
        "interrupted",
        """
        Ctrl-C stopped the run between two instructions, in either direction.  Nothing is lost: the
        machine can go on, or back; the arguments of a call are as they were before it.  The
        exception is a KeyboardInterrupt, so `except Exception` lets it pass.
        """,
    ),
    "R017": explain(
        "the values did not come back from a gradient's run",
        """
        A gradient runs the function forwards, and then back with the adjoints, which are computed
        from values that the run back makes again.  Rounding grows on the way back as it is damped
        on the way out, so that a run that contracts forgets its start:

            mul   x, 0.5            ; sixty of these in f64, and the start is gone
            add   x, 0.3

        Each number has to come back within 2**-40 of itself (f32: 2**-11); one that began as zero
        within that part of the largest in its array, or of what it was at the end.  Where one does
        not, the error of the gradient is estimated, from runs with perturbed rounding and from
        tangents, and it is refused if that is more than 1e-6 of it (f32: 1e-3).  `tolerance=` puts
        another number in the place of 1e-6; 0 demands that the values come back to the very bits.

        Take the gradient in strict mode (`--strict`), push what is lost to a stack, compute with
        `fixed`, or take fewer steps.
        """,
    ),
    "R018": explain(
        "the machine was stopped in the middle of an instruction",
        """
        Whatever a check, a callback, `output=` or the handler of a signal raises leaves a machine
        between two instructions.  What is raised into its own code by other means (a debugger's
        trace function, `PyThreadState_SetAsyncExc`, memory that gives out between two parts of an
        instruction) need not: the machine then holds neither the state before nor the one after,
        and can't be used any more.  Begin with a new one.  A call puts its arguments back in any
        case.
        """,
    ),
    "R019": explain(
        "the strict log is not that of this way back",
        """
        In strict mode each change of an inexact number puts on a log how far undoing it would miss
        (`--strict`, `strict=True`), and the way back takes that out again, in the opposite order.
        So the log is empty at the end of the way back.  It is not, or is empty too early, where
        another way is taken: because a value was changed in between that decides on jumps or
        lengths, or because the log is that of another run.  `(~f)(result)` takes back a strict call
        by the log in `result.info`, and asks beforehand whether the values are those of the result.

        Go back from the values that the run ended with, or without the log: `(~f)(**result)`.
        """,
    ),
}
