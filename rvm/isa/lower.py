"""Lowering instructions to statements, and inverting instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NoReturn, cast

from rvm.codes.words import count, with_article
from rvm.expr import Apply, Const, Expr, Formal, Place, is_count, rebuild, substitute, walk
from rvm.isa.machine_ops import ENDS, MAKES, SHOWS, VARIADIC
from rvm.isa.rows import OPCODES, OpRow, angle_type
from rvm.isa.rules import CLASSES, COMPARE, TypeFault
from rvm.isa.typing import as_real, typed
from rvm.numbers import system
from rvm.program import Instr, Register
from rvm.stmt import Exchange, Map, Stmt, Update, When
from rvm.types import BOOL, I64, Array, Scalar, Stack, elem_of, rank_of


def lower(instr: Instr) -> tuple[Stmt, ...]:
    """The typed statements of an instruction whose operands are typed."""
    row = OPCODES[instr.op]
    if row.build is not None:
        return (row.build(instr),)
    types = _apart(row)
    apart = bool(types) and CLASSES[types](_operand_type(row, instr.args))
    return tuple([_instantiate(s, instr.args) for s in linked_body(row.name, apart)])


def _apart(row: OpRow) -> str:
    """The class of types on which an opcode or its inverse has a different meaning, if any."""
    both = (row, OPCODES[row.inverse])
    return next((r.exact_types for r in both if r.exact), "")


def _operand_type(row: OpRow, args: Sequence[Expr]) -> Scalar:
    """The type of the operand that an instruction changes."""
    first = next(a for a, o in zip(args, row.operands, strict=True) if o.mode == "mut")
    assert first.type is not None
    return elem_of(first.type)


def plain(instr: Instr) -> Instr:
    """An instruction whose operands have `plain_powers`."""
    args = tuple(map(plain_powers, instr.args))
    return instr if args == instr.args else replace(instr, args=args)


def plain_powers(node: Expr) -> Expr:
    """A typed expression with powers replaced by arithmetic where that is correctly rounded.

    By definition `x ** 2` of reals and integers is `x * x`, and `x ** -1` of reals is `1 / x`.  A
    power whose exponent only happens to have the value 2 or -1 remains a power.
    """
    if any(map(is_plain, walk(node))):
        return _plain(node)
    return node


def is_plain(node: Expr) -> bool:
    """Whether an expression is a power that is a product or a quotient by definition."""
    match node:
        case Apply("**", (Expr(type=t), Const(k))) if t is not None:
            # Exponents of these are of the same type, or i64: their raw values are the numbers.
            return k in (2, -1) and (elem_of(t).is_float or (elem_of(t).is_integer and k == 2))
    return False


def _plain(node: Expr) -> Expr:
    done = rebuild(node, _plain)
    if not is_plain(done):
        return done
    x, k = cast(Apply, done).args
    if cast(Const, k).value == 2:
        return Apply("square", (x,), done.type)
    return Apply("/", (Const(1.0, elem_of(cast("Scalar | Array", x.type))), x), done.type)


def invert_instr(instr: Instr) -> Instr:
    """The instruction that undoes `instr`; a jump's `aux` is left for the caller to remap."""
    row = OPCODES[instr.op]
    aux = instr.aux
    if row.name in ("print", "assert", "callback"):
        aux = (aux >> 1) | ((aux & 1) << 1)
    inverse = row.inverse_on(_operand_type(row, instr.args)) if row.exact_inverse else row.inverse
    return Instr(inverse, instr.args, aux, instr.symbol)


@cache
def linked_body(name: str, exact: bool = False) -> tuple[Stmt, ...]:
    """An opcode's statement templates, each Map with the values that undo it.

    `exact`: those for the class of types with a different meaning.
    """
    row = OPCODES[name]
    partner = OPCODES[row.exact_inverse if exact and row.exact_inverse else row.inverse]
    bodies = [(r.exact or r.body) if exact else r.body for r in (row, partner)]
    return tuple(_link(s, t) for s, t in zip(bodies[0], reversed(bodies[1]), strict=True))


def _link(stmt: Stmt, undo: Stmt) -> Stmt:
    match stmt, undo:
        case Map(dsts, values, _), Map(_, inverse, _):
            return Map(dsts, values, inverse)
        case When(cond, body), When(_, back):
            return When(cond, tuple(_link(s, t) for s, t in zip(body, reversed(back), strict=True)))
        case _:
            return stmt


