"""Memory for local arrays: large blocks are kept for the next array of their size.

Memory from the operating system is cleared page by page when it is first written, which takes
longer than most computations on it.  So there is a row of pointers to released blocks, shared by
all threads of a process; the size of each is stored at its beginning.  Pointers are taken and
stored by atomic exchanges, so no thread waits.
"""

from __future__ import annotations

import sys

POOL = "rvm_pool"
"""The symbol of the row."""
PLACES = 8
"""How many pointers it has."""
LARGE, LARGEST = 1 << 18, 1 << 24
"""The bytes of what is kept, so that all of it is no more than 128 MiB."""
HUGE, HUGE_PAGES = 1 << 22, 14
"""From how many bytes on Linux is asked for large pages; its number of that advice."""
PAGE = 1 << 12

_ADVICE = f"""  %huge = icmp uge i64 %size, {HUGE}
  br i1 %huge, label %advise, label %take
advise:
  %first = ptrtoint ptr %new to i64
  %over = add i64 %first, {PAGE - 1}
  %begin = and i64 %over, {-PAGE}
  %pages = inttoptr i64 %begin to ptr
  %length = sub i64 %size, {PAGE}
  %advised = call i32 @madvise(ptr %pages, i64 %length, i32 {HUGE_PAGES})
  br label %take
take:
"""
KEPT = f"""
@{POOL} = external global [{PLACES} x ptr]
declare i32 @madvise(ptr, i64, i32) #2

define internal noalias ptr @rvm_large(i64 %size) cold noinline {{
entry:
  br label %head
head:
  %k = phi i64 [0, %entry], [%next, %other]
  %at = getelementptr ptr, ptr @{POOL}, i64 %k
  %p = atomicrmw xchg ptr %at, ptr null acq_rel
  %none = icmp eq ptr %p, null
  br i1 %none, label %other, label %look
look:
  %held = load i64, ptr %p
  %fits = icmp eq i64 %held, %size
  br i1 %fits, label %found, label %back
back:
  %late = atomicrmw xchg ptr %at, ptr %p acq_rel
  call void @free(ptr %late)
  br label %other
other:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {PLACES}
  br i1 %more, label %head, label %make
make:
  %new = call ptr @malloc(i64 %size)
{_ADVICE if sys.platform == "linux" else ""}  ret ptr %new
found:
  ret ptr %p
}}

define internal void @rvm_put_by(ptr %p, i64 %size) cold noinline {{
entry:
  store i64 %size, ptr %p
  br label %head
head:
  %k = phi i64 [0, %entry], [%next, %other]
  %at = getelementptr ptr, ptr @{POOL}, i64 %k
  %pair = cmpxchg ptr %at, ptr null, ptr %p acq_rel monotonic
  %done = extractvalue {{ptr, i1}} %pair, 1
  br i1 %done, label %out, label %other
other:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {PLACES}
  br i1 %more, label %head, label %full
full:
  %page = lshr i64 %size, {PAGE.bit_length() - 1}
  %any = urem i64 %page, {PLACES}
  %place = getelementptr ptr, ptr @{POOL}, i64 %any
  %old = atomicrmw xchg ptr %place, ptr %p acq_rel
  call void @free(ptr %old)
  br label %out
out:
  ret void
}}
"""
"""What the others need."""
ROOMS = {
    "rvm_room": f"""
define internal noalias ptr @rvm_room(i64 %size) noinline {{
  %large = icmp uge i64 %size, {LARGE}
  br i1 %large, label %more, label %less
more:
  %kept = call ptr @rvm_large(i64 %size)
  ret ptr %kept
less:
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %p = call ptr @malloc(i64 %some)
  ret ptr %p
}}
""",
    "rvm_zeros": f"""
define internal noalias ptr @rvm_zeros(i64 %size) noinline {{
  %large = icmp uge i64 %size, {LARGE}
  br i1 %large, label %more, label %less
more:
  %kept = call ptr @rvm_large(i64 %size)
  %none = icmp eq ptr %kept, null
  br i1 %none, label %out, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %kept, i8 0, i64 %size, i1 false)
  br label %out
out:
  ret ptr %kept
less:
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %p = call ptr @calloc(i64 %some, i64 1)
  ret ptr %p
}}
""",
    "rvm_release": f"""
define internal i64 @rvm_release(ptr %p, i64 %size) noinline {{
  %over = sub i64 %size, {LARGE}
  %large = icmp ule i64 %over, {LARGEST - LARGE}
  br i1 %large, label %keep, label %give
keep:
  call void @rvm_put_by(ptr %p, i64 %size)
  ret i64 0
give:
  call void @free(ptr %p)
  ret i64 0
}}
""",
}
"""Definitions by name; who gives memory up says how large it is."""
