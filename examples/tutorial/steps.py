"""What the sections share: their list, comparisons, and the compiler."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

HERE = Path(__file__).resolve().parent


class SkipError(Exception):
    """This JAX cannot run the section."""


def section(title: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Names a function that runs a section and returns what it has shown."""

    def name(function: Callable[[], str]) -> Callable[[], str]:
        function.title = title  # type: ignore[attr-defined]
        return function

    return name


def sections_of(module: ModuleType) -> Iterator[tuple[str, Callable[[], str]]]:
    """Titles and functions of the module's sections, in their order."""
    for function in vars(module).values():
        if hasattr(function, "title") and callable(function):
            yield function.title, function


def close(ours: Any, theirs: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(
            np.asarray(a, "float64"), np.asarray(b, "float64"), rtol, atol
        ),
        ours,
        theirs,
    )


def error_of(
    function: Callable[[], Any], *, says: str, kind: type[Exception] = Exception
) -> str:
    """The first line of the error that the call must end in."""
    try:
        jax.block_until_ready(function())
    except kind as error:
        message = str(error).splitlines()[0]
        assert says in message, f"{says!r} is not in {message!r}"
        return message
    raise AssertionError(f"no error with {says!r}")


def rms_norm_ref(x: Any, eps: Any = 1e-5) -> Any:
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)


X = jnp.linspace(-0.5, 0.5, 32).reshape(8, 4)
XS = jnp.linspace(-0.5, 0.5, 96).reshape(3, 8, 4)


@functools.cache
def build_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="jaxc-tutorial-")


@functools.cache
def include() -> str:
    command = [sys.executable, "-m", "jaxc", "--include"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@functools.cache
def compiled(name: str, *flags: str) -> tuple[Path, float]:
    """The library of a C file of this folder, and the seconds that cc took."""
    library = Path(build_folder().name) / f"lib{name}.so"
    command = ["cc", "-O3", "-shared", "-fPIC", f"-I{include()}", *flags]
    command += [str(HERE / f"{name}.c"), "-o", str(library), "-lm"]
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return library, time.perf_counter() - started


def like(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def collectives(function: Callable[..., Any], *args: Any) -> set[str]:
    text = jax.jit(function).lower(*args).compile().as_text()
    return set(re.findall(r"all-\w+|collective-\w+|reduce-scatter", text))
