"""Find the libraries that ``jaxc.bind`` is given: names, folders and files."""

from __future__ import annotations

import contextlib
import ctypes.util
import hashlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from jaxc import cache, compiler
from jaxc.build import Binding, Options

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
