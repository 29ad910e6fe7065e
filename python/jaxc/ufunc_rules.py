"""Derivatives of ufuncs that are known, in terms of other ufuncs.

Formulas are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov), whose
numbers stand beside them. An input without one cannot be differentiated by: that is an error,
not a zero.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

if TYPE_CHECKING:
    from jaxc.function import Function

#: (inputs and then outputs) -> partial derivative; a tuple of one for each output.
Partial = Callable[..., Any]
#: A partial derivative by each input, None where there is none.
Rule = Sequence[Partial | None]

_SQRT_PI = float(np.sqrt(np.pi))


class _Special:
    """scipy.special's ufuncs, adopted when a formula names them."""

    def __getattr__(self, name: str) -> Any:
        from jaxc.ufuncs import ufunc

        return ufunc(getattr(importlib.import_module("scipy.special"), name))


_s = _Special()


def _half_difference(name: str, sign: float = 1, minus: float = 1) -> Partial:
    """sign (f(v - 1, z) - minus f(v + 1, z)) / 2."""

    def partial(v: Any, z: Any, out: Any) -> Any:
        f = getattr(_s, name)
        return sign * (f(v - 1, z) - minus * f(v + 1, z)) / 2

    return partial


def _trigamma(x: Any) -> Any:
    """The derivative of psi; 5.15.6 reflects negative x."""
    reflected = jnp.where(x > 0, x, 1 - x)
    positive = jax.lax.zeta(jnp.full_like(x, 2), reflected)
    return jnp.where(x > 0, positive, (jnp.pi / jnp.sin(jnp.pi * x)) ** 2 - positive)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return jnp.exp((a - 1) * jnp.log(x) + (b - 1) * jnp.log1p(-x) - _s.betaln(a, b))


def _gamma_density(a: Any, x: Any) -> Any:
    return jnp.exp((a - 1) * jnp.log(x) - x - _s.gammaln(a))


def _away_from(x: Any, place: float, value: Any, limit: float) -> Any:
    return jnp.where(x == place, limit, value)


