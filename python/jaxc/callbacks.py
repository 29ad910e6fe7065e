"""``jaxc.callback``: Python functions in JAX programs, on XLA's own memory.

The handler makes NumPy arrays that are views of the operands and results, and calls the
function in the thread that runs the program. No array is copied, none goes through JAX again:
what costs is the interpreter's own call.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import JaxRuntimeError

from jaxc import _jaxc, adopt, compat, interpreter  # type: ignore[attr-defined]
from jaxc.callback_inputs import (
    STATICS,
    dtype_rule,
    numbers_as_arrays,
    parameters_of,
    parse_signature,
    plain,
    static_type,
)
from jaxc.description import DTYPES, NUMBERS, STRING, Description, Parameter, Role
from jaxc.function import Function
from jaxc.overloads import LazyOverloads, OverloadedFunction

#: Keywords of every ufunc.
_OF_UFUNCS = frozenset(("out", "axes", "axis", "keepdims", "casting", "order", "subok"))

#: Callbacks that were given a name, by it.
_named: dict[str, Callback] = {}


class Callback(LazyOverloads):
    """A Python function as a JAX function; made by `jaxc.callback`.

    It has a member for each combination of input dtypes and types of static values that it was
    called with. ``defjvp`` and ``defvjp`` give its derivative, as those of a C function do.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        text: str,
        dtype: Any,
        vectorized: bool,
        effect: bool,
        name: str | None,
    ):
        self.function = function
        self._vectorized = vectorized
        self._effect = effect
        module, _, own = (name or "").rpartition(".")
        self._is_named = name is not None
        own = own or _qualname(function)
        super().__init__(own.rpartition(".")[2])
        self._qualname = own
        self._module = module or getattr(function, "__module__", None) or "local"
        self._parsed = parse_signature(self.__name__, text, effect)
        self._text = text.replace(" ", "")
        self._dtype = dtype_rule(self.__name__, dtype, self._parsed)
        self._names, self._static_defaults, self._any_static = parameters_of(
            self.__name__, function, self._parsed
        )
        functools.update_wrapper(self, function, assigned=("__doc__",), updated=())
        if name is not None:
            _named.setdefault(f"{self._module}.{own}", self)

    @property
    def members(self) -> tuple[Function, ...]:
        return tuple(self._made.values())

    @property
    def signature(self) -> str:
        return self._text

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the Python function on views of the arrays.

        Raises:
          TypeError: for arguments that it does not take.
          ValueError: for shapes that do not agree.
          jax.errors.JaxRuntimeError: when it raises an exception, with its type, text and
            traceback; eagerly, the exception itself is the ``__cause__``.
        """
        member, inputs, statics = self.chosen(args, kwargs)
        try:
            results = member(*inputs, **statics)
            if not any(isinstance(r, compat.Tracer) for r in jax.tree.leaves(results)):
                jax.block_until_ready(results)
            return results
        except (JaxRuntimeError, ValueError) as error:  # the second is JAX's, for some
            cause = interpreter.cause(str(error))
            if cause is None:
                raise
            if not isinstance(cause, Exception):  # such as KeyboardInterrupt
                raise cause from None
            raise JaxRuntimeError(str(error)) from cause

    def chosen(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Function, Sequence[Any], Mapping[str, Any]]:
        """The member for these arguments, and its arguments."""
        inputs, statics = self._bind(args, kwargs)
        inputs = numbers_as_arrays(self.__name__, self._names, inputs)
        return self._choice(tuple(np.dtype(a.dtype) for a in inputs), statics), inputs, statics

    def _bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        name = self.__name__
        count = len(self._parsed.inputs)
        names = self._names[:count]
        if len(args) > count:
            raise TypeError(
                f"{name}: takes {count} arrays ({', '.join(names) or 'none'}), got "
                f"{len(args)}; static values are given by name"
            )
        values = dict(zip(names, args, strict=False))
        statics = dict(self._static_defaults)
        dims = self._dim_names
        for key, value in kwargs.items():
            if key in values:
                raise TypeError(f"{name}: argument '{key}' is given by position and by name")
            if key in names:
                values[key] = value
            elif key in statics or key in dims or self._any_static:
                statics[key] = value
            else:
                known = ", ".join([*names, *statics, *sorted(dims)]) or "none"
                raise TypeError(f"{name}: has no argument '{key}'; it takes {known}")
        missing = [key for key in names if key not in values]
        missing += [key for key, v in statics.items() if v is inspect.Parameter.empty]
        missing += [key for key in sorted(dims) if key not in statics]
        if missing:
            raise TypeError(f"{name}: argument '{missing[0]}' is missing")
        for key, default in self._static_defaults.items():
            if statics[key] is default and type(default) not in STATICS:
                del statics[key]  # such as None, which the function itself supplies
        return [values[key] for key in names], statics

    @functools.cached_property
    def _static_dims(self) -> tuple[int, ...]:
        inputs = [b for bounds in self._parsed.inputs for b in bounds]
        read = frozenset[int]().union(*[b.dims for b in inputs])
        return tuple(i for i in range(len(self._parsed.dims)) if i not in read)

    @functools.cached_property
    def _dim_names(self) -> frozenset[str]:
        return frozenset(self._parsed.dims[i] for i in self._static_dims)

    def _choice(
        self, dtypes: tuple[np.dtype[Any], ...], statics: Mapping[str, Any]
    ) -> Function:
        types = tuple(
            (key, static_type(self.__name__, key, value))
            for key, value in sorted(statics.items())
            if key not in self._dim_names
        )
        outputs = self._dtype(dtypes)
        return self._member(((*dtypes, *outputs), types))

    def member(self, dtypes: Sequence[str], types: Sequence[tuple[str, int]] = ()) -> Function:
        """The overload for these dtypes of inputs and outputs and types of static values."""
        return self._member((tuple(jnp.dtype(name) for name in dtypes), tuple(types)))

    def _make(self, key: Any) -> Function:
        dtypes, types = key
        description = self._describe(dtypes, types)
        kinds = [
            p.numpy_dtype if p.role in (Role.INPUT, Role.OUTPUT) else None
            for p in description.parameters
        ]
        made = _jaxc.adopt_callback(
            adopt.record(description),
            self.function,
            interpreter.text_of,
            tuple(kinds),
            self._vectorized,
        )
        own = f"callback/{self._module}"
        place = f"{own}:{self._qualname}"
        is_stable = self._is_named or _found(self._module, self._qualname) is self
        library = own + adopt.unique(place, self.function, is_stable).removeprefix(place)
        names = tuple(dtype.name for dtype in dtypes)
        recipe = (_restore_member, self._module, self._qualname, names, types)
        parts = (str(self._vectorized), str(self._effect))
        return adopt.publish(library, description, made, recipe, parts, name=self._qualname)

    def _describe(
        self, dtypes: Sequence[np.dtype[Any]], types: Sequence[tuple[str, int]]
    ) -> Description:
        count = len(self._parsed.inputs)
        cores = [*self._parsed.inputs, *self._parsed.outputs]
        parameters = [adopt.DATA]
        declared = []
        for i, (name, dtype, bounds) in enumerate(zip(self._names, dtypes, cores, strict=True)):
            axes = ",".join(b.text.replace(" ", "") for b in bounds)
            declaration = f"{name}: {dtype.name}[{axes}]"
            declared.append(declaration)
            role = Role.INPUT if i < count else Role.OUTPUT
            parameters.append(
                Parameter(name, declaration, role, NUMBERS[dtype], len(bounds), bounds)
            )
        dims, solve = self._parsed.solved(parameters, 1 + count)
        for name, number in types:
            kind = "str" if number == STRING else str(DTYPES[number])
            declared.append(f"*, {name}: {kind}")
            parameters.append(Parameter(name, f"{name}: {kind}", Role.STATIC, number, 0, ()))
        return Description(
            name=self.__name__,
            prototype=f"{self.__name__}({', '.join(declared)})",
            file=self._module,
            line=0,
            doc=self.function.__doc__,
            serial=True,  # rows in order, by the thread that runs the program
            effect=self._effect,
            parameters=tuple(parameters),
            dims=tuple(
                dataclasses.replace(dim, is_static=i in self._static_dims)
                for i, dim in enumerate(dims)
            ),
            solve=solve,
        )

    # ---- without JAX ----

    @functools.cached_property
    def numpy(self) -> Callable[..., Any]:
        """Calls the function on rows of NumPy arrays, with the ufunc of their dtypes.

        Keywords beside the static values are the ufunc's: ``out=``, ``axes=``; see
        `Function.numpy`.
        """

        def form(*args: Any, **kwargs: Any) -> Any:
            own = {*self._names, *self._static_defaults, *self._parsed.dims}
            rest = {k: v for k, v in kwargs.items() if k in _OF_UFUNCS and k not in own}
            given = {k: v for k, v in kwargs.items() if k not in rest}
            arrays = [a if isinstance(a, np.ndarray) else plain(a) for a in args]
            member, inputs, statics = self.chosen(arrays, given)
            return member.numpy(*map(np.asarray, inputs), **statics, **rest)

        form.__name__ = form.__qualname__ = self.__name__
        form.__doc__ = self.__doc__
        return form

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> Any:
        if "<" in self._qualname:
            raise TypeError(f"{self._qualname}: is no name of a module, and cannot be pickled")
        return _restore, (self._module, self._qualname)

    def __repr__(self) -> str:
        return f"<jaxc callback {self.__name__} {self._text}>"


def callback(
    signature: str,
    *,
    dtype: Any = None,
    vectorized: bool = False,
    effect: bool = False,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Callback]:
    """Makes a Python function a JAX function, which XLA calls on views of its own memory.

    The function takes the inputs, then the outputs, as NumPy arrays of the core axes, and
    writes the outputs in place; inputs are read-only, and none may be kept after it returns.
    What it takes by keyword alone are static values: bool, int, float, complex or str. It runs
    in XLA's threads, one call at a time as the interpreter's lock has it. It may use NumPy, and
    other jaxc functions by their ``.numpy``; not JAX, whose results it might wait for forever.

    >>> @jaxc.callback("(n),(n)->(n)")
    ... def mix(x, y, out, *, weight):
    ...     np.multiply(x, weight, out=out)
    ...     out += y
    >>> z = jax.jit(jax.vmap(lambda x: mix(x, y, weight=0.5)))(xs)

    Args:
      signature: core axes of inputs and outputs in NumPy's notation. Axes are names, integers,
        and + - * // over them; a name that no input has is a static keyword, an int.
      dtype: of the outputs: one for all, or a tuple, or a function of the inputs' dtypes; by
        default what the inputs' dtypes promote to.
      vectorized: under vmap, and with leading axes, the function is called once with all of
        them; those that an input broadcasts along have stride 0, and size as all others. By
        default it is called once a row.
      effect: it does more than write its outputs, of which there may be none, ``"(n)->"``:
        calls are never dropped or reordered.
      name: "module.name", part of the target's name; by default the function's own.

    Raises:
      ValueError: for a signature that is not understood.
      TypeError: for a function that does not take as many arrays as the signature has.
    """

    def decorate(function: Callable[..., Any]) -> Callback:
        if isinstance(function, (OverloadedFunction, Function)) or not callable(function):
            raise TypeError(f"jaxc.callback takes a Python function, got {function!r}")
        return Callback(function, signature, dtype, vectorized, effect, name)

    if not isinstance(signature, str):
        raise TypeError(
            f"jaxc.callback takes a signature first, as @jaxc.callback('(n)->(n)'), got "
            f"{signature!r}"
        )
    return decorate


# ---- other processes ----


def _qualname(function: Any) -> str:
    """Of the function, or of what a functools.partial or a callable object calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _found(module: str, qualname: str) -> Any:
    """What a name means in this process."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _restore(module: str, qualname: str) -> Callback:
    importlib.import_module(module)
    found = _found(module, qualname)
    if not isinstance(found, Callback):
        raise TypeError(f"{module}.{qualname}: is no jaxc callback")
    return found


def _restore_member(module: str, qualname: str, *key: Any) -> Function:
    return _restore(module, qualname).member(*key)


def find(
    module: str, name: str, dtypes: tuple[str, ...], types: tuple[tuple[str, int], ...]
) -> bool:
    """Adopts a function that a program of another process names; False where it is not.

    Only modules that are there already are looked into.
    """
    found = _named.get(f"{module}.{name}") or _found(module, name)
    if not isinstance(found, Callback):
        return False
    found.member(dtypes, types)
    return True
