"""The kernels that SciPy has, under jax.pure_callback."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.spatial.distance

from kernels import Call
from rivals.with_numpy import callback


def tridiagonal(
    lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """solve_banded takes one system: a loop over all."""
    x = np.empty_like(b)
    bands = np.zeros((3, b.shape[1]), b.dtype)
    for row in range(len(b)):
        bands[0, 1:] = upper[row, :-1]
        bands[1] = diagonal[row]
        bands[2, :-1] = lower[row, 1:]
        x[row] = scipy.linalg.solve_banded((1, 1), bands, b[row], check_finite=False)
    return x


def stencil(u: np.ndarray) -> np.ndarray:
    weights = np.array([[[0, 0.1, 0], [0.1, 0.6, 0.1], [0, 0.1, 0]]])
    return scipy.ndimage.convolve(u, weights)[..., 1:-1, 1:-1]


def pairwise(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return scipy.spatial.distance.cdist(x, y)


def made(dtype: str) -> dict[str, Call]:
    """The kernels by their names."""
    del dtype
    return {
        "tridiagonal": callback(tridiagonal),
        "stencil": callback(stencil),
        "pairwise": callback(pairwise),
    }
