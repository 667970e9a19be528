"""Probes: positions of code where a run stops or is reported, at no cost where there are none.

A run is watched by *arming* its frames: their code is replaced by a variant with traps
(`rvm.probes.armed`), which engines compile like any code, including the guards. Unarmed code is the
ordinary code.
"""

from rvm.image.traps import Changed, Guard, Trap
from rvm.probes.accesses import changed_places, read_places
from rvm.probes.armed import Armory, Binding, arm, disarm

__all__ = [
    "Armory",
    "Binding",
    "Changed",
    "Guard",
    "Trap",
    "arm",
    "changed_places",
    "disarm",
    "read_places",
]
