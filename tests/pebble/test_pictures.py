"""Pictures of schedules and curves against a plain replay of the actions."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pebble.graphs import adder
from sizes import examples, wide

from rvm.faults import UsageError
from rvm.pebble import Kind, Plan, frontier, parse_bench, plan, plan_dag
from rvm.pebble.drawing.film import bars, rastered
from rvm.pebble.drawing.svg import round_powers, round_steps

SVG = "{http://www.w3.org/2000/svg}"
PLANS = [
    plan(16, pebbles=6),
    plan(7, pebbles=3, goal="visit"),
    plan(12, pebbles=5, goal="gradient"),
    plan(30, pebbles=3, goal="gradient", price=0),
    plan(40, pebbles=6, goal="gradient", price=3),
    plan(20, pebbles=2, goal="gradient", disk=4),
    plan(12, pebbles=4, goal="gradient", strategy="online"),
    plan(12, pebbles=3, reversible_steps=[2, 3, 5, 6, 8, 9, 11, 12]),
    plan(9, costs=[1, 2, 3] * 3, pebbles=5),
    plan(16, pebbles=5, erasures=2),
]


def columns(p: Plan) -> Iterator[tuple[set[int], set[int], int | None]]:
    """For each tick the nodes in memory when it is over, those on disk, and where an adjoint is.

    The input's own place in memory is not drawn.
    """
    for held, disk, at in _columns(p):
        yield held - {0}, disk, at


def _columns(p: Plan) -> Iterator[tuple[set[int], set[int], int | None]]:
    held: set[int] = {0}
    disk: set[int] = set()
    waiting: tuple[set[int], set[int], int | None] | None = None
    for kind, i, j in p.actions():
        if kind in (Kind.SAVE, Kind.DROP):
            disk ^= {i}
            continue
        if kind in (Kind.FREE, Kind.LOAD):
            held ^= {i}
            continue
        if kind == Kind.COPY:
            continue
        if kind == Kind.REVERSE:
            yield set(held), set(disk), i
            continue
        if kind == Kind.UNADVANCE:
            held.remove(j)
            yield set(held), set(disk), None
            continue
        path = list(range(i, j + 1))
        if kind == Kind.UNSHIFT:
            path.reverse()
        if kind != Kind.ADVANCE:
            held.remove(path[0])
        for node in path[1:-1]:
            yield held | {node}, set(disk), None
        held.add(path[-1])
        yield set(held), set(disk), None
    assert waiting is None


def text_of(p: Plan) -> list[str]:
    """The lines of an exact picture, by their definition."""
    found = list(columns(p))
    lines = []
    for node in range(p.n, -1, -1):
        row = "".join(
            "◆" if node == at else "█" if node in held else "□" if node in disk else "·"
            for held, disk, at in found
        )
        if node or "◆" in row:
            lines.append(f"{node:>{len(str(p.n))}} {row}")
    return lines


@pytest.mark.parametrize("p", PLANS, ids=lambda p: f"{p.strategy}-{p.n}")
def test_a_picture_with_room_shows_every_step(p: Plan) -> None:
    drawn = p.picture(1000, 100).split("\n")
    expected = text_of(p)
    assert drawn[: len(expected)] == expected
    length = len(expected[0]) - len(str(p.n)) - 1
    assert drawn[len(expected)] == f"{length} steps, each a column"


@pytest.mark.parametrize("p", PLANS, ids=lambda p: f"{p.strategy}-{p.n}")
def test_an_svg_has_a_bar_for_each_stretch_of_time(p: Plan) -> None:
    root = ElementTree.fromstring(p.svg())
    shapes = [e.get("class") for e in root.iter()]
    found = list(columns(p))
    for kind, which in (("bar", 0), ("disk", 1)):
        sets = [set(), *(column[which] for column in found)]
        begun = sum(len(after - before) for before, after in pairwise(sets))
        assert shapes.count(kind) == begun
    assert shapes.count("adjoint") == (p.n if p.goal == "gradient" else 0)


def test_bars_tell_when_they_are_pointed_at() -> None:
    tips = [e.text for e in ElementTree.fromstring(plan(4, pebbles=3).svg()).iter(f"{SVG}title")]
    assert tips[1:] == [
        "1: steps 0 to 2 (2)",
        "2: steps 1 to 7 (6)",
        "3: steps 3 to 5 (2)",
        "4: steps 4 to 9 (5)",
        "1: steps 6 to 8 (2)",
    ]
    assert tips[0] == "persist of 4 steps by knill, 3 pebbles"


def test_names_are_escaped() -> None:
    dag = parse_bench("INPUT(a)\nOUTPUT(y)\nm<1> = NOT(a)\ny&b = NOT(m<1>)\ny = NOT(y&b)")
    root = ElementTree.fromstring(plan_dag(dag, pebbles=3).svg())
    words = [e.text for e in root.iter(f"{SVG}text")]
    assert "m<1>" in words and "y&b" in words


@given(
    st.sampled_from(PLANS),
    st.floats(1, 40, allow_nan=False),
    st.floats(1, 9, allow_nan=False),
)
@examples(60)
def test_cells_hold_what_bars_hold(p: Plan, ticks: float, nodes: float) -> None:
    film = p.film()
    raster = rastered(film, ticks, nodes)
    expected = np.zeros_like(raster.held)
    disk = np.zeros_like(raster.held)
    edges = np.minimum(np.arange(raster.held.shape[1] + 1) * ticks, film.length)
    for bar in bars(film)[0]:
        part = np.minimum(edges[1:], bar.stop) - np.maximum(edges[:-1], bar.start)
        into = disk if bar.disk else expected
        into[int((bar.node - film.first) / nodes)] += np.maximum(part, 0) / np.diff(edges)
    np.testing.assert_allclose(raster.held, expected, atol=1e-6)
    np.testing.assert_allclose(raster.disk, disk, atol=1e-6)
    assert raster.adjoints.sum() == (p.n if p.goal == "gradient" else 0)


def test_a_condensed_picture_says_what_its_cells_are() -> None:
    lines = plan(1000, pebbles=12, goal="gradient", price=8).picture(80, 20).split("\n")
    assert max(map(len, lines[:-2])) <= 80 and len(lines) == 22
    assert lines[-2] == "7,872 steps, 105 in a column; 1,001 nodes, 51 in a line"
    assert lines[-1].startswith("states there, on average: ░ to ¼")
    # The last adjoint is taken at the input, at the end.
    assert lines[-3].endswith("◆") and lines[-3].startswith("  0 ")


def test_cells_that_are_full_of_states_differ() -> None:
    found = plan_dag(parse_bench(adder(40)), max_moves=10**6, strategy="bennett")
    *rows, _, legend = found.picture(80, 20).split("\n")
    # All 200 gates are there in the middle, 10 in a line; in the end two outputs in each line.
    assert legend == "states there, on average: ░ to 2.5, ▒ to 5, ▓ below 10, █ more"
    assert all(row.endswith("░") and "█" in row for row in rows[1:15])


def image_of(text: str) -> np.ndarray:
    """The pixels of the image within an SVG, read as the PNG specification says."""
    found = re.search(r"base64,([^\"]+)", text)
    assert found
    data = b64decode(found[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, pixels = 8, b""
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + body
        )
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
            assert (depth, colours) == (8, 6)
        elif kind == b"IDAT":
            pixels += zlib.decompress(body)
        at += 12 + size
    rows = np.frombuffer(pixels, np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def test_long_schedules_are_small_files() -> None:
    text = plan(100_000, pebbles=24).svg()
    ElementTree.fromstring(text)
    assert len(text) < 200_000
    pixels = image_of(text)
    assert pixels.shape == (400, 900, 4)
    # The result is held from the middle on; the first nodes at the start.
    assert pixels[0, -1, 3] == 255 and pixels[-1, 0, 3] > 0 and pixels[0, 0, 3] == 0


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="too long to be drawn") as error:
        plan(10**9, pebbles=60).svg()
    assert error.value.code == "P030"


def test_pictures_of_graphs() -> None:
    dag = parse_bench(adder(3))
    found = plan_dag(dag, pebbles=9)
    lines = found.picture(200, 40).split("\n")
    held: set[int] = set()
    for k, (placed, node) in enumerate(found.moves()):
        held = held | {node} if placed else held - {node}
        for v in range(len(dag)):
            name, row = lines[len(dag) - 1 - v].split()
            assert name == dag.name(v) and (row[k] == "█") == (v in held)
    shapes = [e.get("class") for e in ElementTree.fromstring(found.svg()).iter()]
    assert shapes.count("bar") == sum(m >= 0 for m in found.schedule)
    assert len(bars(found.film())[0]) == shapes.count("bar")


# ---------------------------------------------------------------- curves


def test_a_plot_in_the_terminal() -> None:
    found = frontier(100, pebbles=[8, 10, 20, 100])
    assert found.plot(50, 14) == PLOT


PLOT = """\
moves
    │●●
    │ ●●●
 1k ┤   ●●●
    │○○   ●●●
    │ ○○○    ●●●
