"""The primitive that calls a C function: abstract evaluation, lowering, batching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import batching, mlir

from jaxc import compat, shapes, sharding
from jaxc.description import OPERANDS, RESULTS, STRING, Role

if TYPE_CHECKING:
    from jaxc.function import Function

call_p = compat.Primitive("jaxc_call")
call_p.multiple_results = True
call_p.def_impl(compat.eager(call_p))

#: Values of static parameters and static dimensions: ((name, value), ...).
Statics = tuple[tuple[str, Any], ...]


def _abstract_eval(
    *operands: Any, function: Function, statics: Statics
) -> tuple[list[Any], set[Any]]:
    description = function.description
    parameters = description.with_role(*OPERANDS)
    leading = sharding.explicit(
        function.__name__, operands, [p.name for p in parameters], [p.rank for p in parameters]
    )
    results = shapes.infer(description, [a.shape for a in operands], dict(statics))
    dtypes = [p.numpy_dtype for p in description.with_role(*RESULTS)]
    avals = [
        compat.result_aval(shape, dtype, operands, leading)
        for shape, dtype in zip(results, dtypes, strict=True)
    ]
    return avals, {compat.EFFECT} if description.effect else set()


call_p.def_effectful_abstract_eval(_abstract_eval)


def attributes(function: Function, statics: Statics) -> dict[str, Any]:
    """Static values as JAX writes them into the program, with exact types."""
    types = {p.name: p for p in function.description.with_role(Role.STATIC)}
    out: dict[str, Any] = {}
    for name, value in statics:
        if name not in types:
            out[name] = np.int64(value)  # a dimension
        elif types[name].dtype == STRING:
            out[name] = str(value)
        else:
            dtype = types[name].numpy_dtype
            if dtype.kind == "c":  # JAX has no complex attribute: two real numbers
                part = np.float32 if dtype == np.complex64 else np.float64
                out[name] = np.array([value.real, value.imag], part)
            elif dtype.kind == "b":
                out[name] = bool(value)
            elif dtype == np.uint64:  # JAX has none above 2^63: the same bits, signed
                out[name] = np.uint64(value).astype(np.int64)
            else:
                out[name] = dtype.type(value)
    return out


def _aliases(function: Function, ctx: mlir.LoweringRuleContext) -> dict[int, int]:
    """Operand -> result of each inout parameter whose operand has all its rows."""
    description = function.description
    first = int(description.effect)
    operands = description.with_role(*OPERANDS)
    results = description.with_role(*RESULTS)
    return {
        first + operands.index(p): first + results.index(p)
        for p in description.with_role(Role.INOUT)
        if ctx.avals_in[operands.index(p)].shape == ctx.avals_out[results.index(p)].shape
    }


def _sharding(
    function: Function, ctx: mlir.LoweringRuleContext
) -> dict[str, mlir.ir.Attribute] | None:
    """What the call says of shardings, in a program for several devices."""
    if compat.device_count(ctx) == 1:
        return None
    if function.description.effect:
        raise NotImplementedError(
            f"{function.__name__}: has effects, and this program is for several devices, on "
            "which they would have no order; call it inside jax.shard_map, where each device "
            "calls it for itself"
        )
    shapes_in = [aval.shape for aval in ctx.avals_in]
    text = sharding.rule(function.description, shapes_in, [a.shape for a in ctx.avals_out])
    return None if text is None else {"sdy.sharding_rule": sharding.attribute(text)}


def _lower_for(platform: str) -> Any:
    def lower(
        ctx: mlir.LoweringRuleContext, *args: Any, function: Function, statics: Statics
    ) -> Sequence[Any]:
        target = function.targets.get(platform)
        if target is None:
            raise NotImplementedError(
                f"{function.__name__}: no entry for platform '{platform}'; the library has "
                f"entries for: {', '.join(function.targets)}"
            )
        rule = jax.ffi.ffi_lowering(
            target,
            has_side_effect=function.description.effect,
            operand_output_aliases=_aliases(function, ctx),
            extra_attributes=_sharding(function, ctx),
        )
        values = attributes(function, statics)

        def call(ctx: mlir.LoweringRuleContext, *operands: Any) -> Sequence[Any]:
            results: Sequence[Any] = rule(ctx, *operands, **values)
            return results

        if function.description.effect:
            return compat.ordered_call(ctx, call, args)
        return call(ctx, *args)

    return lower


for _platform in ("cpu", "cuda", "rocm", "tpu"):
    mlir.register_lowering(call_p, _lower_for(_platform), platform=_platform)


def mapped_to_front(
    args: Sequence[Any], dims: Sequence[int | None], cores: Sequence[int]
) -> list[Any]:
    """Operands with their mapped axis in front of the leading axes of all of them.

    Args:
      dims: the mapped axis of each, or None.
      cores: number of core axes of each.
    """
    leading = [
        np.ndim(arg) - core - (dim is not None)
        for arg, core, dim in zip(args, cores, dims, strict=True)
    ]
    most = max(leading, default=0)
    moved = []
    for arg, dim, own in zip(args, dims, leading, strict=True):
        if dim is None:
            moved.append(arg)
            continue
        front = arg if dim == 0 else jnp.moveaxis(arg, dim, 0)
        moved.append(lax.expand_dims(front, range(1, 1 + most - own)))
    return moved


def _batch(
    args: Sequence[Any], dims: Sequence[int | None], *, function: Function, statics: Statics
) -> tuple[Sequence[Any], Sequence[int | None]]:
    """Moves the mapped axis to the front of all leading axes; nothing is materialised.

    The handler aligns leading axes at the right, so an operand that has fewer of them than
    another gets axes of size 1 behind its mapped one. Operands that are not mapped stay.
    """
    cores = [p.rank for p in function.description.with_role(*OPERANDS)]
    moved = mapped_to_front(args, dims, cores)
    results = call_p.bind(*moved, function=function, statics=statics)
    is_mapped = any(dim is not None for dim in dims)
    return results, [0 if is_mapped else None] * len(results)


batching.primitive_batchers[call_p] = _batch
