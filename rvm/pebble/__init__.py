"""Schedules that trade memory for time: pebble games on chains of steps.

    plan = rvm.pebble.plan(1_000_000, pebbles=40)       # cost and proof, before anything runs
    print(plan.describe())
    for action in plan.actions(): ...                   # or plan.blocks(), as NumPy arrays

What a schedule does is data (`rvm.pebble.actions`); who plays it is none of its business.
"""

from rvm.pebble.actions import Action, Block, Kind, actions_of
from rvm.pebble.choosing import GOALS, STRATEGIES
from rvm.pebble.game import Player, Rules, check
from rvm.pebble.grammar import Schedule
from rvm.pebble.online import Online
from rvm.pebble.planning import Frontier, Point, frontier, plan
from rvm.pebble.plans import Cost, Plan
from rvm.pebble.storing import load

__all__ = [
    "GOALS",
    "STRATEGIES",
    "Action",
    "Block",
    "Cost",
    "Frontier",
    "Kind",
    "Online",
    "Plan",
    "Player",
    "Point",
    "Rules",
    "Schedule",
    "actions_of",
    "check",
    "frontier",
    "load",
    "plan",
]
