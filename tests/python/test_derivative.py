"""Derivatives from C functions linked by name, under every transformation.

Each kernel of derivatives.c is compared with the same in jax.numpy; the references are
compared with finite differences by JAX's own test of gradients.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.test_util import check_grads

import jaxc

SOURCE = Path(__file__).parent / "derivatives.c"

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture(scope="module")
def lib() -> jaxc.Library:
    return jaxc.load(SOURCE)


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 2, shape)


def rms(x: Any, eps: Any) -> Any:
    eps = jnp.asarray(eps)[..., None]
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)


def fir(w: Any, x: Any) -> Any:
    return jnp.vectorize(
        lambda w, x: jnp.convolve(x, w[::-1], "valid"), signature="(k),(n)->(m)"
    )(w, x)


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel, its reference, arguments, and which of them have derivatives."""

    name: str
    reference: Callable[..., Any]
    args: tuple[Any, ...]
    wrt: tuple[int, ...]
    hessian: bool = False
    holomorphic: bool = False

    def options(self) -> dict[str, Any]:
        return {"holomorphic": True} if self.holomorphic else {}


CASES = [
    Case("rms", rms, (array(5), 0.1), (0, 1), hessian=True),
    Case("matvec", lambda a, x: jnp.einsum("...ij,...j->...i", a, x),
         (array(3, 4), array(4, seed=1)), (0, 1), hessian=True),
    Case("power", lambda x, k: x**k, (1.7, np.int32(3)), (0,), hessian=True),
    Case("product", lambda x, y: x * y, (1.5 + 2j, -0.5 + 1j), (0, 1), holomorphic=True),
    Case("fir", fir, (array(2), array(6, seed=1)), (1,), hessian=False),
]  # fmt: skip
cases = pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])


@pytest.fixture
def f(lib: jaxc.Library, case: Case) -> Any:
    return lib[case.name]


