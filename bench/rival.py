"""The C++ handler that jaxc is measured against: compile, register, call."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

COMPILER = "c++"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-shared")
SOURCE = Path(__file__).with_name("rival.cc")

ATTRIBUTE, OPERAND = "rival_attribute", "rival_operand"


def compile_handler(source: Path, output: Path, *flags: str) -> None:
    """Compiles the handler as its user would.

    Raises:
      RuntimeError: when there is no C++ compiler or it fails.
    """
    command = [COMPILER, *FLAGS, *flags, f"-I{jax.ffi.include_dir()}", str(source)]
    try:
        done = subprocess.run(
            [*command, "-o", str(output)], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise RuntimeError(f"the comparison needs a C++ compiler: {error}") from error
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")


def register(folder: Path) -> None:
    """Compiles both handlers and registers them with XLA; once in a process."""
    path = folder / "rival.so"
    compile_handler(SOURCE, path, "-DRIVAL_VARIANT")
    library = ctypes.CDLL(str(path))
    for name in (ATTRIBUTE, OPERAND):
        capsule = jax.ffi.pycapsule(getattr(library, name))
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")


def attribute(x: jax.Array, eps: float) -> jax.Array:
    """rms_norm with eps as an attribute, called as the tutorial calls it."""
    return _call(ATTRIBUTE, x)(x, eps=np.float32(eps))


def operand(x: jax.Array, eps: float) -> jax.Array:
    """rms_norm with eps as an operand of rank 0, which can be traced."""
    return _call(OPERAND, x)(x, jnp.float32(eps))


def _call(target: str, x: jax.Array) -> Callable[..., jax.Array]:
    if x.dtype != jnp.float32:
        raise ValueError("rms_norm takes float32")
    result: Callable[..., jax.Array] = jax.ffi.ffi_call(
        target, jax.ShapeDtypeStruct(x.shape, x.dtype)
    )
    return result
