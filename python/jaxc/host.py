"""Call any XLA FFI handler without XLA: for tests, debuggers and sanitizers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from jaxc import _jaxc, registration, shapes  # type: ignore[attr-defined]
from jaxc.description import NUMBERS, OPERANDS, RESULTS
from jaxc.function import Function
from jaxc.primitive import Statics
from jaxc.primitive import attributes as function_attributes

_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4
_TOKEN = (17, (), None)

#: NumPy dtype -> XLA's number, with the 8-bit floats that no C type stands for.
_NUMBERS = dict(NUMBERS) | {
    np.dtype(getattr(ml_dtypes, name)): number
    for name, number in {
        "float8_e4m3b11fnuz": 23,
        "float8_e5m2fnuz": 24,
        "float8_e4m3fnuz": 25,
        "float8_e4m3": 28,
        "float8_e3m4": 29,
        "float8_e8m0fnu": 33,
    }.items()
    if hasattr(ml_dtypes, name)
}

#: Element types that are no attributes: float16, bfloat16 and 8-bit floats.
_NO_ATTRIBUTES = frozenset({10, 16, 19, 20, 23, 24, 25, 28, 29, 33})

#: What a number of Python is sent as; bool is an int too, so it goes first.
_PYTHON_NUMBERS: tuple[tuple[type, Any], ...] = (
    (bool, np.bool_),
    (int, np.int64),
    (float, np.float64),
    (complex, np.complex128),
)

#: Codes of XLA_FFI_Error_Code, by number.
CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
    "UNAUTHENTICATED",
)  # fmt: skip

#: Fills results: repeated, a number that no kernel computes.
_POISON = 0x41

#: Bytes before and after each array; a multiple of every alignment.
GUARD = 256


class HostError(RuntimeError):
    """The error of a call: the handler's own text, as XLA would show it.

    ``code`` is its name, as "INVALID_ARGUMENT"; "DATA_LOSS" when the handler wrote where it
    must not, or did not give back what it took.
    """

    def __init__(self, code: str, text: str):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Runtime:
    """What the handler finds around it. The defaults are a CPU and the newest API."""

    platform: str = "cpu"
    """"cpu": instantiate and execute run; "gpu": all stages, and memory of a device that
    is the host's."""
    minor: int = 0
    """Of the XLA FFI API, 1 to 5; 0 is the newest known."""
    threads: int | None = 2
    """Of the pool; 0: tasks run where they are scheduled; None: there is no pool."""
    device_ordinal: int = 0
    run_id: int = 1
    flush_denormals: bool = False
    """Run with flush-to-zero and denormals-are-zero, as XLA does on CPUs."""
    timeout_s: int = 60
    """For a call that completes after it returned."""
    unknown_extensions: int = 0
    """Nodes of unknown types in every chain of extensions."""
    fail_allocation: int = 0
    """The k-th allocation of the runtime fails; 0: none."""
    fail_error: int = 0
    """The k-th error that the handler makes finds no memory; 0: none."""

    def __post_init__(self) -> None:
        if self.platform not in ("cpu", "gpu"):
            raise ValueError(f"platform is 'cpu' or 'gpu', not {self.platform!r}")

    def numbers(self) -> dict[str, int]:
        out = {
            f.name: int(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if f.name not in ("platform", "threads")
        }
        out["profile"] = int(self.platform == "gpu")
        out["thread_count"] = -2 if self.threads is None else self.threads
        return out


def call(
    handler: Any,
    *arguments: Any,
    results: Any = None,
    attributes: Mapping[str, Any] | None = None,
    symbol: str | None = None,
    types: Mapping[str, Mapping[str, Any]] | None = None,
    runtime: Runtime | None = None,
) -> tuple[np.ndarray[Any, Any], ...]:
    """Calls a handler once, in this process, without XLA.

    >>> jaxc.host.call("librms.so", x, symbol="RmsNorm", results=x,
    ...                attributes={"eps": np.float32(1e-5)})
    >>> jaxc.host.call(jaxc.load("rms_norm.c").rms_norm, x, np.float32(1e-5))

    Args:
      handler: as `jaxc.register` takes it, or a `jaxc.Function`.
      arguments: arrays, of which the dtypes are exact; None is a token.
      results: anything with a shape and a dtype, or a sequence of such; None is a token.
        Left out for a Function, whose shapes are known.
      attributes: values as `jax.ffi.ffi_call` takes them, sent with the types that JAX
        sends; complex scalars too. Static parameters and dimensions of a Function.
      symbol: of the handler in a library.
      types: of states that have to be registered first, as `jaxc.register` takes them.
      runtime: what the handler finds around it.

    Returns:
      The results.

    Raises:
      HostError: with the text of an error that the handler returned; for writes outside of
        the results and into arguments; for results that were not written; for device
        memory, errors and futures that it did not give back.
      ValueError, TypeError: for operands that make no call, and for a function that is no
        handler, which is not called in this process.
    """
    runtime = runtime if runtime is not None else Runtime()
    if isinstance(handler, Function):
        if results is not None:
            raise TypeError(f"{handler.__name__}: its results are known, leave them out")
        values = [np.asarray(value) for value in arguments]
        out, written = call_guarded(
            handler, values, tuple((attributes or {}).items()), runtime=runtime
        )
        names = [f"'{name}'" for name in written]
    else:
        found = registration.find(handler, symbol=symbol)
        registration.version_of(found)  # refuses what is no handler
        if found.platform not in (None, "cpu") and runtime.platform == "cpu":
            raise ValueError(
                f"{found.origin} is written for {found.platform}: call it with "
                "runtime=Runtime(platform='gpu')"
            )
        guards = itertools.count(0x41)
        inputs = [_given(value, next(guards)) for value in arguments]
        outputs = [
            None if spec is None else _Guarded(*spec, next(guards), _POISON)
            for spec in _specs(results)
        ]
        before = [None if place is None else place.inside.copy() for place in inputs]
        _run(
            found.capsules(),
            [_record(place) for place in inputs],
            [_record(place) for place in outputs],
            encode(attributes or {}),
            runtime,
            types or {},
        )
        for i, (place, bytes_) in enumerate(zip(inputs, before, strict=True)):
            if place is not None and (place.inside != bytes_).any():
                raise HostError("DATA_LOSS", f"argument {i} was written")
        for i, place in enumerate(outputs):
            if place is not None and place.is_poison():
                raise HostError("DATA_LOSS", f"result {i} was not written")
        names = [
            f"{kind} {i}"
            for kind, places in (("argument", inputs), ("result", outputs))
            for i, place in enumerate(places)
            if place is not None and not place.is_intact()
        ]
        out = [place.array().copy() for place in outputs if place is not None]
    if names:
        raise HostError("DATA_LOSS", f"writes outside of {', '.join(names)}")
    return tuple(out)


def call_guarded(
    function: Function,
    operands: Sequence[Any],
    statics: Statics = (),
    *,
    poison: int = 0x41,
    guard: int = 0x41,
    runtime: Runtime | None = None,
) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """Calls a C function's handler once, in memory that is watched.

    Args:
      operands: arrays of the parameters that are operands, in order, with their dtypes.
      statics: values of static parameters and dimensions.
      poison: byte that fills every result before the call.
      guard: byte that fills the memory around the first array; each next has the next.
      runtime: what the handler finds around it.

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
        _Guarded(np.shape(value), p.numpy_dtype, next(guards), 0)
        for p, value in zip(description.with_role(*OPERANDS), operands, strict=True)
    ]
    for place, value in zip(inputs, operands, strict=True):
        place.array()[...] = np.asarray(value)
    found = shapes.infer(description, [np.shape(value) for value in operands], dict(statics))
    outputs = [
        _Guarded(shape, p.numpy_dtype, next(guards), poison)
        for p, shape in zip(description.with_role(*RESULTS), found, strict=True)
    ]
    tokens = [_TOKEN] if description.effect else []
    _run(
        {"execute": function.handlers["cpu"]},
        tokens + [_record(place) for place in inputs],
        tokens + [_record(place) for place in outputs],
        encode(function_attributes(function, statics)),
        runtime if runtime is not None else Runtime(),
    )
    pairs = list(zip(description.with_role(*OPERANDS), inputs, strict=True))
    pairs += zip(description.with_role(*RESULTS), outputs, strict=True)
    written = [p.name for p, place in pairs if not place.is_intact()]
    return [place.array().copy() for place in outputs], written


class _Guarded:
    """An array with guard bytes around it, so that what is read or written there shows."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], guard: int, fill: int):
        self.size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.guard = guard % 256
        self.memory = np.full(self.size + 2 * GUARD, self.guard, np.uint8)
        self.inside = self.memory[GUARD : GUARD + self.size]
        self.inside[...] = fill
        self.shape, self.dtype = tuple(shape), dtype

    def array(self) -> np.ndarray[Any, Any]:
        return self.inside.view(self.dtype).reshape(self.shape)

    def is_poison(self) -> bool:
        """Whether nothing was written, as far as 8 bytes or more can tell."""
        return self.size >= 8 and bool((self.inside == _POISON).all())

    def is_intact(self) -> bool:
        outside = np.concatenate([self.memory[:GUARD], self.memory[GUARD + self.size :]])
        return bool((outside == self.guard).all())


def _specs(results: Any) -> list[tuple[tuple[int, ...], np.dtype[Any]] | None]:
    """Shapes and dtypes of results; None is a token."""
    if results is None:
        return []
    out: list[tuple[tuple[int, ...], np.dtype[Any]] | None] = []
    for i, spec in enumerate(results if isinstance(results, (list, tuple)) else [results]):
        if spec is None:
            out.append(None)
        elif hasattr(spec, "shape") and hasattr(spec, "dtype"):
            out.append((tuple(spec.shape), np.dtype(spec.dtype)))
        else:
            raise TypeError(
                f"result {i} is {spec!r}, expected something with a shape and a dtype, as "
                "jax.ShapeDtypeStruct((3,), np.float32)"
            )
    return out


def _given(value: Any, guard: int) -> _Guarded | None:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype not in _NUMBERS:
        raise TypeError(f"an argument has dtype {array.dtype}, which XLA does not have")
    place = _Guarded(array.shape, array.dtype, guard, 0)
    place.array()[...] = array
    return place


def _record(place: _Guarded | None) -> tuple[int, tuple[int, ...], Any]:
    if place is None:
        return _TOKEN
    return _NUMBERS[place.dtype], place.shape, place.inside


def _run(
    stages: Mapping[str, Any],
    arguments: list[Any],
    results: list[Any],
    attrs: tuple[Any, ...],
    runtime: Runtime,
    types: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> None:
    error = _jaxc.call_handler(
        tuple(stages.get(stage) for stage in registration.STAGES),
        tuple(arguments),
        tuple(results),
        attrs,
        tuple((name, t["type_id"], t.get("type_info")) for name, t in types.items()),
        runtime.numbers(),
    )
    if error is not None:
        code, text = error
        raise HostError(CODES[code] if 0 <= code < len(CODES) else str(code), text)


def encode(values: Mapping[str, Any]) -> tuple[tuple[str, int, int, Any], ...]:
    """Attributes with the types that JAX and XLA give them.

    Raises:
      TypeError: for a value that cannot be an attribute, naming it.
    """
    for name in values:
        if not isinstance(name, str):
            raise TypeError(f"the attribute name {name!r} is no string")
    return tuple(_encoded(name, value) for name, value in values.items())


def _encoded(name: str, value: Any) -> tuple[str, int, int, Any]:
    if isinstance(value, Mapping):
        return name, _DICTIONARY, 0, encode(value)
    if isinstance(value, (str, bytes)):
        return name, _STRING, 0, value.encode() if isinstance(value, str) else value
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        # JAX sends Python's numbers as these, whatever jax_enable_x64 says.
        for python, kind in _PYTHON_NUMBERS:
            if isinstance(value, python):
                try:
                    value = kind(value)
                except OverflowError:
                    raise OverflowError(
                        f"attribute '{name}' is {value}, which no int64 holds"
                    ) from None
                break
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(
            f"attribute '{name}' has type {type(value).__name__}, expected a number, a string, "
            "a NumPy value or array, or a dictionary of these"
        )
    number = _NUMBERS.get(value.dtype)
    if number is None:
        raise TypeError(f"attribute '{name}' has dtype {value.dtype}, which XLA does not have")
    if number in _NO_ATTRIBUTES:
        raise TypeError(f"attribute '{name}' has dtype {value.dtype}, which JAX cannot send")
    kind_number = _ARRAY if isinstance(value, np.ndarray) else _SCALAR
    return name, kind_number, number, value.tobytes()
