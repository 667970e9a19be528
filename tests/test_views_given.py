"""Views of arrays as arguments: strided, reversed, transposed ones are worked on where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import ENGINES, LAW

PROGRAM = rvm.assemble(
    """
func mixed(x: f64[n, m], y: f64[n], z: c128[m], k: i64[m], s: f64)
    for i = 0 to n - 1
        for j = 0 to m - 1
            add y[i], x[i, j] * s
            add k[j], i + 2 * j
            rot x[i, j], y[i], 0.25
        end
        mul y[i], 3.0
    end
    add s, sum(x) + dot(y, y)
    add x[:, 0], y
    add y, x @ real(z)
    add z, complex(s, 1.0)
    swap x[0], x[1]
""",
    "views.rasm",
)

View = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def strided(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Every second or third element of a larger array."""
    steps = (2, 3)[: a.ndim]
    large = np.zeros([n * k + 5 for n, k in zip(a.shape, steps, strict=True)], a.dtype)
    view = large[tuple(slice(1, 1 + n * k, k) for n, k in zip(a.shape, steps, strict=True))]
    view[...] = a
    return view


def backwards(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array whose last axis runs downwards in memory."""
    return a[..., ::-1].copy()[..., ::-1]


def fortran(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asfortranarray(a)


def field(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A field of a structured array, between others."""
    made = np.zeros(a.shape, [("a", a.dtype), ("b", a.dtype), ("c", np.float64)])
    made["b"] = a
    return made["b"]


VIEWS = (strided, backwards, fortran, field)


def numbers() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    z = rng.normal(size=4) + 1j * rng.normal(size=4)
    given = {"x": rng.normal(size=(3, 4)), "y": rng.normal(size=3), "z": z}
    return given | {"k": rng.integers(-9, 9, 4), "s": 0.5}


def seen(values: dict[str, Any], view: View) -> dict[str, Any]:
    return {k: view(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(np.array_equal(np.asarray(a[k]), np.asarray(b[k])) for k in a)


@thin
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("engine", ENGINES)
@sample
def test_a_view_is_changed_in_place_like_a_plain_array(engine: str, view: View) -> None:
    f = PROGRAM.mixed.with_options(engine=engine)
    want = dict(f(**numbers()))
    given = seen(numbers(), view)
    kept = dict(given)
    for _ in range(3):  # the first call may be another engine's
        found = f(**given)
        assert same(dict(found), want)
        assert all(found[k] is v for k, v in kept.items() if isinstance(v, np.ndarray))
        back = (~f)(**found)
        assert np.allclose(back["x"], numbers()["x"]) and np.array_equal(back["k"], numbers()["k"])
        given = seen(numbers(), view)
        kept = dict(given)


@thin
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("engine", ENGINES)
@sample
def test_derivatives_and_lanes_take_views(engine: str, view: View) -> None:
    """Of arrays that are read only, and of those that change."""
    f = rvm.assemble(
        """
        func g(x: f64[n], m: f64[k, n], y: f64, z: f64[k])
            for i = 0 to n - 1
                add y, x[i] * x[i] * x[n - 1 - i]
            end
            add z, m @ x
            add y, sum(z * z)
        """
    ).g.with_options(engine=engine)

    def given() -> dict[str, Any]:
        numbered = numbers()
        return {"x": numbered["x"][0].copy(), "m": numbered["x"], "y": 0.0, "z": numbered["y"]}

    seeds = {"y": 1.5, "z": np.arange(3.0)}
    want = [f.grad(given(), loss="y"), f.vjp(seeds, given()), f.jvp(seeds, given())[1]]
    seed = {"y": 1.5, "z": view(np.arange(3.0))}
    for _ in range(2):
        found = [
            f.grad(seen(given(), view), loss="y"),
            f.vjp(seed, seen(given(), view)),
            f.jvp(seed, seen(given(), view))[1],
        ]
        assert all(same(dict(a), dict(b)) for a, b in zip(found, want, strict=True))
    x = numbers()["x"]
    rows = f.map(x=view(x), m=np.ones((1, 4)), y=0.0, z=np.zeros(1))
    each = [f(x=row.copy(), m=np.ones((1, 4)), y=0.0, z=np.zeros(1)).y for row in x]
    assert np.array_equal(rows.y, each)


def test_what_surrounds_a_view_stays() -> None:
    large = np.arange(40.0).reshape(5, 8)
    before = large.copy()
    f = rvm.assemble("func f(x: f64[n, m])\n    add x[1], 1.0\n    mul x[0], 2.0").f
    f(large[1:4:2, 6:1:-2])
    before[1, [6, 4, 2]] *= 2
    before[3, [6, 4, 2]] += 1
    assert np.array_equal(large, before)


def test_views_that_meet_are_refused() -> None:
    f = rvm.assemble("func f(x: f64[n], y: f64[n])\n    add x, y").f
    large = np.arange(10.0)
    f(large[::2], large[1::2])  # every number in one of them
    with pytest.raises(rvm.InputError, match="share memory"):
        f(large[:8:2], large[2::2])
    with pytest.raises(rvm.InputError, match="overlap"):
        f(np.lib.stride_tricks.as_strided(large, (3,), (0,)), np.ones(3))
    packed = np.zeros(3, np.dtype([("a", "u1"), ("b", "f8")]))
    with pytest.raises(rvm.InputError, match="not aligned"):
        f(packed["b"], np.ones(3))


def crooked(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array without gaps whose elements are not aligned to their size."""
    view = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def locked(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only array."""
    view = a.copy()
    view.flags.writeable = False
    return view


REFUSED: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "not aligned": crooked,
    "fortran, not aligned": lambda a: crooked(a.T).T,
    "read-only": locked,
    "another order of bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "narrower": lambda a: a.astype(np.float32),
    "one dimension more": lambda a: a[None],
    "short": lambda a: a[..., 1:],
    "masked": lambda a: np.ma.array(a),
    "a list": lambda a: a.tolist(),
    "every number one": lambda a: np.broadcast_to(a.ravel()[0], a.shape),
}
WAYS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "call": lambda f, given: f(**given),
    "inverse": lambda f, given: (~f)(**given),
    "strict": lambda f, given: f(**given, strict=True),
    "grad": lambda f, given: f.grad(given, loss="s"),
    "wrt": lambda f, given: f.grad(given, loss="s", wrt=["x"]),
    "vjp": lambda f, given: f.vjp({"s": 1.0}, given),
    "jvp": lambda f, given: f.jvp({"s": 1.0}, given),
    "hessian": lambda f, given: f.hessian(given, loss="s", wrt=["x"]),
}


@thin
@pytest.mark.parametrize("engine", ENGINES)
@sample
def test_every_engine_refuses_wrong_arrays_alike(engine: str) -> None:
    """By every way in, at the first call and later ones, with arrays as they were."""
    f = rvm.assemble(
        """
        func f(x: f64[n], y: f64[n], m: f64[k, n], s: f64)
            add y, m[0] * x
            add s, sum(y * y)
        """
    ).f
    x = np.arange(1.0, 4.0)
    base = {"x": x, "y": x + 1, "m": np.array([x, x * x, x]), "s": 0.5}

    def outcome(name: str, odd: str, way: str, engine: str) -> Any:
        given = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in base.items()}
        given[name] = REFUSED[odd](base[name])
        try:
            WAYS[way](f.with_options(engine=engine), given)
        except rvm.InputError as error:
            assert all(np.array_equal(given[k], base[k]) for k in base if k != name)
            return error.code
        return None

    for way in WAYS:
        for name in "xym":
            for odd in REFUSED:
                want = outcome(name, odd, way, LAW)
                for _ in range(2):
                    assert outcome(name, odd, way, engine) == want, (way, name, odd)


def test_bytes_are_arrays_of_u8() -> None:
    program = rvm.assemble(
        """
        func add_key(x: u8[n], key: u8[m])
            for i = 0 to n - 1
                xor x[i], key[i % m]
            end
        func total[T: int](x: T[n], y: i64)
            for i = 0 to n - 1
                add y, i64(x[i])
            end
        """
    )
    text = bytearray(b"attack at dawn")
    out = program.add_key(text, b"key")
    assert out.x is text and text == bytes(
        a ^ b for a, b in zip(b"attack at dawn", b"key" * 5, strict=False)
    )
    (~program.add_key)(text, memoryview(b"key"))
    assert text == b"attack at dawn"
    every = memoryview(text)[::2]
    program.add_key(every, b"\1")
    assert text == bytes(c ^ (k % 2 == 0) for k, c in enumerate(b"attack at dawn"))
    assert program.total(b"\1\2\xff", 0).y == 258
    assert program.total(memoryview(np.array([1, -2], np.int32)), 0).y == -1
    with pytest.raises(rvm.InputError, match=r"bytearray\(x\)"):
        program.add_key(b"abc", b"key")
    with pytest.raises(rvm.InputError, match=r"x\.encode\(\)"):
        program.add_key("abc", b"key")  # type: ignore[arg-type]
    every.release()
    text.append(1)  # nothing holds its memory any more
