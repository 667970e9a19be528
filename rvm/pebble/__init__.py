"""Schedules that trade memory for time: pebble games on chains of steps, and on graphs.

    plan = rvm.pebble.plan(1_000_000, pebbles=40)       # cost and proof, before anything runs
    print(plan.describe())
    for action in plan.actions(): ...                   # or plan.blocks(), as NumPy arrays

What a schedule does is data (`rvm.pebble.actions`); who plays it is none of its business.
"""

from rvm.pebble.actions import Action, Block, Kind, actions_of
from rvm.pebble.choosing import GOALS, STRATEGIES
from rvm.pebble.dag import Dag
from rvm.pebble.dag_bench import Circuit, load_bench, load_circuit, parse_bench, parse_circuit
from rvm.pebble.dag_circuit import emit_circuit
from rvm.pebble.dag_emission import emit_dag
from rvm.pebble.dag_game import check_dag
from rvm.pebble.dag_plan import DagPlan, plan_dag
from rvm.pebble.dag_rasm import dag_of
from rvm.pebble.dag_trace import apply, trace
from rvm.pebble.emission import emit
from rvm.pebble.game import Player, Rules, check
from rvm.pebble.grammar import Schedule
from rvm.pebble.iterating import iterate
from rvm.pebble.online import Online
from rvm.pebble.planning import Frontier, Point, frontier, plan
from rvm.pebble.plans import Cost, Plan
from rvm.pebble.storing import load

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
