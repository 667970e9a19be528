"""The rows of the function table, by family; importing this package fills `FUNCTIONS`."""

from rvm.isa.functions import (
    arithmetic,
    arrays,
    bits,
    comparisons,
    complexes,
    conversions,
    indexing,
    lifting,
    machine,
    transcendental,
)
from rvm.isa.functions.logs import LOG_PARTIALS

__all__ = [
    "LOG_PARTIALS",
    "arithmetic",
    "arrays",
    "bits",
    "comparisons",
    "complexes",
    "conversions",
    "indexing",
    "lifting",
    "machine",
    "transcendental",
]
