"""Derivatives by the complex step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def by_steps(f: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The derivatives of a number by all that is real or an array of these."""
    out = {}
    for name, v in values.items():
        if isinstance(v, int):
            continue
        flat = np.ravel(v)
        steps = (np.eye(flat.size)[k].reshape(np.shape(v)) * 1e-30j for k in range(flat.size))
        slopes = [np.imag(f(**{**values, name: v + h})) / 1e-30 for h in steps]
        out[name] = np.reshape(slopes, np.shape(v))
    return out
