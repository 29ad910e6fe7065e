"""Derivatives from C functions linked by name, and the primitive that is linear.

``f_jvp`` maps tangents ``d_<input>`` to ``d_<output>``; ``f_fwd`` gives f's outputs and
residuals; ``f_bwd`` maps cotangents ``ct_<output>`` to ``ct_<input>``. Each is a C function
like any other, so it batches, and its own derivatives link the same way.

The derivative of a call is the call itself (of ``f_fwd`` where there is one) and one bind of
``linear_p``, which is linear in the tangents. Evaluated, it calls ``f_jvp``; transposed, it
calls ``f_bwd``. Which of the two JAX does, and so which C function is needed, is only known
then; a missing one is an error that names it.

Complex numbers follow JAX: a cotangent is transposed, not conjugated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from jaxc import compat, shapes
from jaxc.description import OPERANDS, RESULTS, Description, Parameter, Role
from jaxc.primitive import Statics, call_p, mapped_to_front

if TYPE_CHECKING:
    from jaxc.function import Function

#: What an array of a derivative kernel is: kind and name of the parameter of f. Kinds are
#: "input", "output", "residual", "tangent" (d_), "cotangent" (ct_).
Key = tuple[str, str]
Values = dict[Key, Any]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A linked C function. operands and results: what each of its arrays is, in order."""

    function: Function
    operands: tuple[Key, ...]
    results: tuple[Key, ...]


@dataclasses.dataclass(frozen=True)
class Rules:
    """The derivative kernels of one function."""

    jvp: Kernel | None = None
    fwd: Kernel | None = None
    bwd: Kernel | None = None
    linear: frozenset[str] = frozenset()
    """Inputs in which the function is linear."""

    def __bool__(self) -> bool:
        return self.jvp is not None or self.bwd is not None

    @property
    def saved(self) -> tuple[Key, ...]:
        """Arrays that the kernels need besides tangents and cotangents, without repeats."""
        kernels = [kernel for kernel in (self.jvp, self.bwd) if kernel is not None]
        wanted = ("input", "output", "residual")
        keys = (key for kernel in kernels for key in kernel.operands if key[0] in wanted)
        return tuple(dict.fromkeys(keys))


# ---- linking ----


def link(function: Function, siblings: Mapping[str, Function]) -> Rules:
    """Finds the derivative kernels of a function among those of its library.

    Raises:
      ValueError: with file and line, when a kernel's parameters do not fit the function's.
    """
    name = function.description.name
    found = {suffix: siblings.get(f"{name}_{suffix}") for suffix in ("jvp", "fwd", "bwd")}
    transpose = siblings.get(f"{name}_transpose")
    forward = _Linker(function, found["fwd"]).forward() if found["fwd"] is not None else None
    residuals = [] if forward is None else [k for k in forward.results if k[0] == "residual"]
    jvp = _Linker(function, found["jvp"]).jvp() if found["jvp"] is not None else None
    bwd = None
    if found["bwd"] is not None:
        owner = forward.function.description if forward is not None else None
        bwd = _Linker(function, found["bwd"]).bwd([n for _, n in residuals], owner)
    linear = linear_inputs(function, siblings)
    if linear and jvp is None:
        jvp = _linear_jvp(function, linear)
    base = siblings.get(name.removesuffix("_transpose"))
    if bwd is None and transpose is not None and linear:
        bwd = _Linker(function, transpose).bwd([], None)
    elif bwd is None and name.endswith("_transpose") and base is not None:
        bwd = _transpose_of_transpose(function, base)
    return Rules(jvp, forward, bwd, frozenset(linear))


def linear_inputs(function: Function, siblings: Mapping[str, Function]) -> list[str]:
    """Inputs in which a function is linear: by pragma, or a transpose in its cotangents."""
    description = function.description
    base = siblings.get(description.name.removesuffix("_transpose"))
    is_transpose = description.name.endswith("_transpose") and base is not None
    return [
        p.name
        for p in description.with_role(*OPERANDS)
        if p.linear or (is_transpose and p.name.startswith("ct_"))
    ]


def _linear_jvp(function: Function, linear: Sequence[str]) -> Kernel:
    """A function that is linear in some inputs is its own jvp in them."""
    operands = tuple(
        ("tangent" if p.name in linear else "input", p.name)
        for p in function.description.with_role(*OPERANDS)
    )
    results = tuple(("tangent", p.name) for p in function.description.with_role(*RESULTS))
    return Kernel(function, operands, results)


