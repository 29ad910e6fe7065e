"""The kernels that the benchmark compares: inputs, sizes, and how jaxc calls them.

What another library makes of a kernel is in ``rivals/``, by the kernel's name. Every
implementation takes the arrays that ``inputs`` gives, with the same shapes, and returns the
same arrays.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxc

SOURCES = Path(__file__).with_name("kernels")
C_TYPES = {"float32": "float", "float64": "double", "uint8": "float"}

EPS = 1e-5
LIMIT = 256  # steps of the escape time

Arrays = tuple[np.ndarray, ...]
Call = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel, and what is measured of it.

    Attributes:
      title: how the tables name it.
      about: one line for the documentation.
      source: file in ``kernels/``.
      sizes: shapes that ``inputs`` understands, smallest first.
      elements: of a shape, what the plot's axis shows.
      inputs: (generator, shape, dtype) -> arrays.
      ours: library -> the calls that jaxc's user writes, by the names of columns; "jaxc" is
        the first.
      dtypes: measured ones; the first is in the plot.
      bound: what limits it, "compute" or "memory".
      mismatches: part of all values that may differ; for results that are whole numbers and
        depend on rounding.
    """

    title: str
    about: str
    source: str
    sizes: tuple[tuple[int, ...], ...]
    elements: Callable[[tuple[int, ...]], int]
    inputs: Callable[[np.random.Generator, tuple[int, ...], Any], Arrays]
    ours: Callable[[Any], dict[str, Call]]
    dtypes: tuple[str, ...] = ("float32", "float64")
    bound: str = "memory"
    mismatches: float = 0.0

    def library(self, dtype: str) -> Any:
        """The kernel's file, compiled for a dtype."""
        return jaxc.load(SOURCES / self.source, define={"REAL": C_TYPES[dtype]})


