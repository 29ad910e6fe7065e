"""The folder where built libraries live: content-addressed, and safe to share.

An entry is a folder named by a hash of everything that its content depends on. It appears
whole, by renaming, so any number of processes may fill the cache at once. The folder
belongs to the user and nobody else can write it, or it is not used: a library from it is
code that runs in this process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path


def cache_dir() -> Path:
    """$JAXC_CACHE_DIR, or the platform's cache folder for the user."""
    if explicit := os.environ.get("JAXC_CACHE_DIR"):
        return Path(explicit)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "jaxc" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "jaxc"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jaxc"


def _distrust(folder: Path) -> str | None:
    """Why no code is taken from a folder, or None. Makes it when it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
    except (OSError, RuntimeError) as error:
        return str(error)
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            return f"it belongs to user {status.st_uid}, not to {os.getuid()}"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others may write it (chmod go-w)"
    return None


@functools.cache
def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="jaxc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _warn_once(folder: Path, reason: str) -> None:
    warnings.warn(
        f"jaxc does not use the cache folder {folder}: {reason}. Libraries of this process "
        "are built again; set JAXC_CACHE_DIR to a folder of your own",
        RuntimeWarning,
        stacklevel=2,
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_whole(entry: Path, file: str) -> bool:
    """Whether an entry holds what was put there: a full disk leaves files cut short."""
    try:
        return (entry / "digest").read_text() == _digest(entry / file)
    except OSError:
        return False


def lookup_or_build(key: str, file: str, build: Callable[[Path], None]) -> Path:
    """The path of ``file`` in the entry ``key``; ``build`` fills a new folder with it.

    The build itself runs in a temporary folder of this process, so that a cache folder
    which is read-only, full or not to be trusted is a warning and not a failure.

    Raises:
      What ``build`` raises.
    """
    folder = cache_dir()
    reason = _distrust(folder)
    if reason is None and _is_whole(folder / key, file):
        return folder / key / file
    private = _private_folder() / key
    if reason is not None and _is_whole(private, file):
        return private / file
    work = Path(tempfile.mkdtemp(dir=_private_folder()))
    try:
        build(work)
        (work / "digest").write_text(_digest(work / file))
        if reason is None:
            try:
                _publish(work, folder, key, file)
                return folder / key / file
            except OSError as error:
                reason = str(error)
        _rename(work, private, file)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _warn_once(folder, reason)
    return private / file


def _publish(source: Path, folder: Path, key: str, file: str) -> None:
    work = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        shutil.copytree(source, work, dirs_exist_ok=True)
        _rename(work, folder / key, file)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _rename(work: Path, entry: Path, file: str) -> None:
    """Puts ``work`` in place as ``entry`` in one step, unless an equal one is there."""
    if entry.exists() and not _is_whole(entry, file):
        shutil.rmtree(entry, ignore_errors=True)
    with contextlib.suppress(OSError):  # another thread or process was first
        work.rename(entry)
    if not _is_whole(entry, file):
        raise OSError(f"cannot write {entry}")
