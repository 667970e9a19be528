"""Programs that the tests of the editor's protocol debug."""

from __future__ import annotations

WINDOW = """\
; y[i] += the sum of the last w values of x, up to x[i]
func window(y: i64[n], x: i64[n], w: i64)
    alloc total: i64
    for i = 0 to n - 1
        add total, x[i]
        if i > w
            sub total, x[i - w]
        end
        add y[i], total
    end
    sub total, sum(x[n - w:n])
    free total
"""
"""Line 6 should say `i >= w`: the total is freed with x[0] in it."""

CALLS = """\
func main(a: i64, b: i64)
    inc a
    call twice(a, b)
    extern both
        print "a is", a
    end
    add b, 100

func twice(p: i64, q: i64)
    add q, p
    call once(q)
    add q, p

func once(r: i64)
    xor r, 1
"""
"""Two calls deep, with something printed."""

KINDS = """\
record Body
    pos: f64
    spin: i64
end

func kinds(b: bool, u: u8, z: c128, p: Body, a: i64[m, n], s: stack[i64], v: f64[k])
    add u, 250
    add p.pos, f64(p.spin)
    push a[0, 0], s
    add a[0, 1], 7
"""

LONG = """\
func long(s: u64, n: i64)
    for i = 1 to n
        add s, u64(i)
    end
"""
"""A loop that runs for as long as one likes."""
