"""The kernels in Warp, through its jax_kernel. Warp runs a kernel for a CPU in one thread."""

# Warp reads the annotations of a kernel as objects: they must not become strings here.
from typing import Any

import jax
import warp as wp

from kernels import EPS, LIMIT, Call

wp.config.quiet = True
wp.config.enable_backward = False  # derivatives of these kernels are not asked for
wp.init()

try:
    jax_kernel = wp.jax_kernel
except AttributeError:  # before 1.15 or so
    from warp.jax_experimental import jax_kernel

_REALS = {"float32": wp.float32, "float64": wp.float64}


def made(dtype: str) -> dict[str, Call]:
    """The kernels by their names, all of a dtype in one module, which compiles once."""
    return _strings() if dtype == "uint8" else _real(dtype, _REALS[dtype])


def _kernel(function: Any, module: str, outputs: int = 1) -> Any:
    kernel = wp.Kernel(function, key=function.__name__, module=wp.get_module(module))
    return jax_kernel(kernel, num_outputs=outputs)


def _strings() -> dict[str, Call]:
    def edit_distance(
        a: wp.array2d(dtype=wp.uint8),
        b: wp.array2d(dtype=wp.uint8),
        cost: wp.array2d(dtype=wp.int32),
        distance: wp.array1d(dtype=wp.int32),
    ):
        p = wp.tid()
        n = b.shape[1]
        for j in range(n + 1):
            cost[p, j] = j
        for i in range(a.shape[1]):
            before = cost[p, 0]
            left = i + 1
            cost[p, 0] = left
            for j in range(n):
                replaced = before
                if a[p, i] != b[p, j]:
                    replaced = before + 1
                before = cost[p, j + 1]
                left = wp.min(wp.min(replaced, before + 1), left + 1)
                cost[p, j + 1] = left
        distance[p] = cost[p, n]

    kernel = _kernel(edit_distance, "jaxc_bench_strings", 2)

    def call(results: Any, a: jax.Array, b: jax.Array) -> jax.Array:
        count, n = b.shape
        dims = {"cost": (count, n + 1), "distance": (count,)}
        return kernel(a, b, launch_dims=count, output_dims=dims)[1]

    return {"edit_distance": call}


def _real(dtype: str, real: Any) -> dict[str, Call]:
    return _rows(dtype, real) | _grids(dtype, real)


def _rows(dtype: str, real: Any) -> dict[str, Call]:
    """Kernels with a thread of Warp for each row."""
    rows = wp.array2d(dtype=real)
    eps = real(EPS)

    def rms_norm(x: rows, y: rows):
        p = wp.tid()
        n = x.shape[1]
        s = real(0.0)
        for i in range(n):
            s += x[p, i] * x[p, i]
        r = real(1.0) / wp.sqrt(s / real(n) + eps)
        for i in range(n):
            y[p, i] = x[p, i] * r

    def rms_norm_gradient(x: rows, ct: rows, y: rows, ct_x: rows):
        p = wp.tid()
        n = x.shape[1]
        s = real(0.0)
        along = real(0.0)
        for i in range(n):
            s += x[p, i] * x[p, i]
            along += ct[p, i] * x[p, i]
        r = real(1.0) / wp.sqrt(s / real(n) + eps)
        along = along * r * r * r / real(n)
        for i in range(n):
            y[p, i] = x[p, i] * r
            ct_x[p, i] = r * ct[p, i] - along * x[p, i]

    def tridiagonal(lower: rows, diagonal: rows, upper: rows, b: rows, w: rows, x: rows):
        p = wp.tid()
        n = b.shape[1]
        above = real(0.0)
        right = real(0.0)
        for i in range(n):
            scale = real(1.0) / (diagonal[p, i] - lower[p, i] * above)
            above = upper[p, i] * scale
            right = (b[p, i] - lower[p, i] * right) * scale
            w[p, i] = above
            x[p, i] = right
        for k in range(n - 1):
            i = n - 2 - k
            right = x[p, i] - w[p, i] * right
            x[p, i] = right

    def rectify(x: rows, y: rows):
        p = wp.tid()
        carry = real(0.0)
        for i in range(x.shape[1]):
            carry = wp.max(carry * real(0.5) + x[p, i], real(0.0))
            y[p, i] = carry

    def by_row(kernel: Any, keep: slice | int) -> Call:
        def call(results: Any, *arrays: jax.Array) -> Any:
            made = kernel(*arrays, launch_dims=arrays[0].shape[0], output_dims=arrays[0].shape)
            return tuple(made[keep]) if isinstance(keep, slice) else made[keep]

        return call

    module = f"jaxc_bench_rows_{dtype}"
    return {
        "rms_norm": by_row(_kernel(rms_norm, module), 0),
        "rms_norm_gradient": by_row(_kernel(rms_norm_gradient, module, 2), slice(None)),
        "tridiagonal": by_row(_kernel(tridiagonal, module, 2), 1),
        "rectify": by_row(_kernel(rectify, module), 0),
    }


def _grids(dtype: str, real: Any) -> dict[str, Call]:
    """Kernels with a thread of Warp for each result."""
    plane = wp.array2d(dtype=real)
    grids = wp.array3d(dtype=real)

    def stencil(u: grids, v: grids):
        g, i, j = wp.tid()
        around = u[g, i, j + 1] + u[g, i + 2, j + 1] + u[g, i + 1, j] + u[g, i + 1, j + 2]
        middle = u[g, i + 1, j + 1]
        v[g, i, j] = middle + real(0.1) * (around - real(4.0) * middle)

    def pairwise(x: plane, y: plane, d: plane):
        i, j = wp.tid()
        a = x[i, 0] - y[j, 0]
        b = x[i, 1] - y[j, 1]
        c = x[i, 2] - y[j, 2]
        d[i, j] = wp.sqrt(a * a + b * b + c * c)

    def escape(a: plane, b: plane, count: wp.array2d(dtype=wp.int32)):
        i, j = wp.tid()
        x = real(0.0)
        y = real(0.0)
        k = int(0)  # noqa: RUF046, UP018 - Warp takes a plain 0 as a constant
        while k < LIMIT and x * x + y * y <= real(4.0):
            new = x * x - y * y + a[i, j]
            y = real(2.0) * x * y + b[i, j]
            x = new
            k += 1
        count[i, j] = k

    def by_result(kernel: Any) -> Call:
        def call(results: Any, *arrays: jax.Array) -> jax.Array:
            shape = results.shape
            return kernel(*arrays, launch_dims=shape, output_dims=shape)[0]

        return call

    module = f"jaxc_bench_grids_{dtype}"
    kernels = (stencil, pairwise, escape)
    return {k.__name__: by_result(_kernel(k, module)) for k in kernels}
