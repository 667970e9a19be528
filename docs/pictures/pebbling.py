"""Draws the pictures of `docs/pebbling.md`: schedules by time, and memory against time.

python docs/pictures/pebbling.py
"""

from __future__ import annotations

from pathlib import Path

from rvm.pebble import frontier, load_bench, plan, plan_dag

HERE = Path(__file__).parent
ADDER = HERE.parents[1] / "examples" / "data" / "adder8.bench"


def pictures() -> dict[str, str]:
    """The pictures as SVG text, by the names of their files."""
    budgets = sorted({round(21 * 1.2**k) for k in range(59)} | {10**6})
    adjoints = sorted({round(5 * 1.15**k) for k in range(38)} | {1000})
    return {
        "pebble_persist": plan(40, pebbles=8).svg(),
        "pebble_hybrid": plan(1000, pebbles=12, goal="gradient", price=8).svg(),
        "pebble_disk": plan(20, pebbles=2, goal="gradient", disk=4).svg(),
        "pebble_adder": plan_dag(load_bench(ADDER), pebbles=14).svg(),
        "pebble_budgets": frontier(10**6, pebbles=[b for b in budgets if b <= 10**6]).svg(),
        "pebble_prices": frontier(
            1000, goal="gradient", price=8, pebbles=[b for b in adjoints if b <= 1000]
        ).svg(),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (HERE / f"{name}.svg").write_text(text, encoding="utf-8")
