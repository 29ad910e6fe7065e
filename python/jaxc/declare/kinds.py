"""What a call passes, compared between a declaration and who else knows the function's type."""

from __future__ import annotations

import ctypes
import dataclasses
import re

import numpy as np

from jaxc.declare.types import CANONICAL
from jaxc.description import STRING, Description, Dim, Parameter, Role


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type as a call sees it.

    Attributes:
      element: NumPy's name of the type, of what a pointer points to too; "char", "void", or
        another word for what no array holds; None when it is not known.
      is_pointer: arrays are pointers as well.
      text: what who knows it calls it.
    """

    element: str | None
    is_pointer: bool = False
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Signature:
    """What an object says of its function.

    Attributes:
      owner: what the object is, for messages.
      text: the function's type in the object's words.
      result, parameters: None for what it does not say.
      hidden: how many of the last parameters are Cython's own, which are 0 in calls from C.
    """

    owner: str
    text: str
    result: Kind | None
    parameters: tuple[Kind, ...] | None
    hidden: int = 0


#: C's words -> NumPy's name, as this process has them.
_ELEMENTS = {
    "void": "void", "_Bool": "bool", "char": "char", "float": "float32", "double": "float64",
    "float _Complex": "complex64", "double _Complex": "complex128",
    **{
        name: np.dtype(ctype).name
        for name, ctype in {
            "signed char": ctypes.c_byte, "unsigned char": ctypes.c_ubyte,
            "short": ctypes.c_short, "unsigned short": ctypes.c_ushort,
            "int": ctypes.c_int, "unsigned int": ctypes.c_uint,
            "long": ctypes.c_long, "unsigned long": ctypes.c_ulong,
            "long long": ctypes.c_longlong, "unsigned long long": ctypes.c_ulonglong,
        }.items()
    },
}  # fmt: skip
#: Names that are the same in all files of Cython.
_CYTHON = {
    "__pyx_t_double_complex": "complex128",
    "__pyx_t_float_complex": "complex64",
    "Py_ssize_t": np.dtype(np.intp).name,
    "size_t": np.dtype(np.uintp).name,
}
_HIDDEN = ("__pyx_skip_dispatch", "__pyx_optional_args")


def of_c(text: str, owner: str) -> Signature | None:
    """What ``double (int, double *)`` says; None for other text than such a type."""
    match = re.fullmatch(r"([^()]+)\(([^()]*)\)", text.strip())
    if match is None:
        return None
    words = [part.strip() for part in match[2].split(",")]
    if words in ([""], ["void"]):
        words = []
    hidden = 0
    while hidden < len(words) and words[-1 - hidden].endswith(_HIDDEN):
        hidden += 1
    parameters = tuple(_of_words(word) for word in words)
    return Signature(owner, text, _of_words(match[1].strip()), parameters, hidden)


def _of_words(text: str) -> Kind:
    words = re.findall(r"\w+", re.sub(r"\b(const|restrict|volatile)\b", "", text))
    is_pointer = "*" in text or "[" in text
    # The last word may be the parameter's name.
    element = _element(words) or _element(words[:-1])
    if text.count("*") + text.count("[") > 1:
        element = None
    return Kind(element, is_pointer, text)


def _element(words: list[str]) -> str | None:
    canonical = CANONICAL.get(tuple(sorted(words)), "")
    return _CYTHON.get(" ".join(words)) or _ELEMENTS.get(canonical) or canonical or None


# ---- the declaration ----


def _of_parameter(parameter: Parameter, dims: tuple[Dim, ...]) -> Kind:
    if parameter.role == Role.DIM:
        dim = dims[parameter.dim]
        bits = next(b for b in (8, 16, 32, 64) if dim.maximum.bit_length() <= b)
        integer = f"{'' if dim.minimum else 'u'}int{bits}"
        return Kind(_plain_char(integer, parameter))
    if parameter.dtype == STRING:
        return Kind("char", True)
    if parameter.role in (Role.INDEX, Role.CONTEXT):
        return Kind(None, parameter.role == Role.CONTEXT)
    # What NumPy itself has not, as bfloat16, is some integer to others.
    is_known = parameter.numpy_dtype.isbuiltin == 1
    element = parameter.numpy_dtype.name if is_known else None
    by_value = parameter.role in (Role.INPUT, Role.STATIC) and parameter.rank == 0
    is_pointer = not by_value or re.search(r"[*\[]", parameter.declaration) is not None
    return Kind(_plain_char(element, parameter), is_pointer)


def _plain_char(element: str | None, parameter: Parameter) -> str | None:
    is_plain = re.search(r"(?<!signed )\bchar\b", parameter.declaration)
    return "char" if is_plain else element


def _result(description: Description) -> Kind:
    value = next((p for p in description.parameters if p.name == "return"), None)
    if value is not None:
        return dataclasses.replace(_of_parameter(value, ()), is_pointer=False)
    return _of_words(head(description))


def head(description: Description) -> str:
    """What the function returns, as its prototype has it."""
    return description.prototype.partition(f"{description.name}(")[0].strip()


def passed(description: Description) -> list[tuple[Parameter, Kind]]:
    """The C function's own parameters and what a call passes for each."""
    return [
        (p, _of_parameter(p, description.dims))
        for p in description.parameters
        if p.role != Role.DATA and p.name != "return"
    ]


def _differ(ours: Kind, theirs: Kind) -> bool:
    if ours.element is None and not ours.is_pointer:
        return False
    if theirs.element is None and not theirs.is_pointer:
        return False
    if ours.is_pointer != theirs.is_pointer:
        return True
    elements = {ours.element, theirs.element}
    if None in elements or len(elements) == 1 or (ours.is_pointer and "void" in elements):
        return False
    return not ("char" in elements and elements & {"int8", "uint8"})


def difference(description: Description, signature: Signature) -> str | None:
    """What an object's type and the declaration do not agree in, or None."""
    mine = passed(description)
    theirs = signature.parameters
    if theirs is not None:
        if not len(theirs) - signature.hidden <= len(mine) <= len(theirs):
            count = len(theirs) - signature.hidden
            return f"it takes {count or 'no'} parameter{'s' * (count != 1)}, not {len(mine)}"
        for (parameter, kind), other in zip(mine, theirs, strict=False):
            if _differ(kind, other):
                return (
                    f"parameter '{parameter.name}' ({parameter.declaration}) is {other.text} "
                    "there"
                )
    if signature.result is not None and _differ(_result(description), signature.result):
        return f"it returns {signature.result.text}, not {head(description)}"
    return None
