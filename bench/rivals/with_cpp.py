"""rms_norm as a C++ handler, as JAX's FFI tutorial writes it."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

import rival
from kernels import EPS, Call

SOURCE = Path(__file__).with_name("rms_norm.cc")


@functools.cache
def _library() -> ctypes.CDLL:
    path = Path(os.environ["JAXC_CACHE_DIR"]).parent / "rms_norm_cc.so"
    if not path.exists():  # another worker may have made it
        half = path.with_suffix(f".{os.getpid()}")
        rival.compile_handler(SOURCE, half, "-fopenmp-simd")
        half.rename(path)
    return ctypes.CDLL(str(path))


def made(dtype: str) -> dict[str, Call]:
    """The kernel by its name.

    Raises:
      RuntimeError: when there is no C++ compiler or it fails.
    """
    if dtype == "uint8":
        return {}
    name = f"rms_norm_{dtype}"
    capsule = jax.ffi.pycapsule(getattr(_library(), name))
    jax.ffi.register_ffi_target(f"rivals_{name}", capsule, platform="cpu")
    eps = np.dtype(dtype).type(EPS)

    def rms_norm(results: Any, x: jax.Array) -> Any:
        return jax.ffi.ffi_call(f"rivals_{name}", results)(x, eps=eps)

    return {"rms_norm": rms_norm}
