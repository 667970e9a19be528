"""First programs in a reversible language, in Python: `first.rasm` and others as functions.

Source: the README, the tutorial and the documentation's notebook of NiLang.
"""

# ;! run weighted(a=[3, 1], b=[4, 2], out=[0, 1], loss=0) -> a=[7, 3], out=[28, 7], loss=28
# ;! run umv(x=[1, 2], t=[2]) -> x=[-2.234741690198506, 0.07700375379139708]
# ;! run inner(out=0, a=2, x=[1, 2], y=[3, 4], z=[5, 6]) -> y=[5, 8], out=73
# ;! run power12(y=0, x=2) -> y=4096
# ;! run copies(s=[], x=5, y=1, z=0) -> s=[5], z=1
# ;! run held(x=3, y=4) -> x=3
# ;! run exchanged(s=[], y=2, x=3) -> s=[3], y=1.2, x=2
# ;! run norm(r=0, x=[3, 4]) -> r=5
# ;! run power(y=0, x=1.5, n=10) -> y=57.6650390625
# ;! run fixed_exp(y=0, x=3.5) -> y=33.115451958692 within 1e-11
# ;! run squares(y=1, x=[1, 2, 3]) -> y=15

import numpy as np

import rvm
from rvm import Array, Stack, f64, fixed, i64, log64


@rvm.reversible
def weighted(a: Array[f64, "n"], b: Array[f64, "n"], out: Array[f64, "n"], loss: f64):
    a += b
    out += a * b
    loss += out[0]


@rvm.reversible
def umv(x: Array[f64, "n"], t: Array[f64, "m"]):
    with rvm.ancilla(0) as k:
        for j in range(len(x)):
            for i in range(len(x) - 2, j - 1, -1):
                rvm.rot(x[i], x[i + 1], t[k])
                k += 1
        k -= len(t)  # every angle has been used


@rvm.reversible
def inner(out: f64, a: f64, x: Array[f64, "n"], y: Array[f64, "n"], z: Array[f64, "n"]):
    y += a * x
    out += z @ y


@rvm.reversible
def power12(y: i64, x: i64):
    with rvm.ancilla(x**2) as a, rvm.ancilla(a**2) as b, rvm.ancilla(b * a) as c:
        y += c**2


@rvm.reversible
def push_copy(x: f64, s: Stack[f64]):
    with rvm.ancilla(0.0) as t:
        t += x
        rvm.push(t, s)


@rvm.reversible
def copies(s: Stack[f64], x: f64, y: f64, z: f64):
    z += y
    push_copy(x, s)
    push_copy(y, s)
    (~push_copy)(z, s)  # what is popped is as large as z


@rvm.reversible
def held(x: f64, y: f64):
    with rvm.ancilla(0.0) as a, rvm.ancilla(0.0) as z:
        a += x * y
        a, z = z, a
        z -= x * y


@rvm.reversible
def exchanged(s: Stack[f64], y: f64, x: f64):
    rvm.push(y, s)
    y += 1.2
    with rvm.ancilla(0.0) as a:
        rvm.pop(a, s)
        a, x = x, a
        rvm.push(a, s)


@rvm.reversible
def norm(r: f64, x: Array[f64, "n"]):
    with rvm.ancilla(np.sum(x**2)) as y:
        r += np.sqrt(y)


@rvm.reversible
def power(y: fixed, x: fixed, n: i64):
    if x > 0:  # 0 has no logarithm
        with rvm.ancilla(log64(x)) as lx, rvm.ancilla(log64(1)) as ly:
            with rvm.compute() as product:
                for _ in range(n):
                    ly *= lx
            y += fixed(ly)
            product.undo()


@rvm.reversible
def fixed_exp(y: fixed, x: fixed):
    with rvm.ancilla(fixed, 64) as term:  # x**k / k!
        with rvm.compute() as series:
            term[0] += 1
            for k in range(1, 64):
                term[k] += term[k - 1] * x / fixed(k)
        y += np.sum(term)
        series.undo()


@rvm.reversible
def fold(y, x, f):
    for i in range(len(x)):
        f(y, x[i])


@rvm.reversible
def add_square(y, x):
    y += x**2


@rvm.reversible
def squares(y: f64, x: Array[f64, "n"]):
    fold(y, x, add_square)
