"""The pass that converts a function to several lanes: it finds what differs between lanes.

A node that varies has a value for each lane, the others have one value.  A variable varies if it is
ever assigned a value that varies, or assigned where only some lanes are active.
"""

from __future__ import annotations

from rvm.ir.blocks import FunctionBuilder
from rvm.ir.builder import rewrite
from rvm.ir.node import Block, Node, Var, walk
from rvm.ir.typed import Unprintable


def inline(b: FunctionBuilder, blocks: list[Block]) -> None:
    """Put functions over leaf operations in the place of calls, but for their cold texts.

    Calls whose arguments do not differ by lane are left.
    """
    wide, _ = differing(b, blocks)
    nested = False

    def written(node: Node) -> None:
        nonlocal nested
        if node not in wide:
            b.items.append(node)
            return
        *guard, found = b.graft(node.aux, node.args)
        nested = nested or any(n.op == "call" for n in node.aux.ordered.nodes)
        if guard:
            found = b.op("cold", *guard, found, *node.args, kind=node.kind, aux=node.aux.cold)
        # Others know the value by the node itself.
        node.op, node.args = "same", (found,)
        b.items.append(node)

    rewrite(b, blocks, {"written": written})
    if nested:
        inline(b, blocks)


def differing(b: FunctionBuilder, blocks: list[Block]) -> tuple[frozenset[Node], frozenset[Var]]:
    """The nodes and the variables that differ by lane; Unprintable where they can't be kept."""
    assert b.varying is not None
    fixed = {v for reg, parts in b.scalars.items() if reg not in b.varying for v in parts}
    fixed |= {b.ticks, b.position, b.how}
    fixed |= {v for a in b.arrays.values() for v in (a.pointer, *a.dims, *a.strides)}
    fixed |= {a.owner for a in b.arrays.values() if a.owner is not None}
    own = {b.erased, b.drift}
    variables = {v for reg in b.varying for v in b.scalars.get(reg, ())} | own
    every = [node for block in blocks for node in walk(block.items)]
    for node in every:
        if node.op == "call":
            for k, a in enumerate(node.args):
                if a.op == "variable":
                    (variables if k in node.aux[1] else fixed).add(a.aux)
    nodes: set[Node] = set()
    before = -1
    while before != len(nodes) + len(variables):
        before = len(nodes) + len(variables)
        for node in every:
            wide = any(a in nodes for a in node.args)
            if node.op == "set":
                if wide:
                    variables.add(node.aux)
            elif node.op == "if":
                if wide:
                    parts = [*walk(node.aux[0]), *walk(node.aux[1])]
                    own = {n.aux[0] for n in parts if n.op == "loop"}
                    variables |= {n.aux for n in parts if n.op == "set"} - own
            elif node.op != "call" and (wide or _begins(b, node, variables)):
                nodes.add(node)
    if variables & fixed:
        raise Unprintable
    return frozenset(nodes), frozenset(variables)


def _begins(b: FunctionBuilder, node: Node, variables: set[Var]) -> bool:
    """Whether a node differs by lane though no argument of it does."""
    assert b.varying is not None
    match node.op:
        case "get":
            return node.aux in variables
        case "load":
            return node.aux[0] in b.varying
        case "fetch":
            return node.aux[1] in b.varying
        case "peek":
            return _is_wide_room(b, node.args[0])
    return False


def _is_wide_room(b: FunctionBuilder, pointer: Node) -> bool:
    if pointer.op == "argument":
        return pointer.aux.reg in (b.varying or ())
    return pointer.op == "total"
