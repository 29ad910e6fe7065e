"""``jaxc.register_callback``: Python functions as targets of ``jax.ffi.ffi_call``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxc import _jaxc, interpreter, registration  # type: ignore[attr-defined]
from jaxc.description import DTYPES


@dataclasses.dataclass(frozen=True)
class CallbackContext:
    """What a raw callback is told about its call.

    Attributes:
      stage: "execute"; Python functions run at no other.
      platform: "cpu".
      device_ordinal: which of the process's devices; None where the runtime does not tell.
      run_id: a number that all calls of one execution share; None where it does not tell.
      stream: of the device; None on CPUs.
    """

    stage: str
    platform: str
    device_ordinal: int | None
    run_id: int | None
    stream: int | None


_raw: dict[str, Any] = {}


def register_callback(
    name: str,
    func: Callable[[list[Any], list[Any], dict[str, Any], CallbackContext], None],
) -> None:
    """Registers a Python function as a CPU target for ``jax.ffi.ffi_call(name, ...)``.

    It is called with lists of NumPy views of inputs (read-only) and outputs (to be written in
    place; None in the place of a token), a dictionary of the attributes (NumPy scalars and
    arrays, str, dictionaries), and a `CallbackContext`. It may keep none of the arrays.

    >>> def scale(inputs, outputs, attrs, ctx):
    ...     np.multiply(inputs[0], attrs["factor"], out=outputs[0])
    >>> jaxc.register_callback("scale", scale)
    >>> jax.ffi.ffi_call("scale", jax.typeof(x))(x, factor=np.float32(2))

    Args:
      name: of the target. Registering the same function again does nothing.

    Raises:
      ValueError: when another handler has the name.
    """
    if not callable(func):
        raise TypeError(f"register_callback {name!r}: takes a function, got {func!r}")
    if _raw.get(name) is func:
        return
    if name in registration.targets():
        raise ValueError(
            f"register_callback {name!r}: another handler has this name; names stay for the "
            "life of the process, so choose a new one"
        )
    handler, _ = _jaxc.adopt_raw_callback(
        name, func, interpreter.text_of, dict(DTYPES), CallbackContext
    )
    registration.register(name, handler)
    _raw[name] = func
