"""Call a C function's handler without XLA, with memory that is watched."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxc import _jaxc, shapes  # type: ignore[attr-defined]
from jaxc.description import OPERANDS, RESULTS, STRING, Role
from jaxc.function import Function
from jaxc.primitive import Statics, attributes

_ARRAY, _SCALAR, _STRING = 1, 3, 4
_TOKEN = (17, (), None)
_NUMBERS = {"int64": 5, "float32": 11, "float64": 12}

#: Bytes before and after each array; a multiple of every alignment.
GUARD = 256


class HostError(RuntimeError):
    """The error that a handler returned; its text, as XLA would show it."""


class _Guarded:
    """An array with guard bytes around it, so that what is read or written there shows."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], guard: int, fill: int):
        self.size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.memory = np.full(self.size + 2 * GUARD, guard, np.uint8)
        self.guard = guard
        self.inside = self.memory[GUARD : GUARD + self.size]
        self.inside[...] = fill
        self.shape, self.dtype = tuple(shape), dtype

    def array(self) -> np.ndarray[Any, Any]:
        return self.inside.view(self.dtype).reshape(self.shape)

    def is_intact(self) -> bool:
        outside = np.concatenate([self.memory[:GUARD], self.memory[GUARD + self.size :]])
        return bool((outside == self.guard).all())


def call(
    function: Function,
    operands: Sequence[Any],
    statics: Statics = (),
    *,
    poison: int = 0x41,
    guard: int = 0x41,
) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """Calls the handler once.

    Args:
      operands: arrays of the parameters that are operands, in order, with their dtypes.
      statics: values of static parameters and dimensions.
      poison: byte that fills every result before the call.
      guard: byte that fills the memory around the first array; each next has the next.

    Returns:
      The results, and the names of the parameters around which memory was written.

    Raises:
      HostError: with the text of an error that the handler returned.
      ValueError: for operands whose shapes do not agree.
    """
    description = function.description
    # Each array has a guard of its own: copying one guard onto another would not show.
    guards = itertools.count(guard)
    inputs = [
        _Guarded(np.shape(value), p.numpy_dtype, next(guards) % 256, 0)
        for p, value in zip(description.with_role(*OPERANDS), operands, strict=True)
    ]
    for place, value in zip(inputs, operands, strict=True):
        place.array()[...] = np.asarray(value)
    found = shapes.infer(description, [np.shape(value) for value in operands], dict(statics))
    outputs = [
        _Guarded(shape, p.numpy_dtype, next(guards) % 256, poison)
        for p, shape in zip(description.with_role(*RESULTS), found, strict=True)
    ]
    tokens = (_TOKEN,) if description.effect else ()
    pairs = list(zip(description.with_role(*OPERANDS), inputs, strict=True))
    pairs += zip(description.with_role(*RESULTS), outputs, strict=True)
    records = [(p.dtype, place.shape, place.inside) for p, place in pairs]
    error = _jaxc.call_handler(
        function.handlers["cpu"],
        tokens + tuple(records[: len(inputs)]),
        tokens + tuple(records[len(inputs) :]),
        _encoded(function, statics),
    )
    if error is not None:
        raise HostError(error[1])
    written = [p.name for p, place in pairs if not place.is_intact()]
    return [place.array().copy() for place in outputs], written


def _encoded(function: Function, statics: Statics) -> tuple[tuple[str, int, int, bytes], ...]:
    """Attributes as XLA hands them over, sorted by name."""
    types = {p.name: p.dtype for p in function.description.with_role(Role.STATIC)}
    out = []
    for name, value in attributes(function, statics).items():
        if types.get(name) == STRING:
            out.append((name, _STRING, 0, str(value).encode()))
            continue
        array = np.asarray(value)
        number = types.get(name, _NUMBERS["int64"])
        if array.ndim or array.dtype == np.int64:  # complex parts; uint64 sent as int64
            number = _NUMBERS[array.dtype.name]
        out.append((name, _ARRAY if array.ndim else _SCALAR, number, array.tobytes()))
    return tuple(sorted(out))
