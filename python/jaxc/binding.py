"""``jaxc.bind``: functions of libraries that are compiled already, from their prototypes."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxc import _jaxc, adopt, cache, compiler, locate  # type: ignore[attr-defined]
from jaxc.build import Binding, Options, Source, build
from jaxc.description import Description
from jaxc.function import Function
from jaxc.library import Library, clean_name

StrPath = str | os.PathLike[str]

_lock = threading.Lock()
#: What owns the code at an address, for the life of the process; by its id.
_kept: dict[int, Any] = {}
#: (names and addresses, library of the row loops) -> the library that has them
_at_addresses: dict[tuple[Any, Path], AtAddress] = {}
#: (address, library of the row loops, hidden parameters) -> where its thunk is
_thunks: dict[tuple[int, Path, tuple[str, ...]], int] = {}
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
      library: a name as for ``-l`` ("m", "gsl"), a path, a ``ctypes.CDLL``, or several names
        and paths; ``ctypes.CDLL(None)`` is what the process has loaded. Or, for one
        prototype, the function's address: an int, a function of ``ctypes``, a
        ``numba.cfunc``, a capsule or ``scipy.LowLevelCallable``; where these know their
        types, the prototype must agree. What has the code is kept for the life of the
        process; of an int the caller has to keep it.
      define, include, flags, compiler: as in ``jaxc.load``, for the declarations. ``-L`` in
        flags is where libraries are looked for first.

    Returns:
      The library of the declared functions.

    Raises:
      FileNotFoundError: when there is no such library.
      ValueError: for declarations with a body or a wrong pragma, functions that the library
        lacks, an address for other than one prototype, a prototype that is not of the type
        that the object has, and what needs Python's lock.
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
    if isinstance(library, ctypes.CDLL):
        return _bind_handle(declarations, library, options)
    at = locate.address(library)
    if at is not None:
        return _bind_address(declarations, at, options)
    given = [library] if isinstance(library, (str, os.PathLike)) else library
    if not isinstance(given, Sequence) or not given:
        raise TypeError(locate.wanted(library))
    for one in given:
        if not isinstance(one, (str, os.PathLike)) or not os.fspath(one):
            raise TypeError(locate.wanted(one))
    names = tuple(os.fspath(one) for one in given)
    return _bind_libraries(declarations, names, options)


def _bind_handle(declarations: str, handle: ctypes.CDLL, options: Options) -> Library:
    """Binds to the file of a ``ctypes.CDLL``, or to functions that the process has."""
    if isinstance(handle, ctypes.PyDLL):
        raise ValueError(f"bind: {handle!r} {locate.WITH_LOCK}")
    if not handle._name:
        return _bind_process(declarations, handle, options)
    found = _bind_libraries(declarations, (handle._name,), options)
    for name, description in found._descriptions.items():
        # Functions that somebody has asked the handle for, and may have given types.
        function = vars(handle).get(name)
        if description.refusal is None and function is not None:
            _check_type(description, locate.signature_of_ctypes(function))
    return found


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
    _require(missing, f"library {shown}")


def _require(missing: Sequence[str], owner: str) -> None:
    if missing:
        quoted = ", ".join(repr(name) for name in missing)
        noun = "function" if len(missing) == 1 else "functions"
        raise ValueError(f"bind: {owner} has no {noun} {quoted}")


# ---- addresses ----


class AtAddress(Library):
    """Functions called at addresses of this process."""

    def __init__(self, path: Path, places: Mapping[str, int]):
        self._places = places
        super().__init__(path, ())

    def _function(
        self,
        description: Description,
        entries: tuple[tuple[str, Any], ...],
        capsule: Any,
        recipe: tuple[Any, ...],
    ) -> Function:
        made = _jaxc.adopt_address(capsule, self._places[description.name])
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


def _bind_address(declarations: str, address: locate.Address, options: Options) -> Library:
    if not 0 < address.number < 1 << 8 * ctypes.sizeof(ctypes.c_void_p):
        raise ValueError(f"bind: the address is {address.number}, which is no function's")
    path, declared = _declared(declarations, options)
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
    _check_type(description, address.signature)
    number = _without_hidden(declarations, description, address, path, options)
    return _at({description.name: number}, [address.owner], path)


def _bind_process(declarations: str, handle: ctypes.CDLL, options: Options) -> Library:
    """Functions of the process itself, ``ctypes.CDLL(None)``, where ctypes finds them."""
    path, declared = _declared(declarations, options)
    places: dict[str, int] = {}
    missing = []
    for name, description in declared.items():
        if description.refusal is not None:
            continue
        try:
            address = locate.address(vars(handle).get(name) or handle[name])
        except AttributeError:
            missing.append(name)
            continue
        assert address is not None
        _check_type(description, address.signature)
        places[name] = address.number
    _require(missing, "the process (ctypes.CDLL(None))")
    return _at(places, [handle], path)


def _declared(declarations: str, options: Options) -> tuple[Path, Mapping[str, Description]]:
    """Row loops for functions at addresses, and what they are."""
    source = Source("address.h", declarations, False)
    path = build("address", [source], options, Binding(kind="address"))
    return path, Library(path, ())._descriptions


def _at(places: dict[str, int], owners: Sequence[Any], path: Path) -> Library:
    with _lock:
        _kept.update({id(owner): owner for owner in owners})
        key = tuple(places.items()), path
        if key not in _at_addresses:
            _at_addresses[key] = AtAddress(path, places)
        return _at_addresses[key]


def _check_type(description: Description, signature: Any) -> None:
    """Compares a prototype with what the object says of its type, if it does."""
    if signature is None:
        return
    from jaxc.declare import kinds  # here, so that others need no parser

    difference = kinds.difference(description, signature)
    if difference is not None:
        raise ValueError(
            f"bind: '{description.name}' is declared as {description.prototype}, but "
            f"{signature.owner} says that its function is {signature.text}: {difference}"
        )


# ---- hidden parameters ----

_THUNK = """\
{declarations}
/* A function at an address, as it is declared above: without the last parameters, which
 * Cython has added, and which are 0. */
