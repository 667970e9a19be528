"""B001 to B020: bytecode files that are damaged, foreign, or made to do harm."""

from __future__ import annotations

from rvm.codes.explanation import Explanation, explain

FILES: dict[str, Explanation] = {
    "B001": explain(
        "not a bytecode file",
        """
        A `.rbc` file starts with the eight bytes 8F 52 56 4D 0D 0A 1A 0A.  A source text belongs in
        a file that ends in `.rasm`:

            rvm run program.rasm

        If the file was `.rbc` once, it may have been sent as text, which changes line ends.
        """,
    ),
    "B002": explain(
        "a version that cannot be read",
        """
        The header names the version of the format.  New opcodes and functions do not change it,
        as a file names those it uses.  Assemble the source again with the version at hand:

            rvm asm program.rasm -o program.rbc
        """,
    ),
    "B003": explain(
        "the file is cut short, or has grown",
        """
        The header says how long the file is.  A shorter one was not written or copied to its end; a
        longer one has had something added.  Copy it again, or assemble its source.
        """,
    ),
    "B004": explain(
        "the checksum does not match",
        """
        A byte was changed after the file was written.  The checksum (BLAKE2b, 16 bytes) covers all
        of the file.  It finds accidents, and is no protection against intent: that is what the
        other checks are for.  Copy the file again, or assemble its source.
        """,
    ),
    "B005": explain(
        "the directory of tables is unsound",
        """
        A file has all tables of the format, in order, each where the one before it ends, with
        records of the right width (see `docs/bytecode.md`).  The program that wrote this one made
        a mistake.
        """,
    ),
    "B006": explain(
        "an index beyond its table",
        """
        A record refers to a string, a type, a register, a constant, an opcode, a function or an
        expression that is not there.  An expression refers only to those before it, so that none
        can contain itself.
        """,
    ),
    "B007": explain(
        "an unsound string",
        """
        Strings are UTF-8 and stand one after another in the table TEXT, without gaps or
        overlaps; this one is not or does not.
        """,
    ),
    "B008": explain(
        "an unsound type",
        """
        A type is a scalar (`bool`, `i64`, `f64`, `fixed` with 0 to 62 fraction bits, …), an array
        of scalars with 1 to 32 dimensions, or a stack of scalars.
        """,
    ),
    "B009": explain(
        "an unsound constant",
        """
        A constant is 16 bytes that hold a value of its type, unused bytes zero.  A u8 beyond 255,
        an f32 with bits that no f32 has, or a bool that is neither 0 nor 1 is refused.
        """,
    ),
    "B010": explain(
        "an unsound expression",
        """
        A record of the table EXPR is a constant, a place or an applied function.  Its type is not
        stored but computed from its parts; here they do not fit: an index that is not an integer,
        a function that does not take what it is applied to, a path into a value without parts.
        """,
    ),
    "B011": explain(
        "expressions that are too large",
        """
        One expression has at most 4096 nodes in at most 100 levels, parts that are shared counted
        each time.  All instructions of a file of b bytes together hold at most 1,048,576 + 8 b
        nodes: a small file cannot ask for much work.
        """,
    ),
    "B012": explain(
        "an opcode that is not known here",
        """
        A file lists the opcodes that it uses by name.  An opcode defined in Python with
        `@rvm.opcode` is known once the module that defines it has been imported:

            import my_opcodes
            lib = rvm.load("program.rbc")
        """,
    ),
    "B013": explain(
        "a function of the function table that is not known here",
        """
        A file lists the functions that it uses by name.  A function defined in Python with
        `@rvm.function` is known once the module that defines it has been imported:

            import my_functions
            lib = rvm.load("program.rbc")
        """,
    ),
    "B014": explain(
        "an unsound layout of a parameter",
        """
        A record parameter is written as its fields, each record before its own; the count of fields
        does not agree with those that follow, or records are nested more than 32 deep.
        """,
    ),
    "B015": explain(
        "a table that is not used up in order",
        """
        Every record belongs to exactly one owner, and owners take them in order.  Gaps, overlaps
        and records that nobody owns are refused: so that what is built from a file is in
        proportion to its length.
        """,
    ),
    "B016": explain(
        "two functions of one name",
        """
        A call names its callee, so that names must differ.
        """,
    ),
    "B017": explain(
        "too many operands",
        """
        An instruction has at most 255 operands, those of a call included.  Pass an array instead.
        """,
    ),
    "B018": explain(
        "a program that no file can hold",
        """
        A `Program` that was built in Python has something that the format has no room for: an
        expression without types, a negative index, too many operands or too large an expression.
        `rvm.verify.findings(program)` says where.
        """,
    ),
    "B020": explain(
        "a program whose parts contradict each other",
        """
        No assembler makes such a program: a register that is not there, a node whose type is not
        that of what it holds, parameters that are not the first registers, an instruction with
        fields that its opcode has no use for.  Either the file was made by hand or the program
        was built in Python.  Build places with `rvm.isa.place` and expressions with
        `rvm.isa.apply`, which give them their types.
        """,
    ),
}
