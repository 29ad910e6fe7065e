"""``jaxc.bind``: functions of libraries that are compiled already, from their prototypes."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxc import _jaxc, adopt, locate  # type: ignore[attr-defined]
from jaxc.build import Binding, Options, Source, build
from jaxc.description import Description
from jaxc.function import Function
from jaxc.library import Library, clean_name

StrPath = str | os.PathLike[str]

_lock = threading.Lock()
#: What owns the code at an address, for the life of the process.
_kept: list[Any] = []
#: (address, library of the row loops) -> the library that has them
_at_addresses: dict[tuple[int, Path], AtAddress] = {}
#: target -> its function, for pickles of this process
_by_target: dict[str, Function] = {}


def bind(
    declarations: str,
    library: Any,
    *,
    define: Mapping[str, object] | None = None,
    include: Sequence[StrPath] = (),
    flags: Sequence[str] = (),
    compiler: str | None = None,
) -> Library:
    """Makes JAX functions of functions that are compiled already.

    The prototypes say what ``jaxc.load`` reads from a C file: bounds, pragmas, headers. No
    compiler can compare them with the machine code, so a wrong prototype is undefined
    behaviour, as in C. Rows run in several threads at once: a function that is not
    re-entrant needs ``#pragma jaxc serial``.

    Args:
      declarations: C text of prototypes, without bodies.
      library: a name as for ``-l`` ("m", "gsl"), a path, or several of these; or, for one
        prototype, the function's address: an int, a function of ``ctypes``, a
        ``numba.cfunc``, a capsule or ``scipy.LowLevelCallable``. What has the code is kept
        for the life of the process; of an int the caller has to keep it.
      define, include, flags, compiler: as in ``jaxc.load``, for the declarations. ``-L`` in
        flags is where libraries are looked for first.

    Returns:
      The library of the declared functions.

    Raises:
      FileNotFoundError: when there is no such library.
      ValueError: for declarations with a body or a wrong pragma, functions that the library
        lacks, and an address for other than one prototype.
      OSError: for a library that the system cannot load.
      TypeError: for what is no library and no address.
      RuntimeError: when there is no compiler, or with its own message.

    Example:
      >>> gsl = jaxc.bind("double gsl_sf_bessel_J0(double x);", "gsl")
      >>> y = jax.jit(gsl.gsl_sf_bessel_J0)(x)
    """
    if not isinstance(declarations, str):
        raise TypeError(
            f"bind: declarations are C text, got {type(declarations).__name__}; the text of a "
            "header is Path(header).read_text()"
        )
    options = Options.make(define, include, (), flags, compiler)
    if isinstance(library, ctypes.CDLL) and library._name:
        library = library._name
    at = _address(library)
    if at is not None:
        return _bind_address(declarations, at, options)
    given = [library] if isinstance(library, (str, os.PathLike)) else library
    if not isinstance(given, Sequence) or not given:
        raise TypeError(_wanted(library))
    for one in given:
        if not isinstance(one, (str, os.PathLike)):
            raise TypeError(_wanted(one))
    names = tuple(os.fspath(one) for one in given)
    return _bind_libraries(declarations, names, options)


def _wanted(value: Any) -> str:
    return (
        "bind: a library is a name ('gsl'), a path, a list of these, or the address of one "
        f"function (an int, a ctypes function, a numba cfunc, a capsule), got {value!r}"
    )


# ---- libraries ----


def _bind_libraries(declarations: str, given: tuple[str, ...], options: Options) -> Library:
    if sys.platform == "win32":
        raise NotImplementedError(
            "bind: functions are looked up by dlopen, which Windows has not; bind the address "
            "of a function of ctypes.WinDLL"
        )
    name = locate.short_name(given[0])
    binding = locate.binding(given, options)
    source = Source(f"{name}.h", declarations, False)
    try:
        path = build(clean_name(name), [source], options, binding)
    except RuntimeError as error:
        raise locate.not_found(error) or error from None
    shown = " and ".join(repr(one) for one in given)
    try:
        found = Library(path, ("bind", declarations, given, options))
    except OSError as error:
        raise OSError(f"bind: {shown} cannot be loaded: {error}") from error
    _check_there(found, path, shown)
    return found


def _check_there(found: Library, path: Path, shown: str) -> None:
    """Asks the system for each function, as the library has done when it was loaded."""
    handle = ctypes.CDLL(str(path))
    functions = [found[name] for name in found]
    names = [f.description.name for f in functions if isinstance(f, Function)]
    missing = [name for name in names if not hasattr(handle, name)]
    if missing:
        quoted = ", ".join(repr(name) for name in missing)
        noun = "function" if len(missing) == 1 else "functions"
        raise ValueError(f"bind: library {shown} has no {noun} {quoted}")


# ---- addresses ----


class _Address:
    """Where a function is, what owns it, and what is known of its type."""

    def __init__(self, number: int, owner: Any, signature: str | None = None):
        self.number, self.owner, self.signature = number, owner, signature


def _address(value: Any) -> _Address | None:
    """The address that a value is, or None for what names a library."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(_wanted(value))
    if isinstance(value, (int, np.integer)):
        return _Address(int(value), None)
    if isinstance(value, (str, os.PathLike)):
        return None
    if isinstance(value, ctypes.c_void_p) or hasattr(value, "argtypes"):
        return _Address(ctypes.cast(value, ctypes.c_void_p).value or 0, value)
    if type(value).__name__ == "PyCapsule":
        return _of_capsule(value)
    if hasattr(value, "user_data") and hasattr(value, "function"):  # scipy.LowLevelCallable
        if value.user_data is not None:
            raise ValueError(
                "bind: a LowLevelCallable with user data takes a pointer that no JAX array "
                "holds; write a small C file over it"
            )
        return _address(value.function)
    number = getattr(value, "address", None)
    if isinstance(number, int) and not isinstance(number, bool):
        return _Address(number, value)
    return None