def same(ours: Any, theirs: Any) -> None:
    ours_leaves, theirs_leaves = jax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(ours_leaves) == len(theirs_leaves)
    for a, b in zip(ours_leaves, theirs_leaves, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """A number that depends on every output differently."""

    def number(*args: Any) -> Any:
        y = function(*args)
        return (y * jnp.cos(jnp.arange(y.size)).reshape(y.shape)).sum()

    return number


def batched(case: Case, mapped: int, size: int = 3) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments of which one has a leading axis, and in_axes."""
    args = list(case.args)
    value = jnp.asarray(args[mapped])
    factors = jnp.arange(1, size + 1).reshape((size,) + (1,) * value.ndim)
    args[mapped] = (value * factors).astype(value.dtype)
    return tuple(args), tuple(0 if i == mapped else None for i in range(len(args)))


# ---- the matrix ----


@cases
def test_the_reference_agrees_with_finite_differences(case: Case, f: Any) -> None:
    def only(*moving: Any) -> Any:
        args = list(case.args)
        for i, value in zip(case.wrt, moving, strict=True):
            args[i] = value
        return f(*args)

    check_grads(only, [jnp.asarray(case.args[i]) for i in case.wrt], order=1, rtol=1e-5)


@cases
@pytest.mark.parametrize("jit", [False, True])
def test_value_and_grad_of_each_argument(case: Case, f: Any, jit: bool) -> None:
    for argnums in (*case.wrt, case.wrt):
        ours, theirs = (
            jax.value_and_grad(loss(g), argnums, **case.options()) for g in (f, case.reference)
        )
        same((jax.jit(ours) if jit else ours)(*case.args), theirs(*case.args))


@cases
@pytest.mark.parametrize("jit", [False, True])
def test_jvp_with_all_and_with_some_tangents(case: Case, f: Any, jit: bool) -> None:
    for moving in ({*case.wrt}, {case.wrt[0]}, {case.wrt[-1]}):

        def run(g: Any, *moved: Any, moving: set[int] = moving) -> Any:
            def only(*values: Any) -> Any:
                args = list(case.args)
                for i, value in zip(sorted(moving), values, strict=True):
                    args[i] = value
                return g(*args)

            return jax.jvp(only, moved, tuple(jnp.ones_like(m) * 0.7 for m in moved))

        points = [jnp.asarray(case.args[i]) for i in sorted(moving)]
        ours = jax.jit(lambda *m: run(f, *m)) if jit else lambda *m: run(f, *m)
        same(ours(*points), run(case.reference, *points))


@cases
def test_linearize_and_vjp(case: Case, f: Any) -> None:
    index = case.wrt[0]

    def only(g: Any) -> Any:
        return lambda v: g(*case.args[:index], v, *case.args[index + 1 :])

    point = jnp.asarray(case.args[index])
    (y, ours), (z, theirs) = (jax.linearize(only(g), point) for g in (f, case.reference))
    same((y, ours(point)), (z, theirs(point)))
    (y, back), (z, reference) = (jax.vjp(only(g), point) for g in (f, case.reference))
    same((y, back(jnp.ones_like(y))), (z, reference(jnp.ones_like(z))))
    transposed = jax.linear_transpose(ours, point)
    same(transposed(jnp.ones_like(y)), back(jnp.ones_like(y)))


@cases
def test_vmap_of_grad_and_grad_of_vmap(case: Case, f: Any) -> None:
    for mapped in range(len(case.args)):
        args, axes = batched(case, mapped)
        for argnums in case.wrt:
            ours, theirs = (
                jax.vmap(jax.grad(loss(g), argnums, **case.options()), axes)
                for g in (f, case.reference)
            )
            same(ours(*args), theirs(*args))
            ours, theirs = (
                jax.grad(loss(jax.vmap(g, axes)), argnums, **case.options())
                for g in (f, case.reference)
            )
            same(ours(*args), theirs(*args))
            same(jax.jit(ours)(*args), theirs(*args))


@cases
def test_vmap_of_jvp(case: Case, f: Any) -> None:
    index = case.wrt[-1]

    def push(g: Any) -> Any:
        def run(*args: Any) -> Any:
            only = lambda v: g(*args[:index], v, *args[index + 1 :])  # noqa: E731
            return jax.jvp(only, (args[index],), (jnp.sin(args[index]),))

        return run

    for mapped in range(len(case.args)):
        args, axes = batched(case, mapped)
        args = tuple(a if i != index else jnp.asarray(a) for i, a in enumerate(args))
        args = tuple(jnp.asarray(a) if not isinstance(a, int) else a for a in args)
        same(jax.vmap(push(f), axes)(*args), jax.vmap(push(case.reference), axes)(*args))


@cases
def test_leading_axes_that_broadcast_are_summed_over(case: Case, f: Any) -> None:
    if len(case.wrt) < 2:
        pytest.skip("one differentiable argument")
    args = [jnp.asarray(a) for a in case.args]
    args[0] = args[0] * jnp.arange(1, 3).reshape((2, 1) + (1,) * args[0].ndim)
    args[1] = args[1] * jnp.arange(1, 4).reshape((3,) + (1,) * args[1].ndim)
    ours, theirs = (
        jax.grad(loss(g), case.wrt, **case.options())(*args) for g in (f, case.reference)
    )
    same(ours, theirs)


@cases
def test_jacobians_and_their_vmaps(case: Case, f: Any) -> None:
    for jacobian in (jax.jacfwd, jax.jacrev):
        ours, theirs = (jacobian(g, case.wrt, **case.options()) for g in (f, case.reference))
        same(ours(*case.args), theirs(*case.args))
        args, axes = batched(case, case.wrt[0])
        same(jax.vmap(ours, axes)(*args), jax.vmap(theirs, axes)(*args))
        same(jax.jit(jax.vmap(ours, axes))(*args), jax.vmap(theirs, axes)(*args))


@cases
def test_hessian(case: Case, f: Any) -> None:
    if not case.hessian:
        pytest.skip("bilinear or linear: nothing to compare")
    ours, theirs = (jax.hessian(loss(g), case.wrt) for g in (f, case.reference))
    same(ours(*case.args), theirs(*case.args))
    same(jax.jit(ours)(*case.args), theirs(*case.args))
    args, axes = batched(case, case.wrt[0])
    same(jax.vmap(ours, axes)(*args), jax.vmap(theirs, axes)(*args))


@cases
def test_control_flow_and_remat(case: Case, f: Any) -> None:
    index = case.wrt[0]

    def programs(g: Any) -> list[Any]:
        def only(v: Any) -> Any:
            return loss(g)(*case.args[:index], v, *case.args[index + 1 :])

        def scanned(v: Any) -> Any:
            return jax.lax.scan(lambda c, s: (c + only(v * s), None), 0 * only(v),
                                jnp.arange(1.0, 4))[0]  # fmt: skip

        def chosen(v: Any) -> Any:
            return jax.lax.cond(jnp.real(v).sum() > 0, only, lambda v: 2 * only(v), v)

        if case.holomorphic:  # JAX's remat does not take complex numbers
            return [scanned, chosen, jax.jit(only)]
        policies = jax.checkpoint_policies
        return [
            jax.checkpoint(only),
            jax.checkpoint(only, policy=policies.dots_saveable),
            jax.checkpoint(only, policy=policies.everything_saveable),
            scanned,
            jax.checkpoint(scanned),
            chosen,
            jax.jit(only),
        ]

    point = jnp.asarray(case.args[index])
    for ours, theirs in zip(programs(f), programs(case.reference), strict=True):
        a, b = (jax.grad(g, **case.options()) for g in (ours, theirs))
        same(a(point), b(point))
        same(jax.jit(a)(point), b(point))


@cases
def test_while_loops_with_jvp(case: Case, f: Any) -> None:
    index = case.wrt[0]

    def looped(g: Any) -> Any:
        def only(v: Any) -> Any:
            return loss(g)(*case.args[:index], v, *case.args[index + 1 :])

        def run(v: Any) -> Any:
            body = lambda s: (s[0] + 1, s[1] + only(v))  # noqa: E731
            total = jax.lax.while_loop(lambda s: s[0] < 3, body, (0, 0 * only(v)))[1]
            return jax.lax.fori_loop(0, 2, lambda _, t: t + only(v), total)

        return run

    point = jnp.asarray(case.args[index])
    ours, theirs = (
        jax.jvp(looped(g), (point,), (jnp.ones_like(point),)) for g in (f, case.reference)
    )
    same(ours, theirs)


@cases
def test_inside_the_user_s_own_rules(case: Case, f: Any) -> None:
    index = case.wrt[0]

    def only(v: Any) -> Any:
        return loss(f)(*case.args[:index], v, *case.args[index + 1 :])

    point = jnp.asarray(case.args[index])
    expected = jax.grad(only, **case.options())(point)
    outer_vjp = jax.custom_vjp(only)
    outer_vjp.defvjp(lambda v: jax.vjp(only, v), lambda back, ct: back(ct))
    same(jax.grad(outer_vjp, **case.options())(point), expected)
    outer_jvp = jax.custom_jvp(only)
    outer_jvp.defjvp(lambda primals, tangents: jax.jvp(only, primals, tangents))
    same(jax.jit(jax.grad(outer_jvp, **case.options()))(point), expected)


@cases
def test_without_jit_and_with_nan_checks(case: Case, f: Any) -> None:
    expected = jax.grad(loss(case.reference), case.wrt, **case.options())(*case.args)
    with jax.disable_jit():
        same(jax.grad(loss(f), case.wrt, **case.options())(*case.args), expected)
    with jax.debug_nans(True):
        same(jax.grad(loss(f), case.wrt, **case.options())(*case.args), expected)


@cases
@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map_and_its_grad(case: Case, f: Any, check_vma: bool) -> None:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    index = case.wrt[0]
    args, _ = batched(case, index, 2)
    placed = jax.device_put(args[index], NamedSharding(mesh, P("i")))

    def run(g: Any) -> Any:
        def body(v: Any) -> Any:
            return g(*args[:index], v, *args[index + 1 :])

        mapped = jax.shard_map(
            body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=check_vma
        )
        return jax.grad(loss(mapped), **case.options())

    same(run(f)(placed), run(case.reference)(placed))
    same(jax.jit(run(f))(placed), run(case.reference)(placed))


@cases
def test_eval_shape(case: Case, f: Any) -> None:
    out = jax.eval_shape(jax.grad(loss(f), case.wrt, **case.options()), *case.args)
    assert [o.shape for o in out] == [np.shape(case.args[i]) for i in case.wrt]


# ---- all that a prototype may have ----


def test_inout_status_static_and_scratch_in_derivatives(lib: jaxc.Library) -> None:
    x = array(4)
    same(jax.grad(lambda x: lib.grow(3, x).sum())(x), 3 * x**2)
    same(
        jax.jit(jax.vmap(jax.grad(lambda x: lib.grow(2, x).sum())))(array(2, 4)),
        2 * array(2, 4),
    )
    same(x, array(4))


def test_a_dimension_of_outputs_and_integer_outputs(lib: jaxc.Library) -> None:
    def ours(a: Any, b: Any) -> Any:
        y, count = lib.line(a, b, n=5)
        assert count.dtype == jnp.int32
        return (y * jnp.arange(5.0)).sum()

    def theirs(a: Any, b: Any) -> Any:
        return (jnp.linspace(a, b, 5) * jnp.arange(5.0)).sum()

    same(jax.grad(ours, (0, 1))(1.0, 3.0), jax.grad(theirs, (0, 1))(1.0, 3.0))
    same(jax.jvp(ours, (1.0, 3.0), (1.0, 0.5)), jax.jvp(theirs, (1.0, 3.0), (1.0, 0.5)))


def test_residuals_are_saved_and_the_primal_is_not_computed_twice(lib: jaxc.Library) -> None:
    grad = jax.jit(jax.grad(lambda x: lib.rms(x, 0.1).sum()))
    text = grad.lower(array(5)).as_text()
    assert text.count('custom_call @"jaxc:derivatives:rms_fwd') == 1
    assert text.count('custom_call @"jaxc:derivatives:rms_bwd') == 1
    assert 'custom_call @"jaxc:derivatives:rms:' not in text


def test_zero_tangents_are_not_materialised(lib: jaxc.Library) -> None:
    a, x = array(100, 3, 4), array(4)
    text = jax.jit(lambda a, x: jax.jvp(lambda x: lib.matvec(a, x), (x,), (x,))).lower(a, x)
    call = next(line for line in text.as_text().splitlines() if "matvec_jvp" in line)
    operands = call.rpartition(" : ")[2].partition("->")[0]
    assert operands.count("tensor<100x3x4xf64>") == 1  # a, and not the zero tangent of a
    assert operands.count("tensor<3x4xf64>") == 1


def test_linear_functions_are_their_own_jvp_and_transpose_back(lib: jaxc.Library) -> None:
    w, x = array(2), array(6, seed=1)
    (transposed,) = jax.linear_transpose(lambda x: lib.fir(w, x), x)(jnp.ones(5))
    same(transposed, jax.grad(lambda x: fir(w, x).sum())(x))
    ct = array(5, seed=2)
    (again,) = jax.linear_transpose(
        lambda ct: jax.linear_transpose(lambda x: lib.fir(w, x), x)(ct)[0], ct
    )(x)
    same(again, lib.fir(w, x))
    text = jax.jit(lambda x, t: jax.jvp(lambda x: lib.fir(w, x), (x,), (t,))).lower(x, x)
    assert text.as_text().count('@"jaxc:derivatives:fir:') == 2
    # twice through the same function, and through its transpose
    same(jax.hessian(lambda x: (lib.fir(w, x) ** 2).sum())(x),
         jax.hessian(lambda x: (fir(w, x) ** 2).sum())(x))  # fmt: skip


# ---- what is missing is named ----


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (lambda f: jax.grad(f.neither)(1.0),
         r"^neither has no derivative: write the C function neither_jvp \(forward mode\) or "
         r"neither_bwd \(reverse mode\), or give a rule with neither.defjvp or .defvjp"),
        (lambda f: jax.grad(f.forward_only)(1.0),
         "^forward_only: reverse mode needs the C function forward_only_bwd; only "
         "forward_only_jvp is there"),
        (lambda f: jax.jvp(f.reverse_only, (1.0,), (1.0,)),
         "^reverse_only: forward mode needs the C function reverse_only_jvp; only"),
        (lambda f: jax.jit(jax.jacfwd(f.reverse_only))(1.0), "reverse_only: forward mode needs"),
        (lambda f: jax.grad(f.partial, 1)(1.0, 2.0),
         "^partial: the derivative with respect to 'y' was asked for, but partial_bwd has no "
         "output 'ct_y'"),
        (lambda f: jax.jvp(f.partial, (1.0, 2.0), (0.0, 1.0)),
         "^partial: the derivative with respect to 'y' was asked for, but partial_jvp has no "
         "parameter 'd_y'"),
        (lambda f: jax.grad(jax.grad(f.reverse_only))(1.5),
         "^reverse_only_bwd has no derivative: write the C function reverse_only_bwd_jvp"),
        (lambda f: jax.jacfwd(jax.jacfwd(f.power))(1.5, 3),
         "^power_jvp has no derivative: write the C function power_jvp_jvp"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(lib: jaxc.Library, run: Any, text: str) -> None:
    with pytest.raises(NotImplementedError, match=text):
        run(lib)


def test_the_direction_that_is_there_works(lib: jaxc.Library) -> None:
    same(jax.jvp(lib.forward_only, (1.0,), (2.0,))[1], 2 * np.cos(1.0))
    same(jax.grad(lib.reverse_only)(1.0), np.cos(1.0))
    same(jax.grad(lib.partial)(1.0, 2.0), 2.0)


def test_nondifferentiable_is_an_error_and_not_zero(lib: jaxc.Library) -> None:
    same(jax.jvp(lambda x: lib.barred(x, 2.0), (1.0,), (1.0,)), (2.0, 2.0))
    text = (
        r"barred: a derivative with respect to 'y' was asked for, which '#pragma jaxc nondiff"
    )
    with pytest.raises(TypeError, match=text):
        jax.jvp(lib.barred, (1.0, 2.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("double f_jvp(double x, double d_z) { return 0; }",
         r"k\.c:2: 'f_jvp' is no derivative of 'f' \(k\.c:1\): parameter 'd_z' \(double d_z\) is "
         r"none of x, k, d_x"),
        ("float f_jvp(double x, double d_x) { return 0; }", "must have type and bounds of"),
        ("double f_jvp(double x, float d_x) { return 0; }",
         r"parameter 'd_x' \(float d_x\) must have type and bounds of 'x' \(double x\)"),
        ("double f_bwd(double x, double ct_x) { return 0; }", "parameter 'ct_x' .* is none of"),
        ("double f_bwd(double r, double ct_return) { return 0; }", "parameter 'r' .* is none of"),
        ("void f_fwd(const double x[1], double r[1]) {}", "must have type and bounds"),
        ("void f_fwd(double x, double r[1]) {}", "it has no output 'return'"),
        ("void f_bwd(double x, double ct_return, double z[1]) {}", "output 'z' is none of ct_x"),
        ("#pragma jaxc static(m)\ndouble f_jvp(double x, double d_x, int m) { return 0; }",
         "static parameter 'm' is none of its own"),
    ],
)  # fmt: skip
def test_a_kernel_that_does_not_fit_is_an_error_at_load(kernel: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        jaxc.compile(f"double f(double x, int k) {{ return x * k; }}\n{kernel}", name="k")


def test_a_name_that_is_no_derivative_can_be_hidden() -> None:
    source = "double f(double x) { return x; }\ndouble f_fwd(double q) { return q; }\n"
    with pytest.raises(ValueError, match="'#pragma jaxc hide' on a declaration of it says so"):
        jaxc.compile(source)
    lib = jaxc.compile("#pragma jaxc hide\ndouble f_fwd(double q);\n" + source)
    assert list(lib) == ["f"]


# ---- rules given in Python ----

BESSEL = "double j0(double x);\ndouble j1(double x);\n"


def test_a_rule_in_python_for_a_library_without_source() -> None:
    m = jaxc.compile(BESSEL, name="bessel", libraries=["m"])

    @m.j0.defjvp
    def j0_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        return m.j0(x), -m.j1(x) * dx

    x = array(3)
    expected = -np.asarray(m.j1(x))
    same(jax.vmap(jax.grad(m.j0))(x), expected)
    same(jax.jit(jax.grad(lambda x: m.j0(x).sum()))(x), expected)
    same(jax.jvp(m.j0, (x,), (np.ones(3),))[1], expected)
    same(jax.jacfwd(m.j0)(x), np.diag(expected))
    with jax.disable_jit():
        same(jax.grad(m.j0)(x[0]), expected[0])
    with pytest.raises(TypeError, match="j0: a rule given in Python does not pickle"):
        pickle.dumps(m.j0)
    fresh = jaxc.compile(BESSEL, name="bessel", libraries=["m"])
    assert fresh.j0 != m.j0
    with pytest.raises(NotImplementedError, match="j0 has no derivative"):
        jax.grad(fresh.j0)(1.0)


def test_a_reverse_rule_in_python_sees_static_values() -> None:
    source = "#pragma jaxc static(k)\ndouble power(double x, int k) { return k == 3 ? x * x * x : x; }"
    power = jaxc.compile(source).power
    power.defvjp(
        lambda x, k: (power(x, k), x),
        lambda x, ct, k: (ct * k * x ** (k - 1),),
    )
    same(jax.grad(lambda x: power(x, 3))(2.0), 12.0)
    same(jax.jit(jax.vmap(jax.grad(lambda x: power(x, 3))))(array(3)), 3 * array(3) ** 2)
    power.defjvp(lambda primals, tangents, k: (power(*primals, k), 7.0 * tangents[0]))
    same(jax.grad(lambda x: power(x, 3))(2.0), 7.0)


# ---- and the rest ----


def test_overloads_have_their_own_derivatives() -> None:
    source = """
#pragma jaxc overload(sq)
float sq_f(float x) { return x * x; }
float sq_f_jvp(float x, float d_x) { return 2 * x * d_x; }
float sq_f_bwd(float x, float ct_return) { return 2 * x * ct_return; }
#pragma jaxc overload(sq)
double sq_d(double x) { return x * x; }
double sq_d_jvp(double x, double d_x) { return 2 * x * d_x; }
double sq_d_bwd(double x, double ct_return) { return 2 * x * ct_return; }
"""
    sq = jaxc.compile(source).sq
    for dtype in (jnp.float32, jnp.float64):
        x = jnp.array([1.0, 3.0], dtype)
        grad = jax.grad(lambda x: sq(x).sum())(x)
        assert grad.dtype == dtype
        same(grad, 2 * x)


def test_integers_have_float0_tangents(lib: jaxc.Library) -> None:
    grad = jax.grad(lib.power, 1, allow_int=True)(2.0, np.int32(3))
    assert grad.dtype == jax.dtypes.float0
    primals, tangents = (2.0, np.int32(3)), (1.0, np.zeros((), jax.dtypes.float0))
    same(jax.jvp(lib.power, primals, tangents), (8.0, 12.0))


def test_the_user_s_own_hijax_primitive_around_the_call(lib: jaxc.Library) -> None:
    hijax = pytest.importorskip("jax.experimental.hijax", reason="this JAX has no hijax")
    base = getattr(hijax, "HiPrim", None) or getattr(hijax, "VJPHiPrimitive", None)
    if base is None:
        pytest.skip("this JAX has no HiPrim")

    class Around(base):  # type: ignore[misc, valid-type]
        def __init__(self, aval: Any):
            self.in_avals = (aval,)
            self.out_aval = aval
            self.params = {}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return lib.rms(x, 0.1)

        def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
            return self(x), x

        def vjp_bwd_retval(self, x: Any, ct: Any) -> Any:
            return (jax.vjp(lambda x: lib.rms(x, 0.1), x)[1](ct)[0],)

    x = jnp.asarray(array(5))
    around = Around(jax.typeof(x))
    same(jax.jit(around)(x), rms(x, 0.1))
    same(
        jax.grad(lambda x: (around(x) * x).sum())(x),
        jax.grad(lambda x: (rms(x, 0.1) * x).sum())(x),
    )
