"""Releases of jaxlib, one for each version of XLA's FFI API: their headers, and environments
with the whole of JAX.

They are kept where fetch.py keeps its packages; what cannot be had skips the test.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import NoReturn

import fetch
import jax
import jaxlib
import pytest

ROOT = Path(__file__).resolve().parents[2]

#: jaxlib -> minor of the API, a Python that has a wheel of it, SHA-256 of its c_api.h.
RELEASES = {
    "0.6.1": (1, "3.11", "15c29436e1544f8f9711e4b0f37f2c0b51623d47b56d50d2cc4399eedd8be9a7"),
    "0.8.1": (2, "3.11", "aca130ddbe816672f9d302364d28813b1922c90baf7bc4818f3169d375c5ecc3"),
    "0.10.2": (3, "3.11", "85fc385c2d3a6b539a05b9cf4c3535aa24b4b41040f9e111c1f2c11b0e2fa539"),
    "0.11.1": (4, "3.13", "9847993912aa1aadb2dac4af16eeb9d8bae3f470905b519977d1d09b3f37eedf"),
    "0.12.0.1": (5, "3.13", "a7cdfc19c9383ea0a588e1b34dbe2c2225afcdff670349fa560b583f0a189cd2"),
}  # fmt: skip

#: "0" where no environments with older versions of JAX are to be made: each takes a quarter
#: of a minute, once, and 600 MB. Those that are there are used.
OLD_JAX = "JAXC_TEST_OLD_JAX"

#: Why an environment could not be made; it is not tried again in this run.
_failed: dict[str, str] = {}

_PREFIX = "jaxlib/include/"
_HEADERS = f"{_PREFIX}xla/ffi/api/"


def include_dir(version: str) -> Path:
    """The folder of that jaxlib's headers; skips the test when they cannot be had.

    Raises:
      ValueError: when c_api.h is another one than that release's.
    """
    if version == jaxlib.__version__:
        return Path(jax.ffi.include_dir())
    folder = fetch.cached(
        f"jaxlib-{version}-headers", functools.partial(_download_headers, version)
    )
    _check(version, folder)
    return folder


def header(include: Path) -> Path:
    return include / "xla/ffi/api/c_api.h"


def _check(version: str, include: Path) -> None:
    found = hashlib.sha256(header(include).read_bytes()).hexdigest()
    expected = RELEASES[version][2]
    if found != expected:
        raise ValueError(f"c_api.h of jaxlib {version} has the SHA-256 {found}, not {expected}")


def _download_headers(version: str, folder: Path) -> None:
    what = f"jaxlib=={version}"
    arguments = ["download", what, "--no-deps", "--only-binary=:all:", f"--dest={folder}"]
    arguments += [f"--python-version={RELEASES[version][1]}"]
    reason = fetch.pip(what, arguments, folder)
    if reason is not None:
        pytest.skip(reason)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(_HEADERS) and name.endswith(".h"):
                out = folder / "content" / "include" / name.removeprefix(_PREFIX)
                out.parent.mkdir(parents=True, exist_ok=True)
                out.write_bytes(archive.read(name))
    _check(version, folder / "content" / "include")


def python_with(version: str) -> str:
    """A Python that has JAX of that version and nothing of jaxc; or skips the test."""
    downloads = os.environ.get("JAXC_TEST_DOWNLOADS") or Path.home() / ".cache/jaxc-tests"
    folder = Path(downloads) / f"venv-{version}"
    done = folder / "complete"
    if version in _failed:
        pytest.skip(_failed[version])
    if not done.exists():
        if os.environ.get(OLD_JAX) == "0":
            pytest.skip(f"no environment with JAX {version} is made, since {OLD_JAX}=0")
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Two runs at once must not fill one folder; an environment cannot be moved.
        with open(folder.parent / f"{folder.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                _make_environment(version, folder)
                done.touch()
    return str(folder / "bin" / "python")


def _make_environment(version: str, folder: Path) -> None:
    what, wanted = f"JAX {version}", RELEASES[version][1]
    listed = subprocess.run(
        ["sh", str(ROOT / "scripts" / "find_pythons.sh")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    pythons = [line.split(" ", 1)[1] for line in listed if line.startswith(f"{wanted} ")]
    if not pythons:
        _give_up(version, f"no Python {wanted} here to run {what} with")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([pythons[0], "-m", "venv", str(folder)], check=True)
    arguments = ["install", "--only-binary=:all:", "--no-compile", f"jax=={version}"]
    python = str(folder / "bin" / "python")
    reason = fetch.pip(what, [*arguments, f"jaxlib=={version}"], folder, python=python)
    if reason is not None:
        _give_up(version, reason)


def _give_up(version: str, reason: str) -> NoReturn:
    _failed[version] = reason
    pytest.skip(reason)
