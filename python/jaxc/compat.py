"""All that jaxc takes from JAX beyond its public names, and all that looks at its version.

JAX 0.10.2 and 0.12 are tested. Each name below says what it stands for, so that a change
in JAX is mended here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.ffi
from jax._src import core as _core
from jax._src import dispatch as _dispatch
from jax._src import effects as _effects
from jax.interpreters import mlir

Primitive = jax.extend.core.Primitive
ShapedArray = jax.core.ShapedArray
Tracer = jax.core.Tracer


def register_target(name: str, capsule: Any, platform: str) -> None:
    """Registers a handler with XLA: once the platform's client exists, at once."""
    jax.ffi.register_ffi_target(name, capsule, platform=platform)


def eager(primitive: Primitive) -> Callable[..., Any]:
    """The implementation of a primitive outside jit: compiles once for each shape."""

    def implementation(*args: Any, **params: Any) -> Any:
        return _dispatch.apply_primitive(primitive, *args, **params)

    return implementation


def match_varying(args: Sequence[Any]) -> Sequence[Any]:
    """Inside shard_map, lets all operands vary over the union of their mesh axes."""
    out: Sequence[Any] = _core.auto_insert_reshard(*args)
    return out


def result_aval(shape: Sequence[Any], dtype: Any, operands: Sequence[Any]) -> ShapedArray:
    """The abstract value of a result: it varies over the mesh axes of the operands."""
    varying = _core.standard_vma_rule("jaxc_call", *operands)
    return ShapedArray(
        tuple(shape),
        dtype,
        sharding=_core.get_cur_mesh_sharding(_core.P(*[None] * len(shape))),
        manual_axis_type=_core.ManualAxisType(varying=varying),
    )


def sharded_axes(aval: Any) -> dict[int, Any]:
    """Axis -> mesh axes of an operand whose sharding is part of its type (explicit mode)."""
    spec = aval.sharding.spec
    return {axis: names for axis, names in enumerate(spec) if names is not None}


class OrderedEffect(_effects.Effect):
    """The effect of ``#pragma jaxc effect``: calls happen, and in the program's order."""

    __slots__ = ()

    def __str__(self) -> str:
        return "jaxc"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrderedEffect)

    def __hash__(self) -> int:
        return hash(OrderedEffect)


EFFECT = OrderedEffect()
for _allowed in (
    _effects.ordered_effects,
    _effects.shardable_ordered_effects,
    _effects.lowerable_effects,
    _effects.control_flow_allowed_effects,
    _effects.custom_derivatives_allowed_effects,
    _effects.remat_allowed_effects,
    _effects.partial_eval_kept_effects,
):
    _allowed.add_type(OrderedEffect)


def ordered_call(
    ctx: mlir.LoweringRuleContext,
    call: Callable[..., Sequence[Any]],
    args: Sequence[Any],
) -> Sequence[Any]:
    """Emits ``call`` with the effect's token as first operand and first result.

    ``call(ctx, *operands)`` returns the results of a custom call.
    """
    token = ctx.tokens_in.get(EFFECT)
    with_token = ctx.replace(
        avals_in=[_core.abstract_token, *ctx.avals_in],
        avals_out=[_core.abstract_token, *ctx.avals_out],
    )
    token, *results = call(with_token, token, *args)
    ctx.set_tokens_out(mlir.TokenSet({EFFECT: token}))
    return results