__attribute__((visibility("default"))) void *jaxci_place;
__attribute__((visibility("default"))) {head} jaxci_thunk({taken});
{head} jaxci_thunk({taken}) {{
  {call}(({head} (*)({types}))jaxci_place)({given});
}}
"""


def _without_hidden(
    declarations: str,
    description: Description,
    address: locate.Address,
    path: Path,
    options: Options,
) -> int:
    """The address to call: of a thunk where the function has more than was declared.

    A ``cpdef`` function of Cython has an int behind its parameters, and a pointer behind it
    where some are optional; nobody declares them.
    """
    from jaxc.declare import kinds

    passed = kinds.passed(description)
    says = address.signature
    if says is None or says.parameters is None or len(says.parameters) == len(passed):
        return address.number
    hidden = tuple("void *" if p.is_pointer else "int" for p in says.parameters[len(passed) :])
    taken = [f"void *{p.name}" if k.is_pointer else p.declaration for p, k in passed]
    head = kinds.head(description)
    text = _THUNK.format(
        declarations=declarations,
        head=head,
        taken=", ".join(taken) or "void",
        call="" if head == "void" else "return ",
        types=", ".join([*taken, *hidden]),
        given=", ".join([*(p.name for p, _ in passed), *("0" for _ in hidden)]),
    )
    key = address.number, path, hidden
    with _lock:
        if key not in _thunks:
            slot = sum(other[1:] == key[1:] for other in _thunks)
            handle = ctypes.CDLL(str(_thunk(text, slot, path, options)))
            ctypes.c_void_p.in_dll(handle, "jaxci_place").value = address.number
            found = ctypes.cast(handle.jaxci_thunk, ctypes.c_void_p).value
            assert found is not None
            _thunks[key] = found
            _kept[id(handle)] = handle
        return _thunks[key]


def _thunk(text: str, slot: int, path: Path, options: Options) -> Path:
    """The library of one thunk. It has one place for an address, so each has its own file."""
    # The name of the row loops' folder stands for all that the declarations include.
    digest = hashlib.sha256(f"{path.parent.name} {text}".encode()).hexdigest()[:40]
    found = compiler.find_compiler(options.compiler)

    def compile_(folder: Path) -> None:
        source = folder / "thunk.c"
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        flags = dataclasses.replace(options, native=False).compile_flags()
        arguments = [*flags, "-fPIC", "-shared", str(source), "-o", str(folder / path.name)]
        found.run(arguments, what="compiling a call with hidden parameters")

    return cache.lookup_or_build(f"thunk-{digest}-{slot}", path.name, compile_)
