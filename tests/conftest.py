"""Options of the whole test suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts jobs in the background with Ctrl-C ignored, and all their children inherit
    # that; the tests that interrupt a run would wait for its end, which is hours away.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="run the exhaustive tests too")
    parser.addoption("--soak", action="store_true", help="run the long tests too")
    parser.addoption("--npm", action="store_true", help="run tests with packages from npm too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = {
        "deep": "exhaustive: --deep",
        "soak": "a long run: --soak",
        "npm": "needs packages from npm: --npm",
    }
    for name, reason in reasons.items():
        if not config.getoption(f"--{name}"):
            for item in items:
                if name in item.keywords:
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def short_loops() -> None:
    """The vector engine takes loops of two iterations, so that small programs use it."""
    from rvm.engines.vector import plan

    plan.LEAST, plan.PAYS = 2, 0


@pytest.fixture
def clean_tables() -> Iterator[None]:
    """What a test defines is gone after it."""
    from rvm.isa import FUNCTIONS, OPCODES
    from rvm.isa.lower import linked_body
    from rvm.transform.maps import adjoint_map, tangent_map

    opcodes, functions = dict(OPCODES), dict(FUNCTIONS)
    yield
    for table, before in ((OPCODES, opcodes), (FUNCTIONS, functions)):
        for name in set(table) - set(before):
            del table[name]  # type: ignore[attr-defined]
    for cached in (linked_body, adjoint_map, tangent_map):
        cached.cache_clear()
