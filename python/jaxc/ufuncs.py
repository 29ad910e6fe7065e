"""``jaxc.ufunc``: inner loops of NumPy's ufuncs, and of those made like them, in JAX.

The loop that NumPy, SciPy or numba compiled becomes the row loop of a handler: no array is
copied, no Python runs in the call, and rows run in XLA's threads.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxc import _jaxc, adopt, signature, ufunc_rules  # type: ignore[attr-defined]
from jaxc.description import NUMBERS, Bound, Description, Parameter, Role
from jaxc.function import Function
from jaxc.overloads import LazyOverloads, cheapest

#: Type numbers of NumPy's own, which are the same in every NumPy: its dtype.
_TYPES: dict[int, np.dtype[Any]] = {
    np.dtype(char).num: np.dtype(char) for char in "?bhilqBHILQefdFD"
}
#: Modules in which a ufunc is looked for first.
_MODULES = ("numpy", "scipy.special", "numpy.linalg._umath_linalg", "__main__")


class Ufunc(LazyOverloads):
    """A ufunc as a JAX function, with an overload for each of its inner loops."""

    def __init__(
        self, ufunc: Any, owner: Any, module: str | None, name: str, arguments: Sequence[str]
    ):
        self._owner = owner
        self._module = module
        self._arguments = arguments
        super().__init__(name)
        self.__dict__["numpy"] = owner
        self._read(ufunc)
        self.__doc__ = ufunc.__doc__ if owner is ufunc else owner.__doc__
        known = ufunc_rules.rule(module, name)
        if known is not None:
            self._rule = ("known", known)

    def _read(self, ufunc: Any) -> None:
        """Describes the loops; each is made when it is called for the first time."""
        self._ufunc = ufunc
        types, cores, *_ = _jaxc.ufunc_loops(ufunc)
        self._types = list(dict.fromkeys(t for t in types if all(n in _TYPES for n in t)))
        self._numbers = {t: types.index(t) for t in self._types}
        seen = set()
        for loop in list(self._types):  # int64 is called long and long long
            dtypes = tuple(_TYPES[number] for number in loop)
            if dtypes in seen:
                self._types.remove(loop)
            seen.add(dtypes)
        self._core = _core(ufunc, cores)
        self._descriptions = {t: self._describe(t) for t in self._types}

    @property
    def members(self) -> tuple[Function, ...]:
        """All overloads; each takes one of the 4096 places of a process."""
        return tuple(self._member(types) for types in self._types)

    def _options(self) -> list[Description]:
        return list(self._descriptions.values())

    @property
    def signature(self) -> str:
        return self._options()[0].signature

    def _choose(self, args: Sequence[Any], kwargs: Any) -> Function | None:
        at = cheapest(self._options(), args, kwargs)
        if at is not None:
            return self._member(self._types[at])
        if self._compile(args, kwargs):
            return self._choose(args, kwargs)
        return None

    def _compile(self, args: Sequence[Any], kwargs: Any) -> bool:
        """Has numba compile a loop for these dtypes, where the ufunc was made without."""
        if kwargs or getattr(self._owner, "_frozen", True) or self._owner is self._ufunc:
            return False
        dtypes = [getattr(arg, "dtype", None) for arg in args]
        if len(dtypes) != self._ufunc.nin or any(d not in NUMBERS for d in dtypes):
            return False
        before = self._ufunc.ntypes
        numba = importlib.import_module("numba")
        try:
            self._owner.add(tuple(numba.from_dtype(np.dtype(d)) for d in dtypes))
        except NotImplementedError as error:
            given = ", ".join(str(d) for d in dtypes)
            raise TypeError(f"{self.__name__}: numba compiles nothing for ({given})") from error
        if self._ufunc.ntypes == before:
            return False
        self._read(self._ufunc)
        return True

    def _describe(self, loop: tuple[int, ...]) -> Description:
        core, dims, outputs = self._core
        nin = self._ufunc.nin
        names = [*self._arguments, *outputs]
        parameters = [adopt.DATA]
        declared = []
        for k, number in enumerate(loop):
            dtype = _TYPES[number]
            bounds = tuple(core[k])
            texts = tuple(b.text for b in bounds)
            text = adopt.declaration(names[k], dtype.name, texts, k < nin)
            declared.append(text)
            role = Role.INPUT if k < nin else Role.OUTPUT
            number = NUMBERS[dtype]
            parameters.append(
                Parameter(
                    names[k], text, role, number, len(bounds), bounds,
                    nondifferentiable=k < nin and self._has_no_partial(k),
                )
            )  # fmt: skip
        solved = signature.Signature((), (), tuple(dims)).solved(parameters, 1 + nin)
        return Description(
            name=self.__name__,
            prototype=f"{self.__name__}({', '.join(declared)})",
            file=self._module or "",
            line=0,
            parameters=tuple(parameters),
            dims=solved[0],
            solve=solved[1],
        )

    def member(self, dtypes: Sequence[str]) -> Function | None:
        """The overload for these dtypes of inputs and outputs."""
        for loop in self._types:
            if [_TYPES[number].name for number in loop] == list(dtypes):
                return self._member(loop)
        return None

    def _has_no_partial(self, k: int) -> bool:
        """Whether the known derivatives lack that by input k."""
        known = ufunc_rules.rule(self._module, self.__name__)
        return known is not None and not callable(known) and known[k] is None

    def _make(self, key: Any) -> Function:
        loop: tuple[int, ...] = key
        description = self._descriptions[loop]
        sizes = _sizes(self._ufunc, self._core)
        made = _jaxc.adopt_ufunc(
            adopt.record(description), self._ufunc, self._owner, self._numbers[loop], sizes,
            self._owner is not self._ufunc or self._raises(loop),
        )  # fmt: skip
        library = f"ufunc/{self._module or 'local'}"
        place = f"{library}:{self.__name__}"
        is_stable = self._module is not None
        library += adopt.unique(place, self._owner, is_stable).removeprefix(place)
        dtypes = tuple(_TYPES[number].name for number in loop)
        recipe = (restore, self._module, self.__name__, dtypes)
        return adopt.publish(library, description, made, recipe)

    def _raises(self, loop: tuple[int, ...]) -> bool:
        """Whether the loop raises exceptions of Python: integers to negative powers."""
        is_power = self._module == "numpy" and self.__name__ == "power"
        return is_power and all(_TYPES[number].kind in "iu" for number in loop)

    # ---- derivatives ----

    def _apply(self, member: Function) -> None:
        if not any(p.is_differentiable for p in member.description.parameters):
            return
        assert self._rule is not None
        kind, rule = self._rule
        if kind == "known":
            member.defjvp(ufunc_rules.jvp(member, rule), symbolic_zeros=True)
        else:
            super()._apply(member)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ufunc) and self._owner is other._owner

    def __hash__(self) -> int:
        return hash((Ufunc, id(self._owner)))

    def __reduce__(self) -> Any:
        if self._module is None:
            raise TypeError(f"{self.__name__}: is in no module, and cannot be pickled")
        return restore, (self._module, self.__name__)

    def __repr__(self) -> str:
        return f"<jaxc ufunc {self.__name__}, {len(self._types)} loops>"


def _core(
    ufunc: Any, cores: Sequence[Sequence[int]]
) -> tuple[list[list[Bound]], list[str], list[str]]:
    """Bounds of each operand, names of dimensions, and names of outputs."""
    outputs = ["out"] if ufunc.nout == 1 else [f"out{i + 1}" for i in range(ufunc.nout)]
    if ufunc.signature is None:
        return [[] for _ in cores], [], outputs
    # An axis that may be left out, (n?), is one that has to be there: leading axes are rows.
    parsed = signature.parse(ufunc.signature.replace("?", ""))
    bounds = [list(axes) for axes in (*parsed.inputs, *parsed.outputs)]
    return bounds, list(parsed.dims), outputs


def _sizes(ufunc: Any, core: Any) -> tuple[tuple[int, int], ...]:
    """For each core dimension of the ufunc the description's, or its fixed size."""
    _, cores, *_ = _jaxc.ufunc_loops(ufunc)
    out: dict[int, tuple[int, int]] = {}
    for bounds, numbers in zip(core[0], cores, strict=True):
        for bound, number in zip(bounds, numbers, strict=True):
            constant = bound.constant
            out[number] = (bound.dim, 0) if constant is None else (-1, constant)
    return tuple(out[i] for i in range(len(out)))


