"""The diagnostics of the command line itself, and the registry of all diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

from rvm.codes import EXPLANATIONS as MACHINE
from rvm.codes import Explanation
from rvm.codes.explanation import explain

TOOLS: dict[str, Explanation] = {
    "C001": explain(
        "the run did not come back to where it started",
        """
        A function was run to its end and back, and a parameter is further from its first value than
        the tolerance allows.  Every instruction was undone; what is missing was lost to rounding:

            add y, x            ; y = 0.1, x = 1e16: the sum has no room for 0.1
            sub y, x            ; y = 0.0

        With `--strict` what rounding loses is kept, and floats come back bit for bit.  Fixed-point
        numbers and integers lose nothing in the first place.
        """,
    ),
    "C002": explain(
        "a `;! run` line is not met",
        """
        A line such as

            ;! run norm(y=0, x=[3, 4]) -> y=25

        says what a function must give.  The run gave something else; both values are shown.  Exact
        types are compared exactly, floats within 1e-9 of the value.
        """,
    ),
    "C003": explain(
        "an error that was expected did not come",
        """
        A `;! fails CODE` line says that the file must be refused with that code, or that a
        run must end with it.  It was not.
        """,
    ),
    "C004": explain(
        "the inverse of the inverse is another program",
        """
        Inverting every function twice must give the same instructions, and bytecode must survive
        being written and read.  A failure here is a fault of rvm or of an opcode that was added
        to it, and no error in the program.
        """,
    ),
    "C005": explain(
        "two engines differ",
        """
        The same run took another number of steps, ended otherwise or left other bits on one engine
        than on another.  The reference engine defines what is right, so this is a fault of the
        other one (or of the code of a function that was added): please report it with the program.
        """,
    ),
    "C007": explain(
        "contestants of a benchmark differ",
        """
        `rvm bench` compares every contestant's numbers with those of the first, to 1e-8 of the
        largest, before it times anything; and what a program runs back to with its inputs.  Both
        values are shown.  One of the two is wrong: this is a fault of rvm, of the benchmark or of a
        library; please report it.
        """,
    ),
    "I010": explain(
        "a value that can't be read",
        """
        A value on the command line, or in a `;! run` line, is one of

            3   -7   0xff   1_000        integers
            1.5   1e-3   inf   nan       reals (for fixed, rounded to the nearest from the text)
            2+1j                         complex numbers
            true   false
            [1, 2, 3]   [[1, 2], [3, 4]] arrays, and stacks with the top last
            {pos: 1.5, vel: 0}           records
            zeros(5)   ones(2, 3)   range(10)
            7.0'log64   3'fixed          a log64 by its logarithm, a fixed by its raw integer
            @data.npy   @all.npz:x       the contents of a file

        Most shells want quotes around brackets and braces.
        """,
    ),
    "I011": explain(
        "values can't be read from a file",
        """
        `.npy` and `.npz` files hold arrays as the machine stores them (a fixed as its raw integer,
        a log64 as its logarithm); `.csv` and `.json` files hold numbers.  `@file.npz:name` takes
        one of several; without a name, the one that is called like the parameter, or the only
        one.  A bare `@file.npz` or `@file.json` gives several parameters by name.

        Pipes and devices are read up to 64 MiB, files up to 4 GiB.  In a `;! run` line a file is a
        regular one that `--includes` allows: any, one below the text's folder, or none.
        """,
    ),
    "I030": explain(
        "an energy model's file that is wrong",
        """
        A model of your own is a TOML file.  All of it may be left out; what is there are texts,
        numbers that are not negative, and for each class of operations joules by type:

            title = "my device"
            source = "where the figures are from"
            temperature = 300.0         # kelvin
            bit = 2.9e-21               # J for an erased bit; if not given, k T ln 2
            step = 0.0                  # J for every executed instruction
            scale = 1.0                 # what a reversible operation costs of an ordinary one

            [adds]                      # also [moves], [mults], [nlops]
            default = 1e-13             # J for an operation on any other type
            f64 = 1.8e-12               # J for one on this type
        """,
    ),
    "I031": explain(
        "a window that begins after the end of the run",
        """
        `rvm trace --from T` counts from time T on, and the run has fewer steps.  The message says
        when it ends.
        """,
    ),
    "U010": explain(
        "an argument that is not a NAME=VALUE",
        """
        Parameters are given by name, each once; a record's fields may be given one by one.

            rvm run norm.rasm y=0 x=[1,2,3]
            rvm run orbit.rasm p.pos=1 p.vel=0
            rvm run norm.rasm @inputs.npz y=0
        """,
    ),
    "U011": explain(
        "a file that can't be read",
        """
        The program's file is not there, may not be read, or is not text where a text is wanted.
        The suffix says what it holds: `.rasm` assembly, `.rbc` bytecode; `-` is standard input.
        """,
    ),
    "U044": explain(
        "a script that is not whole",
        """
        What `save` writes ends in a line with a checksum of all the others, so that a script that
        was cut or damaged is not run in part.  After changing one by hand, take out its first and
        its last line: scripts without them are run as they are.  A file without any command is
        refused too.
        """,
    ),
    "U012": explain(
        "a file that can't be written",
        """
        Results go to `.npz` files.  Bytecode goes to the file named by `-o`, or to standard output
        where that is not a terminal:

            rvm asm norm.rasm -o norm.rbc
            rvm asm norm.rasm | rvm run - y=0 x=[1,2,3]
        """,
    ),
    "U013": explain(
        "no such workload, engine, code or shell",
        """
        What is asked for does not exist; the message lists what does.
        """,
    ),
    "U014": explain(
        "a gradient without a loss",
        """
        A gradient is that of one real number among the results, which `--loss` names:

            rvm grad norm.rasm y=0 x=[1,2,3] --loss y
            rvm grad flow.rasm @in.npz --loss 'x[2]'        or p.vel[0], z.re, z.im
        """,
    ),
    "U030": explain(
        "an expression or place that the debugger can't read",
        """
        Expressions at the debugger are those of the assembly language, over the registers of the
        frame that is looked at.  A condition is a bool (`n > 3`, not `n`); what is watched or set
        is a place (`x`, `x[3]`, `p.vel`, `z.re`), and not a computed value.
        """,
    ),
    "U031": explain(
        "a place in the program that does not exist",
        """
        A breakpoint stands at a line (`12`, `sort.rasm:12`), a function (`merge`), a label, or an
        instruction by its index (`merge@7`, as `dis` counts them).  Where nothing begins at a line,
        the next one is taken; after the last there is none.
        """,
    ),
    "U032": explain(
        "a value that does not exist",
        """
        The register is not live at this time: its `alloc` is still to come, or its `free` is past.
        Go to where it is live (`last NAME` finds the end of its life), or look at another frame.
        """,
    ),
    "U033": explain(
        "a time that does not exist",
        """
        Times are ticks from 0 to the end.  `mark NAME` names the present one, `@NAME` goes there;
        `back` and `forward` go through the times that were visited; `50%` needs an end, and a
        program that fails on the way, or never ends, has none.
        """,
    ),
    "U034": explain(
        "no such breakpoint or watchpoint",
        """
        `info b` lists what is set, with numbers.  A temporary breakpoint is gone after its stop,
        and an edit removes the watchpoints whose functions are not under way.
        """,
    ),
    "U035": explain(
        "a place that can't be set to this",
        """
        A value that is set has the place's own type and shape: a number for a number, a number or
        an array of the same shape for an array.  `set x = i64(3)` converts.
        """,
    ),
    "U036": explain(
        "a debugger command that can't be understood",
        """
        `help` lists the commands, and `help COMMAND` says how one is used.  They may be shortened
        as long as only one begins so: `orig x` is `origin x`, but `e` could be `enable`, `end`, …
        """,
    ),
    "U037": explain(
        "an edited session that can't be exported",
        """
        A test replays a run from its inputs.  After `set` the session is on another run than that
        of the inputs, and no replay would come here.  `restart`, and export without the edit.
        """,
    ),
    "U038": explain(
        "no full screen here",
        """
        `rvm debug --tui` draws on a whole terminal, with the library Textual:

            pip install "rvm[tui]"

        It can't draw on a pipe or into a file, and does not go with --batch or --json, which
        print.  Without --tui there is a prompt with the same commands, and --batch for scripts.
        """,
    ),
    "U039": explain(
        "no such energy model, or a parameter that it can't take",
        """
        `rvm trace --energy` takes `landauer`, `cmos`, `adiabatic` or a file that ends in `.toml`,
        and after it numbers that change the model:

            --energy landauer:temperature=4
            --energy cmos:step=70e-12                   J for every executed instruction
            --energy adiabatic:tau=1e-6,rc=1e-11        seconds
            --energy mine.toml:bit=1e-18                J for an erased bit
        """,
    ),
    "U040": explain(
        "an address that can't be listened at",
        """
        `rvm dap --listen` takes an address of this computer alone, and a port that nobody has:

            rvm dap --listen 127.0.0.1:4711
            rvm dap --listen 127.0.0.1:0            any free port, which is then shown

        Whoever can connect can run programs and read files, so it does not listen to a network.
        """,
    ),
    "U041": explain(
        "a request of an editor that can't be understood",
        """
        The message is not a request of the Debug Adapter Protocol, `rvm dap` does not have
        the request, or one of its arguments is missing, of another type, or from before the last
        stop (numbers of variables and of goto targets are valid until the program goes on).  For
        `launch`, docs/editors.md lists the arguments.
        """,
    ),
    "U042": explain(
        "a request of an editor that comes at the wrong time",
        """
        First comes `initialize`, then `launch`, and all else after it.  While the program runs, it
        can be paused and breakpoints can change; values can be asked for when it stands.
        """,
    ),
}


def explanations() -> Mapping[str, Explanation]:
    """Every diagnostic's explanation by its code."""
    from rvm_asm.codes import EXPLANATIONS as ASSEMBLER
    from rvm_python.codes import EXPLANATIONS as PYTHON

    return dict(sorted({**MACHINE, **ASSEMBLER, **PYTHON, **TOOLS}.items()))
