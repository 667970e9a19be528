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

__all__ = [
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