def _of_capsule(capsule: Any) -> _Address:
    """A function of Cython's ``__pyx_capi__``, which has its type for a name."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    number = api.PyCapsule_GetPointer(capsule, name) or 0
    return _Address(number, capsule, None if name is None else name.decode())


class AtAddress(Library):
    """One function, called at an address of this process."""

    def __init__(self, path: Path, address: _Address):
        self._address = address
        super().__init__(path, ())

    def _function(
        self,
        description: Description,
        entries: tuple[tuple[str, Any], ...],
        capsule: Any,
        recipe: tuple[Any, ...],
    ) -> Function:
        made = _jaxc.adopt_address(capsule, self._address.number)
        key = f"address:{description.name}"
        library = "address/process" + adopt.unique(key, self).removeprefix(key)
        function = adopt.publish(library, description, made, (), (self._hash,), is_typed=False)
        (target,) = function.targets.values()
        function._recipe = (restore, target)
        _by_target[target] = function
        return function


def restore(target: str) -> Function:
    """Finds a pickled function again, in the process that has it.

    Raises:
      ValueError: in another process, where an address means nothing.
    """
    if target not in _by_target:
        name = target.split(":")[2]
        raise ValueError(
            f"'{name}' was bound to an address in the process that pickled it; bind it in this "
            "one first, with the same declaration"
        )
    return _by_target[target]


def _bind_address(declarations: str, address: _Address, options: Options) -> Library:
    if address.number <= 0:
        raise ValueError(f"bind: the address is {address.number}, which is no function's")
    source = Source("address.h", declarations, False)
    path = build("address", [source], options, Binding(kind="address"))
    with _lock:
        there = _at_addresses.get((address.number, path))
        if there is not None:
            return there
        declared = Library(path, ())._descriptions
        _check_one(declared, address)
        made = _at_addresses[address.number, path] = AtAddress(path, address)
        _kept.append(address.owner)
    return made


def _check_one(declared: Mapping[str, Description], address: _Address) -> None:
    if len(declared) != 1:
        names = ", ".join(declared) or "none"
        raise ValueError(
            f"bind: an address is that of one function, but the declarations have "
            f"{len(declared)} ({names})"
        )
    (description,) = declared.values()
    if description.refusal is not None:
        raise ValueError(
            f"{description.file}:{description.line}: '{description.name}' cannot be called "
            f"from JAX: it {description.refusal}"
        )
    if address.signature is None:
        return
    from jaxc.declare import types_of  # here, so that others need no parser

    declared_types = types_of(description.prototype)
    types = types_of(address.signature.replace("(", " f(", 1))
    if types is not None and declared_types is not None and types != declared_types:
        raise ValueError(
            f"bind: '{description.name}' is declared as {description.prototype}, but the "
            f"capsule says that its function is {address.signature}"
        )
