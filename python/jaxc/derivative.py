"""Derivatives of a call: its jvp, and the primitive that is linear.

The derivative kernels of link.py are C functions like any other, so they batch, and their own
derivatives link the same way.

The derivative of a call is the call itself (of ``f_fwd`` where there is one) and one bind of
``linear_p``, which is linear in the tangents. Evaluated, it calls ``f_jvp``; transposed, it
calls ``f_bwd``. Which of the two JAX does, and so which C function is needed, is only known
then; a missing one is an error that names it.

Complex numbers follow JAX: a cotangent is transposed, not conjugated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from jaxc import compat, shapes, sharding
from jaxc.description import OPERANDS, RESULTS, Description, Parameter, Role
from jaxc.link import Kernel, Key
from jaxc.primitive import Statics, call_p, mapped_to_front

if TYPE_CHECKING:
    from jaxc.function import Function

Values = dict[Key, Any]


# ---- calling a kernel ----


def statics_for(kernel: Function, statics: Statics, dims: Mapping[str, Any]) -> Statics:
    """Static values of a kernel: those of its function, and the dimensions of the call."""
    given = dict(statics)
    description = kernel.description
    out = [(p.name, given[p.name]) for p in description.with_role(Role.STATIC)]
    out += [(dim.name, dims[dim.name]) for dim in description.dims if dim.is_static]
    return tuple(out)


def _operands(kernel: Kernel, values: Values, dims: Mapping[str, Any]) -> list[Any]:
    """Arrays for a kernel; a tangent or cotangent that is zero has its core shape only."""
    out = []
    description = kernel.function.description
    for key, parameter in zip(kernel.operands, description.with_role(*OPERANDS), strict=True):
        value = values.get(key)
        if value is None:
            known = {dim.name: dims.get(dim.name) for dim in description.dims}
            shape = shapes.core(description, parameter, known)
            value = jnp.zeros(shape, parameter.numpy_dtype)
        out.append(value)
    return list(compat.match_varying(out))


def _call(kernel: Kernel, values: Values, statics: Statics, dims: Mapping[str, Any]) -> Values:
    results = call_p.bind(
        *_operands(kernel, values, dims),
        function=kernel.function,
        statics=statics_for(kernel.function, statics, dims),
    )
    return dict(zip(kernel.results, results, strict=True))


# ---- the jvp of a call ----


def _is_zero(tangent: Any) -> bool:
    if isinstance(tangent, ad.Zero):
        return True
    return bool(getattr(tangent, "dtype", None) == jax.dtypes.float0)


def _call_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, function: Function, statics: Statics
) -> tuple[Sequence[Any], Sequence[Any]]:
    description, rules = function.description, function.rules
    parameters = description.with_role(*OPERANDS)
    moving = {p.name: t for p, t in zip(parameters, tangents, strict=True) if not _is_zero(t)}
    if not moving or not _moving_results(description):
        outs = call_p.bind(*primals, function=function, statics=statics)
        return outs, [compat.zero_tangent(out) for out in outs]
    _check_differentiable(function, moving)
    operand_shapes = [np.shape(primal) for primal in primals]
    dims = shapes.dimensions(description, operand_shapes, dict(statics))
    values: Values = {
        ("input", p.name): primal for p, primal in zip(parameters, primals, strict=True)
    }
    if rules.fwd is not None and rules.bwd is not None:
        values |= _call(rules.fwd, values, statics, dims)
        outs = [values["output", p.name] for p in description.with_role(*RESULTS)]
    else:
        outs = call_p.bind(*primals, function=function, statics=statics)
        results = description.with_role(*RESULTS)
        values |= {("output", p.name): out for p, out in zip(results, outs, strict=True)}
    saved = [values[key] for key in rules.saved]
    operands = compat.match_varying([*moving.values(), *saved])
    linear = linear_p.bind(
        *operands,
        function=function,
        statics=statics,
        sizes=tuple(dims.items()),
        wrt=tuple(moving),
    )
    return outs, _tangents_out(description, outs, linear)


def _tangents_out(
    description: Description, outs: Sequence[Any], linear: Sequence[Any]
) -> list[Any]:
    """Tangents of all outputs: broadcast to the output, zero where there is no tangent."""
    out: list[Any] = []
    rest = iter(linear)
    for parameter, primal in zip(description.with_role(*RESULTS), outs, strict=True):
        if parameter.is_differentiable:
            out.append(_broadcast(next(rest), primal))
        else:
            out.append(compat.zero_tangent(primal))
    return out


def _broadcast(tangent: Any, primal: Any) -> Any:
    """A tangent that has fewer leading axes than its primal, at full shape."""
    shape = np.shape(primal)
    return tangent if np.shape(tangent) == shape else jnp.broadcast_to(tangent, shape)


def _moving_results(description: Description) -> list[Parameter]:
    """The results that have tangents."""
    return [p for p in description.with_role(*RESULTS) if p.is_differentiable]


def _check_usable(function: Function) -> None:
    for name, why in function.rules.unusable:
        raise NotImplementedError(
            f"{function.__name__}: the C function {name} is there and cannot be used: it {why}"
        )


def _check_differentiable(function: Function, names: Iterable[str]) -> None:
    name = function.__name__
    for parameter in function.description.with_role(*OPERANDS):
        if parameter.name in names and parameter.nondifferentiable:
            raise TypeError(
                f"{name}: a derivative with respect to '{parameter.name}' was asked for, which "
                f"'#pragma jaxc nondifferentiable({parameter.name})' rules out"
            )
    if not function.rules:
        _check_usable(function)
        if function.description.with_role(Role.DATA):
            raise NotImplementedError(
                f"{name} has no derivative: give a rule with .defjvp or .defvjp"
            )
        raise NotImplementedError(
            f"{name} has no derivative: write the C function {name}_jvp (forward mode) or "
            f"{name}_bwd (reverse mode), or give a rule with {name}.defjvp or .defvjp"
        )


ad.primitive_jvps[call_p] = _call_jvp


# ---- the linear primitive ----

linear_p = compat.Primitive("jaxc_linear")
linear_p.multiple_results = True

#: Every dimension of the call: ((name, size), ...).
Sizes = tuple[tuple[str, Any], ...]


def _keys(function: Function, wrt: Sequence[str]) -> list[Key]:
    """What each operand of linear_p is: first the tangents, then what was saved."""
    return [*(("tangent", name) for name in wrt), *function.rules.saved]


def _core_rank(function: Function, key: Key) -> int:
    if key[0] == "residual":
        forward = function.rules.fwd
        assert forward is not None
        parameters = forward.function.description.with_role(*RESULTS)
        return next(p.rank for p in parameters if p.name == key[1])
    roles = RESULTS if key[0] == "output" else OPERANDS
    return next(p.rank for p in function.description.with_role(*roles) if p.name == key[1])


def _linear_abstract_eval(
    *operands: Any, function: Function, statics: Statics, sizes: Sizes, wrt: tuple[str, ...]
) -> list[Any]:
    del statics
    keys = _keys(function, wrt)
    cores = [_core_rank(function, key) for key in keys]
    leading = np.broadcast_shapes(
        *(a.shape[: len(a.shape) - core] for a, core in zip(operands, cores, strict=True))
    )
    description = function.description
    spec = sharding.explicit(
        function.__name__, operands, [" of ".join(key) for key in keys], cores
    )
    return [
        compat.result_aval(
            (*leading, *shapes.core(description, p, dict(sizes))), p.numpy_dtype, operands, spec
        )
        for p in _moving_results(description)
    ]


def _needs(function: Function, kernel: Kernel | None, suffix: str, mode: str) -> Kernel:
    if kernel is not None:
        return kernel
    _check_usable(function)
    other = "bwd" if suffix == "jvp" else "jvp"
    if function.rules.linear and suffix == "bwd":
        raise NotImplementedError(
            f"{function.__name__}: reverse mode needs the C function "
            f"{function.__name__}_transpose or {function.__name__}_bwd"
        )
    raise NotImplementedError(
        f"{function.__name__}: {mode} mode needs the C function {function.__name__}_{suffix}; "
        f"only {function.__name__}_{other} is there"
    )


def _forward_kernel(function: Function, wrt: Sequence[str]) -> Kernel:
    kernel = _needs(function, function.rules.jvp, "jvp", "forward")
    _check_partners(function, kernel, wrt, "tangent", kernel.operands, "parameter 'd_")
    return kernel


def _backward_kernel(function: Function, wrt: Sequence[str]) -> Kernel:
    kernel = _needs(function, function.rules.bwd, "bwd", "reverse")
    _check_partners(function, kernel, wrt, "cotangent", kernel.results, "output 'ct_")
    return kernel


def _check_partners(
    function: Function,
    kernel: Kernel,
    wrt: Sequence[str],
    kind: str,
    there: Sequence[Key],
    partner: str,
) -> None:
    """An input without a partner in the kernel is an error, never a zero."""
    for name in wrt:
        if (kind, name) not in there:
            raise NotImplementedError(
                f"{function.__name__}: the derivative with respect to '{name}' was asked for, "
                f"but {kernel.function.__name__} has no {partner}{name}'"
            )


def _linear_expand(
    *operands: Any, function: Function, statics: Statics, sizes: Sizes, wrt: tuple[str, ...]
) -> list[Any]:
    """linear_p by its definition: a call of f_jvp."""
    kernel = _forward_kernel(function, wrt)
    values = dict(zip(_keys(function, wrt), operands, strict=True))
    results = _call(kernel, values, statics, dict(sizes))
    return [results["tangent", p.name] for p in _moving_results(function.description)]


def _linear_batch(
    args: Sequence[Any], axes: Sequence[int | None], **params: Any
) -> tuple[Sequence[Any], Sequence[int | None]]:
    keys = _keys(params["function"], params["wrt"])
    cores = [_core_rank(params["function"], key) for key in keys]
    results = linear_p.bind(*mapped_to_front(args, axes, cores), **params)
    is_mapped = any(axis is not None for axis in axes)
    return results, [0 if is_mapped else None] * len(results)


def _linear_jvp_rule(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Linear in its tangents; in what was saved, its derivative is that of f_jvp."""
    function, wrt = params["function"], params["wrt"]
    outs = linear_p.bind(*primals, **params)
    if all(_is_zero(t) for t in tangents[len(wrt) :]):
        names = [n for n, t in zip(wrt, tangents, strict=False) if not _is_zero(t)]
        moving = [t for t in tangents[: len(wrt)] if not _is_zero(t)]
        operands = compat.match_varying([*moving, *primals[len(wrt) :]])
        linear = linear_p.bind(*operands, **{**params, "wrt": tuple(names)})
        return outs, [_broadcast(t, out) for t, out in zip(linear, outs, strict=True)]
    kernel = _forward_kernel(function, wrt)
    dims = dict(params["sizes"])
    keys = _keys(function, wrt)
    values = dict(zip(keys, primals, strict=True))
    moving_values = {k: t for k, t in zip(keys, tangents, strict=True) if not _is_zero(t)}
    operands = _operands(kernel, values, dims)
    operand_tangents = [
        moving_values.get(key, compat.zero_tangent(operand))
        for key, operand in zip(kernel.operands, operands, strict=True)
    ]
    statics = statics_for(kernel.function, params["statics"], dims)
    results, result_tangents = _call_jvp(
        operands, operand_tangents, function=kernel.function, statics=statics
    )
    by_key = dict(zip(kernel.results, zip(results, result_tangents, strict=True), strict=True))
    order = [("tangent", p.name) for p in _moving_results(function.description)]
    return [by_key[key][0] for key in order], [by_key[key][1] for key in order]


