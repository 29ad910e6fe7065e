"""The kernels in numba, vectorize and guvectorize, under jax.pure_callback."""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import numba
import numpy as np

from kernels import EPS, LIMIT, Call
from rivals.with_numpy import callback

#: What `#pragma omp simd reduction` allows in C: sums may be reordered.
FAST = {"reassoc", "contract"}


#: Elements from which numba's threads are used: below they cost more than they bring.
PARALLEL = 1 << 17


def made(dtype: str) -> dict[str, Call]:
    """The kernels by their names, compiled for a dtype and for the threads there are."""
    make = _strings if dtype == "uint8" else functools.partial(_real, dtype)
    kernels = make({"target": "cpu"})
    if len(os.sched_getaffinity(0)) > 1:
        parallel = make({"target": "parallel"})
        kernels = {name: _by_size(kernels[name], parallel[name]) for name in kernels}
    return {name: callback(function) for name, function in kernels.items()}


def _by_size(single: Call, parallel: Call) -> Call:
    def call(*arrays: np.ndarray) -> Any:
        return (parallel if arrays[0].size >= PARALLEL else single)(*arrays)

    return call


def _strings(options: dict[str, Any]) -> dict[str, Call]:
    @numba.guvectorize(
        ["(uint8[:], uint8[:], int32[:])"], "(m),(n)->()", nopython=True, **options
    )
    def edit_distance(a, b, distance):  # type: ignore[no-untyped-def]
        n = len(b)
        cost = np.arange(n + 1, dtype=np.int32)
        for i in range(len(a)):
            before = cost[0]
            left = np.int32(i + 1)
            cost[0] = left
            for j in range(n):
                best = min(before + np.int32(a[i] != b[j]), cost[j + 1] + np.int32(1))
                before = cost[j + 1]
                left = min(best, left + np.int32(1))
                cost[j + 1] = left
        distance[0] = cost[n]

    return {"edit_distance": edit_distance}


def _real(dtype: str, options: dict[str, Any]) -> dict[str, Call]:
    real = numba.from_dtype(np.dtype(dtype))
    one = np.dtype(dtype).type
    eps, half, rate, four = one(EPS), one(0.5), one(0.1), one(4)
    zero, unit = one(0), one(1)
    row = real[::1] if options["target"] == "cpu" else real[:]

    def gufunc(*kinds: Any, layout: str) -> Any:
        return numba.guvectorize(
            [numba.types.void(*kinds)], layout, nopython=True, fastmath=FAST, **options
        )

    @gufunc(row, row, layout="(n)->(n)")
    def rms_norm(x, y):  # type: ignore[no-untyped-def]
        s = zero
        for i in range(len(x)):
            s += x[i] * x[i]
        r = unit / math.sqrt(s / one(len(x)) + eps)
        for i in range(len(x)):
            y[i] = x[i] * r

    @gufunc(row, row, row, row, layout="(n),(n)->(n),(n)")
    def rms_norm_gradient(x, ct, y, ct_x):  # type: ignore[no-untyped-def]
        s, along = zero, zero
        for i in range(len(x)):
            s += x[i] * x[i]
            along += ct[i] * x[i]
        r = unit / math.sqrt(s / one(len(x)) + eps)
        along *= r * r * r / one(len(x))
        for i in range(len(x)):
            y[i] = x[i] * r
            ct_x[i] = r * ct[i] - along * x[i]

    @gufunc(row, row, row, row, row, layout="(n),(n),(n),(n)->(n)")
    def tridiagonal(lower, diagonal, upper, b, x):  # type: ignore[no-untyped-def]
        n = len(b)
        w = np.empty(n, b.dtype)
        above, right = zero, zero
        for i in range(n):
            lo = lower[i] if i > 0 else zero
            scale = unit / (diagonal[i] - lo * above)
            above = upper[i] * scale
            right = (b[i] - lo * right) * scale
            w[i] = above
            x[i] = right
        for i in range(n - 2, -1, -1):
            right = x[i] - w[i] * right
            x[i] = right

    @gufunc(real[:, :], numba.types.int32, real[:], real[:], layout="(m,n),(),(p)->(p)")
    def stencil_row(u, i, like, v):  # type: ignore[no-untyped-def]
        for j in range(1, u.shape[1] - 1):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            v[j - 1] = u[i, j] + rate * (around - four * u[i, j])

    @gufunc(row, real[:, :], row, row, layout="(k),(n,k),(n)->(n)")
    def distances(x, y, like, d):  # type: ignore[no-untyped-def]
        for j in range(len(y)):
            a, b, c = x[0] - y[j, 0], x[1] - y[j, 1], x[2] - y[j, 2]
            d[j] = math.sqrt(a * a + b * b + c * c)

    @numba.vectorize([numba.types.int32(real, real)], nopython=True, **options)
    def escape(a, b):  # type: ignore[no-untyped-def]
        x, y = zero, zero
        for k in range(LIMIT):
            xx, yy = x * x, y * y
            if xx + yy > four:
                return k
            y = (x + x) * y + b
            x = xx - yy + a
        return LIMIT

    @gufunc(row, row, layout="(n)->(n)")
    def rectify(x, y):  # type: ignore[no-untyped-def]
        carry = zero
        for i in range(len(x)):
            carry = max(carry * half + x[i], zero)
            y[i] = carry

    def stencil(u: np.ndarray) -> np.ndarray:
        rows = np.arange(1, u.shape[-2] - 1, dtype=np.int32)
        return stencil_row(u[..., None, :, :], rows, u[0, 0, 2:])

    def pairwise(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return distances(x, y, y[:, 0])

    return {
        "rms_norm": rms_norm,
        "rms_norm_gradient": rms_norm_gradient,
        "tridiagonal": tridiagonal,
        "stencil": stencil,
        "pairwise": pairwise,
        "escape": escape,
        "rectify": rectify,
    }
