"""Functions that no compiler wrote a handler for, as jaxc functions.

Loops of NumPy's ufuncs, Python functions, and C functions of which only the address is known
are described as C functions are; ``_jaxc`` gives each a handler from a pool.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Mapping
from typing import Any

from jaxc import targets
from jaxc.description import NUMBERS, OPERANDS, RESULTS, STRING, Description, Parameter, Role
from jaxc.function import Function

#: C's names of element types, by NumPy's.
C_TYPES: Mapping[str, str] = {
    "bool": "_Bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t", "float16": "_Float16", "float32": "float", "float64": "double",
    "complex64": "float complex", "complex128": "double complex", "bfloat16": "jaxc_bf16",
    "float8_e4m3fn": "jaxc_f8e4m3fn", "float8_e5m2": "jaxc_f8e5m2",
}  # fmt: skip

#: The place of a function's own data: before all its parameters.
DATA = Parameter("", "", Role.DATA, 0, 0, ())

_BY_NAME = {dtype.name: number for dtype, number in NUMBERS.items()}

_taken: dict[str, Any] = {}
_random: dict[tuple[str, int], str] = {}
_kept: list[Any] = []
_lock = threading.Lock()


def unique(name: str, owner: Any, is_stable: bool = True) -> str:
    """``name``, or ``name#<random>``, which no other process has, where it says too little.

    Programs find what they call by name. A name that another object has already, or that a
    function of another process might have by accident, would run the wrong one.

    Args:
      owner: the object that has the name for the life of the process.
      is_stable: whether the name means the same in every process.
    """
    with _lock:
        if is_stable and _taken.setdefault(name, owner) is owner:
            return name
        random = _random.setdefault((name, id(owner)), secrets.token_hex(4))
        _kept.append(owner)  # so that its number is not another's
        return f"{name}#{random}"


def record(description: Description) -> tuple[Any, ...]:
    """A description as ``_jaxc`` takes it."""
    return (
        description.name,
        int(description.serial) | int(description.effect) << 1,
        tuple(
            (p.name, p.declaration, int(p.role), p.dtype,
             tuple((b.text, tuple((int(c), a) for c, a in b.steps)) for b in p.bounds), p.dim,
             0)
            for p in description.parameters
        ),
        tuple((d.name, d.minimum, d.maximum, d.is_static) for d in description.dims),
        description.solve,
        description.counts,
    )  # fmt: skip


def publish(
    library: str,
    description: Description,
    made: tuple[Any, Any],
    recipe: tuple[Any, ...],
    parts: tuple[str, ...] = (),
    name: str | None = None,
    is_typed: bool = True,
) -> Function:
    """A function with its target registered.

    The target's name says dtypes and types of static values where the function is one of
    several, so that a process that has what they are made of can make it; see `overload_of`.

    Args:
      library: the middle of the target's name.
      made: capsules of handler and function, as ``_jaxc`` returned them.
      recipe: for pickling.
      parts: what else tells it from another function of the same names.
      name: in its module, where that is not the function's own.
      is_typed: whether it is one of several.
    """
    handler, capsule = made
    described = repr((description.prototype, [p.dtype for p in description.parameters]))
    digest = hashlib.sha256(repr((described, parts)).encode()).hexdigest()[:16]
    shown = name or description.name
    if is_typed:
        shown += f"[{_types(description)}]"
    target = targets.name(library, shown, digest)
    targets.register(target, description, "cpu", handler, None)
    return Function(description, {"cpu": target}, target, recipe, {"cpu": handler}, capsule)


def _types(description: Description) -> str:
    arrays = description.with_role(*OPERANDS, *RESULTS)
    statics = description.with_role(Role.STATIC)
    named = [f"{p.name}={'str' if p.dtype == STRING else p.numpy_dtype}" for p in statics]
    return ",".join([p.numpy_dtype.name for p in arrays] + named)


def overload_of(name: str) -> tuple[str, tuple[str, ...], tuple[tuple[str, int], ...]] | None:
    """What a target's name says: function, dtypes of arrays, types of static values."""
    match = re.fullmatch(r"(.+)\[([\w,=]*)\]", name)
    if match is None:
        return None
    dtypes, statics = [], []
    for item in match[2].split(","):
        key, is_static, kind = item.rpartition("=")
        if not is_static:
            dtypes.append(kind)
        else:
            number = STRING if kind == "str" else _BY_NAME.get(kind)
            if number is None:
                return None
            statics.append((key, number))
    return match[1], tuple(dtypes), tuple(statics)


def declaration(name: str, dtype: str, axes: tuple[str, ...], is_input: bool) -> str:
    """An array as C would declare it."""
    const = "const " if is_input and axes else ""
    star = "" if is_input or axes else "*"
    return f"{const}{C_TYPES[dtype]} {star}{name}" + "".join(f"[{axis}]" for axis in axes)
