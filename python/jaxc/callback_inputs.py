"""What the definition of a callback and its arguments say: names, dtypes, static values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxc import compat
from jaxc.description import NUMBERS, STRING
from jaxc.signature import Signature, parse

#: Type of a static value -> what XLA sends it as.
STATICS: Mapping[type, int] = {
    bool: NUMBERS[np.dtype(np.bool_)],
    int: NUMBERS[np.dtype(np.int64)],
    float: NUMBERS[np.dtype(np.float64)],
    complex: NUMBERS[np.dtype(np.complex128)],
    str: STRING,
}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# ---- definitions ----


def parse_signature(name: str, text: str, effect: bool) -> Signature:
    try:
        return parse(text, needs_output=not effect)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def dtype_rule(
    name: str, dtype: Any, parsed: Signature
) -> Callable[[tuple[np.dtype[Any], ...]], tuple[np.dtype[Any], ...]]:
    """(dtypes of inputs) -> dtypes of outputs."""
    count = len(parsed.outputs)
    if dtype is None and parsed.outputs and not parsed.inputs:
        raise TypeError(f"{name}: has no inputs, so give the dtype of its outputs, dtype=...")

    def of(dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...]:
        found = dtype
        if not count:
            return ()
        if found is None:
            found = functools.reduce(jnp.promote_types, dtypes)
        elif callable(found) and not isinstance(found, type):
            found = found(*dtypes)
        many = found if isinstance(found, (tuple, list)) else (found,) * count
        if len(many) != count:
            raise TypeError(f"{name}: has {count} outputs, got {len(many)} dtypes: {found!r}")
        out = tuple(np.dtype(one) for one in many)
        for one in out:
            if one not in NUMBERS:
                raise TypeError(f"{name}: an output of dtype {one} is not possible in JAX")
        return out

    if dtype is not None and (isinstance(dtype, type) or not callable(dtype)):
        of(())  # what is wrong is wrong at once
    return of


def parameters_of(
    name: str, function: Callable[..., Any], parsed: Signature
) -> tuple[list[str], dict[str, Any], bool]:
    """Names of arrays, defaults of static values, and whether it takes any."""
    inputs, outputs = len(parsed.inputs), len(parsed.outputs)
    count = inputs + outputs
    letters = [f"x{i + 1}" for i in range(inputs)] + [f"out{i + 1}" for i in range(outputs)]
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # as of some functions written in C
        return letters, {}, False
    positional = [p for p in found if p.kind in _POSITIONAL]
    takes_more = any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in found)
    needed = sum(p.default is inspect.Parameter.empty for p in positional)
    if needed > count or (len(positional) < count and not takes_more):
        takes = ", ".join(p.name for p in positional) or "none"
        raise TypeError(
            f"{name}: takes {len(positional)} positional arguments ({takes}), and is called "
            f"with {inputs} inputs and {outputs} outputs to write into; "
            + (
                "a method goes in bound: jaxc.callback(...)(object.method)"
                if positional and positional[0].name == "self"
                else "static values are keyword-only, after *"
            )
        )
    names = [p.name for p in positional[:count]]
    names += letters[len(names) :]
    statics = {p.name: p.default for p in found if p.kind == inspect.Parameter.KEYWORD_ONLY}
    read = {dim for bounds in parsed.inputs for bound in bounds for dim in bound.dims}
    keywords = {dim for number, dim in enumerate(parsed.dims) if number not in read}
    clash = sorted(keywords & (set(names[:inputs]) | set(statics)))
    if clash:
        raise TypeError(
            f"{name}: '{clash[0]}' is an argument, and an axis that no input has, which is a "
            "keyword too"
        )
    any_static = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in found)
    return names, statics, any_static


# ---- values ----


def static_type(name: str, key: str, value: Any) -> int:
    if isinstance(value, compat.Tracer):
        raise TypeError(
            f"{name}: '{key}' is static and must be a Python value, got a traced "
            f"{value.aval.str_short()}; make it an input, or under jit give "
            f"static_argnames='{key}'"
        )
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) not in STATICS:
        raise TypeError(
            f"{name}: static value '{key}' must be a bool, int, float, complex or str, got "
            f"{value!r}"
        )
    return STATICS[type(value)]


def numbers_as_arrays(name: str, names: Sequence[str], inputs: Sequence[Any]) -> list[Any]:
    """Inputs with a dtype. A number takes that of the arrays of its kind, or JAX's default."""
    out = []
    for key, value in zip(names, inputs, strict=False):
        if not isinstance(value, jax.Array) and hasattr(value, "__jax_array__"):
            value = value.__jax_array__()
        is_number = isinstance(value, (bool, int, float, complex))
        if not is_number and not isinstance(value, (np.ndarray, np.generic, jax.Array)):
            raise TypeError(
                f"{name}: argument '{key}' is a {type(value).__name__}, expected an array"
            )
        if not is_number and value.dtype not in NUMBERS:
            raise TypeError(
                f"{name}: argument '{key}' has dtype {value.dtype}, which a NumPy view of "
                "XLA's memory cannot have"
            )
        out.append(value)
    strong = [np.dtype(a.dtype) for a in out if hasattr(a, "dtype") and not _is_weak(a)]
    for i, value in enumerate(out):
        if not _is_weak(value):
            continue
        kind = jnp.result_type(value)
        same = [d for d in strong if _kind(d) == _kind(kind)]
        out[i] = jnp.asarray(value, jnp.result_type(*same) if same else kind)
    return out


def _kind(dtype: Any) -> str:
    kind: str = np.dtype(dtype).kind
    return {"V": "f", "u": "i"}.get(kind, kind)


def _is_weak(value: Any) -> bool:
    is_number = isinstance(value, (bool, int, float, complex))
    if is_number and not isinstance(value, np.generic):
        return True
    return bool(getattr(value, "weak_type", False))


def plain(value: Any) -> Any:
    """A list, or what else NumPy takes, as an array; a number as it is."""
    is_number = isinstance(value, (bool, int, float, complex))
    return value if is_number else np.asarray(value)
