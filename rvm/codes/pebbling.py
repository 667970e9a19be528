"""P codes: budgets that no schedule keeps, schedules that break the rules, files that hold none."""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

PEBBLING: dict[str, Explanation] = {
    "P001": explain(
        "an impossible argument of a plan",
        """
        A plan needs a length, one budget, and terms that go together:

            rvm.pebble.plan(1000, pebbles=12)
            rvm.pebble.plan(1000, memory=2e9, state_bytes=10_000_000, goal="gradient")
            rvm.pebble.plan(1000, max_moves=10_000, goal="gradient", price=8)

        `rvm.pebble.STRATEGIES` tells for each strategy its goals and the terms that it takes.
        """,
    ),
    "P002": explain(
        "a budget that no schedule keeps",
        """
        With S pebbles, the input not counted, nothing beyond node 2^S - 1 of a chain is ever
        reached reversibly, and a pebble alone gets to 2^(S-1).  And each step has to be done once,
        and undone unless its state is erased.  The message names the least budget that will do.

        On a graph the least is known for small ones and for trees; else the message names the least
        that was found to do, and a bound below which nothing does.
        """,
    ),
    "P003": explain(
        "an action that the rules of the game forbid",
        """
        The player holds every action of a schedule to the rules: a state is computed, and
        uncomputed, only next to one that is held; nothing is erased, overwritten or kept beyond
        what the rules allow; adjoints are taken from the last step to the first.  `values` has the
        number of the action and the pebbles at that moment.
        """,
    ),
    "P004": explain(
        "a schedule that ends before its goal",
        """
        persist: a pebble on the result, and no other.  visit: a pebble on the result.  erase: no
        pebble, and the result was copied out.  gradient: no pebble, and all adjoints were taken.
        Nothing may be left on disk.  On a graph: pebbles on exactly the outputs.
        """,
    ),
    "P005": explain(
        "data that are not a schedule",
        """
        A file of a plan is damaged or of another version, or a stretch that loses states is to be
        undone.  Files are written by `plan.save(path)` and read by `rvm.pebble.load(path)`.
        """,
    ),
    "P006": explain(
        "a chain that is too long for exact tables",
        """
        The recursions for erasure budgets, for a disk, and for steps of unequal cost need tables
        that grow with the square of the length or faster.  The hint names what does without:
        a price of erasing, the strategy `multistage`, or fewer and longer steps.
        """,
    ),
    "P007": explain(
        "the library checkpoint_schedules is not installed",
        """
        `rvm.pebble.checkpointing` gives plans in the form of that library's schedules, and needs
        it for their classes:

            pip install "rvm[checkpoint]"
        """,
    ),
    "P008": explain(
        "data that are not a graph of values",
        """
        A graph has nodes 0, 1, ..., each computed from nodes before it, and an output:

            rvm.pebble.graphs.dag.Dag(preds=((), (0,), (0, 1)), outputs=(2,))
            rvm.pebble.graphs.dag.Dag.of({"a": [], "b": ["a"], "c": ["a", "b"]}, outputs=["c"])

        Or a program was traced that depends on values, or returns what it did not compute.
        """,
    ),
    "P009": explain(
        "a circuit that cannot be read",
        """
        A circuit in .bench text has a line for each input, output and gate:

            INPUT(a)
            INPUT(b)
            OUTPUT(y)
            y = NAND(a, b)

        Every signal is defined once, by an input or a gate, and no gate depends on itself.
        """,
    ),
    "P010": explain(
        "a function that is not a straight line of updates",
        """
        A function gives a graph if it makes ancillas, updates them and its parameters as a whole,
        and takes updates of ancillas back in reverse order.  Contents that were read may not be
        updated further: that would be another value in the same place, which the game has no
        rule for.
        """,
    ),
    "P011": explain(
        "the library python-sat is not installed",
        """
        `rvm.pebble.graphs.sat` finds parallel schedules with the fewest steps by a SAT solver:

            pip install "rvm[sat]"
        """,
    ),
    "P012": explain(
        "a time limit that came before an answer",
        """
        A search that proves its answer has nothing to show before it ends.  Give it more time, or
        take the search of `rvm.pebble.plan_dag`, which always has a best schedule so far.
        """,
    ),
    "P030": explain(
        "a schedule that is too long to be drawn",
        """
        A picture is made by going through the whole schedule, some ten million steps a second, so
        there is an end at 200 million.  What schedules of any length cost can be drawn all the
        same, for all budgets at once:

            rvm.pebble.frontier(10**9).svg()
            rvm pebble --steps 1e9 --plot
        """,
    ),
    "P020": explain(
        "a function that is not a step",
        """
        `rvm.pebble.emit`, and `iterate` in the assembly language, play a schedule by calls and
        uncalls of a function

            func step(y: T, x: T, k: i64, c: f64)

        that adds to y, which is zero, the state after x.  T is any type of numbers, an array or a
        record, and the same for both; a stack is none.  `k` may be called otherwise and stand
        elsewhere after x, or be left out: it gets the number of the step, if that is asked for.
        All other parameters are constants, which every step gets.

        A function that does the step in place has the same parameters without y.
        """,
    ),
    "P021": explain(
        "a plan that cannot be a function",
        """
        A function ends with no ancilla of its own, so a plan of goal `visit`, which leaves pebbles
        on the way, cannot be emitted: `persist` keeps the result alone, and `erase` copies it out
        and takes it away again.  Bytecode has no disk, so plans that save states there are for
        `rvm.pebble`'s players only.  And a gradient needs a state of numbers that have adjoints:
        whole numbers have none.
        """,
    ),
    "P040": explain(
        "a state of another form than the input",
        """
        All states of a run of `rvm.pebble.iterate` are of one form: the same nesting of tuples and
        dicts, and in it arrays of the same dtypes and shapes, numbers or bytes.  The same holds for
        adjoints, whose shapes are those of the states.  A step that makes floats of whole numbers,
        say, needs floats to begin with.

        A step that writes "out" or "in place" returns nothing.  An adjoint function gives the
        adjoint of the state; with constants, a pair of it and a mapping with those of constants.
        """,
    ),
    "P041": explain(
        "a step that writes to a state that is held",
        """
        States that are held are used again, so nobody may change them: their arrays are read-only,
        those that a step has returned included.  A step that is faster with memory of its own says
        how it gives its result:

            rvm.pebble.iterate(step, n, writes="out")           # step(x, out=y) fills y
            rvm.pebble.iterate(step, n, writes="in place")      # step(x) makes x the next state
        """,
    ),
    "P042": explain(
        "a value that is not a state",
        """
        A state is a NumPy array, a number or bytes, or a tuple or dict of these, nested as you
        like.  Steps that write "out" or "in place" need arrays, as numbers cannot be written to; an
        array of shape () holds one number.
        """,
    ),
    "P043": explain(
        "a step that gives two results for one state",
        """
        Where nothing may be erased, a Python step is undone by doing it once more and comparing:
        a state may go if it is exactly what can be computed again.  A step that draws random
        numbers without a seed of its own, or keeps a counter, does not pass.  Put what it depends
        on into the state, or take the number of the step (`number=True`).
        """,
    ),
    "P031": explain(
        "a plan that is not for this function",
        """
        A plan of a graph is made into a program for the function or the circuit whose graph it is:

            plan = rvm.pebble.plan_dag(rvm.pebble.dag_of(program, "f"), pebbles=12)
            rvm.pebble.emit_dag(plan, program, "f")

        What was changed since has to be planned again.  And each parameter that is updated has to
        hold one value only: where one gets this and then that, a plan might want both at once.
        """,
    ),
}
