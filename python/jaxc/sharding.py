"""How a call is divided among the devices of a mesh: by leading axes; core axes stay whole.

In automatic mode the compiler decides which array is sharded how. The call carries a Shardy
rule that says which axes belong together, so that shardings travel through it; and each
target has a partitioner, registered by its name, that writes the call of one device. Programs
contain nothing else: no address, no callback, and they are the same in every process.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jax.interpreters import mlir

from jaxc import compat, config
from jaxc.description import OPERANDS, RESULTS, Description, Role


def rule(
    description: Description,
    operands: Sequence[Sequence[Any]],
    results: Sequence[Sequence[Any]],
) -> str | None:
    """The Shardy rule of a call with these shapes; None where there is nothing to shard.

    A leading axis is one factor in all arrays that have it at full size; each core axis, and
    each leading axis of size 1, is a factor of its own, so that no sharding travels along it.
    """
    if description.effect or not all(_is_static(shape) for shape in (*operands, *results)):
        return None
    cores = [p.rank for p in description.with_role(*OPERANDS)]
    result_cores = [p.rank for p in description.with_role(*RESULTS)]
    full = _leading(results, result_cores)
    if not any(size > 1 for size in full):
        return None
    names = _names()
    factors: dict[str, int] = {}
    batch = []
    for size in full:
        batch.append(next(names))
        factors[batch[-1]] = size

    def axes(shape: Sequence[int], core: int) -> str:
        own = len(shape) - core
        out = []
        for axis, size in enumerate(shape):
            position = len(full) - own + axis
            if axis < own and size == full[position]:
                out.append(batch[position])
                continue
            name = next(names)
            factors[name] = size
            out.append(name)
        return f"[{', '.join(out)}]"

    left = ", ".join(axes(s, c) for s, c in zip(operands, cores, strict=True))
    right = ", ".join(axes(s, c) for s, c in zip(results, result_cores, strict=True))
    sizes = ", ".join(f"{name}={size}" for name, size in factors.items())
    return f"#sdy.op_sharding_rule<({left}) -> ({right}) {{{sizes}}}, custom>"


def explicit(
    name: str, operands: Sequence[Any], parameters: Sequence[str], cores: Sequence[int]
) -> tuple[Any, ...]:
    """Mesh axes of the leading axes of a call's results, where shardings are part of types.

    Args:
      operands: abstract values.
      parameters, cores: name and number of core axes of each.

    Raises:
      ValueError: for a core axis that is sharded, and for operands that do not agree. Nothing
        is gathered that the program does not say.
    """
    leading = [len(a.shape) - core for a, core in zip(operands, cores, strict=True)]
    most = max(leading, default=0)
    out: list[Any] = [None] * most
    given = [""] * most
    for operand, parameter, own in zip(operands, parameters, leading, strict=True):
        for axis, names in compat.sharded_axes(operand).items():
            if axis >= own:
                raise ValueError(
                    f"{name}: argument '{parameter}' is sharded over mesh axis {names!r} on "
                    f"its core axis {axis - own}, which the function needs whole; "
                    "jax.sharding.reshard it first"
                )
            position = most - own + axis
            if out[position] is not None and out[position] != names:
                raise ValueError(
                    f"{name}: leading axis -{most - position} is sharded over mesh axis "
                    f"{out[position]!r} in '{given[position]}' and over {names!r} in "
                    f"'{parameter}'; jax.sharding.reshard one of them first"
                )
            out[position], given[position] = names, parameter
    used = [axis for names in out for axis in (names if isinstance(names, tuple) else (names,))]
    for axis in used:
        if axis is not None and used.count(axis) > 1:
            raise ValueError(
                f"{name}: mesh axis {axis!r} shards more than one leading axis of the call: "
                + ", ".join(f"'{p}'" for p, names in zip(given, out, strict=True) if names)
            )
    return tuple(out)


def _is_static(shape: Sequence[Any]) -> bool:
    return all(isinstance(size, (int, np.integer)) for size in shape)


def _leading(results: Sequence[Sequence[int]], cores: Sequence[int]) -> tuple[int, ...]:
    """Leading axes of the call, which every result has at full size."""
    for shape, core in zip(results, cores, strict=True):
        return tuple(shape[: len(shape) - core])
    return ()


def _names() -> Iterator[str]:
    """Names of factors as Shardy writes them: i to z, then z_1, z_2, ..."""
    yield from "ijklmnopqrstuvwxyz"
    number = 1
    while True:
        yield f"z_{number}"
        number += 1


class GatherWarning(UserWarning):
    """A core axis was sharded, so that each device gets all of the array."""


#: target -> who divides its calls; registered for the life of the process.
partitioners: dict[str, Partitioner] = {}


def register(target: str, description: Description) -> None:
    """Makes the partitioner of a target known to XLA; a call with effects is not divided."""
    if description.effect:
        return
    partitioners[target] = Partitioner(target, description)
    compat.register_partitioner(target, partitioners[target])


@dataclasses.dataclass
class Partitioner:
    """Writes the call of one device for XLA's partitioner, which knows it by the target."""

    target: str
    description: Description
    forbid_gather: bool = False

    def partition(
        self,
        operands: Sequence[Any],
        operand_shardings: Sequence[Any],
        result: Any,
        result_sharding: Any,
        attributes: bytes,
    ) -> tuple[bytes, list[Any], Any]:
        """The program of one device, the operands' shardings and the results'.

        What is sharded is decided by the results' leading axes, which the rule has made those
        of the operands; a core axis that is sharded anywhere is gathered before the call.
        """
        cores = [p.rank for p in self.description.with_role(*OPERANDS)]
        result_cores = [p.rank for p in self.description.with_role(*RESULTS)]
        is_tuple = result.is_tuple()
        results = list(result.tuple_shapes()) if is_tuple else [result]
        given = list(result_sharding.tuple_elements()) if is_tuple else [result_sharding]
        if any(compat.is_manual(s) for s in (*given, *operand_shardings)):
            # Inside shard_map the arrays are those of one device already.
            module = self._module(list(operands), results, attributes.decode())
            return module, list(operand_shardings), result_sharding
        shapes = [tuple(r.dimensions()) for r in results]
        full = _leading(shapes, result_cores)
        self._look_at_gathers(operand_shardings, cores)
        tiles = _leading_tiles(given[0], len(full))
        out = [_sharding(tiles, full, s, c) for s, c in zip(shapes, result_cores, strict=True)]
        inner = [
            _sharding(tiles, full, tuple(o.dimensions()), c)
            for o, c in zip(operands, cores, strict=True)
        ]
        module = self._module(
            [s.tile(o) for s, o in zip(inner, operands, strict=True)],
            [s.tile(r) for s, r in zip(out, results, strict=True)],
            attributes.decode(),
        )
        return module, inner, compat.tuple_sharding(result, out) if is_tuple else out[0]

    def _look_at_gathers(self, shardings: Sequence[Any], cores: Sequence[int]) -> None:
        """Warns of core axes that are sharded, or refuses them."""
        parameters = self.description.with_role(*OPERANDS)
        for parameter, sharding, core in zip(parameters, shardings, cores, strict=True):
            if core == 0 or sharding.is_replicated():
                continue
            sizes, _ = compat.tiles(sharding)
            tiles = sizes[len(sizes) - 1 - core : -1]
            if all(count == 1 for count in tiles):
                continue
            axis = next(i for i, count in enumerate(tiles) if count > 1)
            what = (
                f"{self.description.name}: argument '{parameter.name}' is sharded over "
                f"{tiles[axis]} devices on its core axis {axis}, which the function needs "
                "whole"
            )
            if config.forbid_gather or self.forbid_gather:
                raise ValueError(f"{what}, and gathering is forbidden")
            warnings.warn(f"{what}: it is gathered", GatherWarning, stacklevel=2)

    def _module(self, operands: list[Any], results: list[Any], attributes: str) -> bytes:
        ins = ", ".join(_type(o) for o in operands)
        outs = ", ".join(_type(r) for r in results)
        parameters = ", ".join(f"%a{i}: {_type(o)}" for i, o in enumerate(operands))
        values = ", ".join(f"%a{i}" for i in range(len(operands)))
        count = f":{len(results)}" if len(results) != 1 else ""
        named = [f"%r#{i}" for i in range(len(results))] if count else ["%r"]
        text = f"""
module @jaxc {{
  func.func public @main({parameters}) -> ({outs}) {{
    %r{count} = stablehlo.custom_call @"{self.target}"({values}) {{
      api_version = 4 : i32,
      backend_config = {attributes or "{}"},
      operand_layouts = [{", ".join(_layout(o) for o in operands)}],
      result_layouts = [{", ".join(_layout(r) for r in results)}],
      output_operand_aliases = [{", ".join(self._aliases(operands, results))}]
    }} : ({ins}) -> ({outs})
    return {", ".join(named)} : {outs}
  }}
}}"""
        return compat.module_bytes(text)

    def _aliases(self, operands: list[Any], results: list[Any]) -> Iterator[str]:
        """Operands of inout parameters that have all rows may be their results' memory."""
        inputs = self.description.with_role(*OPERANDS)
        outputs = self.description.with_role(*RESULTS)
        for parameter in self.description.with_role(Role.INOUT):
            i, k = inputs.index(parameter), outputs.index(parameter)
            if operands[i].dimensions() != results[k].dimensions():
                continue
            place = f"[{k}]" if len(results) > 1 else "[]"
            yield (
                f"#stablehlo.output_operand_alias<output_tuple_indices = {place}, "
                f"operand_index = {i}, operand_tuple_indices = []>"
            )

    def infer(
        self, operands: Sequence[Any], shardings: Sequence[Any], result: Any, attributes: bytes
    ) -> Any:
        """The results' sharding by the operands', for a compiler without Shardy."""
        del attributes
        cores = [p.rank for p in self.description.with_role(*OPERANDS)]
        result_cores = [p.rank for p in self.description.with_role(*RESULTS)]
        is_tuple = result.is_tuple()
        shapes = [
            tuple(r.dimensions()) for r in (result.tuple_shapes() if is_tuple else [result])
        ]
        full = _leading(shapes, result_cores)
        for operand, sharding, core in zip(operands, shardings, cores, strict=True):
            own = tuple(operand.dimensions())[: len(operand.dimensions()) - core]
            if own != full or sharding is None:
                continue
            tiles = _leading_tiles(sharding, len(full))
            out = [
                _sharding(tiles, full, s, c) for s, c in zip(shapes, result_cores, strict=True)
            ]
            return compat.tuple_sharding(result, out) if is_tuple else out[0]
        return None

    @staticmethod
    def propagate(sharding: Any, shape: Any, attributes: bytes) -> Any:
        del shape, attributes
        return sharding


