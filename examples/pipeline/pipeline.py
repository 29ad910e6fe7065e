"""Several kernels in one call: by three calls, in a Python callback, and in C.

    python examples/pipeline/pipeline.py

Three calls in a program are the plain way, and XLA sees each. A callback calls the same
C functions by their ``.numpy`` and may look at values in between; it pays for the interpreter.
A C function that calls the others is one call, of the cost of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxc

kernels = jaxc.load(Path(__file__).with_name("pipeline.c"))


def in_three_calls(x: jax.Array) -> Any:
    return kernels.normalise(kernels.taper(kernels.detrend(x)))


@jaxc.callback("(n)->(n)")
def in_python(x: Any, y: Any) -> None:
    """Launches the three kernels; x and y are XLA's own memory."""
    straight = kernels.detrend.numpy(x)
    if not np.any(straight):  # what a program could not decide
        y[:] = 0
        return
    kernels.taper.numpy(straight, out=straight)
    kernels.normalise.numpy(straight, out=y)


WAYS: dict[str, Callable[[jax.Array], Any]] = {
    "three calls": in_three_calls,
    "a Python callback": in_python,
    "a C function": kernels.prepare,
}


def main() -> None:
    x = jax.random.normal(jax.random.key(0), (64, 256)) + jnp.arange(256.0)
    expected = in_three_calls(x)
    for name, way in WAYS.items():
        program = jax.jit(way)
        np.testing.assert_allclose(program(x), expected, rtol=1e-5, atol=1e-7)
        best = min(_seconds(program, x) for _ in range(20))
        print(f"{name:18} {1e6 * best:7.0f} us for 64 signals of 256")


def _seconds(program: Callable[[jax.Array], Any], x: jax.Array) -> float:
    start = time.perf_counter()
    program(x).block_until_ready()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
