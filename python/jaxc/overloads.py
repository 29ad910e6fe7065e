"""Several functions under one name: the dtypes of the arguments choose one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxc import numpy_form
from jaxc.description import OPERANDS, RESULTS, Description, Role
from jaxc.function import KINDS, MOST_READY, X64, Function


class OverloadedFunction:
    """Several C functions under one name; the dtypes of the arguments choose one."""

    def __init__(self, name: str, members: Sequence[Function]):
        self.__name__ = self.__qualname__ = name
        self.__module__ = "jaxc"
        self._members = tuple(members)
        #: (whether there are 64-bit types, kinds of arguments) -> the member that they choose
        self._chosen: dict[Any, Function] = {}
        self.__doc__ = "\n\n".join(m.__doc__ or "" for m in members)

    @property
    def members(self) -> tuple[Function, ...]:
        return self._members

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the first member whose parameters have the arguments' dtypes.

        Raises:
          TypeError: when no member fits, listing what each expects.
        """
        key = None
        if not kwargs:
            key = (jax.config.jax_enable_x64, *[_kind(arg) for arg in args])
            member = self._chosen.get(key)
            if member is not None:
                return member(*args)
        member, given, named = self.chosen(args, kwargs)
        if key is not None and len(self._chosen) < MOST_READY:
            self._chosen[key] = member
        return member(*given, **named)

    def chosen(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Function, Sequence[Any], Mapping[str, Any]]:
        """The member for these arguments, and its arguments.

        Raises:
          TypeError: when no member fits, listing what each expects.
        """
        member = self._choose(args, kwargs)
        if member is not None:
            return member, args, kwargs
        given = ", ".join(
            [_dtype_text(a) for a in args]
            + [f"{k}={_dtype_text(v)}" for k, v in kwargs.items()]
        )
        options = "".join(f"\n  {d.prototype}" for d in self._options())
        x64 = _about_x64((*args, *kwargs.values()))
        raise TypeError(f"{self.__name__}: no overload for ({given}){x64}; there are:{options}")

    @functools.cached_property
    def numpy(self) -> Any:
        """A NumPy ufunc with an inner loop for each overload; see `Function.numpy`."""
        return numpy_form.make(self.members, self.__name__, self.__doc__ or "")

    def _choose(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Function | None:
        """The member for these arguments, of which only types and dtypes count."""
        at = cheapest(self._options(), args, kwargs)
        return None if at is None else self.members[at]

    def _options(self) -> list[Description]:
        return [member.description for member in self.members]

    @property
    def signature(self) -> str:
        return self.members[0].signature

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OverloadedFunction) and self.members == other.members

    def __hash__(self) -> int:
        return hash(self.members)

    def __repr__(self) -> str:
        return f"<jaxc function {self.__name__}, {len(self.members)} overloads>"


class LazyOverloads(OverloadedFunction):
    """Overloads that are made when they are first called, with one derivative for all."""

    def __init__(self, name: str):
        super().__init__(name, ())
        self._made: dict[Any, Function] = {}
        self._rule: tuple[str, Any] | None = None
        self._lock = threading.Lock()

    def _make(self, key: Any) -> Function:
        raise NotImplementedError

    def _member(self, key: Any) -> Function:
        """The overload of this key, made once."""
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = self._make(key)
                if self._rule is not None:
                    self._apply(found)
        return found

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the derivative of all overloads; as `jaxc.Function.defjvp`."""
        self._set_rule("jvp", rule)
        return rule

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Gives their reverse derivative; as `jaxc.Function.defvjp`."""
        self._set_rule("vjp", (fwd, bwd))

    def _set_rule(self, kind: str, rule: Any) -> None:
        with self._lock:
            self._rule = (kind, rule)
            for member in self._made.values():
                self._apply(member)

    def _apply(self, member: Function) -> None:
        assert self._rule is not None
        kind, rule = self._rule
        if kind == "jvp":
            member.defjvp(rule)
        else:
            member.defvjp(*rule)


def overload(*functions: Function, name: str | None = None) -> OverloadedFunction:
    """One Python function of several C functions, chosen by dtype.

    Args:
      functions: tried in this order.
      name: of the result; else that of the first.

    Raises:
      TypeError: when there is none, or one is no jaxc function.
    """
    if not functions or not all(isinstance(f, Function) for f in functions):
        raise TypeError(f"jaxc.overload takes jaxc functions, got {functions!r}")
    return OverloadedFunction(name or functions[0].__name__, functions)


def cheapest(
    descriptions: Sequence[Description], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> int | None:
    """Which overload is meant; None where none fits.

    Arrays fit their own dtype alone. Numbers of Python, and values that are as weakly typed,
    fit several: the dtype is meant that JAX would give them, and of the overloads that are
    as near to that, the first.
    """
    costs = [_cost(description, args, kwargs) for description in descriptions]
    found = [(cost, at) for at, cost in enumerate(costs) if cost is not None]
    return min(found)[1] if found else None


def _cost(
    description: Description, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> int | None:
    """How far the parameters are from what JAX would make of the arguments."""
    positional = description.with_role(*OPERANDS, Role.STATIC)
    by_name = {p.name: p for p in positional}
    pairs = [*zip(positional, args, strict=False)]
    pairs += [(by_name[k], v) for k, v in kwargs.items() if k in by_name]
    if len(args) > len(positional):
        return None
    total = 0
    for parameter, value in pairs:
        if parameter.role == Role.STATIC:
            continue
        expected, dtype = parameter.numpy_dtype, getattr(value, "dtype", None)
        is_weak = dtype is None or bool(getattr(value, "weak_type", False))
        if not is_weak:
            if dtype != expected:
                return None
            continue
        name = _default_name(value)
        if name is None or KINDS[np.dtype(name).kind] > KINDS[expected.kind]:
            return None
        total += _distance(np.dtype(name), expected)
    arrays = description.with_role(*OPERANDS, *RESULTS)
    if not jax.config.jax_enable_x64 and any(p.numpy_dtype.name in X64 for p in arrays):
        total += 1000  # it will say what it needs, where nothing else fits
    return total


def _default_name(value: Any) -> str | None:
    """The dtype that JAX gives a value that has none of its own."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return str(dtype)
    wide = bool(jax.config.jax_enable_x64)
    names = {
        bool: "bool",
        int: "int64" if wide else "int32",
        float: "float64" if wide else "float32",
        complex: "complex128" if wide else "complex64",
    }
    return names.get(type(value))


def _distance(meant: np.dtype[Any], offered: np.dtype[Any]) -> int:
    """0 for the same; another kind is farther, and what is narrower than JAX's types most."""
    if meant == offered:
        return 0
    part = offered.itemsize // (2 if offered.kind == "c" else 1)
    default = 8 if jax.config.jax_enable_x64 else 4
    size = 0 if part == default else 1 if part > default else 100
    return 1 + 10 * (KINDS[offered.kind] - KINDS[meant.kind]) + size


def _kind(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    return type(value) if dtype is None else (dtype, getattr(value, "weak_type", False))


def _about_x64(values: Sequence[Any]) -> str:
    dtypes = [str(getattr(value, "dtype", "")) for value in values]
    if jax.config.jax_enable_x64 or not any(name in X64 for name in dtypes):
        return ""
    return ", and JAX has 64-bit types only with jax.config.update('jax_enable_x64', True)"


def _dtype_text(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else str(dtype)
