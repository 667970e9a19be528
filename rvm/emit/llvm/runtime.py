"""The few functions that generated code calls for memory: stacks, local arrays, stopped frames."""

from __future__ import annotations

from rvm.emit.llvm.rooms import ROOMS
from rvm.emit.llvm.strict_log import LOGGING
from rvm.ir.context import (
    ALONE,
    CALL_WORDS,
    DONE,
    DRIFT,
    EMPTY,
    ENTRY_AT,
    ENTRY_SIZES,
    ENTRY_TIMES,
    ERASED,
    FIELDS,
    LANE_DRIFT,
    LANE_ERASED,
    LIVE,
    LOG,
    LOG_END,
    MASK,
    MOST,
    PEAK,
    SPARED,
    STOPPED,
    STRIDE,
    TABLE,
    USED,
    WIDTH,
)

GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
"""2**64 divided by the golden ratio, as a signed number: the factor of Fibonacci hashing (Knuth,
"Sorting and Searching", 6.4)."""

DRAINED = f"""  br i1 %full, label %drain, label %out
drain:
  %emptying = getelementptr i64, ptr %ctx, i64 {EMPTY}
  %empty = load ptr, ptr %emptying
  call void %empty(ptr %ctx)
  br label %out
out:
  ret void
}}
"""
"""The end of a function that lets Python empty the buffer `%full`."""
RUNTIME = {
    "rvm_copied": """
define internal ptr @rvm_copied(ptr %from, i64 %size) cold {
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %p = call ptr @malloc(i64 %some)
  %none = icmp eq ptr %p, null
  br i1 %none, label %out, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %from, i64 %size, i1 false)
  br label %out
out:
  ret ptr %p
}
""",
    "rvm_each_lane": f"""
define internal i32 @rvm_each_lane(ptr %single, ptr %row, ptr %ctx) cold noinline {{
entry:
  %own = alloca [{FIELDS} x i64]
  %lefts = alloca [{WIDTH} x i64]
  %own_erased = getelementptr i64, ptr %own, i64 {ERASED}
  %own_drift = getelementptr i64, ptr %own, i64 {DRIFT}
  %own_live = getelementptr i64, ptr %own, i64 {LIVE}
  %own_peak = getelementptr i64, ptr %own, i64 {PEAK}
  %live = getelementptr i64, ptr %ctx, i64 {LIVE}
  %peak = getelementptr i64, ptr %ctx, i64 {PEAK}
  %erased = getelementptr i64, ptr %ctx, i64 {LANE_ERASED}
  %drifts = getelementptr i64, ptr %ctx, i64 {LANE_DRIFT}
  %spared = getelementptr i64, ptr %ctx, i64 {SPARED}
  %alone = getelementptr i64, ptr %ctx, i64 {ALONE}
  %given = load i64, ptr %ctx
  %highest = load i64, ptr %peak
  %before = load i64, ptr %alone
  br label %head
head:
  %k = phi i64 [0, %entry], [%next, %ended]
  %least = phi i64 [%given, %entry], [%less, %ended]
  %most = phi i64 [%highest, %entry], [%more, %ended]
  %taken = phi i64 [%before, %entry], [%sum, %ended]
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %ctx, i64 {8 * FIELDS}, i1 false)
  store i64 0, ptr %own_erased
  store double 0.0, ptr %own_drift
  %how = call i32 %single(ptr %row, i64 %k, ptr %own)
  %done = icmp eq i32 %how, {DONE}
  br i1 %done, label %ended, label %stopped
ended:
  %left = load i64, ptr %own
  %at = getelementptr i64, ptr %lefts, i64 %k
  store i64 %left, ptr %at
  %less = call i64 @llvm.smin.i64(i64 %least, i64 %left)
  %used = sub i64 %given, %left
  %sum = add i64 %taken, %used
  %mine = getelementptr i64, ptr %erased, i64 %k
  %lost = load i64, ptr %own_erased
  %old = load i64, ptr %mine
  %new = add i64 %old, %lost
  store i64 %new, ptr %mine
  %drift = getelementptr double, ptr %drifts, i64 %k
  %far = load double, ptr %own_drift
  %near = load double, ptr %drift
  %farther = fcmp ogt double %far, %near
  %kept = select i1 %farther, double %far, double %near
  store double %kept, ptr %drift
  %high = load i64, ptr %own_peak
  %more = call i64 @llvm.smax.i64(i64 %most, i64 %high)
  %next = add i64 %k, 1
  %again = icmp ult i64 %next, {WIDTH}
  br i1 %again, label %head, label %out
out:
  %held = load i64, ptr %own_live
  store i64 %held, ptr %live
  store i64 %more, ptr %peak
  store i64 %less, ptr %ctx
  store i64 %sum, ptr %alone
  br label %share
share:
  %j = phi i64 [0, %out], [%j1, %share]
  %from = getelementptr i64, ptr %lefts, i64 %j
  %rest = load i64, ptr %from
  %over = sub i64 %rest, %less
  %to = getelementptr i64, ptr %spared, i64 %j
  %had = load i64, ptr %to
  %has = add i64 %had, %over
  store i64 %has, ptr %to
  %j1 = add i64 %j, 1
  %on = icmp ult i64 %j1, {WIDTH}
  br i1 %on, label %share, label %end
end:
  ret i32 {DONE}
stopped:
  ret i32 {STOPPED}
}}
""",
    "rvm_frame": """
define internal ptr @rvm_frame(i64 %size) cold {
  %p = call ptr @malloc(i64 %size)
  ret ptr %p
}
""",
    "rvm_stack_new": """
define internal ptr @rvm_stack_new() {
  %p = call ptr @calloc(i64 3, i64 8)
  ret ptr %p
}
""",
    "rvm_stack_count": """
define internal i64 @rvm_stack_count(ptr %s) alwaysinline {
  %at = getelementptr i64, ptr %s, i64 1
  %n = load i64, ptr %at
  ret i64 %n
}
""",
    "rvm_stack_end": """
define internal i64 @rvm_stack_end(ptr %s) {
  %data = load ptr, ptr %s
  call void @free(ptr %data)
  call void @free(ptr %s)
  ret i64 0
}
""",
    "rvm_stack_push": """
define internal ptr @rvm_stack_push(ptr %s, i64 %size) {
  %counted = getelementptr i64, ptr %s, i64 1
  %n = load i64, ptr %counted
  %room = getelementptr i64, ptr %s, i64 2
  %most = load i64, ptr %room
  %full = icmp eq i64 %n, %most
  br i1 %full, label %grow, label %put
grow:
  %twice = mul i64 %most, 2
  %more = call i64 @llvm.umax.i64(i64 %twice, i64 16)
  %bytes = mul i64 %more, %size
  %old = load ptr, ptr %s
  %new = call ptr @realloc(ptr %old, i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %grown
fail:
  ret ptr null
grown:
  store ptr %new, ptr %s
  store i64 %more, ptr %room
  br label %put
put:
  %data = load ptr, ptr %s
  %offset = mul i64 %n, %size
  %slot = getelementptr i8, ptr %data, i64 %offset
  %next = add i64 %n, 1
  store i64 %next, ptr %counted
  ret ptr %slot
}
""",
    "rvm_stack_top": """
define internal ptr @rvm_stack_top(ptr %s, i64 %size) {
  %counted = getelementptr i64, ptr %s, i64 1
  %n = load i64, ptr %counted
  %last = sub i64 %n, 1
  %data = load ptr, ptr %s
  %offset = mul i64 %last, %size
  %slot = getelementptr i8, ptr %data, i64 %offset
  ret ptr %slot
}
""",
    "rvm_stack_pop": """
define internal ptr @rvm_stack_pop(ptr %s, i64 %size) {
  %counted = getelementptr i64, ptr %s, i64 1
  %n = load i64, ptr %counted
  %next = sub i64 %n, 1
  store i64 %next, ptr %counted
  %data = load ptr, ptr %s
  %offset = mul i64 %next, %size
  %slot = getelementptr i8, ptr %data, i64 %offset
  ret ptr %slot
}
""",
    "rvm_sizes": f"""
define internal void @rvm_sizes(ptr %ctx, ptr %row, i64 %pc, ptr %meter, i64 %n) noinline {{
  %count = load i64, ptr %meter
  %none = icmp eq i64 %count, 0
  br i1 %none, label %out, label %some
some:
  %key = getelementptr i64, ptr %meter, i64 1
  %tables = getelementptr i64, ptr %ctx, i64 {TABLE}
  %table = load ptr, ptr %tables
  %masks = getelementptr i64, ptr %ctx, i64 {MASK}
  %mask = load i64, ptr %masks
  %strides = getelementptr i64, ptr %ctx, i64 {STRIDE}
  %stride = load i64, ptr %strides
  %address = ptrtoint ptr %row to i64
  %seed = add i64 %address, %pc
  br label %hash
hash:
  %k = phi i64 [0, %some], [%k1, %hash]
  %h = phi i64 [%seed, %some], [%h2, %hash]
  %word = getelementptr i64, ptr %key, i64 %k
  %size = load i64, ptr %word
  %h0 = xor i64 %h, %size
  %h1 = mul i64 %h0, {GOLDEN}
  %high = lshr i64 %h1, 32
  %h2 = xor i64 %h1, %high
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %hash, label %probe
probe:
  %at = phi i64 [%h2, %hash], [%next, %other]
  %slot = and i64 %at, %mask
  %offset = mul i64 %slot, %stride
  %entry = getelementptr i64, ptr %table, i64 %offset
  %places = getelementptr i64, ptr %entry, i64 {ENTRY_AT}
  %counts = getelementptr i64, ptr %entry, i64 {ENTRY_TIMES}
  %sizes = getelementptr i64, ptr %entry, i64 {ENTRY_SIZES}
  %holder = load ptr, ptr %entry
  %free = icmp eq ptr %holder, null
  br i1 %free, label %insert, label %check
check:
  %place = load i64, ptr %places
  %same_row = icmp eq ptr %holder, %row
  %same_place = icmp eq i64 %place, %pc
  %same = and i1 %same_row, %same_place
  br i1 %same, label %compare, label %other
compare:
  %j = phi i64 [0, %check], [%j1, %equal]
  %held_word = getelementptr i64, ptr %sizes, i64 %j
  %held = load i64, ptr %held_word
  %want_word = getelementptr i64, ptr %key, i64 %j
  %want = load i64, ptr %want_word
  %match = icmp eq i64 %held, %want
  br i1 %match, label %equal, label %other
equal:
  %j1 = add i64 %j, 1
  %left = icmp ult i64 %j1, %n
  br i1 %left, label %compare, label %found
other:
  %next = add i64 %slot, 1
  br label %probe
found:
  %before = load i64, ptr %counts
  %sum = add i64 %before, %count
  store i64 %sum, ptr %counts
  store i64 0, ptr %meter
  br label %out
insert:
  store ptr %row, ptr %entry
  store i64 %pc, ptr %places
  %bytes = mul i64 %n, 8
  store i64 %count, ptr %counts
  call void @llvm.memcpy.p0.p0.i64(ptr %sizes, ptr %key, i64 %bytes, i1 false)
  store i64 0, ptr %meter
  %uses = getelementptr i64, ptr %ctx, i64 {USED}
  %used = load i64, ptr %uses
  %used1 = add i64 %used, 1
  store i64 %used1, ptr %uses
  %mosts = getelementptr i64, ptr %ctx, i64 {MOST}
  %most = load i64, ptr %mosts
  %full = icmp uge i64 %used1, %most
{DRAINED}""",
    "rvm_called": f"""
define internal void @rvm_called(ptr %ctx, i64 %code, i64 %entered, i64 %left) noinline {{
  %log = getelementptr i64, ptr %ctx, i64 {LOG}
  %at = load ptr, ptr %log
  store i64 %code, ptr %at
  %second = getelementptr i64, ptr %at, i64 1
  store i64 %entered, ptr %second
  %third = getelementptr i64, ptr %at, i64 2
  store i64 %left, ptr %third
  %next = getelementptr i64, ptr %at, i64 {CALL_WORDS}
  store ptr %next, ptr %log
  %bound = getelementptr i64, ptr %ctx, i64 {LOG_END}
  %end = load ptr, ptr %bound
  %full = icmp uge ptr %next, %end
{DRAINED}""",
    **LOGGING,
    **ROOMS,
}
"""Definitions by name.  A stack is a row of three: pointer to the values, how many, room for how
many.  `rvm_frame` and `rvm_copied` are for leaving: without memory for that a run is lost.
`rvm_sizes` moves what a meter (see `rvm.ir.counters`) has counted to the table of sizes,
which is hashed with open addressing."""

DECLARATIONS = """
declare noalias ptr @malloc(i64) #2
declare noalias ptr @calloc(i64, i64) #2
declare ptr @realloc(ptr, i64) #2
declare void @free(ptr) #2
"""
