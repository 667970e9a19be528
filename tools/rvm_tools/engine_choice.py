"""The output of `--explain-engine`: the engine for a function, and the reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator

import rich_click as click

from rvm.engines.auto import choose, native_is_there
from rvm.image import Code, Image, image_of
from rvm.run.bits import with_bits
from rvm.state import Options, where
from rvm_tools.programs import load_program, pick_function


def explain_engine(
    file: str, function: str | None, engine: str, strict: bool, bits: str, as_json: bool
) -> None:
    """Print the engine of a function, the reasons, and what it leaves to the reference engine."""
    program = load_program(file)
    program, picked = pick_function(program, function)
    name = picked.name
    options = Options(engine=engine, strict=strict, bits=bits)
    image = image_of(with_bits(program, options))
    if engine == "auto":
        choice = choose(image, name, options)
        first, then, reasons = choice.first, choice.then, choice.reasons
    else:
        first, then, reasons = engine, engine, ("it was asked for",)
    left = list(_left_out(image, name, options)) if "native" in (first, then) else []
    if as_json:
        found = {"function": name, "first": first, "then": then, "reasons": list(reasons)}
        places = [{"function": f, "line": line, "text": text} for f, line, text in left]
        click.echo(json.dumps({**found, "not compiled": places}))
        return
    click.echo(f"{name}: {first if first == then else f'{first}, then {then}'}")
    for reason in reasons:
        click.echo(f"  because {reason}")
    for f, line, text in left:
        click.echo(f"  not compiled, in {f}: {line:>4} | {text}")


def _left_out(image: Image, name: str, options: Options) -> Iterator[tuple[str, int, str]]:
    """The instructions that machine code leaves to the reference engine: function, line, text."""
    if not native_is_there():
        return
    from rvm.ir.function import plan_of

    for f in image.reachable(name):
        code: Code = image.code(f, False)
        for pc in sorted(plan_of(code, options.checks, options.strict).flow.apart):
            place = where(code, pc)
            yield (f, place.line, (place.text or code.instrs[pc].op).split(";")[0].strip())