def _leading_tiles(sharding: Any, leading: int) -> np.ndarray[Any, Any] | None:
    """Devices, one axis for each leading axis of the array, and one for those that share.

    None where nothing is cut.
    """
    if sharding.is_replicated() or leading == 0:
        return None
    sizes, devices = compat.tiles(sharding)
    return np.asarray(devices).reshape(*sizes[:leading], -1)


def _sharding(
    tiles: np.ndarray[Any, Any] | None, full: Sequence[int], shape: Sequence[int], core: int
) -> Any:
    """The sharding of one array: leading axes that it has at full size are cut as `tiles`."""
    if tiles is None:
        return compat.whole_sharding()
    missing = len(full) - (len(shape) - core)
    kept: list[int] = []
    shared: list[int] = []
    for position in range(len(full)):
        has = position >= missing and shape[position - missing] == full[position]
        (kept if has else shared).append(position)
    sizes = [1] * len(shape)
    for position in kept:
        sizes[position - missing] = tiles.shape[position]
    if math.prod(sizes) == 1:
        return compat.whole_sharding()
    moved = tiles.transpose([*kept, *shared, tiles.ndim - 1])
    return compat.tiled_sharding(
        [*sizes, tiles.size // math.prod(sizes)], moved.reshape(-1).tolist()
    )


def _type(shape: Any) -> str:
    sizes = "".join(f"{size}x" for size in shape.dimensions())
    return f"tensor<{sizes}{compat.element_type(shape)}>"


def _layout(shape: Any) -> str:
    rank = len(shape.dimensions())
    order = ", ".join(str(axis) for axis in reversed(range(rank)))
    return f"dense<[{order}]> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>"


def attribute(text: str) -> Any:
    """A rule as an attribute of the program; inside a lowering rule."""
    return mlir.ir.Attribute.parse(text)
