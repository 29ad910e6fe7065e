"""The kernels of examples/launch.c in Warp, through its jax_kernel.

Each maker holds what a user of Warp writes for one kernel; launch.py counts its lines.
"""

# Warp reads the annotations of a kernel as objects: they must not become strings here.
from typing import Any

import warp as wp

wp.config.quiet = True
wp.config.enable_backward = False  # derivatives of these kernels are not asked for
wp.init()


def make_triple() -> Any:
    @wp.kernel
    def triple(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 3.0 * x[i]

    return wp.jax_kernel(triple)


def make_sine_cosine() -> Any:
    @wp.kernel
    def sine_cosine(
        angle: wp.array(dtype=float),
        sine: wp.array(dtype=float),
        cosine: wp.array(dtype=float),
    ):
        i = wp.tid()
        sine[i] = wp.sin(angle[i])
        cosine[i] = wp.cos(angle[i])

    return wp.jax_kernel(sine_cosine, num_outputs=2)


def make_scale_vec() -> Any:
    @wp.kernel
    def scale_vec(v: wp.array(dtype=wp.vec2), s: float, w: wp.array(dtype=wp.vec2)):
        i = wp.tid()
        w[i] = s * v[i]

    return wp.jax_kernel(scale_vec)


def make_matmul() -> Any:
    @wp.kernel
    def matmul(
        a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)
    ):
        i, j = wp.tid()
        total = float(0.0)  # noqa: UP018 - Warp takes a plain 0.0 as a constant
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total

    kernel = wp.jax_kernel(matmul)
    return lambda a, b: kernel(a, b, launch_dims=(a.shape[0], b.shape[1]))


def make_deposit() -> Any:
    @wp.kernel
    def deposit(
        cell: wp.array(dtype=int), mass: wp.array(dtype=float), density: wp.array(dtype=float)
    ):
        p = wp.tid()
        if cell[p] >= 0 and cell[p] < density.shape[0]:
            wp.atomic_add(density, cell[p], mass[p])

    return wp.jax_kernel(deposit, in_out_argnames=["density"])
