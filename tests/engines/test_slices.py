"""Slices and shapes mean what NumPy's do, or are errors: on every engine, there and back."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from rvm_asm import disassemble
from sizes import part, sized, thin

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import AssemblyError, RvmError
from rvm.registry import having

ENGINES = executing()
HELPERS = """
func count(b: i64[p])
    for i = 0 to p - 1
        add b[i], i * i + 1
    end
func count2(b: i64[p, q])
    for i = 0 to p - 1
        for j = 0 to q - 1
            add b[i, j], 10 * i + j * j
        end
    end
"""
SHAPES = {"x": (7,), "y": (6,), "a": (4, 5), "b": (5, 3)}
SCALARS = {"i": 2, "j": -2, "k": 0}


def count(b: Any) -> None:
    b += np.arange(len(b)) ** 2 + 1


def count2(b: Any) -> None:
    b += 10 * np.arange(b.shape[0])[:, None] + np.arange(b.shape[1]) ** 2


class Writer:
    """Writes random views, of which the texts of both languages are the same."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        rng = np.random.default_rng(seed)
        self.arrays = {name: rng.integers(-9, 9, shape) for name, shape in SHAPES.items()}

    def number(self, n: int) -> str:
        """A text for a number, now and then one that only the run knows."""
        texts = [str(n)] + [f"({name} + {n - v})" for name, v in SCALARS.items()]
        return self.rng.choice(texts[:1] * 3 + texts)

    def item(self, n: int) -> str:
        """A slice of an axis of length n."""
        rng = self.rng
        step = rng.choice((None, None, 1, 2, 3, -1, -1, -2, -3))
        if step is None or step > 0:
            lo = rng.randint(0, n)
            hi = rng.randint(lo, n)
        else:
            lo = rng.randint(0, max(n - 1, 0))
            hi = rng.randint(0, lo)
        ends = ["" if rng.random() < 0.4 else self.number(e) for e in (lo, hi)]
        if step is not None and step < 0 and not n:
            ends = ["", ""]
        if ends[0] == "" and hi > n - 1 and step is not None and step < 0:
            ends[1] = ""
        return ":".join(ends) + ("" if step is None else f":{self.number(step)}")

    def lengths(self, n: int) -> str:
        """Lengths of a matrix, or of a row, of n elements."""
        m = self.rng.choice([k for k in range(1, n + 1) if not n % k] or [0])
        dims = [m, n // m if m else self.rng.randint(0, 3)]
        return ", ".join(map(self.number, dims if self.rng.random() < 0.8 else [n]))

    def view(self, name: str) -> str:
        """A view of an array."""
        text = name
        for _ in range(self.rng.randint(1, 3)):
            shape = eval(text, {}, self.names).shape
            if len(shape) == 1 and self.rng.random() < 0.25:
                text += f".reshape({self.lengths(shape[0])})"
                continue
            if len(shape) == 2 and self.rng.random() < 0.2:
                text += ".T"
                continue
            items = [self.item(n) for n in shape[: self.rng.randint(1, len(shape))]]
            if len(shape) == 2 and shape[0] and self.rng.random() < 0.25:
                items[0] = self.number(self.rng.randrange(shape[0]))
            text += f"[{', '.join(items)}]"
        return text

    @property
    def names(self) -> dict[str, Any]:
        return self.arrays | SCALARS

    def matching(self, name: str, shape: tuple[int, ...]) -> str | None:
        """A view of a shape, if one is found."""
        for _ in range(30):
            text = self.view(name)
            if eval(text, {}, self.names).shape == shape:
                return text
        return None

    def statement(self) -> tuple[str, str]:
        """A statement, and what it means."""
        name, other = self.rng.sample(sorted(SHAPES), 2)
        text = self.view(name)
        shape = eval(text, {}, self.names).shape
        roll = self.rng.random()
        if roll < 0.25:
            helper = "count" if len(shape) == 1 else "count2"
            return f"call {helper}({text})", f"{helper}({text})"
        if roll < 0.5:
            return f"xor {text}, 5 * i", f"_ = {text}; _ ^= 5 * i"
        found = self.matching(other, shape)
        if found is None:
            return f"neg {text}", f"_ = {text}; _ *= -1"
        if roll < 0.75:
            return (
                f"swap {text}, {found}",
                f"_ = {text}.copy(); {text}[...] = {found}; {found}[...] = _",
            )
        return f"sub {text}, 3 * {found}", f"_ = {text}; _ -= 3 * {found}"


def program(seed: int, size: int = 12) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A random text, the arrays it begins with, and those that it ends with."""
    writer = Writer(seed)
    start = {name: a.copy() for name, a in writer.arrays.items()}
    lines = []
    for _ in range(size):
        line, meaning = writer.statement()
        lines.append(f"    {line}\n")
        exec(meaning, {"count": count, "count2": count2}, writer.names)
    params = [f"{n}: i64[{', '.join(f'{n}{k}' for k in range(len(s)))}]" for n, s in SHAPES.items()]
    params += [f"{n}: i64" for n in SCALARS]
    return f"func f({', '.join(params)})\n{''.join(lines)}{HELPERS}", start, writer.arrays


def same(found: Any, want: dict[str, Any]) -> None:
    for name, value in want.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@thin
@pytest.mark.parametrize("engine", ENGINES)
@sized
def test_random_views_as_numpy_has_them(engine: str) -> None:
    for seed in range(part(20)):
        text, start, want = program(seed)
        lib = rvm.assemble(text)
        f = lib.f.with_options(engine=engine)
        there = f(**{n: a.copy() for n, a in start.items()}, **SCALARS)
        same(there, want)
        same((~f)(**there), start)


@sized
def test_they_are_written_and_read_back() -> None:
    for seed in range(part(40)):
        lib = rvm.assemble(program(seed)[0])
        data = encode(lib)
        assert decode(data) == lib.program
        assert encode(rvm.assemble(disassemble(lib.program)).program) == data


@thin
@sized
@pytest.mark.parametrize("engine", having("lanes"))
def test_in_lanes(engine: str) -> None:
    for seed in range(part(8)):
        text, start, want = program(seed)
        f = rvm.assemble(text).f.with_options(engine=engine)
        many = {n: np.stack([a, a * 0, a]) for n, a in start.items()}
        out = f.map(**many, **SCALARS)
        for lane in (0, 2):
            same({n: out[n][lane] for n in start}, want)
        same((~f).map(**out), many)


ENDS = """
func f(x: i64[n], lo: i64, hi: i64, by: i64)
    add x[lo:hi:by], 1
func up(x: i64[n], lo: i64, hi: i64, by: u64)
    add x[lo:hi:by], 1
func down(x: i64[n], lo: i64, hi: i64)
    add x[lo:hi:-2], 1
func by3(x: i64[n], lo: i64, hi: i64)
    add x[lo:hi:3], 1
func begin(x: i64[n], lo: i64, by: i64)
    add x[lo::by], 1
func end_(x: i64[n], hi: i64, by: i64)
    add x[:hi:by], 1
func every(x: i64[n], by: i64)
    add x[::by], 1
func counted(y: i64, x: i64[n], lo: i64, hi: i64, by: i64)
    for k = 0 to 2
        add y, len(x[lo:hi:by]) + sum(x[lo:hi:by])
    end
"""
FAR = (1 << 63) - 1


def inside(n: int, lo: int | None, hi: int | None, by: int) -> bool:
    """Whether NumPy neither clips a slice nor counts it from the end."""
    if by == 0 or any(e is not None and not 0 <= e <= n for e in (lo, hi)):
        return False
    if by > 0:
        return (lo or 0) <= (n if hi is None else hi)
    return (lo is None or lo < n) and (hi is None or hi <= (n - 1 if lo is None else lo))


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_ends_are_checked_for_every_value(engine: str) -> None:
    lib = rvm.assemble(ENDS)
    ends, steps = (-1, 0, 1, 3, 4, 5, FAR, -FAR - 1), (0, 1, 2, 3, -1, -2, -4, FAR, -FAR - 1)
    asked: list[tuple[str, dict[str, int]]] = []
    for lo in ends:
        asked += [("begin", {"lo": lo, "by": by}) for by in steps]
        asked += [("end_", {"hi": lo, "by": by}) for by in steps]
        for hi in ends:
            asked += [("down", {"lo": lo, "hi": hi}), ("by3", {"lo": lo, "hi": hi})]
            asked += [("up", {"lo": lo, "hi": hi, "by": by}) for by in (0, 1, 2, FAR + 1)]
            asked += [("f", {"lo": lo, "hi": hi, "by": by}) for by in steps]
    asked += [("every", {"by": by}) for by in steps]
    fixed = {"down": -2, "by3": 3}
    for n in (0, 4):
        for name, given in asked:
            x, want = np.arange(n), np.arange(n)
            ends_and_step = given.get("lo"), given.get("hi"), given.get("by", fixed.get(name, 1))
            f = getattr(lib, name).with_options(engine=engine)
            if inside(n, *ends_and_step):
                want[slice(*ends_and_step)] += 1
                assert f(x=x, **given).x.tolist() == want.tolist(), (n, name, given)
            else:
                with pytest.raises(RvmError) as caught:
                    f(x=x, **given)
                assert caught.value.code == "R003", (n, name, given)
                assert caught.value.values["length"] == n
                assert x.tolist() == want.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_costs_count_the_elements(engine: str) -> None:
    """What is counted of a slice is what its elements cost one by one, on every engine."""
    lib = rvm.assemble(ENDS)
    shaped = rvm.assemble(SHAPED)
    x, found = np.arange(10), []
    for e in ("reference", engine):
        m = rvm.Machine(shaped.program, "counted", y=0, x=x, m=5, engine=e)
        counts = m.count()
        m.run()
        assert m["y"] == 3 * (45 + 5)
        found.append([dict(sizes) for node in counts.nodes() for sizes in node.sizes.values()])
    assert found[0] == found[1]
    for lo, hi, by in ((0, 9, 2), (8, 0, -3), (5, 5, 1), (8, 8, -1)):
        want = {}
        for e in ("reference", engine):
            m = rvm.Machine(lib.program, "counted", y=0, x=x, lo=lo, hi=hi, by=by, engine=e)
            counts = m.count()
            m.run()
            sizes = [dict(found) for node in counts.nodes() for found in node.sizes.values()]
            want[e] = counts.ticks, sizes
        assert want[engine] == want["reference"]
        taken = x[lo:hi:by]
        assert m["y"] == 3 * (len(taken) + taken.sum())


SHAPED = """
func f(x: i64[l], m: i64, n: i64)
    add x.reshape(m, n), 1
func rows(x: i64[l], m: i64)
    add x.reshape(m, 4), 1
func cube(x: i64[l], m: u64, n: i64)
    add x.reshape(m, 2, n), 1
func part(x: i64[l], m: i64, n: i64, i: i64, j: i64)
    inc x[::-1].reshape(m, n)[i, j]
func counted(y: i64, x: i64[l], m: i64)
    for k = 0 to 2
        add y, sum(x.reshape(m, 2)) + dim(x.reshape(m, 2), 0)
    end
"""


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_lengths_are_checked_for_every_value(engine: str) -> None:
    lib = rvm.assemble(SHAPED)
    lengths = (-FAR - 1, -12, -1, 0, 1, 2, 3, 4, 6, 12, 1 << 32, FAR)
    asked: list[tuple[str, dict[str, int], tuple[int, ...]]] = []
    for m in lengths:
        asked.append(("rows", {"m": m}, (m, 4)))
        for n in lengths:
            asked.append(("f", {"m": m, "n": n}, (m, n)))
            asked += [("cube", {"m": m, "n": n}, (m, 2, n))] * (m >= 0)
    for size in (0, 12):
        for name, given, dims in asked:
            x = np.arange(size)
            f = lib[name].with_options(engine=engine)
            far = math.prod(d for d in dims if d) > 1 << 47
            if min(dims) >= 0 and math.prod(dims) == size and not far:
                assert f(x=x, **given).x.tolist() == list(range(1, size + 1)), (size, given)
                continue
            with pytest.raises(RvmError) as caught:
                f(x=x, **given)
            assert caught.value.code == "R008" and caught.value.values["elements"] == size
            assert caught.value.values["lengths"] == list(dims)
            assert x.tolist() == list(range(size))


@pytest.mark.parametrize("engine", ENGINES)
def test_elements_of_shapes(engine: str) -> None:
    f = rvm.assemble(SHAPED).part.with_options(engine=engine)
    for i, j in ((0, 0), (2, 3), (1, 2)):
        want = np.arange(12)
        want[::-1].reshape(3, 4)[i, j] += 1
        assert f(x=np.arange(12), m=3, n=4, i=i, j=j).x.tolist() == want.tolist()
    for i, j in ((3, 0), (0, 4), (-1, 0), (0, -1)):
        with pytest.raises(RvmError) as caught:
            f(x=np.arange(12), m=3, n=4, i=i, j=j)
        assert caught.value.code == "R003"


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_lies_inside_of_its_view(engine: str) -> None:
    """Not only inside of the array that the view is of."""
    views = ["x", "x[0:4]", "x[2:5]", "x[::-1]", "x[::2]", "x[1::3]", "x[k:k+3]", "x[6:2:-1][1:]"]
    views += ["x.reshape(2, 4)[0]", "x.reshape(2, 4)[:, k]", "x[::-1].reshape(4, k)[1]"]
    text = "".join(
        f"func f{n}(x: i64[n], i: i64, k: i64)\n    add {view}[i], 1\n"
        f"func t{n}(y: i64[m], x: i64[n], k: i64)\n    for i = 0 to m - 1\n"
        f"        add y[i], {view}[i]\n    end\n"
        for n, view in enumerate(views)
    )
    lib = rvm.assemble(text)
    for n, view in enumerate(views):
        f, t = (lib[f"{name}{n}"].with_options(engine=engine) for name in "ft")
        whole = eval(view, {"x": np.arange(8), "k": 2})
        for i in range(-9, 10):
            x = np.arange(8)
            if 0 <= i < len(whole):
                want = np.arange(8)
                eval(view, {"x": want, "k": 2})[i] += 1
                assert f(x=x, i=i, k=2).x.tolist() == want.tolist(), (view, i)
                continue
            with pytest.raises(RvmError) as caught:
                f(x=x, i=i, k=2)
            assert caught.value.code == "R003", (view, i)
        for count in (len(whole), len(whole) + 1):
            y = np.zeros(count, int)
            if count == len(whole):
                assert t(y=y, x=np.arange(8), k=2).y.tolist() == whole.tolist(), view
                continue
            with pytest.raises(RvmError) as caught:
                t(y=y, x=np.arange(8), k=2)
            assert caught.value.code == "R003", view


def test_what_shapes_there_are() -> None:
    with pytest.raises(AssemblyError, match="is of an array with one dimension, not 2"):
        rvm.assemble("func f(x: i64[n, m])\n    neg x.reshape(n * m)\n")
    with pytest.raises(AssemblyError, match="is of an array with one dimension, not 0"):
        rvm.assemble("func f(x: i64)\n    neg x.reshape(1)\n")
    with pytest.raises(AssemblyError, match=r"1\.5 is not an integer"):
        rvm.assemble("func f(x: i64[n])\n    neg x.reshape(1.5, 2)\n")
    with pytest.raises(AssemblyError, match="expected a length"):
        rvm.assemble("func f(x: i64[n])\n    neg x.reshape()\n")


OVERLAPS = """
func f(x: i64[n], s: i64, t: i64)
    {0} x{1}, x{2}
"""


@pytest.mark.parametrize("engine", ENGINES)
@sized
def test_views_of_one_array_that_meet_are_refused(engine: str) -> None:
    rng = random.Random(engine)
    views = ["[::2]", "[1::2]", "[:4]", "[3::-1]", "[4:]", "[:3:-1]", "[s::4][:2]", "[t::4][:2]"]
    views += ["[s:s+4]", "[::s][:2]", "[::-1][:4]", "[1:][::2]"]
    views += [".reshape(2, 4)[0]", ".reshape(2, 4)[t // 2]", ".reshape(4, 2)[:, 0]"]
    views += [".reshape(4, 2).T[1]", "[::-1].reshape(2, 4)[1]", ".reshape(2, 4)[:, s]"]
    views += [".reshape(2, 4)", "[::-1].reshape(2, 4)", ".reshape(8)[:4]"]
    for _ in range(part(60)):
        op = rng.choice(["add", "swap"])
        one, two = rng.sample(views, 2)
        s, t = rng.randint(1, 3), rng.randint(0, 3)
        x = np.arange(8)
        v, w = (eval(f"x{text}", {}, {"x": x, "s": s, "t": t}) for text in (one, two))
        if v.shape != w.shape or not v.size:
            continue
        apart = not np.shares_memory(v, w)
        given = {"x": x.copy(), "s": s, "t": t}
        try:
            out = rvm.assemble(OVERLAPS.format(op, one, two)).f(**given, engine=engine)
        except AssemblyError as error:
            assert {e.code for e in error.diagnostics} <= {"A013", "A016"}
            assert not apart, (op, one, two, s, t)
        except RvmError as error:
            assert error.code == "R004"
            assert not apart, (op, one, two, s, t)
        else:
            same_view = v.__array_interface__ == w.__array_interface__
            assert apart or (op == "swap" and same_view), (op, one, two, s, t)
            if op == "add":
                v += w
            else:
                v[...], w[...] = w.copy(), v.copy()
            assert out.x.tolist() == x.tolist()


def test_what_is_said() -> None:
    lib = rvm.assemble(ENDS)
    with pytest.raises(RvmError, match="the slice 0:9:2 is out of bounds"):
        lib.f(x=np.arange(4), lo=0, hi=9, by=2)
    with pytest.raises(RvmError, match="the slice 4:0:-2 is out of bounds") as caught:
        lib.down(x=np.arange(4), lo=4, hi=0)
    assert "without b it goes down to the first element" in caught.value.hint
    with pytest.raises(RvmError, match="the step of a slice is 0") as caught:
        lib.every(x=np.arange(4), by=0)
    assert caught.value.code == "R003"
    with pytest.raises(AssemblyError, match=r"1\.5 is not an integer"):
        rvm.assemble("func f(x: i64[n])\n    neg x[::1.5]\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_that_callers_turned(engine: str) -> None:
    """Parameters that are views of a caller's array, in loops and calls of compiled code."""
    text = (
        "func f(x: i64[n], y: i64[m])\n    for i = 0 to 3\n        add x[::-2], y[1::2]\n"
        "        call count(x[::-1][1:])\n    end\n" + HELPERS
    )
    x, y = np.arange(16)[::-2], np.arange(8)[::-1]
    want = x.copy()
    for _ in range(4):
        want[::-2] += y[1::2]
        count(want[::-1][1:])
    out = rvm.assemble(text).f(x=x, y=y, engine=engine)
    assert out.x.tolist() == want.tolist()
