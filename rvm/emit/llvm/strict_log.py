"""Functions for the memory operations of the strict log in generated code.

See `rvm.ir.strict` for the inline part, `rvm.ir.context` for the fields of the log.
"""

from __future__ import annotations

from rvm.ir.context import COUNT, GAPS, LIMIT, LIVE, PEAK, ROOM, STACK, WANTED, WORDS
from rvm.numbers.residue import CODES, ESCAPE, FAR, NEAR, WORD, Residue

STACKS = [(name, s.bits) for name, s in zip("cbw", Residue().stacks, strict=True)]
"""The prefix of the names of a stack's values, and the bits of an entry."""


def _row() -> str:
    """Load the log's row, and of each stack its words, count (`%b`) and room; `%c` is given."""
    lines = [
        f"%logs = getelementptr i64, ptr %ctx, i64 {GAPS}",
        "%log = load ptr, ptr %logs",
    ]
    for k, (name, _) in enumerate(STACKS):
        fields = ("words", "ptr", WORDS), ("", "i64", COUNT), ("room", "i64", ROOM)
        for what, kind, field in fields:
            at = f"%{name}{what}_at"
            lines.append(f"{at} = getelementptr i64, ptr %log, i64 {STACK * k + field}")
            if (name, what) != ("c", ""):
                lines.append(f"%{name}{what} = load {kind}, ptr {at}")
    return _indented(lines)


def _entry(name: str, count: str, width: int, entry: str) -> str:
    """Push an entry on a stack after `count` others."""
    return _indented(
        f"""%{name}bit = mul i64 {count}, {width}
%{name}at = lshr i64 %{name}bit, {WORD.bit_length() - 1}
%{name}over = and i64 %{name}bit, {WORD - 1}
%{name}place = getelementptr i64, ptr %{name}words, i64 %{name}at
%{name}old = load i64, ptr %{name}place
%{name}above = shl i64 -1, %{name}over
%{name}below = xor i64 %{name}above, -1
%{name}rest = and i64 %{name}old, %{name}below
%{name}moved = shl i64 {entry}, %{name}over
%{name}new = or i64 %{name}rest, %{name}moved
store i64 %{name}new, ptr %{name}place""".splitlines()
    )


def _top(name: str, width: int) -> str:
    """Pop an entry, `%ctop`, if `%c1` are left; undefined for an empty stack."""
    return _indented(
        f"""%{name}1 = call i64 @llvm.usub.sat.i64(i64 %{name}, i64 1)
%{name}bit = mul i64 %{name}1, {width}
%{name}at = lshr i64 %{name}bit, {WORD.bit_length() - 1}
%{name}over = and i64 %{name}bit, {WORD - 1}
%{name}place = getelementptr i64, ptr %{name}words, i64 %{name}at
%{name}word = load i64, ptr %{name}place
%{name}shifted = lshr i64 %{name}word, %{name}over
%{name}top = and i64 %{name}shifted, {(1 << width) - 1 if width < WORD else -1}""".splitlines()
    )


def _used(name: str, counts: dict[str, str]) -> str:
    """The words that stacks of some counts use, in all: `%name`."""
    lines, total = [], "0"
    for stack, width in STACKS:
        own = f"%{name}_{stack}"
        lines += [
            f"{own}bits = mul i64 {counts[stack]}, {width}",
            f"{own}full = add i64 {own}bits, {WORD - 1}",
            f"{own}words = lshr i64 {own}full, {WORD.bit_length() - 1}",
            f"{own}sum = add i64 {total}, {own}words",
        ]
        total = f"{own}sum"
    return _indented([*lines, f"%{name} = add i64 {total}, 0"])


def _fits() -> str:
    """Whether there is room for `%n` more entries on each stack: `%fits`."""
    lines, found = [], "true"
    for stack, _ in STACKS:
        lines += [
            f"%{stack}most = add i64 %{stack}, %n",
            f"%{stack}fits = icmp ule i64 %{stack}most, %{stack}room",
            f"%{stack}all = and i1 {found}, %{stack}fits",
        ]
        found = f"%{stack}all"
    return _indented([*lines, f"%fits = and i1 {found}, true"])


def _memory() -> str:
    """Load the live bytes and their limit."""
    return _indented(
        f"""%lives = getelementptr i64, ptr %ctx, i64 {LIVE}
%live = load i64, ptr %lives
%limits = getelementptr i64, ptr %ctx, i64 {LIMIT}
%limit = load i64, ptr %limits""".splitlines()
    )


def _indented(lines: list[str]) -> str:
    return "\n".join("  " + line for line in lines)


NOW = {name: f"%{name}" for name, _ in STACKS}
AFTER = {name: f"%{name}i" for name, _ in STACKS}
(_, CODE), (_, NIBBLE), (_, WHOLE) = STACKS
FULL = f"""full:
  %wanted = getelementptr i64, ptr %log, i64 {WANTED}
  store i64 %n, ptr %wanted
  ret i64 1"""

