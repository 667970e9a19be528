"""The few functions that generated code calls for memory: stacks, local arrays, stopped frames."""

from __future__ import annotations

from rvm.emit.llvm.context import CALLED, DRAIN, LOG, LOG_END, OPEN, SIZES

RUNTIME = {
    "rvm_room": """
define internal noalias ptr @rvm_room(i64 %size) {
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %p = call ptr @malloc(i64 %some)
  ret ptr %p
}
""",
    "rvm_zeros": """
define internal noalias ptr @rvm_zeros(i64 %size) {
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %p = call ptr @calloc(i64 %some, i64 1)
  ret ptr %p
}
""",
    "rvm_release": """
define internal i64 @rvm_release(ptr %p) {
  call void @free(ptr %p)
  ret i64 0
}
""",
    "rvm_copied": """
define internal ptr @rvm_copied(ptr %from, i64 %size) cold {
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %p = call ptr @malloc(i64 %some)
  %none = icmp eq ptr %p, null
  br i1 %none, label %lost, label %copy
lost:
  call void @abort()
  unreachable
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %from, i64 %size, i1 false)
  ret ptr %p
}
""",
    "rvm_frame": """
define internal ptr @rvm_frame(i64 %size) cold {
  %p = call ptr @malloc(i64 %size)
  %none = icmp eq ptr %p, null
  br i1 %none, label %lost, label %fine
lost:
  call void @abort()
  unreachable
fine:
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
    "rvm_record": f"""
define internal ptr @rvm_record(ptr %ctx, i64 %words, i64 %kind) noinline cold {{
  %log = getelementptr i64, ptr %ctx, i64 {LOG}
  %bound = getelementptr i64, ptr %ctx, i64 {LOG_END}
  %here = load ptr, ptr %log
  %end = load ptr, ptr %bound
  %behind = getelementptr i64, ptr %here, i64 %words
  %full = icmp ugt ptr %behind, %end
  br i1 %full, label %drain, label %room
drain:
  %emptier = getelementptr i64, ptr %ctx, i64 {DRAIN}
  %empty = load ptr, ptr %emptier
  call void %empty(ptr %ctx)
  br label %room
room:
  %at = load ptr, ptr %log
  %next = getelementptr i64, ptr %at, i64 %words
  store ptr %next, ptr %log
  store i64 %words, ptr %at
  %second = getelementptr i64, ptr %at, i64 1
  store i64 %kind, ptr %second
  %rest = getelementptr i64, ptr %at, i64 2
  ret ptr %rest
}}
""",
    "rvm_sizes": f"""
define internal i64 @rvm_sizes(ptr %ctx, ptr %row, i64 %pc, ptr %meter, i64 %n) noinline cold {{
  %count = load i64, ptr %meter
  %none = icmp eq i64 %count, 0
  br i1 %none, label %out, label %some
some:
  %words = add i64 %n, 5
  %to = call ptr @rvm_record(ptr %ctx, i64 %words, i64 {SIZES})
  store ptr %row, ptr %to
  %second = getelementptr i64, ptr %to, i64 1
  store i64 %pc, ptr %second
  %third = getelementptr i64, ptr %to, i64 2
  %more = add i64 %n, 1
  %size = mul i64 %more, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %third, ptr %meter, i64 %size, i1 false)
  store i64 0, ptr %meter
  br label %out
out:
  ret i64 0
}}
""",
    "rvm_called": f"""
define internal i64 @rvm_called(ptr %ctx, i64 %code, i64 %entered, i64 %left) {{
  %to = call ptr @rvm_record(ptr %ctx, i64 5, i64 {CALLED})
  store i64 %code, ptr %to
  %second = getelementptr i64, ptr %to, i64 1
  store i64 %entered, ptr %second
  %third = getelementptr i64, ptr %to, i64 2
  store i64 %left, ptr %third
  ret i64 0
}}
""",
    "rvm_open": f"""
define internal i64 @rvm_open(ptr %ctx, i64 %entered) noinline cold {{
  %to = call ptr @rvm_record(ptr %ctx, i64 3, i64 {OPEN})
  store i64 %entered, ptr %to
  ret i64 0
}}
""",
}
"""Definitions by name.  A stack is a row of three: pointer to the values, how many, room for how
many.  `rvm_frame` and `rvm_copied` are for leaving: without memory for that nothing can be saved.
`rvm_record` makes a record of some words and gives the place of its third; the others that count
fill one."""

LOGGING = frozenset(["rvm_sizes", "rvm_called", "rvm_open"])
"""The functions that need `rvm_record`."""

DECLARATIONS = """
declare noalias ptr @malloc(i64) #2
declare noalias ptr @calloc(i64, i64) #2
declare ptr @realloc(ptr, i64) #2
declare void @free(ptr) #2
declare void @abort() noreturn
"""