def _instantiate(stmt: Stmt, args: tuple[Expr, ...]) -> Stmt:
    def value(template: Expr, dst: Place) -> Expr:
        if isinstance(template, Formal):
            return args[template.index]
        return typed(substitute(template, args), elem_of(cast("Scalar | Array", dst.type)))

    def place(template: Expr) -> Place:
        return cast(Place, args[cast(Formal, template).index])

    match stmt:
        case Update(dst, op, v):
            d = place(dst)
            return Update(d, op, value(v, d))
        case Exchange(a, b):
            return Exchange(place(a), place(b))
        case Map(dsts, values, inverse):
            ds = tuple(map(place, dsts))
            return Map(
                ds,
                tuple(value(v, d) for v, d in zip(values, ds, strict=True)),
                tuple(value(v, d) for v, d in zip(inverse, ds, strict=True)),
            )
        case When(cond, body):
            return When(
                typed(substitute(cond, args), BOOL), tuple(_instantiate(s, args) for s in body)
            )
        case _:
            raise TypeError(f"no data statement: {stmt!r}")


def check_operands(
    op: str, args: Sequence[Expr], registers: Sequence[Register]
) -> tuple[Expr, ...]:
    """The operands of an instruction, typed; TypeFault names the wrong operand and the reason."""
    row = OPCODES.get(op)
    if row is None:
        raise TypeFault(f"there is no opcode `{op}`", code="A003")
    if row.inverse not in OPCODES:
        raise TypeFault(f"there is no opcode `{row.inverse}`, which undoes `{op}`", code="A003")
    if op in VARIADIC:
        wants = [BOOL if op == "assert" and not k else None for k in range(len(args))]
        shows = op in SHOWS
        done = tuple(
            a if shows and _is_stack(a, registers) else typed(a, want)
            for a, want in zip(args, wants, strict=True)
        )
        if op == "assert" and (not done or done[0].type != BOOL):
            _refuse("assert takes a condition", 0, args)
        return done
    if len(args) != len(row.operands) and not (op in ("alloc", "free") and len(args) == 1):
        raise TypeFault(
            f"`{op}` takes {len(row.operands)} operand{'s' * (len(row.operands) != 1)}, "
            f"not {len(args)}",
            code="A044",
            hint=f"it is written `{op} {', '.join(o.name for o in row.operands)}`".rstrip(),
        )
    return _data(row, args) if row.is_data else _machine(row, args, registers)


def _is_stack(node: Expr, registers: Sequence[Register]) -> bool:
    return isinstance(node, Place) and not node.path and isinstance(registers[node.reg].type, Stack)


def _refuse(
    message: str, k: int, args: Sequence[Expr], code: str = "A040", hint: str = ""
) -> NoReturn:
    node = args[k] if k < len(args) else None
    raise TypeFault(message, node, code=code, operand=k, hint=hint)


def _data(row: OpRow, args: Sequence[Expr]) -> tuple[Expr, ...]:
    first = next(k for k, o in enumerate(row.operands) if o.mode == "mut")
    main = args[first]
    for k, o in enumerate(row.operands):
        if o.mode == "mut":
            if not isinstance(args[k], Place):
                _refuse(
                    f"`{row.name}` changes its operand {k + 1}, "
                    "which must be a place or a bijection of one",
                    k,
                    args,
                    hint="put the value into an ancilla first",
                )
            if is_count(args[k]):
                _refuse(
                    "only `push` and `pop` change the number of values on a stack", k, args, "A034"
                )
    assert main.type is not None
    t = elem_of(main.type)
    if not CLASSES[row.types](t):
        _refuse(
            f"`{row.name}` does not take a value of type {t}",
            first,
            args,
            "A043",
            _instead(row.name, t),
        )
    rank, deciding = rank_of(main.type), _deciding(row.body_on(t))
    done = []
    for k, (arg, o) in enumerate(zip(args, row.operands, strict=True)):
        want = {"T": t, "angle": angle_type(t), "bool": BOOL, "i64": I64}.get(o.kind)
        try:
            node = as_real(arg, typed(arg, want), want if o.mode == "use" else None)
        except TypeFault as fault:
            fault.operand = k
            fault.node = arg if fault.node is None else fault.node
            raise
        assert node.type is not None
        elem = elem_of(node.type)
        if want is not None and elem != want:
            _refuse(
                f"operand `{o.name}` of `{row.name}` has the type {elem}, not {want}",
                k,
                args,
                hint=_convert(elem, want) if o.mode == "use" else "",
            )
        if o.mode == "mut":
            if rank_of(node.type) != rank:
                _refuse(
                    f"the places have {rank} and {rank_of(node.type)} dimensions", k, args, "A042"
                )
        else:
            if rank_of(node.type) > rank:
                _refuse(
                    f"a value of {count(rank_of(node.type), 'dimension')} does not go into a "
                    f"place of {rank}",
                    k,
                    args,
                    "A042",
                    "reduce it first, for example with `sum(…)`",
                )
            if not (o.kind in ("T", "angle") or not rank_of(node.type)):
                _refuse(f"operand `{o.name}` of `{row.name}` must be a scalar", k, args, "A042")
        if rank_of(node.type) and k in deciding:
            _refuse(
                f"operand `{o.name}` of `{row.name}` decides whether something is done, "
                "and so must be a scalar",
                k,
                args,
                "A042",
                "apply it to the elements, in a loop",
            )
        done.append(node)
    return tuple(done)


