"""Shapes of a call: dimensions from operands, leading axes, results, and their errors.

The handler in C makes the same checks at run time; here they give errors at trace time
with the names that the user wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxc.description import OPERANDS, RESULTS, Bound, Description, Parameter, Role

Shape = tuple[Any, ...]


def infer(
    description: Description, operands: Sequence[Shape], statics: Mapping[str, Any]
) -> list[Shape]:
    """Shapes of the results.

    Args:
      operands: shapes in the order of the parameters that are operands.
      statics: values of static dimensions, by name (others are ignored).

    Raises:
      ValueError: naming the function, the argument, and the sizes that do not agree.
    """
    call = _Call(description, operands, statics)
    call.solve()
    call.check()
    leading = call.leading()
    return [(*leading, *call.core_sizes(p)) for p in description.with_role(*RESULTS)]


def dimensions(
    description: Description, operands: Sequence[Shape], statics: Mapping[str, Any]
) -> dict[str, Any]:
    """Every dimension of a call by name. Arguments as for ``infer``, which has checked them."""
    call = _Call(description, operands, statics)
    call.solve()
    return {dim.name: size for dim, size in zip(description.dims, call.dims, strict=True)}


def core(description: Description, parameter: Parameter, dims: Mapping[str, Any]) -> Shape:
    """Core shape of a parameter for these dimensions."""
    sizes = [dims[dim.name] for dim in description.dims]
    return tuple(bound.value(sizes) for bound in parameter.bounds)


class _Call:
    def __init__(
        self, description: Description, operands: Sequence[Shape], statics: Mapping[str, Any]
    ):
        self.d = description
        self.operands = list(zip(description.with_role(*OPERANDS), operands, strict=True))
        self.dims: list[Any] = [
            statics[dim.name] if dim.is_static else None for dim in description.dims
        ]
        for parameter, shape in self.operands:
            if len(shape) < parameter.rank:
                core = "(" + ", ".join(b.text for b in parameter.bounds) + ")"
                raise self.error(
                    f"argument '{parameter.name}' has shape {shape}, expected at least "
                    f"{parameter.rank} {'axis' if parameter.rank == 1 else 'axes'}: {core}",
                    parameter,
                )

    def error(self, text: str, parameter: Parameter | None = None) -> ValueError:
        where = f" {parameter.shown}" if parameter is not None else ""
        return ValueError(f"{self.d.name}: {text}{where}")

    def solve(self) -> None:
        """Finds the dimensions from the sizes of axes, then checks their C types."""
        shape_of = {self.d.parameters.index(p): (p, shape) for p, shape in self.operands}
        self.witness: dict[int, str] = {}
        for dim, position, axis in self.d.solve:
            parameter, shape = shape_of[position]
            size = shape[len(shape) - parameter.rank + axis]
            bound = parameter.bounds[axis]
            self.dims[dim] = size if bound.dim is not None else self._linear(
                dim, bound, size, parameter, axis
            )  # fmt: skip
            self.witness[dim] = f"'{parameter.name}' (axis {axis - parameter.rank})"
        for declared, value in zip(self.d.dims, self.dims, strict=True):
            least = max(declared.minimum, 0)
            if isinstance(value, int) and not least <= value <= declared.maximum:
                raise self.error(
                    f"dimension {declared.name} is {value}, outside the range of its C type "
                    f"({least} to {declared.maximum})"
                )

    def _linear(
        self, dim: int, bound: Bound, size: Any, parameter: Parameter, axis: int
    ) -> Any:
        trial = list(self.dims)
        trial[dim] = 0
        at_zero = bound.value(trial)
        trial[dim] = 1
        slope = bound.value(trial) - at_zero
        if slope != 0:
            trial[dim] = (size - at_zero) // slope
        if slope == 0 or bound.value(trial) != size:
            raise self.error(
                f"argument '{parameter.name}' has size {size} on axis "
                f"{axis - parameter.rank}, and no {self.d.dims[dim].name} makes "
                f"{bound.text} = {size}",
                parameter,
            )
        return trial[dim]

    def size_of(self, bound: Bound, parameter: Parameter) -> Any:
        try:
            size = bound.value(self.dims)
        except ZeroDivisionError:
            size = None
        if size is None or (isinstance(size, int) and size < 0):
            values = ", ".join(
                f"{self.d.dims[i].name} = {self.dims[i]}" for i in sorted(bound.dims)
            )
            what = "divides by zero" if size is None else f"is {size}"
            raise self.error(
                f"the size {bound.text} of '{parameter.name}' {what} for {values}", parameter
            )
        return size

    def core_sizes(self, parameter: Parameter) -> Shape:
        return tuple(self.size_of(bound, parameter) for bound in parameter.bounds)

    def check(self) -> None:
        """Compares every core axis with its bound; scratch must have a size too."""
        for parameter, shape in self.operands:
            for axis, bound in enumerate(parameter.bounds):
                size = shape[len(shape) - parameter.rank + axis]
                expected = self.size_of(bound, parameter)
                if size != expected:
                    raise self._mismatch(parameter, shape, axis, size, expected)
        for parameter in self.d.with_role(Role.SCRATCH):
            self.core_sizes(parameter)
        for parameter in self.d.indices:
            self._check_range(parameter)

    def _check_range(self, parameter: Parameter) -> None:
        """The range of an index, which may be below 0: then there are no points."""
        bound, most = parameter.bounds[0], int(np.iinfo(parameter.numpy_dtype).max)
        values = ", ".join(
            f"{self.d.dims[i].name} = {self.dims[i]}" for i in sorted(bound.dims)
        )
        try:
            size = bound.value(self.dims)
        except ZeroDivisionError:
            raise self.error(
                f"the range of index '{parameter.name}' ({parameter.name} < {bound.text}) "
                f"divides by zero for {values}",
                parameter,
            ) from None
        if isinstance(size, int) and size > most:
            raise self.error(
                f"the range of index '{parameter.name}' is {bound.text} = {size}, above the "
                f"largest value of its C type, {most}",
                parameter,
            )

    def _mismatch(
        self, parameter: Parameter, shape: Shape, axis: int, size: Any, expected: Any
    ) -> ValueError:
        bound = parameter.bounds[axis]
        back = axis - parameter.rank
        if bound.dim is not None and bound.dim in self.witness:
            return self.error(
                f"dimension {bound.text} is {expected} in {self.witness[bound.dim]} but "
                f"{size} in '{parameter.name}' (axis {back})"
            )
        meaning = f"{expected}" if bound.constant is not None else f"{bound.text} = {expected}"
        return self.error(
            f"argument '{parameter.name}' has shape {shape}, expected size {meaning} on axis "
            f"{back}",
            parameter,
        )

    def leading(self) -> Shape:
        """Leading axes of all operands, broadcast as in NumPy."""
        out: list[Any] = []
        owner: list[Parameter | None] = []
        for parameter, shape in self.operands:
            own = shape[: len(shape) - parameter.rank]
            missing = len(own) - len(out)
            out = [1] * missing + out
            owner = [*[None] * missing, *owner]
            for back in range(1, len(own) + 1):
                size = own[-back]
                if isinstance(size, int) and size == 1:
                    continue
                if owner[-back] is not None and out[-back] != size:
                    other = owner[-back]
                    assert other is not None
                    raise self.error(
                        f"leading axes do not broadcast: axis {-back} of them has size "
                        f"{out[-back]} in '{other.name}' and {size} in '{parameter.name}', "
                        f"whose shape is {shape}"
                    )
                out[-back], owner[-back] = size, parameter
        return tuple(out)