def _argument_names(ufunc: Any, name: str, owner: Any) -> list[str]:
    """Names of the inputs, from the documentation where it has them."""
    code = getattr(getattr(owner, "py_func", None), "__code__", None)
    if code is None:
        code = getattr(getattr(owner, "_dispatcher", None), "py_func", None)
        code = getattr(code, "__code__", None)
    if code is not None and code.co_argcount >= ufunc.nin:
        return list(code.co_varnames[: ufunc.nin])
    calls = re.findall(rf"^\s*{re.escape(name)}\(([^)]*)\)", ufunc.__doc__ or "", re.M)
    for call in reversed(calls[:3]):
        words = [re.sub(r"\W.*", "", w.strip()) for w in re.split(r"[,/\[]", call)]
        words = [w for w in words if w][: ufunc.nin]
        ends = {"out", "out1", "where"}
        if len(words) == ufunc.nin and len(set(words)) == len(words) and not ends & set(words):
            return words
    return [f"x{i + 1}" for i in range(ufunc.nin)] if ufunc.nin > 1 else ["x"]


def _find(owner: Any, name: str) -> str | None:
    """The module that has it under its own name."""
    own = getattr(owner, "__module__", None)
    first = [m for m in (own, *_MODULES) if isinstance(m, str)]
    for module in [*first, *sys.modules]:
        there = getattr(sys.modules.get(module), "__dict__", {})
        if there.get(name) is owner:
            return module
    return None


