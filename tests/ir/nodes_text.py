"""The intermediate representation as text, for people and for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rvm.image import Code
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.function import machine_function, plan_of
from rvm.ir.kind import Kind
from rvm.ir.node import NONE, Argument, Node, Var


def text_of(code: Code, checks: bool = True) -> str:
    """The blocks of a code that calls nobody, as it is entered at its beginning."""
    plan = plan_of(code, checks, strict=False)
    made = FunctionBuilder(code.name, code, Kind(0, frozenset(), checks), plan.flow)
    names: dict[Node, str] = {}
    lines: list[str] = []
    for block in machine_function(made, plan.loops).blocks:
        lines += [f"{block.label}:", *_shown(block.items, names, "  ")]
    return "\n".join(lines) + "\n"


def _shown(items: Sequence[Node], names: dict[Node, str], margin: str) -> Iterator[str]:
    """The lines of some operations, and of those within them; `names` are the values' so far."""
    for node in items:
        aux, more = node.aux, " " if node.aux is not None else ""
        text = f"{node.op}({', '.join(_operand(a, names) for a in node.args)})"
        if node.op in ("if", "loop"):
            yield margin + text
            for part in aux[:2]:
                if isinstance(part, list):
                    yield from _shown(part, names, margin + "  ")
        elif node.op not in ("begin", "perform", "done"):
            also = more + (aux.name if isinstance(aux, Var) else str(aux) if more else "")
            if node.kind != NONE:
                names[node] = f"%{len(names)}"
                text = f"{names[node]} = {text}: {node.kind}"
            yield margin + text + also


def _operand(node: Node, names: dict[Node, str]) -> str:
    aux = node.aux.name if isinstance(node.aux, (Argument, Var)) else repr(node.aux)
    return names.get(node) or (aux if node.op == "constant" else f"{node.op} {aux}")
