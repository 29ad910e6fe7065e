"""Derivatives of ufuncs that are known, as rules for ``defjvp``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from jaxc.ufunc_formulas import Rule
from jaxc.ufunc_table import SPECIAL

if TYPE_CHECKING:
    from jaxc.function import Function


def rule(module: str | None, name: str) -> Rule | Callable[..., Any] | None:
    """What is known of a ufunc: its partial derivatives, or a function of jax.numpy that is
    the same and whose derivatives JAX has."""
    if module == "scipy.special":
        return SPECIAL.get(name)
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
