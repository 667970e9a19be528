"""Functions of tensors, against PyTorch's own gradients of the same formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interop.formulas import PARTS, example

import rvm
from rvm.interop.torch import function, register

torch = pytest.importorskip("torch")
check, check_twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck


def real(*shape: int, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.from_numpy(np.asarray(values)).requires_grad_()


def number(value: complex) -> Any:
    t = torch.complex128 if isinstance(value, complex) else torch.float64
    return torch.tensor(value, dtype=t, requires_grad=True)


FORMULAS = {
    "norm": (example("norm", "length"), "x", "r", torch.linalg.vector_norm, [real(4)]),
    "matmul": (
        example("matmul", "by_loops"),
        ["A", "B"],
        "C",
        torch.matmul,
        [real(2, 3), real(3, 2, seed=1)],
    ),
    "exp": (example("exp_taylor", "iexp"), "x", "y", torch.exp, [number(1.6)]),
    "log": (example("clog", "clog"), "x", "y", torch.log, [number(-1.3 + 0.4j)]),
}
each_formula = pytest.mark.parametrize("name", FORMULAS)


@each_formula
def test_values_and_gradients_are_torchs_own(name: str) -> None:
    f, inputs, outputs, formula, arguments = FORMULAS[name]
    mine, own = function(f, inputs, outputs)(*arguments), formula(*arguments)
    torch.testing.assert_close(mine, own, rtol=1e-13, atol=1e-14)
    seed = torch.randn(own.shape, dtype=own.dtype, generator=torch.Generator().manual_seed(5))
    for a, b in zip(
        torch.autograd.grad(mine, arguments, seed),
        torch.autograd.grad(own, arguments, seed),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


@each_formula
def test_first_derivatives_pass_gradcheck(name: str) -> None:
    f, inputs, outputs, _, arguments = FORMULAS[name]
    assert check(function(f, inputs, outputs), arguments, check_forward_ad=True)


@each_formula
def test_second_derivatives_pass_gradgradcheck(name: str) -> None:
    f, inputs, outputs, _, arguments = FORMULAS[name]
    assert check_twice(function(f, inputs, outputs), arguments, check_fwd_over_rev=True)


def test_a_modulus_squared_in_torchs_complex_convention() -> None:
    log = function(example("clog", "clog"), "x", "y")
    z, own = number(2 - 2.3j), number(2 - 2.3j)
    (log(z).abs() ** 2).backward()
    (torch.log(own).abs() ** 2).backward()
    torch.testing.assert_close(z.grad, own.grad, rtol=1e-13, atol=0.0)


def test_an_input_that_is_an_output_leaves_the_tensor_alone() -> None:
    turn = function(PARTS.turn, ["x", "t"], ["x"])
    x, t = real(2), number(0.3)
    before = x.detach().clone()
    out = turn(x, t)
    rotation = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    np.testing.assert_allclose(out.detach().numpy(), rotation @ before.numpy(), rtol=1e-15)
    assert torch.equal(x, before)
    assert check(turn, (x, t), check_forward_ad=True)
    back = function(~PARTS.turn, ["x", "t"], ["x"])
    torch.testing.assert_close(back(out, t), before, rtol=1e-15, atol=1e-15)
    assert check(back, (x, t)) and check_twice(back, (x, t))


def test_integers_records_and_several_outputs() -> None:
    pick = function(PARTS.pick, ["x", "k"], "y")
    x = real(3)
    (gradient,) = torch.autograd.grad(pick(x, torch.tensor(1)), x)
    expected = torch.zeros(3, dtype=torch.float64)
    expected[1] = 3 * x[1].detach() ** 2
    torch.testing.assert_close(gradient, expected)
    energy = function(PARTS.energy, ["sun.mass", "sun.at", "v"], "e")
    assert check(energy, (number(2.5), real(2), real(2, seed=1)))
    both = function(PARTS.both, ["x", "w"], ["p", "q"], p=1.0)
    w = torch.complex(real(2).detach(), real(2, seed=2).detach()).requires_grad_()
    p, q = both(x := real(2, seed=3), w)
    torch.testing.assert_close(p, 1 + x.sum() ** 2)
    torch.testing.assert_close(q, (w * w).sum() * x[0])
    assert check(both, (x, w)) and check_twice(both, (x, w))
    (only,) = torch.autograd.grad(q.real, w)
    torch.testing.assert_close(only, (2 * w * x[0]).conj().resolve_conj())


def test_an_integer_result_has_no_gradient() -> None:
    n, y = function(PARTS.count, "x", ["n", "y"], n=4)(number(1.5))
    assert n.item() == 5 and not n.requires_grad
    assert y.item() == 3.0 and y.requires_grad
    n, y = function(PARTS.count, ["n", "x"], ["n", "y"])(torch.tensor(7), number(1.5))
    assert n.item() == 8


def test_a_result_changed_in_place_is_refused_by_torch() -> None:
    x = real(3)
    r = function(example("norm", "length"), "x", "r")(x)
    kept = r.clone()
    r.data.zero_()
    r.add_(1.0)
    assert kept.item() != r.item()
    with pytest.raises(RuntimeError, match="inplace operation"):
        r.backward()


def test_a_graph_can_be_gone_through_twice() -> None:
    x = real(3)
    r = function(example("norm", "length"), "x", "r")(x)
    first = torch.autograd.grad(r, x, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(r, x)[0])


def test_functional_transformations() -> None:
    f, own = function(example("norm", "length"), "x", "r"), torch.linalg.vector_norm
    x, many = real(3).detach(), real(5, 3).detach()
    torch.testing.assert_close(torch.func.vmap(f)(many), many.norm(dim=1))
    torch.testing.assert_close(
        torch.func.vmap(torch.func.grad(f))(many), many / many.norm(dim=1, keepdim=True)
    )
    hessian = torch.func.hessian(own)(x)
    torch.testing.assert_close(torch.func.hessian(f)(x), hessian)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(f))(x), hessian)
    third = torch.func.jacfwd(torch.func.hessian(own))(x)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(torch.func.jacrev(f)))(x), third)
    value, along = torch.func.jvp(f, (x,), (torch.ones_like(x),))
    torch.testing.assert_close(along, x.sum() / value)


def test_tensors_are_read_where_they_are() -> None:
    values = np.arange(3.0)
    values.setflags(write=False)
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.from_numpy(values)
    f = function(example("norm", "norm"), "x", "y")
    assert f(x).item() == 5.0
    turned = torch.arange(6, dtype=torch.float64).reshape(2, 3).T
    product = function(example("matmul", "matmul"), ["A", "B"], "C")
    torch.testing.assert_close(product(turned, turned.T), turned @ turned.T)


def test_a_batch_of_none() -> None:
    f = function(example("norm", "length"), "x", "r")
    none = torch.zeros(0, 3, dtype=torch.float64)
    for change, shape in ((lambda g: g, ()), (torch.func.grad, (3,)), (torch.func.hessian, (3, 3))):
        each = torch.func.vmap(change(f))
        assert each(none).shape == (0, *shape)
        assert torch.func.vmap(each)(none.expand(2, 0, 3)).shape == (2, 0, *shape)
    assert torch.func.vmap(f, in_dims=1)(none.T).shape == (0,)


def test_an_operator_is_that_which_was_registered() -> None:
    texts = [f"func f(y: f64, x: f64)\n    add y, {k}.0 * x * x\n" for k in (2, 3)]
    double, triple = (rvm.assemble(t).f for t in texts)
    first = register("rvm_tests::scaled", double, "x", "y")
    for f, more in ((triple, {}), (double, {"order": 1}), (double, {"y": 1.0})):
        with pytest.raises(rvm.UsageError, match="there is an operator `rvm_tests::scaled`"):
            register("rvm_tests::scaled", f, "x", "y", **more)
    with pytest.raises(rvm.UsageError, match="there is an operator `rvm_tests::scaled_gradient`"):
        register("rvm_tests::scaled_gradient", triple, "x", "y")
    again = register("rvm_tests::scaled", rvm.assemble(texts[0]).f, "x", "y")
    for f in (first, again):
        y = f(x := number(3.0))
        assert (y.item(), *torch.autograd.grad(y, x)) == (18.0, 12.0)


@pytest.mark.parametrize("name", ["length", "a::b::c", "a::1", "::a", "a::", "a::b c", 3])
def test_names_that_no_operator_has(name: Any) -> None:
    with pytest.raises(rvm.UsageError, match="named by a namespace and a name"):
        register(name, example("norm", "length"), "x", "r")


@pytest.mark.parametrize("order", [-1, 1.5, True, None, "2"])
def test_orders_that_there_are_not(order: Any) -> None:
    with pytest.raises(rvm.UsageError, match="`order` is a whole number"):
        register("rvm_tests::ordered", example("norm", "length"), "x", "r", order=order)


def test_an_operator_stands_in_compiled_graphs() -> None:
    f = register("rvm_tests::length", example("norm", "length"), "x", "r")
    x = real(3)
    torch.library.opcheck(torch.ops.rvm_tests.length.default, (x,))
    assert check(f, (x,)) and check_twice(f, (x,))
    compiled = torch.compile(lambda v: f(v) ** 2, backend="aot_eager", fullgraph=True)
    (gradient,) = torch.autograd.grad(compiled(x), x)
    torch.testing.assert_close(gradient, 2 * x.detach())
    product = register("rvm_tests::product", example("matmul", "matmul"), ["A", "B"], "C")
    a, b = real(2, 3), real(3, 2)
    torch.testing.assert_close(product(a, b), a @ b)
    assert check_twice(product, (a, b))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: function(PARTS.pick, ["x", "z"], "y"), "has no parameter `z`"),
        (lambda: function(PARTS.pick, ["x", "k"], "y", k=1), "a fixed value as well"),
        (lambda: function(PARTS.pick, ["x", "x"], "y"), "each name once"),
        (lambda: function(PARTS.heap, "x", "x"), "is a stack"),
        (lambda: function(PARTS.logs, ["x"], "y"), "a kind of number"),
        (lambda: function(PARTS.energy, ["sun"], "e"), "no parameter `sun`"),
        (lambda: function(PARTS.hidden, "x", "y")(real(2)), "how long axis 0 of `y`"),
        (lambda: function(PARTS.pick, "x", "y")(real(2), real(2)), "takes 1 tensors"),
        (lambda: function(PARTS.pick, {"x", "k"}, "y"), "in a list, not by .* of type set"),
        (lambda: function(PARTS.pick, iter("xk"), "y"), "in a list, not by a str_"),
        (lambda: function(PARTS.pick, "x", None), "the outputs of `pick` .* not by None"),
        (lambda: function(PARTS, "x", "y"), "a function of a program, not a Library"),
        (lambda: function(len, "x", "y"), "not a builtin_function"),
    ],
)
def test_functions_that_cannot_be_ported(make: Any, said: str) -> None:
    with pytest.raises(rvm.UsageError, match=said):
        make()


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        (torch.ones(2), r"torch.float64, not of torch.float32"),
        (torch.ones(2, 2, dtype=torch.float64), "must have 1 dimension, not 2"),
        (np.ones(2), "takes a tensor, not ndarray"),
        (torch.ones(2, dtype=torch.float64).to_sparse(), "not one of the layout torch.sparse_coo"),
        (torch.ones(2, dtype=torch.float64, device="meta"), "on the CPU, not on meta"),
    ],
)
def test_tensors_that_do_not_fit(argument: Any, said: str) -> None:
    with pytest.raises(rvm.InputError, match=said):
        function(PARTS.hidden, "x", "y", y=np.zeros(1))(argument)


def test_a_fixed_tensor_is_refused_as_no_gradient_could_reach_it() -> None:
    with pytest.raises(
        rvm.InputError, match="a parameter that a gradient should reach must be an input"
    ):
        function(example("matmul", "matmul"), "A", "C", B=real(2, 2))


def test_a_fault_of_the_machine_comes_through_as_it_is() -> None:
    pick = function(PARTS.pick, ["x", "k"], "y")
    with pytest.raises(rvm.MachineError, match="the index 7 is outside"):
        pick(real(3), torch.tensor(7))
