"""Hand-written handlers for XLA: checked before JAX gets them, and loud when refused."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
from jaxlib.version import __version__ as jaxlib_version

from jaxc import _jaxc, capsules  # type: ignore[attr-defined]

#: Stages of a handler, in the order in which they run.
STAGES = ("instantiate", "prepare", "initialize", "execute")

#: JAX's names of platforms, and what each is registered as.
PLATFORMS = {"cpu": "cpu", "cuda": "CUDA", "rocm": "ROCM", "gpu": "CUDA"}

_lock = threading.Lock()
#: (target, XLA's platform) -> addresses of the stages, and names of the types.
_registered: dict[tuple[str, str], tuple[dict[str, int], tuple[str, ...]]] = {}
#: Capsules and libraries of registered handlers, for the life of the process.
_kept: list[Any] = []


@dataclasses.dataclass(frozen=True)
class Handler:
    """A handler that was found: the address of each stage, and what it says of itself."""

    name: str
    stages: dict[str, int]
    origin: str
    """Where it comes from, for messages."""
    platform: str | None = None
    """What it was written for; None when it does not say."""
    minor: int | None = None
    """The XLA FFI API that it needs, 0.minor; None when it has to be asked."""
    fields: tuple[Any, ...] | None = None
    """Its table, for one that jaxc's headers made."""

    def capsules(self) -> dict[str, Any]:
        return {stage: jax.ffi.pycapsule(address) for stage, address in self.stages.items()}


