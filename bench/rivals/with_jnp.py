"""The kernels in jax.numpy, jax.lax and under jit.

Where there are several ways, a kernel has the one that was fastest on a CPU, or both.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from kernels import EPS, LIMIT, Call


def rms_norm(x: jax.Array) -> jax.Array:
    return x / jnp.sqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + EPS)


def rms_norm_gradient(x: jax.Array, ct: jax.Array) -> tuple[jax.Array, jax.Array]:
    y, pull = jax.vjp(rms_norm, x)
    return y, pull(ct)[0]


def tridiagonal_scan(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array
) -> jax.Array:
    """The Thomas algorithm, all systems in a step."""

    def down(carry, row):  # type: ignore[no-untyped-def]
        above, right = carry
        lo, d, up, rhs = row
        scale = 1 / (d - lo * above)
        carry = up * scale, (rhs - lo * right) * scale
        return carry, carry

    def up(right, row):  # type: ignore[no-untyped-def]
        w, x = row
        right = x - w * right
        return right, right

    zero = jnp.zeros(b.shape[0], b.dtype)
    _, (w, x) = jax.lax.scan(down, (zero, zero), (lower.T, diagonal.T, upper.T, b.T))
    return jax.lax.scan(up, zero, (w, x), reverse=True)[1].T


def tridiagonal_lapack(
    lower: jax.Array, diagonal: jax.Array, upper: jax.Array, b: jax.Array
) -> jax.Array:
    """The library function, which calls LAPACK on a CPU."""
    return jax.lax.linalg.tridiagonal_solve(lower, diagonal, upper, b[..., None])[..., 0]


def stencil(u: jax.Array) -> jax.Array:
    middle = u[..., 1:-1, 1:-1]
    around = u[..., :-2, 1:-1] + u[..., 2:, 1:-1] + u[..., 1:-1, :-2] + u[..., 1:-1, 2:]
    return middle + 0.1 * (around - 4 * middle)


def edit_distance(a: jax.Array, b: jax.Array) -> jax.Array:
    """A scan over rows of the table. In a row cost[j] = min over k <= j of t[k] + j - k."""
    count, n = b.shape
    index = jnp.arange(n + 1, dtype=jnp.int32)

    def row(cost, step):  # type: ignore[no-untyped-def]
        i, byte = step
        replaced = cost[:, :-1] + (b != byte[:, None])
        best = jnp.minimum(replaced, cost[:, 1:] + 1)
        first = jnp.full((count, 1), i + 1, jnp.int32)
        t = jnp.concatenate([first, best], axis=1)
        return jax.lax.cummin(t - index, axis=1) + index, None

    steps = jnp.arange(a.shape[1], dtype=jnp.int32), a.T
    start = jnp.broadcast_to(index, (count, n + 1))
    return jax.lax.scan(row, start, steps)[0][:, -1]


def edit_distance_diagonals(a: jax.Array, b: jax.Array) -> jax.Array:
    """A scan over diagonals of the table, whose cells do not need each other.

    Cell (i, d - i) is at place i of diagonal d.
    """
    count, m = a.shape
    n = b.shape[1]
    i = jnp.arange(m + 1, dtype=jnp.int32)
    big = jnp.int32(m + n + 1)
    # b reversed and padded: its bytes at places d - i - 1 are a slice.
    reversed_b = jnp.pad(b[:, ::-1], ((0, 0), (m + 1, m + 1)))
    padded_a = jnp.pad(a, ((0, 0), (1, 0)))

    def diagonal(carry, d):  # type: ignore[no-untyped-def]
        before, last = carry
        bytes_b = jax.lax.dynamic_slice_in_dim(reversed_b, n + m + 1 - d, m + 1, axis=1)
        up = jnp.pad(last[:, :-1], ((0, 0), (1, 0)), constant_values=m + n + 1)
        across = jnp.pad(before[:, :-1], ((0, 0), (1, 0)), constant_values=m + n + 1)
        cost = jnp.minimum(jnp.minimum(up, last) + 1, across + (padded_a != bytes_b))
        cost = jnp.where((i == 0) | (i == d), d, cost)
        cost = jnp.where((i > d) | (d - i > n), big, cost)
        return (last, cost), None

    zero = jnp.where(i == 0, 0, big)
    start = jnp.broadcast_to(zero, (count, m + 1))
    nothing = jnp.full((count, m + 1), big)
    steps = jnp.arange(1, m + n + 1, dtype=jnp.int32)
    return jax.lax.scan(diagonal, (nothing, start), steps)[0][1][:, m]


def pairwise(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(jnp.square(x[:, None] - y[None]), axis=-1))


def escape(a: jax.Array, b: jax.Array) -> jax.Array:
    """All points in one loop, which ends when no point is left."""

    def going(state):  # type: ignore[no-untyped-def]
        k, x, y, _ = state
        return (k < LIMIT) & jnp.any(x * x + y * y <= 4)

    def step(state):  # type: ignore[no-untyped-def]
        k, x, y, count = state
        xx, yy = x * x, y * y
        inside = xx + yy <= 4
        new_y = jnp.where(inside, 2 * x * y + b, y)
        new_x = jnp.where(inside, xx - yy + a, x)
        return k + 1, new_x, new_y, count + inside.astype(jnp.int32)

    zero = jnp.zeros_like(a)
    start = jnp.int32(0), zero, zero, jnp.zeros(a.shape, jnp.int32)
    return jax.lax.while_loop(going, step, start)[3]


def rectify(x: jax.Array, unroll: int = 1) -> jax.Array:
    """A scan over time, all rows in a step."""

    def step(carry, value):  # type: ignore[no-untyped-def]
        carry = jnp.maximum(carry / 2 + value, 0)
        return carry, carry

    zero = jnp.zeros(x.shape[0], x.dtype)
    return jax.lax.scan(step, zero, x.T, unroll=unroll)[1].T


MADE: dict[str, dict[str, Call]] = {
    "rms_norm": {"jax.numpy": rms_norm},
    "rms_norm_gradient": {"jax.numpy": rms_norm_gradient},
    "tridiagonal": {"lax.scan": tridiagonal_scan, "lax.linalg": tridiagonal_lapack},
    "stencil": {"jax.numpy": stencil},
    "edit_distance": {
        "lax.scan": edit_distance,
        "lax.scan, diagonals": edit_distance_diagonals,
    },
    "pairwise": {"jax.numpy": pairwise},
    "escape": {"lax.while_loop": escape},
    "rectify": {
        "lax.scan": rectify,
        "lax.scan, unroll=8": functools.partial(rectify, unroll=8),
    },
}