def _rows(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Arrays:
    return (random.standard_normal(shape, np.float32).astype(dtype, copy=False),)


def _rows_and_cotangent(
    random: np.random.Generator, shape: tuple[int, ...], dtype: Any
) -> Arrays:
    return (*_rows(random, shape, dtype), *_rows(random, shape, dtype))


def _systems(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Arrays:
    """Diagonally dominant, so no solver has to exchange rows."""
    lower, upper, right = (random.random(shape, np.float32).astype(dtype) for _ in range(3))
    lower[:, 0] = 0
    upper[:, -1] = 0
    diagonal = (3 + random.random(shape, np.float32)).astype(dtype)
    return lower, diagonal, upper, right


def _strings(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Arrays:
    pairs, length = shape
    a, b = (random.integers(0, 4, (pairs, length), np.uint8) for _ in range(2))
    return a.astype(dtype, copy=False), b.astype(dtype, copy=False)


def _points(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Arrays:
    x, y = (random.random((count, 3), np.float32).astype(dtype) for count in shape)
    return x, y


def _plane(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Arrays:
    """The part of the complex plane that has the Mandelbrot set, as two arrays."""
    del random
    height, width = shape
    a = np.linspace(-2, 0.6, width).astype(dtype)
    b = np.linspace(-1.2, 1.2, height).astype(dtype)
    return np.tile(a, (height, 1)), np.repeat(b[:, None], width, axis=1)


def _norms(library: Any) -> dict[str, Call]:
    return {
        "jaxc": lambda x: library.rms_norm(x, EPS),
        "jaxc, plain sum": lambda x: library.rms_norm_plain(x, EPS),
    }


def _solvers(library: Any) -> dict[str, Call]:
    return {
        "jaxc": library.tridiagonal,
        "jaxc, lanes": _blocks(8, library.tridiagonal_lanes, library.tridiagonal),
    }


def _edits(library: Any) -> dict[str, Call]:
    return {
        "jaxc": library.edit_distance,
        "jaxc, lanes": _blocks(32, library.edit_distance_lanes, library.edit_distance),
    }


def _scans(library: Any) -> dict[str, Call]:
    return {
        "jaxc": library.rectify,
        "jaxc, lanes": _blocks(8, library.rectify_lanes, library.rectify),
    }


def _blocks(size: int, many: Call, one: Call) -> Call:
    """The kernel for ``size`` rows at once, where the rows are whole blocks."""

    def call(*arrays: jax.Array) -> jax.Array:
        count, n = arrays[0].shape
        if count % size:
            return one(*arrays)
        result = many(*(array.reshape(count // size, size, n) for array in arrays))
        return result.reshape(count, *result.shape[2:])

    return call


def _gradient(library: Any) -> Call:
    def gradient(x: jax.Array, ct: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, pull = jax.vjp(lambda x: library.rms_norm(x, EPS), x)
        return y, pull(ct)[0]

    return gradient


def _stencil(library: Any) -> Call:
    def stencil(u: jax.Array) -> jax.Array:
        rows = jnp.arange(1, u.shape[-2] - 1, dtype=jnp.int32)
        return library.stencil(u[..., None, :, :], rows)

    return stencil


_ROW_SIZES = (
    (1, 16),
    (16, 256),
    (256, 1024),
    (16384, 64),
    (64, 65536),
    (4096, 1024),
    (16384, 1024),
)

KERNELS = {
    "rms_norm": Kernel(
        "rms_norm, forward",
        "root-mean-square normalisation of rows",
        "rms_norm.c",
        _ROW_SIZES,
        math.prod,
        _rows,
        _norms,
    ),
    "rms_norm_gradient": Kernel(
        "rms_norm, forward and gradient",
        "the same with its derivative: y and the cotangent of x, by `jax.vjp`",
        "rms_norm.c",
        _ROW_SIZES,
        math.prod,
        _rows_and_cotangent,
        lambda library: {"jaxc": _gradient(library)},
    ),
    "tridiagonal": Kernel(
        "tridiagonal systems",
        "a batch of systems by the Thomas algorithm",
        "tridiagonal.c",
        ((1, 16), (4, 1024), (64, 1024), (1024, 1024), (4096, 1024)),
        math.prod,
        _systems,
        _solvers,
        bound="compute",
    ),
    "stencil": Kernel(
        "stencil in the plane",
        "a step of the heat equation on grids",
        "stencil.c",
        ((1, 4, 4), (1, 64, 64), (1, 512, 512), (64, 256, 256), (1, 4096, 4096)),
        math.prod,
        _rows,
        lambda library: {"jaxc": _stencil(library)},
    ),
    "edit_distance": Kernel(
        "edit distance",
        "Levenshtein distance of pairs of strings; elements are cells of the table",
        "edit_distance.c",
        ((1, 4), (16, 16), (64, 64), (1024, 32), (1024, 128)),
        lambda shape: shape[0] * shape[1] ** 2,
        _strings,
        _edits,
        dtypes=("uint8",),
        bound="compute",
    ),
    "pairwise": Kernel(
        "distances between points",
        "all distances between two sets of points in space",
        "pairwise.c",
        ((4, 4), (64, 64), (1024, 1024), (4096, 4096)),
        math.prod,
        _points,
        lambda library: {"jaxc": library.pairwise},
    ),
    "escape": Kernel(
        "escape time",
        f"a function of two numbers that loops and branches, at most {LIMIT} steps",
        "escape.c",
        ((4, 4), (64, 64), (512, 512), (1024, 1024)),
        math.prod,
        _plane,
        lambda library: {
            "jaxc": lambda a, b: library.escape(a, b, LIMIT),
            "jaxc, lanes": lambda a, b: library.escape_lanes(a, b, LIMIT),
        },
        bound="compute",
        mismatches=0.01,
    ),
    "rectify": Kernel(
        "scan with a rectified carry",
        "a running value that is no plain sum: y[i] = max(y[i - 1] / 2 + x[i], 0)",
        "rectify.c",
        ((1, 16), (1, 4096), (64, 1024), (1, 262144), (4096, 4096)),
        math.prod,
        _rows,
        _scans,
        bound="compute",
    ),
}