@cache
def _deciding(body: Sequence[Stmt]) -> frozenset[int]:
    """The operands that conditions in a body read."""
    whens = [stmt for stmt in body if isinstance(stmt, When)]
    here = {n.index for stmt in whens for n in walk(stmt.cond) if isinstance(n, Formal)}
    return frozenset(here).union(*(_deciding(stmt.body) for stmt in whens))


def _convert(have: Scalar, want: Scalar) -> str:
    if have.is_complex and not want.is_complex:
        return "take its `.re` or `.im`, or `abs(…)`"
    return f"convert it: `{want}(…)`"


def _instead(op: str, t: Scalar) -> str:
    can = system(t).updates
    if op in ("add", "sub") and can:
        return f"a {t} accumulates by {'`mul` and `div`' if 'mul' in can else '`xor`'}"
    if op == "div" and CLASSES["int"](t):
        return "`mul` by an odd number is undone by `unmul`; `x // y` rounds down"
    if op in ("mul", "div") and "add" in can:
        return f"{t} does not divide exactly; accumulate a product: `add t, x * y`"
    return ""


def _machine(row: OpRow, args: Sequence[Expr], registers: Sequence[Register]) -> tuple[Expr, ...]:
    if row.name in ("br", "cf"):
        cond = typed(args[0], BOOL)
        if cond.type != BOOL:
            _refuse(
                f"the condition has the type {cond.type}, not bool",
                0,
                args,
                hint="compare elements, as `x[i] == y[i]`"
                if isinstance(cond.type, Array)
                else COMPARE,
            )
        return (cond,)
    target = args[0]
    if not isinstance(target, Place):
        _refuse(
            f"`{row.name}` takes a place first",
            0,
            args,
            hint="put the value into an ancilla, which is 0 afterwards: `alloc t: f64 = …`"
            if row.name == "push"
            else "",
        )
    assert isinstance(target, Place)
    if is_count(target):
        _refuse(f"`{row.name}` changes the place", 0, args, "A034")
    if row.name in (*MAKES, *ENDS):
        if target.path:
            _refuse(f"`{row.name}` takes a whole register", 0, args)
        t = registers[target.reg].type
        if row.name in ("fresh", "drop"):
            return (target,)
        if isinstance(t, Stack):
            if len(args) != 1:
                _refuse("a stack begins and ends empty", 1, args)
            return (target,)
        written = args[1] if len(args) > 1 else Const(zero_literal(elem_of(t)))
        value = as_real(written, typed(written, elem_of(t)), elem_of(t))
        assert value.type is not None
        if elem_of(value.type) != elem_of(t):
            _refuse(f"the value has the type {value.type}, not {elem_of(t)}", 1, args)
        if rank_of(value.type) > rank_of(t):
            _refuse(
                f"a value of {count(rank_of(value.type), 'dimension')} does not fit "
                f"{with_article(t)}",
                1,
                args,
                "A042",
            )
        return (target, value)
    stack = args[1]
    ok = isinstance(stack, Place) and isinstance(registers[stack.reg].type, Stack)
    if not ok:
        _refuse(f"`{row.name}` takes a stack second", 1, args)
    assert isinstance(stack, Place)
    if stack.path:
        _refuse("a stack has no parts", 1, args)
    elem = elem_of(registers[stack.reg].type)
    if target.type != elem:
        _refuse(f"a value of type {target.type} does not go on a {elem} stack", 0, args)
    return (target, stack)


def zero_literal(t: Scalar) -> object:
    """The initial value of an ancilla of type `t` without an initialiser: 0 (log64: 1)."""
    return system(t).start
