"""All that jaxc takes from JAX beyond its public names, and all that looks at its version.

JAX 0.10.2 and 0.12 are tested. Private names are looked up once, below, with what is done
without them, so that a change in JAX is mended here and nowhere else, and costs at most the
feature that the name is for.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.core
import jax.extend.core
import jax.ffi
import jaxlib.xla_client as _xla
from jax.interpreters import ad, mlir, xla
from jax.sharding import NamedSharding, PartitionSpec

try:
    from jax._src import core as _core
    from jax._src import effects as _effects
except ImportError:  # they are private and may move
    _core = _effects = None

Primitive = jax.extend.core.Primitive
ShapedArray = jax.core.ShapedArray
Tracer = jax.core.Tracer

#: (*arrays) -> arrays that vary over the same mesh axes. 0.8 and 0.9 call it otherwise.
_insert_varying = getattr(
    _core, "auto_insert_reshard", getattr(_core, "standard_insert_pvary", None)
)
#: (name, *avals) -> the mesh axes over which operands, and so results, vary.
_varying_axes = getattr(_core, "standard_vma_rule", None)
#: The type of that fact in an abstract value; 0.8 and 0.9 take the bare set.
_manual_axis_type = getattr(_core, "ManualAxisType", None)
#: The abstract value of a token.
_abstract_token = getattr(_core, "abstract_token", None)


def register_target(name: str, capsule: Any, platform: str) -> None:
    """Registers a handler with XLA: once the platform's client exists, at once."""
    jax.ffi.register_ffi_target(name, capsule, platform=platform)


def eager(primitive: Any) -> Callable[..., Any]:
    """The implementation of a primitive outside jit: compiles once for each shape."""

    def implementation(*args: Any, **params: Any) -> Any:
        return xla.apply_primitive(primitive, *args, **params)

    return implementation


def match_varying(args: Sequence[Any]) -> Sequence[Any]:
    """Inside shard_map, lets all operands vary over the union of their mesh axes."""
    if _insert_varying is None or not args:
        return args
    out: Sequence[Any] = _insert_varying(*args)
    return out


def result_aval(
    shape: Sequence[Any], dtype: Any, operands: Sequence[Any], leading: Sequence[Any] = ()
) -> Any:
    """The abstract value of a result: it varies over the mesh axes of the operands.

    Args:
      leading: mesh axes of its leading axes in explicit mode; of the others there are none.
    """
    if _varying_axes is None:
        return ShapedArray(tuple(shape), dtype)
    varying = _varying_axes("jaxc_call", *operands)
    facts: dict[str, Any] = {"vma": varying}
    if _manual_axis_type is not None:
        facts = {"manual_axis_type": _manual_axis_type(varying=varying)}
    spec = PartitionSpec(*leading, *[None] * (len(shape) - len(leading)))
    sharding = NamedSharding(jax.sharding.get_abstract_mesh(), spec)
    return ShapedArray(tuple(shape), dtype, sharding=sharding, **facts)


def zero_tangent(primal: Any) -> Any:
    """The symbolic zero tangent of a value; float0 for integers."""
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


def sharded_axes(aval: Any) -> dict[int, Any]:
    """Axis -> mesh axes of an operand whose sharding is part of its type (explicit mode)."""
    spec = aval.sharding.spec
    return {axis: names for axis, names in enumerate(spec) if names is not None}


class OrderedEffect(getattr(_effects, "Effect", object)):  # type: ignore[misc]
    """The effect of ``#pragma jaxc effect``: calls happen, and in the program's order."""

    def __str__(self) -> str:
        return "jaxc"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrderedEffect)

    def __hash__(self) -> int:
        return hash(OrderedEffect)


EFFECT = OrderedEffect()
for _kind in (
    "ordered_effects",
    "shardable_ordered_effects",
    "lowerable_effects",
    "control_flow_allowed_effects",
    "custom_derivatives_allowed_effects",
    "remat_allowed_effects",
    "partial_eval_kept_effects",
):
    if hasattr(_effects, _kind):
        getattr(_effects, _kind).add_type(OrderedEffect)


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
        avals_in=[_abstract_token, *ctx.avals_in],
        avals_out=[_abstract_token, *ctx.avals_out],
    )
    token, *results = call(with_token, token, *args)
    ctx.set_tokens_out(mlir.TokenSet({EFFECT: token}))
    return results


# ---- partitioning by name ----


def device_count(ctx: mlir.LoweringRuleContext) -> int:
    """Devices among which the compiler may divide the program that is lowered; 1 where it
    may not, as inside shard_map, where every axis of the mesh is manual."""
    context = ctx.module_context.axis_context
    count = getattr(context, "num_devices", None)
    if count is not None:
        return int(count)
    mesh = getattr(context, "mesh", None)
    if mesh is None:
        return 1
    manual: frozenset[Any] = getattr(context, "manual_axes", frozenset())
    return int(math.prod(n for name, n in mesh.shape.items() if name not in manual))


def register_partitioner(target: str, partitioner: Any) -> None:
    """Tells XLA who divides calls of a target; ``partitioner`` as in sharding.py."""
    register = getattr(_xla, "register_custom_call_partitioner", None)
    if register is None:
        return  # calls are then gathered
    register(
        target,
        partitioner.propagate,
        partitioner.partition,
        partitioner.infer,
        can_side_effecting_have_replicated_sharding=True,
    )


def tiles(sharding: Any) -> tuple[list[int], Sequence[int]]:
    """Tiles along each axis, and one number more for devices that share; and all devices."""
    sizes = list(sharding.tile_assignment_dimensions())
    if not sharding.replicate_on_last_tile_dim():
        sizes.append(1)
    return sizes, sharding.tile_assignment_devices()


def is_manual(sharding: Any) -> bool:
    return bool(sharding.is_manual())


def whole_sharding() -> Any:
    return _xla.HloSharding.replicate()


def tiled_sharding(sizes: Sequence[int], devices: Sequence[int]) -> Any:
    """The sharding with tiles along each axis; the last number is of devices that share."""
    proto = _xla.OpSharding()
    proto.type = _xla.OpSharding.Type.OTHER
    share = sizes[-1] > 1
    proto.tile_assignment_dimensions = list(sizes if share else sizes[:-1])
    proto.tile_assignment_devices = [int(device) for device in devices]
    proto.replicate_on_last_tile_dim = share
    return _xla.HloSharding.from_proto(proto)


def tuple_sharding(shape: Any, parts: Sequence[Any]) -> Any:
    return _xla.HloSharding.tuple_sharding(shape, list(parts))


def element_type(shape: Any) -> str:
    """The element type of an XLA shape, as MLIR writes it."""
    with mlir.make_ir_context():
        return str(mlir.dtype_to_ir_type(shape.numpy_dtype()))


def module_bytes(text: str) -> bytes:
    """A program from its text, as XLA's partitioner takes it."""
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(text)
        out = io.BytesIO()
        module.operation.write_bytecode(out)
        return out.getvalue()