LOGGING = {
    "rvm_keep": f"""
define internal i64 @rvm_keep(ptr %ctx, i64 %c, i64 %word, ptr %gaps, i64 %n) noinline {{
entry:
{_row()}
  %before1 = call i64 @llvm.usub.sat.i64(i64 %c, i64 1)
  %last = udiv i64 %before1, {WORD // CODE}
  %held = getelementptr i64, ptr %cwords, i64 %last
  store i64 %word, ptr %held
{_fits()}
  br i1 %fits, label %head, label %full
{FULL}
head:
  %i = phi i64 [0, %entry], [%i1, %put]
  %ci = phi i64 [%c, %entry], [%c1, %put]
  %bi = phi i64 [%b, %entry], [%b1, %put]
  %wi = phi i64 [%w, %entry], [%w2, %put]
  %all = icmp eq i64 %i, %n
  br i1 %all, label %account, label %next
next:
  %from = getelementptr i64, ptr %gaps, i64 %i
  %gap = load i64, ptr %from
  %up = add i64 %gap, 1
  %near = icmp ult i64 %up, {len(CODES)}
  %down = icmp slt i64 %gap, 0
  %least = select i1 %down, i64 {CODES[-1]}, i64 %gap
  %code = select i1 %near, i64 %least, i64 {ESCAPE}
  %rises = icmp sgt i64 %gap, 0
  %higher = sub i64 %gap, 2
  %lower = sub i64 5, %gap
  %some = select i1 %rises, i64 %higher, i64 %lower
  %offset = add i64 %gap, {NEAR}
  %close = icmp ule i64 %offset, {2 * NEAR}
  %nibble = select i1 %close, i64 %some, i64 {FAR}
{_entry("b", "%bi", NIBBLE, "%nibble")}
  %escaped = xor i1 %near, true
  %further = zext i1 %escaped to i64
  %b1 = add i64 %bi, %further
  br i1 %close, label %put, label %far
far:
{_entry("w", "%wi", WHOLE, "%gap")}
  %w1 = add i64 %wi, 1
  br label %put
put:
  %w2 = phi i64 [%wi, %next], [%w1, %far]
{_entry("c", "%ci", CODE, "%code")}
  %c1 = add i64 %ci, 1
  %i1 = add i64 %i, 1
  br label %head
account:
{_used("before", NOW)}
{_used("after", AFTER)}
{_memory()}
  %words = sub i64 %after, %before
  %more = mul i64 %words, {WORD // 8}
  %total = add i64 %live, %more
  %grows = icmp ne i64 %more, 0
  %over = icmp sgt i64 %total, %limit
  %refused = and i1 %grows, %over
  br i1 %refused, label %out, label %done
out:
  ret i64 1
done:
  store i64 %total, ptr %lives
  %peaks = getelementptr i64, ptr %ctx, i64 {PEAK}
  %peak = load i64, ptr %peaks
  %most = call i64 @llvm.smax.i64(i64 %peak, i64 %total)
  store i64 %most, ptr %peaks
  store i64 %ci, ptr %c_at
  store i64 %bi, ptr %b_at
  store i64 %wi, ptr %w_at
  ret i64 0
}}
""",
    "rvm_take": f"""
define internal i64 @rvm_take(ptr %ctx, i64 %c) noinline {{
entry:
{_row()}
{_top("c", CODE)}
  %escaped = icmp eq i64 %ctop, {ESCAPE}
  %down = icmp eq i64 %ctop, {CODES[-1]}
  %least = select i1 %down, i64 -1, i64 %ctop
{_top("b", NIBBLE)}
  %rises = icmp ult i64 %btop, {NEAR - 1}
  %higher = add i64 %btop, 2
  %lower = sub i64 5, %btop
  %some = select i1 %rises, i64 %higher, i64 %lower
  %close = select i1 %escaped, i64 %some, i64 %least
  %bi = select i1 %escaped, i64 %b1, i64 %b
  %last = icmp eq i64 %btop, {FAR}
  %far = and i1 %escaped, %last
  br i1 %far, label %whole, label %account
whole:
{_top("w", WHOLE)}
  br label %account
account:
  %gap = phi i64 [%close, %entry], [%wtop, %whole]
  %wi = phi i64 [%w, %entry], [%w1, %whole]
{_used("before", NOW)}
{_used("after", AFTER | {"c": "%c1"})}
  %words = sub i64 %before, %after
  %less = mul i64 %words, {WORD // 8}
  %lives = getelementptr i64, ptr %ctx, i64 {LIVE}
  %live = load i64, ptr %lives
  %total = sub i64 %live, %less
  store i64 %total, ptr %lives
  store i64 %c1, ptr %c_at
  store i64 %bi, ptr %b_at
  store i64 %wi, ptr %w_at
  ret i64 %gap
}}
""",
    "rvm_reserve": f"""
define internal i64 @rvm_reserve(ptr %ctx, i64 %c, i64 %n) noinline {{
entry:
{_row()}
{_fits()}
  br i1 %fits, label %account, label %full
{FULL}
account:
{_used("before", NOW)}
{_used("after", {name: f"%{name}most" for name, _ in STACKS})}
{_memory()}
  %words = sub i64 %after, %before
  %more = mul i64 %words, {WORD // 8}
  %total = add i64 %live, %more
  %over = icmp sgt i64 %total, %limit
  %refused = zext i1 %over to i64
  ret i64 %refused
}}
""",
}
"""Definitions by name.  `rvm_keep` pushes a row of gaps, all of them or none, where there is no
room for their bytes; `rvm_take` gives the one on top, which must be there; `rvm_reserve` says
whether there is no room for so many, however large.  All are given how many codes there are, the
first the word of the last one too."""
