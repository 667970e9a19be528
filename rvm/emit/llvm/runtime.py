"""The few functions that generated code calls for memory: stacks, local arrays, stopped frames."""

from __future__ import annotations

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
}
"""Definitions by name.  A stack is a row of three: pointer to the values, how many, room for how
many.  `rvm_frame` and `rvm_copied` are for leaving: without memory for that nothing can be
saved."""

DECLARATIONS = """
declare noalias ptr @malloc(i64) #2
declare noalias ptr @calloc(i64, i64) #2
declare ptr @realloc(ptr, i64) #2
declare void @free(ptr) #2
declare void @abort() noreturn
"""