def _transpose_of_transpose(function: Function, base: Function) -> Kernel:
    """f is the transpose of f_transpose: its x takes the cotangent of ct_x."""
    operands: list[Key] = []
    for parameter in base.description.with_role(*OPERANDS):
        name = parameter.name
        operands.append(("cotangent", "ct_" + name) if parameter.linear else ("input", name))
    results = tuple(("cotangent", "ct_" + p.name) for p in base.description.with_role(*RESULTS))
    return Kernel(base, tuple(operands), results)


class _Linker:
    """Matches the parameters of one derivative kernel with those of its function."""

    def __init__(self, function: Function, kernel: Function):
        self.f, self.kernel = function.description, kernel.description
        self.function = kernel
        self.inputs = {p.name: p for p in self.f.with_role(*OPERANDS)}
        self.outputs = {p.name: p for p in self.f.with_role(*RESULTS)}
        self._check_statics()

    def fail(self, text: str) -> ValueError:
        return ValueError(
            f"{self.kernel.file}:{self.kernel.line}: '{self.kernel.name}' is no derivative "
            f"of '{self.f.name}' ({self.f.file}:{self.f.line}): {text}. If it is not meant "
            "as one, '#pragma jaxc hide' on a declaration of it says so"
        )

    def _check_statics(self) -> None:
        known = {p.name: p.dtype for p in self.f.with_role(Role.STATIC)}
        for parameter in self.kernel.with_role(Role.STATIC):
            if known.get(parameter.name) != parameter.dtype:
                raise self.fail(f"static parameter '{parameter.name}' is none of its own")
        dims = {dim.name for dim in self.f.dims}
        for dim in self.kernel.dims:
            if dim.is_static and dim.name not in dims:
                raise self.fail(
                    f"no array gives dimension '{dim.name}', which '{self.f.name}' has not"
                )

    def _same(self, parameter: Parameter, partner: Parameter) -> None:
        """dtype and core dims must be the partner's."""
        ours = [bound.text for bound in parameter.bounds]
        theirs = [bound.text for bound in partner.bounds]
        if parameter.dtype != partner.dtype or ours != theirs:
            raise self.fail(
                f"parameter '{parameter.name}' ({parameter.declaration}) must have type and "
                f"bounds of '{partner.name}' ({partner.declaration})"
            )

    def _differentiable(self, prefix: str, table: Mapping[str, Parameter]) -> dict[str, Key]:
        kind = "tangent" if prefix == "d_" else "cotangent"
        return {prefix + name: (kind, name) for name, p in table.items() if p.is_differentiable}

    def _match(
        self,
        parameters: Iterable[Parameter],
        known: Mapping[str, Key],
        extra: Mapping[str, Parameter],
    ) -> tuple[Key, ...]:
        out = []
        for parameter in parameters:
            key = known.get(parameter.name)
            if key is None:
                raise self.fail(
                    f"parameter '{parameter.name}' ({parameter.declaration}) is none of "
                    f"{', '.join(known) or 'nothing'}"
                )
            partner = extra.get(key[1]) if key[0] == "residual" else None
            if partner is None:
                is_output = key[0] == "output" or parameter.name.startswith("ct_")
                tables = (
                    (self.outputs, self.inputs) if is_output else (self.inputs, self.outputs)
                )
                partner = tables[0].get(key[1]) or tables[1][key[1]]
            self._same(parameter, partner)
            out.append(key)
        return tuple(out)

    def jvp(self) -> Kernel:
        known = {name: ("input", name) for name in self.inputs}
        known |= self._differentiable("d_", self.inputs)
        operands = self._match(self.kernel.with_role(*OPERANDS), known, {})
        results = self._differentiable("d_", self.outputs)
        if "return" in self.outputs:
            results["return"] = ("tangent", "return")
        found = self._match(self.kernel.with_role(*RESULTS), results, {})
        for name, parameter in self.outputs.items():
            if parameter.is_differentiable and ("tangent", name) not in found:
                raise self.fail(f"it has no output 'd_{name}'")
        return Kernel(self.function, operands, found)

    def forward(self) -> Kernel:
        known = {name: ("input", name) for name in self.inputs}
        operands = self._match(self.kernel.with_role(*OPERANDS), known, {})
        outputs = self.kernel.with_role(*RESULTS)
        names = [p.name for p in outputs]
        for name in self.outputs:
            if name not in names:
                raise self.fail(f"it has no output '{name}'")
        results = []
        for parameter in outputs:
            if parameter.name in self.outputs:
                self._same(parameter, self.outputs[parameter.name])
                results.append(("output", parameter.name))
            else:
                results.append(("residual", parameter.name))
        return Kernel(self.function, operands, tuple(results))

    def bwd(self, residuals: Sequence[str], owner: Description | None) -> Kernel:
        known = {name: ("output", name) for name in self.outputs}
        known |= {name: ("input", name) for name in self.inputs}
        known |= {name: ("residual", name) for name in residuals}
        known |= self._differentiable("ct_", self.outputs)
        extra = {} if owner is None else {p.name: p for p in owner.with_role(*RESULTS)}
        operands = self._match(self.kernel.with_role(*OPERANDS), known, extra)
        results = self._differentiable("ct_", self.inputs)
        if len(results) == 1:
            results["return"] = next(iter(results.values()))
        found = []
        for parameter in self.kernel.with_role(*RESULTS):
            if parameter.name not in results:
                raise self.fail(
                    f"output '{parameter.name}' is none of {', '.join(results) or 'nothing'}"
                )
            key = results[parameter.name]
            self._same(parameter, self.inputs[key[1]])
            found.append(key)
        return Kernel(self.function, operands, tuple(found))


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
    if not moving:
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
            tangent = next(rest)
            if np.shape(tangent) != np.shape(primal):
                tangent = jnp.broadcast_to(tangent, np.shape(primal))
            out.append(tangent)
        else:
            out.append(compat.zero_tangent(primal))
    return out