def register(
    name: str,
    handler: Any,
    platform: str = "cpu",
    *,
    symbol: str | None = None,
    types: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Registers a hand-written XLA FFI handler, to be called by ``jax.ffi.ffi_call(name)``.

    The handler is asked for its metadata first, in a process of its own where it does not
    come from jaxc's headers, so that a function that is no handler is refused and not
    called. Registering the same handler again does nothing.

    >>> jaxc.register("rms_norm", "librms_norm.so", symbol="RmsNorm")
    >>> jax.ffi.ffi_call("rms_norm", jax.typeof(x))(x, eps=np.float32(1e-5))

    Args:
      name: of the target.
      handler: path of a shared library or a ``ctypes.CDLL``, with the symbol's name in
        `symbol`; or a function of a ``ctypes.CDLL``; or a capsule; or a dictionary of
        these, by stage: "instantiate", "prepare", "initialize", "execute". The stages of
        a handler that JAXC_HANDLER made are found by themselves.
      platform: "cpu", "cuda" or "rocm".
      symbol: name of the handler in the library; `name` when it is not given.
      types: for handlers whose states are of types that have to be registered first, as
        those of C++: ``{"name": {"type_id": capsule, "type_info": capsule}}``. This
        initialises JAX's backends, so set flags and call `jax.distributed.initialize`
        before. Handlers made by JAXC_HANDLER register their own types.

    Raises:
      OSError: for a library that cannot be loaded, with the system's message.
      ValueError: for a symbol that is not there, a function that is no handler, one for
        another platform, one that needs a newer XLA FFI API than this jaxlib has, and a
        name that another handler has.
    """
    key = platform.lower()
    if key not in PLATFORMS:
        raise ValueError(
            f"register {name!r}: platform {platform!r} is not known, expected one of "
            f"{', '.join(PLATFORMS)}"
        )
    found = find(handler, symbol=symbol, name=name)
    _check_platform(name, found, key)
    _check_version(name, found, key)
    this = (found.stages, tuple(types or ()))
    with _lock:
        there = _registered.get((name, PLATFORMS[key]))
        if there == this:
            return
        if there is not None:
            what = (
                "another handler, or this one before its file has changed, has this name"
                if there[0] != this[0]
                else "it is there"
            )
            raise ValueError(
                f"register {name!r}: {what} on {key}"
                + (", with other types" if there[0] == this[0] else "")
                + "; names stay for the life of the process, so choose a new one"
            )
        if types:
            _register_types(types, PLATFORMS[key])
        capsules = found.capsules()
        _kept.append((capsules, handler))
        try:
            jax.ffi.register_ffi_target(name, capsules, platform=PLATFORMS[key])
        except Exception as error:
            raise ValueError(
                f"register {name!r}: XLA refuses {found.origin} on {key}: {error}"
            ) from error
        _registered[name, PLATFORMS[key]] = this


def _register_types(types: Mapping[str, Mapping[str, Any]], platform: str) -> None:
    # What is registered before the backend is there waits for it, and jaxlib then takes
    # the handlers first, which refuse because their types are unknown.
    with contextlib.suppress(RuntimeError):  # there is no such platform here, and it waits
        jax.devices(platform.lower())
    for name, registration in types.items():
        jax.ffi.register_ffi_type(name, dict(registration), platform)


def targets() -> set[str]:
    """Names under which handlers are registered."""
    with _lock:
        return {name for name, _ in _registered}


def find(handler: Any, *, symbol: str | None = None, name: str | None = None) -> Handler:
    """Finds the stages of a handler.

    Args:
      handler, symbol: as `register` takes them.
      name: the symbol's name when `symbol` is None.

    Raises:
      OSError, ValueError, TypeError: as `register`.
    """
    if isinstance(handler, Mapping):
        return _from_stages(handler)
    if isinstance(handler, (str, os.PathLike)):
        handler = _open(Path(handler))
    if isinstance(handler, ctypes.CDLL):
        wanted = symbol if symbol is not None else name
        if wanted is None:
            raise ValueError(f"{handler._name}: say which handler by symbol=...")
        return _from_library(handler, wanted)
    if type(handler).__name__ == "PyCapsule":
        address = capsules.read(handler)[0]
        return Handler("handler", {"execute": address}, "the capsule")
    if hasattr(handler, "argtypes") and hasattr(handler, "restype"):  # of ctypes
        address = ctypes.cast(handler, ctypes.c_void_p).value or 0
        title = getattr(handler, "__name__", "handler")
        return Handler(title, {"execute": address}, f"function '{title}'")
    raise TypeError(
        f"a handler is the path of a library, a ctypes.CDLL or a function of it, a capsule, "
        f"or a dictionary of these by stage, not {type(handler).__name__}"
    )


#: Libraries by their place, with what the file was when it was loaded.
_opened: dict[str, tuple[tuple[int, ...], ctypes.CDLL]] = {}


def _open(path: Path) -> ctypes.CDLL:
    """Loads a library; one whose file has changed since is loaded again, as it is now.

    The loader would give the old one for the same name, as long as the process lives.
    """
    if not path.exists():  # a name for the system's folders, or an error with its words
        return _load(str(path), path)
    path = path.resolve()
    status = path.stat()
    state = (status.st_mtime_ns, status.st_size, status.st_ino)
    with _lock:
        before = _opened.get(str(path))
        if before is not None and before[0] == state:
            return before[1]
        if before is None:
            library = _load(str(path), path)
        else:
            folder = Path(tempfile.mkdtemp(prefix="jaxc-reloaded-"))
            copy = shutil.copy2(path, folder / path.name)
            library = _load(str(copy), path)
            shutil.rmtree(folder)  # the loader has it in memory
            library._name = str(path)
        _opened[str(path)] = (state, library)
        return library


def _load(name: str, path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise OSError(f"cannot load the handler's library {path}: {error}") from error


def _from_library(library: ctypes.CDLL, symbol: str) -> Handler:
    path = library._name
    symbol = symbol.removeprefix("jaxc_handler_")  # the name of its table is as good
    table = _address(library, f"jaxc_handler_{symbol}")
    address = _address(library, symbol)
    origin = f"'{symbol}' of {path}"
    if table is None and _is_kernel(library, symbol):
        raise ValueError(
            f"{origin} is a C function and no handler: jaxc.load({path!r}).{symbol} is the JAX "
            "function of it"
        )
    if address is None:
        raise ValueError(f"{path} has no symbol '{symbol}'; {_contents(library)}")
    if table is None:
        return Handler(symbol, {"execute": address}, origin)
    title, platform, minor, _traits, stages, fields = _jaxc.describe_handler(table)
    if "execute" not in stages:
        raise ValueError(f"{origin} has no execute stage")
    return Handler(title, dict.fromkeys(stages, address), origin, platform, minor, fields)


def _from_stages(stages: Mapping[str, Any]) -> Handler:
    unknown = set(stages) - set(STAGES)
    if unknown or "execute" not in stages:
        raise ValueError(
            f"the stages of a handler are {', '.join(STAGES)}, of which execute must be "
            f"there; got {', '.join(map(str, stages))}"
        )
    found = {stage: find(value) for stage, value in stages.items()}
    return Handler(
        found["execute"].name,
        {stage: part.stages["execute"] for stage, part in found.items()},
        found["execute"].origin,
    )


def _address(library: ctypes.CDLL, symbol: str) -> int | None:
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, symbol))
    except ValueError:
        return None


def _exports(library: ctypes.CDLL) -> tuple[str, ...]:
    return tuple(_jaxc.exported_symbols(library._name))


def _is_kernel(library: ctypes.CDLL, symbol: str) -> bool:
    if _address(library, "jaxc_library_table") is None:
        return False
    return symbol in {record[0] for record in _jaxc.open_library(library._name)[3]}


def _contents(library: ctypes.CDLL) -> str:
    """What a library has that could be meant."""
    names = _exports(library)
    prefix = "jaxc_handler_"
    handlers = sorted(n.removeprefix(prefix) for n in names if n.startswith(prefix))
    if handlers:
        return f"handlers in it: {', '.join(handlers)}"
    if "jaxc_library_table" in names:
        functions = [record[0] for record in _jaxc.open_library(library._name)[3]]
        return f"it is a kernel library for jaxc.load, with {', '.join(functions)}"
    shown = sorted(names)[:20]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"it exports {', '.join(shown) or 'nothing'}{more}"


def _check_platform(name: str, found: Handler, platform: str) -> None:
    own = found.platform
    if own is not None and PLATFORMS.get(own, own) != PLATFORMS[platform]:
        raise ValueError(
            f"register {name!r}: {found.origin} is written for {own}, not for {platform}"
        )


@lru_cache(maxsize=1024)
def _probe(address: int) -> tuple[int, int]:
    major, minor, _traits = _jaxc.probe_handler(jax.ffi.pycapsule(address))
    return int(major), int(minor)


def version_of(found: Handler) -> tuple[int, int]:
    """The XLA FFI API that a handler needs; asked in a child process where it is not known.

    Raises:
      ValueError: for a function that is no handler.
    """
    if found.minor is not None:
        return 0, found.minor
    try:
        return _probe(found.stages["execute"])
    except ValueError as error:
        raise ValueError(f"{found.origin} is no XLA FFI handler: {error}") from error


def _check_version(name: str, found: Handler, platform: str) -> None:
    try:
        major, minor = version_of(found)
    except ValueError as error:
        raise ValueError(f"register {name!r}: {error}") from error
    runtime = api_version()
    if runtime is not None and (major, minor) > runtime:
        raise ValueError(
            f"register {name!r}: {found.origin} needs XLA FFI API {major}.{minor}, but "
            f"jaxlib {jaxlib_version} has {runtime[0]}.{runtime[1]} on {platform}; "
            "build it for the older API or use a newer jaxlib"
        )


@lru_cache(maxsize=1)
def api_version() -> tuple[int, int] | None:
    """XLA FFI API of the installed jaxlib, from its own header; None when it has none."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    if not header.exists():
        return None
    numbers = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header.read_text()))
    return int(numbers["MAJOR"]), int(numbers["MINOR"])
