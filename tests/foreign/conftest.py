"""What the tests of foreign handlers share: C++ compiled once, and packages of PyPI."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import fetch
import jax
import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def cxx(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Compiles a C++ file of this folder against jaxlib's header, once; gives the path."""
    folder = tmp_path_factory.mktemp("cxx")
    compiler = shutil.which("g++") or shutil.which("clang++")

    def compile_(name: str) -> str:
        if compiler is None:
            pytest.skip("no C++ compiler here")
        out = folder / f"{name}.so"
        if not out.exists():
            command = [compiler, "-std=c++17", "-shared", "-fPIC", "-pthread", "-Wall"]
            command += ["-Wextra", "-Werror", "-isystem", jax.ffi.include_dir()]
            done = subprocess.run(
                [*command, str(HERE / f"{name}.cc"), "-o", str(out)],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        return str(out)

    return compile_


@pytest.fixture(scope="session")
def extension() -> Callable[[str, str, str], ModuleType]:
    """Loads an extension module of a package of PyPI, alone: nothing else of it is run."""

    def load(package: str, version: str, module: str) -> ModuleType:
        tag = f"{sys.implementation.cache_tag}-{platform.machine()}"
        folder = fetch.cached(
            f"{package}-{version}-{tag}", lambda new: _install(package, version, new)
        )
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        found = sorted(folder.rglob(f"{module}{suffix}"))
        if not found:
            pytest.skip(f"{package} {version} has no {module}{suffix}")
        spec = importlib.util.spec_from_file_location(module, found[0])
        assert spec is not None
        assert spec.loader is not None
        out = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(out)
        return out

    return load


def _install(package: str, version: str, folder: Path) -> None:
    what = f"{package}=={version}"
    target = folder / "content" / "site"
    arguments = ["install", what, "--no-deps", "--no-compile", "--only-binary=:all:"]
    arguments += [f"--target={target}"]
    # Not to be had is no sign that nobody answers: there may be no wheel for this Python.
    reason = fetch.pip(what, arguments, folder, is_everywhere=False)
    if reason is not None:
        pytest.skip(reason)
