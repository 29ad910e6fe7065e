"""A C function as a JAX function: arguments in, arrays out."""

from __future__ import annotations

import functools
import inspect
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import JaxRuntimeError

from jaxc import compat, numpy_form, sharding
from jaxc.description import OPERANDS, RESULTS, STRING, Description, Parameter, Role
from jaxc.link import Rules
from jaxc.primitive import Statics, call_p

#: Kind of a dtype -> its rank among kinds: what is of a lower one may become it.
KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # V: bfloat16 and 8-bit floats
#: What rounds to infinity in float32 is larger than this.
_LARGEST_FLOAT = 3.4028235677973366e38
#: Most static values, and types of arguments, for which a compiled call is kept at hand.
MOST_READY = 1024
#: Element types that JAX has with jax_enable_x64 only.
X64 = frozenset({"int64", "uint64", "float64", "complex128"})


class Function:
    """A C function that JAX can call.

    Takes the array, scalar and static parameters of the C prototype in its order or by
    name; dimensions that no array determines are keyword arguments. Leading axes of the
    arrays broadcast as in NumPy. Returns one array, or a tuple in the prototype's order.
    Equal functions of the same build are equal, hash alike and pickle by library and name.

    Attributes:
      signature: core dims in NumPy's gufunc notation, ``(n),()->(n)``.
      prototype: the C declaration.
      description: all that jaxc knows of it.
      targets: platform -> name of the XLA custom call target.
    """

    def __init__(
        self,
        description: Description,
        targets: Mapping[str, str],
        library_path: str,
        recipe: tuple[Any, ...],
        handlers: Mapping[str, Any] | None = None,
        capsule: Any = None,
    ):
        self.description = description
        #: of the C struct that describes it, for calls without a handler
        self.capsule = capsule
        #: platform -> capsule of the handler, for calls without XLA
        self.handlers = dict(handlers or {})
        self.targets = dict(targets)
        self.signature = description.signature
        self.prototype = description.prototype
        self.__name__ = self.__qualname__ = description.name
        self.__module__ = "jaxc"
        self.__doc__ = "\n\n".join(
            part for part in (description.doc, f"C: {description.prototype}") if part
        )
        self.__signature__ = _python_signature(description)
        #: Derivative kernels; the library links them once all its functions are there.
        self.rules = Rules()
        #: Statics -> the call with its rule given in Python, if there is one.
        self._ruled: Callable[[Statics], Callable[..., Any]] | None = None
        self._rule_kind: str | None = None
        self._identity: tuple[Any, ...] = (library_path, description.name)
        self._recipe = recipe
        self._operands = description.with_role(*OPERANDS)
        self._positional = description.with_role(*OPERANDS, Role.STATIC)
        self._static_dims = tuple(dim for dim in description.dims if dim.is_static)
        self._many = len(description.with_role(*RESULTS)) != 1
        # inline: in the caller's program the call stands bare. Eagerly, a cached jit is the
        # path that costs least, and a static keyword would cost 1 us of it.
        self._jitted: dict[str, Callable[..., Any]] = {}
        #: (types of arguments that jit takes as they are, static values) -> the jitted call;
        #: what jit sees is checked when it traces.
        self._ready: dict[Any, Callable[..., Any]] = {}
        places = list(enumerate(self._positional))
        self._static_places = [i for i, p in places if p.role == Role.STATIC]
        self._operand_places = [i for i, p in places if p.role != Role.STATIC]
        self._single_precision = [
            i
            for i, p in places
            if p.role != Role.STATIC
            and p.rank == 0
            and p.numpy_dtype.name in ("float32", "complex64")
        ]

    @functools.cached_property
    def numpy(self) -> Any:
        """The function as a NumPy ufunc over the same C loop, without JAX.

        Broadcasting, casting, ``out=`` and ``axes=`` are NumPy's, and, for a function of
        numbers, ``where=`` and ``reduce``. Static values are keywords, as in the function
        itself. Usable in a `jaxc.callback`, and from several threads; NumPy runs the rows in
        the calling one. An error of the C function is a RuntimeError.
        """
        return numpy_form.make((self,), self.__name__, self.__doc__ or "")

    @property
    def forbid_gather(self) -> bool:
        """Whether an argument whose core axis is sharded, in automatic mode, is an error.

        Otherwise it is gathered, with a `jaxc.GatherWarning`. Looked at when a program is
        compiled. ``jaxc.config.forbid_gather`` is the same for all functions.
        """
        found = [sharding.partitioners.get(target) for target in self.targets.values()]
        return any(p is not None and p.forbid_gather for p in found)

    @forbid_gather.setter
    def forbid_gather(self, value: bool) -> None:
        for target in self.targets.values():
            if target in sharding.partitioners:  # a call with effects is never divided
                sharding.partitioners[target].forbid_gather = value

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the C function.

        Raises:
          TypeError: for an argument of another dtype, a missing or unknown one.
          ValueError: for shapes that do not agree.
          jax.errors.JaxRuntimeError: when the C function reports an error. In a program of
            one's own JAX raises this, or a ValueError with the same text where the program has
            run before.
        """
        if not kwargs:
            key: Any = tuple(map(type, args))
            if self._static_places:
                key = (key, *[args[i] for i in self._static_places if i < len(args)])
            try:
                call = self._ready.get(key)
            except TypeError:  # a static value that is no key, to be refused below
                call = None
            if call is not None:
                for position in self._single_precision:
                    value = args[position]
                    if type(value) is float and _LARGEST_FLOAT < abs(value) < math.inf:
                        break  # jit would make it infinite
                else:
                    given = args
                    if self._static_places:
                        given = tuple([args[i] for i in self._operand_places])
                    try:
                        return call(*given)
                    except ValueError as error:
                        _raise_status(error)
                        raise
        return self._call(args, kwargs)

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        operands, statics = self._bind(args, kwargs)
        if any(isinstance(value, compat.Tracer) for value in operands):
            return self._trace(*operands, statics=statics)
        converted = [
            self._concrete(parameter, value)
            for parameter, value in zip(self._operands, operands, strict=True)
        ]
        call = self._jitted_for(statics)
        try:
            results = call(*converted)
        except ValueError as error:
            _raise_status(error)
            raise
        if not kwargs and len(args) == len(self._positional):
            self._remember(args, call)
        return results

    def _remember(self, args: Sequence[Any], call: Callable[..., Any]) -> None:
        """Lets the next call with arguments of these types go to jit at once."""
        types = tuple(map(type, args))
        kinds = [types[i] for i in self._operand_places]
        if not all(map(self._is_plain, self._operands, kinds)):
            return
        key: Any = types
        if self._static_places:
            values = [args[i] for i in self._static_places]
            if any(isinstance(v, float) and (v == 0 or v != v) for v in values):
                return  # 0.0 is -0.0 to a dictionary, and NaN is not itself
            key = (types, *values)
        if len(self._ready) < MOST_READY:
            self._ready[key] = call

    def _jitted_for(self, statics: Statics) -> Callable[..., Any]:
        # By their text: 0.0 and -0.0 are equal and must not be the same program.
        key = repr(statics)
        found = self._jitted.get(key)
        if found is None:
            if len(self._jitted) >= MOST_READY:
                self._jitted.clear()
                self._ready.clear()
            found = self._jitted[key] = self._make_jitted(statics)
        return found

    @staticmethod
    def _is_plain(parameter: Parameter, kind: type) -> bool:
        """Whether jit may see a value of this type itself: its conversion loses nothing."""
        if kind is float:
            wide = ("float32", "float64", "complex64", "complex128")
            return parameter.rank == 0 and parameter.numpy_dtype.name in wide
        # A weakly typed integer may be too large for its C type: not taken unseen.
        is_integer = parameter.rank == 0 and parameter.numpy_dtype.kind in "iu"
        return issubclass(kind, jax.Array) and not is_integer

    def _make_jitted(self, statics: Statics) -> Callable[..., Any]:
        def traced(*operands: Any) -> Any:
            return self._trace(*operands, statics=statics)

        traced.__name__ = traced.__qualname__ = self.__name__
        jitted: Callable[..., Any] = jax.jit(traced, inline=True)
        return jitted

    def _bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Statics]:
        """Arguments by position or name to operands in order and static values."""
        name = self.__name__
        if len(args) > len(self._positional):
            raise TypeError(
                f"{name}: takes {len(self._positional)} arguments "
                f"({', '.join(p.name for p in self._positional) or 'none'}), got {len(args)}"
            )
        values = dict(zip((p.name for p in self._positional), args, strict=False))
        dims = {dim.name for dim in self._static_dims}
        known = {p.name for p in self._positional} | dims
        for key, value in kwargs.items():
            if key not in known and key.endswith("_") and keyword.iskeyword(key[:-1]):
                key = key[:-1]  # lambda_ for a C parameter called lambda
            if key not in known:
                raise TypeError(f"{name}: {self._unknown_keyword(key, known)}")
            if key in values:
                raise TypeError(f"{name}: argument '{key}' is given by position and by name")
            values[key] = value
        missing = [p for p in self._positional if p.name not in values]
        if missing:
            raise TypeError(
                f"{name}: argument '{missing[0].name}' is missing {missing[0].shown}"
            )
        return [values[p.name] for p in self._operands], self.check_statics(values)

    def check_statics(self, values: Mapping[str, Any]) -> Statics:
        """Static values and static dimensions in order, as the C types have them."""
        statics = [
            (p.name, self._static(p, values[p.name]))
            for p in self._positional
            if p.role == Role.STATIC
        ]
        for dim in self._static_dims:
            if dim.name not in values:
                raise TypeError(
                    f"{self.__name__}: dimension '{dim.name}' is missing: no array has it, "
                    f"give it by keyword, {dim.name}=... (C: {self.prototype})"
                )
            statics.append((dim.name, self._static_int(dim.name, values[dim.name])))
        return tuple(statics)

    def _unknown_keyword(self, key: str, known: set[str]) -> str:
        if any(dim.name == key for dim in self.description.dims):
            return f"dimension '{key}' is read from the arrays' shapes and is no argument"
        takes = ", ".join(sorted(known)) or "none"
        return f"has no argument '{key}'; it takes {takes}"

    def _static_int(self, name: str, value: Any) -> int:
        if isinstance(value, compat.Tracer):
            raise TypeError(
                f"{self.__name__}: '{name}' is static and must be a Python value, got a traced "
                f"{value.aval.str_short()}; {_static_hint(name)}"
            )
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{self.__name__}: '{name}' must be an int, got {value!r}")
        return int(value)

    def _static(self, parameter: Parameter, value: Any) -> Any:
        """A static value, checked against the parameter's C type."""
        where = f"{self.__name__}: static argument '{parameter.name}'"
        shown = parameter.shown
        if isinstance(value, compat.Tracer):
            raise TypeError(
                f"{where} must be a Python value, got a traced {value.aval.str_short()}; "
                f"{_static_hint(parameter.name)} {shown}"
            )
        if parameter.dtype == STRING:
            if not isinstance(value, str):
                raise TypeError(f"{where} must be a str, got {value!r} {shown}")
            if "\0" in value:
                raise ValueError(f"{where} has a NUL character, which ends a C string")
            return value
        return _scalar(where, parameter, value).item()

    def _concrete(self, parameter: Parameter, value: Any) -> Any:
        """A value as jit may take it: a number in the parameter's dtype, an array as it is."""
        where = f"{self.__name__}: argument '{parameter.name}'"
        is_number = isinstance(value, (bool, int, float, complex))
        if is_number and not isinstance(value, np.generic):
            return _scalar(where, parameter, value)
        if (
            isinstance(value, np.generic)
            and parameter.rank == 0
            and value.dtype.kind in "biufc"
        ):
            return _scalar(where, parameter, value)  # np.sqrt(2.0) is a number, not an array
        if isinstance(value, (np.ndarray, np.generic)):
            self._check_dtype(parameter, value.dtype, weak=False)
            return value
        if isinstance(value, jax.Array):
            is_number = parameter.rank == 0 and value.ndim == 0 and value.weak_type
            if is_number and not isinstance(value, compat.Tracer):
                return _scalar(where, parameter, value.item())
            return value
        if hasattr(value, "__jax_array__"):
            return value.__jax_array__()
        raise TypeError(
            f"{where} is a {type(value).__name__}, expected an array {parameter.shown}"
        )

    def _check_dtype(self, parameter: Parameter, dtype: Any, weak: bool) -> None:
        expected = parameter.numpy_dtype
        kinds = KINDS.get(getattr(dtype, "kind", ""), 9), KINDS[expected.kind]
        if dtype == expected or (weak and kinds[0] <= kinds[1]):
            return
        raise TypeError(
            f"{self.__name__}: argument '{parameter.name}' has dtype {dtype}, expected "
            f"{expected} {parameter.shown}"
        )

    def _check_x64(self) -> None:
        if jax.config.jax_enable_x64:
            return
        for parameter in self.description.with_role(*OPERANDS, *RESULTS):
            if parameter.numpy_dtype.name in X64:
                what = "its result" if parameter.name == "return" else f"'{parameter.name}'"
                raise TypeError(
                    f"{self.__name__}: {what} is {parameter.numpy_dtype} "
                    f"{parameter.shown}, and JAX has 64-bit types only with "
                    "jax.config.update('jax_enable_x64', True)"
                )

    def _trace(self, *args: Any, statics: Statics) -> Any:
        """Binds the primitive; runs when a program is traced."""
        self._check_x64()
        operands = [
            self._operand(parameter, value)
            for parameter, value in zip(self._operands, args, strict=True)
        ]
        if self._ruled is not None:
            return self._ruled(statics)(*operands)
        return self._bind_call(*operands, statics=statics)

    def _bind_call(self, *operands: Any, statics: Statics) -> Any:
        matched = compat.match_varying(operands)
        results = call_p.bind(*matched, function=self, statics=statics)
        return tuple(results) if self._many else results[0]

    def defjvp(
        self, rule: Callable[..., Any], *, symbolic_zeros: bool = False
    ) -> Callable[..., Any]:
        """Gives the derivative in Python, for a function without kernels for it.

        As ``jax.custom_jvp``: the rule may use jax.numpy, other C functions, and the function
        itself; reverse mode is its transpose. It replaces a rule given before, and the
        kernels linked by name. Define it before the function is used.

        Args:
          rule: (primals, tangents, **statics) -> (outputs, tangents of outputs), where
            primals and tangents are tuples of all array and scalar inputs in order.
          symbolic_zeros: as in ``jax.custom_jvp.defjvp``: tangents of inputs that are not
            differentiated are ``jax.custom_derivatives.SymbolicZero``.

        Returns:
          ``rule``, so that this is a decorator.

        Example:
          >>> @lib.j0.defjvp
          ... def j0_jvp(primals, tangents):
          ...     (x,), (dx,) = primals, tangents
          ...     return lib.j0(x), -lib.j1(x) * dx
        """

        def make(statics: Statics) -> Callable[..., Any]:
            call = jax.custom_jvp(functools.partial(self._bind_call, statics=statics))
            call.defjvp(functools.partial(rule, **dict(statics)), symbolic_zeros=symbolic_zeros)
            return call  # type: ignore[no-any-return]

        self._set_rule(make, rule, "jvp")
        return rule

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Gives the reverse derivative in Python. As ``jax.custom_vjp``.

        Args:
          fwd: (*inputs, **statics) -> (outputs, residuals).
          bwd: (residuals, cotangents of outputs, **statics) -> a cotangent for each input,
            of the input's own shape: leading axes that broadcast are summed over here.
        """

        def make(statics: Statics) -> Callable[..., Any]:
            call = jax.custom_vjp(functools.partial(self._bind_call, statics=statics))
            given = dict(statics)
            call.defvjp(functools.partial(fwd, **given), functools.partial(bwd, **given))
            return call  # type: ignore[no-any-return]

        self._set_rule(make, (fwd, bwd), "vjp")

    def _set_rule(
        self, make: Callable[[Statics], Callable[..., Any]], rule: object, kind: str
    ) -> None:
        """Programs traced before keep the old rule, so the function is now another one."""
        self._ruled = functools.lru_cache(maxsize=1024)(make)
        self._rule_kind = kind
        self._identity = (*self._identity[:2], rule)
        self._jitted.clear()
        self._ready.clear()

    def _operand(self, parameter: Parameter, value: Any) -> Any:
        if not isinstance(value, jax.Array):
            value = self._concrete(parameter, value)
        weak = bool(getattr(value, "weak_type", False))
        self._check_dtype(parameter, value.dtype, weak)
        return jnp.asarray(value, parameter.numpy_dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from jaxc.library import restore

        if callable(self._recipe[0]):  # it makes the rules again
            return self._recipe[0], self._recipe[1:]
        if self._ruled is not None:
            raise TypeError(f"{self.__name__}: a rule given in Python does not pickle")
        return restore, self._recipe

    def __repr__(self) -> str:
        return f"<jaxc function {self.__name__} {self.signature}>"


def _scalar(where: str, parameter: Parameter, value: Any) -> Any:
    """A number as the parameter's dtype; what would lose its kind or range is an error."""
    dtype = parameter.numpy_dtype
    shown = parameter.shown
    array = np.asarray(value)
    kind = KINDS.get(array.dtype.kind, 9)
    if array.ndim or kind > KINDS[dtype.kind]:
        raise TypeError(f"{where} is {value!r}, expected {dtype} {shown}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= int(value) <= limits.max:
            raise OverflowError(
                f"{where} is {value}, outside the range of {dtype} "
                f"({limits.min} to {limits.max}) {shown}"
            )
    if dtype.kind in "fV" and np.isfinite(value):
        with np.errstate(over="ignore"):
            converted = np.asarray(value, dtype)[()]
        if not np.isfinite(np.float64(converted)):
            raise OverflowError(f"{where} is {value}, too large for {dtype} {shown}")
        return converted
    return np.asarray(value, dtype)[()]


def _raise_status(error: ValueError) -> None:
    """JAX calls it a ValueError when a program that it has called before fails."""
    if re.match(r"[A-Z_]+: \S+: ", str(error)):
        raise JaxRuntimeError(str(error)) from None


def _static_hint(name: str) -> str:
    return f"under jit give static_argnames='{name}' or bind it with functools.partial"


def _python_name(name: str) -> str:
    """A C name as Python can write it: ``lambda`` becomes ``lambda_``."""
    return name + "_" if keyword.iskeyword(name) else name


def _python_signature(description: Description) -> inspect.Signature:
    names = [_python_name(p.name) for p in description.with_role(*OPERANDS, Role.STATIC)]
    dims = [_python_name(dim.name) for dim in description.dims if dim.is_static]
    return inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        + [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in dims]
    )