500 ┤   ○○○○○○○●●●●
    │         ○○○○●●●
    │               ○●●●●●●●●●●●
    │                          ●●●●●●●●●●●●
200 ┤                                     ●●●●●●●
    └────┬───────────┬──────────────┬───────────┬
        10          20             50          100
     ● bennett   ○ knill                pebbles →"""


@wide
def test_the_svg_of_curves_has_them_all() -> None:
    found = frontier(300, goal="gradient", price=8)
    names = ["bennett", "reversible", "hybrid", "revolve"]
    assert [name for name, _ in found.curves()] == names
    root = ElementTree.fromstring(found.svg())
    dots = [e.find(f"{SVG}title") for e in root.iter(f"{SVG}circle")]
    tips = {d.text for d in dots if d is not None}
    assert len(dots) == len(found.points)
    for p in found.points:
        assert f"{p.strategy}: {p.pebbles:,} pebbles, {p.total:,.0f} moves and prices" in tips
    words = [e.text for e in root.iter(f"{SVG}text")]
    assert set(names) <= set(words)


@pytest.mark.parametrize("n", [300, 10**6, 2])
def test_words_of_a_chart_do_not_overlap(n: int) -> None:
    boxes = []
    for e in ElementTree.fromstring(frontier(n).svg()).iter(f"{SVG}text"):
        if e.get("transform"):
            continue
        size, x, y = (float(e.get(k, "")) for k in ("font-size", "x", "y"))
        width = 0.5 * size * len(e.text or "")
        left = x - {"start": 0, "middle": width / 2, "end": width}[e.get("text-anchor", "start")]
        boxes.append((left, y - size, left + width, y))
    for k, (a, b, c, d) in enumerate(boxes):
        for e, f, g, h in boxes[:k]:
            assert c <= e or g <= a or d <= f or h <= b


@given(st.floats(1e-3, 1e9), st.floats(1.01, 1e9), st.integers(3, 12))
def test_round_numbers_on_axes(low: float, factor: float, most: int) -> None:
    high = low * factor
    powers = round_powers(low, high, most)
    assert len(powers) <= most
    assert all(low * 0.999 <= v <= high * 1.001 for v in powers)
    steps = list(round_steps(low, high, most))
    assert 0 < len(steps) <= most + 1
    assert all(low - (high - low) * 1e-6 <= v <= high * 1.000001 for v in steps)