_SPECIAL: Mapping[str, Rule] = {
    # Bessel functions: 10.6.1 and 10.29.1, by z alone
    "jv": (None, _half_difference("jv")),
    "yv": (None, _half_difference("yv")),
    "hankel1": (None, _half_difference("hankel1")),
    "hankel2": (None, _half_difference("hankel2")),
    "iv": (None, _half_difference("iv", minus=-1)),
    "kv": (None, _half_difference("kv", sign=-1, minus=-1)),
    "kve": (None, lambda v, z, y: y - (_s.kve(v - 1, z) + _s.kve(v + 1, z)) / 2),
    "j0": (lambda x, y: -_s.j1(x),),
    "j1": (lambda x, y: (_s.j0(x) - _s.jv(2, x)) / 2,),
    "y0": (lambda x, y: -_s.y1(x),),
    "y1": (lambda x, y: (_s.y0(x) - _s.yv(2, x)) / 2,),
    "i0": (lambda x, y: _s.i1(x),),
    "i1": (lambda x, y: (_s.i0(x) + _s.iv(2, x)) / 2,),
    "i0e": (lambda x, y: _s.i1e(x) - jnp.sign(x) * y,),
    "i1e": (lambda x, y: (_s.i0e(x) + _s.ive(2, x)) / 2 - jnp.sign(x) * y,),
    "k0": (lambda x, y: -_s.k1(x),),
    "k1": (lambda x, y: -(_s.k0(x) + _s.kv(2, x)) / 2,),
    "k0e": (lambda x, y: y - _s.k1e(x),),
    "k1e": (lambda x, y: y - (_s.k0e(x) + _s.kve(2, x)) / 2,),
    # 11.4.29 and 11.4.30
    "struve": (
        None,
        lambda v, z, y: (
            _s.struve(v - 1, z)
            - _s.struve(v + 1, z)
            + (z / 2) ** v / (_SQRT_PI * _s.gamma(v + 1.5))
        )
        / 2,
    ),
    "airy": (
        lambda z, ai, aip, bi, bip: (aip, z * ai, bip, z * bi),  # 9.2.1
    ),
    # gamma and beta functions: 5.2.2, 5.12, 8.8.13, 8.17.20
    "gamma": (lambda x, y: y * _s.psi(x),),
    "gammaln": (lambda x, y: _s.psi(x),),
    "loggamma": (lambda x, y: _s.psi(x),),
    "psi": (lambda x, y: _trigamma(x),),
    "beta": (
        lambda a, b, y: y * (_s.psi(a) - _s.psi(a + b)),
        lambda a, b, y: y * (_s.psi(b) - _s.psi(a + b)),
    ),
    "betaln": (
        lambda a, b, y: _s.psi(a) - _s.psi(a + b),
        lambda a, b, y: _s.psi(b) - _s.psi(a + b),
    ),
    "gammainc": (
        lambda a, x, y: jax.lax.igamma_grad_a(*jnp.broadcast_arrays(a, x)),
        lambda a, x, y: _gamma_density(a, x),
    ),
    "gammaincc": (
        lambda a, x, y: -jax.lax.igamma_grad_a(*jnp.broadcast_arrays(a, x)),
        lambda a, x, y: -_gamma_density(a, x),
    ),
    "gammaincinv": (None, lambda a, p, x: 1 / _gamma_density(a, x)),
    "gammainccinv": (None, lambda a, p, x: -1 / _gamma_density(a, x)),
    "betainc": (None, None, lambda a, b, x, y: _beta_density(a, b, x)),
    "betaincc": (None, None, lambda a, b, x, y: -_beta_density(a, b, x)),
    "betaincinv": (None, None, lambda a, b, p, x: 1 / _beta_density(a, b, x)),
    # error functions: 7.2, 7.10.2
    "erf": (lambda x, y: 2 / _SQRT_PI * jnp.exp(-x * x),),
    "erfc": (lambda x, y: -2 / _SQRT_PI * jnp.exp(-x * x),),
    "erfcx": (lambda x, y: 2 * x * y - 2 / _SQRT_PI,),
    "erfi": (lambda x, y: 2 / _SQRT_PI * jnp.exp(x * x),),
    "erfinv": (lambda x, y: _SQRT_PI / 2 * jnp.exp(y * y),),
    "erfcinv": (lambda x, y: -_SQRT_PI / 2 * jnp.exp(y * y),),
    "dawsn": (lambda x, y: 1 - 2 * x * y,),
    "wofz": (lambda z, y: 2j / _SQRT_PI - 2 * z * y,),
    "ndtr": (lambda x, y: jnp.exp(-x * x / 2) / np.sqrt(2 * np.pi),),
    "ndtri": (lambda x, y: np.sqrt(2 * np.pi) * jnp.exp(y * y / 2),),
    "log_ndtr": (lambda x, y: jnp.exp(-x * x / 2 - y) / np.sqrt(2 * np.pi),),
    # integrals: 6.2, 7.2.7, 8.19.13
    "expi": (lambda x, y: jnp.exp(x) / x,),
    "exp1": (lambda x, y: -jnp.exp(-x) / x,),
    "expn": (None, lambda n, x, y: -_s.expn(n - 1, x)),
    "sici": (
        lambda x, si, ci: (_away_from(x, 0, jnp.sin(x) / x, 1), jnp.cos(x) / x),
    ),
    "shichi": (
        lambda x, shi, chi: (_away_from(x, 0, jnp.sinh(x) / x, 1), jnp.cosh(x) / x),
    ),
    "fresnel": (
        lambda x, s, c: (jnp.sin(jnp.pi / 2 * x * x), jnp.cos(jnp.pi / 2 * x * x)),
    ),
    "spence": (lambda x, y: _away_from(x, 1, jnp.log(x) / (1 - x), -1),),  # 25.12.2
    # elliptic integrals by the parameter m: 19.4.1, 19.4.2
    "ellipk": (
        lambda m, y: _away_from(
            m, 0, (_s.ellipe(m) / (1 - m) - y) / (2 * m), float(np.pi / 8)
        ),
    ),
    "ellipe": (
        lambda m, y: _away_from(m, 0, (y - _s.ellipk(m)) / (2 * m), float(-np.pi / 8)),
    ),
    # hypergeometric functions by z: 13.3.15, 13.3.22, 15.5.1, 16.3.1
    "hyp0f1": (None, lambda v, z, y: _s.hyp0f1(v + 1, z) / v),
    "hyp1f1": (None, None, lambda a, b, z, y: a / b * _s.hyp1f1(a + 1, b + 1, z)),
    "hyperu": (None, None, lambda a, b, z, y: -a * _s.hyperu(a + 1, b + 1, z)),
    "hyp2f1": (
        None, None, None,
        lambda a, b, c, z, y: a * b / c * _s.hyp2f1(a + 1, b + 1, c + 1, z),
    ),
    # polynomials: 18.9.21, 18.9.23, 18.9.25, 18.9.27
    "eval_chebyt": (None, lambda n, x, y: n * _s.eval_chebyu(n - 1, x)),
    "eval_hermite": (None, lambda n, x, y: 2 * n * _s.eval_hermite(n - 1, x)),
    "eval_hermitenorm": (None, lambda n, x, y: n * _s.eval_hermitenorm(n - 1, x)),
    "eval_laguerre": (
        None, lambda n, x, y: -_s.eval_genlaguerre(n - 1, jnp.ones_like(x), x)
    ),
    # statistics and information
    "expit": (lambda x, y: y * (1 - y),),
    "logit": (lambda x, y: 1 / (x * (1 - x)),),
    "log_expit": (lambda x, y: _s.expit(-x),),
    "entr": (lambda x, y: -jnp.log(x) - 1,),
    "rel_entr": (lambda x, y, out: jnp.log(x / y) + 1, lambda x, y, out: -x / y),
    "kl_div": (lambda x, y, out: jnp.log(x / y), lambda x, y, out: 1 - x / y),
    "xlogy": (lambda x, y, out: jnp.log(y), lambda x, y, out: x / y),
    "xlog1py": (lambda x, y, out: jnp.log1p(y), lambda x, y, out: x / (1 + y)),
    "boxcox": (lambda x, k, out: x ** (k - 1), None),
    "exp2": (lambda x, y: y * np.log(2),),
    "exp10": (lambda x, y: y * np.log(10),),
    "expm1": (lambda x, y: y + 1,),
    "log1p": (lambda x, y: 1 / (1 + x),),
    "cbrt": (lambda x, y: y / (3 * x),),
    "cosm1": (lambda x, y: -jnp.sin(x),),
}  # fmt: skip


