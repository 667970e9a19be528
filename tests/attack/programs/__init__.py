"""Generators of random programs, for the attack and for the tests.

`sound` writes texts of programs that end; `loops` texts of loops whose iterations may need each
other; `smooth` texts of programs that can be differentiated; `blind` makes programs without a text,
of every opcode and function.  The same seed gives the same program, and `inputs` what it runs on.
"""