def _unbroadcast(array: Any, shape: Sequence[int], core: int) -> Any:
    """Sums over the leading axes in which an operand of shape ``shape`` was broadcast."""
    extra = array.ndim - len(shape)
    axes = [*range(extra)]
    axes += [
        extra + i
        for i in range(len(shape) - core)
        if shape[i] == 1 and array.shape[extra + i] != 1
    ]
    if axes:
        array = jnp.sum(array, axis=tuple(axes), keepdims=False)
    return jnp.reshape(array, tuple(shape))


def _linear_transpose(cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    function, wrt = params["function"], params["wrt"]
    description = function.description
    kernel = _backward_kernel(function, wrt)
    keys = _keys(function, wrt)
    values: Values = {
        key: arg for key, arg in zip(keys, args, strict=True) if not ad.is_undefined_primal(arg)
    }
    for parameter, ct in zip(_moving_results(description), cts, strict=True):
        if not _is_zero(ct):
            values["cotangent", parameter.name] = ct
    results = _call(kernel, values, params["statics"], dict(params["sizes"]))
    out: list[Any] = []
    for key, arg in zip(keys, args, strict=True):
        if not ad.is_undefined_primal(arg):
            out.append(None)
            continue
        core = _core_rank(function, key)
        out.append(_unbroadcast(results["cotangent", key[1]], arg.aval.shape, core))
    return out


linear_p.def_impl(_linear_expand)
linear_p.def_abstract_eval(_linear_abstract_eval)
mlir.register_lowering(linear_p, mlir.lower_fun(_linear_expand, multiple_results=True))
batching.primitive_batchers[linear_p] = _linear_batch
ad.primitive_jvps[linear_p] = _linear_jvp_rule
ad.primitive_transposes[linear_p] = _linear_transpose


def _call_transpose(
    cts: Sequence[Any], *args: Any, function: Function, statics: Statics
) -> Any:
    """A call that is linear in its unknown operands: jax.linear_transpose of f itself."""
    description, rules = function.description, function.rules
    parameters = description.with_role(*OPERANDS)
    unknown = [p for p, a in zip(parameters, args, strict=True) if ad.is_undefined_primal(a)]
    for parameter in unknown:
        if parameter.name not in rules.linear:
            raise NotImplementedError(
                f"{function.__name__} is not known to be linear in '{parameter.name}'; "
                f"'#pragma jaxc linear({parameter.name})' says so"
            )
    names = [p.name for p in unknown]
    operand_shapes = [a.aval.shape if ad.is_undefined_primal(a) else np.shape(a) for a in args]
    dims = shapes.dimensions(description, operand_shapes, dict(statics))
    known = {
        ("input", p.name): a
        for p, a in zip(parameters, args, strict=True)
        if not ad.is_undefined_primal(a)
    }
    by_name = {p.name: a for p, a in zip(parameters, args, strict=True)}
    cotangents = _linear_transpose(
        [ct for ct, p in zip(cts, description.with_role(*RESULTS), strict=True)
         if p.is_differentiable],
        *[by_name[name] for name in names],
        *[known[key] for key in rules.saved],
        function=function, statics=statics, sizes=tuple(dims.items()), wrt=tuple(names),
    )  # fmt: skip
    found = dict(zip(names, cotangents, strict=False))
    return [found.get(p.name) for p in parameters]


ad.primitive_transposes[call_p] = _call_transpose
