"""Schedules that trade memory for time: pebble games on chains of steps, and on graphs.

    plan = rvm.pebble.plan(1_000_000, pebbles=40)       # cost and proof, before anything runs
    print(plan.describe())
    for action in plan.actions(): ...                   # or plan.blocks(), as NumPy arrays

A schedule is data (`rvm.pebble.actions`), which anything can play.
"""

from rvm.pebble.actions import Action, Block, Kind, actions_of
from rvm.pebble.bridge.circuits import emit_circuit
from rvm.pebble.bridge.emission import emit
from rvm.pebble.bridge.functions import dag_of
from rvm.pebble.bridge.graphs import emit_dag
from rvm.pebble.bridge.runs import iterate
from rvm.pebble.chains.online import Online
from rvm.pebble.chains.reversible import GOALS
from rvm.pebble.game import Player, Rules, check
from rvm.pebble.grammar import Schedule
from rvm.pebble.graphs.bench import Circuit, load_bench, load_circuit, parse_bench, parse_circuit
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.game import check_dag
from rvm.pebble.graphs.plan import DagPlan, plan_dag
from rvm.pebble.graphs.trace import apply, trace
from rvm.pebble.planner import Frontier, Point, frontier, plan
from rvm.pebble.plans import Cost, Plan
from rvm.pebble.storage import load
from rvm.pebble.terms import STRATEGIES

__all__ = [
    "GOALS",
    "STRATEGIES",
    "Action",
    "Block",
    "Circuit",
    "Cost",
    "Dag",
    "DagPlan",
    "Frontier",
    "Kind",
    "Online",
    "Plan",
    "Player",
    "Point",
    "Rules",
    "Schedule",
    "actions_of",
    "apply",
    "check",
    "check_dag",
    "dag_of",
    "emit",
    "emit_circuit",
    "emit_dag",
    "frontier",
    "iterate",
    "load",
    "load_bench",
    "load_circuit",
    "parse_bench",
    "parse_circuit",
    "plan",
    "plan_dag",
    "trace",
]
