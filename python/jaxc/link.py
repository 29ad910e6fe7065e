"""Link derivative kernels to their function by name, and check that they fit.

``f_jvp`` maps tangents ``d_<input>`` to ``d_<output>``; ``f_fwd`` gives f's outputs and
residuals; ``f_bwd`` maps cotangents ``ct_<output>`` to ``ct_<input>``; ``f_transpose`` is the
``f_bwd`` of a function that is linear. A value that is returned is called ``return``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jaxc.description import OPERANDS, RESULTS, Description, Parameter, Role

if TYPE_CHECKING:
    from jaxc.function import Function

#: What an array of a derivative kernel is: kind and name of the parameter of f. Kinds are
#: "input", "output", "residual", "tangent" (d_), "cotangent" (ct_).
Key = tuple[str, str]


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
    unusable: tuple[tuple[str, str], ...] = ()
    """Kernels that are there and cannot be called: (name, why)."""

    def __bool__(self) -> bool:
        return self.jvp is not None or self.bwd is not None

    @property
    def saved(self) -> tuple[Key, ...]:
        """Arrays that the kernels need besides tangents and cotangents, without repeats."""
        kernels = [kernel for kernel in (self.jvp, self.bwd) if kernel is not None]
        wanted = ("input", "output", "residual")
        keys = (key for kernel in kernels for key in kernel.operands if key[0] in wanted)
        return tuple(dict.fromkeys(keys))


def link(
    function: Function, siblings: Mapping[str, Function], refused: Mapping[str, str]
) -> Rules:
    """Finds the derivative kernels of a function among those of its library.

    Args:
      refused: functions of the library that cannot be called, and why.

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
    suffixes = ("jvp", "fwd", "bwd", "transpose")
    names = [f"{name}_{suffix}" for suffix in suffixes]
    unusable = tuple((n, refused[n]) for n in names if n in refused)
    return Rules(jvp, forward, bwd, frozenset(linear), unusable)


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
