"""What one call costs in a compiled program by the ways that enter Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from calls import CHAIN, EPS, Norm, reference
from report import Row, compare
from rivals.with_numpy import callback
from rivals.with_numpy import rms_norm as numpy_rms_norm
from timing import Samples, interleave, timed

SHORT = 20


def in_programs(rounds: int, norms: dict[str, Norm]) -> list[Row]:
    """Rows for a call in a jitted chain: jaxc beside pure_callback, numba and Warp."""
    x = jnp.arange(1.0, 17.0)
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    calls: dict[str, tuple[Norm, int]] = {"jaxc": (norms["jaxc"], CHAIN)}
    numpy_call = callback(numpy_rms_norm)
    calls["pure_callback, NumPy"] = (lambda x, eps: numpy_call(result, x), SHORT)
    rows = []
    what = f"call in a jitted chain of {CHAIN}"
    for name, make in (("pure_callback, numba", _numba), ("Warp, jax_kernel", _warp)):
        try:
            calls[name] = (make(result), SHORT)
            np.testing.assert_allclose(calls[name][0](x, EPS), reference(x, EPS), rtol=1e-4)
        except Exception as error:  # a rival that cannot run is a line of the table
            calls.pop(name, None)
            rows.append(Row(what, "", name, f"{type(error).__name__}: {error}"[:100]))
    programs = {name: _chain(*call) for name, call in calls.items()}
    for name, program in programs.items():
        expected = _chain(reference, calls[name][1])(x)
        np.testing.assert_allclose(program(x), expected, rtol=1e-4)
    measured = interleave(
        {
            # jaxc's is so short that what ran before it would show
            name: timed(_waits(program, x), 50 if name == "jaxc" else 5)
            for name, program in programs.items()
        },
        rounds,
    )
    each: dict[str, Samples] = {n: s / calls[n][1] for n, s in measured.items()}
    goals = {"pure_callback, NumPy": 100, "Warp, jax_kernel": 100}
    for name in calls:
        if name != "jaxc":
            rows.append(compare(what, each["jaxc"], name, each[name], goals.get(name)))
    return rows


def _waits(program: Callable[[jax.Array], jax.Array], x: jax.Array) -> Callable[[], object]:
    return lambda: program(x).block_until_ready()


def _chain(norm: Norm, count: int) -> Callable[[jax.Array], jax.Array]:
    def chain(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = norm(x, EPS)
        return x

    return jax.jit(chain)


def _numba(result: Any) -> Norm:
    from rivals import with_numba

    call = with_numba.made("float32")["rms_norm"]
    return lambda x, eps: call(result, x)


def _warp(result: Any) -> Norm:
    from rivals import with_warp

    call = with_warp.made("float32")["rms_norm"]
    row = jax.ShapeDtypeStruct((1, *result.shape), result.dtype)
    return lambda x, eps: call(row, x[None])[0]
