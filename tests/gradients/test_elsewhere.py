"""Random programs against the gradients that JAX and PyTorch have of the same bytecode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from attack.programs import smooth
from gradients import properties
from gradients.elsewhere import Reader, Table
from sizes import some, thin

import rvm
from rvm.derive.named import named_duals
from rvm.library.handle import FunctionHandle
from rvm.types import Stack, elem_of

NEAR = 1e-10


def jax_gradient() -> tuple[Table, Callable[..., list[Any]]]:
    jax = pytest.importorskip("jax")
    np_ = jax.numpy
    jax.config.update("jax_enable_x64", True)

    def put(array: Any, at: Any, new: Any) -> Any:
        return array.at[at].set(new)

    def scatter(values: Any, at: Any, n: int) -> Any:
        return np_.zeros(n, values.dtype).at[np_.asarray(at)].add(values)

    same = ("sin", "cos", "tanh", "exp", "log", "sqrt", "abs", "conj", "real", "imag", "sum")
    table = {n: getattr(np_, n) for n in (*same, "outer", "hypot", "logaddexp")} | {
        "atan": np_.arctan,
        "atan2": np_.arctan2,
        "complex": jax.lax.complex,
        "scan_left": np_.cumsum,
        "gather": lambda x, at: x[np_.asarray(at)],
        "scatter": scatter,
        "full": lambda shape, x: np_.broadcast_to(x, shape),
        "f64": lambda x: x,
        "const": np_.asarray,
        "put": put,
    }

    def gradient(loss: Callable[[list[Any]], Any], leaves: list[Any]) -> list[Any]:
        return list(jax.grad(loss)([np_.asarray(x) for x in leaves]))

    return table, gradient


def torch_gradient() -> tuple[Table, Callable[..., list[Any]]]:
    torch = pytest.importorskip("torch")

    def tensor(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x
        return torch.tensor(x, dtype=torch.complex128 if isinstance(x, complex) else torch.float64)

    def lifted(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: f(*map(tensor, args))

    def put(array: Any, at: Any, new: Any) -> Any:
        out = array.clone()
        out[at] = new
        return out

    def scatter(values: Any, at: Any, n: int) -> Any:
        return torch.zeros(n, dtype=values.dtype).index_add(0, torch.as_tensor(at), values)

    same = ("sin", "cos", "tanh", "exp", "log", "sqrt", "abs", "conj", "real", "imag", "sum")
    table = {n: lifted(getattr(torch, n)) for n in (*same, "outer", "hypot", "logaddexp")} | {
        "atan": lifted(torch.atan),
        "atan2": lifted(torch.atan2),
        "complex": lifted(torch.complex),
        "scan_left": lambda x: torch.cumsum(x, 0),
        "gather": lambda x, at: x[torch.as_tensor(at)],
        "scatter": scatter,
        "full": lambda shape, x: tensor(x).expand(shape),
        "f64": lambda x: x,
        "const": torch.as_tensor,
        "put": put,
    }

    def gradient(loss: Callable[[list[Any]], Any], leaves: list[Any]) -> list[Any]:
        given = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in leaves]
        found = torch.autograd.grad(loss(given), given, allow_unused=True, materialize_grads=True)
        return [g.resolve_neg().numpy() for g in found]

    return table, gradient


FRAMEWORKS = {"jax": jax_gradient, "torch": torch_gradient}


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield FRAMEWORKS[request.param]()
    if request.param == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", False)


# ---------------------------------------------------------------- between the two


def parts(raw: Any, t: Any) -> list[Any]:
    """The real numbers that a register's raw value is made of."""
    if isinstance(t, Stack):
        return [np.float64(x) for x in raw]
    x = np.asarray(raw)
    if elem_of(t).is_fixed:
        x = x / 2.0 ** elem_of(t).frac
    return [x.real, x.imag] if np.iscomplexobj(x) else [x]


def whole(leaves: Iterator[Any], raw: Any, t: Any, table: Table) -> Any:
    """A framework's value of a register, with numbers from `leaves`."""
    if isinstance(t, Stack):
        return [next(leaves) for _ in raw]
    if elem_of(t).is_complex:
        return table["complex"](next(leaves), next(leaves))
    return next(leaves)


def inner(bar: Any, held: Any, table: Table) -> Any:
    """The inner product of an adjoint and a result: Re(conj(bar) result), summed."""
    if isinstance(bar, list):
        return sum(b * x for b, x in zip(bar, held, strict=True))
    re, im = np.real(bar), np.imag(bar)
    if not np.iscomplexobj(bar):
        return table["sum"](held * (re if np.ndim(re) == 0 else table["const"](re)))
    return table["sum"](table["real"](held) * float(re) + table["imag"](held) * float(im))


def theirs(
    f: FunctionHandle, inputs: Any, seeds: Any, framework: tuple[Table, Callable[..., list[Any]]]
) -> tuple[dict[int, Any], Any]:
    """The gradient of the seeded results by parameter register, and that of rvm, as raw numbers."""
    table, gradient = framework
    pull = f.pullback(**inputs)
    types = [f.function.registers[k].type for k in range(f.function.n_args)]
    pull.seed_all(seeds)
    bars = dict(pull.bars)
    leaves = [x for k in bars for x in parts(pull.start[k], types[k])]

    def loss(given: list[Any]) -> Any:
        numbers = iter(given)
        regs = [
            whole(numbers, pull.start[k], t, table) if k in bars else pull.start[k]
            for k, t in enumerate(types)
        ]
        out = Reader(f.program, table).run(f.name, regs)
        return functools.reduce(lambda a, b: a + b, (inner(bars[k], out[k], table) for k in bars))

    found = iter(gradient(loss, leaves))
    theirs: dict[int, Any] = {}
    for k in bars:
        t = types[k]
        some = [np.asarray(next(found)) for _ in parts(pull.start[k], t)]
        if isinstance(t, Stack):
            theirs[k] = [float(x) for x in some]
        else:
            theirs[k] = some[0] + 1j * some[1] if elem_of(t).is_complex else some[0]
    return theirs, pull


def agree(seed: int, framework: Any) -> None:
    f = rvm.assemble(smooth.program(seed), f"random{seed}").main
    inputs, rng = smooth.inputs(seed), np.random.default_rng(seed)
    found, pull = theirs(f, inputs, properties.seeds(f, inputs, rng), framework)
    ours = f.vjp(named_duals(pull.function, pull.bars, pull.result.info), **inputs)
    assert properties.distance(ours, named_duals(pull.function, found, pull.result.info)) <= NEAR


@some
@thin
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, framework: Any) -> None:
    agree(seed, framework)


@pytest.mark.soak
def test_many_random_programs(framework: Any) -> None:
    for seed in range(20, 320):
        agree(seed, framework)
