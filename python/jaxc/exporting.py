"""Programs for other processes and machines: exported, checked, and bundled with libraries.

An exported program names its C functions by targets, ``jaxc:<library>:<function>:<hash>``; a
process that has loaded the same library, of the same source, flags and jaxc, runs it. A
bundle is one file with the program and the libraries.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export

from jaxc import adopt, cache, callbacks, library, registration, targets, ufuncs

_TARGET = re.compile(r'@"?(jaxc:[^\s"(]+)"?\(')
_FORMAT = 1
_HINTS = {
    "": "load it first: jaxc.load('{name}.c'), or the library that was built of it",
    "ufunc": "import the module that has it first: {module}",
    "callback": "import the module that defines it first: {module}",
    "#": "it was made in that process alone: a callback that is defined in a function, or "
    "again under its name, is found by jaxc.callback(..., name='module.name') only",
    "bound": "bind it first: jaxc.bind(declarations, '{module}'), to the same library",
    "address": "bind it first, as the process did that made the program",
}

StrPath = str | os.PathLike[str]


def export(
    function: Callable[..., Any],
    *args: Any,
    platforms: Sequence[str] | None = None,
    **kwargs: Any,
) -> jax.export.Exported:
    """`jax.export.export` for programs that call C functions.

    JAX refuses to export a custom call that it does not know to be stable. Those of jaxc are
    stable, because their names contain the hash of what they call: exactly they are allowed,
    beside targets of `jaxc.register`, whose stability is their author's business.

    >>> data = jaxc.export(jax.jit(step), x).serialize()
    >>> jaxc.deserialize(data).call(x)        # in another process, after jaxc.load

    Args:
      function: jitted.
      args, kwargs: arrays or `jax.ShapeDtypeStruct`, as `jax.export.export(f)` takes them;
        leading axes may be symbolic, and core axes too.
      platforms: as `jax.export.export` takes them.
    """
    # Overloads of ufuncs and callbacks are made when they are traced, which JAX does once.
    function.trace(*args, **kwargs)  # type: ignore[attr-defined]
    allowed = {*targets.registered(), *registration.targets()}
    checks = [jax.export.DisabledSafetyCheck.custom_call(target) for target in sorted(allowed)]
    exporter = jax.export.export(function, platforms=platforms, disabled_checks=checks)
    return exporter(*args, **kwargs)


def targets_of(exported: jax.export.Exported) -> list[str]:
    """Targets of C functions that a program calls."""
    return sorted(set(_TARGET.findall(exported.mlir_module())))


def deserialize(data: bytes | bytearray) -> jax.export.Exported:
    """`jax.export.deserialize`, which tells what has to be loaded first.

    Raises:
      ValueError: for a program with C functions that this process has not, naming library and
        function.
    """
    exported = jax.export.deserialize(bytearray(data))
    _check_loaded(exported)
    return exported


def _check_loaded(exported: jax.export.Exported) -> None:
    for target in targets_of(exported):
        _, name, function, digest = target.split(":")
        kind, _, module = name.partition("/")
        overload = adopt.overload_of(function)
        if target not in targets.registered() and overload is not None:
            if kind == "ufunc":
                ufuncs.find(module, *overload[:2])
            elif kind == "callback":
                callbacks.find(module, *overload)
        there = targets.registered()
        if target in there:
            continue
        same = sorted(t for t in there if t.split(":")[1:3] == [name, function])
        hint = _HINTS["#"] if "#" in module else _HINTS.get(kind, _HINTS[""])
        function = function.partition("[")[0]
        why = (
            f"this process has it from another build ({same[0].rpartition(':')[2]}): source, "
            "flags or jaxc's version differ"
            if same
            else hint.format(name=name, module=module, function=function)
        )
        raise ValueError(
            f"the program calls '{function}' of library '{name}' (build {digest}); {why}"
        )


def bundle(path: StrPath, exported: jax.export.Exported) -> str:
    """Writes a program and the libraries of its C functions into one file.

    It runs on machines of the same system and CPU kind: build with
    ``flags=["-march=..."]`` for what they have in common.

    Returns:
      The file's SHA-256, for `load_bundle`.

    Raises:
      ValueError: when this process lacks a library of the program.
    """
    _check_loaded(exported)
    paths = targets.registered()
    libraries: dict[str, Path] = {}
    for target in targets_of(exported):
        place = paths[target]
        if place is None:
            _, name, function, _ = target.split(":")
            kind = name.partition("/")[0]
            article = "an" if kind == "address" else "a"
            raise ValueError(
                f"{function.partition('[')[0]}: is {article} {kind} of this process, which no "
                "library contains: a bundle can carry C functions only; export the program, "
                "and make it in the other process too"
            )
        libraries[str(place)] = place
    manifest = {
        "format": _FORMAT,
        "system": _system(),
        "targets": targets_of(exported),
        "libraries": [],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        program = bytes(exported.serialize())
        archive.writestr("program", program)
        manifest["program"] = hashlib.sha256(program).hexdigest()
        for i, place in enumerate(libraries.values()):
            content = place.read_bytes()
            name = f"library-{i}-{place.name}"
            archive.writestr(name, content)
            manifest["libraries"].append([name, hashlib.sha256(content).hexdigest()])  # type: ignore[attr-defined]
        archive.writestr("manifest.json", json.dumps(manifest))
    data = buffer.getvalue()
    Path(path).write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def load_bundle(
    path: StrPath, *, sha256: str | None = None, trust: bool = False
) -> jax.export.Exported:
    """The program of a bundle, after loading its libraries.

    Libraries are code that runs in this process, so the call says that they may: by the
    file's SHA-256, as `bundle` returned it, or by ``trust=True`` for a file of one's own.

    Raises:
      ValueError: without either; for a file of another hash, of another system, a damaged
        one, or one without what its program calls.
    """
    if sha256 is None and not trust:
        raise ValueError(
            f"{path}: a bundle contains code that would run in this process; give sha256=... "
            "of the file that is meant, or trust=True"
        )
    data = Path(path).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if sha256 is not None and found != sha256.lower():
        raise ValueError(f"{path}: has SHA-256 {found}, expected {sha256}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            content = {name: archive.read(name) for name in archive.namelist()}
        parts = [("program", manifest["program"]), *manifest["libraries"]]
        damaged = [n for n, digest in parts if hashlib.sha256(content[n]).hexdigest() != digest]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: is no bundle of jaxc, or damaged: {error}") from error
    if damaged:
        raise ValueError(f"{path}: '{damaged[0]}' in it is damaged")
    if manifest["format"] != _FORMAT:
        raise ValueError(f"{path}: has format {manifest['format']}, expected {_FORMAT}")
    if manifest["system"] != _system():
        raise ValueError(f"{path}: was made for {manifest['system']}, this is {_system()}")
    for name, digest in manifest["libraries"]:
        library.load(_kept(name.split("-", 2)[2], content[name], digest))
    missing = [target for target in manifest["targets"] if target not in targets.registered()]
    if missing:
        raise ValueError(f"{path}: its libraries lack {missing[0]}")
    return deserialize(content["program"])


def _kept(name: str, content: bytes, digest: str) -> Path:
    """A library as a file in the cache, where only the user can write."""
    key = "bundled-" + digest

    def write(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return cache.lookup_or_build(key, name, write)


def _system() -> str:
    return f"{sys.platform} {platform.machine()}"
