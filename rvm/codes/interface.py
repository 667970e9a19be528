"""I, U and D codes: inputs, wrong uses of the interface, definitions that cannot be right."""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

INTERFACE: dict[str, Explanation] = {
    "I001": explain(
        "a parameter has no value",
        """
        All parameters are given by name, those that the function only adds to as well:

            lib.norm(y=0.0, x=np.ones(3))

        On the command line: `rvm run norm.rasm y=0 x=[1,1,1]`.
        """,
    ),
    "I002": explain(
        "a value for a parameter that does not exist",
        """
        The name is neither a parameter of the function nor an option (`engine=`, `tolerance=`, …).
        """,
    ),
    "I003": explain(
        "a value of the wrong type",
        """
        A number must be a value of the parameter's type, and an array must have its dtype: nothing
        is converted silently, as results go back into the caller's own memory.  Whole numbers must
        be exact in the type, finite ones stay finite; others are rounded to nearest.

            x = np.array([1, 2, 3])             # int64
            lib.norm(y=0.0, x=x)               # x: f64[n] wants float64
            lib.norm(y=0.0, x=x.astype(np.float64))

        A record is given as a dict, or an object with its fields.  A masked array is refused: pass
        `x.filled(0.0)`, or whatever stands for what is masked.
        """,
    ),
    "I004": explain(
        "an array of the wrong shape",
        """
        An array parameter `A: f64[m, n]` takes two dimensions, and wherever `n` stands in the
        signature the length must be the same.
        """,
    ),
    "I005": explain(
        "an array whose elements share memory or are not aligned",
        """
        The machine works in the caller's own memory, in views with gaps, reversed or in Fortran
        order too.  A view in which two elements are one number of memory (`np.broadcast_to`,
        overlapping strides), and the field of a packed structured array whose elements do not
        begin at a multiple of their size, are refused: pass a copy, `x.copy()`.
        """,
    ),
    "I006": explain(
        "a read-only array that the function changes",
        """
        The array's `writeable` flag is off.  Pass a copy: `x.copy()`.
        """,
    ),
    "I007": explain(
        "two arguments share memory, and one is changed",
        """
            lib.axpy(y=a, x=a)                 # y += 2 x could not be undone
            lib.axpy(y=a[:-1], x=a[1:])        # nor this

        Pass a copy of one of them.  Arrays that are only read may overlap.
        """,
    ),
    "I008": explain(
        "no such place for a derivative",
        """
        A loss is one real number of the results: `y`, `x[2]`, `p.vel[0, 1]`, `z.re`.  Integers,
        bools and whole arrays are not such numbers, and a complex number has two: name its `.re` or
        `.im`.
        `wrt=` and `of=` name parameters that hold real numbers.
        """,
    ),
    "I009": explain(
        "an option with a value that it cannot have",
        """
        `on_error` is "back" or "stop"; `tolerance`, `max_steps` and `max_memory` are not negative.
        Of `f.map`, `on_error` is "raise" or "return", and a `block` has at least one lane.
        """,
    ),
    "I020": explain(
        "nothing tells the lanes apart",
        """
        `f.map` runs a function once for each lane: at least one argument must have one dimension
        more than its parameter, the lanes' axis in front.

           f(x=1.0, n=3)                          # one run
           f.map(x=np.array([1.0, 2.0]), n=3)     # two; n is the same in both
        """,
    ),
    "I021": explain(
        "numbers of lanes that differ",
        """
        Every argument of `f.map` that is given by lane has as many lanes as the others: the
        lengths of their first axes are equal.
        """,
    ),
    "U001": explain(
        "a function that the program does not have",
        """
        The entry is `main` unless another is named: `rvm run FILE -f NAME`, `lib["name"]`.
        `list(lib)` gives the names.
        """,
    ),
    "U002": explain(
        "an engine that is not available",
        """
        Engines are named `reference` (slow; it defines what is right), `python`, or `auto`; the
        message lists what is installed.
        """,
    ),
    "U003": explain(
        "a callback that was not given",
        """
        The program calls a Python function in an `extern` block.  Pass it:

            lib.main(x=1, callbacks={"show": print})
        """,
    ),
    "U004": explain(
        "an option that does not exist",
        """
        `f.with_options(…)` takes the options that the message lists; parameters are given in the
        call itself.  `includes=` is "any", "below" or "none".
        """,
    ),
    "U005": explain(
        "arguments that do not fit the function",
        """
        Too many arguments by position, or one that is given both by position and by name.
        """,
    ),
    "U006": explain(
        "a file that nothing here reads",
        """
        A file is read by its suffix: `.rasm`, a UTF-8 text, is assembled, `.rbc` is loaded.  Others
        come in by packages that register themselves in the entry-point group `rvm.frontends`.
        """,
    ),
    "U007": explain(
        "an optional library that is not installed",
        """
        Each module of `rvm.interop` uses a library that rvm itself does without:

            pip install "rvm[scipy]"            # or torch, or jax
        """,
    ),
    "U008": explain(
        "a function that another framework cannot have like this",
        """
        Its inputs and outputs are named when it is ported, and are numbers and arrays of types
        that the framework has: no stacks, `fixed` or `log64`.  All other parameters start from
        fixed values, or from zeros where the inputs tell their shapes.
        """,
    ),
    "U009": explain(
        "JAX without 64-bit numbers",
        """
        JAX makes 32-bit numbers of all 64-bit ones unless it is told otherwise, before it makes
        its first array:

            jax.config.update("jax_enable_x64", True)
        """,
    ),
    "U018": explain(
        "a gradient whose error can no longer be estimated",
        """
        `grad.info.error` is computed when it is first asked for, from the arrays that the gradient
        was computed from.  They are not copied: if they have changed since, or the gradient's own
        arrays have, there is nothing left to compute from.  Ask for it at once, or pass copies:

            g = f.grad(loss="y", x=x, error=True)
        """,
    ),
    "U017": explain(
        "no such method for a Hessian",
        """
        There are two: "taylor" takes all second derivatives back in one run,
        "forward-over-reverse" takes tangents of the gradient program.

            f.hessian(loss="y", x=x, y=0.0, method="taylor")
        """,
    ),
    "U016": explain(
        "a run that can't be counted",
        """
        Counting is done inside an engine, by counters in the code that it makes; all engines have
        a form that does.  This one is not one of them, or the run is to stop at traps as well,
        which counting does not look at.

            machine = rvm.Machine(program, x=3, engine="auto")
            counts = machine.count()
        """,
    ),
    "U043": explain(
        "a generic function without types",
        """
        A generic function is made for types: those of its arguments in a call, or those that are
        named with it.  What is asked of it without arguments is asked of one for types:

            lib.axpy(y=y, a=2.0, x=x)                   # for the dtype of y and x
            lib["axpy[f32]"].gradient_program
            lib.axpy.of(y=y, a=2.0, x=x)                # the one for these arguments
        """,
    ),
    "U048": explain(
        "a Python function whose source can't be read",
        """
        `@rvm.reversible` reads a function's source and does not run it.  Functions in files and in
        cells of notebooks have one; what `exec`, `python -c` and the prompt of older Pythons make
        has none, and a lambda has no statements.

            f = rvm.reversible.source("def f(x):\\n    x += 1\\n")    # of generated code

        A file that was changed after it was imported holds another function by now: import it
        again.
        """,
    ),
    "U045": explain(
        "a word of reversible functions that is run",
        """
        `rvm.ancilla`, `rvm.rot`, `rvm.f64(x)` and the like mean something in the source of a
        function under `@rvm.reversible`, which is read.  As Python they do nothing.

            @rvm.reversible
            def turn(a, b, t):
                rvm.rot(a, b, t)

            turn(1.0, 0.0, 0.5)         # calls the function that stands under the decorator
        """,
    ),
    "U046": explain(
        "a list that a function would change",
        """
        Arrays are changed in place, and so are lists that are stacks.  A list of numbers for an
        array is copied, so that the caller would never see a change; where the function changes the
        parameter, an array is wanted.

            f(x=np.array([1.0, 2.0]))
        """,
    ),
    "D001": explain(
        "an opcode that returns the wrong number of values",
        """
        An opcode that returns formulas returns one for each `Mut` operand, in order.

            @rvm.opcode(inverse="unshear")
            def shear(a: Mut, b: Mut, t: Use):
                return a + t * b, b
        """,
    ),
    "D002": explain(
        "an opcode that changes nothing",
        """
        `d = d + a` makes a new name and changes no operand.  Write `d += a`.
        """,
    ),
    "D003": explain(
        "an operand that is neither Mut nor Use",
        """
        Every operand says whether it is changed:

            def add(y: Mut, v: Use) -> None: …
            def rol(y: Mut, k: Annotated[Use, "i64"]): …
        """,
    ),
    "D004": explain(
        "an opcode that writes what it may only read",
        """
        An operand marked `Use` may be an expression; only `Mut` operands are changed.
        """,
    ),
    "D005": explain(
        "an opcode that reads what it updates",
        """
        `d += d * a` cannot be undone when a = -1, and a condition that its own block changes cannot
        be asked again.  See A013 for the same in programs.
        """,
    ),
    "D006": explain(
        "an opcode whose inverse does not undo it",
        """
        Name the opcode that undoes it, `@rvm.opcode(inverse="…")`; without a name it must undo
        itself.  Both take the same operands, of the same types, and each names the other.

        Bodies of updates, exchanges and conditions undo each other by their form.  Formulas that
        are returned are put together when they are defined, there and back: on integers, bools and
        `fixed` they must be proved to give the old numbers, as polynomials modulo 2^n or bit by
        bit; on floats they are tried on numbers of all sizes.  What can't be proved is written in
        updates, or kept to floats: `types="inexact"`.
        """,
    ),
    "D007": explain(
        "a function that cannot be entered in the table",
        """
        A function of the table has a name of its own that a program can write, at least one
        argument and a known cost class (MOVES, ADDS, MULTS, NLOPS).
        """,
    ),
    "D010": explain(
        "a function without code for this type",
        """
        The function's typing rule admits a type for which it has no implementation.  Give it one
        (`code={"f64": …}`), or narrow the rule.
        """,
    ),
    "D011": explain(
        "a function without a derivative",
        """
        A gradient needs the partial derivatives of every function that the loss depends on.  Give
        the function its own:

            @rvm.function(partials=lambda x: (1 / (1 + x * x),))
            def arctangent(x): …

        or keep what it computes out of the loss.
        """,
    ),
    "D012": explain(
        "an opcode without a derivative",
        """
        An opcode of your own that stores new values (it returns them) besides other statements,
        or that mixes fixed-point or logarithmic numbers with angles, has no rule for adjoints.

            @rvm.opcode(inverse="unspin")
            def spin(a: Mut, b: Mut, t: Use):
                b += a                      # a statement, and …
                return a * 2, b / 2         # … new values: make two opcodes of it

        An opcode with several updates, or one that only returns new values, has one.
        """,
    ),
    "D013": explain(
        "a gradient that is not what differences say",
        """
        `rvm.check_grad(f, loss="y", …).raise_if_bad()` compares a gradient with central differences
        of the loss.  They differ where `partials` of your own are wrong, where the loss has a kink
        or a pole, and where the step of the differences is unsuitable: a `fixed` or an `f32` needs
        a larger one (`step=1e-3`) and a wider `tolerance=`.
        """,
    ),
    "D014": explain(
        "a number type that cannot be entered",
        """
        `rvm.isa.number_type(row, make)` enters a type under a name that no other type and no
        function has.  The sizes of its `dtype` and `letter` agree.  For each update that its
        number system has (`add`, `mul`, `xor`) there is a function that takes back what was done,
        as `-` does for `+`; a maximum has none.  Leave that update out: `+` may still be used in
        expressions.
        """,
    ),
    "D015": explain(
        "a function that calls a derivative of itself",
        """
        The gradient of a function calls the function and its adjoint, and the adjoint has the
        adjoint of whatever is called.  A function that calls its own gradient, perhaps by way of
        others, would have derivatives of derivatives without end.

            func f(y: f64, x: f64)
                call f'(y, x; 1, x_bar)

        Let it call the gradient of a function that does not call this one.
        """,
    ),
}