_known: dict[int, Ufunc] = {}


def ufunc(u: Any, *, name: str | None = None) -> Ufunc:
    """Makes a JAX function of a ufunc: NumPy's, SciPy's, or of numba's decorators.

    The compiled inner loop is the handler's: an element costs what it costs NumPy, a call
    some 100 ns, and rows run in XLA's threads. dtypes are those of the loop table, and exact:
    an array of another dtype is a TypeError. Generalized ufuncs have core axes as C functions
    do. Derivatives come with many functions of scipy.special and NumPy, and with ``defjvp``
    and ``defvjp`` for others; ``.numpy`` is the ufunc itself.

    Args:
      u: a ``numpy.ufunc``, or what ``numba.vectorize`` or ``numba.guvectorize`` made.
      name: "module.name" by which it is found in another process; by default where it is.

    Raises:
      TypeError: for what is no ufunc, and for one without compiled loops, as np.frompyfunc
        makes.

    Example:
      >>> jv = jaxc.ufunc(scipy.special.jv)
      >>> y = jax.jit(jax.vmap(jax.grad(jv, argnums=1)))(jnp.ones(3), x)
    """
    inner = u if isinstance(u, np.ufunc) else getattr(u, "ufunc", None)
    if not isinstance(inner, np.ufunc):
        inner_error = f"jaxc.ufunc takes a ufunc, got {u!r}"
        if callable(u):
            inner_error += "; a Python function goes through jaxc.callback or numba.vectorize"
        raise TypeError(inner_error)
    found = _known.get(id(u))
    if found is not None and name is None:
        return found
    if name is not None:
        module, _, own = name.rpartition(".")
    else:
        own = u.__name__
        module = _find(u, own) or ""
    types, _, computes_sizes, writes = _jaxc.ufunc_loops(inner)
    if computes_sizes:
        raise TypeError(
            f"{own}: {inner.signature} is not all that it asks of sizes: NumPy has it look at "
            "them in each call, which XLA's calls cannot; use jaxc.callback"
        )
    usable = [t for t in types if all(n in _TYPES for n in t)]
    if writes:
        raise TypeError(
            f"{own}: writes into its inputs (writable_args), which are other computations' "
            "too; give it an output, or write a C function with '#pragma jaxc inout(x)'"
        )
    if not usable and (types or inner is u):
        raise TypeError(
            f"{own}: has no inner loop over numbers, only {', '.join(inner.types) or 'of text'}"
            "; what is over Python objects, dates or text goes through jaxc.callback"
        )
    if not usable and getattr(u, "signature", None) is not None and not inner.ntypes:
        raise TypeError(
            f"{own}: numba has compiled no loop of it yet; give numba.guvectorize its types"
        )
    made = Ufunc(inner, u, module or None, own, _argument_names(inner, own, u))
    if name is None:
        _known[id(u)] = made  # which keeps u, so that its number is not another's
    return made


def restore(module: str, name: str, dtypes: tuple[str, ...] | None = None) -> Any:
    """Finds a pickled ufunc, or one of its loops, again."""
    found = ufunc(getattr(importlib.import_module(module), name))
    if dtypes is None:
        return found
    member = found.member(dtypes)
    if member is None:
        raise TypeError(f"{module}.{name}: has no loop {dtypes}")
    return member


def find(module: str, name: str, dtypes: tuple[str, ...]) -> bool:
    """Adopts a loop that a program of another process names; False where it may not.

    Only modules that are there already, and NumPy's and SciPy's own, are looked into: a file
    must not make a process import what it likes.
    """
    if module in ("numpy", "scipy.special"):
        try:
            importlib.import_module(module)
        except ImportError:
            return False
    found = getattr(sys.modules.get(module), "__dict__", {}).get(name)
    if not isinstance(found, np.ufunc) and not hasattr(found, "ufunc"):
        return False
    return ufunc(found).member(dtypes) is not None
