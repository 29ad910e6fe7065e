"""Find what ``jaxc.bind`` is given: names, folders and files of libraries, and addresses."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import dataclasses
import hashlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxc import cache, capsules, compiler
from jaxc.build import Binding, Options

if TYPE_CHECKING:  # the rest is imported where it is used: libraries need no parser of C
    from jaxc.declare.kinds import Kind, Signature

_lock = threading.Lock()
#: What each file was when this process was first bound to it; the loader keeps that one.
_loaded: dict[str, str] = {}


def short_name(library: str) -> str:
    """The name of a library: gsl of /usr/lib/libgsl.so.27."""
    stem = os.path.basename(library).removeprefix(":")
    stem = re.split(r"\.(?:so|dylib|dll)\b", stem)[0]
    return stem.removeprefix("lib") or "library"


def _is_path(library: str) -> bool:
    has_folder = bool(os.path.dirname(library))
    is_file = re.search(r"\.(so|dylib|dll)\b", library) is not None
    return has_folder or (is_file and os.path.exists(library))


def binding(given: Sequence[str], options: Options) -> Binding:
    """Where the functions of some libraries are.

    Raises:
      FileNotFoundError: for a path without a file.
    """
    libraries, identity, portable = [], [], []
    for library in given:
        path = Path(os.path.abspath(library)) if _is_path(library) else None
        if path is None:
            path = _in_flags(library, options.flags)
        if path is None:
            word, state = _named(library, options)
            libraries.append(word)
            identity.append(state)
            portable.append(library)
            continue
        if not path.exists():
            raise FileNotFoundError(f"bind: no such library: {path}")
        digest = _digest(path)
        libraries.append(str(_openable(path, digest)))
        identity.append(digest)
        portable.append(f"{path.name} {digest}")
    return Binding(tuple(libraries), tuple(identity), tuple(portable))


def _file_name(name: str) -> str:
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    return f"lib{name}{suffix}"


def _in_flags(name: str, flags: Sequence[str]) -> Path | None:
    """A library in a folder of ``-L``, which the loader would not look into."""
    for position, flag in enumerate(flags):
        folder = flag.removeprefix("-L")
        if flag == "-L":
            folder = flags[position + 1] if position + 1 < len(flags) else ""
        elif folder == flag:
            continue
        path = Path(os.path.abspath(folder)) / _file_name(name)
        if folder and path.exists():
            return path
    return None


def _named(name: str, options: Options) -> tuple[str, str]:
    """What the linker is told for a name, and what the file is now.

    A machine may have the library and not the development package with ``lib<name>.so``;
    the prototypes are in the declarations, so the library itself will do, by its SONAME.
    """
    found = compiler.find_compiler(options.compiler)
    is_zig = "ziglang" in found.command
    if re.search(r"\.(so|dylib|dll)\b", name):
        return (name if is_zig else f"-l:{name}"), ""
    asked = found.run([f"-print-file-name={_file_name(name)}"], what=f"looking for {name}")
    # zig has a C library of its own, and leaves -lm and the like away.
    is_found = os.path.isabs(asked.strip()) and not is_zig
    if not is_found and (file := ctypes.util.find_library(name)):
        return (f"-l{name}" if _is_linkable(found, name) and not is_zig else file), file
    path = os.path.realpath(asked.strip())
    try:
        status = os.stat(path)
    except OSError:
        return f"-l{name}", ""
    return f"-l{name}", f"{path} {status.st_size} {status.st_mtime_ns}"


def _is_linkable(found: compiler.Compiler, name: str) -> bool:
    """Whether the linker finds a name in folders that only it knows."""
    try:
        found.run(["-shared", f"-l{name}", "-o", os.devnull], what=f"looking for {name}")
    except RuntimeError:
        return False
    return True


_LACKING = re.compile(
    r"cannot find -l:?([^\s:]+)|unable to find (?:library -l|dynamic system library ['\"])"
    r"([^\s'\"]+)|library not found for -l(\S+)|library '([^']+)' not found"
)


def not_found(error: RuntimeError) -> FileNotFoundError | None:
    """The linker's complaint about a library that is not there, said for who bound to it."""
    lacking = _LACKING.search(str(error))
    if lacking is None:
        return None
    name = next(group for group in lacking.groups() if group)
    package = re.sub(r"\.so.*", "", name.removeprefix("lib"))
    file = name if ".so" in name else _file_name(name)
    return FileNotFoundError(
        f"bind: there is no library '{name}': the linker looked for {file} in its own folders "
        "and those of -L in flags. A path ('/opt/x/lib/libx.so') binds to any file; on Debian "
        f"a library comes with its package, mostly lib{package}-dev. {error}"
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _openable(path: Path, digest: str) -> Path:
    """The path under which the loader opens a file as it is now.

    For a path that it has opened before it gives what it has, so a library that was built
    again is opened as a copy, beside the old one.
    """
    with _lock:
        before = _loaded.get(str(path))
        if before is None and not _is_mapped_before(path):
            before = _loaded[str(path)] = digest
    if before == digest:
        return path

    def copy(folder: Path) -> None:
        (folder / path.name).write_bytes(path.read_bytes())

    return cache.lookup_or_build(f"rebuilt-{digest}", path.name, copy)


def _is_mapped_before(path: Path) -> bool:
    """Whether this process has a file of this path that has been replaced since."""
    if sys.platform != "linux":
        return False
    real = os.path.realpath(path)
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:
        return any(line.rstrip("\n").endswith(f" {real} (deleted)") for line in maps)
    return False


# ---- addresses ----


@dataclasses.dataclass(frozen=True)
class Address:
    """Where a function is, what owns it, and what the owner says of its type."""

    number: int
    owner: Any
    signature: Signature | None = None


def wanted(value: Any) -> str:
    """What the second argument of ``bind`` can be, for the error about another value."""
    return (
        "bind: a library is a name ('gsl'), a path, a list of these, a ctypes.CDLL, or the "
        "address of one function (an int, a ctypes function, a numba cfunc, a capsule), got "
        f"{value!r}"
    )


def address(value: Any) -> Address | None:
    """The address that a value is, or None for what names a library.

    Raises:
      TypeError: for a bool.
      ValueError: for a function that cannot be called from here.
    """
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(wanted(value))
    if isinstance(value, (int, np.integer)):
        return Address(int(value), None)
    if isinstance(value, (str, os.PathLike)):
        return None
    if isinstance(value, ctypes.c_void_p) or hasattr(value, "argtypes"):
        _refuse_python(value)
        number = ctypes.cast(value, ctypes.c_void_p).value or 0
        return Address(number, value, signature_of_ctypes(value))
    if type(value).__name__ == "PyCapsule":
        return _of_capsule(value)
    if hasattr(value, "user_data") and hasattr(value, "function"):  # scipy.LowLevelCallable
        if value.user_data is not None:
            raise ValueError(
                "bind: a LowLevelCallable with user data takes a pointer that no JAX array "
                "holds; write a small C file over it"
            )
        return address(value.function)
    found = getattr(value, "address", None)
    if isinstance(found, int) and not isinstance(found, bool):
        return Address(found, value, _signature_of_numba(value))
    return None


def _refuse_python(value: Any) -> None:
    own = getattr(ctypes.PyDLL, "_func_flags_", 0) & ~getattr(ctypes.CDLL, "_func_flags_", 0)
    if getattr(value, "_flags_", 0) & own:
        raise ValueError(f"bind: {value!r} {WITH_LOCK}")


#: Why what PyDLL makes cannot be called.
WITH_LOCK = (
    "is called with Python's lock held (ctypes.PyDLL), and JAX calls functions without it; "
    "of a library that needs no Python take ctypes.CDLL"
)


def _of_capsule(capsule: Any) -> Address:
    """A function of Cython's ``__pyx_capi__``, which has its type for a name."""
    from jaxc.declare import kinds

    number, name = capsules.read(capsule)
    signature = None if name is None else kinds.of_c(name.decode(), "the capsule")
    return Address(number, capsule, signature)


def _signature_of_numba(value: Any) -> Signature | None:
    """The types of a ``numba.cfunc``; None for another object with an address."""
    from jaxc.declare.kinds import Kind, Signature

    signature: Any = getattr(value, "_sig", None)
    if not hasattr(signature, "args") or not hasattr(signature, "return_type"):
        return None

    def kind(type_: Any) -> Kind:
        text = str(type_)
        inner = text.rstrip("*")
        element: str | None = {"none": "void", "boolean": "bool"}.get(inner, inner)
        is_known = re.fullmatch(r"void|bool|(u?int|float|complex)\d+", element or "")
        if is_known is None or text.endswith("**"):
            element = None
        return Kind(element, text.endswith("*"), text)

    result = kind(signature.return_type)
    parameters = tuple(map(kind, signature.args))
    _refuse_complex(str(signature), [k.text for k in parameters], result.text)
    return Signature("the numba cfunc", str(signature), result, parameters)


def _refuse_complex(signature: str, parameters: Sequence[str], result: str) -> None:
    """Refuses complex numbers that numba passes in other registers than C.

    It passes two numbers. C has both in one register for complex64, and takes complex128
    from memory where not both of its halves fit into the eight registers of such numbers.
    """
    slots = sum({"complex128": 2, "float32": 1, "float64": 1}.get(p, 0) for p in parameters)
    is_passed_apart = "complex64" in (*parameters, result)
    if is_passed_apart or ("complex128" in parameters and slots > 8):
        raise ValueError(
            f"bind: the numba cfunc of type {signature} takes or returns complex numbers by "
            "value, which numba passes in other registers than C; let it take pointers, "
            "types.CPointer(types.complex64), declared as 'const float complex x[1]'"
        )


def signature_of_ctypes(function: Any) -> Signature | None:
    """What ``argtypes`` and ``restype`` say, where they were set.

    ``restype`` is int until it is set, so that an int of a library's function says nothing.
    """
    from jaxc.declare.kinds import Kind, Signature

    if not hasattr(function, "argtypes"):
        return None

    def kind(ctype: Any) -> Kind:
        text = "None" if ctype is None else getattr(ctype, "__name__", repr(ctype))
        if ctype is None:
            return Kind("void", False, text)
        if not isinstance(ctype, type):
            return Kind(None, False, text)
        pointers = (
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes._Pointer,
            type(function).__mro__[1],
        )
        is_pointer = issubclass(ctype, pointers)
        return Kind(_element(ctype), is_pointer, text)

    arguments, result = function.argtypes, function.restype
    is_set = result is not ctypes.c_int or hasattr(type(function), "_argtypes_")
    parameters = None if arguments is None else tuple(map(kind, arguments))
    returned = kind(result) if is_set else None
    if parameters is None and returned is None:
        return None
    given = "..." if parameters is None else ", ".join(p.text for p in parameters)
    text = f"{'unknown' if returned is None else returned.text} ({given})"
    return Signature("the ctypes function", text, returned, parameters)


def _element(ctype: type) -> str | None:
    """NumPy's name of what a type of ctypes is or points to; None where that is no number."""
    if issubclass(ctype, (ctypes.c_char, ctypes.c_char_p)):
        return "char"
    inner: Any = ctype
    if issubclass(ctype, ctypes._Pointer):
        inner = ctype._type_
        if inner is ctypes.c_char:
            return "char"
    elif hasattr(ctype, "_dtype_"):  # numpy.ctypeslib.ndpointer, of any dtype where it is None
        return None if ctype._dtype_ is None else str(ctype._dtype_.name)
    if not issubclass(inner, ctypes._SimpleCData) or issubclass(inner, ctypes.c_void_p):
        return None
    try:
        dtype = np.dtype(inner)
    except TypeError:  # what NumPy has not
        return None
    return dtype.name if dtype.kind in "biufc" else None
