"""The same rms_norm by jaxc.load, without handlers, registration or primitives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from steps import HERE, XS, X, close, collectives, error_of, rms_norm_ref, section

import jaxc


@section("plain C by jaxc.load")
def plain() -> str:
    started = time.perf_counter()
    rms_norm = jaxc.load(HERE / "plain.c").rms_norm
    seconds = time.perf_counter() - started
    close(rms_norm(X, 1e-5), rms_norm_ref(X))
    close(jax.jit(rms_norm)(X, 1e-5), rms_norm_ref(X))
    epsilons = jnp.array([1e-6, 1e-3, 1.0])
    close(
        jax.vmap(rms_norm, (None, 0))(X, epsilons),
        jax.vmap(rms_norm_ref, (None, 0))(X, epsilons),
    )

    def both(make: Callable[[Any], Any], *args: Any) -> None:
        close(make(rms_norm)(*args), make(rms_norm_ref)(*args), 1e-4, 1e-5)

    both(lambda f: jax.vmap(jax.grad(lambda x, e: jnp.sum(f(x, e) ** 3), (0, 1)), (0, None)),
         XS, 0.1)  # fmt: skip
    both(lambda f: jax.vmap(lambda x, t: jax.jvp(f, (x, 0.1), (t, 0.2))), XS, jnp.sin(3 * XS))
    both(lambda f: jax.jacrev(lambda x: f(x, 0.1)), X[0])
    mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(X, jax.P("x"))
        parts = jax.shard_map(lambda x: rms_norm(x, 1e-5), out_specs=jax.P("x"))
        close(parts(x), rms_norm_ref(X))
        assert collectives(parts, x) == set()
    error_of(lambda: rms_norm(X.astype("float16"), 1e-5), says="float16")
    return f"loaded in {seconds:.2f} s: jit, vmap of eps, vmap(grad), vmap(jvp), shard_map"
