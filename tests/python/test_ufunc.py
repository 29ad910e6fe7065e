"""``jaxc.ufunc``: loops of NumPy, SciPy and numba in JAX programs."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as special
from jax.errors import JaxRuntimeError

import jaxc
from jaxc import ufunc_rules, ufunc_table

try:
    import numba
except ImportError:
    numba = None  # type: ignore[assignment]

#: SciPy's loops warn of arguments that its functions are given here on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
needs_numba = pytest.mark.skipif(numba is None, reason="numba is not installed")


def usable(module: Any) -> dict[str, np.ufunc]:
    """Ufuncs of a module, under their own names, that have a loop over numbers."""
    found = {}
    for name in sorted(vars(module)):
        u = getattr(module, name)
        is_own = isinstance(u, np.ufunc) and u.__name__ == name
        if is_own and any(set(t) <= set("?bhilqBHILQefdFD->") for t in u.types):
            found[name] = u
    return found


def of(u: Any, loop: Any, shape: tuple[int, ...] = (7,)) -> list[np.ndarray]:
    rng = np.random.default_rng(len(u.__name__))
    args = []
    for parameter in loop.description.parameters[1 : 1 + u.nin]:
        dtype = parameter.numpy_dtype
        if dtype.kind in "iu":
            args.append(rng.integers(0, 5, shape).astype(dtype))
        elif dtype.kind == "b":
            args.append(rng.integers(0, 2, shape).astype(dtype))
        else:
            args.append(rng.uniform(0.1, 2.9, shape).astype(dtype))
    return args


def loop_text(u: Any, loop: Any) -> str:
    chars = [p.numpy_dtype.char for p in loop.description.parameters[1:]]
    return "".join(chars[: u.nin]) + "->" + "".join(chars[u.nin :])


# ---- every loop ----


@pytest.mark.parametrize("module", [np, special], ids=["numpy", "scipy.special"])
def test_the_widest_loop_of_every_ufunc(module: Any, x64: None) -> None:
    calls = []
    for name, u in usable(module).items():
        if u.signature is not None:
            continue
        made = jaxc.ufunc(u)
        loop = max(made._types, key=lambda t: (sum(n in (12, 7) for n in t[: u.nin]), t))
        loop_function = made._member(loop)
        calls.append((name, u, loop_function, of(u, loop_function)))
    assert len(calls) > {np: 70, special: 200}[module]
    results = jax.jit(lambda args: [c[2](*a) for c, a in zip(calls, args, strict=True)])(
        [c[3] for c in calls]
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (name, u, loop, args), got in zip(calls, results, strict=True):
            expected = u(*args, signature=loop_text(u, loop))
            for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
                assert one.dtype == other.dtype, name
                # XLA runs programs with subnormal numbers flushed to zero
                np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-300, err_msg=name)


@pytest.mark.parametrize("u", [np.add, np.hypot, np.isnan, np.divmod, np.ldexp, special.jv])
def test_every_loop(u: Any, x64: None) -> None:
    made = jaxc.ufunc(u)
    chars = {t for t in u.types if set(t) <= set("?bhilqBHILQefdFD->")}
    names = {tuple(np.dtype(c).name for c in t.replace("->", "")) for t in chars}
    assert {tuple(p.numpy_dtype.name for p in m.description.parameters[1:])
            for m in made.members} == names  # fmt: skip
    for member in made.members:
        args = of(u, member)
        if u in (np.divmod,):
            args[1] = np.maximum(args[1], 1).astype(args[1].dtype)
        got = jax.jit(member)(*args)
        expected = u(*args, signature=loop_text(u, member))
        jax.tree.map(np.testing.assert_array_equal, got, expected)
        jax.tree.map(lambda g, e: np.testing.assert_equal(g.dtype, e.dtype), got, expected)


def test_dtypes_choose_the_loop_exactly(x64: None) -> None:
    jv = jaxc.ufunc(special.jv)
    x = np.linspace(0, 5, 4)
    assert jv(1.0, x.astype(np.float32)).dtype == np.float32
    assert jv(1.0, x).dtype == np.float64
    assert jv(1.0, x + 0j).dtype == np.complex128
    assert jv(jnp.float32(1), x.astype(np.complex64)).dtype == np.complex64
    with pytest.raises(
        TypeError, match=r"jv: no overload for \(int32, float64\); there are:\n "
    ):
        jv(np.arange(4, dtype=np.int32), x)
    with pytest.raises(TypeError, match=r"float32, float64"):
        jv(x.astype(np.float32), x)


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_without_a_dtype_have_that_of_jax(wide: bool) -> None:
    with _x64(wide):
        real, whole = jnp.asarray(0.0).dtype, jnp.asarray(0).dtype
        add, exp, sqrt = (jaxc.ufunc(u) for u in (np.add, np.exp, np.sqrt))
        for value, expected, dtype in [
            (add(100, 100), 200, whole), (add(1, 2.5), 3.5, real), (exp(12.0), np.exp(12), real),
            (jax.jit(exp)(12.0), np.exp(12), real), (sqrt(4), 2, real), (sqrt(1e6), 1000, real),
            (jaxc.ufunc(special.gamma)(5.0), 24, real),
            (add(jnp.full(2, 1e5), 2.0)[0], 100002, real),
            (jax.lax.fori_loop(0, 200, lambda i, c: add(c, i), 0), 19900, whole),
            (jaxc.ufunc(np.logical_and)(True, False), False, np.dtype(bool)),
            (jax.grad(jaxc.ufunc(np.hypot))(3.0, 4.0), 0.6, real),
        ]:  # fmt: skip
            assert value.dtype == dtype
            np.testing.assert_allclose(value, expected, rtol=1e-6)
        # beside an array, a number is what the loop has
        half = jnp.ones(2, jnp.float16)
        assert jaxc.ufunc(np.power)(half, 2).dtype == np.float16
        assert jaxc.ufunc(np.ldexp)(half, 3).dtype == np.float16


@contextlib.contextmanager
def _x64(wide: bool) -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", wide)
    yield
    jax.config.update("jax_enable_x64", before)


def test_wide_loops_say_what_they_need() -> None:
    with pytest.raises(TypeError, match=r"gamma: .* is float64 .*jax_enable_x64"):
        jaxc.ufunc(special.gamma)(np.arange(3.0))


# ---- transformations ----


@pytest.mark.parametrize("leading", [(), (0,), (1,), (2, 3)])
def test_broadcasting_and_vmap(leading: tuple[int, ...]) -> None:
    jv = jaxc.ufunc(special.jv)
    v = np.arange(4, dtype=np.float32)
    x = np.random.default_rng(0).uniform(0, 5, (*leading, 4)).astype(np.float32)
    expected = special.jv(v, x)
    np.testing.assert_array_equal(jv(v, x), expected)
    np.testing.assert_array_equal(jax.vmap(jv, (0, -1), -1)(v, x), expected)
    np.testing.assert_array_equal(jax.jit(jv)(v, x), expected)
    text = jax.jit(jax.vmap(jv, (None, 0))).lower(1.0, v).as_text()
    assert text.count("custom_call") == 1


def test_several_outputs(x64: None) -> None:
    x = np.linspace(-1, 1, 5)
    sici, frexp = jaxc.ufunc(special.sici), jaxc.ufunc(np.frexp)
    jax.tree.map(np.testing.assert_array_equal, jax.jit(sici)(x), special.sici(x))
    jax.tree.map(np.testing.assert_array_equal, jax.vmap(frexp)(x), np.frexp(x))
    assert len(jaxc.ufunc(special.airy)(x)) == 4


def test_gufuncs(x64: None) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 2, 4)), rng.normal(size=(4, 5))
    matmul = jaxc.ufunc(np.matmul)
    assert matmul.signature == "(n,k),(k,m)->(n,m)"
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-14)
    np.testing.assert_allclose(jax.vmap(matmul, (1, None), 1)(a, b), a @ b, rtol=1e-14)
    with pytest.raises(ValueError, match=r"matmul: dimension k is 4 in 'x1' .* but 5 in 'x2'"):
        matmul(a, b.T)
    inverse = jaxc.ufunc(np.linalg._umath_linalg.inv)
    square = rng.normal(size=(3, 4, 4))
    np.testing.assert_allclose(jax.jit(inverse)(square), np.linalg.inv(square), rtol=1e-12)
    vecdot = jaxc.ufunc(np.vecdot)
    np.testing.assert_allclose(vecdot(a, a[0]), np.vecdot(a, a[0]), rtol=1e-14)


def test_rows_run_in_threads_and_agree() -> None:
    x = np.random.default_rng(0).uniform(0, 30, 200_000).astype(np.float32)
    jv = jax.jit(jaxc.ufunc(special.jv))
    np.testing.assert_array_equal(jv(2.0, x), special.jv(np.float32(2), x))


# ---- derivatives ----

#: Points where a rule is tried: within the domain, away from what has no derivative.
_X = [-0.4, 0.2, 0.7]
_THREE = np.array(3)
POINTS: dict[str, tuple[Any, ...]] = {
    "erfinv": ([-0.7, 0.1, 0.9],), "ndtri": ([0.1, 0.5, 0.95],), "logit": ([0.2, 0.5, 0.9],),
    "ndtri_exp": ([-2.0, -0.7, -0.1],),
    "erfcinv": ([0.2, 1.0, 1.7],), "betainc": (1.3, 2.1, [0.1, 0.5, 0.9]),
    "betaincc": (1.3, 2.1, [0.1, 0.5, 0.9]), "betaincinv": (1.3, 2.1, [0.1, 0.5, 0.9]),
    "betainccinv": (1.3, 2.1, [0.1, 0.5, 0.9]),
    "gammaincinv": (1.7, [0.1, 0.5, 0.9]), "gammainccinv": (1.7, [0.1, 0.5, 0.9]),
    "ellipk": ([-0.5, 0.03, 0.8],), "ellipe": ([-0.5, 0.03, 0.8],),
    "ellipkm1": ([0.2, 0.97, 1.5],), "ellipkinc": ([-0.7, 1.2, 5.0], [0.3, 0.8, 0.01]),
    "ellipeinc": ([-0.7, 1.2, 5.0], [0.3, 0.8, 0.01]), "ellipj": ([-0.4, 0.7, 1.9], 0.3),
    "hyp2f1": (0.7, 1.2, 2.5, [-0.8, 0.1, 0.7]), "hyp1f1": (0.7, 1.2, [-0.8, 0.1, 0.7]),
    "hyp0f1": (1.2, [0.2, 0.5, 1.7]), "hyperu": (0.7, 1.2, [0.3, 0.9, 1.7]),
    "expn": (_THREE, [0.3, 0.9, 2.1]), "psi": ([-0.6, 0.3, 2.5],),
    "kn": (_THREE, [0.3, 0.9, 2.1]), "yn": (_THREE, [0.3, 0.9, 2.1]),
    "gamma": ([-0.6, 0.3, 2.5],), "rgamma": ([-0.6, 0.3, 2.5],),
    "gammasgn": ([-0.6, 0.3, 2.5],), "loggamma": ([0.3, 1.2, 2.5],),
    "poch": ([-0.6, 1.1, 2.5], [1.3, 0.4, 2.2]), "binom": ([5.0, 1.2, 7.5], [2.2, 3.4, 3.0]),
    "eval_chebyt": (_THREE, _X), "eval_chebyu": (_THREE, _X), "eval_chebyc": (_THREE, _X),
    "eval_chebys": (_THREE, _X), "eval_sh_chebyt": (_THREE, [0.1, 0.4, 0.8]),
    "eval_sh_chebyu": (_THREE, [0.1, 0.4, 0.8]), "eval_legendre": (_THREE, _X),
    "eval_sh_legendre": (_THREE, [0.1, 0.4, 0.8]), "eval_jacobi": (_THREE, 0.3, 1.2, _X),
    "eval_sh_jacobi": (_THREE, 2.3, 1.2, [0.1, 0.4, 0.8]),
    "eval_gegenbauer": (_THREE, 1.2, _X), "eval_hermite": (_THREE, _X),
    "eval_hermitenorm": (_THREE, _X), "eval_laguerre": (_THREE, [0.2, 0.7, 1.5]),
    "eval_genlaguerre": (_THREE, 1.2, [0.2, 0.7, 1.5]),
    "lpmv": ([0.0, 1.0, 2.0], [2.0, 3.0, 2.5], _X),
    "wofz": ([0.2 + 0.1j, 1.0, 2.0],), "hankel1": (1.2, [0.9 + 0j, 1.5, 2.0]),
    "hankel2": (1.2, [0.9 + 0j, 1.5, 2.0]), "hankel1e": (1.2, [0.9 + 0j, 1.5, 2.0]),
    "hankel2e": (1.2, [0.9 + 0j, 1.5, 2.0]), "ive": (1.0, [-1.5, 0.8, 2.0]),
    "airye": ([0.4, 1.1, 2.3],), "exprel": ([-1.5, 0.03, 2.3],),
    "voigt_profile": ([-0.4, 1.1, 9.5], [0.5, 0.7, 0.2], [0.9, 0.3, 1.1]),
    "besselpoly": ([0.4, 1.1, 2.3], 1.0, 2.0),
    "wrightomega": ([-1.4, 0.3, 2.5],), "spence": ([0.4, 1.03, 2.3],),
    "xlog1py": ([0.5, 1.0, 2.0], [0.3, 0.9, 2.0]), "powm1": ([0.5, 1.0, 2.0], [0.3, 0.9, -2.0]),
    "bdtr": ([2.0, 0.0, 4.5], np.array(5), [0.2, 0.5, 0.9]),
    "bdtrc": ([2.0, 0.0, 4.5], np.array(5), [0.2, 0.5, 0.9]),
    "bdtri": ([2.0, 0.0, 4.0], np.array(5), [0.2, 0.5, 0.9]),
    "nbdtr": (_THREE, np.array(5), [0.2, 0.5, 0.9]),
    "nbdtrc": (_THREE, np.array(5), [0.2, 0.5, 0.9]),
    "nbdtri": (_THREE, np.array(5), [0.2, 0.5, 0.9]),
    "pdtr": ([2.0, 0.0, 4.5], [0.4, 1.1, 2.3]), "pdtrc": ([2.0, 0.0, 4.5], [0.4, 1.1, 2.3]),
    "pdtri": (_THREE, [0.2, 0.5, 0.9]), "stdtr": ([0.7, 3.0, np.inf], [-0.8, 0.3, 2.0]),
    "stdtrit": (3.3, [0.1, 0.4, 0.9]), "chdtri": (3.3, [0.1, 0.4, 0.9]),
    "chndtr": ([0.4, 2.1, 4.3], 3.2, [0.2, 1.5, 2.0]), "chndtrix": ([0.1, 0.4, 0.9], 3.2, 1.5),
    "fdtri": (3.2, 4.1, [0.1, 0.4, 0.9]), "gdtrix": (1.2, 2.1, [0.1, 0.4, 0.9]),
    "gdtria": ([0.1, 0.4, 0.9], 2.1, 1.3), "gdtrib": (1.2, [0.1, 0.4, 0.9], 1.3),
    "nrdtrimn": ([0.1, 0.4, 0.9], 1.3, 0.7), "nrdtrisd": (0.2, [0.6, 0.7, 0.9], 1.3),
    "tklmbda": ([-0.4, 0.2, 0.7], 0.6), "huber": ([0.5, 1.3, 0.7], [-0.9, 0.4, 1.6]),
    "pseudo_huber": ([0.5, 1.3, 0.7], [-0.9, 0.4, 1.6]),
    "boxcox": ([0.4, 1.03, 2.3], [0.7, 0.0, -0.3]),
    "boxcox1p": ([-0.4, 0.03, 2.3], [0.7, 0.0, -0.3]),
    "inv_boxcox": ([-0.4, 0.3, 1.3], [0.7, 0.0, -0.3]),
    "inv_boxcox1p": ([-0.4, 0.3, 1.3], [0.7, 0.0, -0.3]),
    "mathieu_cem": (2.0, 1.3, [20.0, 50.0, 70.0]), "mathieu_sem": (2.0, 1.3, [20.0, 50.0, 70.0]),
    "wright_bessel": (0.7, 1.2, [0.3, 0.9, 1.7]), "log_wright_bessel": (0.7, 1.2, [0.3, 0.9, 1.7]),
    **{f"mathieu_mod{which}": (2.0, 1.3, [0.4, 0.7, 1.1])
       for which in ("cem1", "cem2", "sem1", "sem2")},
}  # fmt: skip


#: Functions of SciPy that are good to less than others.
ACCURACY = {"itairy": 2e-5}
RULES = pytest.mark.parametrize("name", sorted(ufunc_table.SPECIAL))


def points(name: str, narrow: bool = False) -> tuple[Any, list[np.ndarray], list[int]]:
    """The ufunc, three points of each input, and the inputs that it has derivatives by."""
    u = getattr(special, name, None)
    if u is None:
        pytest.skip(f"this SciPy has no scipy.special.{name}")
    default = [np.array([0.4, 1.1, 2.3]) + 0.1 * k for k in range(u.nin)]
    args = [np.broadcast_to(np.asarray(g), (3,)) for g in POINTS.get(name, default)]
    if narrow:
        args = [a.astype(np.complex64 if a.dtype.kind == "c" else np.float32) for a in args]
        if not any(set(t) <= set("fF->") for t in u.types):
            pytest.skip(f"{name} has no loop over float32, only {', '.join(u.types)}")
        if not all(np.isfinite(out).all() for out in jax.tree.leaves(u(*args))):
            pytest.skip(f"SciPy's {name} itself is not finite in float32")
    rule: Any = ufunc_rules.rule("scipy.special", name)
    return u, args, [k for k, partial in enumerate(rule) if partial is not None]


def slopes(f: Any, args: Any, k: int, along: Any = 1.0) -> list[Any]:
    """Derivatives of each output by input k."""

    def of_one(value: Any) -> Any:
        return f(*[value if i == k else jnp.asarray(a) for i, a in enumerate(args)])

    at = jnp.asarray(args[k])
    tangent = jnp.full(at.shape, along, at.dtype)
    return jax.tree.leaves(jax.jvp(of_one, (at,), (tangent,))[1])


def differences(f: Any, args: Any, k: int, step: float = 1e-5) -> list[Any]:
    high, low = (
        f(*[a + s if i == k else a for i, a in enumerate(args)]) for s in (step, -step)
    )
    pairs = zip(jax.tree.leaves(high), jax.tree.leaves(low), strict=True)
    return [(a - b) / (2 * step) for a, b in pairs]


def assert_close(got: Any, expected: Any, name: str, k: int, rtol: float, atol: float) -> None:
    for one, other in zip(got, expected, strict=True):
        assert np.all(np.isfinite(one)), f"{name} by {k}: {one}"
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=f"{name} by {k}")


@RULES
def test_known_derivatives_are_the_slopes(name: str, x64: None) -> None:
    u, args, by = points(name)
    for k in by:
        rtol = ACCURACY.get(name, 2e-6)
        got = slopes(jaxc.ufunc(u), args, k)
        assert_close(got, differences(u, args, k), name, k, rtol, 1e-8)


@RULES
def test_known_derivatives_in_float32(name: str) -> None:
    u, args, by = points(name, narrow=True)
    wide = [a.astype(np.complex128 if a.dtype.kind == "c" else float) for a in args]
    for k in by:
        got = slopes(jaxc.ufunc(u), args, k)
        assert all(g.dtype in (np.float32, np.complex64) for g in got)
        assert_close(got, differences(u, wide, k), name, k, 2e-4, 2e-5)


#: Rules of functions that have loops over complex numbers.
COMPLEX = [
    name
    for name in sorted(ufunc_table.SPECIAL)
    if any(
        "D" in loop.split("->")[0]
        for loop in getattr(getattr(special, name, None), "types", ())
    )
]


@pytest.mark.parametrize("name", COMPLEX)
def test_known_derivatives_in_the_complex_plane(name: str, x64: None) -> None:
    u, args, by = points(name)
    (inputs,) = {loop.split("->")[0] for loop in u.types if set(loop) <= set("dD->")} - {
        "d" * u.nin
    }
    pairs = zip(args, inputs, strict=True)
    at = [a * (1 + 0.2j) if c == "D" else a.real.astype(float) for a, c in pairs]
    for k in by:
        assert inputs[k] == "D" or u.nin > 1
        if inputs[k] != "D":
            continue
        if name in ("airye", "ive", "jve", "psi", "yve"):
            with pytest.raises(
                NotImplementedError,
                match=f"{name}: no derivative by a complex argument is known; jaxc.ufunc",
            ):
                slopes(jaxc.ufunc(u), at, k)
            continue
        got = slopes(jaxc.ufunc(u), at, k)
        assert_close(got, differences(u, at, k), name, k, 2e-6, 1e-8)
        turned = [g * 1j for g in got]
        assert_close(turned, slopes(jaxc.ufunc(u), at, k, 1j), name, k, 1e-12, 0)
        high, low = (
            u(*[a + s if i == k else a for i, a in enumerate(at)]) for s in (1e-5j, -1e-5j)
        )
        pairs = zip(jax.tree.leaves(high), jax.tree.leaves(low), strict=True)
        assert_close(turned, [(a - b) / 2e-5 for a, b in pairs], name, k, 2e-6, 1e-8)


@RULES
def test_known_derivatives_under_jit_vmap_and_broadcasting(name: str, x64: None) -> None:
    u, args, by = points(name)
    f = jaxc.ufunc(u)
    for k in by:

        def of(*values: Any, k: int = k) -> Any:
            return slopes(f, values, k)

        one = [a if i == k else a[0] for i, a in enumerate(args)]
        expected = of(*np.broadcast_arrays(*one))
        assert_close(jax.jit(of)(*one), expected, name, k, 1e-9, 1e-12)
        others = [a[0] if i == k else a for i, a in enumerate(args)]
        if u.nin > 1:
            expected = of(*np.broadcast_arrays(*others))
            assert_close(of(*others), expected, name, k, 1e-9, 1e-12)
            axes = [None if i == k else 0 for i in range(u.nin)]
            assert_close(jax.vmap(of, axes)(*others), expected, name, k, 1e-9, 1e-12)


@RULES
def test_known_derivatives_of_second_order(name: str, x64: None) -> None:
    u, args, by = points(name)
    f = jaxc.ufunc(u)
    reasons = []
    for k in by:

        def first(*args: Any, k: int = k) -> Any:
            return slopes(f, args, k)

        try:
            second = slopes(first, args, k)
        except NotImplementedError as error:
            reasons.append(str(error).splitlines()[0])
            continue
        assert_close(second, differences(first, args, k, 1e-4), name, k, 1e-5, 1e-6)
    if len(reasons) == len(by):
        pytest.skip(f"a part of the derivative of {name} has none: {reasons[0]}")


_PI = np.pi
_SIN2 = [0.5 - np.sin(1) / 2, 4 - np.sin(8) / 2]  # four times the integral of sin^2 / 2
#: Where a formula divides zero by zero, or asks for what there is not: the ufunc, the input,
#: the inputs and the limits.
LIMITS: list[tuple[str, int, tuple[Any, ...], Any]] = [
    ("ellipk", 0, ([0.0, 1e-11],), _PI / 8), ("ellipe", 0, ([0.0, 1e-11],), -_PI / 8),
    ("ellipk", 0, (1.0,), np.inf), ("ellipkm1", 0, (1.0,), -_PI / 8),
    ("ellipkinc", 1, ([0.5, 4.0], 0.0), np.array(_SIN2) / 4),
    ("ellipeinc", 1, ([0.5, 4.0], 0.0), -np.array(_SIN2) / 4),
    ("ellipeinc", 1, (_PI / 2, 0.0), -_PI / 8),
    ("spence", 0, (1.0,), -1), ("exprel", 0, ([0.0, 1e-11],), 0.5), ("exprel", 0, (-800.0,), 1 / 800**2),
    # degree 0, with integers and floating-point numbers, and the ends
    *((f"eval_{name}", 1, (n, [-1.0, 0.0, 1.0]), [0, 0, 0]) for n in (0, 0.0) for name in (
        "legendre", "chebyt", "chebyu", "chebyc", "chebys", "sh_legendre", "sh_chebyt",
        "sh_chebyu", "laguerre")),
    *((f"eval_{name}", 1, (0, [-1.0, 0.0, 1.0]), [0, 0, 0]) for name in ("hermite", "hermitenorm")),
    *((f"eval_{name}", 2, (n, 1.5, [0.0, 1.0]), [0, 0]) for n in (0, 0.0) for name in (
        "gegenbauer", "genlaguerre")),
    *((f"eval_{name}", 3, (n, 2.5, 1.5, [0.0, 1.0]), [0, 0]) for n in (0, 0.0) for name in (
        "jacobi", "sh_jacobi")),
    ("eval_legendre", 1, (3, [-1.0, 1.0]), [6, 6]), ("eval_legendre", 1, (3.0, [-1.0, 1.0]), [6, 6]),
    ("eval_chebyt", 1, (3, [-1.0, 1.0]), [9, 9]), ("eval_chebyu", 1, (3, [-1.0, 1.0]), [20, 20]),
    ("eval_jacobi", 3, (2, 0.0, 0.0, [-1.0, 1.0]), [-3, 3]),
    # degrees below zero, which are others above: P(-3) = P(2), U(-3) = -U(1), T(-3) = T(3)
    ("eval_legendre", 1, (-3, 0.5), 1.5), ("eval_legendre", 1, (-3.0, 0.5), 1.5),
    ("eval_chebyu", 1, ([-1, -2, -3], 0.5), [0, 0, -2]),
    ("eval_chebyu", 1, ([-1.0, -2.0, -3.0], 0.5), [0, 0, -2]),
    ("eval_chebyt", 1, (-3, [-1.0, 1.0]), [9, 9]),
    ("lpmv", 2, (0.0, 3.0, [-1.0, 1.0]), [6, 6]), ("lpmv", 2, (1.0, 2.0, [-1.0, 1.0]), np.inf),
    ("lpmv", 2, (2.0, 3.0, [-1.0, 1.0]), -30), ("lpmv", 2, (3.0, 3.0, [-1.0, 1.0]), 0),
    ("lpmv", 2, (-2.0, 2.0, [-1.0, 0.5, 1.0]), [0.25, -0.125, -0.25]),
    # poles of gamma that cancel
    ("rgamma", 0, ([0.0, -1.0, -2.0, -3.0],), [1, -1, 2, -6]),
    ("poch", 0, ([0.0, -1.0, -3.0, -3.0], [2.0, 3.0, 2.0, 4.0]), [1, -1, -5, -6]),
    ("binom", 0, ([1.0, 0.0, 2.0], [3.0, 3.0, -1.0]), [-1 / 6, 1 / 3, 0]),
    ("binom", 1, ([1.0, 0.0, 2.0], [3.0, 3.0, -1.0]), [1 / 6, -1 / 3, 1 / 3]),
    # densities at the ends of where they are
    ("gammainc", 1, (1.0, 0.0), 1), ("betainc", 2, (1.0, 1.0, [0.0, 1.0]), [1, 1]),
    ("chdtr", 1, (2.0, 0.0), 0.5), ("gdtr", 2, (1.0, 1.0, 0.0), 1), ("fdtr", 2, (2.0, 5.0, 0.0), 1),
    ("bdtr", 2, ([0.0, 5.0, 4.0, 0.0], 5, [0.0, 1.0, 1.0, 1.0]), [-5, 0, -5, 0]),
    ("bdtr", 2, (5.0, 5, 0.3), 0), ("pdtr", 1, ([0.0, 1.0], 0.0), [-1, 0]),
    ("stdtr", 1, ([np.inf, 1e308, 1e15], 1.0), np.exp(-0.5) / np.sqrt(2 * _PI)),
    ("chndtr", 0, (1.0, 3.0, [0.0, 1e-200]), np.exp(-0.5) / np.sqrt(2 * _PI)),
    ("voigt_profile", 0, (3.0, [0.0, 1e-30], 0.5), -3 / _PI / 9.25**2),
    ("voigt_profile", 2, (3.0, [0.0, 1e-30], 0.5), 8.75 / _PI / 9.25**2),
    # parameters at which a family changes its form
    ("boxcox", 1, ([2.0, 2.0, 0.0], [0.0, 1e-12, 0.5]), [np.log(2) ** 2 / 2] * 2 + [4]),
    ("boxcox1p", 1, ([1.0, -1.0], [0.0, 0.5]), [np.log(2) ** 2 / 2, 4]),
    ("inv_boxcox", 1, (1.0, [0.0, 1e-12]), -np.e / 2), ("inv_boxcox1p", 1, (1.0, 0.0), -np.e / 2),
    ("pseudo_huber", 0, (0.0, [0.0, -2.0]), [0, 2]), ("pseudo_huber", 1, ([0.0, 1.0], 0.0), [0, 0]),
    ("agm", 0, ([1.0, -1.0], [1.0, -1.0]), 0.5), ("expn", 1, (0, 1.0), -2 / np.e),
    ("berp", 0, (0.0,), 0), ("beip", 0, (0.0,), 0.5), ("it2struve0", 0, (0.0,), -2 / _PI),
    ("cbrt", 0, (0.0,), np.inf), ("kn", 1, (0, 1.0), -special.k1(1.0)),
    ("kn", 1, (0.5, 1.0), -special.k1(1.0)), ("yn", 1, (0, 1.0), -special.y1(1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "k", "args", "limits"), LIMITS)
def test_limits_where_the_formula_has_none(
    name: str, k: int, args: Any, limits: Any, x64: None
) -> None:
    if not hasattr(special, name):
        pytest.skip(f"this SciPy has no scipy.special.{name}")
    full = np.broadcast_arrays(*args)
    (got,) = slopes(jaxc.ufunc(getattr(special, name)), full, k)
    np.testing.assert_allclose(got, np.broadcast_to(limits, got.shape), rtol=1e-9, atol=1e-15)


def test_limits_of_several_outputs(x64: None) -> None:
    zero = [np.zeros(())]
    assert slopes(jaxc.ufunc(special.sici), zero, 0)[0] == 1
    assert slopes(jaxc.ufunc(special.shichi), zero, 0)[0] == 1
    assert slopes(jaxc.ufunc(special.it2j0y0), zero, 0)[0] == 0
    assert slopes(jaxc.ufunc(special.kelvin), zero, 0)[2] == 0.5j


def test_the_documentation_lists_what_has_derivatives() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/ufuncs.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    listed = re.findall(r"`(\w+)`", " ".join(row.split("|")[2] for row in rows))
    assert sorted(listed) == sorted(ufunc_table.SPECIAL)
    for row in rows:
        _, _, names, by, _ = row.split("|")
        for name in re.findall(r"`(\w+)`", names):
            rule: Any = ufunc_table.SPECIAL[name]
            if by.strip() == "all" or len(rule) > 1:
                assert (by.strip() == "all") == (None not in rule), name


def test_second_derivatives_where_series_take_over(x64: None) -> None:
    def second(u: Any, x: float) -> float:
        return float(jax.grad(jax.grad(lambda x: jax.tree.leaves(jaxc.ufunc(u)(x))[0]))(x))

    assert second(special.ellipk, 0.0) == pytest.approx(9 * np.pi / 64)
    assert second(special.ellipe, 0.0) == pytest.approx(-3 * np.pi / 64)
    assert second(special.spence, 1.0) == pytest.approx(0.5)
    assert second(special.exprel, 0.0) == pytest.approx(1 / 3)
    assert second(special.sici, 0.0) == 0
    assert second(special.rgamma, 0.0) == pytest.approx(2 * np.euler_gamma)


def test_reverse_mode_second_order_and_vmap(x64: None) -> None:
    jv = jaxc.ufunc(special.jv)
    x = jnp.linspace(0.5, 3, 4)
    first = jax.vmap(jax.grad(jv, 1), (None, 0))(2.0, x)
    np.testing.assert_allclose(first, special.jvp(2, x, 1), rtol=1e-12)
    second = jax.vmap(jax.grad(jax.grad(jv, 1), 1), (None, 0))(2.0, x)
    np.testing.assert_allclose(second, special.jvp(2, x, 2), rtol=1e-11)
    total = jax.grad(lambda v: jaxc.ufunc(np.hypot)(v, x).sum())(1.0)
    np.testing.assert_allclose(total, (1 / np.hypot(1, x)).sum(), rtol=1e-12)


def test_derivatives_of_numpy_are_those_of_jax_numpy(x64: None) -> None:
    x = jnp.linspace(0.5, 3, 4)
    for name in ("sin", "log1p", "arctan2", "multiply", "logaddexp", "matmul", "exp2"):
        u = jaxc.ufunc(getattr(np, name))
        args = [x, x + 1][: u._ufunc.nin] if name != "matmul" else [x[None], x[:, None]]
        ours = jax.jacrev(u)(*args)
        np.testing.assert_allclose(ours, jax.jacrev(getattr(jnp, name))(*args), rtol=1e-12)


def test_what_has_no_derivative_says_so(x64: None) -> None:
    with pytest.raises(
        NotImplementedError, match=r"jv: no derivative by 'v' is known; jaxc\.ufunc"
    ):
        jax.grad(jaxc.ufunc(special.jv))(1.5, 2.0)
    with pytest.raises(NotImplementedError, match=r"zetac has no derivative: give a rule with"):
        jax.grad(jaxc.ufunc(special.zetac))(2.0)


def test_a_rule_of_ones_own(x64: None) -> None:
    pdtr = jaxc.ufunc(special.pdtr)

    @pdtr.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (k, m), (_, dm) = primals, tangents
        return pdtr(k, m), -jnp.exp(
            -m + k * jnp.log(m) - jaxc.ufunc(special.gammaln)(k + 1)
        ) * dm

    slope = jax.grad(lambda m: pdtr(2.0, m))(2.0)
    h = 1e-6
    expected = (special.pdtr(2.0, 2 + h) - special.pdtr(2.0, 2 - h)) / (2 * h)
    assert slope == pytest.approx(expected, rel=1e-8)


# ---- numba ----


@needs_numba
def test_numba_vectorize(x64: None) -> None:
    @numba.vectorize(["float32(float32, float32)", "float64(float64, float64)"])
    def blend(a: Any, b: Any) -> Any:
        return a * 0.25 + b

    made = jaxc.ufunc(blend)
    x = np.linspace(0, 1, 5)
    np.testing.assert_array_equal(jax.jit(made)(x, 2.0), blend(x, 2.0))
    assert made(x.astype(np.float32), 2.0).dtype == np.float32
    assert "blend(double a, double b, double *out)" in made.members[1].prototype
    np.testing.assert_array_equal(made(b=x, a=1.0), blend(1.0, x))


@needs_numba
def test_numba_without_types_compiles_what_is_called(x64: None) -> None:
    @numba.vectorize
    def product(a: Any, b: Any) -> Any:
        return a * b

    made = jaxc.ufunc(product)
    x = np.arange(4.0)
    np.testing.assert_array_equal(made(x, x), x * x)
    assert made(x.astype(np.float32), x.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(jax.vmap(made, (0, None))(x, x), np.outer(x, x))


@needs_numba
def test_numba_guvectorize(x64: None) -> None:
    @numba.guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(k)->(n)")
    def smooth(x: Any, w: Any, y: Any) -> None:
        for i in range(x.shape[0]):
            y[i] = 0.0
            for j in range(w.shape[0]):
                if i >= j:
                    y[i] += x[i - j] * w[j]

    x, w = np.random.default_rng(0).normal(size=(2, 3, 8)), np.array([1.0, 2.0])
    np.testing.assert_allclose(jax.jit(jaxc.ufunc(smooth))(x, w), smooth(x, w), rtol=1e-14)
    lazy = numba.guvectorize("(n)->(n)")(lambda x, y: None)
    with pytest.raises(
        TypeError, match=r"numba has compiled no loop of it yet; give numba\.guv"
    ):
        jaxc.ufunc(lazy)


@needs_numba
def test_exceptions_of_numba_arrive() -> None:
    @numba.vectorize(["float32(float32)"])
    def root(x: Any) -> Any:
        if x < 0:
            raise ValueError("negative")
        return x**0.5

    made = jax.jit(jaxc.ufunc(root))
    np.testing.assert_array_equal(made(np.ones(3, np.float32)), 1)
    with pytest.raises(JaxRuntimeError, match=r"root: ValueError: negative(\n|$)"):
        made(np.array([1, -1], np.float32)).block_until_ready()
    threads = [threading.Thread(target=made, args=(np.ones(100_000, np.float32),))
               for _ in range(4)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@needs_numba
def test_loops_that_write_into_inputs_are_refused() -> None:
    @numba.guvectorize(["float32[:], float32[:]"], "(n)->(n)", writable_args=(0,))
    def overwrites(x: Any, out: Any) -> None:
        x[0] = 5
        out[:] = x

    with pytest.raises(TypeError, match="overwrites: writes into its inputs"):
        jaxc.ufunc(overwrites)


def test_exceptions_of_a_loop_arrive_and_stay_with_it() -> None:
    power = jaxc.ufunc(np.power)

    @jaxc.callback("()->()")
    def innocent(x: Any, out: Any) -> None:
        out[()] = float("1.5")

    text = "power: ValueError: Integers to negative integer powers are not allowed"
    for n in (1, 3_000_000):
        threes = jnp.full(n, 3, jnp.int32)
        with pytest.raises(JaxRuntimeError, match=text):
            jax.block_until_ready(jax.jit(power)(threes, -threes))
    with pytest.raises(JaxRuntimeError, match=text):
        jax.block_until_ready(jax.jit(lambda x: innocent(power(x, -x) * 1.0))(jnp.int32(3)))
    with (
        special.errstate(all="raise"),
        pytest.raises(JaxRuntimeError, match="psi: SpecialFunctionError"),
    ):
        jaxc.ufunc(special.psi)(0.0)
    assert innocent(1.0) == 1.5


def test_masks_and_exponents_are_constants_to_derivatives() -> None:
    isnan, frexp = jaxc.ufunc(np.isnan), jaxc.ufunc(np.frexp)
    x = jnp.array([1.0, 7.0])
    slope = jax.grad(lambda x: jnp.where(isnan(x), 0.0, x).sum())(x)
    np.testing.assert_array_equal(slope, [1, 1])
    np.testing.assert_array_equal(jax.grad(lambda x: frexp(x)[0].sum())(x), [0.5, 0.125])


# ---- refusals, processes ----


def test_what_is_no_ufunc_is_refused() -> None:
    with pytest.raises(TypeError, match=r"jaxc\.ufunc takes a ufunc, got 3"):
        jaxc.ufunc(3)
    with pytest.raises(TypeError, match=r"a Python function goes through jaxc\.callback"):
        jaxc.ufunc(len)
    with pytest.raises(
        TypeError,
        match=r"has no inner loop over numbers, only O->O; what is over Python objects",
    ):
        jaxc.ufunc(np.frompyfunc(lambda x: x, 1, 1))
    with pytest.raises(TypeError, match="has no inner loop over numbers"):
        jaxc.ufunc(np.isnat)
    # a ufunc that checks sizes in each call: (n),(k)->(n-k+1) of a C function is one
    fir = jaxc.compile(
        "void fir(int n, int k, const float x[n], const float w[k], float y[n - k + 1]) {\n"
        "  for (int i = 0; i < n - k + 1; i++) y[i] = x[i] * w[0];\n}\n"
    ).fir
    with pytest.raises(
        TypeError, match=r"fir: \(n\),\(k\)->\(n_k_1\) is not all that it asks of"
    ):
        jaxc.ufunc(fir.numpy)


def test_the_same_ufunc_is_the_same_function() -> None:
    assert jaxc.ufunc(special.jv) is jaxc.ufunc(special.jv)
    jv = jaxc.ufunc(special.jv)
    assert pickle.loads(pickle.dumps(jv)) is jv
    member = jv.members[0]
    assert pickle.loads(pickle.dumps(member)) == member
    assert jv.__name__ == "jv"
    assert repr(jv) == f"<jaxc ufunc jv, {len(jv.members)} loops>"
    assert "Bessel" in (jv.__doc__ or "")


def test_arguments_by_name() -> None:
    jv = jaxc.ufunc(special.jv)
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(jv(z=x, v=1.0), jv(1.0, x))
    with pytest.raises(TypeError, match=r"argument 'z' is missing|no argument 'q'"):
        jv(1.0, q=x)


def test_a_program_in_another_process(tmp_path: Any) -> None:
    pytest.importorskip("flatbuffers", reason="exporting needs flatbuffers")
    path = tmp_path / "program"
    x = np.linspace(0, 3, 4).astype(np.float32)
    f = jax.jit(lambda x: jaxc.ufunc(special.jv)(1.0, x) + jaxc.ufunc(np.hypot)(x, x))
    path.write_bytes(jaxc.export(f, x).serialize())
    text = f"""
    import numpy as np, jaxc, sys
    program = jaxc.deserialize(open({str(path)!r}, "rb").read())
    print(np.asarray(program.call(np.linspace(0, 3, 4).astype(np.float32))).tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True, text=True, timeout=120, env=os.environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(np.asarray(f(x)).tolist())


def test_a_program_with_a_ufunc_that_is_not_there(tmp_path: Any) -> None:
    from jaxc import exporting

    f = jax.jit(lambda x: jaxc.ufunc(np.hypot)(x, x))
    exported = jaxc.export(f, np.ones(3, np.float32))
    (target,) = exporting.targets_of(exported)
    assert target.startswith("jaxc:ufunc/numpy:hypot[float32,float32,float32]:")
    with pytest.raises(
        ValueError, match=r"is a ufunc of this process, which no library contain"
    ):
        jaxc.bundle(tmp_path / "x", exported)


def test_check_takes_ufuncs(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.linspace(0.5, 2, 4).astype(np.float32)
    outcomes = jaxc.check(jaxc.ufunc(special.jv), x, x)
    names = {outcome.what for outcome in outcomes}
    assert "jvp by z, finite differences" in names
    assert "jvp by v, finite differences" not in names
    assert "jv ()" in capsys.readouterr().out