def rule(module: str | None, name: str) -> Rule | Callable[..., Any] | None:
    """What is known of a ufunc: its partial derivatives, or a function of jax.numpy that is
    the same and whose derivatives JAX has."""
    if module == "scipy.special":
        return _SPECIAL.get(name)
    if module == "numpy":
        same = getattr(jnp, name, None)
        return same if isinstance(getattr(np, name, None), np.ufunc) else None
    return None


def jvp(function: Function, known: Rule | Callable[..., Any]) -> Callable[..., Any]:
    """The rule for one inner loop, as ``defjvp`` takes it, with symbolic zeros."""
    parameters = function.description.parameters[1:]
    if callable(known):
        return _of_jax(function, known)
    partials: Rule = known

    def apply(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        out = function(*primals)
        outs = out if isinstance(out, tuple) else (out,)
        totals: list[Any] = [None] * len(outs)
        for k, tangent in enumerate(tangents):
            if type(tangent) is SymbolicZero or tangent.dtype == jax.dtypes.float0:
                continue
            partial = partials[k]
            if partial is None:
                raise NotImplementedError(
                    f"{function.__name__}: no derivative by '{parameters[k].name}' is known; "
                    f"jaxc.ufunc(...).defjvp gives one, and jax.lax.stop_gradient says that "
                    f"it is not wanted"
                )
            slopes = partial(*primals, *outs)
            slopes = slopes if isinstance(slopes, tuple) else (slopes,)
            for i, slope in enumerate(slopes):
                term = (slope * tangent).astype(outs[i].dtype)
                totals[i] = term if totals[i] is None else totals[i] + term
        results = tuple(
            jnp.zeros_like(o) if t is None else jnp.broadcast_to(t, o.shape)
            for o, t in zip(outs, totals, strict=True)
        )
        return out, results if isinstance(out, tuple) else results[0]

    return apply


def _like(tangent: Any, primal: Any) -> Any:
    """In the primal's dtype; one that has none, as of an integer, stays as it is."""
    if tangent.dtype == jax.dtypes.float0:
        return tangent
    return tangent.astype(primal.dtype)


def _of_jax(function: Function, same: Callable[..., Any]) -> Callable[..., Any]:
    def apply(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        moved = [k for k, t in enumerate(tangents) if type(t) is not SymbolicZero]

        def of_moved(*values: Any) -> Any:
            given = list(primals)
            for k, value in zip(moved, values, strict=True):
                given[k] = value
            return same(*given)

        out = function(*primals)
        at, along = [primals[k] for k in moved], [tangents[k] for k in moved]
        _, tangent = jax.jvp(of_moved, at, along)
        return out, jax.tree.map(_like, tangent, out)

    return apply
