"""``Function.numpy``: C functions as NumPy's own ufuncs, without JAX.

The inner loop of the ufunc is the library's row loop, so that broadcasting, ``out=`` and, for
functions of numbers, ``where=`` and ``reduce`` are NumPy's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxc import _jaxc  # type: ignore[attr-defined]
from jaxc.description import OPERANDS, RESULTS, STRING, Description, Role

if TYPE_CHECKING:
    from jaxc.function import Function
    from jaxc.primitive import Statics

#: Most sets of static values for which a ufunc is kept at hand.
_MOST_KEPT = 256


def make(members: Sequence[Function], name: str, doc: str) -> Any:
    """A ufunc, or, for functions with static values, what makes one for its values.

    Raises:
      TypeError: when the members have different signatures, and so cannot be one ufunc.
    """
    first = members[0].description
    for member in members[1:]:
        d = member.description
        if d.signature != first.signature or _statics(d) != _statics(first):
            raise TypeError(
                f"{name}: its overloads have different signatures, {first.signature} and "
                f"{d.signature}, and no ufunc has both; take .members[i].numpy"
            )
    if _statics(first):
        return StaticForm(members, name, doc)
    return _ufunc(members, name, doc, ())


class StaticForm:
    """A NumPy form whose static values are keyword arguments beside the ufunc's own."""

    def __init__(self, members: Sequence[Function], name: str, doc: str):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self._members = members
        self._names = _statics(members[0].description)
        self._kept = functools.lru_cache(_MOST_KEPT)(self._make)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the ufunc; arguments by position in the C prototype's order."""
        inputs, values = self._bind(args, kwargs)
        key = tuple((name, repr(values[name])) for name in self._names)
        return self._kept(key, _Values(values))(*inputs, **kwargs)

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """Inputs with the outputs behind them, and static values, taken out of kwargs."""
        description = self._members[0].description
        positional = description.with_role(*OPERANDS, Role.STATIC)
        values = {name: kwargs.pop(name) for name in self._names if name in kwargs}
        if all(p.name in values for p in positional if p.role == Role.STATIC):
            positional = description.with_role(*OPERANDS)  # what comes by position is arrays
        for parameter, value in zip(positional, args, strict=False):
            if parameter.name in values:
                raise TypeError(
                    f"{self.__name__}: argument '{parameter.name}' is given by position and by "
                    "name"
                )
            values[parameter.name] = value
        operands = [p.name for p in description.with_role(*OPERANDS)]
        for name in operands:
            if name in kwargs and name not in values:
                values[name] = kwargs.pop(name)
        missing = [name for name in (*operands, *self._names) if name not in values]
        if missing:
            raise TypeError(f"{self.__name__}: argument '{missing[0]}' is missing")
        inputs = [values.pop(name) for name in operands]
        return [*inputs, *args[len(positional) :]], values

    def _make(self, key: Any, values: _Values) -> Any:
        member = self._members[0]
        statics = member.check_statics(values.values)
        return _ufunc(self._members, self.__name__, self.__doc__ or "", statics)

    def __repr__(self) -> str:
        return f"<numpy form of {self.__name__}, static: {', '.join(self._names)}>"


class _Values:
    """Static values, which the key beside them stands for."""

    def __init__(self, values: dict[str, Any]):
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Values)

    def __hash__(self) -> int:
        return 0


def _statics(description: Description) -> tuple[str, ...]:
    parameters = tuple(p.name for p in description.with_role(Role.STATIC))
    return parameters + tuple(dim.name for dim in description.dims if dim.is_static)


def _ufunc(members: Sequence[Function], name: str, doc: str, statics: Statics) -> Any:
    first = members[0].description
    counts = (len(first.with_role(*OPERANDS)), len(first.with_role(*RESULTS)))
    signature = _signature(first)
    if signature is not None and counts[1] == 0:
        raise TypeError(f"{name}: has core axes and no result, and no ufunc of NumPy is that")
    loops = tuple(_loop(member, dict(statics)) for member in members)
    return _jaxc.make_ufunc(loops, counts, name, doc, signature)


def _loop(member: Function, statics: dict[str, Any]) -> tuple[Any, ...]:
    d = member.description
    arrays = [*d.with_role(*OPERANDS), *d.with_role(*RESULTS)]
    values: list[tuple[int, bytes | str]] = []
    for k, parameter in enumerate(d.parameters):
        if parameter.role != Role.STATIC:
            continue
        value = statics[parameter.name]
        if parameter.dtype == STRING:
            values.append((k, value))
        else:
            values.append((k, np.asarray(value, parameter.numpy_dtype).tobytes()))
    dims = tuple((i, statics[dim.name]) for i, dim in enumerate(d.dims) if dim.is_static)
    return member.capsule, tuple(p.numpy_dtype.num for p in arrays), tuple(values), dims


def _signature(description: Description) -> str | None:
    """The signature with a name for each bound; None for a function of numbers."""
    names: dict[str, str] = {}

    def axis(text: str) -> str:
        text = text.replace(" ", "")
        if text not in names:
            name = text if text.isdigit() else re.sub(r"\W+", "_", text)
            name = name if text.isdigit() or name[0].isalpha() else "d" + name
            while name in names.values():
                name += "_"
            names[text] = name
        return names[text]

    def side(*roles: Role) -> str:
        return ",".join(
            "(" + ",".join(axis(b.text) for b in p.bounds) + ")"
            for p in description.with_role(*roles)
        )

    if not any(p.rank for p in description.with_role(*OPERANDS, *RESULTS)):
        return None
    # names of dimensions come first, so that an expression does not take one
    for dim in description.dims:
        names[dim.name] = dim.name
    return f"{side(*OPERANDS)}->{side(*RESULTS)}"
