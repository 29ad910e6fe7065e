"""The kernels in NumPy, under jax.pure_callback."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from kernels import EPS, LIMIT, Call


def callback(function: Call) -> Call:
    """A function of NumPy arrays as one of JAX, with results as in the benchmark's jaxc call.

    Returns:
      (specifications of the results, *arrays) -> arrays.
    """

    def host(results: Any, *arrays: Any) -> Any:
        values = function(*map(np.asarray, arrays))
        if isinstance(results, Sequence):
            return tuple(np.asarray(v, r.dtype) for v, r in zip(values, results, strict=True))
        return np.asarray(values, results.dtype)

    def call(results: Any, *arrays: jax.Array) -> Any:
        return jax.pure_callback(functools.partial(host, results), results, *arrays)

    return call


def rms_norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + x.dtype.type(EPS))


def rms_norm_gradient(x: np.ndarray, ct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = np.mean(np.square(x), axis=-1, keepdims=True)
    r = 1 / np.sqrt(mean + x.dtype.type(EPS))
    along = np.sum(ct * x, axis=-1, keepdims=True) * r**3 / x.shape[-1]
    return x * r, r * ct - along * x


def tridiagonal(
    lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """The Thomas algorithm, all systems in a step."""
    lower, diagonal, upper, b = (np.ascontiguousarray(a.T) for a in (lower, diagonal, upper, b))
    w, x = np.empty_like(b), np.empty_like(b)
    above, right = np.zeros_like(b[0]), np.zeros_like(b[0])
    for i in range(len(b)):
        scale = 1 / (diagonal[i] - lower[i] * above)
        w[i] = above = upper[i] * scale
        x[i] = right = (b[i] - lower[i] * right) * scale
    for i in range(len(b) - 2, -1, -1):
        x[i] -= w[i] * x[i + 1]
    return np.ascontiguousarray(x.T)


def stencil(u: np.ndarray) -> np.ndarray:
    middle = u[..., 1:-1, 1:-1]
    around = u[..., :-2, 1:-1] + u[..., 2:, 1:-1] + u[..., 1:-1, :-2] + u[..., 1:-1, 2:]
    return middle + u.dtype.type(0.1) * (around - 4 * middle)


def edit_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row by row of the table, all pairs in a step. See ``with_jnp.edit_distance``."""
    index = np.arange(b.shape[1] + 1, dtype=np.int32)
    cost = np.tile(index, (len(b), 1))
    t = np.empty_like(cost)
    for i in range(a.shape[1]):
        t[:, 0] = i + 1
        np.minimum(cost[:, :-1] + (b != a[:, i : i + 1]), cost[:, 1:] + 1, out=t[:, 1:])
        cost = np.minimum.accumulate(t - index, axis=1) + index
    return cost[:, -1]


def pairwise(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(np.square(x[:, None] - y[None]), axis=-1))


def escape(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Steps all points that are left; they get fewer."""
    shape = a.shape
    count = np.full(a.size, LIMIT, np.int32)
    left = np.arange(a.size)
    a, b = a.ravel(), b.ravel()
    x, y = np.zeros_like(a), np.zeros_like(b)
    for k in range(LIMIT):
        xx, yy = x * x, y * y
        inside = xx + yy <= 4
        if not inside.all():
            count[left[~inside]] = k
            left, a, b = left[inside], a[inside], b[inside]
            x, y, xx, yy = x[inside], y[inside], xx[inside], yy[inside]
        x, y = xx - yy + a, 2 * x * y + b
    return count.reshape(shape)


def rectify(x: np.ndarray) -> np.ndarray:
    """A loop over time, all rows in a step."""
    x = np.ascontiguousarray(x.T)
    y = np.empty_like(x)
    carry = np.zeros_like(x[0])
    for i in range(len(x)):
        y[i] = carry = np.maximum(carry / 2 + x[i], 0)
    return np.ascontiguousarray(y.T)


def made(dtype: str) -> dict[str, Call]:
    """The kernels by their names."""
    del dtype
    return {
        "rms_norm": callback(rms_norm),
        "rms_norm_gradient": callback(rms_norm_gradient),
        "tridiagonal": callback(tridiagonal),
        "stencil": callback(stencil),
        "edit_distance": callback(edit_distance),
        "pairwise": callback(pairwise),
        "escape": callback(escape),
        "rectify": callback(rectify),
    }
