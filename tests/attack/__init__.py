"""A standing attack: damaged files, hostile texts, random programs, signals, for as long as wanted.

`python tests/attack --minutes M` makes inputs of every kind in `kinds`, gives them to rvm in
processes of their own, and looks whether what must hold does: an input is accepted or refused with
a code that is explained, engines agree, what ran forwards runs back.  Anything else is a finding;
it is made small and saved with how to see it again.  `programs` has the generators of random
programs, which the tests use as well.
"""