def _check_differentiable(function: Function, names: Iterable[str]) -> None:
    name = function.__name__
    for parameter in function.description.with_role(*OPERANDS):
        if parameter.name in names and parameter.nondifferentiable:
            raise TypeError(
                f"{name}: a derivative with respect to '{parameter.name}' was asked for, which "
                f"'#pragma jaxc nondifferentiable({parameter.name})' rules out"
            )
    if not function.rules:
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
    return [
        compat.result_aval(
            (*leading, *shapes.core(description, p, dict(sizes))), p.numpy_dtype, operands
        )
        for p in description.with_role(*RESULTS)
        if p.is_differentiable
    ]


def _needs(function: Function, kernel: Kernel | None, suffix: str, mode: str) -> Kernel:
    if kernel is not None:
        return kernel
    other = "bwd" if suffix == "jvp" else "jvp"
    raise NotImplementedError(
        f"{function.__name__}: {mode} mode needs the C function {function.__name__}_{suffix}; "
        f"only {function.__name__}_{other} is there"
    )


def _forward_kernel(function: Function, wrt: Sequence[str]) -> Kernel:
    kernel = _needs(function, function.rules.jvp, "jvp", "forward")
    for name in wrt:
        if ("tangent", name) not in kernel.operands:
            raise NotImplementedError(
                f"{function.__name__}: the derivative with respect to '{name}' was asked for, "
                f"but {kernel.function.__name__} has no parameter 'd_{name}'"
            )
    return kernel


def _linear_expand(
    *operands: Any, function: Function, statics: Statics, sizes: Sizes, wrt: tuple[str, ...]
) -> list[Any]:
    """linear_p by its definition: a call of f_jvp."""
    kernel = _forward_kernel(function, wrt)
    values = dict(zip(_keys(function, wrt), operands, strict=True))
    results = _call(kernel, values, statics, dict(sizes))
    return [
        results["tangent", p.name]
        for p in function.description.with_role(*RESULTS)
        if p.is_differentiable
    ]


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
        matched = [
            t if np.shape(t) == np.shape(o) else jnp.broadcast_to(t, np.shape(o))
            for t, o in zip(linear, outs, strict=True)
        ]
        return outs, matched
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
    order = [
        ("tangent", p.name)
        for p in function.description.with_role(*RESULTS)
        if p.is_differentiable
    ]
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
    kernel = _needs(function, function.rules.bwd, "bwd", "reverse")
    for name in wrt:
        if ("cotangent", name) not in kernel.results:
            raise NotImplementedError(
                f"{function.__name__}: the derivative with respect to '{name}' was asked for, "
                f"but {kernel.function.__name__} has no output 'ct_{name}'"
            )
    keys = _keys(function, wrt)
    values: Values = {
        key: arg for key, arg in zip(keys, args, strict=True) if not ad.is_undefined_primal(arg)
    }
    outputs = [p for p in description.with_role(*RESULTS) if p.is_differentiable]
    for parameter, ct in zip(outputs, cts, strict=True):
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
